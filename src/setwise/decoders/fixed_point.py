"""Thresholds on probabilities that maximise a measure of the expected counts, without a sort."""

from __future__ import annotations

import numpy as np

from setwise.decoders.population import POPULATIONS, Average, Utilities
from setwise.decoders.threshold_search import EQUAL, ScoredRows, best_thresholds, halfway
from setwise.kernels import kernel
from setwise.targets import Target
from setwise.targets.measure import Array
from setwise.targets.target import rates_mean


def fixed_points(sample: ScoredRows, metric: Target, average: Average) -> Array:
    """The thresholds on probabilities that maximise the quotient of expected counts, (l,) or (1,).

    By Dinkelbach's iteration: at a value v that some decisions reach, those with the largest
    N - v D take every entry whose gain is above 0, which is a threshold; their quotient is the
    next v. It ends, at the best of all 0/1 matrices, as soon as v does not grow. Where the gain
    falls with the probability, and for G-mean, the best cut of the ranking is found instead.
    """
    by = POPULATIONS[average]
    population, count, total = sample.populations(by)
    entries = population, sample.entries[1], sample.sizes, sample.entries[2]
    true, stored = (np.bincount(population, part, count) for part in entries[:1:-1])
    positives = true
    if sample.missed is not None and by != "row":
        positives = true + (sample.missed if by == "label" else sample.missed.sum())
    utilities, rest = Utilities.of(metric, positives, total), np.maximum(total - stored, 0.0)
    # To begin with, nothing or every entry, whichever is better.
    values = utilities.at(np.zeros(count), np.zeros(count))
    whole = utilities.at(true, stored)
    better = (whole > values + EQUAL) & (positives > 0)
    values = np.where(better, whole, values)
    cut = np.where(better, np.where(rest > 0, 0.0, -np.inf), np.inf)
    improved, is_geometric = np.ones(count, bool), rates_mean(metric) == "geometric"
    left, n_left, last = _all(population), len(population), np.full(count, -np.inf)
    while improved.any() and not is_geometric:
        tried, falls = _gainful(utilities, values)
        if (falls & (positives > 0)).any():
            break
        if (tried < last).any():
            left, n_left = _all(population), len(population)
        tp, predicted, last = np.zeros(count), np.where(tried < 0.0, rest, 0.0), tried
        n_left = count_above(entries, tried, left, n_left, tp, predicted)
        reached = utilities.at(tp, predicted)
        improved = (reached > values + EQUAL) & (positives > 0)
        cut[improved], values[improved] = tried[improved], reached[improved]
    every = utilities.at(positives, np.full(count, total))
    if improved.any() or (every > values + EQUAL).any():
        return _of_best_cuts(sample, metric, average)
    lower, upper = np.where((rest > 0) & (cut >= 0.0), 0.0, -np.inf), np.full(count, np.inf)
    bound_cuts(entries, cut, lower, upper)
    return _within(utilities, values, positives, lower, upper)


def _all(population: Array) -> Array:
    """The places of all entries, in the narrowest type."""
    many = len(population) > np.iinfo(np.int32).max
    return np.arange(len(population), dtype=np.int64 if many else np.int32)


def _gainful(utilities: Utilities, values: Array) -> tuple[Array, Array]:
    """The probability above which an entry adds to N - v D, (m,), and where its gain falls."""
    # What predicting an entry adds if it is false, and how much more if it is true.
    (if_true, if_false), (true_below, false_below) = utilities.slopes
    if_false, slope = if_false - values * false_below, if_true - values * true_below
    scale = np.abs(utilities.slopes).sum(axis=(0, 1))
    flat = np.abs(slope) <= EQUAL * scale
    level = np.where(if_false > EQUAL * scale, -np.inf, np.inf)
    tried = np.where(flat, level, -if_false / np.where(flat, 1.0, slope))
    return tried, slope < -EQUAL * scale


def _within(utilities: Utilities, values: Array, positives: Array, lower: Array, upper: Array):
    """The threshold that the optimal values give where it lies within its bounds, else halfway."""
    exact = _gainful(utilities, values)[0]
    inside = (lower < exact) & (exact <= upper)
    return np.where(positives > 0, np.where(inside, exact, halfway(lower, upper)), np.inf)


def _of_best_cuts(sample: ScoredRows, metric: Target, average: Average) -> Array:
    """The thresholds by the best cut of each ranking, or ValueError where none is the optimum.

    The best 0/1 matrix of all maximises N - v D entry by entry; where its gain grows with the
    probability it is a cut too, so nothing is better. (G-mean grows with tp and with tn, so the
    best of any number of entries are the most probable.)
    """
    by = POPULATIONS[average]
    thresholds, (lower, upper) = best_thresholds(sample, metric, average, by == "label")
    counts = sample.counts(np.broadcast_to(thresholds, sample.shape[1]), by)
    tp, positives = counts[0], counts[0] + counts[2]
    if rates_mean(metric) == "geometric":
        right = tp + counts[3]
        exact = np.divide(tp, right, where=right > 0, out=np.full(len(right), np.nan))
        inside = (lower < exact) & (exact <= upper)
        return np.where(positives > 0, np.where(inside, exact, thresholds), np.inf)
    utilities = Utilities.of(metric, positives, sample.populations(by)[2])
    values = utilities.at(tp, tp + counts[1])
    falls = _gainful(utilities, values)[1] & (positives > 0)
    if falls.any():
        where = f" of label {int(np.argmax(falls))}" if by == "label" else ""
        raise ValueError(
            f"{metric} rewards errors: at its best value{where} it gains more by predicting "
            f"improbable labels than probable ones, which a threshold on the probability cannot do"
        )
    # Where the optimum is 0/0 there is no v to go by.
    no_value = np.isnan(utilities._replace(empty=np.nan).at(tp, tp + counts[1]))
    found = _within(utilities, values, positives, lower, upper)
    return np.where(no_value & (positives > 0), thresholds, found)


@kernel
def count_above(entries, thresholds, left, n_left, tp, predicted):
    """Add to each population the entries above its threshold: what is true, and how many.

    Only the first ``n_left`` entries of ``left`` are looked at. Those above stay there, and their
    number is returned: while thresholds rise, no other entry need be looked at again.
    """
    population, score, size, true = entries
    kept = 0
    for place in range(n_left):
        i = left[place]
        j = population[i]
        # (Without a branch, which would be guessed wrong too often.)
        above = 1 if score[i] > thresholds[j] else 0
        tp[j] += above * true[i]
        predicted[j] += above * size[i]
        left[kept] = i
        kept += above
    return kept


@kernel
def bound_cuts(entries, thresholds, lower, upper):
    """The largest score of each population not above its threshold, and the smallest above it."""
    population, score = entries[0], entries[1]
    for i in range(len(score)):
        j, s = population[i], score[i]
        if s > thresholds[j]:
            upper[j] = min(upper[j], s)
        else:
            lower[j] = max(lower[j], s)
