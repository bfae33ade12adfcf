"""Any vectorised function of the confusion counts, and the one that asks for equality."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from setwise.targets.measure import Array, Counts, Equality, Form, Of
from setwise.targets.target import Target


@dataclass(frozen=True)
class ZeroOne(Target):
    """1 where the predicted set differs from the true set in any label, else 0.

    Examples
    --------
    >>> ZeroOne().loss([[1, 0], [1, 1]], [[1, 0], [1, 0]])
    array([0., 1.])
    """

    form: ClassVar[Form] = "subset"

    def measure(self, n_labels: int, of: Of) -> Equality:
        """Equality of the two sets, or its opposite for the loss."""
        return Equality(0.0 if of == "loss" else 1.0)

    def __str__(self) -> str:
        return "subset"


@dataclass(frozen=True)
class CountTarget(Target):
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

    def measure(self, n_labels: int, of: Of) -> Counts:
        """The function of the counts, or 1 minus it."""
        return Counts(self.function, complement=of == "utility")

    def __str__(self) -> str:
        return f"CountTarget({getattr(self.function, '__name__', 'function')})"
