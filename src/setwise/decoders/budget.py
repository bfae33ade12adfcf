"""Decisions with a budget of labels a row, for a measure of the whole population.

The measure is a mean over labels of a function of each label's counts, and the budget couples the
labels of a row. Frank and Wolfe's method replaces the measure by its linear part at the counts
reached, for which the best decisions are the k largest gains of each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from setwise.decoders.population import Population, Quotient
from setwise.decoders.threshold_search import EQUAL, ScoredRows, halfway
from setwise.kernels import inner, kernel
from setwise.targets import Target
from setwise.targets.measure import Array
from setwise.threads import for_rows

# Steps of Frank and Wolfe, and of them without a better decision, at most; the gain that is none.
STEPS, PATIENCE, LEAST_GAIN = 40, 5, 1e-6
# How many entries the steps of Frank and Wolfe look at, at most (but all of them once).
WORK = 2**20
# Gains below this are none.
LEAST = 1e-200


class Budget(NamedTuple):
    """So many labels a row: exactly, or at most."""

    size: int
    exact: bool


class Entries(NamedTuple):
    """Entries of a matrix row by row: row i has those from ``ends[i]`` to ``ends[i + 1]``.

    Each has a label, a probability, and the weight of what is true of it; each row has a weight.
    What is not stored has probability 0 and is false.
    """

    ends: Array
    label: Array
    probability: Array
    true: Array
    weight: Array

    @classmethod
    def of(cls, sample: ScoredRows) -> Entries:
        """Of a sample, dense or sparse."""
        n, n_labels = sample.shape
        weight = np.ones(n) if sample.weight is None else sample.weight
        if isinstance(sample.scores, np.ndarray):
            ends = n_labels * np.arange(n + 1)
            label = np.tile(np.arange(n_labels, dtype=np.int32), n)
            true = (sample.true * weight[:, None]).ravel()
            return cls(ends, label, sample.scores.astype(np.float64).ravel(), true, weight)
        row, label, score, true = sample.entries
        ends = np.searchsorted(row, np.arange(n + 1))
        return cls(ends, label.astype(np.int32, copy=False), score, true, weight)

    def choose(self, budget: Budget, slope: Array, offset: Array) -> ChosenLabels:
        """The k largest of slope · probability + offset in each row; of at most k, those above 0.

        Of equal gains the lower label.
        """
        choice, gain_of = self.nothing(budget), np.stack([slope, offset], axis=1)
        # A row takes k labels at most of those that it does not store.
        most = int(np.diff(self.ends).max()) + budget.size
        order = np.arange(len(offset))
        if most < len(offset):
            least = np.partition(offset, len(offset) - most)[len(offset) - most]
            order = np.flatnonzero(offset >= least)
        order = order[np.argsort(-offset[order], kind="stable")]
        for_rows(choose_rows, len(self.weight), self, gain_of, order, budget.exact, *choice)
        return choice

    def nothing(self, budget: Budget) -> ChosenLabels:
        """No label chosen for any row."""
        shape = len(self.weight), budget.size
        return ChosenLabels(np.full(shape, -1, np.int32), np.full(shape, -1, np.int64))


class ChosenLabels(NamedTuple):
    """The labels chosen for each row, (n, k), and the entries they have; -1 where there is none."""

    label: Array
    entry: Array

    def sets(self, like: Any) -> Any:
        """As 0/1, dense or CSR as the matrix decided."""
        rows, places = np.nonzero(self.label >= 0)
        labels = self.label[rows, places]
        if isinstance(like, np.ndarray):
            sets = np.zeros(like.shape, np.uint8)
            sets[rows, labels] = 1
            return sets
        ends = np.append(0, np.cumsum((self.label >= 0).sum(axis=1)))
        sets = csr_array((np.ones(len(labels), np.uint8), labels, ends), shape=like.shape)
        sets.sort_indices()
        return sets


@dataclass(frozen=True, eq=False)
class BudgetProblem:
    """A mean over labels of a measure of their counts, with a budget for each row."""

    entries: Entries
    quotient: Quotient
    factor: Array
    positives: Array
    total: float
    budget: Budget

    @classmethod
    def of(cls, sample: ScoredRows, population: Population, budget: Budget) -> BudgetProblem:
        """Of a sample: its label sets, or its probabilities where they are what is true."""
        entries, n_labels = Entries.of(sample), sample.shape[1]
        positives = np.bincount(entries.label, entries.true, n_labels)
        quotient = Quotient.of(population.metric, positives, sample.mass)
        share = positives if population.by_positives and positives.any() else np.ones(n_labels)
        return cls(entries, quotient, share / share.sum(), positives, sample.mass, budget)

    def value(self, tp: Array, predicted: Array) -> float:
        """The measure where labels have so many true and so many predictions."""
        return float((self.factor * self.quotient.of_counts(self.counts(tp, predicted))).sum())

    def counts(self, tp: Array, predicted: Array) -> Array:
        """tp, fp, fn, tn of each label, (4, l)."""
        fp, fn = predicted - tp, self.positives - tp
        return np.stack([tp, fp, fn, self.total - self.positives - fp])

    def gains(self, tp: Array, predicted: Array) -> tuple[Array, Array]:
        """What a prediction adds to the measure's linear part: slope · probability + offset."""
        at_tp, at_fp, at_fn, at_tn = self.quotient.gradient(self.counts(tp, predicted)).T
        return (self.factor * ((at_tp - at_fn) - (at_fp - at_tn)), self.factor * (at_fp - at_tn))

    def tallies(self, choice: ChosenLabels) -> tuple[Array, Array]:
        """What is true of the choice, and what is predicted, of each label."""
        tp, predicted = np.zeros((2, len(self.positives)))
        count_choice(self.entries, *choice, tp, predicted)
        return tp, predicted


