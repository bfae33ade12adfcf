"""Measures of decisions that single rows are seldom judged by: precision, recall, their likes.

Of a whole population (`Macro`, `Micro`, `Weighted`) they are what people report. A row by itself
is best served by predicting one label for precision, and every label for recall.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from setwise.targets.linear_fractional import share_of
from setwise.targets.measure import Array, Counts, Form, Fraction, Of
from setwise.targets.target import Target
from setwise.validation import real_number


@dataclass(frozen=True)
class Precision(Target):
    """1 - tp / (tp + fp): the share of what is predicted that is false.

    Parameters
    ----------
    empty : float, default 0.0
        The utility where nothing is predicted; 0 is scikit-learn's.

    Examples
    --------
    >>> Precision().loss([[1, 1, 0]], [[1, 0, 1]])
    array([0.5])
    """

    empty: float = 0.0
    form: ClassVar[Form] = "linear_fractional"

    def __post_init__(self):
        vars(self).update(empty=real_number(self.empty, "empty", 0.0, 1.0))

    def measure(self, n_labels: int, of: Of) -> Fraction:
        """The share of the predicted that is true, or 1 minus it."""
        return share_of(1.0, 1.0, 0.0, of, self.empty)

    def __str__(self) -> str:
        return "precision_samples"


@dataclass(frozen=True)
class Recall(Target):
    """1 - tp / (tp + fn): the share of what is true that is missed.

    Parameters
    ----------
    empty : float, default 0.0
        The utility where nothing is true; 0 is scikit-learn's.

    Examples
    --------
    >>> Recall().loss([[1, 1, 0]], [[1, 0, 0]])
    array([0.])
    """

    empty: float = 0.0
    form: ClassVar[Form] = "linear_fractional"

    def __post_init__(self):
        vars(self).update(empty=real_number(self.empty, "empty", 0.0, 1.0))

    def measure(self, n_labels: int, of: Of) -> Fraction:
        """The share of the true that is predicted, or 1 minus it."""
        return share_of(1.0, 0.0, 1.0, of, self.empty)

    def __str__(self) -> str:
        return "recall_samples"


@dataclass(frozen=True)
class BalancedAccuracy(Target):
    """1 - the mean of tp / (tp + fn) and tn / (tn + fp).

    Of two classes, true and false, one may not occur; then the share of the other alone counts,
    as in scikit-learn.

    Examples
    --------
    >>> BalancedAccuracy().loss([[1, 1, 0]], [[1, 0, 0]])
    array([0.25])
    """

    form: ClassVar[Form] = "counts"
    rates_mean: ClassVar[str] = "arithmetic"

    def measure(self, n_labels: int, of: Of) -> Counts:
        """The mean of the two shares, or 1 minus it."""
        return Counts(_unbalanced, complement=of == "utility")

    def __str__(self) -> str:
        return "balanced_accuracy_samples"


@dataclass(frozen=True)
class GMean(Target):
    """1 - the geometric mean of tp / (tp + fn) and tn / (tn + fp).

    Of two classes, true and false, one may not occur; then the share of the other alone counts.

    Examples
    --------
    >>> GMean().loss([[1, 1, 0]], [[1, 0, 0]]).round(3)
    array([0.293])
    """

    form: ClassVar[Form] = "counts"
    rates_mean: ClassVar[str] = "geometric"

    def measure(self, n_labels: int, of: Of) -> Counts:
        """The geometric mean of the two shares, or 1 minus it."""
        return Counts(_apart, complement=of == "utility")

    def __str__(self) -> str:
        return "g_mean_samples"


def found_shares(tp: Array, fp: Array, fn: Array, tn: Array) -> tuple[Array, Array]:
    """The share found of the true and of the false entries; that of the other class for none."""
    true, false = tp + fn, tn + fp
    of_true = np.divide(tp, true, out=np.ones(np.shape(true)), where=true > 0)
    of_false = np.divide(tn, false, out=np.ones(np.shape(false)), where=false > 0)
    return np.where(true > 0, of_true, of_false), np.where(false > 0, of_false, of_true)


def _unbalanced(tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
    of_true, of_false = found_shares(tp, fp, fn, tn)
    return 1.0 - (of_true + of_false) / 2.0


def _apart(tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
    of_true, of_false = found_shares(tp, fp, fn, tn)
    return 1.0 - np.sqrt(of_true * of_false)
