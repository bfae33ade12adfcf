"""Decisions with a budget of labels a row, row after row: exact, given the counts of all others."""

from __future__ import annotations

import numpy as np

from setwise.decoders.budget import (
    ABSENT,
    LEAST,
    LEAST_GAIN,
    BudgetProblem,
    ChosenLabels,
    clear,
    insert,
)
from setwise.kernels import embedded, kernel

# Passes over all rows, at most.
PASSES = 50
# Up to so many entries, the ascent begins from several choices.
FEW_ENTRIES = 2**18
# How many labels without an entry are tried beyond the budget.
TRIED = 32


def best_ascent(problem: BudgetProblem, choice: ChosenLabels) -> ChosenLabels:
    """The best of coordinate ascents from this choice and, unless entries are many, from others.

    The ascent ends at a choice that no single row betters, which depends on where it begins. The
    others are the labels of each row most probable beside their frequency, and nothing, so that
    rows are decided one after the other by what those before them have left.
    """
    starts, n_labels = [choice], len(problem.positives)
    entries, budget = problem.entries, problem.budget
    if len(entries.label) <= FEW_ENTRIES:
        frequent = np.where(problem.positives > 0.0, problem.positives, 1.0)
        of_frequent = 1.0 / frequent, np.zeros(n_labels)
        starts += [entries.choose(budget, *of_frequent), entries.nothing(budget)]
    values = [coordinate_ascent(problem, start) for start in starts]
    return starts[int(np.argmax(values))]


def coordinate_ascent(problem: BudgetProblem, choice: ChosenLabels) -> float:
    """Decide row after row, given all others, until no row gains; the value that is reached.

    The choice is changed in place. A pass never lowers the measure, so the result is at least as
    good as the choice it began with, and no other labels for any single row are better. Of labels
    without an entry those are tried that cost least at the beginning of a pass.
    """
    entries, (size, exact), utilities = problem.entries, problem.budget, problem.utilities
    tallies, lightest = problem.tallies(choice), float(entries.weight.min())
    of_labels = *utilities.parts(*tallies), utilities.at(*tallies), problem.factor
    state, bounds = np.stack(of_labels, axis=1), np.empty((len(problem.factor), 2))
    cost, value = np.empty(len(state)), -np.inf
    for _ in range(PASSES):
        reached = float(state[:, UTILITY] @ problem.factor)
        if reached <= value + LEAST_GAIN:
            break
        value = reached
        look_at_labels(utilities, lightest, state, bounds, cost)
        order, fills = entries.first(cost, 2 * size + TRIED), exact or bool(cost.min() < 0)
        if not ascend(entries, utilities, lightest, order, exact, fills, state, bounds, choice):
            break
    return reached


# What is known of a label while rows are decided: both functions of its tallies, its utility and
# its factor; and in an array of their own, which every entry is looked up in, bounds on its gains.
ABOVE, BELOW, UTILITY, FACTOR = range(4)
SLOPE, OFFSET = range(2)


@embedded
def parts_with(utilities, labels, j, true, size):
    """Both functions of label j with so much more that is true and predicted, and its utility."""
    slopes, row = utilities.slopes, j if len(utilities.geometric) > 1 else 0
    above = labels[j, ABOVE] + slopes[0, 0, row] * true + slopes[0, 1, row] * size
    below = labels[j, BELOW] + slopes[1, 0, row] * true + slopes[1, 1, row] * size
    if utilities.geometric[row]:
        return above, below, np.sqrt(max(above, 0.0) * max(below, 0.0))
    return above, below, above / below if abs(below) > utilities.zero[j] else utilities.empty


@embedded
def gain_with(utilities, labels, j, true, size):
    """What the measure gains by so much more that is true and predicted of label j."""
    utility = parts_with(utilities, labels, j, true, size)[2]
    return labels[j, FACTOR] * (utility - labels[j, UTILITY])


@embedded
def count_in(utilities, lightest, labels, bounds, j, true, size):
    """Add to the counts of label j, and bring what follows from them up to date."""
    above, below, utility = parts_with(utilities, labels, j, true, size)
    labels[j, ABOVE], labels[j, BELOW], labels[j, UTILITY] = above, below, utility
    bound(utilities, lightest, labels, bounds, j)


