"""Blocked Newton: the same minimum as scikit-learn and as the general solver, for all labels."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from setwise.estimators import newton, newton_passes
from setwise.estimators.design import Design, Solution
from setwise.estimators.newton import INTERCEPT_LIMIT, solve_binary_relevance
from setwise.estimators.newton_passes import (
    Passes,
    directions,
    in_lanes,
)
from setwise.estimators.solver import Problem, solve
from setwise.estimators.strips import LANES, from_lanes
from setwise.estimators.training import Objective
from setwise.lanes import empty_lanes
from setwise.spaces import Cube
from setwise.surrogates.binary_relevance import BinaryRelevance
from tests.support.turns import in_turn

ALPHA = 0.02


def draw(seed=0, n=150, d=9, n_labels=7, dtype=np.float64):
    """Inputs with zeros and features of unlike scale, labels from rare to frequent."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d)) * (random.random((n, d)) < 0.4) * np.geomspace(0.3, 5, d)
    scores = X @ random.standard_normal((d, n_labels)) + np.linspace(-3, 3, n_labels)
    Y = (random.random(scores.shape) < expit(scores)).astype(np.uint8)
    Y[0], Y[1] = 0, 1
    return X.astype(dtype), Y


def objectives(X, Y, weights, W, b, alpha):
    """The formula, label by label."""
    X = X.toarray() if hasattr(X, "toarray") else X
    losses = np.logaddexp(0.0, -(2.0 * Y - 1.0) * (X.astype(np.float64) @ W + b))
    return weights @ losses / weights.sum() + alpha / 2.0 * (W**2).sum(axis=0)


def reference(X, Y, weights, alpha, fit_intercept=True):
    """Coefficients by scikit-learn in float64, one label after the other."""
    W, b = np.empty((X.shape[1], Y.shape[1])), np.zeros(Y.shape[1])
    for j in range(Y.shape[1]):
        model = LogisticRegression(
            C=1.0 / (alpha * weights.sum()),
            tol=1e-10,
            max_iter=10_000,
            solver="newton-cholesky",
            fit_intercept=fit_intercept,
        )
        y = Y[:, j].astype(np.int64)
        model.fit(np.asarray(X, np.float64), y, sample_weight=weights)
        W[:, j], b[j] = model.coef_[0], model.intercept_[0] if fit_intercept else 0.0
    return W, b


@in_turn("form", [np.asarray, csr_matrix])
@in_turn("dtype", [np.float64, np.float32])
@in_turn("weighted", [False, True])
@in_turn("fit_intercept", [False, True])
def test_coefficients_are_those_of_scikit_learn(form, dtype, weighted, fit_intercept):
    X, Y = draw(dtype=dtype)
    weights = np.random.default_rng(1).integers(0, 4, len(X)) * 1.0 if weighted else np.ones(len(X))
    weights[:2] = 1.0
    found = solve_binary_relevance(form(X), Y, weights, ALPHA, fit_intercept, 1e-9, 100)
    W, b = reference(X, Y, weights, ALPHA, fit_intercept)
    # Gradients are float64 for float32 inputs too, so their solution is as exact.
    np.testing.assert_allclose(found.weights, W, atol=1e-6)
    np.testing.assert_allclose(found.intercept, b, atol=1e-6)
    assert found.gradient_norm <= 1e-9
    value = objectives(X, Y, weights, found.weights, found.intercept, ALPHA).sum()
    assert found.value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_value_and_gradient_norm_are_those_of_the_general_solver(form, dtype):
    X, Y = draw(3, dtype=dtype)
    X, weights = form(X), np.random.default_rng(2).random(len(X))
    objective = Objective(lambda _: BinaryRelevance(), Cube(Y.shape[1]), Y, weights)
    design = Design(X, np.ones(X.shape[1]), True, np.ones(X.shape[0]))
    problem = Problem(design, objective, ALPHA)
    other = solve(problem, problem.start(), 1e-6, 5000, warn=False)
    found = solve_binary_relevance(X, Y, weights, ALPHA, True, 1e-6, 100)
    assert found.value == pytest.approx(other.value, rel=1e-6)
    assert found.value <= other.value * (1 + 1e-6)
    value, by_weight, by_intercept, _ = problem.value_and_gradient(
        found.weights, found.intercept, np.empty(0)
    )
    assert value == pytest.approx(found.value, rel=1e-12)
    norm = max(np.abs(by_weight).max(), np.abs(by_intercept).max())
    assert norm == pytest.approx(found.gradient_norm, abs=1e-14)


