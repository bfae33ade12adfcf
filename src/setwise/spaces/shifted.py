"""Linear-fractional expectations on a forest, by shifting scores.

On any space E_h[t^(a·b)] = exp(A(h + a log(t)/2) - A(h)) t^(sum a / 2): a power of a linear count
is a change of scores. So E[N / D] is a sum over the nodes of a rule for 1/D of the moments of N at
shifted scores. D has no concentrated law here (a forest may favour small and large sets together),
so the rule is one that holds for every value D can take.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise.spaces.expectation import Mean
from setwise.spaces.quadrature import DOUBLE_ERROR, Rules, exponential_sum, jacobi
from setwise.spaces.space import Array, Moments
from setwise.targets.measure import ZERO_DENOMINATOR, Fraction


def shifted_mean(
    space: Any, measure: Fraction, scores: Array, y_true: Array, parameters: bool
) -> Mean:
    """Sum over the rule of weight * E[N t^D], and what D = 0 contributes: a pass for each node.

    With D = start + sum of the steps of labels that count, see `Rules`. The space has the moments
    of a sum over labels, and in it a score of +-inf fixes its label.
    """
    plain = space.moments(scores, features=parameters)
    zeros = np.zeros(len(scores)), np.zeros(scores.shape), np.zeros(plain.features.shape)
    total = Mean(plain.log_partition, *zeros)
    if len(scores) == 0:
        return total
    rules, is_true = Rules(measure, scores.shape[1], DOUBLE_ERROR), y_true == 1
    start, high, zero, least = rules.ends(y_true.sum(axis=1, dtype=np.int64))
    step, flip, on, off = (
        np.where(is_true, *pair) for pair in (rules.step, rules.flip, rules.on, rules.off)
    )
    signed, values = np.where(flip, -step, step), (np.where(flip, off, on), np.where(flip, on, off))
    x_nodes, weights = _rule(rules, start, high, zero)
    for x, weight in zip(x_nodes, weights, strict=True):
        m = space.moments(scores - 0.5 * x * signed, values, features=parameters)
        exponent = m.log_partition - plain.log_partition - x * (start + 0.5 * step.sum(axis=1))
        total = _add(total, m, weight * np.exp(exponent), least, 1.0)
    if zero.any():
        # D = 0 when no label with a step counts: take out what the rule made of that, and put the
        # convention in.
        side = np.where(zero[:, None], -np.sign(signed), 0.0)
        fixed = np.where(side == 0.0, scores, np.where(side > 0, np.inf, -np.inf))
        m = space.moments(fixed, values, features=parameters)
        exponent = m.log_partition + (side * scores).sum(axis=1) - plain.log_partition
        probability, excess = np.where(zero, np.exp(exponent), 0.0), weights.sum()
        total = _add(total, m, probability, measure.empty - excess * least, -excess)
    return total


def _rule(rules: Rules, start: Array, high: Array, zero: Array) -> tuple[Array, Array]:
    """Nodes x (t = e^-x) and weights for 1/D on all values that D takes in these rows."""
    least_step = rules.step[rules.step > 0].min(initial=1.0)
    low, most = np.where(zero, least_step, start).min(), high.max()
    x, w = exponential_sum(low, max(most, low))
    units = np.concatenate([start, high, rules.step]) * rules.units
    whole = np.abs(units - np.round(units)).max() < ZERO_DENOMINATOR
    if whole and most * rules.units <= 2 * len(x):
        # All values of D are whole numbers of units, for which a Gauss rule is exact.
        t, w = jacobi(max(int(np.ceil(most * rules.units / 2.0)), 1), 0.0)
        return -np.log(t) * rules.units, w / t * rules.units
    return x, w


def _add(total: Mean, m: Moments, weight: Array, constant: Array, factor: float) -> Mean:
    """total + weight * (constant + factor * N), in mean and in both joint means."""
    base, gain = (weight * constant)[:, None], (weight * factor)[:, None]
    return Mean(
        total.log_partition,
        total.value + weight * (constant + factor * m.total),
        total.scores + base * (m.on - m.off) + gain * (m.total_on - m.total_off),
        total.parameters + base * m.features + gain * m.total_features,
    )
