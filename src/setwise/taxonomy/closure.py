"""Label sets and the labels above theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.elementary import kernel
from setwise.entries import rows_of
from setwise.rows import for_rows

Array = NDArray[Any]


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
def ancestor_lists(starts, parents):
    """Where the list of each label ends (the first begins at 0), and the labels in it.

    The list has the label and all above it, each once. ``parents[starts[i] : starts[i + 1]]`` are
    the parents of label i, -1 for the virtual root.
    """
    n_labels = len(starts) - 1
    seen, ends = np.full(n_labels, -1), np.zeros(n_labels + 1, dtype=np.int64)
    found, size = np.empty(4 * n_labels, dtype=np.int64), 0
    for label in range(n_labels):
        if size + n_labels > len(found):
            grown = np.empty(2 * len(found), dtype=np.int64)
            grown[:size] = found[:size]
            found = grown
        found[size] = label
        seen[label] = label
        now, size = size, size + 1
        while now < size:
            for place in range(starts[found[now]], starts[found[now] + 1]):
                above = parents[place]
                if above >= 0 and seen[above] != label:
                    seen[above] = label
                    found[size] = above
                    size += 1
            now += 1
        ends[label + 1] = size
    return ends, found[:size].copy()


def add_ancestors(sets: Array, upward: Array) -> Array:
    """The closed sets, from fresh ones of type uint8, which are changed."""
    for_rows(close_rows, len(sets), upward, sets)
    return sets


def first_open(sets: Any, upward: Array) -> Array:
    """Of each set the place of an edge that leaves it, nearest to a root; -1 if closed, (n,)."""
    if isinstance(sets, np.ndarray):
        out = np.empty(len(sets), dtype=np.int64)
        for_rows(open_rows, len(sets), upward, sets, out)
        return out
    return _first_open_entries(sets, upward)


def _first_open_entries(sets: Any, upward: Array) -> Array:
    """The same for CSR sets: every stored label beside each of its parents."""
    out = np.full(sets.shape[0], -1, dtype=np.int64)
    order = np.argsort(upward[:, 1], kind="stable")
    children = upward[order, 1]
    low = np.searchsorted(children, sets.indices, "left")
    count = np.searchsorted(children, sets.indices, "right") - low
    row = np.repeat(rows_of(sets), count)
    edge = order[np.repeat(low, count) + _within(count)]
    n_labels = sets.shape[1]
    present = rows_of(sets) * n_labels + sets.indices
    missing = ~np.isin(row * n_labels + upward[edge, 0], present)
    # The last edge of the order, nearest to a root, stays.
    np.maximum.at(out, row[missing], edge[missing])
    return np.where(out >= 0, upward[out, 2], -1) if len(upward) else out


def _within(count: Array) -> Array:
    """0, 1, ..., count - 1 for each count, one after the other."""
    ends = np.cumsum(count)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - count, count)
