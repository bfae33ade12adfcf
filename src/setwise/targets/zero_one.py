"""Subset 0/1 loss: is the predicted set the true set?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from setwise.targets.measure import Array, Equality, Form, Of
from setwise.targets.target import loss_of_rows


@dataclass(frozen=True)
class ZeroOne:
    """1 where the predicted set differs from the true set in any label, else 0.

    Examples
    --------
    >>> ZeroOne().loss([[1, 0], [1, 1]], [[1, 0], [1, 0]])
    array([0., 1.])
    """

    form: ClassVar[Form] = "subset"

    def loss(self, y_pred, y_true) -> Array:
        """1 where any label differs, (n,)."""
        return loss_of_rows(self, y_pred, y_true)

    def measure(self, n_labels: int, of: Of) -> Equality:
        """Equality of the two sets, or its opposite for the loss."""
        return Equality(0.0 if of == "loss" else 1.0)

    def on(self, space) -> ZeroOne:
        """The same on every space."""
        return self

    def __str__(self) -> str:
        return "subset"
