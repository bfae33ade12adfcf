"""Measures of a whole population: decisions of many rows are counted first, and judged once.

Such a measure has no loss of a single row, so nothing can be summed over rows but the counts. It
is asked for its `utility` over all rows together, as every target can be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np

from setwise.sparse import tidy_sets
from setwise.targets.measure import ROUNDING, Array, Form, Fraction, Of, OfCounts
from setwise.targets.target import (
    Target,
    predicted_size,
    rates_mean,
    row_weights,
    utility_quotient,
)
from setwise.validation import label_matrix, same_rows

Average = Literal["micro", "macro", "weighted"]


class OfPopulation(Target):
    """A measure of the counts of all rows, of each label or of all together."""

    of: Any
    zero_division: float
    average: ClassVar[Average]
    form: ClassVar[Form] = "population"

    def __post_init__(self):
        from setwise.targets.registry import part_of_average

        of, nothing = part_of_average(self.of), self.zero_division
        is_number = isinstance(nothing, int | float | np.integer | np.floating)
        if not is_number or not (0.0 <= nothing <= 1.0 or math.isnan(nothing)):
            raise ValueError(f"zero_division must be from 0 to 1, or nan, but it is {nothing!r}")
        if population_measure(of, 0.0) is None:
            raise ValueError(
                f"{type(self).__name__} is of a quotient of linear functions of the counts tp, fp, "
                f"fn, tn, such as FBeta, Jaccard, LinearFractional or Hamming without weights, or "
                f"of Precision, Recall, BalancedAccuracy or GMean, but {of} is none"
            )
        vars(self).update(of=of, zero_division=float(nothing))

    def measure(self, n_labels: int, of: Of) -> NoReturn:
        """Refused: there is no loss of a single row."""
        raise ValueError(
            f"{self} judges all rows together, so a single row has no loss: its value is "
            f"utility(y_pred, y_true). SetClassifier and the other estimators take it as their "
            f"target, setwise.nn.PopulationLoss trains a network for it, and PopulationRule of "
            f"setwise.decoders decides for it from probabilities"
        )

    def on(self, space: Any) -> Target:
        """The same: which label sets may be predicted does not matter."""
        return self

    def refuse_labels(self, n_labels: int) -> None:
        """Nothing to refuse: any number of labels will do."""

    def row_losses(self, y_pred: Any, y_true: Any, sample_weight: Any = None) -> Array:
        """1 - `utility`, less each row's share in it, (n,).

        A row's share is how much a unit more of its weight would change the measure, times the
        weight of all rows: the mean of the losses is 1 - `utility`, and their standard error about
        that of it (the measure is a smooth function of counts, which are sums over rows).
        """
        tallies = self.tallies(y_pred, y_true)
        weights = row_weights(sample_weight, tallies[0].shape[0])
        sums = [weights @ part for part in tallies]
        shares = self._shares(weights.sum(), tallies, sums)
        value = float(self.utility_of(weights.sum(), *sums))
        return 1.0 - value - (shares - np.average(shares, weights=weights))

    def utility(self, y_pred: Any, y_true: Any, sample_weight: Any = None) -> float:
        """The measure of all rows together; see `Target.utility`."""
        tallies = self.tallies(y_pred, y_true)
        weights = row_weights(sample_weight, tallies[0].shape[0])
        return float(self.utility_of(weights.sum(), *(weights @ part for part in tallies)))

    # The measure follows from weighted sums over rows: these say of what, and how.

    def tallies(self, y_pred: Any, y_true: Any) -> tuple[Any, ...]:
        """What is both true and predicted in each row, what is predicted, and what is true."""
        if not (hasattr(y_pred, "tocsr") and hasattr(y_true, "tocsr")):
            predicted = label_matrix(y_pred, None, "y_pred")
            true = label_matrix(y_true, predicted.shape[1], "y_true")
            same_rows(y_pred=predicted, y_true=true)
            return predicted & true, predicted, true
        predicted, true = (tidy_sets(s, n) for s, n in ((y_pred, "y_pred"), (y_true, "y_true")))
        if predicted.shape != true.shape:
            raise ValueError(
                f"y_pred and y_true must have the same shape, but they have {predicted.shape} and "
                f"{true.shape}"
            )
        return predicted.multiply(true), predicted, true

    def utility_of(self, mass: Any, both: Any, predicted: Any, true: Any) -> Any:
        """The measure, from the weight of all rows and the weights of the tallies, (l, ...)."""
        return self.of_counts(self.counts_of(mass, both, predicted, true))

    @staticmethod
    def counts_of(mass: Any, both: Any, predicted: Any, true: Any) -> Array:
        """tp, fp, fn, tn of each label, (4, l, ...), from the same."""
        both, predicted, true = (np.asarray(part, np.float64) for part in (both, predicted, true))
        counts = [both, predicted - both, true - both, mass - predicted - true + both]
        return np.stack([np.maximum(count, 0.0) for count in counts])

    def of_counts(self, counts: Array) -> Any:
        """The measure, from tp, fp, fn, tn of each label, (4, l, ...)."""
        if self.average == "micro":
            counts = counts.sum(axis=1, keepdims=True)
        values = self.by_label(counts)
        known = ~np.isnan(values)
        weights = counts[0] + counts[2] if self.average == "weighted" else np.ones(values.shape)
        weights = np.where(known, weights, 0.0)
        # Unweighted where no label that has a value is ever true, as in scikit-learn.
        weights = np.where(weights.sum(axis=0) > 0, weights, known)
        total = weights.sum(axis=0)
        mean = (np.where(known, values, 0.0) * weights).sum(axis=0)
        return np.where(total > 0, mean / np.where(total > 0, total, 1.0), np.nan)

    def _shares(self, mass: float, tallies: tuple[Any, ...], sums: Sequence[Any]) -> Array:
        """How much a unit of weight on each row would change the measure, times ``mass``, (n,).

        By the measure's slopes in the four counts of each label, taken over one row more and less:
        so they are finite where a count is 0.
        """
        counts, row = self.counts_of(mass, *sums), mass / tallies[0].shape[0]
        tp, fp, fn, tn = (self._slope(counts, count, row) for count in range(4))
        parts = zip(tallies, (tp - fp - fn + tn, fp - tn, fn - tn), strict=True)
        return mass * sum(np.asarray(part @ slope) for part, slope in parts)  # type: ignore

    def _slope(self, counts: Array, count: int, row: float) -> Array:
        """Of the measure by one of the counts of each label, (l,)."""
        n_labels = counts.shape[1]
        if self.average == "micro":
            counts = counts.sum(axis=1, keepdims=True)
        more, fewer = counts.copy(), counts.copy()
        more[count] += row
        fewer[count] = np.maximum(fewer[count] - row, 0.0)
        change = self.by_label(more) - self.by_label(fewer)
        slope = np.nan_to_num(change / (more - fewer)[count])
        weights = counts[0] + counts[2] if self.average == "weighted" else np.ones(len(slope))
        return np.broadcast_to(slope * weights / (weights.sum() or 1.0), n_labels)

    def by_label(self, counts: Array) -> Array:
        """The utility of each population, (m, ...), from its counts, (4, m, ...)."""
        values = population_measure(self.of, self.zero_division).of_counts(*counts)  # type: ignore
        outside = (values < -ROUNDING) | (values > 1.0 + ROUNDING)
        if outside.any():
            place = tuple(np.argwhere(outside)[0])
            tp, fp, fn, tn = (count[place] for count in counts)
            raise ValueError(
                f"{self.of} must stay in [0, 1], but it is {values[place]} at tp={tp:g}, "
                f"fp={fp:g}, fn={fn:g}, tn={tn:g}"
            )
        return values

    def __str__(self) -> str:
        of = str(self.of).removesuffix("_samples")
        convention = f" (0/0 is {self.zero_division:g})" if self.zero_division != 0.0 else ""
        return f"{self.average}_{of}{convention}"


@dataclass(frozen=True)
class Macro(OfPopulation):
    """The mean over labels of a measure of each label's decisions in all rows.

    utility = (1 / l) sum_j u(tp_j, fp_j, fn_j, tn_j), the counts of label j over all rows, by
    weight where rows have weights.

    Parameters
    ----------
    of : Target or str
        The measure of the counts: F-beta, Jaccard, `Precision`, `Recall`, `BalancedAccuracy`,
        `GMean`, Hamming without weights, or any `LinearFractional`; by name "f1", "jaccard",
        "precision", "recall", "balanced_accuracy", "g_mean", "hamming".
    zero_division : float, default 0.0
        The utility of a label where the quotient is 0/0, in place of its ``empty``: F-beta and
        Jaccard of a label never true and never predicted, precision of one never predicted, recall
        of one never true. nan leaves such labels out of the mean. scikit-learn's argument of that
        name, with its default. Balanced accuracy and G-mean have no 0/0: of a label never (or
        always) true they are the share of the rows decided right.

    Examples
    --------
    >>> Macro("f1").utility([[1, 0], [1, 0]], [[1, 0], [0, 0]])
    0.3333333333333333
    >>> Macro("f1", zero_division=1.0).utility([[1, 0], [1, 0]], [[1, 0], [0, 0]])
    0.8333333333333333
    """

    of: Any
    zero_division: float = 0.0
    average: ClassVar[Average] = "macro"


@dataclass(frozen=True)
class Micro(OfPopulation):
    """A measure of the decisions of all labels in all rows, counted together.

    utility = u(sum_j tp_j, sum_j fp_j, sum_j fn_j, sum_j tn_j).

    Parameters
    ----------
    of, zero_division
        As in `Macro`; 0/0 is where there is nothing to count at all.

    Examples
    --------
    >>> Micro("f1").utility([[1, 0], [1, 0]], [[1, 0], [0, 0]])
    0.6666666666666666
    """

    of: Any
    zero_division: float = 0.0
    average: ClassVar[Average] = "micro"


@dataclass(frozen=True)
class Weighted(OfPopulation):
    """The mean over labels as in `Macro`, by how often each label is true.

    utility = sum_j P_j u(tp_j, fp_j, fn_j, tn_j) / sum_j P_j with P_j = tp_j + fn_j; the plain mean
    where no label is ever true.

    Parameters
    ----------
    of, zero_division
        As in `Macro`.

    Examples
    --------
    >>> Weighted("f1").utility([[1, 0], [1, 0]], [[1, 0], [0, 0]])
    0.6666666666666666
    """

    of: Any
    zero_division: float = 0.0
    average: ClassVar[Average] = "weighted"


def population_measure(of: Target, nothing: float) -> OfCounts | None:
    """The utility of a target as a function of the counts of many rows, 0/0 settled.

    None where it has none: it depends on more than the counts, or on how many labels a row has.
    """
    quotient = utility_quotient(of) if predicted_size(of) is None else None
    if isinstance(quotient, Fraction):
        return replace(quotient, empty=nothing)
    return of.measure(1, "utility") if rates_mean(of) is not None else None  # type: ignore
