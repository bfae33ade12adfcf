"""Decoders that need no target: the most likely set, the labels of highest score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise.decoders.decisions import Decisions, decide_sparse, top_labels
from setwise.spaces.space import Array, Space
from setwise.sparse import refuse_entries, tidied
from setwise.validation import require_entries, score_matrix, whole_number


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
        if not isinstance(self.space, Space):
            raise ValueError(f"a space is an object such as Cube(10), but this is {self.space!r}")

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
        object.__setattr__(self, "k", whole_number(self.k, "k", 1))

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
        top = lambda scores: Decisions.of_sets(top_labels(scores, self.k))  # noqa: E731
        return decide_sparse(matrix, top, self.k).sets
