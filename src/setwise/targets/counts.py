"""Any vectorised function of the confusion counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from setwise.targets.measure import Array, Counts, Form, Of
from setwise.targets.target import loss_of_rows


@dataclass(frozen=True)
class CountTarget:
    """A loss given as a function of the confusion counts.

    Parameters
    ----------
    function : callable
        ``function(tp, fp, fn, tn)`` takes arrays of counts and returns the *loss*, an array of
        the same shape with values in [0, 1], its own 0/0 convention included.

    Examples
    --------
    At most one label wrong is fine:

    >>> lenient = CountTarget(lambda tp, fp, fn, tn: (fp + fn > 1) * 1.0)
    >>> lenient.loss([[1, 1, 0]], [[1, 0, 0]])
    array([0.])
    """

    function: Callable[[Array, Array, Array, Array], Array]
    form: ClassVar[Form] = "counts"

    def __post_init__(self):
        if not callable(self.function):
            raise ValueError(
                f"CountTarget needs a function of (tp, fp, fn, tn), but it got {self.function!r}"
            )

    def loss(self, y_pred, y_true) -> Array:
        """The function at the counts of each row, (n,)."""
        return loss_of_rows(self, y_pred, y_true)

    def measure(self, n_labels: int, of: Of) -> Counts:
        """The function of the counts, or 1 minus it."""
        return Counts(self.function, complement=of == "utility")

    def on(self, space) -> CountTarget:
        """The same on every space."""
        return self

    def __str__(self) -> str:
        return f"CountTarget({getattr(self.function, '__name__', 'function')})"
