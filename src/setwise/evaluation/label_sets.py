"""Figures of predicted label sets: by row (instance), over all (micro), by label (macro)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.evaluation.probability import curves
from setwise.evaluation.sample import Array, Sample, checked_sample, row_ranges
from setwise.evaluation.statistics import (
    RatiosOfSums,
    RowMeans,
    Statistic,
    Sums,
    Title,
    quotient,
)
from setwise.targets import Target

FOUR = ("precision", "recall", "f1", "jaccard")
HAMMING = (Title("hamming loss", "instance", "lower"),)
INSTANCE = (
    Title("subset accuracy", "instance", "higher"),
    *(Title(f"instance {name}", "instance", "higher") for name in FOUR),
    Title("predicted size", "instance", None),
    Title("true size", "instance", None),
)
LABELS = (
    *(Title(f"micro {name}", "micro", "higher") for name in FOUR),
    *(Title(f"macro {name}", "macro", "higher") for name in FOUR),
    Title("macro balanced accuracy", "macro", "higher"),
    Title("weighted f1", "macro", "higher"),
)


def instance_statistics(sample: Sample, zero_division: float) -> tuple[Statistic, ...]:
    """Figures of each row's two label sets, averaged over rows.

    Hamming loss is one quotient of two counts, as exact as can be.
    """
    both = sample.both.sum(axis=1)
    predicted, true = sample.predicted.sum(axis=1), sample.true.sum(axis=1)
    differ = predicted + true - 2 * both
    columns = (
        differ == 0,
        *precision_recall_f1_jaccard(both, predicted, true, zero_division),
        predicted,
        true,
    )
    entries = np.full((sample.n_rows, 1), sample.n_labels)
    return (
        RatiosOfSums(HAMMING, Sums.of(differ[:, None]), Sums.of(entries), 0.0),
        RowMeans(INSTANCE, Sums.of(np.column_stack(columns))),
    )


def precision_recall_f1_jaccard(both: Any, predicted: Any, true: Any, nothing: float):
    """The quotients of `FOUR`, from the sizes of intersection, prediction and truth."""
    return (
        quotient(both, predicted, nothing),
        quotient(both, true, nothing),
        quotient(2.0 * both, predicted + true, nothing),
        quotient(both, predicted + true - both, nothing),
    )


def target_means(sample: Sample, targets: tuple[Target, ...]) -> RowMeans:
    """Mean losses of setwise targets."""
    losses = np.column_stack([row_losses(sample, target) for target in targets])
    titles = tuple(Title(f"loss: {target}", "target", "lower") for target in targets)
    return RowMeans(titles, Sums.of(losses))


def row_losses(sample: Sample, target: Target) -> Array:
    """The loss of each row, (n,), a range of rows at a time.

    An error that names a row says where its range begins.
    """
    losses = np.empty(sample.n_rows)
    for rows in row_ranges(sample.n_rows, sample.n_labels):
        try:
            losses[rows] = target.loss(sample.predicted[rows], sample.true[rows])
        except ValueError as error:
            if rows.start == 0:
                raise
            raise ValueError(
                f"{error} (counting rows from row {rows.start} of the whole)"
            ) from error
    return losses


@dataclass(frozen=True)
class LabelCounts:
    """Micro and macro figures, from how often each label is predicted, true, and both."""

    both: Sums
    predicted: Sums
    true: Sums
    zero_division: float
    titles: tuple[Title, ...] = LABELS

    def at(self, weights: Array) -> Array:
        nothing = self.zero_division
        both, predicted, true = (
            sums.at(weights) for sums in (self.both, self.predicted, self.true)
        )
        micro = precision_recall_f1_jaccard(
            both.sum(axis=0), predicted.sum(axis=0), true.sum(axis=0), nothing
        )
        by_label = precision_recall_f1_jaccard(both, predicted, true, nothing)
        macro = [figure.mean(axis=0) for figure in by_label]
        balanced = _balanced_accuracy(both, predicted, true, weights.sum(axis=0)).mean(axis=0)
        return np.stack([*micro, *macro, balanced, _mean_by_support(by_label[2], true)])


def label_counts(sample: Sample, zero_division: float) -> LabelCounts:
    """What micro and macro figures need of a sample."""
    both, predicted, true = map(Sums.of, (sample.both, sample.predicted, sample.true))
    return LabelCounts(both, predicted, true, zero_division)


def _balanced_accuracy(both: Array, predicted: Array, true: Array, total: Array) -> Array:
    """Mean recall of a label's two classes; of one class where the other never occurs."""
    false = total - true
    recall = quotient(both, true, 0.0)
    specificity = quotient(false - predicted + both, false, 0.0)
    return (recall + specificity) / (1.0 * (true > 0) + (false > 0))


def _mean_by_support(by_label: Array, true: Array) -> Array:
    """Mean over labels weighted by how often each is true; unweighted where none ever is."""
    support = true.sum(axis=0)
    plain = by_label.mean(axis=0)
    return np.where(support == 0, plain, quotient((by_label * true).sum(axis=0), support, 0.0))


# -------------------------------------------------------------------------------- by each label


@dataclass(frozen=True)
class PerLabel:
    """One entry for each label.

    Attributes
    ----------
    support, predicted, both : array of int
        In how many rows it is true, predicted, and both.
    precision, recall, f1 : array of float
        both / predicted, both / support and 2 both / (predicted + support).
    average_precision : array of float, or None without probabilities
        As in `precision_recall`; 0 for a label that is never true.
    """

    support: NDArray[np.int64]
    predicted: NDArray[np.int64]
    both: NDArray[np.int64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    f1: NDArray[np.float64]
    average_precision: NDArray[np.float64] | None


def per_label(
    y_pred: Any, y_true: Any, *, probability: Any = None, zero_division: float = 1.0
) -> PerLabel:
    """Counts, precision, recall, F1 and average precision of each label.

    Parameters
    ----------
    y_pred, y_true : array or sparse matrix of shape (n, n_labels)
        Predicted and true label sets, 0/1.
    probability : array or sparse matrix of shape (n, n_labels), optional
        Of each label, in [0, 1]; absent entries are 0. Gives the average precision.
    zero_division : {0.0, 1.0}, default 1.0
        The value of 0/0, as in `evaluate`; the counts tell where that is.

    Notes
    -----
    The counts take one pass over the stored label sets, average precision a sort of the nonzero
    probabilities.

    Examples
    --------
    >>> figures = per_label([[1, 1], [0, 1]], [[1, 0], [1, 1]])
    >>> figures.support, figures.precision, figures.recall
    (array([2, 1]), array([1. , 0.5]), array([0.5, 1. ]))
    """
    nothing = checked_zero_division(zero_division)
    sample = checked_sample(y_pred, y_true, probability)
    both, predicted, support = (
        part.sum(axis=0) for part in (sample.both, sample.predicted, sample.true)
    )
    precision, recall, f1, _ = precision_recall_f1_jaccard(both, predicted, support, nothing)
    average = None
    if sample.probability is not None:
        average = curves(sample.probability, sample.true, None).average_precision
    return PerLabel(support, predicted, both, precision, recall, f1, average)


def checked_zero_division(value: Any) -> float:
    """The value of 0/0: 0 or 1."""
    if not isinstance(value, int | float) or value not in (0, 1):
        raise ValueError(f"zero_division must be 0.0 or 1.0, but it is {value!r}")
    return float(value)
