"""Precision and recall of a prediction of exactly k labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from setwise.targets.measure import Additive, Array, Form, Fraction, Of
from setwise.targets.target import loss_of_rows
from setwise.validation import label_matrix, real_number, whole_number

_HIT = np.array([[0.0, 0.0], [0.0, 1.0]])
_WRONG = np.array([[0.0, 1.0], [0.0, 0.0]])
_MISSED = np.array([[0.0, 0.0], [1.0, 0.0]])


@dataclass(frozen=True)
class PrecisionAtK:
    """1 - tp / k for predictions of exactly k labels.

    Examples
    --------
    >>> PrecisionAtK(2).loss([[1, 1, 0]], [[1, 0, 1]])
    array([0.5])
    """

    k: int
    form: ClassVar[Form] = "additive"

    def __post_init__(self):
        object.__setattr__(self, "k", whole_number(self.k, "k", 1))

    def loss(self, y_pred, y_true) -> Array:
        """Share of the k predicted labels that are wrong, (n,)."""
        _require_size(self, label_matrix(y_pred, None, "y_pred"))
        return loss_of_rows(self, y_pred, y_true)

    def measure(self, n_labels: int, of: Of) -> Additive:
        """Wrong (loss) or right (utility) labels among the k predicted, divided by k."""
        _require_k(self, n_labels)
        return Additive(np.full(n_labels, 1.0 / self.k), _WRONG if of == "loss" else _HIT)

    @property
    def quotient(self) -> Fraction:
        """The utility tp / k."""
        return Fraction(np.array([0.0, 1, 0, 0, 0]), np.array([self.k, 0.0, 0, 0, 0]), 0.0)

    def on(self, space) -> PrecisionAtK:
        """The same on a space of sets of size k; refused elsewhere."""
        _require_space(self, space)
        return self

    def __str__(self) -> str:
        return f"precision@{self.k}"


@dataclass(frozen=True)
class RecallAtK:
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
    form: ClassVar[Form] = "additive"

    def __post_init__(self):
        object.__setattr__(self, "k", whole_number(self.k, "k", 1))
        object.__setattr__(self, "empty", real_number(self.empty, "empty", 0.0, 1.0))

    def loss(self, y_pred, y_true) -> Array:
        """Share of the true labels that are not predicted, (n,)."""
        _require_size(self, label_matrix(y_pred, None, "y_pred"))
        return loss_of_rows(self, y_pred, y_true)

    def measure(self, n_labels: int, of: Of) -> Additive:
        """Missed (loss) or found (utility) labels, divided by the number of true ones."""
        _require_k(self, n_labels)
        nothing = self.empty if of == "utility" else 1.0 - self.empty
        return Additive(
            np.ones(n_labels),
            _MISSED if of == "loss" else _HIT,
            scale=lambda n_true: 1.0 / np.maximum(n_true, 1.0),
            constant=lambda n_true: np.where(n_true == 0, nothing, 0.0),
        )

    @property
    def quotient(self) -> Fraction:
        """The utility tp / (tp + fn)."""
        return Fraction(np.array([0.0, 1, 0, 0, 0]), np.array([0.0, 1, 0, 1, 0]), self.empty)

    def on(self, space) -> RecallAtK:
        """The same on a space of sets of size k; refused elsewhere."""
        _require_space(self, space)
        return self

    def __str__(self) -> str:
        return f"recall@{self.k}"


def _require_k(target: PrecisionAtK | RecallAtK, n_labels: int) -> None:
    if target.k > n_labels:
        raise ValueError(
            f"{target} needs at least {target.k} labels, but there are {n_labels}: "
            f"k must not be larger than the number of labels"
        )


def _require_size(target: PrecisionAtK | RecallAtK, y_pred: Array) -> None:
    _require_k(target, y_pred.shape[1])
    sizes = y_pred.sum(axis=1, dtype=np.int64)
    wrong = np.flatnonzero(sizes != target.k)
    if len(wrong):
        raise ValueError(
            f"{target} judges predictions of exactly {target.k} labels, "
            f"but y_pred[{wrong[0]}] has {sizes[wrong[0]]}"
        )


def _require_space(target: PrecisionAtK | RecallAtK, space) -> None:
    _require_k(target, space.n_labels)
    if not np.array_equal(space.sizes, [target.k]):
        raise ValueError(
            f"{target} is defined on label sets of size {target.k} only, but {space} has sets of "
            f"other sizes; use Slice({space.n_labels}, {target.k}) or a Catalog of such sets"
        )
