"""Are probabilities what they say? Brier score and calibration errors over all entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise.evaluation.sample import Array, row_ranges, sparse_rows
from setwise.evaluation.statistics import RowMeans, Statistic, Sums, Title, quotient
from setwise.sparse import places_among, rows_of

BRIER = (Title("brier score", "calibration", "lower"),)
ERRORS = (
    Title("expected calibration error", "calibration", "lower"),
    Title("maximum calibration error", "calibration", "lower"),
)


@dataclass(frozen=True)
class CalibrationBins:
    """Calibration errors, from sums over the entries of each row that fall into each bin.

    The bins have equal widths on [0, 1]; each contains its upper end, the first also 0, as in
    scikit-learn's `calibration_curve`. With D_b the sum of p - y over the entries in bin b, and
    n_b their number, the expected calibration error is sum_b |D_b| / sum_b n_b, which is the mean
    gap between probability and frequency weighted by n_b; the maximum is max_b |D_b| / n_b.
    """

    excess: Sums
    entries: Sums
    titles: tuple[Title, ...] = ERRORS

    def at(self, weights: Array) -> Array:
        gaps, entries = np.abs(self.excess.at(weights)), self.entries.at(weights)
        expected = gaps.sum(axis=0) / entries.sum(axis=0)
        return np.stack([expected, quotient(gaps, entries, 0.0).max(axis=0)])


def calibration_statistics(probability: Any, true: Any, n_bins: int) -> tuple[Statistic, ...]:
    """Brier score and calibration bins, a range of rows at a time."""
    parts = [
        _sums_of_rows(sparse_rows(probability, rows), true[rows], n_bins)
        for rows in row_ranges(*true.shape)
    ]
    squares, excess, entries = map(np.concatenate, zip(*parts, strict=True))
    brier = RowMeans(BRIER, Sums.of(squares[:, None] / true.shape[1]))
    return brier, CalibrationBins(Sums.of(excess), Sums.of(entries))


def bins_of(values: Array, n_bins: int) -> Array:
    """The bin of each value: equal widths on [0, 1], each with its upper end, the first with 0."""
    return np.searchsorted(np.linspace(0.0, 1.0, n_bins + 1)[1:-1], values)


def _sums_of_rows(probability: Any, true: Any, n_bins: int) -> tuple[Array, Array, Array]:
    """Squared errors, (n,), excess of p over y and number of entries, (n, n_bins), of each row.

    Only stored probabilities and true labels are visited: every other entry has p = y = 0, and
    adds to the number of entries in the first bin only.
    """
    n_rows, n_labels = probability.shape
    places, stored = places_among(probability, true)
    error = probability.data.copy()
    error[places[stored]] -= 1.0
    missed = np.bincount(rows_of(true)[~stored], minlength=n_rows)
    row = rows_of(probability)
    squares = np.bincount(row, error**2, minlength=n_rows) + missed

    cell = row * n_bins + bins_of(probability.data, n_bins)
    size = n_rows * n_bins
    excess = np.bincount(cell, error, minlength=size).reshape(n_rows, n_bins)
    entries = np.bincount(cell, minlength=size).reshape(n_rows, n_bins).astype(np.float64)
    excess[:, 0] -= missed
    entries[:, 0] += n_labels - np.diff(probability.indptr)
    return squares, excess, entries
