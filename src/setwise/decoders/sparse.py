"""Decoding of sparse probabilities without a dense copy.

Rows are taken in groups of similar length, and their entries laid side by side. Behind them stand
the first few labels without an entry: as many as must be predicted, one more for the second best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.sparse import csr_array

from setwise.decoders.decisions import Decisions
from setwise.targets.measure import Array

# Entries that are laid side by side at a time.
MOST_ENTRIES = 2**22


def decide_entries(matrix, decide: Callable[[Array], Decisions], spare: int) -> Decisions:
    """Decisions from the entries of each row and ``spare`` labels without one, if there are."""
    n, n_labels = matrix.shape
    lengths = np.diff(matrix.indptr)
    rows_out, labels_out = [], []
    risk, second = np.empty(n), np.empty(n)
    for rows in _groups(lengths, spare):
        width = min(int(lengths[rows].max()) + spare, n_labels)
        inside = np.arange(width) < lengths[rows][:, None]
        labels = np.zeros((len(rows), width), np.int64)
        values = np.zeros((len(rows), width), matrix.dtype)
        places = (matrix.indptr[rows][:, None] + np.arange(width))[inside]
        labels[inside], values[inside] = matrix.indices[places], matrix.data[places]
        decisions = decide(values)
        risk[rows], second[rows] = decisions.risk, decisions.second_risk
        for row in np.flatnonzero((decisions.sets > inside).any(axis=1)):
            present = labels[row, : lengths[rows[row]]]
            absent = np.setdiff1d(np.arange(width), present, assume_unique=True)
            labels[row, len(present) :] = absent[: width - len(present)]
        chosen = np.nonzero(decisions.sets)
        rows_out.append(rows[chosen[0]])
        labels_out.append(labels[chosen])
    return Decisions(_matrix(rows_out, labels_out, matrix.shape), risk, second)


def decide_dense(matrix, decide: Callable[[Array], Decisions]) -> Decisions:
    """Decisions from some dense rows at a time."""
    ranges = list(row_ranges(matrix.shape))
    parts = [decide(matrix[rows].toarray()) for rows in ranges]
    places = [np.nonzero(part.sets) for part in parts]
    rows = [part.start + place[0] for part, place in zip(ranges, places, strict=True)]
    return Decisions(
        _matrix(rows, [place[1] for place in places], matrix.shape),
        np.concatenate([part.risk for part in parts]),
        np.concatenate([part.second_risk for part in parts]),
    )


def row_ranges(shape: tuple[int, int]) -> Iterator[slice]:
    """Ranges that cover the rows, each of a bounded number of entries."""
    step = max(1, MOST_ENTRIES // shape[1])
    for start in range(0, shape[0], step):
        yield slice(start, min(start + step, shape[0]))


def _groups(lengths: Array, spare: int) -> Iterator[Array]:
    """Rows by length, in groups whose rows are at most twice as long as the shortest."""
    order = np.argsort(lengths, kind="stable")
    first = 0
    while first < len(order):
        widest = max(2 * int(lengths[order[first]]), 16)
        stop = int(np.searchsorted(lengths[order], widest, side="right"))
        stop = min(stop, first + max(1, MOST_ENTRIES // (widest + spare)))
        yield order[first:stop]
        first = stop


def _matrix(rows: list[Array], labels: list[Array], shape: tuple[int, int]):
    rows_all, labels_all = np.concatenate(rows), np.concatenate(labels)
    ones = np.ones(len(rows_all), np.uint8)
    matrix = csr_array((ones, (rows_all, labels_all)), shape=shape)
    matrix.sort_indices()
    return matrix
