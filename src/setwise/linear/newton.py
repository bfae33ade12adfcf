"""Logistic regression of all labels at once, by Newton steps that share every pass over the inputs.

For each label j on its own,

    mean_i w_i log(1 + exp(-s_ij (x_i·W_j + b_j))) + alpha / 2 ||W_j||²,    s = ±1, mean by weight,

is minimised by truncated Newton steps: conjugate gradients on the Hessian X^T D X + alpha, scaled
by its diagonal, until the residual is a fraction of the gradient. All labels take their products in
one pass over the rows, and a label that has converged leaves the block.

Values and gradients are float64 throughout, so that the solution is exact to ``tol`` whatever the
inputs are; products with the Hessian, which only choose the direction, are in the inputs' type.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray
from scipy.sparse import issparse

from setwise.elementary import exp, kernel, log1p_unit, view_kernel
from setwise.linear.solver import Solution
from setwise.rows import for_rows, thread_count

Array = NDArray[Any]

# Entries, rows or features by labels, of one block: a block holds one array of rows by labels (of
# the inputs' type), and about ten of features by labels.
BLOCK_ENTRIES = 2**24
# The intercept, ∓30, of a label without positive or negative examples: its best one is infinite.
INTERCEPT_LIMIT = 30.0
# Labels that a kernel takes through a row together: what they add to stays in the cache.
STRIP = 128
# Rows that dense products take at a time.
CHUNK_ROWS = 2048
MAX_INNER = 250
MAX_HALVINGS = 40
ARMIJO = 1e-4


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
    point = np.zeros((d + 1, n_labels))
    if start is not None:
        point[:d] = start.weights
        point[d] = start.intercept if fit_intercept else 0.0
    mass = float(weights.sum())
    share = weights @ y_true / mass
    # In float64: counts in uint8 would begin anew at 256.
    counted = (weights > 0).astype(np.float64)
    some = counted @ y_true
    missing = counted.sum() - some
    settled = ((some == 0) | (missing == 0)) & fit_intercept
    if fit_intercept:
        if start is None:
            point[d, ~settled] = np.log(share[~settled]) - np.log1p(-share[~settled])
        point[:d, settled] = 0.0
        point[d, settled] = np.where(some[settled] == 0, -INTERCEPT_LIMIT, INTERCEPT_LIMIT)
    value, norm, n_iter = 0.0, 0.0, 0
    if settled.any():
        rest = np.logaddexp(0.0, -INTERCEPT_LIMIT)
        value += float(settled.sum()) * rest
        norm = _settled_norm(inputs, weights / mass)
    open_labels = np.flatnonzero(~settled)
    rows_type = SparseRows if issparse(inputs) else DenseRows
    for first in range(0, len(open_labels), block):
        labels = open_labels[first : first + block]
        rows = rows_type(
            inputs, np.ascontiguousarray(y_true[:, labels], np.uint8), weights, mass,
            np.empty((n, len(labels)), inputs.dtype),
        )  # fmt: skip
        part = _Block(rows, float(alpha), fit_intercept, float(tol))
        found, values, norms, steps = part.solve(np.ascontiguousarray(point[:, labels]), max_iter)
        point[:, labels] = found
        value += float(values.sum())
        norm, n_iter = max(norm, float(norms.max())), max(n_iter, steps)
    if norm > tol:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"the solver stopped after {n_iter} iterations with a gradient of {norm:.2e}, above "
            f"tol = {tol:g}; raise max_iter or alpha, or scale the features",
            ConvergenceWarning,
            stacklevel=3,
        )
    return Solution(point[:d].copy(), point[d].copy(), np.empty(0), value, norm, n_iter)


def _settled_norm(inputs: Any, share: Array) -> float:
    """The largest gradient entry of a label at weights 0 and the limit of the intercept."""
    by_weight = np.abs(np.asarray(inputs.T @ share)).max(initial=1.0)
    return float(by_weight) / (1.0 + np.exp(INTERCEPT_LIMIT))


@dataclass(frozen=True)
class _Block:
    """Labels that are solved together; points are (d + 1, m), the intercepts last."""

    rows: SparseRows | DenseRows
    alpha: float
    fit_intercept: bool
    tol: float

    def solve(self, point: Array, max_iter: int) -> tuple[Array, Array, Array, int]:
        """The minimisers, their values and largest gradient entries, and the steps taken."""
        active = np.arange(point.shape[1])
        values, gradient, diagonal = self._evaluate(point, active)
        begun = values.copy()
        norms = np.abs(gradient).max(axis=0)
        first = np.linalg.norm(gradient, axis=0)
        steps = 0
        while steps < max_iter:
            kept = norms[active] > self.tol
            if not kept.all():
                active, gradient, diagonal = active[kept], gradient[:, kept], diagonal[:, kept]
            if len(active) == 0:
                break
            steps += 1
            direction = self._direction(gradient, diagonal, active, first[active])
            slope = np.einsum("ij,ij->j", gradient, direction)
            wrong = ~(slope < 0)
            if wrong.any():
                direction[:, wrong] = -gradient[:, wrong] / diagonal[:, wrong]
                slope[wrong] = np.einsum("ij,ij->j", gradient[:, wrong], direction[:, wrong])
            # Columns of the active labels that have not found a step yet.
            left, length = np.arange(len(active)), 1.0
            for _ in range(MAX_HALVINGS):
                labels = active[left]
                trial = point[:, labels] + length * direction[:, left]
                new_values, new_gradient, new_diagonal = self._evaluate(trial, labels)
                new_norms = np.abs(new_gradient).max(axis=0)
                old = values[labels]
                good = new_values <= old + ARMIJO * length * slope[left]
                # Where the value cannot tell any more, the gradient does.
                good |= (
                    (new_values <= old + 1e-14 * np.abs(old))
                    & (new_norms < norms[labels])
                    & (new_values <= begun[labels])
                )
                taken, place = labels[good], left[good]
                point[:, taken], values[taken] = trial[:, good], new_values[good]
                norms[taken] = new_norms[good]
                if len(left) == len(active) and good.all():
                    gradient, diagonal = new_gradient, new_diagonal
                else:
                    gradient[:, place], diagonal[:, place] = (
                        new_gradient[:, good], new_diagonal[:, good],
                    )  # fmt: skip
                left, length = left[~good], length / 2.0
                if len(left) == 0:
                    break
            if len(left):
                # No step lowers these: they are as good as float64 can tell.
                kept = np.ones(len(active), bool)
                kept[left] = False
                active, gradient, diagonal = active[kept], gradient[:, kept], diagonal[:, kept]
        return point, values, norms, steps

    def _evaluate(self, point: Array, labels: Array) -> tuple[Array, Array, Array]:
        """Values (m,), gradients and diagonals of the Hessians (d + 1, m); keeps the curvatures."""
        values, gradient, diagonal = self.rows.evaluate(point, labels)
        values += self.alpha / 2.0 * np.einsum("ij,ij->j", point[:-1], point[:-1])
        gradient[:-1] += self.alpha * point[:-1]
        diagonal[:-1] += self.alpha
        diagonal += 1e-12
        if not self.fit_intercept:
            gradient[-1] = 0.0
        return values, gradient, diagonal

    def _direction(self, gradient: Array, diagonal: Array, labels: Array, first: Array) -> Array:
        """-H^-1 g, truncated; labels that are near enough leave, and the passes get narrower."""
        dtype = self.rows.curvature.dtype
        size = np.linalg.norm(gradient, axis=0)
        enough = np.maximum(size * np.minimum(0.25, np.sqrt(size / first)), self.tol / 2.0)
        # Unit gradients: float32 neither overflows nor vanishes.
        direction = np.zeros_like(gradient)
        residual = (-gradient / size).astype(dtype)
        scale = (1.0 / diagonal).astype(dtype)
        if not self.fit_intercept:
            scale[-1] = 0.0
        found = np.zeros_like(residual)
        along = residual * scale
        product = np.einsum("ij,ij->j", residual, along, dtype=np.float64)
        going, columns = enough < size, np.arange(len(labels))
        enough = enough / size
        work = self.rows.workspace(len(labels))
        for _ in range(MAX_INNER):
            if going.sum() <= 0.75 * len(going):
                done = ~going
                direction[:, columns[done]] = found[:, done] * size[columns[done]]
                if not going.any():
                    return direction
                columns, product, enough = columns[going], product[going], enough[going]
                residual, scale, found, along = (
                    np.ascontiguousarray(a[:, going]) for a in (residual, scale, found, along)
                )
                going = np.ones(len(columns), bool)
                work = self.rows.workspace(len(columns))
            self.rows.multiply(along, labels[columns], work)
            for_rows(
                step_labels, len(columns), work, self.rows.mass, self.alpha, scale, enough,
                found, residual, along, product, going, least=16,
            )  # fmt: skip
        direction[:, columns] = found * size[columns]
        return direction


@dataclass(frozen=True)
class SparseRows:
    """CSR inputs: kernels take a row through a strip of labels, forth and back."""

    inputs: Any
    y_true: Array
    weights: Array
    mass: float
    curvature: Array

    def evaluate(self, point: Array, labels: Array) -> tuple[Array, Array, Array]:
        """Mean loss, its gradients and the diagonals of its Hessians."""
        m = len(labels)
        tasks, parts = _tasks(self.inputs.shape[0], m)
        value = np.empty((parts, m))
        gradient = np.empty((parts, *point.shape))
        diagonal = np.empty((parts, *point.shape), self.inputs.dtype)

        def run(first: int, last: int) -> None:
            for part, start, stop, left, right in tasks[first:last]:
                evaluate_rows(
                    start, stop, left, right, self.inputs.indptr, self.inputs.indices,
                    self.inputs.data, point, labels, self.y_true, self.weights, self.curvature,
                    np.empty((2, right - left)), np.empty(right - left, self.inputs.dtype),
                    value[part], gradient[part], diagonal[part],
                )  # fmt: skip

        for_rows(run, len(tasks), least=1)
        return (
            value.sum(axis=0) / self.mass,
            gradient.sum(axis=0) / self.mass,
            diagonal.sum(axis=0, dtype=np.float64) / self.mass,
        )

    def workspace(self, m: int) -> Array:
        """Room for products with the Hessian, (parts, d + 1, m)."""
        parts = _tasks(self.inputs.shape[0], m)[1]
        return np.empty((parts, self.inputs.shape[1] + 1, m), self.inputs.dtype)

    def multiply(self, along: Array, labels: Array, work: Array) -> None:
        """[X 1]^T D [X 1] along; ``work`` holds parts to be summed."""
        tasks, _ = _tasks(self.inputs.shape[0], len(labels))

        def run(first: int, last: int) -> None:
            for part, start, stop, left, right in tasks[first:last]:
                multiply_rows(
                    start, stop, left, right, self.inputs.indptr, self.inputs.indices,
                    self.inputs.data, along, labels, self.curvature,
                    np.empty(right - left, along.dtype), work[part],
                )  # fmt: skip

        for_rows(run, len(tasks), least=1)


@dataclass(frozen=True)
class DenseRows:
    """Dense inputs: matrix products over ranges of rows."""

    inputs: Any
    y_true: Array
    weights: Array
    mass: float
    curvature: Array

    def evaluate(self, point: Array, labels: Array) -> tuple[Array, Array, Array]:
        """Mean loss, its gradients and the diagonals of its Hessians."""
        value = np.zeros(len(labels))
        gradient, diagonal = np.zeros_like(point), np.zeros_like(point)
        for start in range(0, len(self.inputs), CHUNK_ROWS):
            part = self.inputs[start : start + CHUNK_ROWS].astype(np.float64)
            scores = np.ascontiguousarray(part @ point[:-1])
            loss, bend = np.zeros_like(scores), np.empty_like(scores)
            for_rows(
                link_rows, len(part), start, point[-1], labels, self.y_true, self.weights,
                self.curvature, scores, loss, bend,
            )  # fmt: skip
            value += loss.sum(axis=0)
            gradient[:-1] += part.T @ scores
            gradient[-1] += scores.sum(axis=0)
            diagonal[:-1] += (part * part).T @ bend
            diagonal[-1] += bend.sum(axis=0)
        return value / self.mass, gradient / self.mass, diagonal / self.mass

    def workspace(self, m: int) -> Array:
        """Room for products with the Hessian, (1, d + 1, m)."""
        return np.empty((1, self.inputs.shape[1] + 1, m), self.inputs.dtype)

    def multiply(self, along: Array, labels: Array, work: Array) -> None:
        """[X 1]^T D [X 1] along."""
        work[:] = 0.0
        everything = len(labels) == self.curvature.shape[1]
        for start in range(0, len(self.inputs), CHUNK_ROWS):
            part = self.inputs[start : start + CHUNK_ROWS]
            curvature = self.curvature[start : start + CHUNK_ROWS]
            ahead = part @ along[:-1] + along[-1]
            ahead *= curvature if everything else curvature[:, labels]
            work[0, :-1] += part.T @ ahead
            work[0, -1] += ahead.sum(axis=0)


def _tasks(n: int, m: int) -> tuple[list[tuple[int, int, int, int, int]], int]:
    """(part, first and last row, first and last label) of what threads share; how many parts.

    Labels come in strips; rows are parted too, each part with sums of its own, where there are few
    strips.
    """
    strips = max(1, -(-m // STRIP))
    wanted = 4 * thread_count()
    parts = 1 if strips * 2 > wanted else max(1, min(-(-wanted // (2 * strips)), n // 64))
    return [
        (p, n * p // parts, n * (p + 1) // parts, m * s // strips, m * (s + 1) // strips)
        for p in range(parts)
        for s in range(strips)
    ], parts


@register_jitable
def _link(scores, positive, weight, losses, bends):
    """Adds weighted losses, puts slopes in place of scores and keeps second derivatives.

    A loop of arithmetic only, over arrays: numbers returned from a function are not vectorised.
    """
    for j in range(len(scores)):
        score = scores[j]
        small = exp(-abs(score))
        share = 1.0 / (1.0 + small)
        chance = (1.0 if score >= 0.0 else small) * share
        loss = max(score * (1.0 - 2.0 * positive[j]), 0.0) + log1p_unit(small)
        losses[j] += weight * loss
        scores[j] = weight * (chance - positive[j])
        bends[j] = weight * small * share * share


@view_kernel
def evaluate_rows(
    start, stop, left, right, begins, indices, data, point, labels, y_true, weights, curvature,
    scratch, bends, value, gradient, diagonal,
):  # fmt: skip
    """Sums over rows of loss, gradient and Hessian diagonal, for a strip of labels."""
    m, d = right - left, len(point) - 1
    scores, positive, losses = scratch[0], scratch[1], value[left:right]
    labels = labels[left:right]
    gradient[:, left:right] = 0.0
    diagonal[:, left:right] = 0.0
    losses[:] = 0.0
    for row in range(start, stop):
        _forward(begins[row], begins[row + 1], indices, data, point, left, right, scores)
        known, bent = y_true[row], curvature[row]
        for j in range(m):
            positive[j] = known[labels[j]]
        _link(scores, positive, weights[row], losses, bends)
        for j in range(m):
            bent[labels[j]] = bends[j]
        for k in range(begins[row], begins[row + 1]):
            x, square = np.float64(data[k]), data[k] * data[k]
            into, onto = gradient[indices[k], left:right], diagonal[indices[k], left:right]
            for j in range(m):
                into[j] += x * scores[j]
            for j in range(m):
                onto[j] += square * bends[j]
        into, onto = gradient[d, left:right], diagonal[d, left:right]
        for j in range(m):
            into[j] += scores[j]
            onto[j] += bends[j]


@view_kernel
def multiply_rows(
    start, stop, left, right, begins, indices, data, along, labels, curvature, ahead, out
):
    """Sums over rows of x D (x · along), for a strip of labels."""
    m, d = right - left, len(along) - 1
    labels = labels[left:right]
    out[:, left:right] = 0.0
    for row in range(start, stop):
        _forward(begins[row], begins[row + 1], indices, data, along, left, right, ahead)
        bent = curvature[row]
        for j in range(m):
            ahead[j] *= bent[labels[j]]
        for k in range(begins[row], begins[row + 1]):
            x, into = data[k], out[indices[k], left:right]
            for j in range(m):
                into[j] += x * ahead[j]
        into = out[d, left:right]
        for j in range(m):
            into[j] += ahead[j]


@register_jitable
def _forward(begin, end, indices, data, point, left, right, scores):
    """scores = x · point + the last row of point, for a strip of labels; four entries at a time."""
    m, last = right - left, point[len(point) - 1, left:right]
    for j in range(m):
        scores[j] = last[j]
    whole = begin + (end - begin) // 4 * 4
    for k in range(begin, whole, 4):
        x0, x1, x2, x3 = data[k], data[k + 1], data[k + 2], data[k + 3]
        p0, p1 = point[indices[k], left:right], point[indices[k + 1], left:right]
        p2, p3 = point[indices[k + 2], left:right], point[indices[k + 3], left:right]
        for j in range(m):
            scores[j] += (x0 * p0[j] + x1 * p1[j]) + (x2 * p2[j] + x3 * p3[j])
    for k in range(whole, end):
        x, p = data[k], point[indices[k], left:right]
        for j in range(m):
            scores[j] += x * p[j]


@kernel
def link_rows(
    start, stop, offset, intercept, labels, y_true, weights, curvature, scores, losses, bends
):
    """Losses and second derivatives of rows; the first ones take the place of the scores."""
    m, positive = len(labels), np.empty(len(labels))
    for row in range(start, stop):
        here, known, bent = scores[row], y_true[offset + row], curvature[offset + row]
        for j in range(m):
            here[j] += intercept[j]
            positive[j] = known[labels[j]]
        _link(here, positive, weights[offset + row], losses[row], bends[row])
        for j in range(m):
            bent[labels[j]] = bends[row, j]


@kernel
def step_labels(
    left, right, work, mass, alpha, scale, enough, found, residual, along, product, going
):
    """One step of conjugate gradients for the labels in a range, given the parts of H along."""
    m, rows = right - left, len(along)
    curvature, length, size, new = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)
    share, pull = along.dtype.type(1.0 / mass), along.dtype.type(alpha)
    factor = np.zeros(m, along.dtype)
    enough, product, going = enough[left:right], product[left:right], going[left:right]
    for i in range(rows):
        penalty = pull if i < rows - 1 else pull * 0
        bent, way = work[0, i, left:right], along[i, left:right]
        for part in range(1, len(work)):
            other = work[part, i, left:right]
            for j in range(m):
                bent[j] += other[j]
        for j in range(m):
            bent[j] = bent[j] * share + penalty * way[j]
            curvature[j] += np.float64(bent[j] * way[j])
    for j in range(m):
        if going[j] and curvature[j] > 0.0:
            length[j] = product[j] / curvature[j]
        factor[j] = length[j]
    for i in range(rows):
        bent, way, scaled = work[0, i, left:right], along[i, left:right], scale[i, left:right]
        sums, rest = found[i, left:right], residual[i, left:right]
        for j in range(m):
            sums[j] += factor[j] * way[j]
            rest[j] -= factor[j] * bent[j]
            square = np.float64(rest[j] * rest[j])
            size[j] += square
            new[j] += square * scaled[j]
    for j in range(m):
        going[j] = length[j] > 0.0 and np.sqrt(size[j]) > enough[j]
        factor[j] = new[j] / product[j] if going[j] else 0.0
        product[j] = new[j]
    for i in range(rows):
        way, scaled, rest = along[i, left:right], scale[i, left:right], residual[i, left:right]
        for j in range(m):
            way[j] = rest[j] * scaled[j] + factor[j] * way[j]
