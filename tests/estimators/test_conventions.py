"""The estimators are what a user of scikit-learn expects, all of them alike."""

from __future__ import annotations

import pickle
import warnings
from functools import cache
from importlib.util import find_spec
from itertools import cycle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import skops.io
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer, StandardScaler

from setwise import (
    CatalogClassifier,
    LabelTreeClassifier,
    SetBooster,
    SetClassifier,
    SetClassifierCV,
    SetEnsemble,
    TargetDecoder,
    estimators,
    get_target,
    load,
    save,
)
from setwise.estimators.design import rows_of
from setwise.estimators.folds import StratifiedLabelSets
from tests.support.turns import in_turn

TREES = ExtraTreesClassifier(5, max_depth=3, random_state=0)
FEW = {"tol": 0.1}  # steps: conventions do not depend on them
LINEAR = SetClassifier(alpha=0.01, **FEW)
MODELS = {
    "SetClassifier": LINEAR,
    "SetClassifier of binary relevance": SetClassifier(surrogate="binary_relevance", alpha=0.01),
    "SetClassifierCV": SetClassifierCV(alphas=[0.1, 0.01], spaces=["catalog"], cv=2, **FEW),
    "TargetDecoder": TargetDecoder(TREES),
    "TargetDecoder, calibrated": TargetDecoder(TREES, calibration="sigmoid", cv=2),
    "CatalogClassifier": CatalogClassifier(LogisticRegression(**FEW)),
    "SetEnsemble": SetEnsemble(
        members=[LINEAR, SetClassifier(space="cube", alpha=0.1, **FEW)], cv=2
    ),
    "LabelTreeClassifier": LabelTreeClassifier(sparse_output=False, calibration=None),
    "SetBooster": SetBooster(n_estimators=8, patience=None, n_jobs=1, random_state=0),
}
if find_spec("xgboost") is None:
    del MODELS["SetBooster"]
