"""How well scores tell true entries from false ones, over all thresholds at once.

A threshold matters only where it finds a true entry. So the distinct scores of the true entries cut
the axis into *cells*: each of these scores, and the gaps below, between and above them. How many
entries fall into each cell is all that precision, recall, average precision and the area under the
ROC curve need; and what an entry adds to any of them depends on its cell and its truth only.
Entries that are not stored have score 0, and are counted as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from setwise.evaluation.sample import Array
from setwise.evaluation.statistics import Statistic, first_order, mean_of_known, titled
from setwise.sparse import places_among, row_ranges, rows_of

TITLES = titled(
    "ranking",
    "higher",
    *(f"{group} {of}" for group in ("micro", "macro") for of in ("average precision", "roc auc")),
)


def own_scores(scores: Any, true: Any) -> Array:
    """The score of each true label, from dense or sparse scores."""
    if isinstance(scores, np.ndarray):
        return scores[rows_of(true), true.indices]
    places, stored = places_among(scores, true)
    return np.where(stored, np.append(scores.data, 0.0)[places], 0.0)


def threshold_cells(score: Array, values: Any) -> Array:
    """The cell of each value: 2 j + 1 if it is ``score[j]``, 2 j if next below it."""
    return np.searchsorted(score, values) + np.searchsorted(score, values, "right")


class Levels(NamedTuple):
    """Entries by their scores, as far as thresholds can tell; see the module.

    Attributes
    ----------
    score, n_true : array of shape (m,)
        The distinct scores of true entries, ascending, and how many have each.
    n_entries : array of shape (2 m + 1,)
        How many entries, true and false, are in each cell.
    """

    score: Array
    n_true: Array
    n_entries: Array

    @classmethod
    def of(cls, stored: Array, own: Array, n_entries: int) -> Levels:
        """Of so many entries, zeros where not stored; ``own`` are the scores of the true ones."""
        score, n_true = np.unique(own, return_counts=True)
        counts = np.zeros(2 * len(score) + 1, np.int64)
        for part in row_ranges(len(stored), 1):
            counts += np.bincount(threshold_cells(score, stored[part]), minlength=len(counts))
        counts[threshold_cells(score, 0.0)] += n_entries - len(stored)
        return cls(score, n_true, counts)

    @property
    def as_high(self) -> Array:
        """How many entries score as high as each of ``score``, (m,)."""
        return self.n_entries[::-1].cumsum()[::-1][1::2]

    @property
    def true_as_high(self) -> Array:
        """How many of these are true, (m,)."""
        return self.n_true[::-1].cumsum()[::-1]

    @property
    def average_precision(self) -> float:
        """The mean over true entries of the precision at their score; NaN without any."""
        n_true = int(self.n_true.sum())
        precision = self.true_as_high / self.as_high
        return float(self.n_true @ precision / n_true) if n_true else math.nan

    @property
    def roc_auc(self) -> float:
        """The share of pairs of a true and a false entry in which the true one scores higher.

        Pairs of equal scores count half. NaN where all entries are true, or none.
        """
        n_true = int(self.n_true.sum())
        n_pairs = n_true * (int(self.n_entries.sum()) - n_true)
        return float(self.n_true @ self._false_below()) / n_pairs if n_pairs else math.nan

    def _false_below(self) -> Array:
        """How many false entries score below each of ``score``, those as high by half, (m,)."""
        n_false = self.n_entries.copy()
        n_false[1::2] -= self.n_true
        return (n_false.cumsum() - 0.5 * n_false)[1::2]

    def figures_and_slopes(self) -> tuple[tuple[float, float], Array, Array]:
        """Average precision and ROC AUC, and their derivatives by the weight of an entry.

        Of true entries by score, (2, m), and of false ones by cell, (2, 2 m + 1). With N the
        entries as high as a score, T the true ones of these, P all true and F all false ones,
        average precision is sum_i w_i T_i / N_i / P over true entries i, and the area
        sum_ij w_i w_j [i scores above j] / (P F). Zero where a figure is not defined.
        """
        by_true, by_false = np.zeros((2, len(self.score))), np.zeros((2, len(self.n_entries)))
        average, area = self.average_precision, self.roc_auc
        n_true = int(self.n_true.sum())
        n_false = int(self.n_entries.sum()) - n_true
        if n_true:
            as_high = self.as_high
            precision = self.true_as_high / as_high
            # Over the true entries that score no higher than an entry: it stands among their N.
            gained = (self.n_true / as_high).cumsum() / n_true
            lost = (self.n_true * precision / as_high).cumsum() / n_true
            by_true[0] = (precision - average) / n_true + gained - lost
            by_false[0, 1::2] = by_false[0, 2::2] = -lost
        if n_true and n_false:
            by_true[1] = (self._false_below() / n_false - area) / n_true
            above = np.zeros(len(self.n_entries))
            above[1::2] = self.n_true
            above = above[::-1].cumsum()[::-1] - 0.5 * above
            by_false[1] = (above / n_true - area) / n_false
        return (average, area), by_true, by_false


class Column(NamedTuple):
    """The entries of one label: stored scores with their rows, true entries with theirs."""

    stored: Array
    rows: Any
    own: Array
    true_rows: Array


def columns(scores: Any, true: Any) -> Iterator[Column]:
    """The entries of each label in turn, from dense or sparse scores."""
    truth: Any = csr_array(true.T)
    by_label: Any = csr_array(scores.T) if issparse(scores) else scores.T
    own = own_scores(by_label, truth)
    for label in range(truth.shape[0]):
        here = slice(truth.indptr[label], truth.indptr[label + 1])
        if issparse(by_label):
            part = slice(by_label.indptr[label], by_label.indptr[label + 1])
            stored, rows = by_label.data[part], by_label.indices[part]
        else:
            stored, rows = by_label[label], slice(None)
        yield Column(stored, rows, own[here], truth.indices[here])


def separations(scores: Any, true: Any) -> tuple[Array, Array]:
    """Average precision and ROC AUC of each label, NaN where they are not defined."""
    n_rows = true.shape[0]
    levels = (Levels.of(column.stored, column.own, n_rows) for column in columns(scores, true))
    found = np.array([(own.average_precision, own.roc_auc) for own in levels])
    return found[:, 0], found[:, 1]


def separation_statistic(scores: Any, true: Any) -> Statistic:
    """Micro and macro average precision and ROC AUC; macro over the labels that have them."""
    values, slopes = _micro(scores, true)
    by_label, of_label, of_absent = [], np.zeros((true.shape[0], 2)), np.zeros(2)
    # (Labels that are never true have neither figure.)
    for column in (column for column in columns(scores, true) if len(column.own)):
        levels = Levels.of(column.stored, column.own, true.shape[0])
        figures, by_true, by_false = levels.figures_and_slopes()
        by_label.append(figures)
        absent = by_false[:, threshold_cells(levels.score, 0.0)]
        of_absent += absent
        of_label[column.rows] += (
            by_false[:, threshold_cells(levels.score, column.stored)].T - absent
        )
        place = np.searchsorted(levels.score, column.own)
        of_label[column.true_rows] += (by_true[:, place] - by_false[:, 2 * place + 1]).T
    found = np.array(by_label).reshape(-1, 2)
    known = np.maximum((~np.isnan(found)).sum(axis=0), 1)
    values = np.append(values, mean_of_known(found))
    return first_order(TITLES, values, np.column_stack([slopes, (of_label + of_absent) / known]))


def _micro(scores: Any, true: Any) -> tuple[Array, Array]:
    """Both figures over the entries of all labels, and their slopes by row, (n, 2)."""
    n_rows, n_labels = true.shape
    own = own_scores(scores, true)
    stored = scores.data if issparse(scores) else scores.ravel()
    levels = Levels.of(stored, own, n_rows * n_labels)
    figures, by_true, by_false = levels.figures_and_slopes()
    absent = by_false[:, threshold_cells(levels.score, 0.0)]
    place = np.searchsorted(levels.score, own)
    moved = by_true[:, place] - by_false[:, 2 * place + 1]
    slopes = n_labels * absent + _sums_by_row(true, moved)
    for rows in row_ranges(n_rows, n_labels):
        part = csr_array(scores[rows])
        of = by_false[:, threshold_cells(levels.score, part.data)] - absent[:, None]
        slopes[rows] += _sums_by_row(part, of)
    return np.array(figures), slopes


def _sums_by_row(matrix: Any, values: Array) -> Array:
    """Sums over the stored entries of each row, (n, 2), of values (2, n_entries)."""
    row, n_rows = rows_of(matrix), matrix.shape[0]
    return np.column_stack([np.bincount(row, of, n_rows) for of in values]).astype(np.float64)
