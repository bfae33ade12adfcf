"""A fit decoded for another target is the fit for that target."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier

from setwise import CatalogClassifier, SetClassifier, SetClassifierCV, TargetDecoder
from setwise.decoders import MinimumRisk
from setwise.spaces import Sized
from setwise.targets import CountTarget

TARGETS = ("f1", "hamming", "jaccard", "subset", "precision@2")
NEIGHBOURS = KNeighborsClassifier(7)
MAKERS = {
    "catalog": lambda target: SetClassifier(target, space="catalog"),
    "sized": lambda target: SetClassifier(target, space="sized"),
    "a space": lambda target: SetClassifier(target, space=Sized(3, np.zeros(4))),
    "binary relevance": lambda target: SetClassifier(target, "binary_relevance"),
    "search": lambda target: SetClassifierCV(target, alphas=[0.1], spaces=["catalog"], cv=2),
    "decoder": lambda target: TargetDecoder(NEIGHBOURS, target),
    "calibrated": lambda target: TargetDecoder(NEIGHBOURS, target, calibration="sigmoid", cv=3),
    "classes": lambda target: CatalogClassifier(NEIGHBOURS, target),
}


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(1)
    X = generator.normal(size=(90, 4))
    Y = X @ generator.normal(size=(4, 3)) + generator.normal(size=(90, 3)) > 0.3
    return X[:60], Y[:60].astype(int), X[60:]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_it_equals_a_fit_for_that_target_and_leaves_the_first_as_it_was(make, data):
    X, Y, X_new = data
    first = make("f1").fit(X, Y)
    before = first.predict(X_new)
    for target in TARGETS:
        again, other = make(target).fit(X, Y), first.for_target(target)
        np.testing.assert_array_equal(other.predict(X_new), again.predict(X_new))
        np.testing.assert_array_equal(other.predict_proba(X_new), again.predict_proba(X_new))
        assert other.get_params()["target"] == target
        for name in ("guarantee_", "decoder_", "over_"):
            assert getattr(other, name, None) == getattr(again, name, None)
    assert first.target == "f1"
    np.testing.assert_array_equal(first.predict(X_new), before)


def test_another_decoder_is_taken_too(data):
    X, Y, X_new = data
    first = SetClassifier("f1", "binary_relevance").fit(X, Y)
    cut = SetClassifier("jaccard", "binary_relevance", decoder="most_likely").fit(X, Y)
    other = first.for_target("jaccard", decoder="most_likely")
    np.testing.assert_array_equal(other.predict(X_new), cut.predict(X_new))
    assert other.guarantee_ == cut.guarantee_
    with pytest.raises(ValueError, match="decoder must be one of"):
        first.for_target("f1", decoder="best")


def test_a_loss_of_one_target_does_not_serve_another(data):
    X, Y, _ = data
    trained = SetClassifier("f1", "logistic").fit(X, Y)
    with pytest.raises(ValueError, match="trained on the loss logistic of f1 is not one for jacc"):
        trained.for_target("jaccard")


def test_sets_merged_for_one_target_do_not_serve_another(data):
    X, Y, _ = data
    merged = CatalogClassifier(NEIGHBOURS, "f1", min_count=3).fit(X, Y)
    with pytest.raises(ValueError, match="rare label sets were merged for f1"):
        merged.for_target("jaccard")


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_what_is_not_fitted_or_cannot_be_decoded_is_refused(make, data):
    X, Y, _ = data
    with pytest.raises(NotFittedError):
        make("f1").for_target("hamming")
    fitted = make("f1").fit(X, Y)
    with pytest.raises(ValueError, match="no target named"):
        fitted.for_target("nonsense")
    with pytest.raises(ValueError, match="4"):
        fitted.for_target("precision@4")


def test_classes_of_one_dimension_stay_what_they_are(data):
    X, Y, X_new = data
    y = Y.argmax(axis=1)
    for make in (MAKERS["catalog"], MAKERS["decoder"], MAKERS["classes"]):
        first = make("f1").fit(X, y)
        other = first.for_target("jaccard")
        np.testing.assert_array_equal(other.predict(X_new), first.predict(X_new))


def test_a_target_of_ones_own_serves_too(data):
    X, Y, X_new = data
    own = CountTarget(lambda tp, fp, fn, tn: (fp + fn) / (tp + fp + fn + tn))
    again = SetClassifier(own).fit(X, Y)
    other = SetClassifier("f1").fit(X, Y).for_target(own)
    np.testing.assert_array_equal(other.predict(X_new), again.predict(X_new))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_predictions_are_decoded_from_the_distribution_and_its_marginals_are_the_probability(
    make, data
):
    X, Y, X_new = data
    model = make("f1").fit(X, Y)
    said = model.predict_distribution(X_new)
    assert (len(said), said.n_labels) == (len(X_new), Y.shape[1])
    np.testing.assert_allclose(said.marginals(), model.predict_proba(X_new), atol=1e-12)
    np.testing.assert_array_equal(MinimumRisk("f1").decode(said), model.predict(X_new))