# The parameter that a search varies.
SEARCHED = {
    SetClassifier: "alpha",
    SetClassifierCV: "max_iter",
    TargetDecoder: "estimator__max_depth",
    CatalogClassifier: "estimator__C",
    SetEnsemble: "cv",
    LabelTreeClassifier: "max_iter",
    SetBooster: "n_estimators",
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def test_every_exported_estimator_is_held_to_this():
    exported = (getattr(estimators, name) for name in estimators.__all__)
    kinds = {kind for kind in exported if isinstance(kind, type)}
    assert kinds - {type(model) for model in MODELS.values()} <= {SetBooster}


def drawn(seed=0, n=60, n_labels=3):
    """Label sets that can be learnt, none of them empty."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    scores = X @ rng.normal(size=(4, n_labels)) + 0.5 * rng.normal(size=(n, n_labels))
    Y = (scores > 0.2).astype(np.int64)
    Y[np.arange(n), scores.argmax(axis=1)] = 1
    return X, Y


X, Y = drawn()
WEIGHT = np.random.default_rng(1).integers(1, 4, len(X)).astype(float)
NAMES = np.array(["owl", "cat", "dog"])
FEATURES = ["a", "b", "c", "d"]


def listed(labels=Y):
    """The same sets as lists of names."""
    return [NAMES[row == 1].tolist() for row in labels]


def methods(model):
    """The ways in which a model says something of rows: not every one has scores."""
    every = ("predict", "predict_proba", "decision_function")
    return [name for name in every if hasattr(model, name)]


def outputs(model, X=X):
    return [getattr(model, name)(X) for name in methods(model)]


@cache
def plain(model):
    """Fitted to X and Y, and changed by no test."""
    return clone(model).fit(X, Y)


@cache
def with_weights(model):
    """The same with weights."""
    return clone(model).fit(X, Y, sample_weight=WEIGHT)


def assert_same_model(one, other, X=X):
    for found, expected in zip(outputs(one, X), outputs(other, X), strict=True):
        np.testing.assert_array_equal(found, expected)


# ----------------------------------------------------------------------------------- forms of Y


@every_model
def test_every_form_of_the_same_label_matrix_gives_the_same_model(model):
    assert plain(model).classes_.tolist() == [0, 1, 2]
    types = (bool, np.uint8, np.float32, object)
    formats = ("csr_array", "csc_matrix", "coo_array")
    forms = [Y.astype(kind) for kind in types]
    forms += [getattr(scipy.sparse, name)(Y.astype(np.uint8)) for name in formats]
    forms += [Y.tolist(), np.asfortranarray(Y), pd.DataFrame(Y).astype(bool)]
    forms += [[set(np.flatnonzero(row).tolist()) for row in Y]]
    for form in forms:
        assert_same_model(clone(model).fit(X, form), plain(model))


@pytest.mark.parametrize(
    "model",
    [
        SetClassifier(space="catalog", alpha=0.1, tol=1e-2),
        SetClassifier(surrogate="binary_relevance", alpha=0.1, tol=1e-2),
        SetClassifierCV(alphas=[0.1], spaces=["catalog"], cv=2, tol=1e-2),
        TargetDecoder(OneVsRestClassifier(GaussianNB())),
        CatalogClassifier(OneVsRestClassifier(GaussianNB())),
    ],
    ids=lambda model: type(model).__name__,
)
def test_beyond_256_labels_columns_keep_their_order(model):
    """scikit-learn's label_binarize, which OneVsRestClassifier uses, loses it for uint8."""
    X, Y = drawn(1, n=40, n_labels=260)
    predicted = clone(model).fit(X, Y).predict(X)
    assert (predicted == Y).mean() > 0.7
    again = clone(model).fit(X, Y.astype(np.uint8))
    np.testing.assert_array_equal(again.predict(X), predicted)


def test_beyond_256_label_sets_classes_keep_their_order():
    X, Y = drawn(2, n=500, n_labels=14)
    catalog = CatalogClassifier(OneVsRestClassifier(GaussianNB(var_smoothing=1.0))).fit(X, Y)
    assert len(catalog.sets_) > 256
    for place in (0, 255, 256, len(catalog.sets_) - 1):
        here = (catalog.sets_[place] == Y).all(axis=1)
        alone = GaussianNB(var_smoothing=1.0).fit(X, here).predict_proba(X)[:, 1]
        mine = catalog.posterior(X)[:, place]
        assert np.corrcoef(alone, mine)[0, 1] > 0.5


@every_model
def test_names_of_labels_are_kept(model):
    frame = pd.DataFrame(Y, columns=NAMES)
    named = clone(model).fit(X, frame)
    assert named.classes_.tolist() == ["owl", "cat", "dog"]
    assert_same_model(named, plain(model))
    order = np.argsort(NAMES)
    expected = clone(model).fit(X, Y[:, order])
    forms = (listed(), [tuple(row) for row in listed()], [set(row) for row in listed()])
    for form in (*forms, pd.Series(listed())):
        named = clone(model).fit(X, form)
        assert named.classes_.tolist() == MultiLabelBinarizer().fit(listed()).classes_.tolist()
        assert_same_model(named, expected)


CLASSES = {"no, yes": ["no", "yes"], "off, on": [False, True], "signs": [-1, 1],
           "numbers": [3, 5, 8], "letters": list("bca")}  # fmt: skip
FORMS = (np.asarray, np.ndarray.tolist, lambda y: pd.Series(y, name="class"))


@every_model
@in_turn(("classes", "form"), zip(CLASSES.values(), cycle(FORMS)), ids=CLASSES)
def test_one_class_a_row_has_the_shapes_of_scikit_learn(model, classes, form):
    y = np.array(classes)[Y[:, : len(classes) - 1].sum(axis=1) % len(classes)]
    theirs = LogisticRegression().fit(X, y)
    fitted = clone(model).fit(X, form(y))
    np.testing.assert_array_equal(fitted.classes_, theirs.classes_)
    predicted, probability, *scores = outputs(fitted)
    assert predicted.dtype == theirs.predict(X).dtype
    assert probability.shape == theirs.predict_proba(X).shape
    assert [own.shape for own in scores] == [theirs.decision_function(X).shape] * len(scores)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(predicted, fitted.classes_[probability.argmax(axis=1)])
    assert (predicted == y).mean() > 0.7
    if len(classes) == 2 and scores:
        np.testing.assert_array_equal(scores[0] > 0, probability[:, 1] > 0.5)


@every_model
def test_label_sets_have_a_column_for_each_label_also_if_there_is_one(model):
    for labels, n_labels in ((Y, 3), (Y[:, :2], 2), (Y[:, :1], 1)):
        fitted = clone(model).fit(X, scipy.sparse.csr_array(labels))
        assert {part.shape for part in outputs(fitted)} == {(len(X), n_labels)}
    fitted = clone(model).fit(X, [["owl"] if row[0] else [] for row in Y])
    assert fitted.classes_.tolist() == ["owl"]
    assert {part.shape for part in outputs(fitted)} == {(len(X), 1)}


@pytest.mark.parametrize("space", ["catalog", "joint", "sized", "cube"])
def test_label_sets_have_a_column_for_each_label_in_every_space(space):
    """Whatever the model scores; scikit-learn's own scorers ask for decision_function first."""
    fitted = SetClassifier(space=space, alpha=0.01).fit(X, Y)
    assert {part.shape for part in outputs(fitted)} == {(len(X), 3)}


@every_model
def test_a_dense_column_is_one_of_classes_and_a_warning_says_so_once(model):
    expected = clone(model).fit(X, Y[:, 0])
    for column in (Y[:, :1], pd.DataFrame({"owl": Y[:, 0]})):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = clone(model).fit(X, column)
        assert [type(warning.message) for warning in caught] == [DataConversionWarning]
        assert_same_model(fitted, expected)


# ----------------------------------------------------------------------------------- forms of X


@every_model
def test_sparse_inputs_are_their_dense_values(model):
    if isinstance(model, SetBooster):
        pytest.skip("what is not stored is missing")
    if isinstance(model, SetClassifier | SetClassifierCV):
        # By default SetClassifierCV standardises dense features only.
        model = clone(model).set_params(tol=1e-7)
    if isinstance(model, SetClassifierCV):
        model.set_params(scalings=[None])
    if isinstance(model, SetEnsemble):
        members = [clone(member).set_params(tol=1e-7) for member in model.members]
        model = clone(model).set_params(members=members)
    values = np.where(X > 0, X, 0.0)
    expected = outputs(clone(model).fit(values, Y), values)
    for form in (scipy.sparse.csr_array, scipy.sparse.csr_matrix, scipy.sparse.csc_array):
        found = outputs(clone(model).fit(form(values), Y), form(values))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-3)