class Linear(NamedTuple):
    """A decision by gains, slope_j · probability + offset_j, and its value on what it was found."""

    slope: Array
    offset: Array
    value: float


def frank_wolfe(problem: BudgetProblem, tp: Array, predicted: Array) -> Linear:
    """The best decision by gains that Frank and Wolfe's steps meet, from these tallies on.

    Step s decides by the gains at the tallies reached, and moves them by 2 / (s + 2) of the way
    towards those of the decision. The tallies reached are those of a random choice among the
    decisions met; what is kept is the one decision with the largest value.
    """
    best, reached, last = None, (tp, predicted), 0
    for step in range(min(STEPS, max(1, WORK // max(1, len(problem.entries.label))))):
        gains = problem.gains(*reached)
        there = problem.tallies(problem.entries.choose(problem.budget, *gains))
        value = problem.value(*there)
        if best is None or value > best.value + LEAST_GAIN:
            best, last = Linear(*gains, value), step
        if step - last > PATIENCE:
            break
        # (The tallies to begin with need not be those of a decision within the budget.)
        share = 2.0 / (step + 2.0)
        reached = [(1.0 - share) * a + share * b for a, b in zip(reached, there, strict=True)]
    assert best is not None
    return best


def cut_together(problem: BudgetProblem, metric: Target) -> float:
    """The best threshold for all labels where the counts of all labels are judged together.

    Only the k most probable labels of each row can be taken.
    """
    entries, n_labels = problem.entries, len(problem.positives)
    even = np.ones(n_labels), np.zeros(n_labels)
    chosen = entries.choose(problem.budget, *even).entry
    place = chosen[chosen >= 0]
    order = np.argsort(-entries.probability[place], kind="stable")
    score, true = entries.probability[place][order], entries.true[place][order]
    size = entries.weight[np.nonzero(chosen >= 0)[0]][order]
    tp, predicted = (np.append(0.0, np.cumsum(part)) for part in (true, size))
    positives, total = problem.positives.sum(), problem.total * n_labels
    counts = np.stack([tp, predicted - tp, positives - tp, total - positives - predicted + tp])
    values = Quotient.of(metric, np.array([positives]), total).of_counts(counts)
    # Equal scores are decided alike, and of equal values the fewest predictions are taken.
    values[1:-1][score[1:] == score[:-1]] = -np.inf
    taken = int(np.argmax(values >= values.max() - EQUAL))
    upper, lower = np.append(np.inf, score)[taken], np.append(score, 0.0)[taken]
    return float(halfway(np.array([lower]), np.array([upper]))[0])


@inner
def clear(labels, places, gains):
    """No label taken yet."""
    labels[:], places[:], gains[:] = -1, -1, -np.inf


@inner
def insert(labels, places, gains, label, place, gain, least):
    """Put a label among the largest gains of a row, of equal ones the lower label first.

    Returns what a gain must reach from now on. (Every place is written, taken or not: a guess of
    the processor where to stop is wrong too often.)
    """
    for c in range(len(gains)):
        old, its_label, its_place = gains[c], labels[c], places[c]
        is_before = (gain > old) | ((gain == old) & (label < its_label))
        gains[c], gain = (gain, old) if is_before else (old, gain)
        labels[c], label = (label, its_label) if is_before else (its_label, label)
        places[c], place = (place, its_place) if is_before else (its_place, place)
    return max(least, gains[len(gains) - 1])


@kernel
def choose_rows(first, last, entries, gain_of, order, exact, labels, places):
    """The largest gains of each row, slope · probability + offset, into labels and places (n, k).

    ``gain_of`` (l, 2) has slopes and offsets. ``order`` has the labels by falling offset, which is
    the gain of those that are not stored.
    """
    ends, label, probability = entries[0], entries[1], entries[2]
    gains, met = np.empty(labels.shape[1]), np.full(len(gain_of), -1)
    for row in range(first, last):
        its_labels, its_places, least = labels[row], places[row], -np.inf if exact else LEAST
        clear(its_labels, its_places, gains)
        for i in range(ends[row], ends[row + 1]):
            j = label[i]
            gain = gain_of[j, 0] * probability[i] + gain_of[j, 1]
            if gain >= least:
                least = insert(its_labels, its_places, gains, j, i, gain, least)
        if gain_of[order[0], 1] < least:
            continue
        for i in range(ends[row], ends[row + 1]):
            met[label[i]] = row
        for j in order:
            gain = gain_of[j, 1]
            if gain < least:
                break
            if met[j] != row:
                least = insert(its_labels, its_places, gains, j, -1, gain, least)
                # (Of equal gains the lower labels come first: nothing after them is taken, unless
                # in place of a higher one that is stored.)
                if 0 <= its_labels[-1] <= j and gain <= least:
                    break


@kernel
def count_choice(entries, labels, places, tp, predicted):
    """Add what is true of the chosen labels, and their weights, to the tallies of each label."""
    true, weight = entries[3], entries[4]
    for row in range(len(labels)):
        for c in range(labels.shape[1]):
            j, i = labels[row, c], places[row, c]
            if j >= 0:
                tp[j] += true[i] if i >= 0 else 0.0
                predicted[j] += weight[row]