@embedded
def bound(utilities, lightest, labels, bounds, j):
    """Find slope · probability + offset that no gain of label j above 0 exceeds.

    Where a prediction does not lower the denominator D, it gains at most what N - v D gains by it,
    divided by the D of the lightest row's, at least. (A little more, for rounding.)
    """
    slopes, row = utilities.slopes, j if len(utilities.geometric) > 1 else 0
    true, predicted = slopes[1, 0, row], slopes[1, 1, row]
    below, value, least = labels[j, BELOW], labels[j, UTILITY], predicted + min(true, 0.0)
    is_bounded = least >= 0.0 and below > utilities.zero[j] and not utilities.geometric[row]
    scale = (1.0 + 1e-9) * labels[j, FACTOR] / (below + lightest * least) if is_bounded else 0.0
    if_false = slopes[0, 1, row] - value * predicted
    bounds[j, SLOPE] = scale * (slopes[0, 0, row] - value * true)
    bounds[j, OFFSET] = scale * (if_false + 1e-9 * abs(if_false)) if is_bounded else np.inf


@kernel
def look_at_labels(utilities, lightest, labels, bounds, cost):
    """Find the bounds of all labels, and what one more false alarm costs."""
    for j in range(len(labels)):
        bound(utilities, lightest, labels, bounds, j)
        cost[j] = -gain_with(utilities, labels, j, 0.0, 1.0)


@kernel
def ascend(entries, utilities, lightest, order, exact, fills, state, bounds, choice):
    """Decide each row anew, given the counts of all the others; whether a row has changed.

    ``state`` (l, 4) and ``bounds`` (l, 2) have what is known of each label. ``fills``: labels that
    are not stored, or gain nothing, may have to be taken too.
    """
    ends, label, probability, true, weight = entries
    (labels, places), size, has_changed = choice, choice[0].shape[1], False
    gains, old, its_place = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)
    met, was = np.full(len(state), -1), np.full(len(state), -1)
    for row in range(len(weight)):
        w, before, its_labels, its_places = weight[row], 0, labels[row], places[row]
        for c in range(size):
            j, i = np.int64(its_labels[c]), its_places[c]
            if j >= 0:
                count_in(utilities, lightest, state, bounds, j, -(true[i] if i >= 0 else 0.0), -w)
                old[before], its_place[before], was[j] = j, i, row
                before += 1
        # First the labels that gain; then, if more must be taken, all.
        for takes_all in (False, True):
            if takes_all and (its_labels[-1] >= 0 or not fills):
                break
            least = -np.inf if takes_all and exact else LEAST
            clear(its_labels, its_places, gains)
            # (Those chosen before are likely to be the best.)
            for c in range(before):
                j, i = old[c], its_place[c]
                gain = gain_with(utilities, state, j, true[i] if i >= 0 else 0.0, w)
                if gain >= least:
                    least = insert(its_labels, its_places, gains, j, i, gain, least)
            for i in range(ends[row], ends[row + 1]):
                j = np.int64(label[i])
                # (The bound holds for gains above 0.)
                most = w * (bounds[j, SLOPE] * probability[i] + bounds[j, OFFSET])
                if (takes_all or most >= least) and was[j] != row:
                    gain = gain_with(utilities, state, j, true[i], w)
                    if gain >= least:
                        least = insert(its_labels, its_places, gains, j, i, gain, least)
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
                    gain = gain_with(utilities, state, j, 0.0, w)
                    if gain >= least:
                        least = insert(its_labels, its_places, gains, j, ABSENT, gain, least)
        for c in range(size):
            j, i = np.int64(its_labels[c]), its_places[c]
            has_changed = has_changed or (j >= 0) != (c < before)
            if j >= 0:
                count_in(utilities, lightest, state, bounds, j, true[i] if i >= 0 else 0.0, w)
                has_changed = has_changed or was[j] != row
    return has_changed
