"""Rules for 1/D = integral of t^(D-1) over [0, 1]: sums of powers that stand for a reciprocal.

A linear-fractional utility is N / D. With 1/D as a sum of powers t^D, its expectation needs only
E[N t^D], which factors over labels. Three rules, chosen by what D can be:

- `jacobi`: Gauss–Jacobi in t with weight t^phi, phi the broken part of the exponents: exact for
  whole-number steps of D up to twice the number of nodes.
- `laguerre`: Gauss–Laguerre in x with t = exp(-x / c), c = E[D]: for a D that is concentrated
  around a large mean.
- `exponential_sum`: a sum of exponentials whose relative error is bounded for EVERY real D in an
  interval, whatever its law; the bound is measured when the rule is made.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial.laguerre import laggauss
from scipy.optimize import nnls
from scipy.special import roots_jacobi

from setwise.targets.measure import Array

UNIFORM_ERROR = 1e-13


@lru_cache(maxsize=4096)
def jacobi(nodes: int, phi: float) -> tuple[Array, Array]:
    """Nodes t and weights w with sum w f(t) = integral of t^phi f(t) over [0, 1]."""
    x, w = roots_jacobi(nodes, 0.0, phi)
    return (1.0 + x) / 2.0, w * np.exp2(-phi - 1.0)


@lru_cache(maxsize=16)
def laguerre(nodes: int) -> tuple[Array, Array]:
    """Nodes x and weights w with sum w f(x) = integral of f over [0, inf)."""
    x, w = laggauss(nodes)
    return x, w * np.exp(x)


def exponential_sum(low: float, high: float) -> tuple[Array, Array]:
    """Nodes x, weights w with sum w exp(-x D) = (1 + e) / D, |e| < 1e-13, for D in [low, high]."""
    x, w = _exponential_sum(int(np.ceil(np.log2(max(high / low, 1.0)))))
    return x / low, w / low


@lru_cache(maxsize=64)
def _exponential_sum(octaves: int) -> tuple[Array, Array]:
    """The rule for D in [1, 2^octaves]: nonnegative least squares over a dense set of nodes.

    Nonnegative weights make the solution sparse and the sum free of cancellation.
    """
    octaves = max(octaves, 1)
    places = np.exp2(np.linspace(0.0, octaves, 30 * octaves + 2))
    x = np.exp(np.linspace(np.log(1e-4 / places[-1]), np.log(34.0), 60 + 22 * octaves))
    relative = places[:, None] * np.exp(-np.outer(places, x)) * x
    w, _ = nnls(relative, np.ones(len(places)))
    w = w * x
    # Where D can be 0 the sum of the weights multiplies rounding: drop those without effect.
    useful = w * np.exp(-x) > 1e-17
    x, w = x[useful], w[useful]
    fine = np.exp2(np.linspace(0.0, octaves, 120 * octaves))
    error = np.abs(fine * (np.exp(-np.outer(fine, x)) @ w) - 1.0).max()
    if error > UNIFORM_ERROR:
        raise ArithmeticError(f"the rule for 1/D on [1, 2^{octaves}] is only good to {error:.1e}")
    return x, w
