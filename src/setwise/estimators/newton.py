"""Logistic regression of all labels at once, by Newton steps that share every pass over the inputs.

For each label j on its own,

    mean_i w_i log(1 + exp(-s_ij (x_i·W_j + b_j))) + alpha / 2 ||W_j||²,    s = ±1, mean by weight,

is minimised by truncated Newton steps: conjugate gradients on the Hessian X^T D X + alpha until the
residual is a fraction of the gradient. All labels take their products in one pass over the rows,
and a label that has converged leaves the block.

Products with the Hessian, which only choose the direction, are in the inputs' type. With float32
inputs so are the first steps; then values and gradients are float64, so that the solution is exact
to ``tol`` whatever the inputs are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from setwise.estimators.conjugate import directions
from setwise.estimators.lanes import empty_lanes
from setwise.estimators.newton_rows import DenseRows, SparseRows, move_labels, to_strips
from setwise.estimators.solver import Solution

Array = NDArray[Any]
Progress = Callable[[int, int, float], None]

# Entries, rows or features by labels, of one block: a block holds an array or two of rows by labels
# (of the inputs' type), and about a dozen of features by labels.
BLOCK_ENTRIES = 2**24
# The intercept, ∓30, of a label without positive or negative examples: its best one is infinite.
INTERCEPT_LIMIT = 30.0
# Steps in float32 end where a gradient is that much smaller than at the beginning.
ROUGHLY = 1e-4
# Relative differences between values that mean nothing.
NOISE = {np.float32: 1e-6, np.float64: 1e-14}
# A step is taken if the value falls by a fraction of what the slope promises, and the slope behind
# it is not steeper than another fraction. A step too long is cut to between these parts of it.
ARMIJO, STEEP = 1e-4, 0.5
SHORTEST, LONGEST = 0.1, 0.8
MAX_TRIALS = 40
COUNT_ROWS = 256


def solve_binary_relevance(
    inputs: Any,
    y_true: Array,
    weights: Array,
    alpha: float,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
    start: Solution | None = None,
    block: int | None = None,
    progress: Progress | None = None,
) -> Solution:
    """The minimiser for every label, where no entry of the gradient exceeds ``tol``.

    Begins at ``start``, or at weights of 0 and the log-odds of each label, and ends nowhere higher.
    A label that all rows (of positive weight) have, or none has, gets weights of 0 and an intercept
    of ±30 (`INTERCEPT_LIMIT`) if intercepts are fitted. Warns with the norm if ``max_iter`` steps
    are not enough.

    Parameters
    ----------
    inputs : array or CSR matrix of shape (n, d), float32 or float64
    y_true : uint8 array of shape (n, l)
    weights : array of shape (n,)
        Not negative, not all zero.
    block : int, optional
        Labels taken together; by default as many as `BLOCK_ENTRIES` allows.
    progress : callable, optional
        Called before each step of each block with the number of the step, the labels of the block
        that have not converged, and the largest entry of their gradients.

    Returns
    -------
    Solution
        ``value`` is the sum of the labels' objectives, ``gradient_norm`` the largest entry of the
        gradient, ``n_iter`` the most steps any block took.

    Examples
    --------
    >>> X, Y = np.array([[0.0], [1.0], [2.0]]), np.array([[0], [1], [1]], np.uint8)
    >>> found = solve_binary_relevance(X, Y, np.ones(3), 0.1, True, 1e-8, 50)
    >>> found.weights.round(3), found.intercept.round(3)
    (array([[1.487]]), array([-0.556]))
    """
    n, d = inputs.shape
    n_labels = y_true.shape[1]
    weights = np.ascontiguousarray(weights, np.float64)
    if block is None:
        block = max(1, BLOCK_ENTRIES // max(n, 4 * (d + 1)))
    point = np.zeros((n_labels, d + 1))
    if start is not None:
        point[:, :d] = start.weights.T
        point[:, d] = start.intercept if fit_intercept else 0.0
    mass = float(weights.sum())
    (share, some), counted = _count(y_true, weights), np.count_nonzero(weights)
    share = share / mass
    settled = ((some == 0) | (some == counted)) & fit_intercept
    if fit_intercept:
        if start is None:
            point[~settled, d] = np.log(share[~settled]) - np.log1p(-share[~settled])
        point[settled, :d] = 0.0
        point[settled, d] = np.where(some[settled] == 0, -INTERCEPT_LIMIT, INTERCEPT_LIMIT)
    value, norm, n_iter = 0.0, 0.0, 0
    if settled.any():
        rest = np.logaddexp(0.0, -INTERCEPT_LIMIT)
        value += float(settled.sum()) * rest
        norm = _settled_norm(inputs, weights / mass)
    rows = (SparseRows if issparse(inputs) else DenseRows)(inputs, weights, mass)
    squares, open_labels = np.append(rows.squares(), 1.0), np.flatnonzero(~settled)
    for first in range(0, len(open_labels), block):
        labels = open_labels[first : first + block]
        part = _Block(
            rows, to_strips(np.take(y_true, labels, axis=1).T, np.uint8), squares, float(alpha),
            fit_intercept, float(tol), progress,
        )  # fmt: skip
        path, steps = part.solve(point[labels], max_iter)
        point[labels] = path.point
        value += float(path.values.sum())
        norm, n_iter = max(norm, float(path.norms.max())), max(n_iter, steps)
    if norm > tol:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"the solver stopped after {n_iter} iterations with a gradient of {norm:.2e}, above "
            f"tol = {tol:g}; raise max_iter or alpha, or scale the features",
            ConvergenceWarning,
            stacklevel=3,
        )
    found = np.ascontiguousarray(point.T)
    return Solution(found[:d], found[d].copy(), np.empty(0), value, norm, n_iter)


def _count(y_true: Array, weights: Array) -> Array:
    """The weight and the number (of positive weight) of the rows that have each label, (2, l)."""
    # In float64: counts in uint8 would begin anew at 256.
    pair, total = np.stack([weights, weights > 0.0]), np.zeros((2, y_true.shape[1]))
    for start in range(0, len(y_true), COUNT_ROWS):
        rows = slice(start, start + COUNT_ROWS)
        total += pair[:, rows] @ y_true[rows].astype(np.float64)
    return total


def _settled_norm(inputs: Any, share: Array) -> float:
    """The largest gradient entry of a label at weights 0 and the limit of the intercept."""
    by_weight = np.abs(np.asarray(inputs.T @ share)).max(initial=1.0)
    return float(by_weight) / (1.0 + np.exp(INTERCEPT_LIMIT))


@dataclass
class _Active:
    """Labels on their way, by their place in the block, and what is known where they are."""

    labels: Array
    gradient: Array
    bend: Array
    y_true: Array
    curvature: Array

    def keep(self, kept: Array) -> None:
        """Let the others leave."""
        if kept.all():
            return
        rest = np.flatnonzero(kept)
        self.labels, self.gradient, self.bend = (
            array[rest] for array in (self.labels, self.gradient, self.bend)
        )
        self.y_true, self.curvature = (
            move_labels(strips, rest, strips) for strips in (self.y_true, self.curvature)
        )


@dataclass(frozen=True)
class _Path:
    """Where the labels are, with their values and largest gradient entries, and whence they came.

    Points are (m, d + 1), the intercepts last; ``begun`` holds the first values, ``first`` the
    lengths of the first gradients.
    """

    point: Array
    values: Array
    norms: Array
    begun: Array
    first: Array


@dataclass(frozen=True)
class _Block:
    """Labels that are solved together."""

    rows: SparseRows | DenseRows
    y_true: Array
    squares: Array
    alpha: float
    fit_intercept: bool
    tol: float
    progress: Progress | None

    def solve(self, point: Array, max_iter: int) -> tuple[_Path, int]:
        """The way to the minimisers, and the steps taken."""
        active, values = self._begin(point, np.arange(len(point)))
        norms = np.abs(active.gradient).max(axis=1)
        first = np.linalg.norm(active.gradient, axis=1)
        path, steps = _Path(point.copy(), values, norms, values.copy(), first), 0
        if self.rows.inputs.dtype == np.float32:
            far = np.flatnonzero(norms > self.tol)
            goal = np.maximum(self.tol, ROUGHLY * norms)
            steps = self._descend(active, path, goal, np.float32, max_iter, 0)
            active, path.values[far] = self._begin(path.point[far], far)
            higher = far[path.values[far] > path.begun[far]]
            if len(higher):
                path.point[higher] = point[higher]
                active, path.values[far] = self._begin(path.point[far], far)
            path.norms[far] = np.abs(active.gradient).max(axis=1)
        goal = np.full(len(point), self.tol)
        return path, self._descend(active, path, goal, np.float64, max_iter, steps)

    def _begin(self, point: Array, labels: Array) -> tuple[_Active, Array]:
        """Labels at their points, and their values."""
        y_true = move_labels(self.y_true, labels)
        curvature = empty_lanes(y_true.shape[:2], self.rows.inputs.dtype)
        values, gradient, bend = self._evaluate(point, y_true, curvature, np.float64)
        return _Active(labels, gradient, bend, y_true, curvature), values

    def _descend(
        self, active: _Active, path: _Path, goal: Array, dtype: Any, max_iter: int, steps: int
    ) -> int:
        """Newton steps until each label has reached its goal; how many have been taken."""
        while True:
            active.keep(path.norms[active.labels] > goal[active.labels])
            if len(active.labels) == 0 or steps == max_iter:
                return steps
            steps += 1
            if self.progress is not None:
                worst = float(path.norms[active.labels].max())
                self.progress(steps, len(active.labels), worst)
            direction = self._direction(active, path, goal)
            self._search(active, path, direction, dtype)

    def _search(self, active: _Active, path: _Path, direction: Array, dtype: Any) -> None:
        """Steps along the directions that lower the values; labels without one leave."""
        slope = np.einsum("ij,ij->i", active.gradient, direction)
        # No loss is negative: at most to where the tangent falls to 0.
        length = np.minimum(1.0, path.values[active.labels] / -slope)
        # Places of the active labels that have not found a step yet.
        left, y_true, curvature = np.arange(len(slope)), active.y_true, active.curvature
        for _ in range(MAX_TRIALS):
            labels = active.labels[left]
            trial = path.point[labels] + length[left, None] * direction[left]
            values, gradient, bend = self._evaluate(trial, y_true, curvature, dtype)
            norms, old = np.abs(gradient).max(axis=1), path.values[labels]
            behind = np.einsum("ij,ij->i", gradient, direction[left])
            good = values <= old + ARMIJO * length[left] * slope[left]
            good &= behind <= -STEEP * slope[left]
            # Where the value cannot tell any more, the gradient does.
            good |= (
                (values <= old + NOISE[dtype] * np.abs(old))
                & (norms < path.norms[labels])
                & (values <= path.begun[labels])
            )
            taken, place = labels[good], left[good]
            path.point[taken], path.values[taken] = trial[good], values[good]
            path.norms[taken] = norms[good]
            active.gradient[place], active.bend[place] = gradient[good], bend[good]
            if curvature is not active.curvature:
                move_labels(curvature, np.flatnonzero(good), active.curvature, place)
            left, behind = left[~good], behind[~good]
            if len(left) == 0:
                return
            # To where the slope would vanish if it were linear.
            part = slope[left] / (slope[left] - behind)
            length[left] *= np.where(part > SHORTEST, np.minimum(part, LONGEST), SHORTEST)
            y_true = move_labels(active.y_true, left)
            curvature = empty_lanes(y_true.shape[:2], active.curvature.dtype)
        # Nothing lowers these: they are as good as can be told.
        active.keep(~np.isin(np.arange(len(slope)), left))

    def _evaluate(
        self, point: Array, y_true: Array, curvature: Array, dtype: Any
    ) -> tuple[Array, Array, Array]:
        """Values (m,), gradients (m, d + 1) and mean curvatures (m,); fills ``curvature``."""
        values, gradient, bend = self.rows.evaluate(point, y_true, curvature, dtype)
        values += self.alpha / 2.0 * np.einsum("ij,ij->i", point[:, :-1], point[:, :-1])
        gradient[:, :-1] += self.alpha * point[:, :-1]
        if not self.fit_intercept:
            gradient[:, -1] = 0.0
        return values, gradient, bend

    def _direction(self, active: _Active, path: _Path, goal: Array) -> Array:
        """-H^-1 g, truncated; the curvatures are not the same afterwards."""
        labels, gradient = active.labels, active.gradient
        # Of the Hessian, as if all rows had the mean curvature. Its root is the better scale: rare
        # features, for which the penalty is most of the curvature, need not be stretched.
        diagonal = active.bend[:, None] * self.squares + (self.alpha + 1e-12)
        size = np.linalg.norm(gradient, axis=1)
        enough = np.maximum(
            np.minimum(0.25, np.sqrt(size / path.first[labels])),
            goal[labels] / 2.0 / path.norms[labels],
        )
        free = gradient.shape[1] - (not self.fit_intercept)
        direction = directions(
            self.rows, active.curvature, gradient / size[:, None], 1.0 / np.sqrt(diagonal), enough,
            self.alpha, free,
        )  # fmt: skip
        direction *= -size[:, None]
        wrong = ~(np.einsum("ij,ij->i", gradient, direction) < 0.0)
        direction[wrong] = -gradient[wrong] / diagonal[wrong]
        return direction
