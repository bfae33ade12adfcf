"""Scores and what is true of them, dense or sparse, as the thresholds need them.

Both kinds answer the same questions: the entries in the order of their scores, and the confusion
counts of given thresholds. What is true is 0 or 1, or a probability. In a sparse matrix the entries
that are not stored have score 0 and are carried as one entry a population, so that memory stays
that of what is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from setwise.decoders.population import By
from setwise.sparse import places_among, refuse_entries, rows_of, tidied
from setwise.targets.measure import Array
from setwise.validation import (
    label_matrix,
    probability_matrix,
    require_entries,
    same_rows,
    score_matrix,
)

# Entries looked at together.
BLOCK = 2**20


@dataclass(frozen=True)
class Ranking:
    """Entries in segments, the highest score first in each.

    Segment s has the entries ``start[s]`` to ``start[s + 1]`` and the populations ``owned[s]`` to
    ``owned[s + 1]``. An entry may stand for several of equal score: ``size`` of them, ``true`` of
    these are true (or expected to be).
    """

    start: Array
    owned: Array
    score: Array
    size: Array
    true: Array
    population: Array

    @property
    def ends(self) -> Array:
        """Where a cut is possible: after the last of equal scores in a segment."""
        ends = np.ones(len(self.score), dtype=np.bool_)
        np.not_equal(self.score[:-1], self.score[1:], out=ends[:-1])
        ends[self.start[1:] - 1] = True
        return ends

    @property
    def positives(self) -> Array:
        """The number of true entries of each population."""
        return np.bincount(self.population, self.true, minlength=int(self.owned[-1]))

    def gaps(self, segment: Array, taken: Array) -> Array:
        """The scores between which a cut after ``taken`` entries falls, (2, cuts): lower, upper.

        Above all scores the upper end is +inf, below all of them the lower end is -inf.
        """
        first, stop = self.start[segment], self.start[segment + 1]
        place, final = first + taken, len(self.score) - 1
        lower = np.where(place < stop, self.score[np.minimum(place, final)], -np.inf)
        upper = np.where(taken > 0, self.score[np.maximum(place - 1, 0)], np.inf)
        return np.stack([lower, upper]).astype(np.float64)


class Sample(Protocol):
    """Scored entries, n rows by l labels."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and labels."""
        ...

    @property
    def labels_at_once(self) -> int:
        """How many labels to ask `columns` for."""
        ...

    def columns(self, first: int, last: int) -> Ranking:
        """The labels from ``first`` to ``last``, a segment and a population each."""
        ...

    def whole(self, by: By) -> Ranking:
        """All entries as one segment, with the populations that ``by`` says."""
        ...

    def counts(self, thresholds: Array, by: By) -> Array:
        """tp, fp, fn, tn of each population where a score reaches its label's threshold, (4, m)."""
        ...

    def take(self, rows: Array) -> Sample:
        """The same of some rows."""
        ...


def labelled(scores: Any, y_true: Any) -> Sample:
    """Scores with their true label sets."""
    if hasattr(scores, "tocsr"):
        table = sparse_scores(scores, None)
        true = _sparse_labels(y_true, table.shape[1])
        require_entries(table.shape, "scores")
        if table.shape[0] != true.shape[0]:
            same_rows(np.empty(table.shape[0]), np.empty(true.shape[0]))
        return SparseSample(table, true)
    table = score_matrix(scores, None)
    require_entries(table.shape, "scores")
    true = label_matrix(y_true, table.shape[1])
    same_rows(table, true)
    return DenseSample(table, true)


def expected(probability: Any) -> Sample:
    """Probabilities, as scores and as the expectation of what is true."""
    table = probability_matrix(probability)
    if hasattr(table, "tocsr"):
        return SparseSample(table, table)
    return DenseSample(table, table)


