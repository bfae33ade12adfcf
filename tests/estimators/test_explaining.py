"""Explanations: contributions add up to log-odds, and are those of the formula by enumeration."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.sparse import csr_array
from scipy.special import logit
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from setwise import (
    CatalogClassifier,
    SetBooster,
    SetClassifier,
    SetClassifierCV,
    SetEnsemble,
    TargetDecoder,
)
from setwise.estimators.explaining import explain
from setwise.estimators.leaf_forest import LeafForest
from setwise.spaces.space import all_sets

RANDOM = np.random.default_rng(0)
# The last feature says nothing, and is the same in all rows.
X = np.column_stack([RANDOM.normal(size=(120, 4)), np.full(120, 2.0)])
Y = (X[:, :4] @ RANDOM.normal(size=(4, 3)) + RANDOM.normal(size=(120, 3)) > 0.4).astype(int)
X_NEW = np.column_stack([RANDOM.normal(size=(3, 4)), np.full(3, 2.0)])
FOREST = ExtraTreesClassifier(8, random_state=0)
LINEAR = {"alpha": 0.01}
MODELS = {
    "cube": SetClassifier(space="cube", **LINEAR),
    "catalog": SetClassifier(space="catalog", **LINEAR),
    "joint": SetClassifier(space="joint", **LINEAR),
    "sized": SetClassifier(space="sized", **LINEAR),
    "backoff": SetClassifier(space="backoff", **LINEAR),
    "forest space": SetClassifier(space="forest", **LINEAR),
    "standard": SetClassifier(scaling="standard", **LINEAR),
    "binary relevance": SetClassifier(surrogate="binary_relevance", **LINEAR),
    "label features": SetClassifier(label_features=[[1.0, 0], [0, 1], [1, 1]], **LINEAR),
    "search": SetClassifierCV(alphas=[0.1], spaces=["catalog"], cv=2),
    "own loss": SetClassifier("hamming", "logistic", **LINEAR),
    "booster": SetBooster(n_estimators=8, patience=None, n_jobs=1),
    "booster by label": SetBooster(
        surrogate="binary_relevance", n_estimators=8, patience=None, n_jobs=1
    ),
    "forest": CatalogClassifier(FOREST),
    "random forest": CatalogClassifier(RandomForestClassifier(8, random_state=0)),
    "leaf forest": CatalogClassifier(LeafForest(8, random_state=0)),
    "mixture": SetEnsemble(
        members={
            "linear": SetClassifier(**LINEAR),
            "trees": CatalogClassifier(LeafForest(8, min_samples_leaf=4, random_state=0)),
            "booster": SetBooster(n_estimators=8, patience=None, n_jobs=1),
            "other": OneVsRestClassifier(LogisticRegression()),
        },
        cv=2,
    ),
}


@pytest.fixture(scope="module")
def fitted():
    return {name: model.fit(X, Y) for name, model in MODELS.items()}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("background", [None, X], ids=["zeros", "mean"])
def test_contributions_add_up_to_the_log_odds_of_predict_proba(name, background, fitted):
    model = fitted[name]
    found = explain(model, X_NEW, labels=[0, 1, 2], background=background)
    expected = model.predict_proba(X_NEW)
    for row, likely in zip(found, expected, strict=True):
        np.testing.assert_allclose(row.probability, likely, atol=1e-8)
        added = row.contributions.sum(axis=1)
        np.testing.assert_allclose(added, row.log_odds - row.base, atol=1e-6)
        if row.members:
            np.testing.assert_allclose(sum(row.members.values()), row.contributions, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_a_feature_that_nothing_depends_on_contributes_0(name, fitted):
    for row in explain(fitted[name], X_NEW, labels=[0, 1, 2], background=X):
        np.testing.assert_array_equal(row.contributions[:, 4], 0.0)


def test_where_labels_are_independent_they_are_the_terms_of_the_linear_score(fitted):
    for name, factor in {"cube": 2.0, "binary relevance": 1.0}.items():
        model = fitted[name]
        (row,) = explain(model, X_NEW[:1], labels=[0, 1, 2], background=X)
        expected = factor * model.coef_ * (X_NEW[0] - X.mean(axis=0))
        np.testing.assert_allclose(row.contributions, expected, atol=1e-9)
        base = factor * (model.intercept_ + model.coef_ @ X.mean(axis=0))
        np.testing.assert_allclose(row.base, base, atol=1e-9)


def enumerated_log_odds(scores, space):
    """log P(label) - log(1 - P(label)) by all label sets, (l,)."""
    sets = all_sets(3)
    chance = np.exp(space.log_probability(np.tile(scores, (len(sets), 1)), sets))
    return logit(chance @ sets)


@pytest.mark.parametrize("name", ["catalog", "sized", "backoff", "forest space"])
def test_contributions_are_the_integral_by_enumeration(name, fitted):
    """The gradient by central differences of sums over all eight label sets."""
    model = fitted[name]
    (row,) = explain(model, X_NEW[:1], labels=[0, 1, 2], background=X)
    base = model.intercept_ + model.coef_ @ X.mean(axis=0)
    parts = model.coef_ * (X_NEW[0] - X.mean(axis=0))
    step = 1e-5

    def slope(t, label, feature):
        at, move = base + t * parts.sum(axis=1), step * parts[:, feature]
        ends = (enumerated_log_odds(at + sign * move, model.space_)[label] for sign in (1, -1))
        return np.subtract(*ends) / (2.0 * step)

    for label in range(3):
        for feature in (0, 2):
            expected = quad(slope, 0.0, 1.0, (label, feature), epsabs=1e-9)[0]
            assert row.contributions[label, feature] == pytest.approx(expected, abs=1e-6)


def test_contributions_of_trees_are_those_of_xgboost():
    """Of trees with one number in a leaf, which are all that it tells them for."""
    import xgboost

    y = csr_array(Y[:, :1])
    model = SetBooster(n_estimators=6, patience=None, n_jobs=1, surrogate="binary_relevance")
    model.fit(X, y)
    (row,) = explain(model, X_NEW[:1], labels=[0])
    told = model._trees.booster.predict(xgboost.DMatrix(X_NEW[:1]), pred_contribs=True)
    np.testing.assert_allclose(row.contributions[0], told[0, :-1] / 2.0, atol=1e-7)


def test_vector_leaves_have_the_contributions_of_their_labels_trees():
    """The mean over all orders in which features become known: Shapley's value, by enumeration."""
    model = SetBooster(n_estimators=3, max_depth=2, patience=None, n_jobs=1).fit(X[:, :2], Y)
    parts = model._trees.contributions(X_NEW[:, :2])
    whole = model.decision_function(X_NEW[:, :2])
    rest = whole - parts.sum(axis=2)
    np.testing.assert_allclose(rest, np.broadcast_to(rest[0], rest.shape), atol=1e-6)
    # Two rows that differ in one feature only, of a model of that feature only.
    single = SetBooster(n_estimators=3, patience=None, n_jobs=1).fit(X[:, :1], Y)
    a, b = (single._trees.contributions(row[None, :1])[0, :, 0] for row in X_NEW[:2])
    scores = single.decision_function(X_NEW[:2, :1])
    np.testing.assert_allclose(a - b, scores[0] - scores[1], atol=1e-6)


