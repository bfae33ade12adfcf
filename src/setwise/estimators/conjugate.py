"""Conjugate gradients for many labels at once, each with a Hessian of its own.

All labels take their products in one pass over the rows. One that is near enough leaves, so that
the passes get narrower, and the last few do not hold up the others.
"""

# pyright: reportCallIssue=false
# (Intrinsics are called without the context their definitions name first.)

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.estimators.lanes import LANES, add, empty_lanes, load, store, times
from setwise.estimators.newton_rows import (
    DenseRows,
    SparseRows,
    from_strips,
    move_labels,
    to_strips,
)
from setwise.kernels import view_kernel
from setwise.threads import for_rows

Array = NDArray[Any]

MAX_STEPS = 250
# Labels close up when they need no more than this part of the strips they are in.
CLOSE_UP = 0.65
# The last labels end as they are when they are such a part of one strip and of all labels.
LAST = 0.25


def directions(
    rows: SparseRows | DenseRows, curvature: Array, gradient: Array, scale: Array, enough: Array,
    alpha: float, free: int,
) -> Array:  # fmt: skip
    """H^-1 gradient for each label, until the residual is no longer than ``enough`` of it.

    H = [X 1]^T D [X 1] / mass + alpha, with the intercept last and without a penalty.

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
    residual, scale = (to_strips(array, rows.inputs.dtype) for array in (gradient, scale))
    residual[:, free:] = 0.0
    found, along = np.zeros_like(residual), residual * scale
    product = np.einsum("sij,sij->sj", residual, along, dtype=np.float64)
    enough, going = _by_lane(enough), _by_lane(np.ones(len(labels), bool))
    work, scratch = rows.workspace(along), empty_lanes((len(along), 3), along.dtype)
    for _ in range(MAX_STEPS):
        kept = np.flatnonzero(going)
        if len(kept) <= LAST * min(LANES, len(gradient)):
            break
        if -(-len(kept) // LANES) <= CLOSE_UP * len(along):
            direction[labels] = from_strips(found, len(labels))
            labels = labels[kept]
            residual, scale, found, along, curvature = (
                move_labels(array, kept, array)
                for array in (residual, scale, found, along, curvature)
            )
            product, enough, going = (
                _by_lane(array.ravel()[kept]) for array in (product, enough, going)
            )
            work = rows.workspace(along)
        rows.multiply(along, curvature, len(labels), work)
        for_rows(
            step_strips, len(along), work, rows.mass, alpha, free, scale, enough, found, residual,
            along, product, going, scratch, least=1,
        )  # fmt: skip
    direction[labels] = from_strips(found, len(labels))
    return direction


def _by_lane(array: Array) -> Array:
    """(m,) as (strips, LANES), the empty lanes 0."""
    lanes = np.zeros((-(-len(array) // LANES), LANES), array.dtype)
    lanes.ravel()[: len(array)] = array
    return lanes


@view_kernel
def step_strips(
    start, stop, work, mass, alpha, free, scale, enough, found, residual, along, product, going,
    scratch,
):  # fmt: skip
    """One step for a range of strips, given the parts of [X 1]^T D [X 1] along."""
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
