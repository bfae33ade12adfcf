"""L-BFGS: never up, and to where the gradient vanishes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import rosen, rosen_der

from setwise.estimators.lbfgs import Pairs, lbfgs


def told(evaluate, values):
    """The same function, which writes its values down."""

    def telling(point):
        value, gradient = evaluate(point)
        values.append(value)
        return value, gradient

    return telling


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(3, 10))
def test_a_convex_function_is_minimised(seed, size, memory):
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(20, size)), rng.normal(size=20)

    def evaluate(x):
        z = A @ x + b
        return float(np.logaddexp(z, -z).sum() + x @ x / 2), A.T @ np.tanh(z) + x

    found = lbfgs(evaluate, 3.0 * rng.normal(size=size), memory, 500, lambda: False)
    assert np.abs(evaluate(found)[1]).max() < 1e-6


def test_a_long_curved_valley_is_followed_to_its_end():
    found = lbfgs(lambda x: (rosen(x), rosen_der(x)), np.zeros(6), 10, 500, lambda: False)
    np.testing.assert_allclose(found, 1.0, atol=1e-6)


def test_kinks_are_gone_down():
    """The sum of |x_i| i: an end near 0, from values that go down with every step."""
    weights = np.arange(1.0, 6.0)

    def evaluate(x):
        return float(weights @ np.abs(x)), weights * np.sign(x)

    start = np.array([3.0, -2.0, 1.3, 0.7, -1.1])
    found = lbfgs(evaluate, start, 10, 300, lambda: False)
    assert evaluate(found)[0] < 1e-3 * evaluate(start)[0]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_it_ends_when_told_and_no_higher_than_it_began(scale):
    values, steps = [], []

    def after_step():
        steps.append(values[-1])
        return len(steps) == 4

    evaluate = told(lambda x: (scale * rosen(x), scale * rosen_der(x)), values)
    found = lbfgs(evaluate, np.full(4, -1.2), 5, 100, after_step)
    assert len(steps) == 4
    assert scale * rosen(found) == steps[-1]
    assert (np.diff([values[0], *steps]) < 0).all()


def test_a_minimum_is_not_left():
    start = np.zeros(3)
    found = lbfgs(lambda x: (float(x @ x), 2.0 * x), start, 5, 10, lambda: pytest.fail("a step"))
    np.testing.assert_array_equal(found, start)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 5), st.integers(0, 12))
def test_a_direction_is_that_of_the_updated_inverse_hessian(seed, size, memory, n_pairs):
    """H <- (I - s y'/b) H (I - y s'/b) + s s'/b, from the scaled unit matrix, oldest first."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(size, size))
    hessian, pairs = A @ A.T + np.eye(size), Pairs(memory, size)
    steps, gradient = rng.normal(size=(n_pairs, size)), rng.normal(size=size)
    for step in steps:
        ahead = gradient + hessian @ step
        pairs.add(step, gradient, ahead)
        gradient = ahead
    inverse, unit = np.eye(size), np.eye(size)
    last = steps[-memory:]
    for step in last[-1:]:
        change = hessian @ step
        inverse *= step @ change / (change @ change)
    for step in last:
        change = hessian @ step
        bend = step @ change
        left = unit - np.outer(step, change) / bend
        inverse = left @ inverse @ left.T + np.outer(step, step) / bend
    np.testing.assert_allclose(pairs.direction(gradient), -inverse @ gradient, 1e-7, 1e-9)
