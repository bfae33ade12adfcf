"""Precision against recall, over all thresholds: one curve for all entries, or one a label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from setwise.entries import places_among, rows_of
from setwise.evaluation.sample import (
    Array,
    checked_probability,
    label_sets,
    row_ranges,
    sparse_rows,
)

# A recall this little above what a threshold reaches is the same number, rounded otherwise.
ROUNDING = 1e-9


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
    probability : array or sparse matrix of shape (n, n_labels)
        Of each label, in [0, 1]; absent entries are 0.
    y_true : array or sparse matrix of shape (n, n_labels)
        True label sets, 0/1.
    average : {"micro", None}, default "micro"
        One curve over the entries of all labels, or, with None, one for each label.

    Notes
    -----
    Entries of equal probability are found together, as in scikit-learn. The cost is a sort of the
    nonzero probabilities; those of a range of labels are held at a time, or all for "micro".

    Examples
    --------
    >>> curve = precision_recall([[0.9, 0.2], [0.6, 0.4]], [[1, 0], [0, 1]])
    >>> curve.recall, curve.precision.round(2), curve.threshold
    (array([0.5, 1. ]), array([1.  , 0.67]), array([0.9, 0.4]))
    """
    if average not in ("micro", None):
        raise ValueError(f"average must be 'micro' or None (one curve a label), not {average!r}")
    true = label_sets(y_true, "y_true")
    return curves(checked_probability(probability, true), true, average)


def curves(probability: Any, true: Any, average: Literal["micro"] | None) -> PrecisionRecall:
    """The curves of a checked sample."""
    if average is None:
        parts = [_curves(*part) for part in _by_label(probability, true)]
    else:
        parts = [_curves(*_in_one(probability, true))]
    points = np.concatenate([np.diff(part.start) for part in parts])
    return PrecisionRecall(
        np.append(0, np.cumsum(points)),
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("threshold", "precision", "recall", "average_precision")
        ),
    )


def _by_label(probability: Any, true: Any) -> Iterator[tuple[Array, Array, Array, Array, int]]:
    """What `_curves` needs of some labels at a time: each curve is a row of the transpose."""
    values = csr_array(probability.T) if issparse(probability) else probability.T
    truth: Any = csr_array(true.T)
    for labels in row_ranges(*truth.shape):
        stored = sparse_rows(values, labels)
        n_true = np.diff(truth[labels].indptr)
        yield stored.data, _hits(stored, truth[labels]), rows_of(stored), n_true, truth.shape[1]


def _in_one(probability: Any, true: Any) -> tuple[Array, Array, Array, Array, int]:
    """What `_curves` needs of all entries as one curve."""
    parts = [
        (stored.data, _hits(stored, true[rows]))
        for rows in row_ranges(*true.shape)
        for stored in [sparse_rows(probability, rows)]
    ]
    value, hit = map(np.concatenate, zip(*parts, strict=True))
    size = true.shape[0] * true.shape[1]
    return value, hit, np.zeros(len(value), np.int64), np.array([true.nnz]), size


def _hits(stored: Any, true: Any) -> NDArray[np.bool_]:
    """Whether each stored entry is true."""
    places, found = places_among(stored, true)
    hit = np.zeros(stored.nnz, bool)
    hit[places[found]] = True
    return hit


def _curves(value: Array, hit: Array, curve: Array, n_true: Array, size: int) -> PrecisionRecall:
    """The curves of entries: ``size`` in each, those not among ``value`` with probability 0."""
    order = np.lexsort((-value, curve))
    value, hit, curve = value[order], hit[order], curve[order]
    changes = (value[1:] != value[:-1]) | (curve[1:] != curve[:-1])
    last = np.flatnonzero(np.append(changes, True)[: len(value)])
    first = np.searchsorted(curve, np.arange(len(n_true)))
    found = np.append(0, np.cumsum(hit))
    of = curve[last]
    # The entries of probability 0 are found last, all at once.
    everyone = np.arange(len(n_true))
    of, kept = _ordered(np.concatenate([of, everyone]))
    threshold = np.concatenate([value[last], np.zeros(len(n_true))])[kept]
    tp = np.concatenate([found[last + 1] - found[first[curve[last]]], n_true])[kept]
    count = np.concatenate([last + 1 - first[curve[last]], np.full(len(n_true), size)])[kept]
    new = np.diff(tp, prepend=0)
    starts = np.searchsorted(of, everyone)
    new[starts] = tp[starts]
    rises = new > 0
    of, tp, new, precision = of[rises], tp[rises], new[rises], (tp / count)[rises]
    gained = np.bincount(of, new * precision, minlength=len(n_true))
    return PrecisionRecall(
        np.append(0, np.cumsum(np.bincount(of, minlength=len(n_true)))),
        threshold[rises],
        precision,
        tp / n_true[of],
        gained / np.maximum(n_true, 1),
    )


def _ordered(of: Array) -> tuple[Array, Array]:
    """The numbers of curves in order, and where each was; equal ones stay as they are."""
    kept = np.argsort(of, kind="stable")
    return of[kept], kept
