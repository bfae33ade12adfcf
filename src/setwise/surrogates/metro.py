"""Costs of misses and false alarms that stand for a measure of a whole population.

A quotient N / D of the counts is largest where N - U D is, U the largest value (Dinkelbach). That
is linear in the decisions: a miss costs what turning it into a hit would add, a false alarm what
taking it back would. So whoever trains for these costs trains for the measure, if U is right; and U
follows from the decisions. METRO (Mao, Mohri and Zhong, 2025) and its many-label form MMO (Mohri
and Zhong, 2026) go round between the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise.targets.additive import CostSensitive
from setwise.targets.measure import Array, Fraction
from setwise.targets.registry import get_target
from setwise.targets.target import judges_all_rows, rates_mean, utility_quotient


def costs_at(target: Any, counts: Any) -> CostSensitive:
    """The costs for which to train at the value that some decisions have.

    For a quotient (a · k) / (b · k) of k = (1, tp, fp, fn, tn) with the value U,

        miss = (a_tp - a_fn) - U (b_tp - b_fn),   false_alarm = (a_tn - a_fp) - U (b_tn - b_fp):

    1 + beta² - U and U for F-beta, 1 and U for Jaccard. For means of the two rates TPR and TNR the
    slopes by the counts: 1/P and 1/N for balanced accuracy, TNR/P and TPR/N for the G-mean, P true
    and N false entries. Divided by their mean, so that equal costs are 1. One pair for all labels
    (micro), or one for each (macro, weighted).

    Parameters
    ----------
    target : Macro, Micro or Weighted, or their name
    counts : array of shape (4, n_labels)
        tp, fp, fn and tn of each label, by weight.

    Notes
    -----
    Any value that can be reached is a bound on the best from below, so U is never taken below the
    value of predicting everything. A label without a positive has equal costs. Rounds of costs and
    decisions that are best for them reach the largest value of a quotient whose denominator is
    positive, and of balanced accuracy. Precision, which is 0/0 where nothing is predicted, ends
    there; for the G-mean, which is no quotient, the best decisions are those for their own costs,
    but others may be too.

    Examples
    --------
    At an F1 of 0.8 a miss costs 1.2 and a false alarm 0.8:

    >>> costs_at("micro_f1", [[4.0], [1.0], [1.0], [9.0]])
    CostSensitive(miss=[1.2], false_alarm=[0.8])
    """
    judge: Any = get_target(target)
    refuse_others(judge)
    table = np.asarray(counts, np.float64)
    pooled = table.sum(axis=1, keepdims=True) if judge.average == "micro" else table
    miss, false_alarm = _slopes(judge, pooled)
    total = miss + false_alarm
    known = (pooled[0] + pooled[2] > 0) & (total > 0) & np.isfinite(total)
    scale = 2.0 / np.where(known, total, 1.0)
    miss, false_alarm = (np.where(known, part * scale, 1.0) for part in (miss, false_alarm))
    each = np.ones(table.shape[1])
    return CostSensitive(miss * each, false_alarm * each)


def refuse_others(target: Any) -> None:
    """Raise unless the target is a measure of a whole population."""
    if not judges_all_rows(target):
        raise ValueError(
            f"'metro' trains for a measure of a whole population, such as 'macro_f1' or "
            f"Micro('jaccard'), but the target is {target}, of which every row has its own; its "
            f"losses are trained as they are, for instance by surrogate='likelihood'"
        )


def _slopes(target: Any, counts: Array) -> tuple[Array, Array]:
    """What a miss and a false alarm of each population cost, up to a factor, not negative, (m,)."""
    tp, fp, fn, tn = counts
    kind = rates_mean(target.of)
    if kind is not None:
        true, false = np.maximum(tp + fn, 1e-300), np.maximum(fp + tn, 1e-300)
        found, spared = tp / true, tn / false
        # Where one rate is 0 so is the geometric mean, whatever the other: both count alike.
        even = kind == "arithmetic" or (found * spared == 0.0)
        return np.where(even, 1.0, spared) / true, np.where(even, 1.0, found) / false
    quotient = utility_quotient(target.of)
    assert isinstance(quotient, Fraction)
    everything = np.stack([tp + fn, fp + tn, np.zeros_like(tp), np.zeros_like(tp)])
    value = np.fmax(target.by_label(counts), target.by_label(everything))
    _, tp, fp, fn, tn = quotient.numerator[:, None] - value * quotient.denominator[:, None]
    return np.maximum(tp - fn, 0.0), np.maximum(tn - fp, 0.0)
