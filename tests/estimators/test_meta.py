"""Laws of the meta estimators: decoded is what the wrapped estimator says, and nothing else."""

import pickle

import numpy as np
import pandas
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier, StackingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from setwise.decoders import MinimumRisk
from setwise.estimators import CatalogClassifier, TargetDecoder
from setwise.estimators.catalog_classifier import distinct_sets, merge_rare
from setwise.estimators.folds import splits_of
from setwise.estimators.label_model import label_probability
from setwise.estimators.target_decoder import Sigmoid
from setwise.targets import FBeta, TableTarget, get_target

FOREST = RandomForestClassifier(6, max_depth=4, random_state=3)
ESTIMATORS = {
    "forest": FOREST,
    "extra trees": ExtraTreesClassifier(6, max_depth=4, random_state=3),
    "tree": DecisionTreeClassifier(max_depth=3, random_state=3),
    "neighbours": KNeighborsClassifier(7),
    "multi output": MultiOutputClassifier(LogisticRegression()),
    "one vs rest": OneVsRestClassifier(LogisticRegression()),
    "chain": ClassifierChain(LogisticRegression(), order=[2, 0, 1, 3]),
    "network": MLPClassifier((5,), solver="lbfgs", max_iter=2000, alpha=10.0, random_state=3),
    "pipeline": make_pipeline(StandardScaler(), MultiOutputClassifier(LogisticRegression())),
    "search": GridSearchCV(FOREST, {"max_depth": [2, 3]}, cv=2),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def independent_labels(seed, n=120, n_labels=4):
    """Label sets drawn from known probabilities, label by label: X, Y and P(label | x)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    probability = expit(X @ rng.normal(size=(3, n_labels)) - 0.8)
    return X, (rng.random(probability.shape) < probability).astype(np.int64), probability


def dependent_labels(seed, n=600):
    """Label sets drawn from a known law over seven sets of eight labels."""
    sets = np.random.default_rng(5).integers(0, 2, size=(7, 8))
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    law = softmax(1.5 * X @ np.random.default_rng(6).normal(size=(4, 7)), axis=1)
    drawn = (law.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return X, sets[np.minimum(drawn, 6)]


def own_probability(estimator, X):
    """P(label) as the shapes are documented by scikit-learn, for labels that all vary."""
    output = estimator.predict_proba(X)
    if isinstance(output, list):
        return np.stack([part[:, 1] for part in output], axis=1)
    return output


def mean_f1(y_pred, y_true):
    return 1.0 - get_target("f1").loss(y_pred, y_true).mean()


class Fixed(ClassifierMixin, BaseEstimator):
    """Says what it was told to say."""

    def __init__(self, output=None, classes=None):
        self.output = output
        self.classes = classes

    def fit(self, X, y):
        if self.classes is not None:
            self.classes_ = self.classes
        return self

    def predict_proba(self, X):
        return self.output


# ------------------------------------------------------------------------- the law of decoding


@every_estimator
def test_predictions_are_minimum_risk_of_the_estimators_own_probabilities(name):
    X, Y, _ = independent_labels(1)
    plain = clone(ESTIMATORS[name]).fit(X[:80], Y[:80])
    probability = own_probability(plain, X[80:])
    fitted = TargetDecoder(ESTIMATORS[name], "f1").fit(X[:80], Y[:80])
    np.testing.assert_array_equal(fitted.predict_proba(X[80:]), probability)
    for target in ("f1", "f2", "jaccard", "hamming", "subset", "precision@2"):
        expected = MinimumRisk(target).decode(probability)
        np.testing.assert_array_equal(fitted.for_target(target).predict(X[80:]), expected)


@every_estimator
def test_a_label_that_never_varies_has_the_probability_it_has(name):
    if name == "chain":
        pytest.skip("its order counts the labels")
    X, Y, _ = independent_labels(2)
    plain = clone(ESTIMATORS[name]).fit(X, Y[:, [0, 2]])
    Y[:, 1], Y[:, 3] = 1, 0
    found = TargetDecoder(ESTIMATORS[name]).fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(found[:, 1], 1.0)
    np.testing.assert_array_equal(found[:, 3], 0.0)
    np.testing.assert_array_equal(found[:, [0, 2]], own_probability(plain, X))


def test_forests_that_see_constant_labels_themselves_say_the_same():
    X, Y, _ = independent_labels(2)
    Y[:, 1], Y[:, 3] = 1, 0
    alone = clone(FOREST).fit(X, Y)
    assert [part.shape[1] for part in alone.predict_proba(X)] == [2, 1, 2, 1]
    read = label_probability(alone, X, 4)
    np.testing.assert_allclose(TargetDecoder(FOREST).fit(X, Y).predict_proba(X), read, atol=1e-12)


@every_estimator
def test_one_label_is_that_label(name):
    if name == "chain":
        pytest.skip("its order counts the labels")
    X, Y, _ = independent_labels(3)
    inner = ESTIMATORS[name]
    decoder = TargetDecoder(inner).fit(X, scipy.sparse.csr_array(Y[:, :1]))
    lone = inner.estimator if name == "multi output" else clone(inner)
    if name == "pipeline":
        lone = make_pipeline(StandardScaler(), LogisticRegression())
    expected = lone.fit(X, Y[:, 0]).predict_proba(X)[:, 1:]
    np.testing.assert_allclose(decoder.predict_proba(X), expected, rtol=1e-12)
    np.testing.assert_array_equal(decoder.predict(X), MinimumRisk("f1").decode(expected))


def test_a_chain_of_one_label():
    X, Y, _ = independent_labels(3)
    decoder = TargetDecoder(ClassifierChain(LogisticRegression()))
    found = decoder.fit(X, scipy.sparse.csr_array(Y[:, :1])).predict_proba(X)
    expected = LogisticRegression().fit(X, Y[:, 0]).predict_proba(X)[:, 1:]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_single_columns_of_a_list_are_the_class_that_was_seen():
    column = np.array([[0.25], [1.0]])
    estimator = Fixed([column, column, column], [[0], [1], [0, 1]])
    estimator.fit(None, None)
    found = label_probability(estimator, None, 3)
    np.testing.assert_array_equal(found, [[0.0, 1.0, 0.25], [0.0, 1.0, 1.0]])


def stack(final):
    trees = [("tree", DecisionTreeClassifier(max_depth=3, random_state=0))]
    return StackingClassifier(trees, final_estimator=final, cv=2)


@pytest.mark.parametrize(
    "final",
    [
        RandomForestClassifier(30, max_depth=3, random_state=0),
        MultiOutputClassifier(LogisticRegression()),
        MLPClassifier((3,), solver="lbfgs", alpha=1.0, max_iter=500, random_state=0),
    ],
    ids=lambda final: type(final).__name__,
)
@pytest.mark.parametrize(
    "around",
    [
        lambda model: model,
        lambda model: make_pipeline(StandardScaler(), model),
        lambda model: make_pipeline(model),
        lambda model: GridSearchCV(model, {"passthrough": [False]}, cv=2),
    ],
    ids=["alone", "in a pipeline", "a pipeline of one", "in a search"],
)
def test_a_stack_says_which_labels_are_there(final, around):
    """Its own predict_proba gives the probability of absence, or fails; its predict is right."""
    X, Y, _ = independent_labels(1, 300)
    decoder = TargetDecoder(around(stack(final)), "hamming").fit(X, Y)
    probability = decoder.predict_proba(X)
    own = decoder.estimator_.predict(X)
    sure = np.abs(probability - 0.5) > 1e-9
    np.testing.assert_array_equal((probability > 0.5)[sure], own[sure])
    assert (decoder.predict(X) == Y).mean() > 0.7


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "search"])
def test_a_frozen_estimator_is_decoded_as_it_is(name):
    X, Y, _ = independent_labels(1)
    fitted = clone(ESTIMATORS[name]).fit(X[:80], Y[:80])
    others = Y[80:].copy()
    others[:, 1] = 0
    expected = own_probability(fitted, X)
    for labels in (Y[80:], others):
        decoder = TargetDecoder(FrozenEstimator(fitted)).fit(X[80:], labels)
        np.testing.assert_array_equal(decoder.predict_proba(X), expected)
        np.testing.assert_array_equal(decoder.predict(X), MinimumRisk("f1").decode(expected))


def test_neighbours_within_a_radius_are_a_list_too():
    X, Y, _ = independent_labels(1)
    decoder = TargetDecoder(RadiusNeighborsClassifier(1.5, outlier_label=0)).fit(X, Y)
    expected = RadiusNeighborsClassifier(1.5, outlier_label=0).fit(X, Y).predict_proba(X)
    found = decoder.predict_proba(X)
    np.testing.assert_array_equal(found, np.stack([part[:, 1] for part in expected], axis=1))


def test_an_estimator_that_fails_without_constant_labels_is_told_of_them():
    X, Y, _ = independent_labels(2)
    Y[:, 1] = 0
    with pytest.raises(ValueError, match="order") as caught:
        TargetDecoder(ESTIMATORS["chain"]).fit(X, Y)
    assert "given 3 of the 4 labels" in caught.value.__notes__[0]


class Backwards(ClassifierMixin, BaseEstimator):
    """Its classes come in decreasing order, or under other names."""

    def __init__(self, renamed=False):
        self.renamed = renamed

    def fit(self, X, y):
        self.model_ = LogisticRegression().fit(X, y)
        names = self.model_.classes_[::-1]
        self.classes_ = np.array([f"class {name}" for name in names]) if self.renamed else names
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)[:, ::-1]


@pytest.mark.parametrize("wrap", [TargetDecoder, CatalogClassifier])
def test_columns_belong_to_the_classes_the_estimator_names(wrap):
    X, Y, _ = independent_labels(3)
    for y in (Y[:, 0], np.array(["a", "b", "c"])[Y[:, 0] + Y[:, 1]]):
        expected = LogisticRegression().fit(X, y).predict_proba(X)
        np.testing.assert_allclose(wrap(Backwards()).fit(X, y).predict_proba(X), expected)
        with pytest.raises(ValueError, match=r"classes_ of Backwards .* but 'class .' is not"):
            wrap(Backwards(renamed=True)).fit(X, y).predict_proba(X)


def test_rounding_is_no_error_and_more_is():
    beyond = np.array([[1.0 + 1e-9, -1e-9]])
    np.testing.assert_array_equal(label_probability(Fixed(beyond), None, 2), [[1.0, 0.0]])
    with pytest.raises(ValueError, match=r"row 0, column 1 is nan"):
        label_probability(Fixed(np.array([[0.5, np.nan]])), None, 2)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (np.zeros((3, 5)), r"array of shape \(3, 5\) for 2 labels"),
        ([np.zeros((3, 2))] * 3, r"list of 3 arrays for 2 labels"),
        ([np.zeros((3, 1))] * 2, "does not tell its classes_"),
        ([np.zeros((3, 3))] * 2, "gives 3 columns for a label"),
    ],
)
def test_shapes_that_mean_nothing_are_refused(output, message):
    with pytest.raises(ValueError, match=message):
        label_probability(Fixed(output), None, 2)


@pytest.mark.parametrize("seed", range(2))
def test_decoding_for_f1_is_no_worse_at_f1_than_the_plain_estimator(seed):
    X, Y, _ = independent_labels(seed, 1500, 6)
    plain = OneVsRestClassifier(LogisticRegression())
    decoder = TargetDecoder(plain, "f1").fit(X[:500], Y[:500])
    decoded = mean_f1(decoder.predict(X[500:]), Y[500:])
    assert decoded > mean_f1(plain.fit(X[:500], Y[:500]).predict(X[500:]), Y[500:]) + 0.02


@pytest.mark.parametrize("seed", range(2))
def test_over_label_sets_a_forest_is_better_at_f1_than_plain(seed):
    X, Y = dependent_labels(seed)
    forest = RandomForestClassifier(60, random_state=seed)
    catalog = CatalogClassifier(forest, "f1").fit(X[:300], Y[:300])
    decoded = mean_f1(catalog.predict(X[300:]), Y[300:])
    assert decoded > mean_f1(forest.fit(X[:300], Y[:300]).predict(X[300:]), Y[300:])


@pytest.mark.parametrize("wrap", [TargetDecoder, CatalogClassifier])
def test_permuted_labels_permute_predictions(wrap):
    X, Y, _ = independent_labels(4)
    order = np.array([2, 0, 3, 1])
    # Distances weigh, so that no two sets have the same risk.
    model = wrap(KNeighborsClassifier(9, weights="distance"))
    unseen = X[:40] + 0.05
    straight = model.fit(X, Y).predict(unseen)
    probability = model.predict_proba(unseen)
    permuted = model.fit(X, Y[:, order])
    np.testing.assert_array_equal(permuted.predict(unseen), straight[:, order])
    np.testing.assert_allclose(permuted.predict_proba(unseen), probability[:, order], atol=1e-12)


def test_decision_function_is_the_finite_logit():
    X, Y, _ = independent_labels(5)
    Y[:, 1], Y[:, 3] = 1, 0
    decoder = TargetDecoder(FOREST).fit(X, Y)
    probability, scores = decoder.predict_proba(X), decoder.decision_function(X)
    assert {0.0, 1.0} <= set(probability.ravel())
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(expit(scores), probability, atol=1e-15)


# ---------------------------------------------------------------------------------- calibration


class Overconfident(ClassifierMixin, BaseEstimator):
    """Logits three times too large, and two too high."""

    def fit(self, X, y, sample_weight=None):
        self.model_ = MultiOutputClassifier(LogisticRegression()).fit(X, y, sample_weight)
        return self

    def predict_proba(self, X):
        probability = own_probability(self.model_, X)
        return expit(3.0 * np.log(probability / (1.0 - probability)) + 2.0)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("seed", range(2))
def test_calibration_lowers_the_brier_score_of_an_overconfident_model(method, seed):
    X, Y, truth = independent_labels(seed, 1600)
    raw = TargetDecoder(Overconfident()).fit(X[:800], Y[:800]).predict_proba(X[800:])
    model = TargetDecoder(Overconfident(), calibration=method).fit(X[:800], Y[:800])
    calibrated = model.predict_proba(X[800:])
    brier = ((raw - Y[800:]) ** 2).mean(), ((calibrated - Y[800:]) ** 2).mean()
    assert brier[1] < brier[0] - 0.03
    assert np.abs(calibrated - truth[800:]).mean() < np.abs(raw - truth[800:]).mean() / 3
    np.testing.assert_array_equal(model.predict(X[800:]), MinimumRisk("f1").decode(calibrated))


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibration_is_increasing_and_leaves_the_estimator_and_rare_labels(method):
    X, Y, _ = independent_labels(6, 300)
    Y[:, 1], Y[:, 2], Y[:, 3] = 0, 1, 0
    Y[:9, 1], Y[:9, 2], Y[:10, 3] = 1, 0, 1
    raw = TargetDecoder(FOREST).fit(X, Y).predict_proba(X)
    model = TargetDecoder(FOREST, calibration=method).fit(X, Y)
    found = model.predict_proba(X)
    np.testing.assert_array_equal(own_probability(model.estimator_, X), raw)
    assert [calibrator is None for calibrator in model.calibrators_] == [False, True, True, False]
    np.testing.assert_array_equal(found[:, [1, 2]], raw[:, [1, 2]])
    for label in (0, 3):
        assert (np.diff(found[np.argsort(raw[:, label], kind="stable"), label]) >= -1e-12).all()


def test_calibrators_see_only_what_was_said_of_rows_held_out():
    X, Y, _ = independent_labels(7, 200)
    memory = KNeighborsClassifier(1)
    # In sample, one neighbour is always right; out of fold it is not, and calibration knows.
    assert (TargetDecoder(memory).fit(X, Y).predict_proba(X) == Y).all()
    found = TargetDecoder(memory, calibration="isotonic", cv=KFold(4)).fit(X, Y).predict_proba(X)
    held_out = np.concatenate(
        [
            own_probability(clone(memory).fit(X[train], Y[train]), X[test])
            for train, test in KFold(4).split(X)
        ]
    )
    for label in range(4):
        for said in (0, 1):
            share = Y[held_out[:, label] == said, label].mean()
            np.testing.assert_allclose(found[Y[:, label] == said, label], share)


@every_estimator
def test_calibrators_of_every_estimator_are_fitted_out_of_fold(name):
    X, Y, _ = independent_labels(26)
    folds, inner = KFold(3), ESTIMATORS[name]
    held_out = np.empty(Y.shape)
    for train, test in folds.split(X):
        held_out[test] = own_probability(clone(inner).fit(X[train], Y[train]), X[test])
    whole = own_probability(clone(inner).fit(X, Y), X)
    model = TargetDecoder(inner, calibration="isotonic", cv=folds).fit(X, Y)
    found = model.predict_proba(X)
    for label, probability in enumerate(held_out.T):
        isotonic = IsotonicRegression(out_of_bounds="clip").fit(probability, Y[:, label])
        expected = isotonic.predict(whole[:, label])
        np.testing.assert_allclose(found[:, label], expected, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), MinimumRisk("f1").decode(found))


def test_a_sigmoid_keeps_what_is_right_and_never_turns_a_label_round():
    rng = np.random.default_rng(0)
    probability = rng.random(40_000)
    y_true = (rng.random(40_000) < probability).astype(np.uint8)
    kept = Sigmoid.fit(probability, y_true, np.ones(40_000))
    np.testing.assert_allclose(kept.predict(probability), probability, atol=0.01)
    turned = Sigmoid.fit(1.0 - probability, y_true, np.ones(40_000))
    np.testing.assert_allclose(turned.predict(probability), y_true.mean(), atol=1e-3)


def test_calibrators_are_weighted():
    X, Y, _ = independent_labels(8, 240)
    weight = np.where(Y[:, 0] == 1, 3.0, 1.0)
    model = TargetDecoder(Overconfident(), calibration="sigmoid")
    plain = model.fit(X, Y).predict_proba(X)[:, 0].mean()
    weighted = model.fit(X, Y, sample_weight=weight).predict_proba(X)[:, 0]
    assert plain == pytest.approx(Y[:, 0].mean(), abs=0.02)
    share = np.average(Y[:, 0], weights=weight)
    assert np.average(weighted, weights=weight) == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_weights_say_how_much_a_row_counts_beside_others(method):
    X, Y, _ = independent_labels(8, 240)
    weight = np.random.default_rng(0).random(len(X)) + 0.1
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    model = TargetDecoder(tree, calibration=method)
    expected = model.fit(X, Y, sample_weight=weight).predict_proba(X)
    for other in (1e-6 * weight, (1e6 * weight).tolist()):
        found = model.fit(X, Y, sample_weight=other).predict_proba(X)
        np.testing.assert_allclose(found, expected, atol=1e-4)
    plain = model.fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(model.fit(X, Y, sample_weight=2.0).predict_proba(X), plain)


def test_rows_that_weigh_nothing_do_not_make_a_label_frequent():
    X, Y, _ = independent_labels(6, 300)
    weight = np.ones(len(X))
    weight[np.flatnonzero(Y[:, 1])[9:]] = 0.0
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    model = TargetDecoder(tree, calibration="sigmoid").fit(X, Y, sample_weight=weight)
    assert [calibrator is None for calibrator in model.calibrators_] == [False, True, False, False]


def test_a_splitter_is_handed_the_groups_it_requests():
    X, Y, _ = independent_labels(7, 200)
    groups = np.random.default_rng(0).integers(0, 8, len(X))
    memory, folds = KNeighborsClassifier(1), GroupKFold(4)
    listed = list(folds.split(X, Y, groups))
    expected = TargetDecoder(memory, calibration="isotonic", cv=listed).fit(X, Y)
    with config_context(enable_metadata_routing=True):
        model = TargetDecoder(memory, calibration="isotonic", cv=folds)
        found = model.fit(X, Y, groups=groups).predict_proba(X)
    np.testing.assert_array_equal(found, expected.predict_proba(X))


@pytest.mark.parametrize("n_labels", [1, 4])
def test_each_row_is_held_out_once_and_rare_labels_are_in_every_fold(n_labels):
    Y = np.zeros((60, n_labels), np.uint8)
    Y[:10, 0], Y[5:40, -1] = 1, 1
    splits = list(splits_of(5, None, Y, 0, {}))
    assert sorted(np.concatenate([test for _, test in splits])) == list(range(60))
    for train, test in splits:
        assert sorted([*train, *test]) == list(range(60))
        assert Y[test].any(axis=0)[[0, -1]].all()
    others = list(splits_of(5, None, Y, 1, {}))
    assert any((one[1] != other[1]).any() for one, other in zip(splits, others, strict=True))


def test_classes_are_calibrated_one_by_one_and_add_up_to_one():
    X, Y, _ = independent_labels(9, 300)
    for y in (Y[:, 0], Y[:, 0] + Y[:, 1]):
        model = TargetDecoder(GaussianNB(), calibration="sigmoid").fit(X, y)
        probability = model.predict_proba(X)
        np.testing.assert_allclose(probability.sum(axis=1), 1.0)
        plain = GaussianNB().fit(X, y).predict_proba(X)
        assert np.abs(probability - plain).max() > 1e-3


@pytest.mark.parametrize("cv", [1, 1000, True, "5", KFold(2).split(np.zeros(60))])
def test_folds_that_cannot_be_are_refused(cv):
    X, Y, _ = independent_labels(10)
    with pytest.raises(ValueError, match=r"cv|folds need|held out"):
        TargetDecoder(FOREST, calibration="sigmoid", cv=cv).fit(X, Y)


# ------------------------------------------------------------------------------------- catalogs


@pytest.mark.parametrize(
    ("target", "over"),
    [
        ("f1", "all"),
        ("f2", "all"),
        ("hamming", "all"),
        ("subset", "all"),
        ("precision@2", "all"),
        ("recall@2", "all"),
        ("jaccard", "list"),
    ],
)
def test_catalogs_decode_the_estimators_own_posterior(target, over):
    X, Y = dependent_labels(0)
    catalog = CatalogClassifier(FOREST, target).fit(X[:300], Y[:300])
    assert catalog.over_ == over
    number = [int((catalog.sets_ == row).all(axis=1).argmax()) for row in Y[:300]]
    posterior = clone(FOREST).fit(X[:300], number).predict_proba(X[300:])
    np.testing.assert_array_equal(catalog.posterior(X[300:]), posterior)
    np.testing.assert_allclose(
        catalog.predict_proba(X[300:]), np.clip(posterior @ catalog.sets_, 0, 1), atol=1e-12
    )
    expected = MinimumRisk(target).decode_catalog(posterior, catalog.sets_, over=over)
    np.testing.assert_array_equal(catalog.predict(X[300:]), expected)


@pytest.mark.parametrize("over", ["list", "edits", "all"])
def test_what_may_be_predicted_is_handed_on(over):
    X, Y = dependent_labels(1)
    catalog = CatalogClassifier(FOREST, "f1", over=over).fit(X[:300], Y[:300])
    expected = MinimumRisk("f1").decode_catalog(catalog.posterior(X), catalog.sets_, over=over)
    np.testing.assert_array_equal(catalog.predict(X), expected)


@given(st.integers(0, 2**32 - 1), st.integers(1, 11))
def test_distinct_sets_are_sorted_and_stand_for_the_rows(seed, n_labels):
    Y = np.random.default_rng(seed).integers(0, 2, size=(30, n_labels), dtype=np.uint8)
    for labels in (Y, scipy.sparse.csr_array(Y)):
        seen = distinct_sets(labels)
        np.testing.assert_array_equal(seen.sets[seen.number], Y)
        np.testing.assert_array_equal(np.bincount(seen.number), seen.counts)
        keys = [(sum(row), [i for i, bit in enumerate(row) if bit]) for row in seen.sets.tolist()]
        assert keys == sorted(keys)
        assert len({tuple(row) for row in seen.sets.tolist()}) == len(seen.sets)


def rows(*counted):
    return np.concatenate([np.tile(row, (count, 1)) for row, count in counted])


def test_rare_sets_are_merged_into_the_most_similar():
    Y = rows(
        ([1, 0, 0, 0], 4),
        ([0, 1, 0, 0], 5),
        ([0, 0, 1, 1], 3),
        ([1, 0, 1, 1], 1),  # F1 loss .2 against the third, .5 against the first
        ([1, 1, 0, 0], 2),  # a third from the first and from the second, which has more rows
        ([0, 0, 0, 0], 1),  # 1 from all: the one with most rows
    )
    X = np.arange(len(Y), dtype=float)[:, None]
    catalog = CatalogClassifier(DecisionTreeClassifier(), min_count=3).fit(X, Y)
    np.testing.assert_array_equal(catalog.sets_, [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]])
    np.testing.assert_array_equal(catalog.counts_, [4, 8, 4])
    expected = Y.copy()
    expected[12], expected[13:] = [0, 0, 1, 1], [0, 1, 0, 0]
    np.testing.assert_array_equal(catalog.predict(X), expected)


@pytest.mark.parametrize("target", ["f1", "f2", FBeta(0.5), "jaccard", "hamming", "subset"])
@pytest.mark.parametrize("seed", range(3))
def test_rare_sets_go_to_the_least_loss_as_its_prediction(target, seed):
    rng = np.random.default_rng(seed)
    Y = rng.integers(0, 2, size=(60, 4), dtype=np.uint8)
    seen = distinct_sets(Y)
    merged = merge_rare(seen, 5, get_target(target))
    frequent = seen.counts >= 5
    assert 1 < frequent.sum() < len(seen.sets)
    np.testing.assert_array_equal(merged.sets, seen.sets[frequent])
    for true, number in zip(Y, merged.number, strict=True):
        loss = get_target(target).loss(merged.sets, np.tile(true, (len(merged.sets), 1)))
        preferred = sorted(
            zip(loss.round(9), -seen.counts[frequent], range(len(loss)), strict=True)
        )
        assert number == preferred[0][2]
    np.testing.assert_array_equal(np.bincount(merged.number), merged.counts)


def test_of_equally_frequent_sets_the_earlier_takes_the_rare_one():
    Y = rows(([0, 1, 0], 2), ([1, 0, 0], 2), ([0, 0, 1], 1))
    X = np.arange(5.0)[:, None]
    catalog = CatalogClassifier(DecisionTreeClassifier(), "jaccard", min_count=2).fit(X, Y)
    np.testing.assert_array_equal(catalog.sets_, [[1, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(catalog.counts_, [3, 2])


def test_a_posterior_that_does_not_add_up_is_refused_by_the_name_of_its_estimator():
    Y = np.array([[1, 0], [0, 1]])
    output = np.array([[0.5, 0.5], [0.0, 0.0], [0.3, 0.3]])
    catalog = CatalogClassifier(Fixed(output)).fit(np.eye(2), Y)
    for method in (catalog.posterior, catalog.predict_proba, catalog.predict):
        with pytest.raises(ValueError, match=r"Fixed.*row 1 adds up to 0.0 \(2 such rows\)"):
            method(np.zeros((3, 2)))


def test_if_no_set_is_frequent_enough_the_most_frequent_stay():
    Y = rows(([1, 0], 3), ([0, 1], 3), ([1, 1], 1))
    catalog = CatalogClassifier(DecisionTreeClassifier(), min_count=50).fit(np.eye(7), Y)
    np.testing.assert_array_equal(catalog.sets_, [[1, 0], [0, 1]])


def test_targets_of_k_labels_merge_by_hamming():
    Y = rows(([1, 0, 0, 0], 4), ([0, 0, 1, 1], 4), ([1, 1, 0, 0], 1))
    catalog = CatalogClassifier(DecisionTreeClassifier(), "precision@2", min_count=2)
    np.testing.assert_array_equal(catalog.fit(np.eye(9), Y).counts_, [5, 4])


@pytest.mark.parametrize("wrap", [TargetDecoder, CatalogClassifier])
@pytest.mark.parametrize("row", [[0, 0, 0], [1, 0, 1]])
@pytest.mark.parametrize("n", [1, 4])
def test_a_single_label_set_is_always_predicted(wrap, row, n):
    model = wrap(MultiOutputClassifier(LogisticRegression())).fit(np.eye(n, 4), [row] * n)
    np.testing.assert_array_equal(model.predict(np.ones((2, 4))), [row, row])
    np.testing.assert_array_equal(model.predict_proba(np.ones((2, 4))), [row, row])
    assert model.n_features_in_ == 4


def test_many_empty_sets_are_a_set_like_others():
    X = np.array([[-1.0], [-1.1], [1.0], [1.1]])
    Y = [[0, 0], [0, 0], [1, 1], [1, 1]]
    for model in (TargetDecoder(KNeighborsClassifier(2)), CatalogClassifier(LogisticRegression())):
        np.testing.assert_array_equal(model.fit(X, Y).predict([[-2.0], [2.0]]), [[0, 0], [1, 1]])


# ------------------------------------------------------------------------------ forms of X and y


@pytest.mark.parametrize("wrap", [TargetDecoder, CatalogClassifier])
def test_every_type_of_label_matrix_gives_the_same_model(wrap):
    X, Y, _ = independent_labels(11)
    model = wrap(FOREST)
    expected = model.fit(X, Y).predict(X)
    assert expected.dtype == np.int64
    for kind in (bool, np.int8, np.uint8, np.float32, np.float64):
        np.testing.assert_array_equal(model.fit(X, Y.astype(kind)).predict(X), expected)
    for sparse in (scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array):
        np.testing.assert_array_equal(model.fit(X, sparse(Y)).predict(X), expected)
    np.testing.assert_array_equal(model.fit(X, Y.tolist()).predict(X), expected)


def test_beyond_256_labels_columns_keep_their_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    Y = (X @ rng.normal(size=(2, 300)) > 0).astype(np.uint8)
    found = TargetDecoder(OneVsRestClassifier(GaussianNB())).fit(X, Y).predict_proba(X)
    for label in (0, 255, 256, 299):
        expected = GaussianNB().fit(X, Y[:, label]).predict_proba(X)[:, 1]
        np.testing.assert_allclose(found[:, label], expected)


class Frame:
    """As much of a data frame as is asked of one."""

    def __init__(self, values, columns):
        self.values, self.columns, self.shape = values, columns, values.shape

    def to_numpy(self):
        return self.values


@pytest.mark.parametrize("wrap", [TargetDecoder, CatalogClassifier])
def test_classes_are_the_names_of_the_labels(wrap):
    X, Y, _ = independent_labels(12)
    np.testing.assert_array_equal(wrap(FOREST).fit(X, Y).classes_, [0, 1, 2, 3])
    frame = Frame(Y, ["red", "green", "blue", "black"])
    assert wrap(FOREST).fit(X, frame).classes_.tolist() == frame.columns
    listed = [[frame.columns[i] for i in np.flatnonzero(row)] for row in Y]
    model = wrap(FOREST).fit(X, listed)
    assert model.classes_.tolist() == sorted(frame.columns)
    order = [frame.columns.index(name) for name in sorted(frame.columns)]
    np.testing.assert_array_equal(model.predict(X), wrap(FOREST).fit(X, Y[:, order]).predict(X))


@pytest.mark.parametrize("wrap", [TargetDecoder, CatalogClassifier])
def test_sparse_output_is_the_same_sets(wrap):
    X, Y, _ = independent_labels(13)
    dense = wrap(FOREST).fit(X, Y).predict(X)
    sparse = wrap(FOREST, sparse_output=True).fit(X, Y).predict(X)
    assert isinstance(sparse, scipy.sparse.csr_array)
    assert sparse.dtype == np.int64
    np.testing.assert_array_equal(sparse.toarray(), dense)


@pytest.mark.parametrize("wrap", [TargetDecoder, CatalogClassifier])
@pytest.mark.parametrize("sparse", [scipy.sparse.csr_array, scipy.sparse.coo_matrix])
def test_sparse_features_are_handed_on(wrap, sparse):
    X, Y, _ = independent_labels(14)
    model = wrap(FOREST).fit(sparse(X), Y)
    np.testing.assert_array_equal(model.predict(sparse(X)), wrap(FOREST).fit(X, Y).predict(X))
    if wrap is TargetDecoder:
        calibrated = TargetDecoder(FOREST, calibration="sigmoid")
        expected = calibrated.fit(X, Y).predict_proba(X)
        np.testing.assert_array_equal(calibrated.fit(sparse(X), Y).predict_proba(X), expected)


def test_text_is_the_pipelines_business():
    texts = ["red wine", "white wine", "red car", "white car"] * 12
    Y = [[int("red" in text), int("wine" in text)] for text in texts]
    bayes = make_pipeline(CountVectorizer(), OneVsRestClassifier(MultinomialNB()))
    for model in (
        TargetDecoder(bayes),
        TargetDecoder(bayes, calibration="sigmoid"),
        CatalogClassifier(make_pipeline(CountVectorizer(), MultinomialNB())),
    ):
        np.testing.assert_array_equal(model.fit(texts, Y).predict(texts), Y)


def test_kernels_are_cut_on_both_sides():
    X, Y, _ = independent_labels(15, 100)
    distance = np.linalg.norm(X[:, None] - X, axis=2)
    straight = TargetDecoder(KNeighborsClassifier(5), calibration="sigmoid").fit(X, Y)
    known = KNeighborsClassifier(5, metric="precomputed")
    given_distance = TargetDecoder(known, calibration="sigmoid").fit(distance, Y)
    np.testing.assert_allclose(given_distance.predict_proba(distance), straight.predict_proba(X))


def test_names_of_features_are_passed_through():
    X, Y, _ = independent_labels(16)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    for model in (TargetDecoder(FOREST, calibration="sigmoid"), CatalogClassifier(FOREST)):
        model.fit(frame, Y)
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]
        assert not hasattr(model.fit(X, Y), "feature_names_in_")


@pytest.mark.parametrize("wrap", [TargetDecoder, CatalogClassifier])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_class_a_row_is_the_wrapped_classifier(wrap, n_classes):
    X, Y, _ = independent_labels(17)
    y = np.array(["no", "yes", "very"])[Y[:, : n_classes - 1].sum(axis=1)]
    plain = LogisticRegression().fit(X, y)
    model = wrap(LogisticRegression()).fit(X, y)
    assert model.classes_.tolist() == plain.classes_.tolist()
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), rtol=1e-12)
    assert model.decision_function(X).shape == plain.decision_function(X).shape
    if n_classes == 2:
        np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X))


@pytest.mark.parametrize("wrap", [TargetDecoder, CatalogClassifier])
def test_the_only_class_is_always_predicted(wrap):
    model = wrap(LogisticRegression()).fit(np.eye(3), ["a", "a", "a"])
    assert model.predict(np.eye(3)).tolist() == ["a", "a", "a"]
    np.testing.assert_array_equal(model.predict_proba(np.eye(3)), np.ones((3, 1)))


def test_rare_classes_are_merged_and_keep_their_column():
    X, y = np.arange(6.0)[:, None], np.array([7, 7, 7, 8, 9, 9])
    model = CatalogClassifier(DecisionTreeClassifier(), min_count=2).fit(X, y)
    assert model.predict(X).tolist() == [7, 7, 7, 7, 9, 9]
    np.testing.assert_array_equal(model.predict_proba(X)[:, 1], 0.0)


# -------------------------------------------------------------------- citizens of scikit-learn

PLATT = "calibration counts rows: ten of a label at least, and those of Platt's targets"


def expected_failures(estimator):
    if getattr(estimator, "calibration", None) == "sigmoid":
        return {
            "check_sample_weight_equivalence_on_dense_data": PLATT,
            "check_sample_weight_equivalence_on_sparse_data": PLATT,
        }
    return {}


@parametrize_with_checks(
    [
        # Without a bootstrap, which draws rows and not weights; and of few leaves, because the
        # check takes no probabilities of exactly 0 or 1.
        TargetDecoder(RandomForestClassifier(4, max_depth=2, bootstrap=False)),
        TargetDecoder(LogisticRegression(), calibration="sigmoid", cv=2),
        CatalogClassifier(LogisticRegression()),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("wrap", [TargetDecoder, CatalogClassifier])
def test_search_reaches_the_wrapped_estimator(wrap):
    X, Y, _ = independent_labels(18)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), wrap(FOREST)),
        {f"{wrap.__name__.lower()}__estimator__max_depth": [1, 4],
         f"{wrap.__name__.lower()}__target": ["f1", "hamming", FBeta(2.0)]},
        scoring=make_scorer(lambda y_true, y_pred: mean_f1(y_pred, y_true)),
        cv=2,
    ).fit(X, Y)  # fmt: skip
    best = search.best_estimator_[-1]
    assert best.estimator_.max_depth == best.estimator.max_depth
    assert search.cv_results_["mean_test_score"].max() == search.best_score_
    assert best.target != "hamming"
    assert len(set(search.cv_results_["mean_test_score"])) > 2


@pytest.mark.parametrize(
    "model",
    [
        TargetDecoder(FOREST, "jaccard", calibration="isotonic", cv=3),
        TargetDecoder(FOREST, "f1", calibration="sigmoid"),
        CatalogClassifier(FOREST, "f2", min_count=2),
    ],
)
def test_copies_are_the_same_model(model):
    X, Y, _ = independent_labels(19)
    expected = model.fit(X, Y).predict_proba(X), model.predict(X)
    read = pickle.loads(pickle.dumps(model))
    again = clone(model).fit(X, Y)
    assert clone(model).get_params().keys() == model.get_params().keys()
    for copy in (read, again):
        np.testing.assert_array_equal(copy.predict_proba(X), expected[0])
        np.testing.assert_array_equal(copy.predict(X), expected[1])


def test_seeds_are_given_where_there_are_none_and_kept_where_there_are():
    X, Y, _ = independent_labels(20)
    for wrap in (TargetDecoder, CatalogClassifier):
        unseeded = wrap(make_pipeline(StandardScaler(), RandomForestClassifier(5)))
        found = unseeded.fit(X, Y).predict_proba(X)
        np.testing.assert_array_equal(unseeded.fit(X, Y).predict_proba(X), found)
        assert unseeded.estimator[-1].random_state is None
        other = clone(unseeded).set_params(random_state=1).fit(X, Y).predict_proba(X)
        assert (other != found).any()
    for wrap in (TargetDecoder, CatalogClassifier):
        assert wrap(FOREST, random_state=8).fit(X, Y).estimator_.random_state == 3
        free = wrap(RandomForestClassifier(5), random_state=None).fit(X, Y)
        assert free.estimator_.random_state is None


def test_tags_say_what_the_estimator_takes():
    for inner in (LogisticRegression(), GaussianNB(), FOREST):
        for wrap in (TargetDecoder, CatalogClassifier):
            tags, own = wrap(inner).__sklearn_tags__(), inner.__sklearn_tags__()
            assert tags.input_tags == own.input_tags
            assert not tags.target_tags.multi_output
        assert CatalogClassifier(inner).__sklearn_tags__().classifier_tags.multi_label
    assert not TargetDecoder(LogisticRegression()).__sklearn_tags__().classifier_tags.multi_label
    rest = ESTIMATORS["one vs rest"]
    ends = (make_pipeline(StandardScaler(), rest), GridSearchCV(rest, {}))
    for inner in (FOREST, rest, ESTIMATORS["pipeline"], *ends):
        assert TargetDecoder(inner).__sklearn_tags__().classifier_tags.multi_label


@pytest.mark.parametrize("wrap", [TargetDecoder, CatalogClassifier])
@pytest.mark.parametrize("enabled", [False, True])
def test_weights_reach_the_estimator(wrap, enabled):
    X, Y, _ = independent_labels(21)
    weight = np.random.default_rng(0).integers(1, 5, len(X)).astype(float)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    y = Y if wrap is TargetDecoder else distinct_sets(Y).number
    expected = clone(tree).fit(X, y, sample_weight=weight).predict_proba(X)
    with config_context(enable_metadata_routing=enabled):
        inner = tree.set_fit_request(sample_weight=True) if enabled else tree
        model = wrap(inner).fit(X, Y, sample_weight=weight)
        folds = cross_val_score(wrap(inner), X, Y, cv=2, params={"sample_weight": weight})
    np.testing.assert_array_equal(model.estimator_.predict_proba(X), expected)
    assert np.isfinite(folds).all()


def test_weights_are_not_lost():
    X, Y, _ = independent_labels(21)
    weight = np.ones(len(X))
    for wrap in (TargetDecoder, CatalogClassifier):
        with pytest.raises(ValueError, match="takes no sample_weight"):
            wrap(KNeighborsClassifier()).fit(X, Y, sample_weight=weight)
        with (
            config_context(enable_metadata_routing=True),
            pytest.raises(ValueError, match="weight"),
        ):
            wrap(DecisionTreeClassifier()).fit(X, Y, sample_weight=weight)
    inner = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=2, random_state=0))
    weight = 1.0 + 8.0 * Y[:, 0]
    params = {"decisiontreeclassifier__sample_weight": weight}
    found = TargetDecoder(inner, calibration="sigmoid").fit(X, Y, **params)
    expected = clone(inner).fit(X, Y, **params).predict_proba(X)
    np.testing.assert_array_equal(found.estimator_.predict_proba(X), expected)


# --------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("wrap", [TargetDecoder, CatalogClassifier])
def test_estimators_without_probabilities_are_refused(wrap):
    X, Y, _ = independent_labels(22)
    for inner in (RidgeClassifier(), SVC()):
        model = wrap(inner)
        assert not hasattr(model, "predict_proba")
        assert not hasattr(model, "decision_function")
        with pytest.raises(ValueError, match="must have predict_proba"):
            model.fit(X, Y)
    for inner in (None, "forest", RandomForestClassifier):
        with pytest.raises(ValueError, match="estimator must be a classifier"):
            wrap(inner).fit(X, Y)


def test_probabilities_that_appear_when_fitted_are_enough():
    X, Y, _ = independent_labels(22)
    stacked = StackingClassifier([("tree", DecisionTreeClassifier(max_depth=2, random_state=0))])
    assert not hasattr(stacked, "predict_proba")
    model = CatalogClassifier(stacked, min_count=6).fit(X, Y)
    expected = MinimumRisk("f1").decode_catalog(
        model.estimator_.predict_proba(X), model.sets_, over="all"
    )
    np.testing.assert_array_equal(model.predict(X), expected)


def test_an_estimator_of_one_label_is_told_how_to_take_more():
    X, Y, _ = independent_labels(22)
    with pytest.raises(ValueError, match="1d array") as caught:
        TargetDecoder(LogisticRegression()).fit(X, Y)
    assert "MultiOutputClassifier(LogisticRegression(...))" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (TargetDecoder(FOREST, "g1"), "no target named 'g1'"),
        (TargetDecoder(FOREST, "precision@5"), "at least 5 labels"),
        (TargetDecoder(FOREST, TableTarget(np.eye(4, dtype=int), 1 - np.eye(4))), "Table"),
        (TargetDecoder(FOREST, calibration="platt"), "calibration must be None"),
        (CatalogClassifier(FOREST, "g1"), "no target named 'g1'"),
        (CatalogClassifier(FOREST, "precision@5"), "at least 5 labels"),
        (CatalogClassifier(FOREST, "precision@2", over="list"), "exactly 2 labels"),
        (CatalogClassifier(FOREST, "jaccard", over="all"), "no exact minimum over all"),
        (CatalogClassifier(FOREST, TableTarget(np.eye(4, dtype=int), 1 - np.eye(4))), "Table"),
        (CatalogClassifier(FOREST, over="some"), "over must be one of"),
        (CatalogClassifier(FOREST, min_count=0), "min_count must be a whole number"),
    ],
)
def test_what_cannot_be_decoded_is_refused_when_it_is_fitted(model, message):
    X, Y, _ = independent_labels(23)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)


@pytest.mark.parametrize("target", ["f1", "hamming", "subset", "precision@2", "jaccard"])
def test_fitting_a_catalog_decodes_nothing(target, monkeypatch):
    X, Y = dependent_labels(3)
    decoded = []
    monkeypatch.setattr(MinimumRisk, "decode_catalog", lambda *given, **how: decoded.append(given))
    CatalogClassifier(FOREST, target).fit(X[:100], Y[:100])
    assert not decoded


@pytest.mark.parametrize("wrap", [TargetDecoder, CatalogClassifier])
def test_bad_data_is_refused(wrap):
    X, Y, _ = independent_labels(24)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        wrap(FOREST).fit(X[:-1], Y)
    with pytest.raises(ValueError, match="only 0 and 1"):
        wrap(FOREST).fit(X, Y + 1)
    with pytest.raises(ValueError, match="NaN"):
        wrap(LogisticRegression()).fit(np.full_like(X, np.nan), Y[:, 0])
    with pytest.raises(NotFittedError):
        wrap(FOREST).predict(X)
    missing = X.copy()
    missing[::7] = np.nan
    assert np.isin(wrap(FOREST).fit(missing, Y).predict(missing), [0, 1]).all()


def test_nothing_of_the_caller_is_changed():
    X, Y, _ = independent_labels(25)
    kept = X.copy(), Y.copy()
    for model in (TargetDecoder(FOREST, calibration="isotonic"), CatalogClassifier(FOREST)):
        model.fit(X, Y).predict(X)
        np.testing.assert_array_equal(X, kept[0])
        np.testing.assert_array_equal(Y, kept[1])
    assert not hasattr(FOREST, "estimators_")


@pytest.mark.parametrize("target", ["f1", "hamming", "jaccard", "subset", "macro_f1"])
def test_what_is_guaranteed_is_said_with_its_assumptions(target):
    X, Y = np.repeat(np.eye(4), 6, axis=0), np.tile([[1, 0, 1], [0, 1, 1]], (12, 1))
    Y[::5, 2] = 0
    by_label = TargetDecoder(KNeighborsClassifier(3), target, cv=2).fit(X, Y).guarantee_
    by_set = CatalogClassifier(KNeighborsClassifier(3), target, cv=2).fit(X, Y).guarantee_
    if target == "macro_f1":
        assert by_label == by_set
        assert "fitted to 24 rows" in by_set
        return
    assert ("labels are independent" in by_label) == (target != "hamming")
    assert "m + (1 - m) sqrt(2 r)" in by_set
    assert ("decoded among the sets" in by_set) == (target == "jaccard")


def test_classes_are_guaranteed_as_classes():
    X, y = np.repeat(np.eye(4), 6, axis=0), np.tile([0, 1, 2], 8)
    for model in (TargetDecoder(KNeighborsClassifier(3)), CatalogClassifier(GaussianNB())):
        assert "the share of wrong classes" in model.fit(X, y).guarantee_