def test_forests_by_the_changes_on_the_way_to_their_leaves(fitted):
    """Both kinds of forest grow the same trees, and say the same of them."""
    a, b = (
        explain(CatalogClassifier(kind).fit(X, Y), X_NEW, labels=[0, 1, 2])
        for kind in (ExtraTreesClassifier(10, random_state=3), LeafForest(10, random_state=3))
    )
    for one, other in zip(a, b, strict=True):
        np.testing.assert_allclose(one.contributions, other.contributions, atol=1e-5)
        np.testing.assert_allclose(one.base, other.base, atol=1e-5)


def test_missing_values_sparse_rows_and_pipelines():
    gaps = np.where(RANDOM.random(X.shape) < 0.1, np.nan, X)
    model = SetBooster(n_estimators=6, patience=None, n_jobs=1).fit(gaps, Y)
    row = explain(model, gaps[:1])[0]
    np.testing.assert_allclose(row.contributions.sum(axis=1), row.log_odds - row.base, atol=1e-6)
    behind = make_pipeline(SimpleImputer(), SetClassifier(**LINEAR)).fit(gaps, Y)
    filled = behind[0].transform(gaps)
    (a,) = explain(behind, gaps[:1], labels=[1], background=gaps)
    (b,) = explain(behind[-1], filled[:1], labels=[1], background=filled)
    (c,) = explain(behind[-1], csr_array(filled[:1]), labels=[1], background=csr_array(filled))
    for one in (b, c):
        np.testing.assert_allclose(one.contributions, a.contributions, atol=1e-12)


def test_the_predicted_labels_are_explained_by_name_and_what_is_strongest_comes_first(fitted):
    model = SetClassifier(**LINEAR).fit(X, [list(np.array(["a", "b", "c"])[y == 1]) for y in Y])
    rows = explain(model, X_NEW, feature_names=list("vwxyz"), background=X)
    for row, sets in zip(rows, model.predict_sets(X_NEW), strict=True):
        chosen = sets if sets else row.labels.tolist()
        assert row.labels.tolist() == list(chosen)
        assert row.predicted.tolist() == [bool(sets)] * len(chosen)
    row = rows[0]
    strongest = row.strongest(0, 2)
    assert abs(strongest[0][1]) >= abs(strongest[1][1])
    assert f"{strongest[0][1]:+8.3f}  {row.feature_names[strongest[0][0]]} = " in str(row)


