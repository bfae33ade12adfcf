"""Measures of a population: one quotient of the counts of all its decisions together.

A population is a label over all rows (macro average), a row over all labels (instance average), or
every entry of the matrix (micro average). Its decisions are counted first and judged once; a target
of single label sets, such as F1, is used with these counts in place of those of one set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from setwise.kernels import kernel
from setwise.targets import Hamming, LinearFractional, Target, get_target
from setwise.targets.measure import ROUNDING, Array, Fraction

Average = Literal["micro", "macro", "instance"]
By = Literal["all", "label", "row"]
POPULATIONS: dict[Average, By] = {"micro": "all", "macro": "label", "instance": "row"}

# A denominator that is this share of its terms is 0 and only rounding.
ZERO_SHARE = 1e-13


class Metric(Protocol):
    """A utility of a population."""

    def quotient(self, positives: Array, total: int) -> Quotient:
        """The utility of populations of ``total`` entries, with so many ``positives`` each."""
        ...


@dataclass(frozen=True)
class Quotient:
    """(above · k) / (below · k) with k = (1, tp, fp, fn, tn); ``empty`` at 0/0.

    The coefficients have one row for all populations, or one for each.
    """

    above: Array
    below: Array
    empty: float

    def of_counts(self, counts: Array) -> Array:
        """The utility of each population, (m,), from its tp, fp, fn, tn, (4, m)."""
        ratios = self.ratios(counts)
        return np.where(np.isnan(ratios), self.empty, ratios)

    def ratios(self, counts: Array) -> Array:
        """The same with NaN at 0/0."""
        values = np.empty(counts.shape[1])
        utilities(self.above, self.below, np.nan, counts, values)
        return values

    def gains(self, value: Array | float) -> tuple[Array, Array]:
        """What predicting an entry adds to numerator - value · denominator: if false, if true."""
        net = self.above - np.reshape(value, (-1, 1)) * self.below
        return net[:, 2] - net[:, 4], net[:, 1] - net[:, 3]


@dataclass(frozen=True)
class TargetMetric:
    """The utility of a linear-fractional target, with the counts of a population."""

    target: Target

    def quotient(self, positives: Array, total: int) -> Quotient:
        fraction = _utility_fraction(self.target, total)
        refuse_outside_unit(self.target, fraction, total)
        return Quotient(
            np.array(fraction.numerator, dtype=np.float64).reshape(1, 5),
            np.array(fraction.denominator, dtype=np.float64).reshape(1, 5),
            float(fraction.empty),
        )

    def __str__(self) -> str:
        return str(self.target)


@dataclass(frozen=True)
class BalancedAccuracy:
    """Mean of the recall of the positives and that of the negatives, tp/P and tn/N.

    Where P or N is 0 the other part alone counts, as in scikit-learn. P and N do not depend on the
    prediction, so this is linear in the counts.
    """

    def quotient(self, positives: Array, total: int) -> Quotient:
        parts = np.stack([positives, total - positives], axis=1).astype(np.float64)
        present = parts > 0
        weights = present / np.maximum(present.sum(axis=1, keepdims=True), 1)
        above, below = np.zeros((len(parts), 5)), np.zeros((len(parts), 5))
        above[:, [1, 4]] = weights / np.where(present, parts, 1.0)
        below[:, 0] = 1.0
        return Quotient(above, below, 1.0)

    def __str__(self) -> str:
        return "balanced accuracy"


# Losses: the share of the predicted that is false, the share of the true that is missed.
METRICS: dict[str, Metric] = {
    "precision": TargetMetric(LinearFractional([0, 0, 1, 0, 0], [0, 1, 1, 0, 0])),
    "recall": TargetMetric(LinearFractional([0, 0, 0, 1, 0], [0, 1, 0, 1, 0])),
    "balanced_accuracy": BalancedAccuracy(),
}


def get_metric(metric: Any) -> Metric:
    """The population measure of that name, or of that target."""
    if isinstance(metric, str) and metric in METRICS:
        return METRICS[metric]
    known = ", ".join(repr(name) for name in METRICS)
    try:
        target = get_target(metric)
    except ValueError as error:
        raise ValueError(
            f"metric must be {known}, or a target with linear-fractional utility such as 'f1', "
            f"'jaccard' or 'hamming', by name or as an object, but it is {metric!r}"
        ) from error
    if target.form != "linear_fractional" and not _is_plain_hamming(target):
        raise ValueError(
            f"metric must be a quotient of linear functions of the counts tp, fp, fn, tn, but "
            f"{target} is not one (its form is {target.form!r}); such are {known}, FBeta, Jaccard, "
            f"LinearFractional and Hamming without weights"
        )
    return TargetMetric(target)


def _is_plain_hamming(target: Target) -> bool:
    return isinstance(target, Hamming) and target.weights is None


def _utility_fraction(target: Any, total: int) -> Fraction:
    """1 - loss as a quotient of the counts of ``total`` entries."""
    if isinstance(target, Hamming):
        return Fraction(np.array([0.0, 1, 0, 0, 1]), np.array([0.0, 1, 1, 1, 1]), 1.0)
    if isinstance(target, LinearFractional):
        # Its own `measure` looks at every number of positives; here the check below is enough.
        above = target.denominator - target.numerator
        return Fraction(above, target.denominator, target.empty)
    return target.measure(total, "utility")


def refuse_outside_unit(target: Target, fraction: Fraction, total: int) -> None:
    """Raise unless 0 <= numerator <= denominator for all counts of ``total`` entries.

    Both are linear, so it is enough that this holds where all entries are tp, or all fp, fn, or tn.
    The numerator is then 0 where the denominator is, which Dinkelbach's iteration relies on.
    """
    corners = np.hstack([np.ones((4, 1)), total * np.eye(4)])
    above, below = corners @ fraction.numerator, corners @ fraction.denominator
    slack = ROUNDING * np.abs(corners) @ np.abs(fraction.denominator)
    inside = (below >= 0) & (above >= -slack) & (above <= below + slack)
    if not inside.all():
        worst = int(np.argmin(inside))
        raise ValueError(
            f"the utility of {target} must have 0 <= numerator <= denominator for all counts of "
            f"{total} entries, but where all of them are {('tp', 'fp', 'fn', 'tn')[worst]} its "
            f"numerator is {above[worst]:g} and its denominator {below[worst]:g}"
        )


@kernel
def utility(above, below, empty, tp, fp, fn, tn):
    """The quotient of the counts, or ``empty`` where its denominator is 0."""
    terms = abs(below[0]) + abs(below[1]) * tp + abs(below[2]) * fp
    terms += abs(below[3]) * fn + abs(below[4]) * tn
    bottom = below[0] + below[1] * tp + below[2] * fp + below[3] * fn + below[4] * tn
    top = above[0] + above[1] * tp + above[2] * fp + above[3] * fn + above[4] * tn
    return empty if abs(bottom) <= ZERO_SHARE * terms else top / bottom


@kernel
def utilities(above, below, empty, counts, values):
    """The utility of each column of counts; one row of coefficients for all, or one for each."""
    for j in range(len(values)):
        row = j if len(above) > 1 else 0
        tp, fp, fn, tn = counts[0, j], counts[1, j], counts[2, j], counts[3, j]
        values[j] = utility(above[row], below[row], empty, tp, fp, fn, tn)
