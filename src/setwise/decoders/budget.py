"""Decisions with a budget of labels a row, for a measure of the whole population.

The measure is a mean over labels of a function of each label's counts, and the budget couples the
labels of a row. Frank and Wolfe's method replaces the measure by its linear part at the counts
reached, for which the best decisions are the k largest gains of each row. Coordinate ascent decides
one row after the other, exactly, given the counts of all the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from setwise.decoders.population import Metric, Population, Quotient, utility_at
from setwise.decoders.threshold_search import EQUAL, Sample, halfway
from setwise.kernels import kernel
from setwise.targets.measure import Array
from setwise.threads import for_rows

# Steps of Frank and Wolfe, and of them without a better decision, and passes of coordinate ascent,
# at most; and the gain that is none.
STEPS, PATIENCE, PASSES, LEAST_GAIN = 40, 5, 50, 1e-6
# Up to so many entries, coordinate ascent begins from several choices.
FEW_ENTRIES = 2**18
# How many labels without an entry coordinate ascent tries beyond the budget.
TRIED = 32
# How many entries the steps of Frank and Wolfe look at, at most (but all of them once).
WORK = 2**20
# Gains below this are none.
LEAST = 1e-200
# What one more false alarm adds to tp, fp, fn, tn.
ONE_FALSE_ALARM = np.array([[0.0], [1.0], [0.0], [-1.0]])


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
    def of(cls, sample: Sample) -> Entries:
        """Of a sample, dense or sparse."""
        n, n_labels = sample.shape
        weight = np.ones(n) if sample.weight is None else sample.weight
        if isinstance(sample.scores, np.ndarray):
            ends, label = (
                n_labels * np.arange(n + 1),
                np.tile(np.arange(n_labels, dtype=np.int32), n),
            )
            true = (sample.true * weight[:, None]).ravel()
            return cls(ends, label, sample.scores.astype(np.float64).ravel(), true, weight)
        row, label, score, true = sample.entries
        ends = np.append(0, np.cumsum(np.bincount(row, minlength=n)))
        return cls(ends, label.astype(np.int32), score, true, weight)


class Choice(NamedTuple):
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
class Problem:
    """A mean over labels of a measure of their counts, with a budget for each row."""

    entries: Entries
    quotient: Quotient
    factor: Array
    positives: Array
    total: float
    budget: Budget

    @classmethod
    def of(cls, sample: Sample, population: Population, budget: Budget) -> Problem:
        """Of a sample: its label sets, or its probabilities where they are what is true."""
        entries, n_labels = Entries.of(sample), sample.shape[1]
        positives = np.bincount(entries.label, entries.true, n_labels)
        quotient = Quotient.of(population.metric, positives, sample.mass)
        share = positives if population.by_positives and positives.any() else np.ones(n_labels)
        return cls(entries, quotient, share / share.sum(), positives, sample.mass, budget)

    def value(self, tp: Array, predicted: Array) -> float:
        """The measure where labels have so many true and so many predictions."""
        return float(self.factor @ self.quotient.of_counts(self.counts(tp, predicted)))

    def counts(self, tp: Array, predicted: Array) -> Array:
        """tp, fp, fn, tn of each label, (4, l)."""
        fp, fn = predicted - tp, self.positives - tp
        return np.stack([tp, fp, fn, self.total - self.positives - fp])

    def gains(self, tp: Array, predicted: Array) -> tuple[Array, Array]:
        """What a prediction adds to the measure's linear part: slope · probability + offset."""
        at_tp, at_fp, at_fn, at_tn = self.quotient.gradient(self.counts(tp, predicted)).T
        return (
            self.factor * ((at_tp - at_fn) - (at_fp - at_tn)),
            self.factor * (at_fp - at_tn),
        )

    def choose(self, slope: Array, offset: Array) -> Choice:
        """The k largest gains of each row; with a budget of at most k only those above 0."""
        choice = self.nothing()
        order = np.argsort(-offset, kind="stable")
        gain_of = np.stack([slope, offset], axis=1)
        arguments = self.entries, gain_of, order, self.budget.exact, *choice
        for_rows(choose_rows, len(choice.label), *arguments)
        return choice

    def nothing(self) -> Choice:
        """No label chosen for any row."""
        shape = len(self.entries.weight), self.budget.size
        return Choice(np.full(shape, -1, np.int32), np.full(shape, -1, np.int64))

    def tallies(self, choice: Choice) -> tuple[Array, Array]:
        """What is true of the choice, and what is predicted, of each label."""
        tp, predicted = np.zeros((2, len(self.positives)))
        count_choice(self.entries, *choice, tp, predicted)
        return tp, predicted


class Linear(NamedTuple):
    """A decision by gains, slope_j · probability + offset_j, and its value on what it was found."""

    slope: Array
    offset: Array
    value: float


