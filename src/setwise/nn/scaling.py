"""Rows times a number each, shared among the threads of the kernels.

Torch's own threads would be woken for it, and wait for each other, beside those of the kernels.
"""

from __future__ import annotations

import numpy as np

from setwise.elementary import kernel
from setwise.rows import for_rows
from setwise.spaces.space import Array


@kernel
def scaled_rows(start, stop, rows, factors, out):
    """out = factor * row, in the precision of the rows."""
    for row in range(start, stop):
        line, target, factor = rows[row], out[row], factors[row]
        for j in range(len(line)):
            target[j] = factor * line[j]


def scaled(rows: Array, factors: Array) -> Array:
    """A new array with each row (n, m) times its factor (n,), which has the type of the rows."""
    out = np.empty(rows.shape, rows.dtype)
    for_rows(scaled_rows, len(rows), np.ascontiguousarray(rows), factors, out)
    return out