@pytest.mark.parametrize(
    "model",
    [
        *(MODELS[name] for name in MODELS if name.startswith("SetClassifier")),
        TargetDecoder(OneVsRestClassifier(LogisticRegression())),
        TargetDecoder(OneVsRestClassifier(LogisticRegression()), calibration="isotonic", cv=2),
        CatalogClassifier(LogisticRegression()),
    ],
    ids=str,
)
def test_single_precision_is_kept(model):
    single = X.astype(np.float32)
    kept = np.dtype(np.float32)
    if not isinstance(model, SetClassifier | SetClassifierCV):
        # (Of a classifier of others as far as it keeps it; that of scikit-learn 1.6 does not.)
        kept = LogisticRegression().fit(single, Y[:, 0]).predict_proba(single).dtype
    for values in (single, scipy.sparse.csr_array(single)):
        fitted = clone(model).fit(values, Y)
        assert {part.dtype for part in outputs(fitted, values)[1:]} == {kept}
        if isinstance(fitted, SetClassifier):
            assert fitted.coef_.dtype == fitted.intercept_.dtype == np.float32


@every_model
def test_names_of_features_are_kept_and_others_are_refused(model):
    frame = pd.DataFrame(X, columns=FEATURES)
    fitted = clone(model).fit(frame, Y)
    assert fitted.feature_names_in_.tolist() == FEATURES
    assert fitted.n_features_in_ == 4
    assert not hasattr(plain(model), "feature_names_in_")
    for own, expected in zip(outputs(fitted, frame), outputs(plain(model)), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-9)
    for other in (frame.rename(columns={"d": "e"}), frame[["d", "c", "b", "a"]]):
        with pytest.raises(ValueError, match="feature names should match"):
            fitted.predict(other)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fitted.predict(X)


# -------------------------------------------------------------------------------------- outputs


@every_model
def test_predictions_are_dense_whole_numbers_or_a_sparse_array_of_them(model):
    dense = plain(model).predict(X)
    assert type(dense) is np.ndarray
    assert dense.dtype == np.int64
    assert set(np.unique(dense)) <= {0, 1}
    fitted = clone(model).set_params(sparse_output=True).fit(X, Y)
    sparse = fitted.predict(X)
    assert isinstance(sparse, scipy.sparse.csr_array)
    assert sparse.dtype == np.int64
    assert (sparse.data == 1).all()
    np.testing.assert_array_equal(sparse.toarray(), dense)
    assert fitted.score(X, Y) == 1.0 - get_target("f1").loss(dense, Y).mean()
    classes = clone(model).set_params(sparse_output=True).fit(X, Y[:, 0])
    assert classes.predict(X).shape == (len(X),)


