"""The five forms in which a target's loss, or its utility, can be written.

A target is one formula for its loss L(y', y). What training, decoding and evaluation need of it is
how the value depends on the predicted set once the true set is known: as a sum over labels, as a
quotient of linear functions of the confusion counts, as any function of the counts, as a test for
equality, or as a table. Each form evaluates two ways: `rows` (one prediction for each true set)
and `matrix` (every listed set against every true set). The utility 1 - L is a measure of the same
form, written without a subtraction, so that values near 0 keep their relative accuracy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Of = Literal["loss", "utility"]
Form = Literal["additive", "subset", "linear_fractional", "counts", "table", "population"]
Array = NDArray[Any]

# A difference below this share of its terms is rounding, and counts as 0: a utility of exactly 0
# may meet the reciprocal of a tiny probability.
ZERO_DIFFERENCE = 1e-14
# Below this share of the largest coefficient a denominator is 0: its terms are whole numbers of
# labels times the coefficients, so anything smaller is rounding.
ZERO_DENOMINATOR = 1e-13
# How far outside [0, 1] a loss computed in floating point may fall.
ROUNDING = 1e-9


class Measure(Protocol):
    """A value of a predicted set against a true set."""

    def rows(self, y_pred: Array, y_true: Array) -> Array:
        """The value for each pair of rows, (n,)."""
        ...

    def matrix(self, listed: Any, y_true: Array) -> Array:
        """The value of each of the K listed sets against each of the n true sets, (n, K).

        ``listed`` has the ``sets`` (K, l), and ``sums(present, absent)``, which adds up values of
        labels (n, l) in each set and out of it, (n, K).
        """
        ...


@dataclass(frozen=True)
class Additive:
    """constant(n_true) + scale(n_true) * sum_i values[y_i, y'_i, i].

    ``values`` (2, 2, l), [true, predicted, label], say what a label contributes; ``n_true`` is the
    size of y.
    """

    values: Array
    scale: Callable[[Array], Array] = field(default=np.ones_like)
    constant: Callable[[Array], Array] = field(default=np.zeros_like)

    @property
    def spread(self) -> Array:
        """The most by which predicting a label, or not, changes the sum, (l,)."""
        return np.abs(self.values[:, 1] - self.values[:, 0]).max(axis=0)

    def states(self, y_true: Array) -> tuple[Array, Array]:
        """What each label adds when absent and when present, (n, l) each."""
        (false_off, false_on), (true_off, true_on) = self.values
        is_true = y_true == 1
        return np.where(is_true, true_off, false_off), np.where(is_true, true_on, false_on)

    def rows(self, y_pred: Array, y_true: Array) -> Array:
        n_true, labels = y_true.sum(axis=1, dtype=np.float64), np.arange(y_true.shape[1])
        constant, total = self.constant(n_true), self.values[y_true, y_pred, labels].sum(axis=1)
        return self._complete(constant, self.scale(n_true) * total, np.abs(constant))

    def matrix(self, listed: Any, y_true: Array) -> Array:
        return once_each(partial(self._matrix, listed), y_true)

    def _matrix(self, listed: Any, y_true: Array) -> Array:
        n_true = y_true.sum(axis=1, dtype=np.float64)
        absent, present = self.states(y_true)
        constant, scale = self.constant(n_true)[:, None], self.scale(n_true)[:, None]
        # The listed sets may take their sums from that over all labels.
        terms = np.abs(constant) + np.abs(scale * absent.sum(axis=1, keepdims=True))
        return self._complete(constant, scale * listed.sums(present, absent), terms)

    @staticmethod
    def _complete(constant: Array, total: Array, terms: Array) -> Array:
        """constant + total, where a difference that is only rounding beside the terms is 0."""
        value = constant + total
        is_rounding = (constant != 0.0) & (np.abs(value) <= ZERO_DIFFERENCE * terms)
        return np.where(is_rounding, 0.0, value)


class OfCounts(ABC):
    """A measure that depends on the confusion counts alone."""

    @abstractmethod
    def of_counts(self, tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
        """The value at these counts."""

    def rows(self, y_pred: Array, y_true: Array) -> Array:
        tp = np.einsum("ij,ij->i", y_pred, y_true, dtype=np.float64)
        sizes = y_pred.sum(axis=1, dtype=np.float64), y_true.sum(axis=1, dtype=np.float64)
        return self._at(tp, *sizes, y_true.shape[1])

    def matrix(self, listed: Any, y_true: Array) -> Array:
        return once_each(partial(self._matrix, listed), y_true)

    def _matrix(self, listed: Any, y_true: Array) -> Array:
        true, nothing = y_true.astype(np.float64), np.zeros(y_true.shape)
        every, none = np.ones((1, y_true.shape[1])), np.zeros((1, y_true.shape[1]))
        sizes = listed.sums(every, none), true.sum(axis=1, keepdims=True)
        tp, most = listed.sums(true, nothing), int(max(part.max(initial=0.0) for part in sizes))
        shape = (most + 1,) * 3
        if np.prod(shape) > tp.size:
            return self._at(tp, *sizes, y_true.shape[1])
        # Most pairs of sets have the counts of others. Only counts that occur are asked for: a
        # function of them need not be defined elsewhere.
        tp *= shape[0] ** 2
        tp += sizes[0] * shape[0] + sizes[1]
        place, occurs, values = tp.astype(np.intp), np.zeros(shape, bool), np.empty(shape)
        occurs.ravel()[place] = True
        hits, predicted, known = (part.astype(np.float64) for part in np.nonzero(occurs))
        values[occurs] = self._at(hits, predicted, known, y_true.shape[1])
        return values.ravel().take(place)

    def _at(self, tp: Array, size_pred: Array, size_true: Array, n_labels: int) -> Array:
        tn = n_labels - size_true - size_pred + tp
        return self.of_counts(tp, size_pred - tp, size_true - tp, tn)


@dataclass(frozen=True)
class Equality(OfCounts):
    """1 where the predicted set is the true set (or is not, for the loss), else 0."""

    when_equal: float

    def of_counts(self, tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
        equal = (fp == 0) & (fn == 0)
        return np.where(equal, self.when_equal, 1.0 - self.when_equal)


@dataclass(frozen=True)
class Fraction(OfCounts):
    """(numerator · k) / (denominator · k) with k = (1, tp, fp, fn, tn); ``empty`` at 0/0."""

    numerator: Array
    denominator: Array
    empty: float

    def of_counts(self, tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
        above = linear(self.numerator, tp, fp, fn, tn)
        below = linear(self.denominator, tp, fp, fn, tn)
        terms = linear(np.abs(self.denominator), tp, fp, fn, tn)
        nothing = np.abs(below) <= ZERO_DENOMINATOR * terms
        return np.where(nothing, self.empty, above / np.where(nothing, 1.0, below))


@dataclass(frozen=True)
class Counts(OfCounts):
    """Any function of the confusion counts, checked to be in [0, 1], or 1 minus it."""

    function: Callable[[Array, Array, Array, Array], Array]
    complement: bool = False

    def of_counts(self, tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
        # Copies of one shape: the function may index them or write to what it makes like them.
        counts = [np.array(count, np.float64) for count in np.broadcast_arrays(tp, fp, fn, tn)]
        losses = np.asarray(self.function(*counts), dtype=np.float64)
        if losses.shape not in (counts[0].shape, ()):
            raise ValueError(
                f"the function of a CountTarget must return a loss for each count, "
                f"shape {counts[0].shape}, but it returned shape {losses.shape}"
            )
        losses = np.broadcast_to(losses, counts[0].shape)
        inside = (losses >= -ROUNDING) & (losses <= 1.0 + ROUNDING)
        if not inside.all():
            place = tuple(np.argwhere(~inside)[0])
            tp, fp, fn, tn = (count[place] for count in counts)
            raise ValueError(
                f"the function of a CountTarget must return losses in [0, 1], but it returned "
                f"{losses[place]} at tp={tp:g}, fp={fp:g}, fn={fn:g}, tn={tn:g}"
            )
        return 1.0 - losses if self.complement else losses


@dataclass(frozen=True)
class Table:
    """values[predicted, true] for listed sets."""

    sets: Array
    values: Array

    def rows(self, y_pred: Array, y_true: Array) -> Array:
        return self.values[self.index(y_pred, "y_pred"), self.index(y_true, "y_true")]

    def matrix(self, listed: Any, y_true: Array) -> Array:
        places = self.index(listed.sets, "sets"), self.index(y_true, "y_true")
        return self.values[np.ix_(*places)].T

    def index(self, sets: Array, name: str) -> Array:
        """The row of each set in the table; a set that is not listed is refused."""
        found = find_rows(self.sets, sets)
        if (found < 0).any():
            row = int(np.argmax(found < 0))
            raise ValueError(
                f"{name}[{row}] = {sets[row].tolist()} is not among the {len(self.sets)} "
                f"listed label sets of the TableTarget"
            )
        return found


@dataclass(frozen=True)
class RowIndex:
    """Finds rows of 0/1 in a table by the sum of random numbers that belong to their columns.

    ``keys`` are those sums, ascending, of the rows in that ``order``.
    """

    table: Array
    numbers: Array
    keys: Array
    order: Array

    @classmethod
    def of(cls, table: Array) -> RowIndex:
        """For the rows of a table."""
        numbers = label_numbers(table.shape[1])
        keys = table @ numbers
        order = np.argsort(keys, kind="stable")
        return cls(table, numbers, keys[order], order)

    def find(self, rows: Array) -> Array:
        """The position of each row in the table, -1 where it does not occur, (n,)."""
        table = self.table
        if len(table) == 0 or (np.diff(self.keys) == 0).any():
            position = {row.tobytes(): k for k, row in enumerate(table.astype(np.uint8))}
            found = [position.get(row.tobytes(), -1) for row in rows.astype(np.uint8)]
            return np.array(found, dtype=np.int64)
        sums = rows @ self.numbers
        near = np.minimum(np.searchsorted(self.keys, sums), len(table) - 1)
        place = self.order[near]
        return np.where((self.keys[near] == sums) & (table[place] == rows).all(axis=1), place, -1)


@cache
def label_numbers(n_labels: int) -> Array:
    """Random numbers of the labels, whose sums tell most label sets apart, (l,)."""
    return np.random.default_rng(0).integers(1, 2**52, n_labels, dtype=np.int64)


def distinct_rows(sets: Array) -> tuple[Array, Array]:
    """Places of the different rows of 0/1, (m,), and which of these each row is like, (n,)."""
    keys = sets @ label_numbers(sets.shape[1])
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if not (sets[first][inverse] == sets).all():
        _, first, inverse = np.unique(sets, axis=0, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)


def once_each(function: Callable[[Array], Array], sets: Array) -> Array:
    """The rows of ``function(sets)``; it is asked once for sets that are alike."""
    first, inverse = distinct_rows(sets) if len(sets) > 1 else (sets, sets)
    return function(sets) if len(first) == len(sets) else function(sets[first])[inverse]


def find_rows(table: Array, rows: Array) -> Array:
    """The position of each row of 0/1 in the table, -1 where it does not occur, (n,)."""
    return RowIndex.of(table).find(rows)


def linear(coefficients: Array, tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
    """coefficients · (1, tp, fp, fn, tn)."""
    constant, *slopes = coefficients
    return constant + sum(c * count for c, count in zip(slopes, (tp, fp, fn, tn), strict=True))
