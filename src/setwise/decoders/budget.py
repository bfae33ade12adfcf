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

from setwise.decoders.population import ZERO_SHARE, Population, Utilities
from setwise.decoders.threshold_search import EQUAL, ScoredRows, halfway
from setwise.kernels import copy_into, embedded, kernel
from setwise.targets import Target
from setwise.targets.measure import Array
from setwise.threads import for_rows

# Steps of Frank and Wolfe, and of them without a better decision, at most; the gain that is none.
STEPS, PATIENCE, LEAST_GAIN = 40, 5, 1e-6
# How many entries the steps of Frank and Wolfe look at, at most (but all of them twice).
WORK = 3 * 2**20
# The place of a label without an entry, of the type of places: each type is compiled anew.
ABSENT = np.int64(-1)
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
        label, score, true = sample.entries
        # (One type whatever the sample, for which kernels are compiled once.)
        ends, label = sample.ends.astype(np.int64, copy=False), label.astype(np.int32, copy=False)
        return cls(ends, label, score, true, weight)

    def choose(
        self, budget: Budget, slope: Array, offset: Array, choice: ChosenLabels | None = None
    ) -> ChosenLabels:
        """The k largest of slope · probability + offset in each row; of at most k, those above 0.

        Of equal gains the lower label. A choice that is likely to be nearly the same saves time,
        and is changed.
        """
        choice = self.nothing(budget) if choice is None else choice
        gain_of, order = np.stack([slope, offset], axis=1), self.first(-offset, budget.size)
        for_rows(choose_rows, len(self.weight), self, gain_of, order, budget.exact, *choice)
        return choice

    def first(self, cost: Array, count: int) -> Array:
        """Labels by rising cost, so many of them that each row has ``count`` that it stores not."""
        most = int(np.diff(self.ends).max()) + count
        order = np.arange(len(cost))
        if most < len(cost):
            order = np.flatnonzero(cost <= np.partition(cost, most - 1)[most - 1])
        return order[np.argsort(cost[order], kind="stable")]

    def nothing(self, budget: Budget) -> ChosenLabels:
        """No label chosen for any row."""
        shape = len(self.weight), budget.size
        return ChosenLabels(np.full(shape, -1, np.int32), np.full(shape, -1, np.int64))


class ChosenLabels(NamedTuple):
    """The labels chosen for each row, (n, k), and the entries they have; -1 where there is none."""

    label: Array
    entry: Array

    def copied(self) -> ChosenLabels:
        """The same, to be changed."""
        return ChosenLabels(self.label.copy(), self.entry.copy())

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
    """A mean over labels of a measure of their counts, with a budget for each row.

    ``at_random`` has the tallies where each entry is predicted with its probability.
    """

    entries: Entries
    utilities: Utilities
    factor: Array
    positives: Array
    at_random: tuple[Array, Array]
    total: float
    budget: Budget

    @classmethod
    def of(cls, sample: ScoredRows, population: Population, budget: Budget) -> BudgetProblem:
        """Of a sample: its label sets, or its probabilities where they are what is true."""
        entries, n_labels = Entries.of(sample), sample.shape[1]
        label, p, true = entries.label.astype(np.intp), entries.probability, entries.true
        weight = np.repeat(entries.weight, np.diff(entries.ends))
        positives, tp, predicted = (
            np.bincount(label, part, n_labels) for part in (true, p * true, p * weight)
        )
        utilities = Utilities.of(population.metric, positives, sample.mass)
        # Tallies that weights are added to and taken from are 0 but for rounding.
        rounding = ZERO_SHARE * sample.mass * np.abs(utilities.slopes[1]).max()
        utilities = utilities._replace(zero=np.maximum(utilities.zero, rounding))
        share = positives if population.by_positives and positives.any() else np.ones(n_labels)
        factor, at_random = share / share.sum(), (tp, predicted)
        return cls(entries, utilities, factor, positives, at_random, sample.mass, budget)

    def value(self, tp: Array, predicted: Array) -> float:
        """The measure where labels have so many true and so many predictions."""
        return float((self.factor * self.utilities.at(tp, predicted)).sum())

    def gains(self, tp: Array, predicted: Array) -> tuple[Array, Array]:
        """What a prediction adds to the measure's linear part: slope · probability + offset."""
        _, slope, offset = self.factor * self.utilities.tangents(tp, predicted, self.total)
        return slope, offset

    def tallies(self, choice: ChosenLabels) -> tuple[Array, Array]:
        """What is true of the choice, and what is predicted, of each label."""
        tp, predicted = np.zeros((2, len(self.positives)))
        count_choice(self.entries.true, self.entries.weight, *choice, tp, predicted)
        return tp, predicted