@every_model
def test_score_takes_y_in_every_form_that_fit_takes(model):
    fitted = plain(model)
    losses = get_target("f1").loss(fitted.predict(X), Y)
    expected = pytest.approx(1.0 - losses.mean())
    weight = np.random.default_rng(0).random(len(X))
    for form in (Y, Y.astype(bool), scipy.sparse.csc_array(Y), pd.DataFrame(Y)):
        assert fitted.score(X, form) == expected
        weighted = 1.0 - np.average(losses, weights=weight)
        assert fitted.score(X, form, sample_weight=weight) == pytest.approx(weighted)
    fitted = clone(model).fit(X, listed())
    losses = get_target("f1").loss(fitted.predict(X), Y[:, np.argsort(NAMES)])
    assert fitted.score(X, listed()) == pytest.approx(1.0 - losses.mean())
    fitted = clone(model).fit(X, pd.DataFrame(Y, columns=NAMES))
    assert fitted.score(X, pd.DataFrame(Y, columns=NAMES)) == expected
    with pytest.raises(ValueError, match="order of the labels"):
        fitted.score(X, pd.DataFrame(Y, columns=NAMES)[["cat", "dog", "owl"]])
    classes = clone(model).fit(X, Y[:, 0])
    assert classes.score(X, Y[:, 0]) == accuracy_score(Y[:, 0], classes.predict(X))


# --------------------------------------------------------------------- citizens of scikit-learn


def searched(model):
    """A search over one parameter of a pipeline that ends in the model."""
    name = SEARCHED[type(model)]
    value = model.get_params()[name]
    grid = {f"{type(model).__name__.lower()}__{name}": [value, 2 * value]}
    return make_pipeline(StandardScaler(), model), grid


@every_model
def test_a_search_in_a_pipeline_judges_by_a_score_of_label_sets(model):
    pipeline, grid = searched(model)
    folds = StratifiedLabelSets(2)
    search = GridSearchCV(pipeline, grid, scoring="f1_samples", cv=folds, refit=False).fit(X, Y)
    parts = zip(*(search.cv_results_[f"split{i}_test_score"] for i in range(2)), strict=True)
    splits = list(folds.split(X, Y))
    for params, scores in zip(search.cv_results_["params"], parts, strict=True):
        for (train, test), score in zip(splits, scores, strict=True):
            fitted = clone(pipeline).set_params(**params).fit(X[train], Y[train])
            predicted = fitted.predict(X[test])
            assert score == f1_score(Y[test], predicted, average="samples")
            assert score == pytest.approx(1 - get_target("f1").loss(predicted, Y[test]).mean())


@every_model
def test_scores_of_every_kind_can_be_taken(model):
    names = ["roc_auc", "average_precision", "jaccard_samples", "accuracy"]
    scores = cross_validate(clone(model), X, Y, cv=KFold(2), scoring=names)
    assert all((scores[f"test_{name}"] > 0.1).all() for name in names)
    # Sparse label sets, as far as the scores of scikit-learn take them.
    search = GridSearchCV(clone(model), {}, cv=KFold(2), scoring=names[2:], refit=False)
    results = search.fit(X, scipy.sparse.csr_array(Y)).cv_results_
    for name in names[2:]:
        assert results[f"mean_test_{name}"][0] == pytest.approx(scores[f"test_{name}"].mean())


@every_model
def test_a_scorer_of_the_target_can_be_made(model):
    """With empty sets, of which scikit-learn's F1 says 0 unless told."""
    labels = np.where(X[:, :1] > 0.7, 0, Y)
    options = {"average": "samples", "zero_division": 1.0}
    fitted = clone(model).fit(X, labels)
    value = make_scorer(f1_score, **options)(fitted, X, labels)
    assert value == pytest.approx(1.0 - get_target("f1").loss(fitted.predict(X), labels).mean())


