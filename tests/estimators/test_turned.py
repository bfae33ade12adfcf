"""Lighter inputs lead to the same solutions."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from setwise.estimators import SetClassifier, SetClassifierCV, moments, solver, turned
from setwise.estimators.design import Design, Rows
from setwise.estimators.turned import Turned
from tests.estimators.test_set_classifier_cv import drawn


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("shape", [(20, 50), (60, 5), (24, 24)])
def test_a_part_of_turned_rows_has_the_solution_of_the_plain_ones(shape, form, fit_intercept):
    """Trained on some rows along the principal directions of all: the same weights and scores."""
    X, _ = drawn(0, *shape)
    X = form(X + 1.0)
    Y = np.random.default_rng(1).permuted(np.arange(shape[0])[:, None] % [2, 3, 4] == 0, axis=0)
    part = np.arange(0, shape[0], 2)
    plain = SetClassifier("f1", space="cube", alpha=0.1, tol=1e-8, fit_intercept=fit_intercept)
    plain.fit(X[part], Y[part])
    design = Design.of(Rows(X, Y, np.ones(len(Y))), None, fit_intercept)
    turned = Turned.of(design)
    assert turned is not None
    assert turned.inputs.shape[1] <= min(shape)
    other = SetClassifier(**plain.get_params()).fit(turned.inputs[part], Y[part])
    weights, intercept = turned.point(other.coef_.T, other.intercept_)
    np.testing.assert_allclose(weights.T, plain.coef_, atol=1e-6)
    np.testing.assert_allclose(intercept, plain.intercept_, atol=1e-6)
    np.testing.assert_allclose(
        turned.inputs @ other.coef_.T + other.intercept_, plain._scores(X), atol=1e-6
    )


@pytest.mark.parametrize("directions", [moments.along_principal, moments.orthonormal])
@pytest.mark.parametrize(("n_rows", "n_features"), [(6, 40), (30, 5), (1, 3)])
def test_rows_along_directions_of_their_span_are_the_same_rows(directions, n_rows, n_features):
    """Of as many directions as the rank, all of length 1 and at right angles."""
    rows = np.random.default_rng(0).normal(size=(n_rows, n_features))
    rows = np.concatenate([rows, rows[:1], 2.0 * rows[:1]])
    turned, basis = directions(rows @ rows.T)
    assert turned.shape[1] == min(n_rows, n_features)
    V = rows.T @ basis
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-9)
    np.testing.assert_allclose(rows @ V, turned, atol=1e-9)
    np.testing.assert_allclose(turned @ V.T, rows, atol=1e-9)


def test_inputs_that_cost_too_much_are_not_turned(monkeypatch):
    """And the search finds the same losses without."""
    X, Y = drawn(1, 40, 60)
    settings = {"alphas": [1.0, 0.1], "spaces": ["cube"], "cv": 2, "tol": 1e-8}
    turned = SetClassifierCV("f1", **settings).fit(X, Y)
    monkeypatch.setattr("setwise.estimators.turned.MOST_TURNED", 10)
    plain = SetClassifierCV("f1", **settings).fit(X, Y)
    assert [row["loss"] for row in turned.cv_results_] == [row["loss"] for row in plain.cv_results_]
    np.testing.assert_allclose(turned.best_estimator_.coef_, plain.best_estimator_.coef_, atol=1e-6)


@pytest.fixture
def light(monkeypatch):
    """Every fit to sparse inputs is walked lightly first; designs of such walks are told."""
    told, of = [], turned.lighter
    monkeypatch.setattr(turned, "LEAST_PRODUCTS", 0)
    monkeypatch.setattr(solver, "lighter", lambda *given: told.append(of(*given)) or told[-1])
    return told


SETTINGS = [
    {},
    {"space": "sized"},
    {"space": "backoff"},
    {"surrogate": "logistic", "space": "cube"},
    {"surrogate": "generalized_cross_entropy", "space": "cube", "max_iter": 1000},
    {"fit_intercept": False},
    {"scaling": "standard"},
    {"scaling": "rows"},
    {"label_features": np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]])},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: ", ".join(map(str, s)))
@pytest.mark.parametrize("tol", [1e-4, 1e-7])
def test_a_model_walked_lightly_ends_where_a_plain_one_does(tol, settings, light, monkeypatch):
    X, Y = drawn(3, 200, 12)
    X = sparse.csr_array(X + 0.5)
    model = SetClassifier(**{"target": "f1", "alpha": 0.01, "tol": tol, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        walked = clone(model).fit(X, Y)
        assert light[0].inputs.dtype == light[0].spectrum[1].dtype == np.float32
        monkeypatch.setattr(turned, "LEAST_PRODUCTS", np.inf)
        plain = clone(model).fit(X, Y)
    assert light[-1] is None
    away = np.abs(walked.decision_function(X) - plain.decision_function(X)).max()
    assert away < 2e3 * tol
    # What a gradient of entries up to tol leaves, by the curvature that the penalty adds.
    left = walked.coef_.size * tol**2 / (2 * 0.01)
    assert walked.objective_ == pytest.approx(plain.objective_, abs=left + 1e-13)


def test_weights_of_any_size_are_walked_lightly(light):
    X, Y = drawn(4, 40, 90)
    model = SetClassifier("f1", alpha=0.1, tol=1e-6)
    plain = model.fit(X, Y).predict_proba(X)
    for weight in (1e-200, 1e-60, 1e60, 1e200):
        weights = np.full(len(X), weight)
        found = clone(model).fit(sparse.csr_array(X), Y, sample_weight=weights)
        np.testing.assert_allclose(found.predict_proba(X), plain, atol=1e-5)
    assert all(light[1:])


def test_inputs_that_single_precision_does_not_serve_are_learnt_from_as_they_are(light):
    """Dense, far from 0, or beyond it."""
    X, Y = drawn(4)
    SetClassifier("f1").fit(X, Y)
    SetClassifier("f1").fit(sparse.csr_array(X + 100.0), Y)
    SetClassifier("f1", alpha=1e59, tol=1e24).fit(sparse.csr_array(X * 1e30), Y)
    assert light == [None] * 3


def test_what_a_light_walk_made_worse_is_not_taken(light, monkeypatch):
    """It is as if there had been none."""
    X, Y = drawn(5)
    X, model = sparse.csr_array(X), SetClassifier("f1", "generalized_cross_entropy", space="cube")
    walk = solver.Fitting._walk

    def astray(self, problems, *given):
        found = walk(self, problems, *given)
        is_light = problems[0].design.precision == np.float32
        return replace(found, weights=found.weights + 100.0) if is_light else found

    monkeypatch.setattr(solver.Fitting, "_walk", astray)
    found = clone(model).fit(X, Y)
    assert light[0] is not None
    monkeypatch.setattr(turned, "LEAST_PRODUCTS", np.inf)
    np.testing.assert_array_equal(found.coef_, clone(model).fit(X, Y).coef_)


def test_steps_on_the_way_count(light):
    """A limit is one of both parts of the way together."""
    X, Y = drawn(5, 100)
    X = sparse.csr_array(X)
    model = SetClassifier("f1", alpha=1e-3, tol=1e-6, max_iter=1000).fit(X, Y)
    assert model.n_iter_ > 20
    with pytest.warns(ConvergenceWarning, match="stopped after 7 iterations"):
        assert clone(model).set_params(max_iter=7).fit(X, Y).n_iter_ == 7
    assert light[-1] is not None


@pytest.mark.parametrize("weight", [1e-60, 1e40, 1e200])
def test_a_search_does_not_depend_on_the_unit_of_weights(weight):
    X, Y = drawn(6)
    one = SetClassifierCV("f1", cv=3).fit(X, Y)
    other = SetClassifierCV("f1", cv=3).fit(X, Y, sample_weight=np.full(len(X), weight))
    assert one.best_params_ == pytest.approx(other.best_params_)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-5)
