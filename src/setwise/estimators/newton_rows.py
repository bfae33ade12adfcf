"""Passes over the inputs that the Newton steps of all labels share: losses, gradients, products.

Labels stand in strips of `LANES`. Arrays by label, (labels, d + 1) with the intercept last, go
through the inputs as strips, (strips, d + 1, LANES), and so do arrays by row, (strips, n, LANES).
What lanes without a label hold does not matter, as long as it is finite.
"""

# pyright: reportCallIssue=false
# (Intrinsics are called without the context their definitions name first.)

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload, register_jitable
from numpy.typing import NDArray

from setwise.estimators.lanes import LANES, add, empty_lanes, load, store, times
from setwise.kernels import exp, kernel, log1p_unit, view_kernel
from setwise.threads import for_rows, thread_count

Array = NDArray[Any]

# Rows that dense products take at a time.
CHUNK_ROWS = 2048
# Rows whose losses are added up before they go to the sums in float64.
FEW_ROWS = 64


@dataclass(frozen=True)
class SparseRows:
    """CSR inputs: kernels take a row through a strip of labels, forth and back."""

    inputs: Any
    weights: Array
    mass: float

    def evaluate(
        self, point: Array, y_true: Array, curvature: Array, dtype: Any
    ) -> tuple[Array, Array, Array]:
        """Mean losses, their gradients and mean second derivatives, with arithmetic in ``dtype``.

        Puts the second derivatives of the rows into ``curvature``.
        """
        m, strips = len(point), to_strips(point, dtype)
        tasks, parts = self._tasks(len(strips))
        gradient = empty_lanes((parts, *strips.shape[:2]), dtype)
        sums = np.zeros((parts, len(strips), 2, LANES))

        def run(first: int, last: int) -> None:
            for part, strip, start, stop in tasks[first:last]:
                evaluate_rows(
                    start, stop, self.inputs.indptr, self.inputs.indices, self.inputs.data,
                    self.weights, strips[strip], y_true[strip], curvature[strip],
                    empty_lanes((3,), dtype), sums[part, strip], gradient[part, strip],
                )  # fmt: skip

        for_rows(run, len(tasks), least=1)
        value, bend = from_strips(sums.sum(axis=0), m).T / self.mass
        total = gradient[0] if parts == 1 else gradient.sum(axis=0, dtype=np.float64)
        return value, from_strips(total, m) / self.mass, bend

    def squares(self) -> Array:
        """The mean square of each feature, (d,)."""
        weights = self.weights.astype(self.inputs.dtype)
        return self.inputs.power(2).T @ weights / self.mass

    def workspace(self, along: Array) -> Array:
        """Room for products with the Hessian, (parts, strips, d + 1, LANES)."""
        return empty_lanes((self._tasks(len(along))[1], *along.shape[:2]), along.dtype)

    def multiply(self, along: Array, curvature: Array, m: int, work: Array) -> None:
        """[X 1]^T D [X 1] along, for m labels; ``work`` holds parts to be summed."""
        tasks, _ = self._tasks(len(along))

        def run(first: int, last: int) -> None:
            for part, strip, start, stop in tasks[first:last]:
                multiply_rows(
                    start, stop, self.inputs.indptr, self.inputs.indices, self.inputs.data,
                    along[strip], curvature[strip], work[part, strip],
                )  # fmt: skip

        for_rows(run, len(tasks), least=1)

    def _tasks(self, strips: int) -> tuple[list[tuple[int, int, int, int]], int]:
        """(part, strip, first and last row) of what threads share; how many parts.

        Rows are parted, each part with sums of its own, where there are few strips.
        """
        n, threads = self.inputs.shape[0], thread_count()
        parts = 1 if threads == 1 else max(1, min(-(-4 * threads // max(strips, 1)), n // 64))
        return [
            (part, strip, n * part // parts, n * (part + 1) // parts)
            for part in range(parts)
            for strip in range(strips)
        ], parts


@dataclass(frozen=True)
class DenseRows:
    """Dense inputs: matrix products over ranges of rows."""

    inputs: Any
    weights: Array
    mass: float

    def evaluate(
        self, point: Array, y_true: Array, curvature: Array, dtype: Any
    ) -> tuple[Array, Array, Array]:
        """Mean losses, their gradients and mean second derivatives, with arithmetic in ``dtype``.

        Puts the second derivatives of the rows into ``curvature``.
        """
        value, gradient, bend = np.zeros(len(point)), np.zeros_like(point), np.zeros(len(point))
        for start in range(0, len(self.inputs), CHUNK_ROWS):
            part = self.inputs[start : start + CHUNK_ROWS].astype(dtype, copy=False)
            weights = self.weights[start : start + CHUNK_ROWS]
            for strip in range(len(y_true)):
                labels = slice(strip * LANES, min((strip + 1) * LANES, len(point)))
                here = point[labels].astype(dtype)
                scores = part @ here[:, :-1].T + here[:, -1]
                losses, bends = np.zeros_like(scores), curvature[strip, start:]
                for_rows(
                    link_rows, len(part), scores, y_true[strip, start:], weights, losses, bends
                )
                value[labels] += losses.sum(axis=0, dtype=np.float64)
                gradient[labels, :-1] += scores.T @ part
                gradient[labels, -1] += scores.sum(axis=0, dtype=np.float64)
                bends = bends[: len(part), : len(here)]
                bend[labels] += bends.sum(axis=0, dtype=np.float64)
        return value / self.mass, gradient / self.mass, bend / self.mass

    def squares(self) -> Array:
        """The mean square of each feature, (d,)."""
        return np.einsum("ij,ij,i->j", self.inputs, self.inputs, self.weights) / self.mass

    def workspace(self, along: Array) -> Array:
        """Room for products with the Hessian, (1, strips, d + 1, LANES)."""
        return empty_lanes((1, *along.shape[:2]), along.dtype)

    def multiply(self, along: Array, curvature: Array, m: int, work: Array) -> None:
        """[X 1]^T D [X 1] along, for m labels."""
        work[:] = 0.0
        for start in range(0, len(self.inputs), CHUNK_ROWS):
            part = self.inputs[start : start + CHUNK_ROWS]
            for strip in range(len(along)):
                lanes = slice(0, m - strip * LANES)
                ahead = part @ along[strip, :-1, lanes] + along[strip, -1, lanes]
                ahead *= curvature[strip, start : start + CHUNK_ROWS, lanes]
                work[0, strip, :-1, lanes] += part.T @ ahead
                work[0, strip, -1, lanes] += ahead.sum(axis=0)


def to_strips(array: Array, dtype: Any) -> Array:
    """(labels, d) as (strips, d, LANES)."""
    m, d = array.shape
    strips = empty_lanes((-(-m // LANES), d), dtype)
    for strip, into in enumerate(strips):
        part = array[strip * LANES : (strip + 1) * LANES]
        into[:, : len(part)] = part.T
        into[:, len(part) :] = 0.0
    return strips


def from_strips(strips: Array, n_labels: int) -> Array:
    """(strips, d, LANES) as float64 (labels, d)."""
    array = np.empty((n_labels, strips.shape[1]))
    for strip, part in enumerate(strips):
        into = array[strip * LANES : (strip + 1) * LANES]
        into[:] = part[:, : len(into)].T
    return array


def move_labels(
    strips: Array, labels: Array, into: Array | None = None, places: Array | None = None
) -> Array:
    """Copies labels to places in other strips, by default to the front of new ones; returns these.

    Within the same strips, labels may move to the front, in their order.
    """
    n, count = strips.shape[1], -(-len(labels) // LANES)
    if into is None:
        into = empty_lanes((count, n), strips.dtype)
    if places is None:
        places = np.arange(len(labels))
    firsts = [lanes // LANES * (n * LANES) + lanes % LANES for lanes in (labels, places)]
    for_rows(move_rows, n, strips.reshape(-1), into.reshape(-1), *firsts)
    return into[:count]


@kernel
def move_rows(start, stop, entries, into, sources, places):
    """Copies lanes, given by their first entries, for a range of rows; strip by strip."""
    for first in range(0, len(sources), LANES):
        some, others = sources[first : first + LANES], places[first : first + LANES]
        for row in range(start, stop):
            for j in range(len(some)):
                into[np.uint64(others[j] + row * LANES)] = entries[np.uint64(some[j] + row * LANES)]


@register_jitable
def _total(begin, end, indices, data, point):
    """x · point + the last row of point."""
    total = load(point, len(point) - 1)
    for k in range(begin, end):
        total = add(total, data[k], load(point, indices[k]))
    return total


@register_jitable
def _spread(begin, end, indices, data, lanes, out):
    """Adds x times lanes to out, and lanes to its last row."""
    for k in range(begin, end):
        store(out, indices[k], add(load(out, indices[k]), data[k], lanes))
    store(out, len(out) - 1, add(load(out, len(out) - 1), 1.0, lanes))


@view_kernel
def multiply_rows(start, stop, begins, indices, data, along, curvature, out):
    """Sums over rows of x D (x · along), for a strip of labels."""
    out[:] = 0.0
    for row in range(start, stop):
        begin, end = begins[row], begins[row + 1]
        ahead = times(load(curvature, row), _total(begin, end, indices, data, along))
        _spread(begin, end, indices, data, ahead, out)


@view_kernel
def evaluate_rows(
    start, stop, begins, indices, data, weights, point, y_true, curvature, scratch, sums, gradient
):
    """Sums over rows of loss, second derivative and gradient, for a strip of labels."""
    gradient[:] = 0.0
    scratch[:] = 0.0
    scores, losses, bends = scratch[0], scratch[1], scratch[2]
    for row in range(start, stop):
        begin, end = begins[row], begins[row + 1]
        store(scratch, 0, _total(begin, end, indices, data, point))
        _link(scores, y_true[row], weights[row], losses, curvature[row])
        _spread(begin, end, indices, data, load(scratch, 0), gradient)
        for j in range(LANES):
            bends[j] += curvature[row, j]
        if row % FEW_ROWS == 0 or row == stop - 1:
            for j in range(LANES):
                sums[0, j] += losses[j]
                sums[1, j] += bends[j]
                losses[j] = bends[j] = 0.0


@kernel
def link_rows(start, stop, scores, y_true, weights, losses, bends):
    """Losses and second derivatives of rows; the first ones take the place of the scores."""
    for row in range(start, stop):
        _link(scores[row], y_true[row], weights[row], losses[row], bends[row])


@register_jitable
def _link(scores, y_true, weight, losses, bends):
    """Adds weighted losses, puts slopes in place of scores and keeps second derivatives.

    A loop of arithmetic only, over arrays: numbers returned from a function are not vectorised.
    """
    one, weight = scores.dtype.type(1.0), scores.dtype.type(weight)
    zero = one - one
    for j in range(len(scores)):
        score, positive = scores[j], scores.dtype.type(y_true[j])
        small = exp(-abs(score))
        share = one / (one + small)
        chance = (one if score >= zero else small) * share
        losses[j] += weight * (max(score, zero) - score * positive + _log1p(small))
        scores[j] = weight * (chance - positive)
        bends[j] = weight * small * share * share


def _log1p(x):
    """log(1 + x) for 0 <= x <= 1 in the precision of x. Only for compiled code."""
    return np.log1p(x)


@overload(_log1p)
def _overload_log1p(x):
    if x == types.float32:
        return lambda x: _short_log1p(x)
    return lambda x: log1p_unit(x)


@register_jitable
def _short_log1p(x):
    """The series of `log1p_unit`, 2 artanh(x / (2 + x)), as long as float32 needs it."""
    one = np.float32(1.0)
    s = x / (one + one + x)
    u = s * s
    t = np.float32(1.0 / 13.0)
    for k in range(5, -1, -1):
        t = t * u + one / np.float32(2 * k + 1)
    return (s + s) * t