def frank_wolfe(problem: Problem, tp: Array, predicted: Array) -> Linear:
    """The best decision by gains that Frank and Wolfe's steps meet, from these tallies on.

    Step s decides by the gains at the tallies reached, and moves them by 2 / (s + 2) of the way
    towards those of the decision. The tallies reached are those of a random choice among the
    decisions met; what is kept is the one decision with the largest value.
    """
    best, reached, last = None, (tp, predicted), 0
    for step in range(min(STEPS, max(1, WORK // max(1, len(problem.entries.label))))):
        gains = problem.gains(*reached)
        there = problem.tallies(problem.choose(*gains))
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


def cut_together(problem: Problem, metric: Metric) -> float:
    """The best threshold for all labels where the counts of all labels are judged together.

    Only the k most probable labels of each row can be taken.
    """
    entries, n_labels = problem.entries, len(problem.positives)
    chosen = problem.choose(np.ones(n_labels), np.zeros(n_labels)).entry
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


def best_ascent(problem: Problem, choice: Choice) -> Choice:
    """The best of coordinate ascents from this choice and, unless entries are many, from others.

    The ascent ends at a choice that no single row betters, which depends on where it begins. The
    others are the labels of each row most probable beside their frequency, and nothing, so that
    rows are decided one after the other by what those before them have left.
    """
    starts, n_labels = [choice], len(problem.positives)
    if len(problem.entries.label) <= FEW_ENTRIES:
        frequent = np.where(problem.positives > 0.0, problem.positives, 1.0)
        starts += [problem.choose(1.0 / frequent, np.zeros(n_labels)), problem.nothing()]
    found = [coordinate_ascent(problem, start) for start in starts]
    values = [problem.value(*problem.tallies(one)) for one in found]
    return found[int(np.argmax(values))]


def coordinate_ascent(problem: Problem, choice: Choice) -> Choice:
    """Decide row after row, given all others, until no row gains; the choice is changed in place.

    A pass never lowers the measure, so the result is at least as good as the choice it began with,
    and no other labels for any single row are better. Of labels without an entry those are
    tried that cost least at the beginning of a pass.
    """
    value = -np.inf
    for _ in range(PASSES):
        tp, predicted = problem.tallies(choice)
        reached = problem.value(tp, predicted)
        if reached <= value + LEAST_GAIN:
            break
        value = reached
        counts, exact = problem.counts(tp, predicted), problem.budget.exact
        now = problem.quotient.of_counts(counts)
        cost = problem.factor * (now - problem.quotient.of_counts(counts + ONE_FALSE_ALARM))
        state = np.stack([tp, predicted, now, problem.positives, problem.factor], axis=1)
        bounds = np.empty((len(state), 2))
        for_labels(problem.quotient, problem.total, state, bounds)
        order, fills = np.argsort(cost, kind="stable"), exact or bool(cost.min() < 0)
        arguments = problem.quotient, problem.total, order, exact, fills, state, bounds, choice
        if not ascend(problem.entries, *arguments):
            break
    return choice


@kernel
def insert(labels, places, row, gains, filled, label, place, gain):
    """Put a label among the largest gains of a row, of equal ones the lower label first.

    Returns how many there are now.
    """
    size, at = len(gains), filled
    while at > 0 and (
        gains[at - 1] < gain or (gains[at - 1] == gain and labels[row, at - 1] > label)
    ):
        at -= 1
    if at == size:
        return filled
    filled = min(filled + 1, size)
    for c in range(filled - 1, at, -1):
        labels[row, c], places[row, c] = labels[row, c - 1], places[row, c - 1]
        gains[c] = gains[c - 1]
    labels[row, at], places[row, at], gains[at] = label, place, gain
    return filled


@kernel
def choose_rows(first, last, entries, gain_of, order, exact, labels, places):
    """The largest gains of each row, slope · probability + offset, into labels and places (n, k).

    ``gain_of`` (l, 2) has slopes and offsets. ``order`` has the labels by falling offset, which is
    the gain of those that are not stored.
    """
    ends, label, probability = entries[0], entries[1], entries[2]
    gains, met = np.empty(labels.shape[1]), np.full(len(order), -1)
    for row in range(first, last):
        filled, least = 0, -np.inf if exact else LEAST
        for i in range(ends[row], ends[row + 1]):
            j = label[i]
            gain = gain_of[j, 0] * probability[i] + gain_of[j, 1]
            if gain >= least:
                filled = insert(labels, places, row, gains, filled, j, i, gain)
                least = gains[filled - 1] if filled == len(gains) else least
        if gain_of[order[0], 1] < least:
            continue
        for i in range(ends[row], ends[row + 1]):
            met[label[i]] = row
        for j in order:
            gain = gain_of[j, 1]
            if gain < least:
                break
            if met[j] != row:
                filled = insert(labels, places, row, gains, filled, j, -1, gain)
                least = gains[filled - 1] if filled == len(gains) else least
                # (Of equal gains the lower labels come first, so nothing after them is taken.)
                if filled == len(gains) and gain <= least:
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


# What is known of a label while rows are decided: tp, predicted, its utility, its positives and its
# factor; and in an array of their own, which every entry is looked up in, bounds on its gains.
TP, PREDICTED, UTILITY, POSITIVES, FACTOR = range(5)
SLOPE, OFFSET = range(2)


@kernel
def utility_with(quotient, total, labels, j, true, size):
    """The utility of label j with so much more that is true and predicted."""
    tp, positives = labels[j, TP] + true, labels[j, POSITIVES]
    fp = labels[j, PREDICTED] + size - tp
    return utility_at(quotient, j, tp, fp, positives - tp, total - positives - fp)


@kernel
def gain_with(quotient, total, labels, j, true, size):
    """What the measure gains by such a prediction of label j."""
    utility = utility_with(quotient, total, labels, j, true, size)
    return labels[j, FACTOR] * (utility - labels[j, UTILITY])


@kernel
def count_in(quotient, total, labels, bounds, j, true, size):
    """Add to the counts of label j, and bring what follows from them up to date."""
    labels[j, TP] += true
    labels[j, PREDICTED] += size
    value = utility_with(quotient, total, labels, j, 0.0, 0.0)
    labels[j, UTILITY] = value
    above, below, _, geometric = quotient
    row = j if len(above) > 1 else 0
    false_below, true_below = below[row, 2] - below[row, 4], below[row, 1] - below[row, 3]
    bottom = below[row, 0] + below[row, 3] * labels[j, POSITIVES]
    bottom += below[row, 4] * (total - labels[j, POSITIVES])
    bottom += false_below * (labels[j, PREDICTED] - labels[j, TP]) + true_below * labels[j, TP]
    # Where a prediction does not lower the denominator D, it gains at most what N - v D gains by
    # it, divided by D. (A little more, for rounding.)
    is_bounded = false_below >= 0.0 and true_below >= 0.0 and bottom > 0.0 and not geometric
    scale = (1.0 + 1e-9) * labels[j, FACTOR] / bottom if is_bounded else 0.0
    if_false = (above[row, 2] - above[row, 4]) - value * false_below
    if_true = (above[row, 1] - above[row, 3]) - value * true_below
    bounds[j, SLOPE] = scale * (if_true - if_false)
    bounds[j, OFFSET] = scale * (if_false + 1e-9 * abs(if_false)) if is_bounded else np.inf


@kernel
def for_labels(quotient, total, labels, bounds):
    """Bring what follows from the counts of each label up to date."""
    for j in range(len(labels)):
        count_in(quotient, total, labels, bounds, j, 0.0, 0.0)


@kernel
def ascend(entries, quotient, total, order, exact, fills, state, bounds, choice):
    """Decide each row anew, given the counts of all the others; whether a row has changed.

    ``state`` (l, 5) and ``bounds`` (l, 2) have what is known of each label. ``fills``: labels that
    are not stored, or gain nothing, may have to be taken too.
    """
    ends, label, probability, true, weight = entries
    (labels, places), size, has_changed = choice, choice[0].shape[1], False
    gains, old, its_place = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)
    met, was = np.full(len(order), -1), np.full(len(order), -1)
    for row in range(len(weight)):
        w, filled, before = weight[row], 0, 0
        for c in range(size):
            j, i = labels[row, c], places[row, c]
            if j >= 0:
                count_in(quotient, total, state, bounds, j, -(true[i] if i >= 0 else 0.0), -w)
                old[before], its_place[before], was[j] = j, i, row
                before += 1
        # First the labels that gain; then, if more must be taken, all.
        for takes_all in (False, True):
            if takes_all and (filled == size or not fills):
                break
            filled, least = 0, -np.inf if takes_all and exact else LEAST
            # (Those chosen before are likely to be the best.)
            for c in range(before):
                j, i = old[c], its_place[c]
                gain = gain_with(quotient, total, state, j, true[i] if i >= 0 else 0.0, w)
                if gain >= least:
                    filled = insert(labels, places, row, gains, filled, j, i, gain)
                    least = gains[filled - 1] if filled == size else least
            for i in range(ends[row], ends[row + 1]):
                j = label[i]
                # (The bound holds for gains above 0.)
                bound = w * (bounds[j, SLOPE] * probability[i] + bounds[j, OFFSET])
                if (takes_all or bound >= least) and was[j] != row:
                    gain = gain_with(quotient, total, state, j, true[i], w)
                    if gain >= least:
                        filled = insert(labels, places, row, gains, filled, j, i, gain)
                        least = gains[filled - 1] if filled == size else least
            if not takes_all:
                continue
            for i in range(ends[row], ends[row + 1]):
                met[label[i]] = row
            tried = 0
            for j in order:
                if tried == size + TRIED:
                    break
                if met[j] != row and was[j] != row:
                    tried += 1
                    gain = gain_with(quotient, total, state, j, 0.0, w)
                    if gain >= least:
                        filled = insert(labels, places, row, gains, filled, j, -1, gain)
                        least = gains[filled - 1] if filled == size else least
        has_changed = has_changed or filled != before
        for c in range(size):
            j, i = labels[row, c], places[row, c]
            if c < filled:
                count_in(quotient, total, state, bounds, j, true[i] if i >= 0 else 0.0, w)
                has_changed = has_changed or was[j] != row
            else:
                labels[row, c] = places[row, c] = -1
    return has_changed
