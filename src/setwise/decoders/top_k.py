"""The k labels of highest score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise.decoders.decisions import Decisions
from setwise.decoders.sparse import decide_entries
from setwise.sparse import refuse_entries, tidied
from setwise.targets.measure import Array
from setwise.validation import require_entries, score_matrix, whole_number


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
        object.__setattr__(self, "k", whole_number(self.k, "k", 1))

    def decode(self, scores) -> Any:
        """The label sets, (n, l): dense from dense scores, CSR from sparse ones (absent is 0)."""
        if hasattr(scores, "tocsr"):
            matrix = tidied(scores, "scores")
            require_entries(matrix.shape, "scores")
            refuse_entries(matrix, ~np.isfinite(matrix.data), "scores", "be finite")
            self._refuse_few(matrix.shape[1])
            return decide_entries(matrix, self._decisions, self.k).sets
        checked = score_matrix(scores, None)
        require_entries(checked.shape, "scores")
        self._refuse_few(checked.shape[1])
        return self._top(checked)

    def _refuse_few(self, n_labels: int) -> None:
        if self.k > n_labels:
            raise ValueError(
                f"TopK({self.k}) needs at least {self.k} labels, but there are {n_labels}"
            )

    def _decisions(self, scores: Array) -> Decisions:
        return Decisions(self._top(scores), np.zeros(len(scores)), np.zeros(len(scores)))

    def _top(self, scores: Array) -> Array:
        place = scores.shape[1] - self.k
        least = np.partition(scores, place, axis=1)[:, place, None]
        above = scores > least
        # Of the labels that tie for the last places, the first ones.
        room = self.k - above.sum(axis=1, keepdims=True)
        tied = scores == least
        return (above | (tied & (np.cumsum(tied, axis=1) <= room))).astype(np.uint8)
