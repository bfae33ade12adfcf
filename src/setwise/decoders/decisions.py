"""What a decoder decided, and decisions from sparse rows without a dense copy.

Sparse rows are taken in groups of similar length, and their entries laid side by side. Behind them
stand the first few labels without an entry: as many as must be predicted, one more for the second
best. A decoder that has to see every label in its place gets some whole rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Array = NDArray[Any]

# Expected losses that differ by no more count as equal. (Those by quadrature have an error of up to
# 1e-10; on few labels, and between sizes that share nodes, it is far smaller.)
TIE = 1e-11
# Entries that are laid side by side at a time.
MOST_ENTRIES = 2**22


class Decisions(NamedTuple):
    """Label sets with their expected loss, and the least expected loss of any other set.

    ``second_risk`` is inf where there is no other set to predict.
    """

    sets: Any
    risk: NDArray[np.float64]
    second_risk: NDArray[np.float64]

    @classmethod
    def of_sets(cls, sets: Any) -> Decisions:
        """Sets whose risks were not asked for."""
        return cls(sets, np.zeros(sets.shape[0]), np.zeros(sets.shape[0]))


def top_labels(scores: Array, k: int) -> Array:
    """The sets of the k labels of highest score, (n, l); ties: the lower label."""
    place = scores.shape[1] - k
    least = np.partition(scores, place, axis=1)[:, place, None]
    above = scores > least
    # Of the labels that tie for the last places, the first ones.
    room = k - above.sum(axis=1, keepdims=True)
    tied = scores == least
    return (above | (tied & (np.cumsum(tied, axis=1) <= room))).astype(np.uint8)


def decide_sparse(matrix, decide: Callable[[Array], Decisions], spare: int | None) -> Decisions:
    """Decisions from the entries of each row and ``spare`` labels without one, if there are.

    None: from whole rows.
    """
    n = matrix.shape[0]
    rows_out, labels_out = [], []
    risk, second = np.empty(n), np.empty(n)
    for rows in _groups(matrix, spare):
        values, labels = _side_by_side(matrix, rows, spare)
        decisions = decide(values)
        risk[rows], second[rows] = decisions.risk, decisions.second_risk
        chosen = np.nonzero(decisions.sets)
        for row in np.unique(chosen[0][labels[chosen] < 0]):
            present = labels[row][labels[row] >= 0]
            absent = np.setdiff1d(np.arange(labels.shape[1]), present, assume_unique=True)
            labels[row, len(present) :] = absent[: labels.shape[1] - len(present)]
        rows_out.append(rows[chosen[0]])
        labels_out.append(labels[chosen])
    places = np.concatenate(rows_out), np.concatenate(labels_out)
    sets = csr_array((np.ones(len(places[0]), np.uint8), places), shape=matrix.shape)
    sets.sort_indices()
    return Decisions(sets, risk, second)


def row_ranges(n_rows: int, width: int) -> Iterator[slice]:
    """Ranges that cover the rows, each of a bounded number of entries."""
    step = max(1, MOST_ENTRIES // width)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def _groups(matrix, spare: int | None) -> Iterator[Array]:
    """Whole rows in their order; or rows by length, none more than twice as long as another."""
    lengths = np.diff(matrix.indptr)
    if spare is None:
        for part in row_ranges(*matrix.shape):
            yield np.arange(part.start, part.stop)
        return
    order = np.argsort(lengths, kind="stable")
    first = 0
    while first < len(order):
        widest = max(2 * int(lengths[order[first]]), 16)
        stop = int(np.searchsorted(lengths[order], widest, side="right"))
        stop = min(stop, first + max(1, MOST_ENTRIES // (widest + spare)))
        yield order[first:stop]
        first = stop


def _side_by_side(matrix, rows: Array, spare: int | None) -> tuple[Array, Array]:
    """Values and labels of some rows, (rows, width) each; -1 for a label without an entry."""
    if spare is None:
        labels = np.broadcast_to(np.arange(matrix.shape[1]), (len(rows), matrix.shape[1]))
        return matrix[rows].toarray(), labels
    lengths = np.diff(matrix.indptr)[rows]
    width = min(int(lengths.max()) + spare, matrix.shape[1])
    inside = np.arange(width) < lengths[:, None]
    labels = np.full((len(rows), width), -1)
    values = np.zeros((len(rows), width), matrix.dtype)
    places = (matrix.indptr[rows][:, None] + np.arange(width))[inside]
    labels[inside], values[inside] = matrix.indices[places], matrix.data[places]
    return values, labels
