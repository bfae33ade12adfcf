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

from setwise.spaces.space import Array, Space

# How much lower a contesting risk may be: numerical gradients leave this much.
SLACK = 1e-7
GRID, AROUND = 9, 300
# Of so many labels all combinations are asked for.
MOST_LABELS = 16


@dataclass(frozen=True, eq=False)
class Enumeration:
    """Label sets of a space, a distribution over true ones, and a surrogate by name.

    ``name`` is one of "comp_sum" (with ``q``), "constrained" (``margin``, ``width``),
    "binary_relevance" (``margin``) or "likelihood"; ``own`` the target the surrogate is built for.
    """

    target: Any
    own: Any
    space: Space
    joint: bool
    name: str
    truths: Array
    probability: Array
    q: float | None = None
    margin: str | None = None
    width: float = 1.0

    @cached_property
    def sets(self) -> Array:
        """The label sets of the space, in the order of its list or of binary numbers."""
        if _is_listed(self.space):
            return self.space.sets[np.isfinite(self.space.bias)]  # type: ignore
        if self.space.n_labels > MOST_LABELS:
            # A space of few sets may have many labels, such as paths; it lists them itself.
            rows = self.space.enumerate()
            return rows[np.lexsort(rows.T[::-1])]
        rows = np.array(list(product((0, 1), repeat=self.space.n_labels)), dtype=np.uint8)
        return rows[self.space.contains(rows)]

    def risks(self) -> Array:
        """Expected loss of each set."""
        return self.probability @ _losses(self.target, self.truths, self.sets)

    def weights(self, scores: Array) -> Array:
        """z of each set for rows of scores, (n, K)."""
        moved = scores if self.joint else scores @ (2.0 * self.sets.T - 1.0)
        return moved + self._added

    @cached_property
    def _added(self) -> Array:
        return np.array([_added(self.space, row) for row in self.sets])

    @cached_property
    def _own_risks(self) -> Array:
        return self.probability @ _losses(self.own, self.truths, self.sets)

    def surrogate_risk(self, scores: Array) -> Array:
        """The conditional surrogate risk of rows of scores, from the paper's sums, (n,)."""
        scores = np.atleast_2d(np.asarray(scores, dtype=np.float64))
        if self.name == "binary_relevance":
            signs = 2.0 * self.truths - 1.0
            each = [_phi(self.margin, sign * scores).sum(axis=1) for sign in signs]
            return self.probability @ np.array(each)
        z = self.weights(scores)
        if self.name == "constrained":
            spread = z - z.mean(axis=1, keepdims=True)
            return _phi(self.margin, -spread / self.width) @ self._own_risks
        # Psi of sum over y'' of exp(z(y'') - z(y')) for each y', the heaviest taken out of the sum;
        # beyond e^600 it is as good as infinite.
        heaviest = z.max(axis=1, keepdims=True)
        total = np.exp(z - heaviest).sum(axis=1, keepdims=True)
        ratios = total * np.exp(np.minimum(heaviest - z, 600.0))
        if self.name == "likelihood":
            same = np.array([[np.array_equal(y, t) for y in self.sets] for t in self.truths])
            return np.log(ratios) @ (self.probability @ same)
        if self.q == 0.0:
            return np.log(ratios) @ (1.0 - self._own_risks)
        return (1.0 - ratios**-self.q) / self.q @ (1.0 - self._own_risks)  # type: ignore

    def prediction(self, scores: Array) -> int:
        """The place of the heaviest set, or after a likelihood of the least expected loss."""
        z = self.weights(scores[None])[0]
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
        return min(values.min(), *(float(end.fun) for end in ends)), len(every) + len(starts)


def _losses(target: Any, truths: Array, sets: Array) -> Array:
    """The loss of each set (a column) against each truth (a row), one truth at a time."""
    return np.array([target.loss(sets, np.broadcast_to(t, sets.shape)) for t in truths])


def _phi(margin: str | None, u: Array) -> Array:
    """The margin functions, from their definitions."""
    if margin == "logistic":
        return np.logaddexp(0.0, -u)
    if margin == "exponential":
        return np.exp(-np.clip(u, -700.0, 700.0))
    hinge = np.where(u < 1.0, 1.0 - u, 0.0)
    return {"hinge": hinge, "squared_hinge": hinge**2, "rho": np.where(u < 0.0, 1.0, hinge)}[
        str(margin)
    ]


def _is_listed(space: Any) -> bool:
    """Whether a bias belongs to each listed set, and not to a size."""
    return hasattr(space, "sets") and hasattr(space, "bias")


def _added(space: Any, row: Array) -> float:
    """g(y'): the bias of a listed set or of its size, or the potentials of its edges."""
    if _is_listed(space):
        return float(space.bias[int(np.flatnonzero((space.sets == row).all(axis=1))[0])])
    if hasattr(space, "bias"):
        return float(space.bias[int(row.sum())])
    if hasattr(space, "potentials"):
        edges = [(child, parent) for child, parent in enumerate(space.parents) if parent >= 0]
        return float(sum(space.potentials[c, row[c], row[p]] for c, p in edges))
    return 0.0