def test_a_member_that_cannot_be_taken_apart_is_part_of_the_base(fitted):
    row = explain(fitted["mixture"], X_NEW[:1], labels=[0])[0]
    weights = dict(zip(fitted["mixture"].members_, fitted["mixture"].weights_, strict=True))
    assert set(row.members) == {name for name, weight in weights.items() if weight > 0.0}
    assert row.apart == (("other",) if weights["other"] > 0.0 else ())


def test_what_cannot_be_explained_is_refused_with_what_can():
    model = TargetDecoder(OneVsRestClassifier(LogisticRegression())).fit(X, Y)
    with pytest.raises(ValueError, match="TargetDecoder cannot be taken apart into features"):
        explain(model, X_NEW)
    model = SetClassifier(**LINEAR).fit(X, Y)
    with pytest.raises(ValueError, match="there is no label '7'"):
        explain(model, X_NEW, labels=[7])
    with pytest.raises(ValueError, match="feature_names must be 5 names, but there are 2"):
        explain(model, X_NEW, feature_names=["a", "b"])


def test_a_label_that_is_always_or_never_there_has_infinite_log_odds():
    fixed = np.column_stack([Y[:, 0], np.ones(120, int), np.zeros(120, int)])
    model = SetClassifier(space="catalog", **LINEAR).fit(X, fixed)
    (row,) = explain(model, X_NEW[:1], labels=[0, 1, 2], background=X)
    assert row.log_odds[1] == np.inf
    assert row.log_odds[2] == -np.inf
    np.testing.assert_array_equal(row.contributions[1:], 0.0)
    np.testing.assert_allclose(row.contributions[0].sum(), row.log_odds[0] - row.base[0])


def test_rows_are_chosen_and_predicted_with_those_they_come_with():
    plain = SetClassifier("macro_f1", **LINEAR).fit(X, Y)
    batch = plain.for_target("macro_f1", "batch")
    for model in (plain, batch):
        sets = model.predict(X)
        found = explain(model, X, rows=[7, 2], labels=[0, 1, 2])
        for row, one in zip([7, 2], found, strict=True):
            np.testing.assert_array_equal(one.predicted, sets[row] == 1)
            np.testing.assert_array_equal(one.values, X[row])
    for rows in ([120], [-1], 3, ["a"]):
        with pytest.raises(ValueError, match="rows must be a list of numbers of rows of X"):
            explain(plain, X, rows=rows)


def test_names_of_features_are_those_that_a_pipeline_hands_on():
    frame = pd.DataFrame(X, columns=list("abcde"))
    pipeline = make_pipeline(StandardScaler(), SetClassifier(**LINEAR))
    search = GridSearchCV(pipeline, {"setclassifier__alpha": [0.1]}, cv=2)
    for model in (pipeline, search):
        (row,) = explain(model.fit(frame, Y), frame[:1])
        assert row.feature_names.tolist() == list("abcde")


@pytest.mark.parametrize("labels", [[], "0", 0])
def test_labels_are_a_list_of_some(labels, fitted):
    with pytest.raises(ValueError, match="labels must be a list of names of labels, at least one"):
        explain(fitted["cube"], X_NEW, labels=labels)


def test_what_is_no_fitted_model_is_refused():
    with pytest.raises(NotFittedError):
        explain(SetClassifier(), X_NEW)
    with pytest.raises(ValueError, match="with predict_proba, not 3"):
        explain(3, X_NEW)


@pytest.mark.parametrize("surrogate", ["likelihood", "binary_relevance"])
@pytest.mark.parametrize("kind", ["linear", "booster"])
def test_classes_have_the_log_odds_of_predict_proba(surrogate, kind):
    model = SetClassifier(surrogate=surrogate, **LINEAR)
    if kind == "booster":
        model = SetBooster(surrogate=surrogate, n_estimators=8, patience=None, n_jobs=1)
    names = np.array(["a", "b", "c"])[Y.argmax(axis=1)]
    found = explain(model.fit(X, names), X_NEW, labels=["a", "b", "c"])
    for row, likely in zip(found, model.predict_proba(X_NEW), strict=True):
        np.testing.assert_allclose(row.log_odds, logit(likely), atol=1e-9)
        added = row.contributions.sum(axis=1)
        np.testing.assert_allclose(added, row.log_odds - row.base, atol=1e-9)
