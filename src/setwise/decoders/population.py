"""Measures of a population: its decisions are counted first and judged once.

A population is a label over all rows (macro average), a row over all labels (instance average), or
every entry of the matrix (micro average).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from setwise.kernels import inner, kernel
from setwise.targets import BalancedAccuracy, GMean, Precision, Recall, Target, get_target
from setwise.targets.measure import ROUNDING, Array
from setwise.targets.registry import match
from setwise.targets.target import judges_all_rows, predicted_size, rates_mean, utility_quotient

Average = Literal["micro", "macro", "instance"]
By = Literal["all", "label", "row"]
POPULATIONS: dict[Average, By] = {"micro": "all", "macro": "label", "instance": "row"}

# A denominator that is this share of its terms is 0 and only rounding.
ZERO_SHARE = 1e-13
# Counts of this share of a population are next to none.
SMALL_SHARE = 1e-6

# Measures of a population that go by other names where they judge single rows.
NAMED: dict[str, Target] = {
    "precision": Precision(empty=1.0),
    "recall": Recall(empty=1.0),
    "balanced_accuracy": BalancedAccuracy(),
    "g_mean": GMean(),
}


def get_metric(metric: Any) -> Target:
    """The target whose utility judges a population."""
    known = ", ".join(map(repr, NAMED))
    try:
        if isinstance(metric, str) and (found := match(metric, NAMED)) is not None:
            return NAMED[found[0]]
        target = get_target(metric)
    except ValueError as error:
        raise ValueError(
            f"metric must be {known}, or a target with linear-fractional utility such as 'f1', "
            f"'jaccard' or 'hamming', by name or as an object, but it is {metric!r}; which "
            f"average is meant is another argument"
        ) from error
    if judges_all_rows(target):
        raise ValueError(
            f"metric must say what is averaged, and average over what, but it is {metric!r}: use "
            f"Thresholds({str(target).partition('_')[2]!r}, average=...)"
        )
    if rates_mean(target) is not None:
        return target
    if predicted_size(target) is not None or utility_quotient(target) is None:
        raise ValueError(
            f"metric must be a quotient of linear functions of the counts tp, fp, fn, tn, but "
            f"{target} is not one (its form is {target.form!r}); such are {known}, FBeta, Jaccard, "
            f"LinearFractional and Hamming without weights"
        )
    return target


class Population(NamedTuple):
    """What a population target asks of its decisions: a metric, averaged over these populations.

    ``by_positives``: populations count by how many positives they have.
    """

    metric: Target
    average: Average
    by_positives: bool

    @classmethod
    def of(cls, target: Any) -> Population:
        """Of a target that judges all rows together (`Macro`, `Micro`, `Weighted`)."""
        average = getattr(target, "average", None)
        if average not in ("micro", "macro", "weighted"):
            raise ValueError(
                f"target must judge all rows together, as 'macro_f1' and Micro('jaccard') do, but "
                f"it is {target!r}; MinimumRisk(target) decides row by row"
            )
        metric, nothing = get_metric(target.of), target.zero_division
        if hasattr(metric, "empty"):
            metric = replace(metric, empty=0.0 if np.isnan(nothing) else nothing)  # type: ignore
        return cls(metric, "micro" if average == "micro" else "macro", average == "weighted")


class Quotient(NamedTuple):
    """(above · k) / (below · k) with k = (1, tp, fp, fn, tn); ``empty`` at 0/0.

    The coefficients have one row for all populations, (1, 5), or one for each, (m, 5). With
    ``geometric`` the value is the geometric mean of the two rates tp/P and tn/N instead, and
    ``above`` has the coefficients of their arithmetic mean.
    """

    above: Array
    below: Array
    empty: float
    geometric: bool = False

    @classmethod
    def of(cls, metric: Target, positives: Array, total: float | Array) -> Quotient:
        """The utility of populations of ``total`` entries, with so many ``positives`` each, (m,).

        Refused unless 0 <= numerator <= denominator. Both are linear, so it is enough that this
        holds where all entries are tp, or all fp, fn, or tn. The numerator is then 0 where the
        denominator is, which Dinkelbach's iteration relies on.
        """
        if (mean := rates_mean(metric)) is not None:
            return cls._of_rates(positives, total, mean == "geometric")
        fraction: Any = utility_quotient(metric)
        corners = np.hstack([np.ones((4, 1)), np.max(total) * np.eye(4)])
        above, below = corners @ fraction.numerator, corners @ fraction.denominator
        slack = ROUNDING * corners @ np.abs(fraction.denominator)
        inside = (below >= 0) & (above >= -slack) & (above <= below + slack)
        if not inside.all():
            worst = int(np.argmin(inside))
            raise ValueError(
                f"the utility of {metric} must have 0 <= numerator <= denominator for all counts "
                f"of {np.max(total):g} entries, but where all of them are "
                f"{('tp', 'fp', 'fn', 'tn')[worst]} its numerator is {above[worst]:g} and its "
                f"denominator {below[worst]:g}"
            )
        return cls(fraction.numerator[None], fraction.denominator[None], float(fraction.empty))

    @classmethod
    def _of_rates(cls, positives: Array, total: float | Array, geometric: bool) -> Quotient:
        """Mean of the recall of the positives and that of the negatives, tp/P and tn/N.

        Where P or N is 0 the other part alone counts, as in scikit-learn. P and N do not depend on
        the prediction, so the arithmetic mean is linear in the counts.
        """
        parts = np.stack([positives, total - positives]).astype(np.float64)
        present, parts = (parts > ZERO_SHARE * total).T, parts.T
        above, below = np.zeros((len(parts), 5)), np.tile([1.0, 0, 0, 0, 0], (len(parts), 1))
        above[:, [1, 4]] = present / np.where(present, parts, 1.0)
        above /= np.maximum(present.sum(axis=1, keepdims=True), 1)
        return cls(above, below, 1.0, geometric)

    def of_counts(self, counts: Array) -> Array:
        """The utility of each population, (m,), from tp, fp, fn, tn of each, (4, m)."""
        values = np.empty(counts.shape[1])
        utilities_of(self, np.ascontiguousarray(counts, np.float64), values)
        return values


@inner
def utility_at(quotient, j, tp, fp, fn, tn):
    """The utility of population j at these counts, ``empty`` where its denominator is 0."""
    above, below, empty, geometric = quotient
    row = j if len(above) > 1 else 0
    if geometric:
        true, false = above[row, 1] * max(tp, 0.0), above[row, 4] * max(tn, 0.0)
        # (The coefficients are 1/2P and 1/2N; where a class does not occur one is 0.)
        both = above[row, 1] > 0.0 and above[row, 4] > 0.0
        return 2.0 * np.sqrt(true * false) if both else true + false
    terms = abs(below[row, 0]) + abs(below[row, 1]) * tp + abs(below[row, 2]) * fp
    terms += abs(below[row, 3]) * fn + abs(below[row, 4]) * tn
    bottom = below[row, 0] + below[row, 1] * tp + below[row, 2] * fp
    bottom += below[row, 3] * fn + below[row, 4] * tn
    top = above[row, 0] + above[row, 1] * tp + above[row, 2] * fp
    top += above[row, 3] * fn + above[row, 4] * tn
    return empty if abs(bottom) <= ZERO_SHARE * terms else top / bottom


@kernel
def utilities_of(quotient, counts, values):
    """The utility of each population, one for each column of counts (4, m)."""
    for j in range(len(values)):
        tp, fp, fn, tn = counts[0, j], counts[1, j], counts[2, j], counts[3, j]
        values[j] = utility_at(quotient, j, tp, fp, fn, tn)


def population_utilities(metric: Target, counts: Array) -> Array:
    """The utility of each population, (m,), from tp, fp, fn, tn of each, (4, m)."""
    return quotient_of(metric, counts).of_counts(counts)


def quotient_of(metric: Target, counts: Array) -> Quotient:
    """The utility of populations with these counts, (4, m)."""
    return Quotient.of(metric, counts[0] + counts[2], float(counts[:, 0].sum()))