class Linear(NamedTuple):
    """A decision by gains, slope_j · probability + offset_j, and what it chooses."""

    slope: Array
    offset: Array
    choice: ChosenLabels


def frank_wolfe(problem: BudgetProblem) -> Linear:
    """The best decision by gains that Frank and Wolfe's steps meet.

    Step s = 0, 1, ... decides by the gains at the tallies reached, and moves them by 1 / (s + 2) of
    the way towards those of the decision. To begin with each entry is predicted at random, with its
    probability; so the tallies reached are the mean of those and of all the decisions met. What is
    kept is the one decision with the largest value.
    """
    best, largest, last = None, -np.inf, 0
    choice, reached = problem.entries.nothing(problem.budget), problem.at_random
    for step in range(min(STEPS, max(2, WORK // max(1, len(problem.entries.label))))):
        gains = problem.gains(*reached)
        problem.entries.choose(problem.budget, *gains, choice)
        there = problem.tallies(choice)
        value = problem.value(*there)
        if value > largest + LEAST_GAIN:
            best, largest, last = Linear(*gains, choice.copied()), value, step
        if step - last > PATIENCE:
            break
        share = 1.0 / (step + 2.0)
        reached = [(1.0 - share) * a + share * b for a, b in zip(reached, there, strict=True)]
    assert best is not None
    return best


def cut_together(problem: BudgetProblem, metric: Target) -> Linear:
    """The best decision where the counts of all labels are judged together.

    The most probable labels of a row are the best of any number, and of all rows' together those
    above one threshold.
    """
    entries, n_labels = problem.entries, len(problem.positives)
    even, offset = np.ones(n_labels), np.zeros(n_labels)
    choice = entries.choose(problem.budget, even, offset)
    if problem.budget.exact:
        return Linear(even, offset, choice)
    place = choice.entry[choice.entry >= 0]
    order = np.argsort(-entries.probability[place], kind="stable")
    score, true = entries.probability[place][order], entries.true[place][order]
    size = entries.weight[np.nonzero(choice.entry >= 0)[0]][order]
    tp, predicted = (np.append(0.0, np.cumsum(part)) for part in (true, size))
    positives, total = problem.positives.sum(), problem.total * n_labels
    values = Utilities.of(metric, np.array([positives]), total).at(tp, predicted)
    # Equal scores are decided alike, and of equal values the fewest predictions are taken.
    values[1:-1][score[1:] == score[:-1]] = -np.inf
    taken = int(np.argmax(values >= values.max() - EQUAL))
    upper, lower = np.append(np.inf, score)[taken], np.append(score, 0.0)[taken]
    offset = offset - halfway(np.array([lower]), np.array([upper]))
    return Linear(even, offset, entries.choose(problem.budget, even, offset, choice))


@embedded
def clear(labels, places, gains):
    """No label taken yet."""
    for c in range(len(gains)):
        labels[c], places[c], gains[c] = -1, -1, -np.inf


@embedded
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

    ``gain_of`` (l, 2) has slopes and offsets. ``order`` has labels by falling offset, which is the
    gain of those that are not stored. Labels chosen already are looked at first.
    """
    ends, label, probability = entries[0], entries[1], entries[2]
    size, met = labels.shape[1], np.full(len(gain_of), -1)
    gains, old, its_place = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)
    for row in range(first, last):
        its_labels, its_places, least = labels[row], places[row], -np.inf if exact else LEAST
        copy_into(old, its_labels)
        copy_into(its_place, its_places)
        clear(its_labels, its_places, gains)
        for c in range(size):
            j, i = old[c], its_place[c]
            if j >= 0:
                met[j] = row
                gain = gain_of[j, 0] * (probability[i] if i >= 0 else 0.0) + gain_of[j, 1]
                if gain >= least:
                    least = insert(its_labels, its_places, gains, j, i, gain, least)
        for i in range(ends[row], ends[row + 1]):
            j = np.int64(label[i])
            gain = gain_of[j, 0] * probability[i] + gain_of[j, 1]
            if gain >= least and met[j] != row:
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
                least = insert(its_labels, its_places, gains, j, ABSENT, gain, least)
                # (Of equal gains the lower labels come first: nothing after them is taken, unless
                # in place of a higher one that is stored.)
                if 0 <= its_labels[-1] <= j and gain <= least:
                    break


@kernel
def count_choice(true, weight, labels, places, tp, predicted):
    """Add what is true of the chosen labels, and their weights, to the tallies of each label."""
    for row in range(len(labels)):
        for c in range(labels.shape[1]):
            j, i = labels[row, c], places[row, c]
            if j >= 0:
                tp[j] += true[i] if i >= 0 else 0.0
                predicted[j] += weight[row]