@every_model
def test_predictions_across_folds_are_those_of_each_fold(model):
    folds = KFold(2)
    for labels, method in zip((Y, Y[:, 0], Y.sum(axis=1)), cycle(methods(model))):
        found = cross_val_predict(clone(model), X, labels, cv=folds, method=method)
        for train, test in folds.split(X):
            fitted = clone(model).fit(X[train], labels[train])
            np.testing.assert_array_equal(found[test], getattr(fitted, method)(X[test]))


@every_model
def test_frames_pass_through_a_pipeline(model):
    frame = pd.DataFrame(X, columns=FEATURES)
    scaler = StandardScaler().set_output(transform="pandas")
    fitted = make_pipeline(scaler, clone(model)).fit(frame, pd.DataFrame(Y, columns=NAMES))
    assert fitted.feature_names_in_.tolist() == fitted[-1].feature_names_in_.tolist() == FEATURES
    assert fitted.classes_.tolist() == NAMES.tolist()
    plain = make_pipeline(StandardScaler(), clone(model)).fit(X, Y)
    np.testing.assert_allclose(fitted.predict_proba(frame), plain.predict_proba(X))


@every_model
def test_parameters_are_kept_and_reach_inside(model):
    assert is_classifier(model)
    params = model.get_params()
    copy = clone(model)
    assert copy is not model
    assert copy.get_params().keys() == params.keys()
    name = SEARCHED[type(model)]
    copy.set_params(**{name: 7, "target": "jaccard"})
    assert copy.get_params()[name] == 7
    assert copy.get_params()["target"] == "jaccard"
    assert model.get_params()[name] == params[name]
    before = {key: str(value) for key, value in model.get_params().items()}
    fitted = plain(model).get_params()
    assert {key: str(value) for key, value in fitted.items()} == before
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
        copy.set_params(nonsense=1)


@every_model
def test_a_copy_by_pickle_is_the_same_model(model):
    assert_same_model(pickle.loads(pickle.dumps(plain(model))), plain(model))


@every_model
def test_fitting_again_forgets_what_was_fitted(model):
    fitted = clone(model).fit(X[:, :2], Y[:, 0]).fit(X, Y)
    assert_same_model(fitted, plain(model))
    assert fitted.n_features_in_ == 4


@every_model
def test_nothing_of_the_caller_is_changed(model):
    weight = np.ones(len(X))
    given = X.copy(), Y.copy(), weight.copy()
    for array in given:
        array.setflags(write=False)
    fitted = clone(model).fit(*given)
    outputs(fitted, given[0])
    for array, kept in zip(given, (X, Y, weight), strict=True):
        np.testing.assert_array_equal(array, kept)


def test_weights_that_cannot_be_written_are_held_as_those_that_can():
    """Kernels are compiled for both, if both reach them."""
    weight = WEIGHT.copy()
    weight.setflags(write=False)
    kept = rows_of(X, Y, weight).weights
    assert kept.flags.writeable
    np.testing.assert_array_equal(kept, WEIGHT)


# ------------------------------------------------------------------------------- sample weights


def requesting(model):
    """The model, with weights requested where they are used."""
    copy = clone(model)
    inner = copy.estimator if hasattr(copy, "estimator") else copy
    inner.set_fit_request(sample_weight=True)
    return copy


@every_model
def test_weights_are_routed_through_pipelines_and_searches(model):
    expected = with_weights(model)
    assert (expected.predict_proba(X) != plain(model).predict_proba(X)).any()
    with config_context(enable_metadata_routing=True):
        fitted = make_pipeline(requesting(model)).fit(X, Y, sample_weight=WEIGHT)
        assert_same_model(fitted, expected)
        name = SEARCHED[type(model)]
        grid = {name: [model.get_params()[name]]}
        scorer = make_scorer(f1_score, average="samples").set_score_request(sample_weight=True)
        folds = StratifiedLabelSets(2)
        search = GridSearchCV(requesting(model), grid, scoring=scorer, cv=folds)
        assert_same_model(search.fit(X, Y, sample_weight=WEIGHT), expected)
        train, test = next(folds.split(X, Y))
    part = clone(model).fit(X[train], Y[train], sample_weight=WEIGHT[train])
    score = f1_score(Y[test], part.predict(X[test]), average="samples", sample_weight=WEIGHT[test])
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(score)


