"""Laws of the rules for 1/D."""

import numpy as np
import pytest
from scipy.stats import binom, poisson

from setwise.spaces.quadrature import (
    JACOBI,
    LAGUERRE,
    MEANS,
    STARTS,
    exponential_sum,
    jacobi,
    laguerre,
)
from tests.support.turns import in_turn


@in_turn("low", [0.01, 0.7, 1.0, 13.0])
@in_turn("ratio", [1.0, 1.5, 30.0, 1_000.0, 60_000.0])
def test_an_exponential_sum_is_a_reciprocal_on_its_whole_interval(low, ratio):
    x, w = exponential_sum(low, low * ratio)
    d = np.exp(np.linspace(np.log(low), np.log(low * ratio), 5_003))
    assert (w > 0).all()
    assert np.abs(d * (np.exp(-np.outer(d, x)) @ w) - 1).max() < 2e-13


@pytest.mark.parametrize("phi", [-0.9, -0.5, 0.0, 0.25, 3.0, 400.0])
def test_jacobi_integrates_polynomials_exactly(phi):
    t, w = jacobi(6, phi)
    for degree in range(12):
        assert (w * t**degree).sum() == pytest.approx(1 / (phi + degree + 1), rel=1e-12)


@pytest.mark.parametrize("error", list(JACOBI))
@pytest.mark.parametrize("kind", ["jacobi", "laguerre"])
def test_the_stored_numbers_of_nodes_reach_their_error(error, kind):
    """Poisson is the widest law that independent labels have; a binomial is a narrower one."""
    table = JACOBI[error] if kind == "jacobi" else LAGUERRE[error]
    checked = 0
    for row, start in enumerate(STARTS):
        for column, mean in enumerate(MEANS):
            if table[row][column]:
                assert _rule_error(kind, table[row][column], start, mean) < error
                checked += 1
    assert checked > 50


def _rule_error(kind, nodes, start, mean):
    k = np.arange(int(mean + 12 * np.sqrt(mean) + 60))
    if kind == "jacobi":
        t, w = jacobi(nodes, start - 1.0)
        powers = t[None, :] ** k[:, None]
    else:
        x, w = laguerre(nodes)
        w, powers = w / (start + mean), np.exp(-np.outer(start + k, x) / (start + mean))
    worst = 0.0
    for pmf in (
        poisson.pmf(k, mean),
        binom.pmf(k, int(np.ceil(2 * mean)), mean / np.ceil(2 * mean)),
    ):
        for factor in (np.ones(len(k)), k / mean):
            exact = (pmf * factor / (start + k)).sum()
            error = abs(w @ ((pmf * factor) @ powers) - exact)
            worst = max(worst, error / max(exact, 1 / (start + mean)))
    return worst
