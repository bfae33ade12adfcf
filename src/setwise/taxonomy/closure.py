"""Label sets and the labels above theirs.

Dense sets take one pass over the edges, the deepest first. Sparse sets take the stored labels of a
row and those above them, with a mark for each label that the row has already: time and memory are
those of the answer. The edges to label i stand at ``starts[i]`` to ``starts[i + 1]`` among all of
them; ``parents`` are their parents, -1 for the virtual root.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.kernels import kernel
from setwise.threads import for_rows

Array = NDArray[Any]

# A set is sorted if it has fewer than a 16th of all labels; else all marks are looked through.
SORTED_SHARE = 16


@kernel
def close_rows(start, stop, upward, sets):
    """Add to each set what stands above its labels, in place; deepest edges first."""
    for row in range(start, stop):
        line = sets[row]
        for edge in range(len(upward)):
            line[upward[edge, 0]] |= line[upward[edge, 1]]


@kernel
def open_rows(start, stop, upward, sets, out):
    """The place of an edge of which a set has only the child, -1 if it has none such."""
    for row in range(start, stop):
        line, found = sets[row], -1
        for edge in range(len(upward)):
            if line[upward[edge, 1]] > line[upward[edge, 0]]:
                found = upward[edge, 2]
        out[row] = found


@kernel
def climb(row, ends, labels, starts, parents, mark, found):
    """Mark the labels of a row and all above them; they are the first of ``found``, so many."""
    size, now = 0, 0
    for place in range(ends[row], ends[row + 1]):
        mark[labels[place]] = row
        found[size] = labels[place]
        size += 1
    while now < size:
        for place in range(starts[found[now]], starts[found[now] + 1]):
            above = parents[place]
            if above >= 0 and mark[above] != row:
                mark[above] = row
                found[size] = above
                size += 1
        now += 1
    return size


@kernel
def closed_sizes(start, stop, ends, labels, starts, parents, sizes):
    """How many labels each closed set has."""
    mark, found = np.full(len(starts) - 1, -1), np.empty(len(starts) - 1, dtype=np.int64)
    for row in range(start, stop):
        sizes[row] = climb(row, ends, labels, starts, parents, mark, found)


@kernel
def closed_labels(start, stop, ends, labels, starts, parents, out_ends, out):
    """The labels of each closed set in order, those of row r from ``out_ends[r]`` on."""
    n_labels = len(starts) - 1
    mark, found = np.full(n_labels, -1), np.empty(n_labels, dtype=np.int64)
    for row in range(start, stop):
        size = climb(row, ends, labels, starts, parents, mark, found)
        place = out_ends[row]
        if SORTED_SHARE * size < n_labels:
            found[:size].sort()
            for now in range(size):
                out[place + now] = found[now]
        else:
            for label in range(n_labels):
                if mark[label] == row:
                    out[place] = label
                    place += 1


@kernel
def open_entries(start, stop, ends, labels, starts, parents, levels, out):
    """As `open_rows`, of sparse sets."""
    mark = np.full(len(starts) - 1, -1)
    for row in range(start, stop):
        for place in range(ends[row], ends[row + 1]):
            mark[labels[place]] = row
        found, lowest = -1, len(starts)
        for place in range(ends[row], ends[row + 1]):
            label = labels[place]
            for edge in range(starts[label], starts[label + 1]):
                is_open = parents[edge] >= 0 and mark[parents[edge]] != row
                if is_open and levels[label] <= lowest:
                    found, lowest = edge, levels[label]
        out[row] = found


def add_ancestors(sets: Array, upward: Array) -> Array:
    """The closed sets, from fresh ones of type uint8, which are changed."""
    for_rows(close_rows, len(sets), upward, sets)
    return sets


def with_ancestors(sets: Any, starts: Array, parents: Array) -> Any:
    """The closed sets of tidy CSR ones, CSR of type uint8."""
    from scipy.sparse import csr_array

    n_rows, n_labels = sets.shape
    ends, labels = sets.indptr.astype(np.int64), sets.indices.astype(np.int64)
    out_ends = np.zeros(n_rows + 1, dtype=np.int64)
    for_rows(closed_sizes, n_rows, ends, labels, starts, parents, out_ends[1:])
    np.cumsum(out_ends, out=out_ends)
    index = np.int32 if max(out_ends[-1], n_labels) < 2**31 else np.int64
    out = np.empty(out_ends[-1], dtype=index)
    for_rows(closed_labels, n_rows, ends, labels, starts, parents, out_ends, out)
    ones = np.ones(len(out), dtype=np.uint8)
    return csr_array((ones, out, out_ends.astype(index)), shape=sets.shape)


def first_open(sets: Array, upward: Array) -> Array:
    """Of each set the place of an edge that leaves it, nearest to a root; -1 if closed, (n,)."""
    out = np.empty(len(sets), dtype=np.int64)
    for_rows(open_rows, len(sets), upward, sets, out)
    return out


def first_open_entry(sets: Any, starts: Array, parents: Array, levels: Array) -> Array:
    """The same of tidy CSR sets."""
    out = np.empty(sets.shape[0], dtype=np.int64)
    ends, labels = sets.indptr.astype(np.int64), sets.indices.astype(np.int64)
    for_rows(open_entries, len(out), ends, labels, starts, parents, levels, out)
    return out
