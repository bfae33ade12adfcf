"""The change of variables of the solver: one to one, and gradients follow the chain rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from setwise.estimators.choice import space_for
from setwise.estimators.conditioning import Conditioning
from setwise.estimators.design import Design, Rows
from setwise.estimators.moments import MOST_ROTATED
from setwise.estimators.problem import Problem
from setwise.estimators.training import Training
from setwise.targets import get_target

NONE = np.zeros((0, 0), np.uint8)


def drawn(form, fit_intercept, n=40, d=5, m=3, p=2):
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(n, d)) * [1.0, 10.0, 0.1, 3.0, 1.0] + 2.0
    inputs[:, 4] = 0.0
    design = Design.of(Rows(form(inputs), NONE, np.ones(n)), None, fit_intercept)
    conditioning = Conditioning.of(design, 0.1, rng.random(m), rng.random(p))
    return inputs, conditioning, (rng.normal(size=(d, m)), rng.normal(size=m), rng.normal(size=p))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_there_and_back(form, fit_intercept):
    _, conditioning, point = drawn(form, fit_intercept)
    for one, other in zip(conditioning.point(conditioning.flat(*point)), point, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_gradients_follow_the_chain_rule(form, fit_intercept):
    _, conditioning, point = drawn(form, fit_intercept)
    slopes = tuple(np.random.default_rng(1).normal(size=part.shape) for part in point)

    def value(flat):
        parts = conditioning.point(flat)
        return sum((part * slope).sum() for part, slope in zip(parts, slopes, strict=True))

    flat = conditioning.flat(*point)
    gradient = conditioning.gradient(*slopes)
    for place in range(len(flat)):
        step = np.zeros_like(flat)
        step[place] = 1e-5
        change = (value(flat + step) - value(flat - step)) / 2e-5
        assert change == pytest.approx(gradient[place], rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_curvature_becomes_one(form):
    """Of c_j Cov(X) + alpha, the Hessian where scores do not depend on the inputs."""
    rng = np.random.default_rng(2)
    inputs = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4)) + 1.0
    spread, alpha = np.array([0.2, 0.01]), 0.05
    design = Design.of(Rows(form(inputs), NONE, np.ones(200)), None, True)
    conditioning = Conditioning.of(design, alpha, spread, np.ones(0))
    covariance = np.cov(inputs.T, bias=True)
    for score in range(2):
        turned = conditioning.rotation * conditioning.scale[:, score]
        hessian = turned.T @ (spread[score] * covariance + alpha * np.eye(4)) @ turned
        np.testing.assert_allclose(hessian, np.eye(4), atol=1e-8)


def test_wide_inputs_are_scaled_but_not_rotated():
    wide = sparse.random_array((30, MOST_ROTATED + 1), density=0.01, random_state=0, format="csr")
    assert Design.of(Rows(wide, NONE, np.ones(30)), None, True).spectrum[1] is None


@pytest.mark.parametrize("space", ["catalog", "joint", "sized", "cube", "forest"])
def test_the_variance_of_a_likelihood_is_its_curvature_by_each_score(space):
    """The sum over rows of the second derivatives, wherever the scores are."""
    rng = np.random.default_rng(3)
    sets = rng.integers(0, 2, (12, 3)).astype(np.uint8)
    weights = rng.random(12)
    training = Training("likelihood", get_target("f1"))
    held = space_for(space, training, False, sets, weights)
    objective = training.objective(training.stages()[-1], held, sets, weights)
    scores, rows = rng.normal(size=(12, held.n_scores)), slice(0, 12)
    variance = objective.variance(rows, scores, objective.parameters)
    for score in range(held.n_scores):
        step = 1e-5 * (np.arange(held.n_scores) == score)
        ahead, behind = (
            objective.sums(rows, scores + sign * step, objective.parameters)[1][:, score].sum()
            for sign in (1, -1)
        )
        assert variance[score] == pytest.approx((ahead - behind) / 2e-5, rel=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("space", ["catalog", "joint", "sized"])
def test_on_the_way_the_objective_bends_alike_along_each_variable(space, fit_intercept, form):
    """The diagonal of the Hessian by the variables of weights and intercepts, by differences."""
    rng = np.random.default_rng(4)
    inputs = rng.normal(size=(30, 4)) * [1.0, 5.0, 0.2, 1.0] + 1.0
    sets, weights = rng.integers(0, 2, (30, 3)).astype(np.uint8), rng.random(30)
    training = Training("likelihood", get_target("f1"))
    held = space_for(space, training, False, sets, weights)
    objective = training.objective(training.stages()[-1], held, sets, weights)
    design = Design.of(Rows(form(inputs), sets, weights), None, fit_intercept)
    problem = Problem(design, objective, 0.02)
    at = problem.start()
    at = replace(at, weights=rng.normal(size=at.weights.shape))
    conditioning = problem.conditioning(at)
    finite = np.isfinite(at.parameters)

    def gradient(flat):
        weights, intercept, rest = conditioning.point(flat)
        parameters = at.parameters.copy()
        parameters[finite] = rest
        *slopes, last = problem.value_and_gradient(weights, intercept, parameters)[1:]
        return conditioning.gradient(*slopes, last[finite])

    flat = conditioning.flat(at.weights, at.intercept, at.parameters[finite])
    for place in range(at.weights.size + fit_intercept * len(at.intercept)):
        step = 1e-5 * (np.arange(len(flat)) == place)
        bend = (gradient(flat + step) - gradient(flat - step))[place] / 2e-5
        assert bend == pytest.approx(1.0, rel=1e-5)
