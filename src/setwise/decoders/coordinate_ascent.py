"""Decisions with a budget of labels a row, row after row: exact, given the counts of all others."""

from __future__ import annotations

import numpy as np

from setwise.decoders.budget import LEAST, LEAST_GAIN, BudgetProblem, ChosenLabels, clear, insert
from setwise.decoders.population import utility_at
from setwise.kernels import inner, kernel

# Passes over all rows, at most.
PASSES = 50
# Up to so many entries, the ascent begins from several choices.
FEW_ENTRIES = 2**18
# How many labels without an entry are tried beyond the budget.
TRIED = 32
# What one more false alarm adds to tp, fp, fn, tn.
ONE_FALSE_ALARM = np.array([[0.0], [1.0], [0.0], [-1.0]])


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
    found = [coordinate_ascent(problem, start) for start in starts]
    values = [problem.value(*problem.tallies(one)) for one in found]
    return found[int(np.argmax(values))]


def coordinate_ascent(problem: BudgetProblem, choice: ChosenLabels) -> ChosenLabels:
    """Decide row after row, given all others, until no row gains; the choice is changed in place.

    A pass never lowers the measure, so the result is at least as good as the choice it began with,
    and no other labels for any single row are better. Of labels without an entry those are
    tried that cost least at the beginning of a pass.
    """
    value, lightest = -np.inf, float(problem.entries.weight.min())
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
        for_labels(problem.quotient, problem.total, lightest, state, bounds)
        order, fills = np.argsort(cost, kind="stable"), exact or bool(cost.min() < 0)
        facts = problem.quotient, problem.total, lightest
        if not ascend(problem.entries, *facts, order, exact, fills, state, bounds, choice):
            break
    return choice


# What is known of a label while rows are decided: tp, predicted, its utility, its positives and its
# factor; and in an array of their own, which every entry is looked up in, bounds on its gains.
TP, PREDICTED, UTILITY, POSITIVES, FACTOR = range(5)
SLOPE, OFFSET = range(2)


@inner
def utility_with(quotient, total, labels, j, true, size):
    """The utility of label j with so much more that is true and predicted."""
    tp, positives = labels[j, TP] + true, labels[j, POSITIVES]
    fp = labels[j, PREDICTED] + size - tp
    return utility_at(quotient, j, tp, fp, positives - tp, total - positives - fp)


@inner
def gain_with(quotient, total, labels, j, true, size):
    """What the measure gains by such a prediction of label j."""
    utility = utility_with(quotient, total, labels, j, true, size)
    return labels[j, FACTOR] * (utility - labels[j, UTILITY])


@inner
def count_in(quotient, total, lightest, labels, bounds, j, true, size):
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
    # it, divided by the D of the lightest row's, at least. (A little more, for rounding.)
    is_bounded = false_below >= 0.0 and true_below >= 0.0 and bottom > 0.0 and not geometric
    bottom += lightest * min(false_below, true_below)
    scale = (1.0 + 1e-9) * labels[j, FACTOR] / bottom if is_bounded else 0.0
    if_false = (above[row, 2] - above[row, 4]) - value * false_below
    if_true = (above[row, 1] - above[row, 3]) - value * true_below
    bounds[j, SLOPE] = scale * (if_true - if_false)
    bounds[j, OFFSET] = scale * (if_false + 1e-9 * abs(if_false)) if is_bounded else np.inf


@kernel
def for_labels(quotient, total, lightest, labels, bounds):
    """Bring what follows from the counts of each label up to date."""
    for j in range(len(labels)):
        count_in(quotient, total, lightest, labels, bounds, j, 0.0, 0.0)


@kernel
def ascend(entries, quotient, total, lightest, order, exact, fills, state, bounds, choice):
    """Decide each row anew, given the counts of all the others; whether a row has changed.

    ``state`` (l, 5) and ``bounds`` (l, 2) have what is known of each label. ``fills``: labels that
    are not stored, or gain nothing, may have to be taken too.
    """
    ends, label, probability, true, weight = entries
    (labels, places), size, has_changed = choice, choice[0].shape[1], False
    gains, old, its_place = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)
    met, was = np.full(len(order), -1), np.full(len(order), -1)
    for row in range(len(weight)):
        w, before, its_labels, its_places = weight[row], 0, labels[row], places[row]
        for c in range(size):
            j, i = its_labels[c], its_places[c]
            if j >= 0:
                count_in(
                    quotient, total, lightest, state, bounds, j, -(true[i] if i >= 0 else 0.0), -w
                )
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
                gain = gain_with(quotient, total, state, j, true[i] if i >= 0 else 0.0, w)
                if gain >= least:
                    least = insert(its_labels, its_places, gains, j, i, gain, least)
            for i in range(ends[row], ends[row + 1]):
                j = label[i]
                # (The bound holds for gains above 0.)
                bound = w * (bounds[j, SLOPE] * probability[i] + bounds[j, OFFSET])
                if (takes_all or bound >= least) and was[j] != row:
                    gain = gain_with(quotient, total, state, j, true[i], w)
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
                    gain = gain_with(quotient, total, state, j, 0.0, w)
                    if gain >= least:
                        least = insert(its_labels, its_places, gains, j, -1, gain, least)
        for c in range(size):
            j, i = its_labels[c], its_places[c]
            has_changed = has_changed or (j >= 0) != (c < before)
            if j >= 0:
                count_in(quotient, total, lightest, state, bounds, j, true[i] if i >= 0 else 0.0, w)
                has_changed = has_changed or was[j] != row
    return has_changed