@every_model
def test_weights_that_nobody_requested_are_refused_when_routed(model):
    with (
        config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match=r"sample_weight.*not explicitly set as requested"),
    ):
        make_pipeline(clone(model)).fit(X, Y, sample_weight=WEIGHT)


@every_model
def test_weights_may_be_a_list_a_series_or_one_number(model):
    for form in (WEIGHT.tolist(), pd.Series(WEIGHT, index=np.arange(len(X))[::-1])):
        assert_same_model(clone(model).fit(X, Y, sample_weight=form), with_weights(model))
    assert_same_model(clone(model).fit(X, Y, sample_weight=1.0), plain(model))


@every_model
@in_turn(
    ("weight", "message"),
    [
        (np.r_[-1.0, np.ones(59)], "Negative values .* `sample_weight`"),
        (-np.ones(60), "Negative values .* `sample_weight`"),
        (np.zeros(60), "weight.* (non-zero|zero)"),
        (np.ones(59), r"sample_weight.shape == \(59,\), expected \(60,\)"),
        (np.ones((60, 2)), "1D array"),
        (np.full(60, np.nan), "sample_weight contains NaN"),
        (np.full(60, np.inf), "sample_weight contains infinity"),
    ],
    ids=["one negative", "all negative", "all zero", "too few", "a matrix", "NaN", "infinite"],
)
def test_bad_weights_are_refused(model, weight, message):
    for labels in (Y, Y[:, 0]):
        with pytest.raises(ValueError, match=message):
            clone(model).fit(X, labels, sample_weight=weight)


@pytest.mark.parametrize("space", ["catalog", "sized", "cube"])
def test_a_row_that_weighs_nothing_is_a_row_left_out(space):
    weight = np.repeat([1.0, 0.0], 30)
    model = SetClassifier(space=space, alpha=0.1, tol=1e-6)
    weighted = clone(model).fit(X, Y, sample_weight=weight)
    expected = clone(model).fit(X[:30], Y[:30])
    np.testing.assert_allclose(weighted.predict_proba(X), expected.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("scaling", [None, "standard", "rows"])
@pytest.mark.parametrize("surrogate", ["likelihood", "binary_relevance"])
def test_a_weight_is_a_number_of_rows_also_for_units_of_features(scaling, surrogate):
    model = SetClassifier("f1", surrogate, "cube", alpha=0.1, tol=1e-7, scaling=scaling)
    weighted = clone(model).fit(X, Y, sample_weight=WEIGHT)
    times = WEIGHT.astype(int)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_classes_are_the_same_however_they_were_found(n_classes):
    """All classes' scores may be raised together; which of these scores is given must not vary."""
    y = Y[:, : n_classes - 1].sum(axis=1)
    times = WEIGHT.astype(int)
    model = SetClassifier(alpha=0.1, tol=1e-7)
    weighted = clone(model).fit(X, y, sample_weight=WEIGHT)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, atol=1e-4)
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-4
    )


# ------------------------------------------------------------------------------------ bad input


def changed(array, value, place=(3, 1)):
    copy = array.astype(np.float64)
    copy[place] = value
    return copy


REFUSED = {
    "NaN in X": ((changed(X, np.nan), Y), "Input X contains NaN"),
    "infinity in X": ((changed(X, np.inf), Y), "Input X contains infinity"),
    "text in X": ((np.full((60, 4), "a"), Y), "convert string to float"),
    "complex X": ((X + 1j, Y), "Complex data not supported"),
    "one dimension in X": ((X[:, 0], Y), "Expected 2D array, got 1D array"),
    "three dimensions in X": ((X[:, :, None], Y), "array with dim 3"),
    "no features": ((X[:, :0], Y), r"0 feature\(s\) \(shape=\(60, 0\)\)"),
    "no rows": ((X[:0], Y[:0]), r"0 sample\(s\)|at least one row"),
    "another number in Y": ((X, changed(Y, 2)), r"y must hold only 0 and 1, but y\[3, 1\] is 2"),
    "a negative number in Y": ((X, Y - (Y == 0)), r"must hold only 0 and 1, but y\[\d, \d\] is -1"),
    "a fraction in Y": ((X, changed(Y, 0.5)), r"only 0 and 1, but y\[3, 1\] is 0.5"),
    "NaN in Y": ((X, changed(Y, np.nan)), r"y\[3, 1\] is nan"),
    "three dimensions in Y": ((X, Y[:, :, None]), r"y .* its shape is \(60, 3, 1\)"),
    "text in Y": ((X, np.full((60, 2), "a")), "y must be an array of 0/1"),
    "a fraction of a class": ((X, X[:, 0]), "Unknown label type: continuous"),
    "no class": ((X, changed(Y[:, 0], np.nan, 5)), r"y\[5\] is nan \(NaN"),
    "no labels in any list": ((X, [[] for _ in X]), "label list of every row is empty"),
    "labels of two kinds": ((X, [["a"]] * 59 + [[1]]), "all text or all numbers"),
    "numbers as label lists": ((X, [[1, 2]] * 60), r"y\[0, 1\] is 2 .*make each row a Python set"),
    "fewer rows in Y": ((X, Y[:-1]), "60.*59"),
    "more rows in Y": ((X[:-1], Y), "59.*60"),
    "fewer classes than rows": ((X, Y[:-1, 0]), "60.*59"),
    "fewer lists than rows": ((X, listed()[:-1]), "60.*59"),
    "fewer sparse rows": ((X, scipy.sparse.csr_array(Y[:-1])), "60.*59"),
    "no Y": ((X, None), "requires y to be passed, but the target y is None"),
}


