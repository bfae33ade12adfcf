"""What probabilities are worth: calibration, and precision against recall over all thresholds.

Calibration is over all entries of all labels, in bins of equal width on [0, 1]; each bin contains
its upper end, the first also 0, as in scikit-learn's `calibration_curve`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from setwise.evaluation.sample import Array, checked_sample, in_parts
from setwise.evaluation.separation import Levels, columns, own_scores
from setwise.evaluation.statistics import Statistic, quotient, row_means, titled
from setwise.sparse import places_among, rows_of
from setwise.validation import whole_number

BRIER = titled("calibration", "lower", "brier score")
ERRORS = titled("calibration", "lower", "expected calibration error", "maximum calibration error")
# A recall this little above what a threshold reaches is the same number, rounded otherwise.
ROUNDING = 1e-9


def _checked(probability: Any, y_true: Any) -> tuple[Any, Any]:
    """Probabilities and true label sets of one shape, with their columns in one order."""
    if probability is None:
        raise ValueError("probability must be an array of shape (n, n_labels), but it is None")
    sample = checked_sample(y_true, y_true, probability)
    return sample.probability, sample.true


def _binned(probability: Any, true: Any, n_bins: int) -> tuple[Array, Array, Array, Array]:
    """Sums over the entries of each row, by the bin of their probability; of CSR arrays.

    Squared errors, (n,); excess of probability over truth, true entries and all entries, (n, b).
    Only stored probabilities and true labels are visited: every other entry has p = y = 0, and
    adds to the number of entries in the first bin only.
    """
    n_rows, n_labels = probability.shape
    places, stored = places_among(probability, true)
    missed = ~stored
    row = np.append(rows_of(probability), rows_of(true)[missed])
    likely = np.append(probability.data, np.zeros(missed.sum()))
    truth = np.append(np.zeros(probability.nnz), np.ones(missed.sum()))
    truth[places[stored]] = 1.0
    cell = row * n_bins + np.searchsorted(np.linspace(0.0, 1.0, n_bins + 1)[1:-1], likely)
    excess, hits, entries = (
        np.bincount(cell, values, minlength=n_rows * n_bins).reshape(n_rows, n_bins)
        for values in (likely - truth, truth, np.ones(len(cell)))
    )
    entries[:, 0] += n_labels - entries.sum(axis=1)
    return np.bincount(row, (likely - truth) ** 2, minlength=n_rows), excess, hits, entries


def calibration_statistics(probability: Any, true: Any, n_bins: int) -> list[Statistic]:
    """Brier score and calibration errors.

    With D_b the sum of p - y over the entries in bin b, and n_b their number, the expected
    calibration error is sum_b |D_b| / sum_b n_b, which is the mean gap between probability and
    frequency weighted by n_b; the maximum is max_b |D_b| / n_b.
    """
    squares, excess, _, entries = in_parts(_binned, probability, true, n_bins)

    def errors(_: Array, excess: Array, entries: Array) -> Array:
        gaps = np.abs(excess)
        expected = gaps.sum(axis=0) / entries.sum(axis=0)
        return np.stack([expected, quotient(gaps, entries, 0.0).max(axis=0)])

    brier = row_means(BRIER, squares[:, None] / true.shape[1])
    return [brier, Statistic.of(ERRORS, errors, excess, entries)]


@dataclass(frozen=True)
class Reliability:
    """Entries by the bin of their probability; bins of equal width on [0, 1].

    Attributes
    ----------
    edges : array of shape (n_bins + 1,)
        Each bin contains its upper end, the first also 0.
    count : array of shape (n_bins,)
        Number of entries.
    mean_probability, frequency : array of shape (n_bins,)
        Their mean probability, and the share of them that is true; 0 in a bin without entries.

    Examples
    --------
    >>> found = reliability([[0.1, 0.8], [0.2, 0.9]], [[0, 1], [0, 1]], n_bins=2)
    >>> found.count, found.mean_probability.round(2), found.frequency
    (array([2, 2]), array([0.15, 0.85]), array([0., 1.]))
    """

    edges: NDArray[np.float64]
    count: NDArray[np.int64]
    mean_probability: NDArray[np.float64]
    frequency: NDArray[np.float64]

    @property
    def expected_error(self) -> float:
        """The mean gap between probability and frequency, weighted by count, as in `evaluate`."""
        gaps = np.abs(self.mean_probability - self.frequency)
        return float((self.count * gaps).sum() / self.count.sum())


def reliability(probability: Any, y_true: Any, *, n_bins: int = 15) -> Reliability:
    """The reliability curve over all entries of all labels; arguments are as in `evaluate`.

    One pass over the stored entries, a range of rows at a time.

    Examples
    --------
    >>> curve = reliability([[0.9, 0.2], [0.7, 0.1]], [[1, 0], [1, 1]], n_bins=2)
    >>> curve.count, curve.mean_probability.round(2), curve.frequency
    (array([2, 2]), array([0.15, 0.8 ]), array([0.5, 1. ]))
    """
    n_bins = whole_number(n_bins, "n_bins", 1)
    _, *sums = in_parts(_binned, *_checked(probability, y_true), n_bins)
    excess, hits, count = (part.sum(axis=0) for part in sums)
    return Reliability(
        np.linspace(0.0, 1.0, n_bins + 1),
        count.astype(np.int64),
        quotient(excess + hits, count, 0.0),
        quotient(hits, count, 0.0),
    )


@dataclass(frozen=True)
class PrecisionRecall:
    """The points of one or more curves, each from the highest threshold down.

    A curve has a point for each recall it reaches, at the highest threshold that does: lower ones
    of the same recall only lose precision. Its last recall is 1. A curve of entries that are
    never true has no points.

    Attributes
    ----------
    start : array of shape (n_curves + 1,)
        The points of curve i are those from ``start[i]`` to before ``start[i + 1]``.
    threshold, precision, recall : array of shape (n_points,)
        Of "true if the probability is at least the threshold".
    average_precision : array of shape (n_curves,)
        The mean over true entries of the precision at the threshold that just finds them; 0 where
        no entry is true, as in scikit-learn.

    Examples
    --------
    >>> found = precision_recall([[0.9], [0.8], [0.3]], [[1], [0], [1]])
    >>> found.threshold, found.precision.round(2), found.recall
    (array([0.9, 0.3]), array([1.  , 0.67]), array([0.5, 1. ]))
    """

    start: NDArray[np.int64]
    threshold: NDArray[np.float64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    average_precision: NDArray[np.float64]

    def interpolated(self, recall: ArrayLike) -> NDArray[np.float64]:
        """The highest precision of each curve at these recalls or beyond, (n_curves, n_recalls).

        0 on a curve without points.
        """
        asked = np.asarray(recall, np.float64)
        n_curves = len(self.average_precision)
        curve = np.repeat(np.arange(n_curves), np.diff(self.start))
        # A running maximum from the last point back. A step of 2 between curves keeps each to
        # itself: precisions differ by at most 1.
        step = 2.0 * (n_curves - curve)
        best = np.maximum.accumulate((self.precision + step)[::-1])[::-1] - step
        wanted = 2.0 * np.arange(n_curves)[:, None] + asked - ROUNDING
        places = np.searchsorted(2.0 * curve + self.recall, wanted)
        there = places < self.start[1:, None]
        return np.where(there, np.append(best, 0.0)[places], 0.0)


def precision_recall(
    probability: Any, y_true: Any, *, average: Literal["micro"] | None = "micro"
) -> PrecisionRecall:
    """Precision and recall of "true if the probability is at least t", for every t.

    Parameters
    ----------
    probability, y_true
        As in `evaluate`.
    average : {"micro", None}, default "micro"
        One curve over the entries of all labels, or, with None, one for each label.

    Notes
    -----
    Entries of equal probability are found together, as in scikit-learn. The cost is a sort of the
    true entries' probabilities, and a search for each stored entry among them.

    Examples
    --------
    >>> curve = precision_recall([[0.9, 0.2], [0.6, 0.4]], [[1, 0], [0, 1]])
    >>> curve.recall, curve.precision.round(2), curve.threshold
    (array([0.5, 1. ]), array([1.  , 0.67]), array([0.9, 0.4]))
    """
    if average not in ("micro", None):
        raise ValueError(f"average must be 'micro' or None (one curve a label), not {average!r}")
    probability, true = _checked(probability, y_true)
    n_rows, n_labels = true.shape
    if average == "micro":
        stored = probability.data if issparse(probability) else probability.ravel()
        found = [Levels.of(stored, own_scores(probability, true), n_rows * n_labels)]
    else:
        by_label = columns(probability, true)
        found = [Levels.of(column.stored, column.own, n_rows) for column in by_label]
    # From the highest threshold down.
    parts = [[own.score, own.true_as_high, own.as_high] for own in found]
    score, tp, as_high = (
        np.concatenate([part[::-1] for part in of]) for of in zip(*parts, strict=True)
    )
    n_points = [len(own.score) for own in found]
    support = np.repeat([own.n_true.sum() for own in found], n_points)
    average_precision = np.nan_to_num([own.average_precision for own in found])
    start = np.append(0, np.cumsum(n_points))
    return PrecisionRecall(start, score, tp / as_high, tp / support, average_precision)
