"""The catalog of seen label sets: what a space, its biases and its start follow from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from setwise.sparse import entries_of

# Bytes that the list of different label sets may take.
MOST_BYTES = 2**29


@dataclass(frozen=True, eq=False)
class Seen:
    """The different label sets of some rows, how many rows have each, and what these weigh.

    Sets are CSR, (K, l), in their order as rows of 0/1. The sum of two is that of the rows of both.

    Examples
    --------
    >>> first = Seen.of(np.array([[1, 0], [0, 1], [1, 0]], np.uint8), np.ones(3))
    >>> both = first + Seen.of(np.array([[1, 0], [1, 1]], np.uint8), np.array([0.5, 1.0]))
    >>> both.sets.toarray().tolist(), both.counts.tolist(), both.weights.tolist()
    ([[0, 1], [1, 0], [1, 1]], [1, 3, 1], [1.0, 2.5, 1.0])
    """

    sets: Any
    counts: NDArray[np.int64]
    weights: NDArray[np.float64]

    @classmethod
    def of(
        cls, sets: Any, weights: NDArray[np.float64], counts: NDArray[np.int64] | None = None
    ) -> Seen:
        """Of label sets (n, l), dense or tidy CSR, what they weigh, and how many rows each is."""
        rows: Any = sets if issparse(sets) else entries_of(sets)
        counts = np.ones(rows.shape[0], np.int64) if counts is None else counts
        return _merged(rows.astype(np.uint8), counts, weights)

    def __add__(self, other: Seen) -> Seen:
        return _merged(
            csr_array(vstack([self.sets, other.sets])),
            np.concatenate([self.counts, other.counts]),
            np.concatenate([self.weights, other.weights]),
        )


def _merged(sets: Any, counts: Any, weights: Any) -> Seen:
    """Equal sets as one."""
    first, place = _different(sets)
    listed, n_sets = sets[first], len(first)
    if listed.indices.nbytes + listed.indptr.nbytes > MOST_BYTES:
        raise ValueError(
            f"the rows have {n_sets} different label sets of {sets.shape[1]} labels, too many to "
            f"be listed ({listed.indices.nbytes / 1e9:.1f} GB); use fewer rows or labels"
        )
    # (Added one by one in their order, which is the same whoever adds.)
    total: Any = np.bincount(place, weights, n_sets)
    return Seen(listed, np.bincount(place, counts, n_sets).astype(np.int64), total)


def _different(sets: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each different set is first, in their order as rows of 0/1, and which one each row is.

    The labels of a set, each from the largest number down and as bytes, follow one another as the
    rows of 0/1 do: the earlier a label, the later the set. Sets of one size are sorted as arrays.
    """
    sizes, keys, firsts = np.diff(sets.indptr), [], []
    places = np.empty(len(sizes), np.int64)
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes == size)
        labels = sets.indices[sets.indptr[rows][:, None] + np.arange(size)]
        # (Before the labels a number that all have, so that the empty set has a key too.)
        codes = np.zeros((len(rows), size + 1), ">u4")
        codes[:, 1:] = ~labels.astype(np.uint32)
        found = np.unique(codes.view(f"V{4 * (size + 1)}"), return_index=True, return_inverse=True)
        places[rows] = found[2].ravel() + len(keys)
        keys += found[0].tolist()
        firsts.append(rows[found[1]])
    order = np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return np.concatenate([np.empty(0, np.int64), *firsts])[order], rank[places]
