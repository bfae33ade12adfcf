"""What a decoder decided, decisions from sparse rows, and decoders that need no target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from setwise.distributions.distribution import TIE as TIE
from setwise.spaces.space import Array, Space, require_space
from setwise.sparse import MOST_ENTRIES, entries_of, refuse_entries, row_ranges, tidied
from setwise.validation import require_entries, score_matrix, whole_number


class Decisions(NamedTuple):
    """Label sets with their expected loss, and the least expected loss of any other set.

    ``second_risk`` is inf where there is no other set to predict.

    Examples
    --------
    >>> from setwise.decoders import MinimumRisk
    >>> sets, risk, second = MinimumRisk("f1").decode([[0.8, 0.4, 0.1]], return_risk=True)
    >>> sets, risk.round(3), second.round(3)
    (array([[1, 1, 0]], dtype=uint8), array([0.322]), array([0.328]))
    """

    sets: Any
    risk: NDArray[np.float64]
    second_risk: NDArray[np.float64]

    @classmethod
    def of_sets(cls, sets: Any) -> Decisions:
        """Sets whose risks were not asked for."""
        return cls(sets, np.zeros(sets.shape[0]), np.zeros(sets.shape[0]))

    @classmethod
    def joined(cls, parts: list[Decisions]) -> Decisions:
        """The decisions of ranges of rows as one."""
        sets, risk, second = zip(*parts, strict=True)
        stack = vstack if issparse(sets[0]) else np.concatenate
        return cls(stack(sets), np.concatenate(risk), np.concatenate(second))

    def sparse(self) -> Decisions:
        """The same with the sets in CSR."""
        if issparse(self.sets):
            return self
        return self._replace(sets=entries_of(self.sets).astype(np.uint8))


def decide_sparse(
    matrix, decide: Callable[[Array, Any], Decisions], spare: int | None
) -> Decisions:
    """Decisions from a CSR matrix without a dense copy of it, their sets in CSR.

    Rows are taken in groups of similar length, and their entries laid side by side. Behind them
    stand ``spare`` of the first labels without an entry: as many as must be predicted, one more for
    the second best. With None ``decide`` sees every label in its place, some whole rows at a time.
    It is told the values and which rows they are.
    """
    if spare is None:
        ranges = row_ranges(*matrix.shape)
        return Decisions.joined([decide(matrix[rows].toarray(), rows).sparse() for rows in ranges])
    n = matrix.shape[0]
    places, risk, second = [], np.empty(n), np.empty(n)
    for rows in _groups(np.diff(matrix.indptr), spare):
        values, labels = _side_by_side(matrix, rows, spare)
        decisions = decide(values, rows)
        risk[rows], second[rows] = decisions.risk, decisions.second_risk
        chosen = np.nonzero(decisions.sets)
        for row in np.unique(chosen[0][labels[chosen] < 0]):
            present = labels[row][labels[row] >= 0]
            absent = np.setdiff1d(np.arange(labels.shape[1]), present, assume_unique=True)
            labels[row, len(present) :] = absent[: labels.shape[1] - len(present)]
        places.append((rows[chosen[0]], labels[chosen]))
    where = tuple(np.concatenate(part) for part in zip(*places, strict=True))
    sets = csr_array((np.ones(len(where[0]), np.uint8), where), shape=matrix.shape)
    sets.sort_indices()
    return Decisions(sets, risk, second)


def _groups(lengths: Array, spare: int) -> Iterator[Array]:
    """Rows by their number of entries, in groups where none has more than twice that of another."""
    order, first = np.argsort(lengths, kind="stable"), 0
    while first < len(order):
        widest = max(2 * int(lengths[order[first]]), 16)
        stop = int(np.searchsorted(lengths[order], widest, side="right"))
        stop = min(stop, first + max(1, MOST_ENTRIES // (widest + spare)))
        yield order[first:stop]
        first = stop


def _side_by_side(matrix, rows: Array, spare: int) -> tuple[Array, Array]:
    """Values and labels of some rows, (rows, width) each; -1 for a label without an entry."""
    lengths = np.diff(matrix.indptr)[rows]
    width = min(int(lengths.max()) + spare, matrix.shape[1])
    inside = np.arange(width) < lengths[:, None]
    labels = np.full((len(rows), width), -1)
    values = np.zeros((len(rows), width), matrix.dtype)
    places = (matrix.indptr[rows][:, None] + np.arange(width))[inside]
    labels[inside], values[inside] = matrix.indices[places], matrix.data[places]
    return values, labels


def top_labels(scores: Array, k: int) -> Array:
    """The sets of the k labels of highest score, (n, l); ties: the lower label."""
    place = scores.shape[1] - k
    least = np.partition(scores, place, axis=1)[:, place, None]
    above, tied = scores > least, scores == least
    # Of the labels that tie for the last places, the first ones.
    room = k - above.sum(axis=1, keepdims=True)
    return (above | (tied & (np.cumsum(tied, axis=1) <= room))).astype(np.uint8)


@dataclass(frozen=True)
class MostLikely:
    """The label set with the highest weight: argmax over the space of y' · scores + g(y').

    Sign on the cube, best size then top labels on a sized space, max-product on a forest, the best
    row of a list; ties as the space breaks them. The minimum-risk decision for subset 0/1 loss, and
    the one the guarantees of the comp-sum and constrained surrogates speak of.

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> MostLikely(Cube(3)).decode([[2.0, -1.0, 0.5]])
    array([[1, 0, 1]], dtype=uint8)
    """

    space: Space

    def __post_init__(self):
        require_space(self.space)

    def decode(self, scores) -> Array:
        """The most likely set of each row of scores, (n, l)."""
        return self.space.most_likely(scores)


@dataclass(frozen=True)
class TopK:
    """The k labels of highest score; ties: the lower label.

    The minimum-risk decision for precision@k and recall@k from independent marginals. O(l) a row.

    Examples
    --------
    >>> TopK(2).decode([[0.1, 0.7, 0.7, 0.9]])
    array([[0, 1, 0, 1]], dtype=uint8)
    """

    k: int

    def __post_init__(self):
        vars(self).update(k=whole_number(self.k, "k", 1))

    def decode(self, scores) -> Any:
        """The label sets, (n, l): dense from dense scores, CSR from sparse ones (absent is 0)."""
        is_sparse = hasattr(scores, "tocsr")
        matrix = tidied(scores, "scores") if is_sparse else score_matrix(scores, None)
        require_entries(matrix.shape, "scores")
        if self.k > matrix.shape[1]:
            raise ValueError(
                f"TopK({self.k}) needs at least {self.k} labels, but there are {matrix.shape[1]}"
            )
        if not is_sparse:
            return top_labels(matrix, self.k)
        refuse_entries(matrix, ~np.isfinite(matrix.data), "scores", "be finite")
        decide = lambda values, _: Decisions.of_sets(top_labels(values, self.k))  # noqa: E731
        return decide_sparse(matrix, decide, self.k).sets
