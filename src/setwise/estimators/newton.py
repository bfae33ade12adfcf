"""Logistic regression of all labels at once, by Newton steps that share every pass over the inputs.

For each label j on its own,

    mean_i w_i c_ij log(1 + exp(-s_ij (x_i·W_j + b_j))) + alpha / 2 ||W_j||²,   s = ±1,

the mean by weight w_i and c_ij the cost of a miss or of a false alarm of label j, is minimised by
truncated Newton steps: conjugate gradients on the Hessian X^T D X + alpha until the residual is a
fraction of the gradient. All labels take their products in one pass over the rows, and a label that
has converged leaves. Products with the Hessian, which only choose the direction, are in the inputs'
type; values and gradients are float64, so that the solution is exact to ``tol`` whatever the inputs
are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from setwise.blocks.block import Block
from setwise.blocks.memory import Whole
from setwise.estimators.design import Solution, warn_of
from setwise.estimators.moments import moments
from setwise.estimators.newton_passes import (
    Array,
    Passes,
    directions,
    in_lanes,
)
from setwise.estimators.strips import LANES
from setwise.lanes import empty_lanes
from setwise.sparse import label_sums

Progress = Callable[[int, int, float], None]

# Entries, rows or features by labels, of one block: a block holds an array or two of rows by labels
# (of the inputs' type), and about a dozen of features by labels.
BLOCK_ENTRIES = 2**24
# The intercept, ∓30, of a label without positive or negative examples: its best one is infinite.
INTERCEPT_LIMIT = 30.0
# Relative differences between values that mean nothing.
NOISE = 1e-14
# Armijo: the value falls by this fraction of what the slope promises. Wolfe: the slope behind the
# step is at most this fraction as steep, uphill.
ARMIJO, WOLFE = 1e-4, 0.5
# A step too long is cut to between these parts of it.
SHORTEST, LONGEST = 0.1, 0.8
MAX_TRIALS = 40


def solve_binary_relevance(
    inputs: Any,
    y_true: Any,
    weights: Array,
    alpha: float,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
    start: Solution | None = None,
    block: int | None = None,
    progress: Progress | None = None,
    costs: Array | None = None,
) -> Solution:
    """The minimiser for every label, where no entry of the gradient exceeds ``tol``.

    Begins at ``start``, or at weights of 0 and the log-odds of each label, and ends nowhere higher.
    A label that all rows (of positive weight) have, or none has, gets weights of 0 and an intercept
    of ±30 (`INTERCEPT_LIMIT`) if intercepts are fitted. Warns with the norm if ``max_iter`` steps
    are not enough.

    ``inputs`` are (n, d), dense or CSR, float32 or float64; ``y_true`` is uint8 (n, l), dense or
    CSR; ``weights`` (n,) are not negative and not all zero. ``block`` labels are taken together, by
    default as many as `BLOCK_ENTRIES` allows. ``progress`` is called before each step of each block
    with the number of the step, the labels of the block that have not converged, and the largest
    entry of their gradients. ``costs`` (2, l) multiply the terms of false and of true labels; a
    label of which one kind costs nothing is settled as if only the other occurred. Of the solution,
    ``value`` is the sum of the labels' objectives and ``n_iter`` the most steps any block took.

    Examples
    --------
    >>> X, Y = np.array([[0.0], [1.0], [2.0]]), np.array([[0], [1], [1]], np.uint8)
    >>> found = solve_binary_relevance(X, Y, np.ones(3), 0.1, True, 1e-8, 50)
    >>> found.weights.round(3), found.intercept.round(3)
    (array([[1.487]]), array([-0.556]))
    """
    n, d = inputs.shape
    weights = np.ascontiguousarray(weights, np.float64)
    passes = Passes(inputs, weights, float(weights.sum()))
    costs = np.ones((2, y_true.shape[1])) if costs is None else np.asarray(costs, np.float64)
    point, settled = _begin(passes, y_true, fit_intercept, start, costs)
    values, norms, n_iter = np.zeros(len(settled)), np.zeros(len(settled)), 0
    if settled.any():
        dearest = costs.max(axis=0)[settled]
        values[settled] = dearest * np.logaddexp(0.0, -INTERCEPT_LIMIT)
        by_weight = np.abs(np.asarray(inputs.T @ (weights / passes.mass))).max(initial=1.0)
        norms[settled] = dearest * float(by_weight) / (1.0 + np.exp(INTERCEPT_LIMIT))
    mean, variance = moments(Whole(Block(inputs, None, weights)), passes.mass)
    spread = np.append(variance + mean**2, 1.0)
    newton = _Newton(passes, spread, float(alpha), fit_intercept, float(tol), progress)
    if block is None:
        block = max(1, BLOCK_ENTRIES // max(n, 4 * (d + 1)))
    open_labels = np.flatnonzero(~settled)
    for first in range(0, len(open_labels), block):
        labels = open_labels[first : first + block]
        true, places = y_true, labels
        if issparse(y_true):
            true, places = y_true[:, labels].toarray(), np.arange(len(labels))
        lanes = in_lanes(true, places), in_lanes(costs, labels)
        found = newton.solve(point[:, labels], *lanes, max_iter)
        point[:, labels], values[labels], norms[labels], steps = found
        n_iter = max(n_iter, steps)
    norm = float(norms.max(initial=0.0))
    if norm > tol:
        warn_of(n_iter, norm, tol)
    return Solution(point[:d], point[d].copy(), np.empty(0), float(values.sum()), norm, n_iter)


def _begin(
    passes: Passes, y_true: Any, fit_intercept: bool, start: Solution | None, costs: Array
) -> tuple[Array, Array]:
    """Where the labels begin, (d + 1, l), and which are settled: all rows have them, or none.

    So they are too where no row that costs something has them, or lacks them.
    """
    point = np.zeros((passes.inputs.shape[1] + 1, y_true.shape[1]))
    if start is not None:
        point[:-1] = start.weights
    if not fit_intercept:
        return point, np.zeros(point.shape[1], bool)
    counts, mass = passes.weights > 0.0, label_sums(y_true, passes.weights)
    having = label_sums(y_true, counts.astype(np.int64))
    none = (having == 0) | (costs[1] == 0.0)
    every = ((having == np.count_nonzero(counts)) | (costs[0] == 0.0)) & ~none
    settled, share = none | every, mass / passes.mass
    if start is not None:
        point[-1] = start.intercept
    else:
        odds = np.log(costs[1, ~settled]) - np.log(costs[0, ~settled])
        point[-1, ~settled] = odds + np.log(share[~settled]) - np.log1p(-share[~settled])
    point[:, settled] = 0.0
    point[-1, none], point[-1, every] = -INTERCEPT_LIMIT, INTERCEPT_LIMIT
    return point, settled


@dataclass
class _Labels:
    """Labels on their way, m of them, and what is known where they are.

    ``which`` are their places in the block, ``point`` and ``gradient`` (d + 1, m) with intercepts
    last, ``norm`` the largest entries of the gradients, ``bend`` the mean second derivatives of the
    loss; ``begun`` and ``first`` the values and the lengths of the gradients at the start; y_true
    and curvature are (n, m) in lanes, costs (2, m).
    """

    which: Array
    point: Array
    value: Array
    gradient: Array
    norm: Array
    bend: Array
    begun: Array
    first: Array
    y_true: Array
    curvature: Array
    costs: Array

    def keep(self, kept: Array) -> None:
        """Let the others leave."""
        if not kept.all():
            rest = np.flatnonzero(kept)
            for name, part in vars(self).items():
                lanes = name in ("y_true", "curvature", "costs")
                setattr(self, name, in_lanes(part, rest, part) if lanes else part[..., rest])


@dataclass(frozen=True)
class _Newton:
    """Newton steps for the labels of a block; ``spread`` is the mean square of each feature."""

    passes: Passes
    spread: Array
    alpha: float
    fit_intercept: bool
    tol: float
    progress: Progress | None

    def solve(
        self, point: Array, y_true: Array, costs: Array, max_iter: int
    ) -> tuple[Array, Array, Array, int]:
        """The minimisers (d + 1, m) from ``point``, their values, norms, and the steps taken."""
        curvature = empty_lanes(y_true.shape[:2], LANES, self.passes.inputs.dtype)
        value, gradient, norm, bend = self._evaluate(point, y_true, curvature, costs)
        left = _Labels(
            np.arange(len(value)), point, value, gradient, norm, bend, value.copy(),
            np.linalg.norm(gradient, axis=0), y_true, curvature, costs,
        )  # fmt: skip
        point, value, norm, steps = point.copy(), value.copy(), norm.copy(), 0
        left.keep(left.norm > self.tol)
        while len(left.which) and steps < max_iter:
            steps += 1
            if self.progress is not None:
                self.progress(steps, len(left.which), float(left.norm.max()))
            moved = self._search(left, self._direction(left))
            at = left.which
            point[:, at], value[at], norm[at] = left.point, left.value, left.norm
            # Nothing lowers labels that did not move: they are as good as can be told.
            left.keep(moved & (left.norm > self.tol))
        return point, value, norm, steps

    def _direction(self, left: _Labels) -> Array:
        """-H^-1 g, truncated, (d + 1, m); the curvatures are not the same afterwards."""
        # Of the Hessian, as if all rows had the mean curvature. Its root is the better scale: rare
        # features, for which the penalty is most of the curvature, need not be stretched.
        diagonal = self.spread[:, None] * left.bend + (self.alpha + 1e-12)
        size = np.linalg.norm(left.gradient, axis=0)
        enough = np.maximum(
            np.minimum(0.25, np.sqrt(size / left.first)), self.tol / 2.0 / left.norm
        )
        direction = -size * directions(
            self.passes, left.curvature, left.gradient / size, 1.0 / np.sqrt(diagonal), enough,
            self.alpha, len(diagonal) - (not self.fit_intercept),
        )  # fmt: skip
        wrong = ~(_products(left.gradient, direction) < 0.0)
        direction[:, wrong] = -left.gradient[:, wrong] / diagonal[:, wrong]
        return direction

    def _search(self, left: _Labels, direction: Array) -> Array:
        """Steps along the directions by Armijo's and Wolfe's conditions; which labels took one."""
        slope = _products(left.gradient, direction)
        # No loss is negative: at most to where the tangent falls to 0.
        length = np.minimum(1.0, left.value / -slope)
        # Labels that have not found a step yet, and what belongs to them.
        seek, y_true, curvature = np.arange(len(slope)), left.y_true, left.curvature
        costs = left.costs
        for _ in range(MAX_TRIALS):
            trial = left.point[:, seek] + length[seek] * direction[:, seek]
            value, gradient, norm, bend = self._evaluate(trial, y_true, curvature, costs)
            behind, old = _products(gradient, direction[:, seek]), left.value[seek]
            good = value <= old + ARMIJO * length[seek] * slope[seek]
            good &= behind <= -WOLFE * slope[seek]
            # Where the value cannot tell any more, the gradient does.
            alike = (value <= old + NOISE * np.abs(old)) & (value <= left.begun[seek])
            good |= alike & (norm < left.norm[seek])
            at = seek[good]
            left.point[:, at], left.gradient[:, at] = trial[:, good], gradient[:, good]
            left.value[at], left.norm[at], left.bend[at] = value[good], norm[good], bend[good]
            if curvature is not left.curvature:
                in_lanes(curvature, np.flatnonzero(good), left.curvature, at)
            seek, behind = seek[~good], behind[~good]
            if len(seek) == 0:
                break
            # To where the slope would vanish if it were linear.
            part = slope[seek] / (slope[seek] - behind)
            length[seek] *= np.where(part > SHORTEST, np.minimum(part, LONGEST), SHORTEST)
            y_true, costs = in_lanes(left.y_true, seek), in_lanes(left.costs, seek)
            curvature = empty_lanes(y_true.shape[:2], LANES, left.curvature.dtype)
        return ~np.isin(np.arange(len(slope)), seek)

    def _evaluate(
        self, point: Array, y_true: Array, curvature: Array, costs: Array
    ) -> tuple[Array, ...]:
        """Values, gradients, their largest entries, mean curvatures; fills ``curvature``."""
        value, gradient, bend = self.passes.evaluate(point, y_true, curvature, costs)
        value += self.alpha / 2.0 * _products(point[:-1], point[:-1])
        gradient[:-1] += self.alpha * point[:-1]
        if not self.fit_intercept:
            gradient[-1] = 0.0
        return value, gradient, np.abs(gradient).max(axis=0), bend


def _products(one: Array, other: Array) -> Array:
    """The inner product of the columns of each label, (m,)."""
    return np.einsum("ij,ij->j", one, other)
