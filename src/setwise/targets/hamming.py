"""Hamming loss: the share of labels on which the two sets differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from setwise.targets.measure import Additive, Form, Fraction, Of
from setwise.targets.target import Target, require_labels
from setwise.validation import real_vector

DIFFER = np.array([[0.0, 1.0], [1.0, 0.0]])
AGREE = 1.0 - DIFFER


@dataclass(frozen=True, eq=False)
class Hamming(Target):
    """Weighted share of labels on which the predicted and the true set differ.

    L(y', y) = sum_i w_i 1[y'_i != y_i] / sum_i w_i. The paper counts labels; the share keeps the
    loss in [0, 1].

    Parameters
    ----------
    weights : array of shape (n_labels,), optional
        Nonnegative weight of each label, not all zero; equal weights by default.

    Examples
    --------
    >>> Hamming().loss([[1, 0, 0, 1]], [[1, 1, 0, 1]])
    array([0.25])
    """

    weights: Any = None
    form: ClassVar[Form] = "additive"

    def __post_init__(self):
        if self.weights is not None:
            weights = real_vector(self.weights, None, "weights")
            if (weights < 0).any() or weights.sum() <= 0:
                raise ValueError(
                    f"weights must be nonnegative and not all zero, but they are {weights.tolist()}"
                )
            object.__setattr__(self, "weights", weights)

    def measure(self, n_labels: int, of: Of) -> Additive:
        """Sum over labels of the weight where the sets differ (loss) or agree (utility)."""
        weights = np.ones(n_labels) if self.weights is None else self.weights
        require_labels(self, len(weights), n_labels)
        return Additive(weights / weights.sum(), DIFFER if of == "loss" else AGREE)

    @property
    def is_hamming(self) -> bool:
        """Whether all labels weigh the same."""
        return self.weights is None

    @property
    def utility_quotient(self) -> Fraction | None:
        """The utility (tp + tn) / (tp + fp + fn + tn); None with weights."""
        if self.weights is not None:
            return None
        return Fraction(np.array([0.0, 1, 0, 0, 1]), np.array([0.0, 1, 1, 1, 1]), 1.0)

    def __str__(self) -> str:
        return "hamming" if self.weights is None else "weighted hamming"
