"""The catalog of seen label sets: what a space, its biases and its start follow from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from setwise.sparse import row_ranges

# Bytes that the list of different label sets may take, eight labels a byte.
MOST_BYTES = 2**29


@dataclass(frozen=True, eq=False)
class Seen:
    """The different label sets of some rows, how many rows have each, and what these weigh.

    Sets are packed, eight labels a byte, and in their order as numbers. The sum of two is that of
    the rows of both.

    Examples
    --------
    >>> first = Seen.of(np.array([[1, 0], [0, 1], [1, 0]], np.uint8), np.ones(3))
    >>> both = first + Seen.of(np.array([[1, 0], [1, 1]], np.uint8), np.array([0.5, 1.0]))
    >>> both.sets.tolist(), both.counts.tolist(), both.weights.tolist()
    ([[0, 1], [1, 0], [1, 1]], [1, 3, 1], [1.0, 2.5, 1.0])
    """

    packed: NDArray[np.uint8]
    counts: NDArray[np.int64]
    weights: NDArray[np.float64]
    n_labels: int

    @classmethod
    def of(cls, sets: Any, weights: NDArray[np.float64]) -> Seen:
        """Of label sets (n, l), dense or CSR, and the weights of their rows."""
        parts = []
        for rows in row_ranges(sets.shape[0], sets.shape[1]):
            part = sets[rows].toarray() if issparse(sets) else sets[rows]
            parts.append(np.packbits(part.astype(bool), axis=1))
        ones = np.ones(sets.shape[0], np.int64)
        return _merged(np.concatenate(parts), ones, weights, sets.shape[1])

    def __add__(self, other: Seen) -> Seen:
        pairs = zip(self._arrays(), other._arrays(), strict=True)
        return _merged(*(np.concatenate(pair) for pair in pairs), self.n_labels)

    def _arrays(self) -> tuple[Any, Any, Any]:
        return self.packed, self.counts, self.weights

    @cached_property
    def sets(self) -> NDArray[np.uint8]:
        """The different label sets, (K, l)."""
        return np.unpackbits(self.packed, axis=1, count=self.n_labels)


def _merged(packed: Any, counts: Any, weights: Any, n_labels: int) -> Seen:
    """Equal sets as one."""
    if packed.nbytes > MOST_BYTES:
        raise ValueError(
            f"the rows have {len(packed)} different label sets of {n_labels} labels, too many to "
            f"be listed ({packed.nbytes / 1e9:.1f} GB); use fewer rows or labels"
        )
    # (Bytes compared as a whole: in the order of the sets as rows of 0/1.)
    keys = np.ascontiguousarray(packed).view(f"V{packed.shape[1]}").ravel()
    first, place = np.unique(keys, return_index=True, return_inverse=True)[1:]
    n_sets = len(first)
    # (Added one by one in their order, which is the same whoever adds.)
    return Seen(
        packed[first],
        np.bincount(place, counts, n_sets).astype(np.int64),
        np.bincount(place, weights, n_sets),
        n_labels,
    )
