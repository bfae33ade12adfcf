"""Passes over the inputs that the Newton steps of all labels share, and the directions they give.

Arrays by label, (labels, d + 1) with the intercept last, go through the inputs as strips of labels,
(strips, d + 1, LANES), and so do arrays by row, (strips, n, LANES); see `lanes`.
"""

# pyright: reportCallIssue=false
# (Intrinsics are called without the context their definitions name first.)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.extending import register_jitable
from scipy.sparse import issparse

from setwise.estimators.lanes import (
    LANES,
    Array,
    add,
    empty_lanes,
    from_strips,
    load,
    move_labels,
    n_strips,
    store,
    times,
    to_strips,
)
from setwise.kernels import exp, kernel, log1p_unit, view_kernel
from setwise.threads import for_rows, thread_count

# Rows that dense products take at a time.
CHUNK_ROWS = 2048
# Steps of the conjugate gradients.
MAX_STEPS = 250
# Labels close up when they need no more than this part of the strips they are in.
CLOSE_UP = 0.65
# The last labels end as they are when they are such a part of one strip and of all labels.
LAST = 0.25


@dataclass(frozen=True)
class Passes:
    """Inputs X (n, d), dense or CSR, with the weights of their rows (n,) and the sum of these.

    Dense inputs are taken through matrix products; CSR inputs through kernels that take a row forth
    and back through a strip of labels, so that what lies between stays in registers.
    """

    inputs: Any
    weights: Array
    mass: float

    def evaluate(self, point: Array, y_true: Array, curvature: Array) -> tuple[Array, Array, Array]:
        """Mean losses (m,), their gradients (m, d + 1) and mean second derivatives (m,).

        Puts the second derivatives of the rows, (strips, n, LANES), into ``curvature``.
        """
        strips = to_strips(point, np.float64)
        gradient = self.workspace(strips)
        gradient[:] = 0.0
        sums = np.zeros((*gradient.shape[:2], 2, LANES))

        def run(part: int, strip: int, rows: slice) -> None:
            here, true, bends = strips[strip], y_true[strip], curvature[strip]
            total, out = sums[part, strip], gradient[part, strip]
            if issparse(self.inputs):
                evaluate_rows(
                    rows.start, rows.stop, *self._csr, self.weights, here, true, bends,
                    empty_lanes((2,), np.float64), total, out,
                )  # fmt: skip
                return
            part_inputs = self.inputs[rows].astype(np.float64, copy=False)
            width = min(LANES, len(point) - strip * LANES)
            scores = part_inputs @ here[:-1, :width] + here[-1, :width]
            losses, weights = np.empty_like(scores), self.weights[rows]
            for_rows(link_rows, len(scores), scores, true[rows], weights, losses, bends[rows])
            total[0, :width] += losses.sum(axis=0)
            total[1, :width] += bends[rows, :width].sum(axis=0, dtype=np.float64)
            out[:-1, :width] += part_inputs.T @ scores
            out[-1, :width] += scores.sum(axis=0)

        self._share(run, len(point))
        value, bend = from_strips(sums.sum(axis=0), len(point)).T / self.mass
        return value, from_strips(gradient.sum(axis=0), len(point)) / self.mass, bend

    def multiply(self, along: Array, curvature: Array, m: int, work: Array) -> None:
        """[X 1]^T D [X 1] along, for m labels; ``work`` holds parts to be summed."""
        work[:] = 0.0

        def run(part: int, strip: int, rows: slice) -> None:
            way, bends, out = along[strip], curvature[strip], work[part, strip]
            if issparse(self.inputs):
                multiply_rows(rows.start, rows.stop, *self._csr, way, bends, out)
                return
            part_inputs, width = self.inputs[rows], min(LANES, m - strip * LANES)
            ahead = part_inputs @ way[:-1, :width] + way[-1, :width]
            ahead *= bends[rows, :width]
            out[:-1, :width] += part_inputs.T @ ahead
            out[-1, :width] += ahead.sum(axis=0)

        self._share(run, m)

    def workspace(self, along: Array) -> Array:
        """Room for products with strips (strips, d + 1, LANES), (parts, strips, d + 1, LANES)."""
        return empty_lanes((self._parts(len(along)), *along.shape[:2]), along.dtype)

    @property
    def _csr(self) -> tuple[Array, Array, Array]:
        return self.inputs.indptr, self.inputs.indices, self.inputs.data

    def _parts(self, strips: int) -> int:
        """How many parts the rows of CSR inputs are shared in, each with sums of its own.

        More than one where there are fewer strips than threads can be busy with.
        """
        threads = thread_count() if issparse(self.inputs) else 1
        most = self.inputs.shape[0] // 64
        return 1 if threads == 1 else max(1, min(-(-4 * threads // max(strips, 1)), most))

    def _share(self, run: Callable[[int, int, slice], None], m: int) -> None:
        """Calls ``run(part, strip, rows)`` for all strips of m labels and all rows."""
        n, strips = self.inputs.shape[0], n_strips(m)
        if not issparse(self.inputs):
            # Matrix products have threads of their own.
            for start in range(0, n, CHUNK_ROWS):
                for strip in range(strips):
                    run(0, strip, slice(start, min(start + CHUNK_ROWS, n)))
            return
        parts = self._parts(strips)

        def work(first: int, last: int) -> None:
            for task in range(first, last):
                part, strip = divmod(task, strips)
                run(part, strip, slice(n * part // parts, n * (part + 1) // parts))

        for_rows(work, parts * strips, least=1)


def directions(
    passes: Passes, curvature: Array, gradient: Array, scale: Array, enough: Array,
    alpha: float, free: int,
) -> Array:  # fmt: skip
    """H^-1 gradient for each label, until the residual is no longer than ``enough`` of it.

    H = [X 1]^T D [X 1] / mass + alpha, with the intercept last and without a penalty, by
    preconditioned conjugate gradients. All labels take their products in one pass over the rows;
    one that is near enough leaves, so that passes get narrower, and the last few do not hold up the
    others.

    Parameters
    ----------
    curvature : array of shape (strips, n, LANES)
        D, which is not the same afterwards.
    gradient, scale : array of shape (m, d + 1)
        Gradients of unit length: float32 neither overflows nor vanishes. The scale is about H^-1,
        by coordinate: any positive one is right, a good one is fast.
    enough : array of shape (m,)
    free : int
        How many of the d + 1 coordinates move: the first ones.
    """
    labels, direction = np.arange(len(gradient)), np.empty_like(gradient)
    residual, scale = (to_strips(array, passes.inputs.dtype) for array in (gradient, scale))
    residual[:, free:] = 0.0
    found, along = np.zeros_like(residual), residual * scale
    product = np.einsum("sij,sij->sj", residual, along, dtype=np.float64)
    enough, going = _by_lane(enough), _by_lane(np.ones(len(labels), bool))
    work, scratch = passes.workspace(along), empty_lanes((len(along), 3), along.dtype)
    for _ in range(MAX_STEPS):
        kept = np.flatnonzero(going)
        if len(kept) <= LAST * min(LANES, len(gradient)):
            break
        if n_strips(len(kept)) <= CLOSE_UP * len(along):
            direction[labels] = from_strips(found, len(labels))
            labels = labels[kept]
            residual, scale, found, along, curvature = (
                move_labels(array, kept, array)
                for array in (residual, scale, found, along, curvature)
            )
            product, enough, going = (
                _by_lane(array.ravel()[kept]) for array in (product, enough, going)
            )
            work = passes.workspace(along)
        passes.multiply(along, curvature, len(labels), work)
        for_rows(
            step_strips, len(along), work, passes.mass, alpha, free, scale, enough, found, residual,
            along, product, going, scratch, least=1,
        )  # fmt: skip
    direction[labels] = from_strips(found, len(labels))
    return direction


def _by_lane(array: Array) -> Array:
    """(m,) as (strips, LANES), the empty lanes 0."""
    lanes = np.zeros((n_strips(len(array)), LANES), array.dtype)
    lanes.ravel()[: len(array)] = array
    return lanes


# ----------------------------------------------------------------------------------------- kernels
# CSR rows are begins (n + 1,), indices (nnz,), data (nnz,).


@register_jitable
def _total(begin, end, indices, data, point):
    """x · point + the last row of point (d + 1, LANES)."""
    total = load(point, len(point) - 1)
    for k in range(begin, end):
        total = add(total, data[k], load(point, indices[k]))
    return total


@register_jitable
def _spread(begin, end, indices, data, lanes, out):
    """Adds x times lanes to out (d + 1, LANES), and lanes to its last row."""
    for k in range(begin, end):
        store(out, indices[k], add(load(out, indices[k]), data[k], lanes))
    store(out, len(out) - 1, add(load(out, len(out) - 1), 1.0, lanes))


@view_kernel
def multiply_rows(start, stop, begins, indices, data, along, curvature, out):
    """Adds the sums over rows of x D (x · along) to out (d + 1, LANES); D is (n, LANES)."""
    for row in range(start, stop):
        begin, end = begins[row], begins[row + 1]
        ahead = times(load(curvature, row), _total(begin, end, indices, data, along))
        _spread(begin, end, indices, data, ahead, out)


@view_kernel
def evaluate_rows(
    start, stop, begins, indices, data, weights, point, y_true, curvature, scratch, sums, gradient
):
    """Adds the sums over rows of loss and second derivative to sums (2, LANES), and the gradient.

    point and gradient are (d + 1, LANES), y_true and curvature (n, LANES), scratch (2, LANES).
    """
    scores, losses = scratch[0], scratch[1]
    for row in range(start, stop):
        begin, end = begins[row], begins[row + 1]
        store(scratch, 0, _total(begin, end, indices, data, point))
        _link(scores, y_true[row], weights[row], losses, curvature[row])
        _spread(begin, end, indices, data, load(scratch, 0), gradient)
        for j in range(LANES):
            sums[0, j] += losses[j]
            sums[1, j] += curvature[row, j]


@kernel
def link_rows(start, stop, scores, y_true, weights, losses, bends):
    """`_link` for a range of rows: scores and losses are (rows, m), the others (rows, LANES)."""
    for row in range(start, stop):
        _link(scores[row], y_true[row], weights[row], losses[row], bends[row])


@register_jitable
def _link(scores, y_true, weight, losses, bends):
    """The logistic loss of a row: weighted losses and second derivatives; slopes become scores.

    A loop of arithmetic only, over arrays: numbers returned from a function are not vectorised.
    """
    for j in range(len(scores)):
        score, positive = scores[j], np.float64(y_true[j])
        small = exp(-abs(score))
        share = 1.0 / (1.0 + small)
        chance = (1.0 if score >= 0.0 else small) * share
        losses[j] = weight * (max(score, 0.0) - score * positive + log1p_unit(small))
        scores[j] = weight * (chance - positive)
        bends[j] = weight * small * share * share


@view_kernel
def step_strips(
    start, stop, work, mass, alpha, free, scale, enough, found, residual, along, product, going,
    scratch,
):  # fmt: skip
    """One step of the conjugate gradients for a range of strips.

    ``work`` (parts, strips, d + 1, LANES) has the parts of [X 1]^T D [X 1] along; scale, found,
    residual and along are (strips, d + 1, LANES), enough, product and going (strips, LANES).
    """
    for strip in range(start, stop):
        bent, way, rest = work[0, strip], along[strip], residual[strip]
        scaled, sums, some = scale[strip], found[strip], scratch[strip]
        some[:] = 0.0
        curvature, size, new = load(some, 0), load(some, 0), load(some, 0)
        for i in range(free):
            here = load(bent, i)
            for part in range(1, len(work)):
                here = add(here, 1.0, load(work[part, strip], i))
            here = add(times(1.0 / mass, here), alpha if i < len(way) - 1 else 0.0, load(way, i))
            store(bent, i, here)
            curvature = add(curvature, here, load(way, i))
        store(some, 0, curvature)
        for j in range(LANES):
            if going[strip, j] and some[0, j] > 0.0:
                some[1, j] = product[strip, j] / some[0, j]
                some[2, j] = -some[1, j]
        length, back = load(some, 1), load(some, 2)
        for i in range(free):
            store(sums, i, add(load(sums, i), length, load(way, i)))
            left = add(load(rest, i), back, load(bent, i))
            store(rest, i, left)
            square = times(left, left)
            size, new = add(size, 1.0, square), add(new, square, load(scaled, i))
        store(some, 0, size)
        store(some, 2, new)
        for j in range(LANES):
            going[strip, j] = some[1, j] > 0.0 and some[0, j] > enough[strip, j] ** 2
            some[1, j] = some[2, j] / product[strip, j] if going[strip, j] else 0.0
            product[strip, j] = some[2, j]
        factor = load(some, 1)
        for i in range(free):
            store(way, i, add(times(load(rest, i), load(scaled, i)), factor, load(way, i)))
