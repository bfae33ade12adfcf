"""Measures of a population: its decisions are counted first and judged once, by a quotient.

A population is a label over all rows (macro average), a row over all labels (instance average), or
every entry of the matrix (micro average).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from setwise.kernels import kernel
from setwise.targets import LinearFractional, Target, get_target
from setwise.targets.measure import ROUNDING, Array
from setwise.targets.registry import match
from setwise.targets.target import predicted_size, utility_quotient

Average = Literal["micro", "macro", "instance"]
By = Literal["all", "label", "row"]
POPULATIONS: dict[Average, By] = {"micro": "all", "macro": "label", "instance": "row"}

# A denominator that is this share of its terms is 0 and only rounding.
ZERO_SHARE = 1e-13

BALANCED = "balanced_accuracy"
# Losses: the share of the predicted that is false, the share of the true that is missed.
NAMED = {
    "precision": LinearFractional([0, 0, 1, 0, 0], [0, 1, 1, 0, 0]),
    "recall": LinearFractional([0, 0, 0, 1, 0], [0, 1, 0, 1, 0]),
    BALANCED: BALANCED,
}
Metric = Target | str


def get_metric(metric: Any) -> Metric:
    """The target whose utility judges a population; balanced accuracy stays a name."""
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
    if target.form == "population":
        raise ValueError(
            f"metric must say what is averaged, and average over what, but it is {metric!r}: use "
            f"Thresholds({str(target).partition('_')[2]!r}, average=...)"
        )
    if predicted_size(target) is not None or utility_quotient(target) is None:
        raise ValueError(
            f"metric must be a quotient of linear functions of the counts tp, fp, fn, tn, but "
            f"{target} is not one (its form is {target.form!r}); such are {known}, FBeta, Jaccard, "
            f"LinearFractional and Hamming without weights"
        )
    return target


class Quotient(NamedTuple):
    """(above · k) / (below · k) with k = (1, tp, fp, fn, tn); ``empty`` at 0/0.

    The coefficients have one row for all populations, (1, 5), or one for each, (m, 5).
    """

    above: Array
    below: Array
    empty: float

    @classmethod
    def of(cls, metric: Metric, positives: Array, total: int) -> Quotient:
        """The utility of populations of ``total`` entries, with so many ``positives`` each, (m,).

        Refused unless 0 <= numerator <= denominator. Both are linear, so it is enough that this
        holds where all entries are tp, or all fp, fn, or tn. The numerator is then 0 where the
        denominator is, which Dinkelbach's iteration relies on.
        """
        if isinstance(metric, str):
            return cls._balanced(positives, total)
        fraction: Any = utility_quotient(metric)
        corners = np.hstack([np.ones((4, 1)), total * np.eye(4)])
        above, below = corners @ fraction.numerator, corners @ fraction.denominator
        slack = ROUNDING * corners @ np.abs(fraction.denominator)
        inside = (below >= 0) & (above >= -slack) & (above <= below + slack)
        if not inside.all():
            worst = int(np.argmin(inside))
            raise ValueError(
                f"the utility of {metric} must have 0 <= numerator <= denominator for all counts "
                f"of {total} entries, but where all of them are {('tp', 'fp', 'fn', 'tn')[worst]} "
                f"its numerator is {above[worst]:g} and its denominator {below[worst]:g}"
            )
        return cls(fraction.numerator[None], fraction.denominator[None], float(fraction.empty))

    @classmethod
    def _balanced(cls, positives: Array, total: int) -> Quotient:
        """Mean of the recall of the positives and that of the negatives, tp/P and tn/N.

        Where P or N is 0 the other part alone counts, as in scikit-learn. P and N do not depend on
        the prediction, so this is linear in the counts.
        """
        parts = np.stack([positives, total - positives], axis=1).astype(np.float64)
        present = parts > 0
        above, below = np.zeros((len(parts), 5)), np.tile([1.0, 0, 0, 0, 0], (len(parts), 1))
        above[:, [1, 4]] = present / np.where(present, parts, 1.0)
        return cls(above / np.maximum(present.sum(axis=1, keepdims=True), 1), below, 1.0)

    def of_counts(self, counts: Array) -> Array:
        """The utility of each population, (m,), from tp, fp, fn, tn of each, (4, m)."""
        return ratios(self.above, self.below, self.empty, counts)


@kernel
def ratio(above, below, empty, tp, fp, fn, tn):
    """The quotient with coefficients (5,) at these counts, ``empty`` where its denominator is 0."""
    terms = abs(below[0]) + abs(below[1]) * tp + abs(below[2]) * fp
    terms += abs(below[3]) * fn + abs(below[4]) * tn
    bottom = below[0] + below[1] * tp + below[2] * fp + below[3] * fn + below[4] * tn
    top = above[0] + above[1] * tp + above[2] * fp + above[3] * fn + above[4] * tn
    return empty if abs(bottom) <= ZERO_SHARE * terms else top / bottom


@kernel
def ratios(above, below, empty, counts):
    """The quotient of each column of counts (4, m); see `Quotient`."""
    values = np.empty(counts.shape[1])
    for j in range(len(values)):
        row = j if len(above) > 1 else 0
        tp, fp, fn, tn = counts[0, j], counts[1, j], counts[2, j], counts[3, j]
        values[j] = ratio(above[row], below[row], empty, tp, fp, fn, tn)
    return values


def utilities(metric: Metric, counts: Array) -> Array:
    """The utility of each population, (m,), from tp, fp, fn, tn of each, (4, m)."""
    return quotient_of(metric, counts).of_counts(counts)


def quotient_of(metric: Metric, counts: Array) -> Quotient:
    """The utility of populations with these counts, (4, m)."""
    return Quotient.of(metric, counts[0] + counts[2], int(np.rint(counts[:, 0].sum())))
