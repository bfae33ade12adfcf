"""How often do labels come true that were given a probability? The reliability curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.evaluation.calibration import bins_of
from setwise.evaluation.sample import (
    checked_probability,
    columns_of,
    label_sets,
    one_order,
    row_ranges,
    sparse_rows,
)
from setwise.evaluation.statistics import quotient
from setwise.sparse import places_among
from setwise.validation import whole_number


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
    """The reliability curve over all entries of all labels.

    Parameters
    ----------
    probability : array or sparse matrix of shape (n, n_labels)
        Of each label, in [0, 1]; absent entries are 0.
    y_true : array or sparse matrix of shape (n, n_labels)
        True label sets, 0/1.
    n_bins : int, default 15
        Number of bins.

    Notes
    -----
    One pass over the stored entries, a range of rows at a time.

    Examples
    --------
    >>> curve = reliability([[0.9, 0.2], [0.7, 0.1]], [[1, 0], [1, 1]], n_bins=2)
    >>> curve.count, curve.mean_probability.round(2), curve.frequency
    (array([2, 2]), array([0.15, 0.8 ]), array([0.5, 1. ]))
    """
    n_bins = whole_number(n_bins, "n_bins", 1)
    one_order({"y_true": columns_of(y_true), "probability": columns_of(probability)})
    true = label_sets(y_true, "y_true")
    probability = checked_probability(probability, true)
    count, hits, mass = np.zeros((3, n_bins))
    for rows in row_ranges(*true.shape):
        stored, truth = sparse_rows(probability, rows), true[rows]
        places, found = places_among(stored, truth)
        cell = bins_of(stored.data, n_bins)
        count += np.bincount(cell, minlength=n_bins)
        mass += np.bincount(cell, stored.data, minlength=n_bins)
        hits += np.bincount(cell[places[found]], minlength=n_bins)
        # Every other entry has probability 0.
        count[0] += truth.shape[0] * truth.shape[1] - stored.nnz
        hits[0] += truth.nnz - np.count_nonzero(found)
    return Reliability(
        np.linspace(0.0, 1.0, n_bins + 1),
        count.astype(np.int64),
        quotient(mass, count, 0.0),
        quotient(hits, count, 0.0),
    )
