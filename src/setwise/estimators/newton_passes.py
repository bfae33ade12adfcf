"""Passes over the inputs that the Newton steps of all labels share, and the directions they give.

Labels are columns: weights are (d + 1, m) with the intercept last, curvatures (n, m). Through the
inputs they go in lanes, as arrays (strips, rows, LANES), the way of `strips`.
"""

# pyright: reportCallIssue=false
# (Intrinsics are called without the context their definitions name first.)

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from setwise.estimators.strips import LANES, back, forth, from_lanes
from setwise.kernels import exp, inner, kernel, log1p_unit, view_kernel
from setwise.lanes import add, empty_lanes, load_row, store_row
from setwise.threads import for_rows, thread_count

Array = NDArray[Any]

# Rows that dense products take at a time; steps of the conjugate gradients.
CHUNK_ROWS, MAX_STEPS = 2048, 250
# Labels close up when they need no more than the first part of the strips they are in; the last
# ones end as they are when they are no more than the second part of one strip and of all labels.
CLOSE_UP, LAST = 0.65, 0.25


def in_lanes(
    array: Array, labels: Array, into: Array | None = None, places: Array | None = None
) -> Array:
    """Copies labels of an array (rows, m), or of one in lanes, to places in lanes; returns these.

    By default to the first places of new ones, the rest 0. Within the same lanes labels may move to
    the front, in their order.
    """
    n, strips = array.shape[-2], -(-len(labels) // LANES)
    if into is None:
        into = empty_lanes((strips, n), LANES, array.dtype)
        into[strips - 1 :] = 0
    source, step = (labels, array.shape[1]) if array.ndim == 2 else (_places(labels, n), LANES)
    target = _places(np.arange(len(labels)) if places is None else places, n)
    for_rows(move_rows, n, array.reshape(-1), source, step, into.reshape(-1), target)
    return into[:strips]


def _places(labels: Array, n: int) -> Array:
    """Where labels begin in lanes of n rows."""
    return labels // LANES * (n * LANES) + labels % LANES


@dataclass(frozen=True)
class Passes:
    """Inputs X (n, d), dense or CSR, with the weights of their rows (n,) and the sum of these.

    Dense inputs are taken through matrix products, which have threads of their own; CSR inputs
    through kernels that take a row forth and back through a strip. Their rows are shared in parts
    with sums of their own where there are fewer strips than threads can be busy with.
    """

    inputs: Any
    weights: Array
    mass: float

    def evaluate(
        self, point: Array, y_true: Array, curvature: Array, costs: Array
    ) -> tuple[Array, Array, Array]:
        """Mean losses (m,), their gradients (d + 1, m) and mean second derivatives (m,).

        ``point`` is (d + 1, m); y_true and curvature are (n, m) in lanes: the second derivatives of
        the rows are put there. ``costs`` (2, m), in lanes too, multiply false and true labels.
        """
        m = point.shape[1]
        lanes = in_lanes(point, np.arange(m))
        work = self.room(lanes)
        sums = np.zeros((*work.shape[:2], 2, LANES))
        scratch = empty_lanes(sums.shape[:3], LANES, np.float64)
        rest = self.weights, lanes, y_true, curvature, costs, sums, scratch
        if not self._share(evaluate_rows, work, *rest):
            for rows, strip, width in self._chunks(m):
                part = self.inputs[rows].astype(np.float64, copy=False)
                scores = part @ lanes[strip, :-1, :width] + lanes[strip, -1, :width]
                losses, bends = np.empty_like(scores), curvature[strip, rows]
                link = scores, y_true[strip, rows], self.weights[rows], costs[strip]
                for_rows(link_rows, len(scores), *link, losses, bends)
                sums[0, strip, 0, :width] += losses.sum(axis=0)
                sums[0, strip, 1, :width] += bends[:, :width].sum(axis=0, dtype=np.float64)
                work[0, strip, :-1, :width] += part.T @ scores
                work[0, strip, -1, :width] += scores.sum(axis=0)
        value, bend = from_lanes(sums.sum(axis=0), m) / self.mass
        return value, from_lanes(work.sum(axis=0), m) / self.mass, bend

    def multiply(self, along: Array, curvature: Array, m: int, work: Array) -> None:
        """[X 1]^T D [X 1] along, for m labels in lanes, as parts in ``work`` to be summed."""
        if not self._share(multiply_rows, work, along, curvature):
            for rows, strip, width in self._chunks(m):
                part, way = self.inputs[rows], along[strip, :, :width]
                ahead = (part @ way[:-1] + way[-1]) * curvature[strip, rows, :width]
                work[0, strip, :-1, :width] += part.T @ ahead
                work[0, strip, -1, :width] += ahead.sum(axis=0)

    def room(self, along: Array) -> Array:
        """Room for the parts of a product in lanes, (parts, strips, d + 1, LANES)."""
        threads = thread_count() if issparse(self.inputs) else 1
        enough = min(-(-4 * threads // len(along)), self.inputs.shape[0] // 64)
        parts = max(1, enough) if threads > 1 else 1
        return empty_lanes((parts, *along.shape[:2]), LANES, along.dtype)

    def _share(self, rows_kernel: Any, work: Array, *arguments: Any) -> bool:
        """Run a kernel of CSR rows, if inputs are: its tasks are parts of the rows by strips."""
        work[:] = 0.0
        if not issparse(self.inputs):
            return False
        csr = self.inputs.indptr, self.inputs.indices, self.inputs.data
        for_rows(rows_kernel, work.shape[0] * work.shape[1], *csr, work, *arguments, least=1)
        return True

    def _chunks(self, m: int) -> Iterator[tuple[slice, int, int]]:
        """Rows, strips and their widths for dense products."""
        n = self.inputs.shape[0]
        for first in range(0, n, CHUNK_ROWS):
            for strip in range(-(-m // LANES)):
                width = min(LANES, m - strip * LANES)
                yield slice(first, min(first + CHUNK_ROWS, n)), strip, width


def directions(
    passes: Passes, curvature: Array, gradient: Array, scale: Array, enough: Array,
    alpha: float, free: int,
) -> Array:  # fmt: skip
    """H^-1 gradient for each label, until the residual is no longer than ``enough`` of it.

    H = [X 1]^T D [X 1] / mass + alpha, with the intercept last and without a penalty, by
    preconditioned conjugate gradients. All labels take their products in one pass over the rows;
    one that is near enough leaves, so that passes get narrower, and the last few do not hold up the
    others.

    ``curvature`` is D (strips, n, LANES), not the same afterwards. Gradients (d + 1, m) are of unit
    length: float32 neither overflows nor vanishes. ``scale`` (d + 1, m) is about H^-1, by
    coordinate: any positive one is right, a good one is fast. The first ``free`` coordinates move.
    """
    labels, direction = np.arange(gradient.shape[1]), np.empty_like(gradient)
    few, dtype = LAST * min(LANES, len(labels)), passes.inputs.dtype
    residual, scale = (in_lanes(array.astype(dtype), labels) for array in (gradient, scale))
    residual[:, free:] = 0.0
    found, along = np.zeros_like(residual), residual * scale
    product = np.einsum("sij,sij->sj", residual, along, dtype=np.float64)[:, None]
    # (In the type of y_true, whose kernel moves them too.)
    going = np.ones(len(labels), np.uint8)
    enough, going = (in_lanes(array[None], labels) for array in (enough, going))
    work, penalty = passes.room(along), np.append(np.full(gradient.shape[0] - 1, alpha), 0.0)
    share, penalty = dtype.type(1.0 / passes.mass), penalty.astype(dtype)
    for _ in range(MAX_STEPS):
        kept = np.flatnonzero(going)
        if len(kept) <= few:
            break
        if -(-len(kept) // LANES) <= CLOSE_UP * len(along):
            direction[:, labels] = from_lanes(found, len(labels))
            labels = labels[kept]
            residual, scale, found, along, curvature = (
                in_lanes(array, kept, array) for array in (residual, scale, found, along, curvature)
            )
            product, enough, going = (in_lanes(array, kept) for array in (product, enough, going))
            work = passes.room(along)
        passes.multiply(along, curvature, len(labels), work)
        sums = empty_lanes((len(along), 3), LANES, dtype)
        for_rows(
            step_strips, len(along), work, share, penalty, free, scale, enough, found, residual,
            along, product, going, sums, least=1,
        )  # fmt: skip
    direction[:, labels] = from_lanes(found, len(labels))
    return direction


# ----------------------------------------------------------------------------------------- kernels
# CSR rows are begins (n + 1,), indices (nnz,), data (nnz,). A task is a part of the rows and a
# strip; its sums go to work[part, strip], (d + 1, LANES).


@kernel
def move_rows(start, stop, entries, sources, step, into, places):
    """Copies labels, by their first entries; rows are ``step``, there LANES, entries apart."""
    for first in range(0, len(sources), LANES):
        some, others = sources[first : first + LANES], places[first : first + LANES]
        for row in range(start, stop):
            for j in range(len(some)):
                into[np.uint64(others[j] + row * LANES)] = entries[np.uint64(some[j] + row * step)]


@inner
def _forth(begin, end, indices, data, point):
    """x · point + the last row of point (d + 1, LANES)."""
    return forth(begin, end, indices, data, point, load_row(point, len(point) - 1, LANES))


@inner
def _back(begin, end, indices, data, lanes, out):
    """Adds x times lanes to out (d + 1, LANES), and lanes to its last row."""
    back(begin, end, indices, data, lanes, out)
    store_row(out, len(out) - 1, add(load_row(out, len(out) - 1, LANES), 1.0, lanes))


@view_kernel
def multiply_rows(start, stop, begins, indices, data, work, along, curvature):
    """Sums over rows of x D (x · along); D is (strips, n, LANES)."""
    n, parts = len(begins) - 1, len(work)
    for task in range(start, stop):
        part, strip = divmod(task, len(along))
        way, bends, out = along[strip], curvature[strip], work[part, strip]
        for row in range(n * part // parts, n * (part + 1) // parts):
            begin, end = begins[row], begins[row + 1]
            ahead = load_row(bends, row, LANES) * _forth(begin, end, indices, data, way)
            _back(begin, end, indices, data, ahead, out)


@view_kernel
def evaluate_rows(
    start, stop, begins, indices, data, work, weights, point, y_true, curvature, costs, sums,
    scratch,
):  # fmt: skip
    """Sums over rows of losses and second derivatives (parts, strips, 2, LANES), and of gradients.

    y_true and curvature are (strips, n, LANES), costs (strips, 2, LANES), scratch is like sums.
    """
    n, parts = len(begins) - 1, len(work)
    for task in range(start, stop):
        part, strip = divmod(task, len(point))
        here, true, bends, out = point[strip], y_true[strip], curvature[strip], work[part, strip]
        total, ahead = sums[part, strip], scratch[part, strip]
        for row in range(n * part // parts, n * (part + 1) // parts):
            begin, end = begins[row], begins[row + 1]
            store_row(ahead, 0, _forth(begin, end, indices, data, here))
            _link(ahead[0], true[row], weights[row], costs[strip], ahead[1], bends[row])
            _back(begin, end, indices, data, load_row(ahead, 0, LANES), out)
            for j in range(LANES):
                total[0, j] += ahead[1, j]
                total[1, j] += bends[row, j]


@kernel
def link_rows(start, stop, scores, y_true, weights, costs, losses, bends):
    """`_link` for a range of rows: scores and losses are (rows, m), the others in lanes."""
    for row in range(start, stop):
        _link(scores[row], y_true[row], weights[row], costs, losses[row], bends[row])


@inner
def _link(scores, y_true, weight, costs, losses, bends):
    """The logistic loss of a row: weighted losses and second derivatives; slopes become scores.

    A loop of arithmetic only, over arrays: numbers returned from a function are not vectorised.
    """
    if_false, if_true = costs[0], costs[1]
    for j in range(len(scores)):
        score, positive = scores[j], np.float64(y_true[j])
        cost = weight * (positive * if_true[j] + (1.0 - positive) * if_false[j])
        small = exp(-abs(score))
        share = 1.0 / (1.0 + small)
        chance = (1.0 if score >= 0.0 else small) * share
        losses[j] = cost * (max(score, 0.0) - score * positive + log1p_unit(small))
        scores[j] = cost * (chance - positive)
        bends[j] = cost * small * share * share


@view_kernel
def step_strips(
    start, stop, work, share, penalty, free, scale, enough, found, residual, along, product, going,
    sums,
):  # fmt: skip
    """One step of the conjugate gradients for a range of strips.

    ``work`` (parts, strips, d + 1, LANES) has the parts of [X 1]^T D [X 1] along, to be multiplied
    by ``share``; penalty is (d + 1,); scale, found, residual and along are (strips, d + 1, LANES),
    enough, product and going (strips, 1, LANES), sums (strips, 3, LANES).
    """
    for strip in range(start, stop):
        length, size, new = sums[strip, 0], sums[strip, 1], sums[strip, 2]
        sums[strip] = 0.0
        for i in range(free):
            bent, way = work[0, strip, i], along[strip, i]
            for part in range(1, len(work)):
                for j in range(LANES):
                    bent[j] += work[part, strip, i, j]
            for j in range(LANES):
                bent[j] = share * bent[j] + penalty[i] * way[j]
                length[j] += bent[j] * way[j]
        goes, old = going[strip, 0], product[strip, 0]
        for j in range(LANES):
            length[j] = old[j] / length[j] if goes[j] and length[j] > 0.0 else 0.0
        for i in range(free):
            bent, way, rest = work[0, strip, i], along[strip, i], residual[strip, i]
            for j in range(LANES):
                found[strip, i, j] += length[j] * way[j]
                rest[j] -= length[j] * bent[j]
                size[j] += rest[j] * rest[j]
                new[j] += rest[j] * rest[j] * scale[strip, i, j]
        for j in range(LANES):
            goes[j] = length[j] > 0.0 and size[j] > enough[strip, 0, j] ** 2
            size[j] = new[j] / old[j] if goes[j] else 0.0
            old[j] = new[j]
        for i in range(free):
            way, rest, factor = along[strip, i], residual[strip, i], size
            for j in range(LANES):
                way[j] = rest[j] * scale[strip, i, j] + factor[j] * way[j]
