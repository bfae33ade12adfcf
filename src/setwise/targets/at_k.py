"""Precision and recall of a prediction of exactly k labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from setwise.targets.measure import Additive, Array, Form, Fraction, Of
from setwise.targets.target import Target
from setwise.validation import label_matrix, real_number, whole_number

_HIT = np.array([[0.0, 0.0], [0.0, 1.0]])
_WRONG = np.array([[0.0, 1.0], [0.0, 0.0]])
_MISSED = np.array([[0.0, 0.0], [1.0, 0.0]])


class AtK(Target):
    """A target of predictions of exactly ``k`` labels, refused for others."""

    k: int
    form: ClassVar[Form] = "additive"

    @property
    def predicted_size(self) -> int:
        """k, the size of every prediction."""
        return self.k

    def loss(self, y_pred, y_true) -> Array:
        """The loss of each row, (n,), of predictions of k labels."""
        predicted = label_matrix(y_pred, None, "y_pred")
        self.require_k(predicted.shape[1])
        sizes = predicted.sum(axis=1, dtype=np.int64)
        wrong = np.flatnonzero(sizes != self.k)
        if len(wrong):
            raise ValueError(
                f"{self} judges predictions of exactly {self.k} labels, "
                f"but y_pred[{wrong[0]}] has {sizes[wrong[0]]}"
            )
        return super().loss(predicted, y_true)

    def on(self, space) -> Target:
        """The same on a space of sets of size k; refused elsewhere."""
        self.require_k(space.n_labels)
        if not np.array_equal(space.sizes, [self.k]):
            raise ValueError(
                f"{self} is defined on label sets of size {self.k} only, but {space} has sets of "
                f"other sizes; use Slice({space.n_labels}, {self.k}) or a Catalog of such sets"
            )
        return self

    def require_k(self, n_labels: int) -> None:
        """Raise where there are fewer labels than k."""
        if self.k > n_labels:
            raise ValueError(
                f"{self} needs at least {self.k} labels, but there are {n_labels}: "
                f"k must not be larger than the number of labels"
            )


@dataclass(frozen=True)
class PrecisionAtK(AtK):
    """1 - tp / k for predictions of exactly k labels.

    Examples
    --------
    >>> PrecisionAtK(2).loss([[1, 1, 0]], [[1, 0, 1]])
    array([0.5])
    """

    k: int

    def __post_init__(self):
        object.__setattr__(self, "k", whole_number(self.k, "k", 1))

    def measure(self, n_labels: int, of: Of) -> Additive:
        """Wrong (loss) or right (utility) labels among the k predicted, divided by k."""
        self.require_k(n_labels)
        return Additive(np.full(n_labels, 1.0 / self.k), _WRONG if of == "loss" else _HIT)

    @property
    def utility_quotient(self) -> Fraction:
        """The utility tp / k."""
        return Fraction(np.array([0.0, 1, 0, 0, 0]), np.array([self.k, 0.0, 0, 0, 0]), 0.0)

    def __str__(self) -> str:
        return f"precision@{self.k}"


@dataclass(frozen=True)
class RecallAtK(AtK):
    """1 - tp / n_true for predictions of exactly k labels.

    Parameters
    ----------
    k : int
        Size of every prediction.
    empty : float, default 1.0
        The utility where no label is true.

    Examples
    --------
    >>> RecallAtK(2).loss([[1, 1, 0]], [[1, 0, 1]])
    array([0.5])
    """

    k: int
    empty: float = 1.0

    def __post_init__(self):
        object.__setattr__(self, "k", whole_number(self.k, "k", 1))
        object.__setattr__(self, "empty", real_number(self.empty, "empty", 0.0, 1.0))

    def measure(self, n_labels: int, of: Of) -> Additive:
        """Missed (loss) or found (utility) labels, divided by the number of true ones."""
        self.require_k(n_labels)
        nothing = self.empty if of == "utility" else 1.0 - self.empty
        return Additive(
            np.ones(n_labels),
            _MISSED if of == "loss" else _HIT,
            scale=lambda n_true: 1.0 / np.maximum(n_true, 1.0),
            constant=lambda n_true: np.where(n_true == 0, nothing, 0.0),
        )

    @property
    def utility_quotient(self) -> Fraction:
        """The utility tp / (tp + fn)."""
        return Fraction(np.array([0.0, 1, 0, 0, 0]), np.array([0.0, 1, 0, 1, 0]), self.empty)

    def __str__(self) -> str:
        return f"recall@{self.k}"
