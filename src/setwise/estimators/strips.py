"""Products of sparse rows with what many labels have, a strip of labels at a time.

A kernel takes a strip of `LANES` labels through a sparse row as one SIMD value held in registers,
so that a sum over the entries of the row goes through memory once and not at every entry, and what
a strip needs of all features stays in the cache of the processor. Arrays (rows, m) are
(strips, rows, LANES) there. What lanes without a label hold does not matter, if it is finite.
"""

# pyright: reportCallIssue=false
# (Intrinsics are called without the context their definitions name first.)

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from setwise.kernels import inner, view_kernel
from setwise.lanes import add, empty_lanes, load_row, store_row
from setwise.threads import for_rows

Array = NDArray[Any]

LANES = 32
# For fewer labels scipy's products take no longer.
FEWEST = 8


def product(inputs: Any, weights: Array) -> Array:
    """inputs @ weights, (n, m), for dense or CSR inputs (n, d) of the same type."""
    m = weights.shape[1]
    if not _is_csr(inputs) or m < FEWEST:
        return np.asarray(inputs @ weights)
    strips = in_strips(weights)
    out = empty_lanes((len(strips), inputs.shape[0]), LANES, weights.dtype)
    zero = np.zeros((1, LANES), weights.dtype)
    for_rows(product_rows, inputs.shape[0], *_entries(inputs), strips, zero, out)
    return from_lanes(out, m)


def transposed_product(inputs: Any, values: Array) -> Array:
    """inputs^T @ values, (d, m); the same bits however many threads there are."""
    m = values.shape[1]
    if not _is_csr(inputs) or m < FEWEST:
        return np.asarray(inputs.T @ values)
    strips = in_strips(values)
    out = empty_lanes((len(strips), inputs.shape[1]), LANES, values.dtype)
    out[:] = 0.0
    for_rows(transposed_strips, len(strips), *_entries(inputs), strips, out, least=1)
    return from_lanes(out, m)


def in_strips(array: Array) -> Array:
    """Columns (rows, m) in lanes, 0 beyond the last one."""
    (n, m), whole = array.shape, array.shape[1] // LANES
    strips = empty_lanes((-(-m // LANES), n), LANES, array.dtype)
    strips[whole:] = 0.0
    for strip, first in enumerate(range(0, m, LANES)):
        part = array[:, first : first + LANES]
        strips[strip, :, : part.shape[1]] = part
    return strips


def from_lanes(strips: Array, m: int) -> Array:
    """The columns of m labels, (rows, m)."""
    out = np.empty((strips.shape[1], m), strips.dtype)
    for strip, first in enumerate(range(0, m, LANES)):
        part = out[:, first : first + LANES]
        part[:] = strips[strip, :, : part.shape[1]]
    return out


def _is_csr(inputs: Any) -> bool:
    return issparse(inputs) and inputs.format == "csr"


def _entries(inputs: Any) -> Iterator[Array]:
    """Arrays of CSR rows; for those that cannot be written kernels would be compiled anew."""
    for part in (inputs.indptr, inputs.indices, inputs.data):
        yield part if part.flags.writeable else part.copy()


# ----------------------------------------------------------------------------------------- kernels
# CSR rows are begins (n + 1,), indices (nnz,), data (nnz,).


@inner
def forth(begin, end, indices, data, point, total):
    """total + x · point (d, LANES), for the row x whose entries are those from begin to end."""
    # (Unsigned: Python's meaning of a negative index costs as much as the sum.)
    for k in range(np.uint64(begin), np.uint64(end)):
        total = add(total, data[k], load_row(point, indices[k], LANES))
    return total


@inner
def back(begin, end, indices, data, lanes, out):
    """Adds x times lanes to out (d, LANES)."""
    for k in range(np.uint64(begin), np.uint64(end)):
        store_row(out, indices[k], add(load_row(out, indices[k], LANES), data[k], lanes))


@view_kernel
def product_rows(start, stop, begins, indices, data, point, zero, out):
    """x · point of each row, for all strips of point (strips, d, LANES); zero is (1, LANES)."""
    nothing = load_row(zero, 0, LANES)
    for strip in range(len(point)):
        here, there = point[strip], out[strip]
        for row in range(start, stop):
            sum = forth(begins[row], begins[row + 1], indices, data, here, nothing)
            store_row(there, row, sum)


@view_kernel
def transposed_strips(start, stop, begins, indices, data, values, out):
    """The sum over rows of x times values (strips, n, LANES), for a range of strips."""
    for strip in range(start, stop):
        given, there = values[strip], out[strip]
        for row in range(len(begins) - 1):
            lanes = load_row(given, row, LANES)
            back(begins[row], begins[row + 1], indices, data, lanes, there)