@in_turn("form", [np.asarray, csr_matrix])
@in_turn("steps", [1, 3, 50])
@in_turn("alpha", [1e-6, 1e-2])
@in_turn("dtype", [np.float64, np.float32])
def test_no_label_ends_higher_than_it_began(form, steps, alpha, dtype):
    X, Y = draw(4, dtype=dtype)
    random, weights = np.random.default_rng(5), np.ones(len(X))
    # Far out, where the logistic loss is flat and full Newton steps overshoot.
    W, b = random.standard_normal((X.shape[1], Y.shape[1])) * 20, random.standard_normal(7) * 20
    start = Solution(W.copy(), b.copy(), np.empty(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = solve_binary_relevance(form(X), Y, weights, alpha, True, 1e-8, steps, start)
    before = objectives(X, Y, weights, W, b, alpha)
    after = objectives(X, Y, weights, found.weights, found.intercept, alpha)
    assert (after < before).all()
    np.testing.assert_array_equal(start.weights, W)
    if steps == 50:
        cold = solve_binary_relevance(form(X), Y, weights, alpha, True, 1e-8, 100)
        assert found.value == pytest.approx(cold.value, rel=1e-6)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_features_of_very_unlike_scale_do_not_matter(form, dtype):
    X, Y = draw(14)
    X = (X * np.geomspace(1e-3, 1e3, X.shape[1])).astype(dtype)
    found = solve_binary_relevance(form(X), Y, np.ones(len(X)), 1e-4, True, 1e-8, 200)
    W, b = reference(X, Y, np.ones(len(X)), 1e-4)
    best = objectives(X, Y, np.ones(len(X)), W, b, 1e-4)
    after = objectives(X, Y, np.ones(len(X)), found.weights, found.intercept, 1e-4)
    np.testing.assert_allclose(after, best, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_progress_is_told_before_each_step_of_each_block(dtype):
    X, Y = draw(15, n_labels=5, dtype=dtype)
    told = []
    found = solve_binary_relevance(
        X, Y, np.ones(len(X)), ALPHA, True, 1e-6, 100, block=3, progress=lambda *a: told.append(a)
    )
    steps, left, gradients = zip(*told, strict=True)
    begins = [k for k, step in enumerate(steps) if step == 1]
    assert len(begins) == 2
    assert left[begins[0]] == 3
    assert left[begins[1]] == 2
    for first, last in ((begins[0], begins[1]), (begins[1], len(steps))):
        assert list(steps[first:last]) == list(range(1, last - first + 1))
    assert max(steps) == found.n_iter
    share = Y.mean(axis=0)
    largest = np.abs(X.astype(np.float64).T @ (share - Y) / len(X)).max(axis=0)
    assert gradients[0] == pytest.approx(largest[:3].max(), rel=1e-9)
    assert min(gradients) > 1e-6


def test_start_at_the_minimum_is_returned():
    X, Y = draw(6)
    found = solve_binary_relevance(X, Y, np.ones(len(X)), ALPHA, True, 1e-8, 100)
    again = solve_binary_relevance(X, Y, np.ones(len(X)), ALPHA, True, 1e-8, 100, found)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.weights, found.weights)


def test_tolerance_out_of_reach_ends_and_warns():
    X, Y = draw(6)
    with pytest.warns(ConvergenceWarning, match=r"gradient of .* above tol = 1e-30"):
        found = solve_binary_relevance(X, Y, np.ones(len(X)), ALPHA, True, 1e-30, 100)
    assert found.gradient_norm < 1e-12


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_labels_of_one_kind_stop_at_the_limit(form):
    X, Y = draw(7)
    weights = np.ones(len(X))
    Y[:, 1], Y[:, 4] = 0, 1
    # Of one kind among the rows that count.
    Y[:, 5] = 0
    Y[3, 5], weights[3] = 1, 0.0
    found = solve_binary_relevance(form(X), Y, weights, ALPHA, True, 1e-8, 100)
    np.testing.assert_array_equal(
        found.intercept[[1, 4, 5]], np.array([-1, 1, -1]) * INTERCEPT_LIMIT
    )
    assert not found.weights[:, [1, 4, 5]].any()
    chance = expit(X @ found.weights + found.intercept)
    assert (chance[:, [1, 5]] < 1e-12).all()
    assert (chance[:, 4] > 1 - 1e-12).all()
    others = [0, 2, 3, 6]
    alone = solve_binary_relevance(form(X), Y[:, others], weights, ALPHA, True, 1e-8, 100)
    np.testing.assert_allclose(found.weights[:, others], alone.weights, atol=1e-7)
    value = objectives(X, Y, weights, found.weights, found.intercept, ALPHA).sum()
    assert found.value == pytest.approx(value, rel=1e-12)


def test_a_multiple_of_256_examples_is_not_none():
    """Counted in uint8, 256 positives would be none, and the label one of one kind."""
    X, Y = draw(13, n=600, n_labels=2)
    Y[:, 0] = np.arange(600) < 256
    Y[:, 1] = np.arange(600) >= 256
    found = solve_binary_relevance(X, Y, np.ones(600), ALPHA, True, 1e-9, 100)
    W, b = reference(X, Y, np.ones(600), ALPHA)
    np.testing.assert_allclose(found.weights, W, atol=1e-6)
    np.testing.assert_allclose(found.intercept, b, atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_labels_of_one_kind_without_intercept_have_a_finite_minimum(form):
    X, Y = draw(8)
    Y[:, 1], Y[:, 4] = 0, 1
    found = solve_binary_relevance(form(X), Y, np.ones(len(X)), ALPHA, False, 1e-9, 100)
    assert found.gradient_norm <= 1e-9
    assert not found.intercept.any()
    # Against the mirrored problem: swapping the labels mirrors the weights.
    mirrored = solve_binary_relevance(form(X), 1 - Y, np.ones(len(X)), ALPHA, False, 1e-9, 100)
    np.testing.assert_allclose(found.weights, -mirrored.weights, atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_blocks_do_not_change_the_solution(form, dtype):
    X, Y = draw(9, n_labels=70, dtype=dtype)
    weights = np.random.default_rng(3).random(len(X))
    together = solve_binary_relevance(form(X), Y, weights, ALPHA, True, 1e-9, 100)
    for block in (1, 3):
        parted = solve_binary_relevance(form(X), Y, weights, ALPHA, True, 1e-9, 100, block=block)
        np.testing.assert_allclose(parted.weights, together.weights, atol=1e-7)
        np.testing.assert_allclose(parted.intercept, together.intercept, atol=1e-7)
        assert parted.value == pytest.approx(together.value, rel=1e-12)


def test_blocks_keep_to_the_budget(monkeypatch):
    X, Y = draw(10)
    sizes, solve_block = [], newton._Newton.solve

    def spy(self, point, *rest):
        sizes.append(point.shape[1])
        return solve_block(self, point, *rest)

    monkeypatch.setattr(newton._Newton, "solve", spy)
    monkeypatch.setattr(newton, "BLOCK_ENTRIES", 3 * len(X))
    solve_binary_relevance(X, Y, np.ones(len(X)), ALPHA, True, 1e-6, 100)
    assert sizes == [3, 3, 1]


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_rows_shared_among_threads_give_the_same_sums(form, monkeypatch):
    X, Y = draw(11, n=700, n_labels=130)
    found = []
    for threads in ("1", "4"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        found.append(solve_binary_relevance(form(X), Y, np.ones(len(X)), ALPHA, True, 1e-9, 100))
    np.testing.assert_allclose(found[0].weights, found[1].weights, atol=1e-7)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_small_and_empty_shapes(form):
    X, Y = draw(12, n=3, d=2, n_labels=2)
    none = solve_binary_relevance(form(X), Y[:, :0], np.ones(3), ALPHA, True, 1e-6, 10)
    assert none.weights.shape == (2, 0)
    assert none.value == 0.0
    single = solve_binary_relevance(form(X[:1]), Y[:1], np.ones(1), ALPHA, True, 1e-6, 10)
    assert np.isfinite(single.weights).all()
    constant = solve_binary_relevance(form(X * 0.0), Y, np.ones(3), ALPHA, True, 1e-6, 10)
    np.testing.assert_allclose(expit(constant.intercept), Y.mean(axis=0), atol=1e-5)
    assert not constant.weights.any()


def make_rows(X, weights):
    return Passes(X, weights, float(weights.sum()))


@in_turn("form", [np.asarray, csr_matrix])
@in_turn("dtype", [np.float64, np.float32])
@in_turn("n_labels", [1, LANES, LANES + 3])
def test_a_pass_gives_the_formulas(form, dtype, n_labels):
    X, Y = draw(16, n=130, n_labels=n_labels, dtype=dtype)
    random = np.random.default_rng(6)
    weights = random.random(len(X)) * (random.random(len(X)) < 0.9)
    point, labels = random.standard_normal((X.shape[1] + 1, n_labels)), np.arange(n_labels)
    curvature = empty_lanes((-(-n_labels // LANES), len(X)), LANES, dtype)
    costs = random.uniform(0.2, 2.0, (2, n_labels))
    value, gradient, bend = make_rows(form(X), weights).evaluate(
        point, in_lanes(Y, labels), curvature, in_lanes(costs, labels)
    )
    scores, cost = X.astype(np.float64) @ point[:-1] + point[-1], np.where(Y == 1, *costs[::-1])
    share, slope = weights / weights.sum(), cost * (expit(scores) - Y)
    second = cost * expit(scores) * expit(-scores)
    # In float64, whatever the inputs are.
    near = {"rtol": 1e-12, "atol": 1e-14}
    losses = cost * np.logaddexp(0.0, -(2.0 * Y - 1.0) * scores)
    np.testing.assert_allclose(value, share @ losses, **near)
    np.testing.assert_allclose(gradient[:-1], X.T @ (slope * share[:, None]), **near)
    np.testing.assert_allclose(gradient[-1], share @ slope, **near)
    # Kept in the inputs' type.
    near = {"rtol": 1e-5, "atol": 1e-6} if dtype == np.float32 else near
    np.testing.assert_allclose(bend, share @ second, **near)
    np.testing.assert_allclose(from_lanes(curvature, n_labels), second * weights[:, None], **near)


def systems(X, n_labels, fit_intercept, seed=7):
    """Curvatures, unit gradients, and the Hessians they belong to."""
    random, n = np.random.default_rng(seed), X.shape[0]
    curvature = random.random((n, n_labels)) * np.geomspace(0.01, 1, n_labels)
    gradient = random.standard_normal((X.shape[1] + 1, n_labels))
    gradient[-1] *= fit_intercept
    gradient /= np.linalg.norm(gradient, axis=0)
    wide = np.hstack([X.astype(np.float64), np.ones((n, 1))])
    hessians = np.einsum("ki,kj,kl->lij", wide, wide, curvature) / n
    hessians += np.diag(np.append(np.full(X.shape[1], ALPHA), 0.0))
    return curvature, gradient, hessians


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n_labels", [1, 2 * LANES + 5])
def test_directions_solve_the_systems_whatever_the_scale(
    form, dtype, fit_intercept, n_labels, monkeypatch
):
    monkeypatch.setattr(newton_passes, "LAST", 0.0)
    X, _ = draw(17, dtype=dtype)
    curvature, gradient, hessians = systems(X, n_labels, fit_intercept)
    free = X.shape[1] + fit_intercept
    # Unlike goals, so that labels leave one after the other.
    enough = np.random.default_rng(8).permutation(np.geomspace(1e-5, 1e-2, n_labels))
    scale = np.random.default_rng(9).uniform(0.5, 2.0, gradient.shape)
    found = directions(
        make_rows(form(X), np.ones(len(X))), in_lanes(curvature.astype(dtype), np.arange(n_labels)),
        gradient, scale, enough, ALPHA, free,
    )  # fmt: skip
    for label, hessian in enumerate(hessians):
        exact = np.linalg.solve(hessian[:free, :free], gradient[:free, label])
        rest = (hessian @ found[:, label] - gradient[:, label])[:free]
        assert np.linalg.norm(rest) <= 1.01 * enough[label] + 1e-6 * (dtype == np.float32)
        error = np.linalg.norm(found[:free, label] - exact)
        assert error <= 1.01 * enough[label] / np.linalg.eigvalsh(hessian[:free, :free])[0] + 1e-4
    assert not found[free:].any()


def test_the_last_labels_end_as_they_are_but_downhill():
    X, _ = draw(18)
    curvature, gradient, hessians = systems(X, 2 * LANES, True)
    found = directions(
        make_rows(X, np.ones(len(X))), in_lanes(curvature, np.arange(2 * LANES)), gradient,
        np.ones_like(gradient), np.full(2 * LANES, 1e-6), ALPHA, X.shape[1] + 1,
    )  # fmt: skip
    rest = np.linalg.norm(np.einsum("lij,jl->il", hessians, found) - gradient, axis=0)
    assert (rest > 1e-6).sum() <= newton_passes.LAST * LANES
    assert (np.einsum("il,il->l", found, gradient) > 0.0).all()


@pytest.mark.parametrize("n_labels", [1, LANES, 3 * LANES + 5])
def test_labels_move_between_strips(n_labels):
    random = np.random.default_rng(n_labels)
    array = random.standard_normal((70, n_labels))
    lanes = in_lanes(array, np.arange(n_labels))
    assert lanes.shape == (-(-n_labels // LANES), 70, LANES)
    assert lanes.ctypes.data % 64 == 0
    np.testing.assert_array_equal(from_lanes(lanes, n_labels), array)
    kept = np.flatnonzero(random.random(n_labels) < 0.6)
    for given in (array, lanes):
        moved = in_lanes(given, kept)
        np.testing.assert_array_equal(from_lanes(moved, len(kept)), array[:, kept])
        assert not from_lanes(moved, len(moved) * LANES)[:, len(kept) :].any()
    others, places = np.zeros_like(lanes), random.permutation(n_labels)[: len(kept)]
    in_lanes(lanes, kept, others, places)
    np.testing.assert_array_equal(from_lanes(others, n_labels)[:, places], array[:, kept])
    front = in_lanes(lanes, kept, lanes)
    assert len(front) == -(-len(kept) // LANES)
    np.testing.assert_array_equal(from_lanes(front, len(kept)), array[:, kept])


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
@pytest.mark.parametrize("n_labels", [7, LANES + 3])
def test_costs_are_class_weights_of_scikit_learn(form, n_labels):
    X, Y = draw(3, n_labels=n_labels)
    costs = np.random.default_rng(1).uniform(0.2, 2.0, (2, n_labels))
    weights = np.ones(len(X))
    found = solve_binary_relevance(
        form(X), Y, weights, ALPHA, True, 1e-9, 200, costs=costs, block=LANES + 1
    )
    for j in range(n_labels):
        own = np.where(Y[:, j] == 1, costs[1, j], costs[0, j])
        # Its penalty is beside the sum of the weighted losses, ours beside their mean over rows.
        W, b = reference(X, Y[:, [j]], own, ALPHA * len(X) / own.sum())
        np.testing.assert_allclose(found.weights[:, j], W[:, 0], atol=1e-5)
        np.testing.assert_allclose(found.intercept[j], b[0], atol=1e-5)


def test_a_kind_of_error_that_costs_nothing_settles_a_label():
    X, Y = draw(4, n_labels=3)
    costs = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    found = solve_binary_relevance(X, Y, np.ones(len(X)), ALPHA, True, 1e-8, 50, costs=costs)
    np.testing.assert_array_equal(found.intercept[:2], [INTERCEPT_LIMIT, -INTERCEPT_LIMIT])
    np.testing.assert_array_equal(found.weights[:, :2], 0.0)
    assert abs(found.intercept[2]) < INTERCEPT_LIMIT
