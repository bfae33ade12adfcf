"""Measures of a population: its decisions are counted first and judged once.

A population is a label over all rows (macro average), a row over all labels (instance average), or
every entry of the matrix (micro average).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from setwise.kernels import inner
from setwise.targets import BalancedAccuracy, GMean, Precision, Recall, Target, get_target
from setwise.targets.measure import ROUNDING, Array, Fraction
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

    @property
    def forgives_misses(self) -> bool:
        """Whether a miss costs nothing, as in precision: a single sure label is then the best."""
        found, missed = Utilities.of_counts(self.metric, np.array([[1, 1], [0, 0], [0, 1], [1, 0]]))
        return bool(found == missed)


class Utilities(NamedTuple):
    """The utility of each population by two linear functions of its tallies, (1, tp, predicted).

    How many of its entries are true, and how many there are, is in the constants. The utility is
    the quotient of the first function by the second, ``empty`` at 0/0, or where ``geometric`` the
    root of their product. ``constants`` is (2, m); ``slopes`` (2, 2, m), or (2, 2, 1) where all
    populations have the same, first by function, then by tally; ``geometric`` is (m,) or (1,) as
    they are. A second function of no more than ``zero`` (m,), and of no more than a share of what
    it grows by with the tallies, is 0 but for rounding.
    """

    constants: Array
    slopes: Array
    geometric: Array
    empty: float
    zero: Array

    @classmethod
    def of(cls, metric: Target, positives: Array, total: float | Array) -> Utilities:
        """Of populations of ``total`` entries, with so many ``positives`` each, (m,)."""
        mean = rates_mean(metric)
        if mean is not None:
            parts, geometric = _rates(positives, total, mean == "geometric")
            empty = 1.0
        else:
            fraction = _bounded(metric, float(np.max(total)))
            parts = np.stack([fraction.numerator, fraction.denominator])[:, None]
            geometric, empty = np.zeros(1, bool), float(fraction.empty)
        one, tp, fp, fn, tn = np.moveaxis(parts, 2, 0)
        slopes = np.stack([(tp - fp) - (fn - tn), fp - tn], axis=1)
        negatives = total - positives
        zero = np.abs(one[1]) + np.abs(fn[1]) * positives + np.abs(tn[1]) * negatives
        constants = one + fn * positives + tn * negatives
        return cls(constants, slopes, geometric, empty, ZERO_SHARE * zero)

    @classmethod
    def of_counts(cls, metric: Target, counts: Array) -> Array:
        """The utility of each population, (m,), from tp, fp, fn, tn of each, (4, m)."""
        utilities = cls.of(metric, counts[0] + counts[2], float(counts[:, 0].sum()))
        return utilities.at(counts[0], counts[0] + counts[1])

    def parts(self, tp: Array, predicted: Array) -> Array:
        """Both functions at these tallies, (2, m)."""
        return self.constants + self.slopes[:, 0] * tp + self.slopes[:, 1] * predicted

    def at(self, tp: Array, predicted: Array) -> Array:
        """The utilities at these tallies, (m,)."""
        above, below = self.parts(tp, predicted)
        growth = np.abs(self.slopes[1, 0]) * tp + np.abs(self.slopes[1, 1]) * predicted
        is_known = np.abs(below) > self.zero + ZERO_SHARE * growth
        found = np.divide(above, below, where=is_known, out=np.full(len(tp), self.empty))
        if self.geometric.any():
            found = np.where(self.geometric, np.sqrt(np.maximum(above * below, 0.0)), found)
        return found

    def tangents(self, tp: Array, predicted: Array, total: float) -> Array:
        """The linear parts at these tallies: coefficients of (1, tp, predicted), (3, m).

        0 where the utility is 0/0. G-mean rises without bound where it is 0; its derivatives at a
        small share of the counts stand for them there.
        """
        parts, nothing = self.parts(tp, predicted), np.zeros(len(tp))
        is_known = np.abs(parts[1]) > self.zero
        inverse = np.divide(1.0, parts[1], where=is_known, out=nothing)
        rest = parts[0] * inverse
        by = np.stack([inverse, -rest * inverse])
        if self.geometric.any():
            above, below = np.maximum(parts, SMALL_SHARE * total * self.slopes[:, 0])
            root = np.sqrt(np.divide(above, below, where=self.geometric, out=np.ones(len(tp))))
            by = np.where(self.geometric, np.stack([0.5 / root, 0.5 * root]), by)
            rest = np.where(self.geometric, 0.0, rest)
        constant = rest + (by * self.constants).sum(axis=0)
        return np.stack([constant, *(by[:, None] * self.slopes).sum(axis=0)])


def _bounded(metric: Target, total: float) -> Fraction:
    """The utility as a quotient of the counts; refused unless 0 <= numerator <= denominator.

    Both are linear, so it is enough that this holds where all entries are tp, or all fp, fn, or tn.
    The numerator is then 0 where the denominator is, which Dinkelbach's iteration relies on.
    """
    fraction: Any = utility_quotient(metric)
    corners = np.hstack([np.ones((4, 1)), total * np.eye(4)])
    above, below = corners @ fraction.numerator, corners @ fraction.denominator
    slack = ROUNDING * corners @ np.abs(fraction.denominator)
    inside = (below >= 0) & (above >= -slack) & (above <= below + slack)
    if not inside.all():
        worst = int(np.argmin(inside))
        raise ValueError(
            f"the utility of {metric} must have 0 <= numerator <= denominator for all counts "
            f"of {total:g} entries, but where all of them are {('tp', 'fp', 'fn', 'tn')[worst]} "
            f"its numerator is {above[worst]:g} and its denominator {below[worst]:g}"
        )
    return fraction


def _rates(positives: Array, total: float | Array, geometric: bool) -> tuple[Array, Array]:
    """Mean of the recall of the positives and that of the negatives, tp/P and tn/N.

    The coefficients of both functions by (1, tp, fp, fn, tn), (2, m, 5), and which populations have
    the geometric mean, (m,). Where P or N is 0 the other part alone counts, as in scikit-learn. P
    and N do not depend on the prediction, so the arithmetic mean is linear in the counts.
    """
    sizes = np.stack([positives, total - positives]).astype(np.float64)
    present = sizes > ZERO_SHARE * total
    rates = present / np.where(present, sizes, 1.0)
    both = np.logical_and(*present)
    parts = np.zeros((2, len(positives), 5))
    parts[0][:, [1, 4]] = (rates / np.maximum(present.sum(axis=0), 1)).T
    parts[1, :, 0] = 1.0
    if geometric:
        parts[0, both], parts[1, both] = 0.0, 0.0
        parts[0, both, 1], parts[1, both, 4] = rates[:, both]
    return parts, np.logical_and(both, geometric)


@inner
def utility_at(utilities, j, tp, predicted):
    """The utility of population j at these tallies, ``empty`` where its denominator is 0."""
    constants, slopes, geometric, empty, zero = utilities
    row = j if len(geometric) > 1 else 0
    by_tp, by_predicted = slopes[1, 0, row], slopes[1, 1, row]
    above = constants[0, j] + slopes[0, 0, row] * tp + slopes[0, 1, row] * predicted
    below = constants[1, j] + by_tp * tp + by_predicted * predicted
    if geometric[row]:
        return np.sqrt(max(above, 0.0) * max(below, 0.0))
    rounding = zero[j] + ZERO_SHARE * (abs(by_tp) * tp + abs(by_predicted) * predicted)
    return empty if abs(below) <= rounding else above / below
