"""Generalised cross-entropy on the cube, minimised for certain although it is not convex.

With p_i = sigmoid(2 h_i) the risk is (T - G(p)) / q, where

    G(p) = sum over y' of worth(y') prod_i (p_i if label i is in y' else 1 - p_i)^q

is linear in each pair (p_i^q, (1 - p_i)^q). That pair runs along an arc that bends inwards, so
over an interval of p_i it stays within the triangle of the chord and the tangents at its ends, and
G over a box is at most its largest value at the corners of the triangles. The error of that bound
falls with the square of the box: boxes that cannot hold the maximum are dropped, others halved.
"""

from __future__ import annotations

import numpy as np

from setwise.spaces.space import Array

MOST_LABELS = 3
MOST_BOXES = 20_000
MOST_ROUNDS = 200


def largest(worth: Array, q: float, known: float, accuracy: float = 1e-10) -> float:
    """An upper bound on G over all p, within the accuracy of ``known``, a value G takes.

    The worth is (2^l,), label sets in the order of binary numbers. If the boxes become too many,
    what has been shown so far is returned.
    """
    n_labels = int(np.log2(len(worth)))
    table = worth.reshape((2,) * n_labels)
    boxes = np.tile([0.0, 1.0], (1, n_labels, 1))
    for _ in range(MOST_ROUNDS):
        bounds = upper_bounds(table, q, boxes)
        open_boxes = bounds > known + accuracy
        if not open_boxes.any():
            return known + accuracy
        boxes = _halved(boxes[open_boxes])
        if len(boxes) > MOST_BOXES:
            break
    return max(known + accuracy, float(bounds.max()))


def upper_bounds(table: Array, q: float, boxes: Array) -> Array:
    """The largest value of the linear form at the corners of the triangles of each box, (n,)."""
    corners = _triangles(boxes, q)
    values = np.broadcast_to(table, (len(boxes), *table.shape))
    for label in range(table.ndim):
        # The axis of the label's state gives way to one of its corners, put last.
        values = np.einsum("ns...,ncs->n...c", values, corners[:, label])
    return values.reshape(len(boxes), -1).max(axis=1)


def _triangles(boxes: Array, q: float) -> Array:
    """Ends of the arc and where the tangents there meet, as (state 0, state 1), (n, l, 3, 2)."""
    power = 1.0 / q
    ends = np.stack([(1.0 - boxes) ** q, boxes**q], axis=-1)
    # The arc is x^r + y^r = 1; its tangent at (a, b) is a^(r-1) x + b^(r-1) y = 1.
    normal = ends ** (power - 1.0)
    (a, b), (c, d) = np.moveaxis(normal[:, :, 0], -1, 0), np.moveaxis(normal[:, :, 1], -1, 0)
    determinant = a * d - b * c
    safe = np.where(np.abs(determinant) > 1e-14, determinant, 1.0)
    meeting = np.stack([(d - b) / safe, (a - c) / safe], axis=-1)
    # On a tiny interval the corner of the square around it serves as well.
    corner = ends.max(axis=2)
    meeting = np.where((np.abs(determinant) > 1e-14)[..., None], meeting, corner)
    return np.concatenate([ends, np.minimum(meeting, corner)[:, :, None]], axis=2)


def _halved(boxes: Array) -> Array:
    """Each box split in two across its longest side."""
    side = (boxes[:, :, 1] - boxes[:, :, 0]).argmax(axis=1)
    rows = np.arange(len(boxes))
    middle = boxes[rows, side].mean(axis=1)
    low, high = boxes.copy(), boxes.copy()
    low[rows, side, 1], high[rows, side, 0] = middle, middle
    return np.concatenate([low, high])
