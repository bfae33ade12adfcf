"""What features are worth: as scikit-learn has it, in sparse rows and for each label too."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_array, csr_array
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, jaccard_score
from sklearn.pipeline import make_pipeline

from setwise import (
    CatalogClassifier,
    SetClassifier,
    SetClassifierCV,
    TargetDecoder,
    feature_importance,
)
from setwise.estimators.permuting import label_measure
from setwise.targets import get_target

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(90, 4)) * (RANDOM.random((90, 4)) < 0.7)
X[:, 3] = 0.0
Y = (X[:, :3] @ RANDOM.normal(size=(3, 3)) + 0.5 * RANDOM.normal(size=(90, 3)) > 0.3).astype(int)


@pytest.fixture(scope="module")
def model():
    return SetClassifier("f1", alpha=0.01).fit(X, Y)


def test_it_is_that_of_scikit_learn_in_the_mean(model):
    mine = feature_importance(model, X, Y, n_repeats=100)
    theirs = permutation_importance(model, X, Y, n_repeats=100, random_state=1)
    error = np.hypot(mine.deviation, theirs.importances_std) / np.sqrt(100)
    assert (np.abs(mine.mean - theirs.importances_mean) <= 5 * error + 1e-12).all()
    assert mine.utility == pytest.approx(model.score(X, Y))


def test_a_feature_that_nothing_depends_on_is_worth_0(model):
    found = feature_importance(model, X, Y)
    assert found.mean[3] == found.deviation[3] == 0.0
    np.testing.assert_array_equal(found.by_label[3], 0.0)
    assert found.order()[-1] == 3 or found.mean.min() < 0.0


@pytest.fixture(scope="module")
def dense(model):
    return feature_importance(model, X, Y, random_state=4, n_repeats=60)


@pytest.mark.parametrize("form", [csr_array, csc_array, pd.DataFrame])
def test_forms_of_x_are_worth_the_same(form, dense):
    own = SetClassifier("f1", alpha=0.01).fit(form(X), Y)
    found = feature_importance(own, form(X), Y, random_state=3, n_repeats=60)
    assert found.utility == pytest.approx(dense.utility)
    np.testing.assert_allclose(found.mean, dense.mean, atol=0.03)
    if form is pd.DataFrame:
        assert found.feature_names.tolist() == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("target", "measure"),
    [
        ("f1", f1_score),
        ("jaccard", jaccard_score),
        ("hamming", accuracy_score),
        ("subset", f1_score),
        ("macro_f1", f1_score),
    ],
)
def test_of_each_label_it_is_its_own_measure(target, measure):
    """Exactly what is lost by the shuffle, of a column that only two rows differ in."""
    model = SetClassifier(target, "binary_relevance", alpha=0.01).fit(X, Y)
    found = feature_importance(model, X, Y, n_repeats=1, random_state=5, features=[1])
    order = np.random.RandomState(5).permutation(90)
    shuffled = X.copy()
    shuffled[:, 1] = X[order, 1]
    parts = model.predict(X), model.predict(shuffled)
    of = [[measure(Y[:, label], part[:, label]) for label in range(3)] for part in parts]
    np.testing.assert_allclose(found.by_label[0], np.subtract(*of), atol=1e-12)
    utility = get_target(target).utility
    expected = utility(parts[0], Y) - utility(parts[1], Y)
    assert found.mean[0] == pytest.approx(expected, abs=1e-12)
    assert found.of_label == str(label_measure(get_target(target)).of)


def test_a_search_is_worth_what_its_choice_is():
    search = SetClassifierCV("f1", alphas=[0.1], spaces=["catalog"], cv=2).fit(X, Y)
    found, chosen = (feature_importance(one, X, Y) for one in (search, search.best_estimator_))
    np.testing.assert_array_equal(found.mean, chosen.mean)


def test_pipelines_names_and_weights():
    gaps = np.where(RANDOM.random(X.shape) < 0.1, np.nan, X)
    model = make_pipeline(SimpleImputer(), SetClassifier(alpha=0.01)).fit(gaps, Y)
    weights = RANDOM.random(90)
    names = list("abcd")
    found = feature_importance(model, gaps, Y, feature_names=names, sample_weight=weights)
    assert found.feature_names.tolist() == names
    expected = get_target("f1").utility(model.predict(gaps), Y, weights)
    assert found.utility == pytest.approx(expected)
    assert f"{found.mean[0]:+.4f}" in str(found)


@pytest.mark.parametrize("kind", [CatalogClassifier, TargetDecoder])
def test_importances_of_what_is_inside_are_handed_on(kind):
    forest = RandomForestClassifier(5, random_state=0)
    model = kind(forest).fit(X, Y)
    np.testing.assert_array_equal(model.feature_importances_, model.estimator_.feature_importances_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"features": [0, 4]}, r"features must be a list of numbers of columns, from 0 to 3"),
        ({"features": ["a"]}, r"features must be a list of numbers of columns, .* not \['a'\]"),
        ({"features": 1}, "features must be a list of numbers of columns"),
        ({"feature_names": ["a"]}, "feature_names must be 4 names, but there are 1"),
    ],
)
def test_wrong_columns_are_refused_before_anything_is_predicted(settings, message, model):
    with pytest.raises(ValueError, match=message):
        feature_importance(model, X, Y, **settings)
    with pytest.raises(ValueError, match=r"a fitted classifier of setwise, .* LogisticRegression"):
        feature_importance(LogisticRegression().fit(X, Y[:, 0]), X, Y[:, 0])


def test_of_no_features_there_is_nothing_to_tell(model):
    found = feature_importance(model, X, Y, features=[])
    assert found.mean.shape == (0,)
    assert found.by_label.shape == (0, 3)