@dataclass(frozen=True)
class DenseSample:
    """Arrays of scores and of what is true."""

    scores: Array
    true: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.scores.shape

    @property
    def labels_at_once(self) -> int:
        return max(1, BLOCK // self.shape[0])

    def columns(self, first: int, last: int) -> Ranking:
        scores = np.ascontiguousarray(self.scores[:, first:last].T)
        order = np.argsort(scores, axis=1)[:, ::-1]
        true = np.take_along_axis(self.true[:, first:last].T, order, axis=1)
        return Ranking(
            start=np.arange(len(order) + 1) * len(self.scores),
            owned=np.arange(len(order) + 1),
            score=np.take_along_axis(scores, order, axis=1).ravel(),
            size=np.ones(order.size),
            true=true.ravel().astype(np.float64),
            population=np.repeat(np.arange(len(order)), len(self.scores)),
        )

    def whole(self, by: By) -> Ranking:
        order = np.argsort(self.scores, axis=None)[::-1]
        return Ranking(
            start=np.array([0, len(order)]),
            owned=np.array([0, _population_count(self.shape, by)]),
            score=self.scores.ravel()[order],
            size=np.ones(len(order)),
            true=self.true.ravel()[order].astype(np.float64),
            population=self._population(order, by),
        )

    def counts(self, thresholds: Array, by: By) -> Array:
        axis = {"all": None, "label": 0, "row": 1}[by]
        step = max(1, BLOCK // self.shape[1])
        parts = []
        for first in range(0, len(self.scores), step):
            rows = slice(first, first + step)
            predicted, true = self.scores[rows] >= thresholds, self.true[rows]
            n_predicted = predicted.sum(axis=axis, dtype=np.float64)
            tp = np.where(predicted, true, 0).sum(axis=axis, dtype=np.float64)
            fn = np.where(predicted, 0, true).sum(axis=axis, dtype=np.float64)
            fp, size = n_predicted - tp, true.size / max(np.size(tp), 1)
            parts.append(np.stack([tp, fp, fn, size - n_predicted - fn]).reshape(4, -1))
        return np.concatenate(parts, axis=1) if by == "row" else np.sum(parts, axis=0)

    def take(self, rows: Array) -> DenseSample:
        return DenseSample(self.scores[rows], self.true[rows])

    def _population(self, entry: Array, by: By) -> Array:
        if by == "all":
            return np.zeros_like(entry)
        return entry % self.shape[1] if by == "label" else entry // self.shape[1]


@dataclass(frozen=True, eq=False)
class SparseSample:
    """CSR matrices of nonnegative scores and of what is true, entries sorted and distinct."""

    scores: Any
    true: Any

    @property
    def shape(self) -> tuple[int, int]:
        return self.scores.shape

    @property
    def labels_at_once(self) -> int:
        return max(1, BLOCK * self.shape[1] // len(self._by_label.score))

    def columns(self, first: int, last: int) -> Ranking:
        ranking = self._by_label
        start = ranking.start[first : last + 1]
        part = slice(start[0], start[-1])
        return Ranking(
            start=start - start[0],
            owned=np.arange(last - first + 1),
            score=ranking.score[part],
            size=ranking.size[part],
            true=ranking.true[part],
            population=ranking.population[part] - first,
        )

    def whole(self, by: By) -> Ranking:
        score, size, true, population = self._entries(by)
        order = np.argsort(score)[::-1]
        return Ranking(
            start=np.array([0, len(order)]),
            owned=np.array([0, _population_count(self.shape, by)]),
            score=score[order],
            size=size[order],
            true=true[order],
            population=population[order],
        )

    def counts(self, thresholds: Array, by: By) -> Array:
        row, label, true = self._stored
        always = thresholds <= 0
        predicted = self.scores.data >= thresholds[label]
        of_stored = _population(row, label, by)
        n_populations = _population_count(self.shape, by)

        def total(population: Array, weights: Array) -> Array:
            return np.bincount(population, weights, minlength=n_populations).astype(np.float64)

        missed_row, missed_label, missed = self._missed
        of_missed = _population(missed_row, missed_label, by)
        tp = total(of_stored, true * predicted) + total(of_missed, missed * always[missed_label])
        fn = total(of_stored, true * ~predicted) + total(of_missed, missed * ~always[missed_label])
        # Of labels whose threshold is not above 0 every entry is predicted, stored or not.
        of_always = {"all": self.shape[0] * always.sum(), "label": self.shape[0] * always}
        n_predicted = total(of_stored, predicted & ~always[label]) + of_always.get(by, always.sum())
        size = self.shape[0] * self.shape[1] / n_populations
        return np.stack([tp, n_predicted - tp, fn, size - n_predicted - fn])

    def take(self, rows: Array) -> SparseSample:
        return SparseSample(self.scores[rows], self.true[rows])

    @cached_property
    def _by_label(self) -> Ranking:
        score, size, true, population = self._entries("label")
        order = np.lexsort((-score, population))
        lengths = np.bincount(population, minlength=self.shape[1])
        return Ranking(
            start=np.concatenate([[0], np.cumsum(lengths)]),
            owned=np.arange(self.shape[1] + 1),
            score=score[order],
            size=size[order],
            true=true[order],
            population=population[order],
        )

    def _entries(self, by: By) -> tuple[Array, Array, Array, Array]:
        """Score, size, true and population of what is stored, and of the rest as one each."""
        row, label, true = self._stored
        missed_row, missed_label, missed = self._missed
        population, n_populations = _population(row, label, by), _population_count(self.shape, by)
        total = self.shape[0] * self.shape[1] // n_populations
        absent = total - np.bincount(population, minlength=n_populations)
        absent_true = np.bincount(
            _population(missed_row, missed_label, by), missed, minlength=n_populations
        )
        some = np.flatnonzero(absent)
        return (
            np.concatenate([self.scores.data, np.zeros(len(some), self.scores.dtype)]),
            np.concatenate([np.ones(len(row)), absent[some]]),
            np.concatenate([true, absent_true[some]]),
            np.concatenate([population, some]),
        )

    @cached_property
    def _stored(self) -> tuple[Array, Array, Array]:
        """Row, label and what is true of each stored score."""
        true = np.zeros(self.scores.nnz)
        place, found = self._places
        true[place[found]] = self.true.data[found]
        return (*_coordinates(self.scores), true)

    @cached_property
    def _missed(self) -> tuple[Array, Array, Array]:
        """Row, label and value of what is true where no score is stored."""
        row, label = _coordinates(self.true)
        _, found = self._places
        return row[~found], label[~found], self.true.data[~found].astype(np.float64)

    @cached_property
    def _places(self) -> tuple[Array, Array]:
        """Where each true entry is among the stored scores, and whether it is."""
        return places_among(self.scores, self.true)


def sparse_scores(scores: Any, n_labels: int | None, name: str = "scores") -> Any:
    """Scores as tidy CSR, finite and not below 0."""
    table = tidied(scores, name)
    if n_labels is not None and table.shape[1] != n_labels:
        raise ValueError(
            f"{name} must have shape (n, {n_labels}), one column for each label, "
            f"but its shape is {table.shape}"
        )
    refuse_entries(table, ~np.isfinite(table.data), name, "be finite")
    expected = "not be below 0 unless dense (what is not stored counts as 0)"
    refuse_entries(table, table.data < 0, name, expected)
    return table if table.dtype in (np.float32, np.float64) else table.astype(np.float64)


def _sparse_labels(y_true: Any, n_labels: int) -> Any:
    """Label sets as tidy CSR, all entries 1."""
    from scipy.sparse import csr_array

    if not hasattr(y_true, "tocsr"):
        return csr_array(label_matrix(y_true, n_labels))
    table = tidied(y_true, "y_true")
    if table.shape[1] != n_labels:
        raise ValueError(
            f"y_true must have shape (n, {n_labels}), one 0/1 column for each label, "
            f"but its shape is {table.shape}"
        )
    refuse_entries(table, table.data != 1, "y_true", "hold only 0 and 1")
    return table.astype(np.uint8)


def _coordinates(table: Any) -> tuple[Array, Array]:
    """Row and label of each stored entry."""
    return rows_of(table), table.indices.astype(np.int64)


def _population(row: Array, label: Array, by: By) -> Array:
    if by == "all":
        return np.zeros_like(row)
    return label if by == "label" else row


def _population_count(shape: tuple[int, int], by: By) -> int:
    return {"all": 1, "label": shape[1], "row": shape[0]}[by]
