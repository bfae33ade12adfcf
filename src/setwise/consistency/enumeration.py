"""A second opinion: the figures of a counterexample from their definitions, by enumeration.

Sums over label sets are written out from the paper's formulas, the weight of a set from the
definition of each space, and the minimiser is contested by points of a grid, points around it and
descents with numerical gradients. Shared with the search are what a target's loss is and which sets
a space contains (both have tests against a definition of their own), no risk, weight or minimiser.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize

from setwise.spaces.catalog import Catalog
from setwise.spaces.forest import Forest
from setwise.spaces.sized import Sized
from setwise.spaces.space import Array, Space

# How much lower a contesting risk may be: numerical gradients leave this much.
SLACK = 1e-7
GRID = 9
AROUND = 300
# Of so many labels all combinations are asked for.
MOST_LABELS = 16


@dataclass(frozen=True, eq=False)
class Enumeration:
    """Label sets of a space, a distribution over true ones, and a surrogate by name.

    ``name`` is one of "comp_sum" (with q), "constrained" (margin, rho), "binary_relevance" (margin)
    or "likelihood"; ``own`` the target the surrogate is built for.
    """

    target: Any
    own: Any
    space: Space
    joint: bool
    name: str
    parameters: dict[str, Any]
    truths: Array
    probability: Array

    @cached_property
    def sets(self) -> Array:
        """The label sets of the space, in the order of binary numbers or of the list."""
        if isinstance(self.space, Catalog):
            return self.space.sets[np.isfinite(self.space.bias)]
        if self.space.n_labels > MOST_LABELS:
            # A space of few sets may have many labels, such as paths; it lists them itself.
            listed = self.space.enumerate()
            return listed[np.lexsort(listed.T[::-1])]
        rows = np.array(list(product((0, 1), repeat=self.space.n_labels)), dtype=np.uint8)
        return rows[self.space.contains(rows)]

    def risks(self) -> Array:
        """Expected loss of each set."""
        return self.probability @ _losses(self.target, self.truths, self.sets)

    def weights(self, scores: Array) -> Array:
        """z of each set for rows of scores, (n, K)."""
        if self.joint:
            return np.atleast_2d(scores) + self._offsets
        return np.atleast_2d(scores) @ (2.0 * self.sets.T - 1.0) + self._offsets

    def surrogate_risk(self, scores: Array) -> Array:
        """The conditional surrogate risk of rows of scores, from the paper's sums, (n,)."""
        scores = np.atleast_2d(np.asarray(scores, dtype=np.float64))
        if self.name == "binary_relevance":
            phi = _PHI[self.parameters["margin"]]
            signs = 2.0 * self.truths - 1.0
            each = np.array([phi(sign * scores).sum(axis=1) for sign in signs])
            return self.probability @ each
        z = self.weights(scores)
        if self.name == "constrained":
            phi = _PHI[self.parameters["margin"]]
            spread = z - z.mean(axis=1, keepdims=True)
            return phi(-spread / self.parameters.get("width", 1.0)) @ self._own_risks
        # Psi of sum over y'' of exp(z(y'') - z(y')) for each y', the heaviest taken out of the sum;
        # beyond e^600 it is as good as infinite.
        heaviest = z.max(axis=1, keepdims=True)
        total = np.exp(z - heaviest).sum(axis=1, keepdims=True)
        ratios = total * np.exp(np.minimum(heaviest - z, 600.0))
        if self.name == "likelihood":
            same = np.array([[np.array_equal(y, t) for y in self.sets] for t in self.truths])
            return np.log(ratios) @ (self.probability @ same)
        return _psi(ratios, self.parameters["q"]) @ (1.0 - self._own_risks)

    def prediction(self, scores: Array) -> int:
        """The place of the heaviest set, or after a likelihood of the least expected loss."""
        z = self.weights(scores)[0]
        if self.name != "likelihood":
            return int(np.argmax(z))
        law = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
        return int(np.argmin(law @ _losses(self.target, self.sets, self.sets)))

    def contested(self, scores: Array, seed: int = 0) -> tuple[float, int]:
        """The least surrogate risk of all points that contest the scores, and their number."""
        rng, size = np.random.default_rng(seed), len(scores)
        ticks = np.linspace(-4.0, 4.0, GRID if size <= 4 else 3)
        points = [np.array(list(product(ticks, repeat=size)))] if size <= 8 else []
        for radius in (1e-4, 1e-2, 0.1, 1.0, 4.0):
            points.append(scores + radius * rng.normal(size=(AROUND, size)))
        every = np.concatenate(points)
        values = np.concatenate([self.surrogate_risk(part) for part in np.array_split(every, 20)])
        starts = [scores, *every[np.argsort(values)[:6]], *rng.normal(size=(4, size))]
        ends = [
            minimize(lambda h: float(self.surrogate_risk(h)[0]), start, options={"maxiter": 60})
            for start in starts
        ]
        least = min(float(values.min()), *(float(end.fun) for end in ends))
        return least, len(every) + len(starts)

    @cached_property
    def _offsets(self) -> Array:
        return np.array([_added(self.space, row) for row in self.sets])

    @cached_property
    def _own_risks(self) -> Array:
        return self.probability @ _losses(self.own, self.truths, self.sets)


def _losses(target: Any, truths: Array, sets: Array) -> Array:
    """The loss of each set (a column) against each truth (a row), one truth at a time."""
    return np.array([target.loss(sets, np.broadcast_to(t, sets.shape)) for t in truths])


def _psi(v: Array, q: float) -> Array:
    if q == 0.0:
        return np.log(v)
    return v - 1.0 if q == -1.0 else (1.0 - v**-q) / q


_PHI = {
    "logistic": lambda u: np.logaddexp(0.0, -u),
    "exponential": lambda u: np.exp(-np.clip(u, -700.0, 700.0)),
    "hinge": lambda u: np.where(u < 1.0, 1.0 - u, 0.0),
    "squared_hinge": lambda u: np.where(u < 1.0, (1.0 - u) ** 2, 0.0),
    "rho": lambda u: np.where(u < 0.0, 1.0, np.where(u < 1.0, 1.0 - u, 0.0)),
}


def _added(space: Space, row: Array) -> float:
    """g(y') as each space defines it."""
    if isinstance(space, Sized):
        return float(space.bias[int(row.sum())])
    if isinstance(space, Catalog):
        return float(space.bias[int(np.flatnonzero((space.sets == row).all(axis=1))[0])])
    if isinstance(space, Forest):
        edges = [(child, parent) for child, parent in enumerate(space.parents) if parent >= 0]
        return float(sum(space.potentials[c, row[c], row[p]] for c, p in edges))
    return 0.0
