"""One pass over logits, labels or gradients, shared among the threads of the kernels.

Torch's own threads would be woken for it, and wait for each other, beside those of the kernels; and
a check of its own for each array would read everything once more.
"""

from __future__ import annotations

import numpy as np

from setwise.kernels import kernel
from setwise.spaces.space import Array
from setwise.threads import for_rows
from setwise.validation import refuse_not_finite


@kernel
def scaled_rows(start, stop, rows, factors, out, sums):
    """out = factor * row in the precision of the rows, and the sum of each row in float64."""
    for row in range(start, stop):
        line, target, factor = rows[row], out[row], factors[row]
        total = 0.0
        for j in range(len(line)):
            target[j] = factor * line[j]
            total += np.float64(line[j])
        sums[row] = total


def scaled(rows: Array, factors: Array, name: str | None = None) -> Array:
    """A new array with each row (n, m) times its factor (n,), which has the type of the rows.

    With a name, entries that are not finite are refused under it.
    """
    out, sums = np.empty(rows.shape, rows.dtype), np.empty(len(rows))
    for_rows(scaled_rows, len(rows), np.ascontiguousarray(rows), factors, out, sums)
    # A sum is finite only if its terms are.
    if name is not None and not np.isfinite(sums).all():
        refuse_not_finite(rows, name)
    return out


@kernel
def byte_rows(start, stop, numbers, out, wrong):
    """Whether each number is not 0, and how many of a row are neither 0 nor 1."""
    for row in range(start, stop):
        line, target = numbers[row], out[row]
        count = 0
        for j in range(len(line)):
            present = line[j] != 0
            target[j] = present
            count += present and line[j] != 1
        wrong[row] = count


def as_bytes(numbers: Array, name: str) -> Array:
    """0/1 bytes of numbers that are 0 or 1; others are refused."""
    out = np.empty(numbers.shape, np.uint8)
    wrong = np.empty(len(numbers), np.int64)
    for_rows(byte_rows, len(numbers), np.ascontiguousarray(numbers), out, wrong)
    if wrong.any():
        row, column = (int(i) for i in np.argwhere((numbers != 0) & (numbers != 1))[0])
        raise ValueError(
            f"{name} must hold only 0 and 1, but {name}[{row}, {column}] is {numbers[row, column]}"
        )
    return out