@every_model
@in_turn(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_learnt_from_is_refused_with_its_place(model, given, message):
    if isinstance(model, SetBooster) and message == "Input X contains NaN":
        return  # it is a missing value
    if isinstance(model, TargetDecoder) and message == "Input X contains NaN":
        model = clone(model).set_params(estimator=OneVsRestClassifier(LogisticRegression()))
    with pytest.raises(ValueError, match="(?s)" + message):
        clone(model).fit(*given)


@every_model
@in_turn("method", ["predict", "predict_proba", "decision_function"])
def test_what_cannot_be_predicted_from_is_refused(model, method):
    if method not in methods(model):
        return
    with pytest.raises(NotFittedError, match=f"{type(model).__name__} instance is not fitted"):
        getattr(clone(model), method)(X)
    for values, message in (
        (X[:, :3], "X has 3 features, but .* is expecting 4"),
        (X[:0], r"0 sample\(s\) \(shape=\(0, 4\)\)"),
        (X[0], "Expected 2D array"),
        (changed(X, np.inf), "infinity"),
    ):
        with pytest.raises(ValueError, match=message):
            getattr(plain(model), method)(values)


@every_model
def test_an_unfitted_score_is_refused(model):
    for labels in (Y, Y[:, 0]):
        with pytest.raises(NotFittedError):
            clone(model).score(X, labels)


@every_model
@in_turn("value", [0, 1])
def test_a_label_that_never_varies_is_predicted_as_it_is(model, value):
    constant = Y.copy()
    constant[:, 1] = value
    fitted = clone(model).fit(X, constant)
    np.testing.assert_array_equal(fitted.predict(X)[:, 1], value)
    np.testing.assert_allclose(fitted.predict_proba(X)[:, 1], value, atol=0.05)
    assert all(np.isfinite(part).all() for part in outputs(fitted))
    rest = fitted.predict(X)[:, [0, 2]]
    assert (rest == Y[:, [0, 2]]).mean() > 0.7


@every_model
@in_turn("value", [0, 1])
def test_a_single_label_set_is_always_predicted(model, value):
    labels = np.full_like(Y, value)
    fitted = clone(model).fit(X, labels)
    np.testing.assert_array_equal(fitted.predict(X), labels)
    np.testing.assert_allclose(fitted.predict_proba(X), value, atol=0.05)


@every_model
def test_a_single_class_is_always_predicted(model):
    fitted = clone(model).fit(X, ["owl"] * len(X))
    assert set(fitted.predict(X)) == {"owl"}
    np.testing.assert_allclose(fitted.predict_proba(X), np.ones((len(X), 1)))


@every_model
def test_a_single_row_is_learnt_or_refused_for_want_of_folds(model):
    for labels in (Y[:1], [3]):
        if isinstance(model, SetClassifierCV | SetEnsemble):
            with pytest.raises(ValueError, match="cross-validation needs at least 2 rows"):
                clone(model).fit(X[:1], labels)
        else:
            predicted = clone(model).fit(X[:1], labels).predict(X[:2])
            np.testing.assert_array_equal(predicted, np.repeat(labels, 2, axis=0))


@every_model
@in_turn("value", [0.0, 1.0, -1e6])
def test_inputs_that_never_vary_leave_the_frequencies(model, value):
    constant = np.full_like(X, value)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="sklearn")
        fitted = clone(model).fit(constant, Y)
        probability = fitted.predict_proba(constant)
    np.testing.assert_allclose(probability, np.tile(Y.mean(axis=0), (len(X), 1)), atol=0.05)
    assert len(np.unique(fitted.predict(constant), axis=0)) == 1


