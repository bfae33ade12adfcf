"""The figures of each label by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.evaluation.label_sets import precision_recall_f1_jaccard
from setwise.evaluation.precision_recall import curves
from setwise.evaluation.sample import checked_sample


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
    if not isinstance(zero_division, int | float) or zero_division not in (0, 1):
        raise ValueError(f"zero_division must be 0.0 or 1.0, but it is {zero_division!r}")
    sample = checked_sample(y_pred, y_true, probability)
    both = sample.predicted.multiply(sample.true).sum(axis=0)
    predicted, support = sample.predicted.sum(axis=0), sample.true.sum(axis=0)
    precision, recall, f1, _ = precision_recall_f1_jaccard(both, predicted, support, zero_division)
    average = None
    if sample.probability is not None:
        average = curves(sample.probability, sample.true, None).average_precision
    return PerLabel(support, predicted, both, precision, recall, f1, average)
