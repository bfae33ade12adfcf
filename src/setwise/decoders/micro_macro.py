"""Thresholds that few positives do not overfit: the micro-macro rule by frequency."""

from __future__ import annotations

import numpy as np

from setwise.decoders.population import Utilities, utility_at
from setwise.decoders.threshold_search import EQUAL, ScoredRows, halfway
from setwise.kernels import kernel
from setwise.targets import Target
from setwise.targets.measure import Array


def micro_macro(sample: ScoredRows, metric: Target, folds: Array) -> Array:
    """A threshold for each label by the micro-macro rule, the mean of those of the folds, (l,).

    Labels come by falling frequency. In each fold the m-th label takes the cut that maximises its
    own utility divided by m, plus the utility of the counts of all labels so far together: the
    rarer a label, the less its own noise weighs. A cut above all scores of a fold stands at the
    largest of them. Labels without a positive have the threshold +inf.
    """
    found = np.array([_of_fold(sample[folds == fold], metric) for fold in np.unique(folds)])
    positives = np.bincount(sample.entries[0], sample.entries[2], sample.shape[1])
    return np.where(positives > 0, found.mean(axis=0), np.inf)


def _of_fold(sample: ScoredRows, metric: Target) -> Array:
    """The thresholds of one fold, (l,)."""
    ranking, total = sample.ranking("label", own=True), sample.mass
    n_labels = len(ranking.start) - 1
    positives = np.bincount(ranking.population, ranking.true, n_labels)
    order = np.argsort(-positives, kind="stable")
    taken = np.zeros(n_labels, np.int64)
    # Of each label, and of all labels up to the m-th together.
    up_to = np.cumsum(positives[order]), total * np.arange(1.0, n_labels + 1)
    own, together = Utilities.of(metric, positives, total), Utilities.of(metric, *up_to)
    best_cuts(ranking, order, own, together, taken)
    _, (lower, upper) = ranking.thresholds(taken)
    lower, upper = (
        np.where(np.isinf(lower), upper, lower),
        np.where(np.isinf(upper), np.nextafter(lower, np.inf), upper),
    )
    return halfway(lower, upper)


@kernel
def best_cuts(ranking, order, own, together, taken):
    """How many entries each label takes, label after label in this order; see `micro_macro`."""
    score, true, size = ranking.score, ranking.true, ranking.size
    tp_before, predicted_before = 0.0, 0.0
    for m in range(len(order)):
        j = order[m]
        start, stop = ranking.start[j], ranking.start[j + 1]
        tp, predicted, best, best_tp, best_predicted = 0.0, 0.0, -np.inf, 0.0, 0.0
        for i in range(start - 1, stop):
            if i >= start:
                tp += true[i]
                predicted += size[i]
            if i >= start and i + 1 < stop and score[i + 1] == score[i]:
                continue
            value = utility_at(own, j, tp, predicted) / (m + 1.0)
            value += utility_at(together, m, tp_before + tp, predicted_before + predicted)
            if value > best + EQUAL:
                best, taken[j] = value, i + 1 - start
                best_tp, best_predicted = tp, predicted
        tp_before += best_tp
        predicted_before += best_predicted