def test_folds_may_be_listed_as_scikit_learn_lists_them():
    """The reason for which its check of weights fails, whatever the tolerance."""
    splits = list(KFold(2).split(X))
    model = SetClassifierCV(alphas=[0.1, 0.01], cv=splits).fit(X, Y)
    expected = SetClassifierCV(alphas=[0.1, 0.01], cv=KFold(2)).fit(X, Y)
    assert model.best_loss_ == expected.best_loss_
    assert_same_model(model, expected)


# ---------------------------------------------------------------------------------------- files


@every_model
@in_turn("labels", [Y, listed(), Y[:, 0], NAMES[Y[:, :2].sum(axis=1)]])
def test_a_saved_model_comes_back(model, labels, tmp_path):
    frame = pd.DataFrame(X, columns=FEATURES)
    fitted = clone(model).fit(frame, labels)
    save(fitted, tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops")
    assert type(loaded) is type(fitted)
    assert_same_model(loaded, fitted, frame)
    assert loaded.feature_names_in_.tolist() == FEATURES
    assert loaded.classes_.tolist() == fitted.classes_.tolist()
    params = {key: str(value) for key, value in fitted.get_params().items()}
    assert {key: str(value) for key, value in loaded.get_params().items()} == params
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[["d", "c", "b", "a"]])


@every_model
def test_a_model_that_was_not_fitted_comes_back(model, tmp_path):
    save(model, tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops")
    with pytest.raises(NotFittedError):
        loaded.predict(X)
    assert_same_model(loaded.fit(X, Y), plain(model))


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibration_comes_back(method, tmp_path):
    model = TargetDecoder(OneVsRestClassifier(LogisticRegression()), calibration=method, cv=2)
    save(model.fit(X, Y), tmp_path / "model.skops")
    assert any(calibrator is not None for calibrator in model.calibrators_)
    assert_same_model(load(tmp_path / "model.skops"), model)


class Run:
    """Whoever makes it runs code; a file must not."""

    def __reduce__(self):
        return exec, ("raise AssertionError('ran')",)


@every_model
def test_what_a_file_brings_along_is_refused_and_does_not_run(model, tmp_path):
    fitted = clone(model).fit(X, Y)
    fitted.extra_ = {"deep": [print]}
    with pytest.raises(ValueError, match=r"cannot be saved.*builtins.print"):
        save(fitted, tmp_path / "model.skops")
    (tmp_path / "model.skops").write_bytes(skops.io.dumps(fitted))
    with pytest.raises(ValueError, match=r"nothing in it was run.*builtins.print"):
        load(tmp_path / "model.skops", trusted=["sklearn.tree._tree.Tree"])
    fitted.extra_ = Run()
    (tmp_path / "model.skops").write_bytes(pickle.dumps(fitted))
    with pytest.raises(ValueError, match="was not loaded"):
        load(tmp_path / "model.skops", trusted=["sklearn.tree._tree.Tree"])


@pytest.mark.parametrize(
    "model",
    [
        SetClassifier(),
        TargetDecoder(OneVsRestClassifier(LogisticRegression())),
        CatalogClassifier(LogisticRegression()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_refused_fit_leaves_the_model_as_it_was(model):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), rng.integers(0, 2, size=(40, 4))
    fitted = clone(model).fit(X, Y)
    before = fitted.predict(X)
    wrong = "decoder" if "decoder" in fitted.get_params(deep=False) else "target"
    kept = fitted.get_params()[wrong]
    fitted.set_params(**{wrong: "no such thing"})
    with pytest.raises(ValueError, match="no such thing"):
        fitted.fit(X, [[f"label {i % 5}"] for i in range(40)])
    fitted.set_params(**{wrong: kept})
    np.testing.assert_array_equal(fitted.predict(X), before)
    np.testing.assert_array_equal(fitted.classes_, np.arange(4))
