"""The losses of label sets against true ones, as a matrix."""

from __future__ import annotations

import numpy as np

from setwise.spaces.space import Array
from setwise.targets.target import Target


def loss_matrix(target: Target, truths: Array, sets: Array) -> Array:
    """The loss of each set (a column) against each truth (a row), (m, K)."""
    return np.column_stack([target.loss(np.tile(row, (len(truths), 1)), truths) for row in sets])
