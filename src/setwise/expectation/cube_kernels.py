"""Compiled passes over the rows of a batch on the cube, one for each form of target.

Each works in the precision of the scores; products over labels and sums over a row are kept in
float64. ``one`` is 1 in the precision of the scores, from which the other constants are made.
Loops over labels are plain so that the compiler vectorises them.
"""

import numpy as np
from numba import types
from numba.extending import overload, register_jitable

from setwise.elementary import exp, kernel

# A product of this many factors in [1/2, 1] is far from underflow.
BLOCK = 512


@register_jitable
def states(scores, y_true, row, q, flip_true, flip_false, one, p, rest, truth):
    """p = sigmoid(2 q h), rest = 1 - p (exchanged where flipped), truth = y; sum of log cosh(q h)."""
    two, zero = one + one, one - one
    n_labels = scores.shape[1]
    total = 0.0
    for first in range(0, n_labels, BLOCK):
        product, size = 1.0, 0.0
        for j in range(first, min(first + BLOCK, n_labels)):
            is_true = one if y_true[row, j] == 1 else zero
            sign = flip_false + is_true * (flip_true - flip_false)
            x = two * q * scores[row, j]
            e = exp(-abs(x))
            likely = one / (one + e)
            unlikely = e * likely
            positive = x * sign >= zero
            p[j] = likely if positive else unlikely
            rest[j] = unlikely if positive else likely
            truth[j] = is_true
            product *= 0.5 + 0.5 * np.float64(e)
            size += np.float64(abs(x))
        total += 0.5 * size + np.log(product)
    return total


@register_jitable
def tangents(scores, row, one, tanh):
    """tanh(h) of each label; returns the sum of log cosh(h)."""
    two, zero = one + one, one - one
    n_labels = scores.shape[1]
    total = 0.0
    for first in range(0, n_labels, BLOCK):
        product, size = 1.0, 0.0
        for j in range(first, min(first + BLOCK, n_labels)):
            x = scores[row, j]
            e = exp(-two * abs(x))
            t = (one - e) / (one + e)
            tanh[j] = t if x >= zero else -t
            product *= 0.5 + 0.5 * np.float64(e)
            size += np.float64(abs(x))
        total += size + np.log(product)
    return total


@kernel
def soft_rows(start, stop, scores, y_true, one, base, pull_true, pull_false, weights, value, slope):
    """base * sum log cosh(h_j) - sum_j e_j h_j and its gradient: cross-entropy with soft labels.

    e_j = weights_j * (pull_true if label j is true else pull_false) is E_0[u y'_j].
    """
    two, zero = one + one, one - one
    n_labels = scores.shape[1]
    for row in range(start, stop):
        height, up, down = one * base[row], one * pull_true[row], one * pull_false[row]
        total, inner = 0.0, 0.0
        for first in range(0, n_labels, BLOCK):
            product, size = 1.0, 0.0
            for j in range(first, min(first + BLOCK, n_labels)):
                x = scores[row, j]
                pull = weights[j] * (up if y_true[row, j] == 1 else down)
                e = exp(-two * abs(x))
                t = (one - e) / (one + e)
                slope[row, j] = height * (t if x >= zero else -t) - pull
                product *= 0.5 + 0.5 * np.float64(e)
                size += np.float64(abs(x))
                inner += np.float64(pull) * np.float64(x)
            total += size + np.log(product)
        value[row] = base[row] * total - inner


@register_jitable
def times_exp(value, exponent):
    """value * e^exponent, where 0 times an overflow is 0."""
    return value * np.exp(exponent) if value != 0.0 else 0.0


@kernel
def finish(row, at_one, one, excess, mean, p, rest, gain, tanh, slope):
    """slope = e^excess ((E_q[y'] - E_1[y']) mean + gain) where p belongs to q."""
    zero = one - one
    height = one * mean
    if excess > 80.0:
        # Only for q < 0: an overflow must not meet a zero.
        for j in range(len(p)):
            moved = (p[j] - rest[j]) - tanh[j] if not at_one else zero
            slope[row, j] = times_exp(moved * height + gain[j], excess)
        return
    factor = one * np.exp(excess)
    for j in range(len(p)):
        moved = (p[j] - rest[j]) - tanh[j] if not at_one else zero
        slope[row, j] = factor * (moved * height + gain[j])


@kernel
def additive_rows(
    start, stop, scores, y_true, q, one, weights, agreement, scale, constant, value, slope
):
    """F(q) and its slope for constant + scale * sum of weights_j * agreement[y_j, y'_j]."""
    n_labels = scores.shape[1]
    p, rest, truth = np.empty_like(scores[0]), np.empty_like(scores[0]), np.empty_like(scores[0])
    gain, tanh = np.empty_like(scores[0]), np.zeros_like(scores[0])
    on_true, off_true = one * agreement[1, 1], one * agreement[1, 0]
    on_false, off_false = one * agreement[0, 1], one * agreement[0, 0]
    two, temper = one + one, one * q
    for row in range(start, stop):
        excess = states(scores, y_true, row, temper, one, one, one, p, rest, truth)
        excess -= q * tangents(scores, row, one, tanh) if q != 1.0 else excess
        share = one * scale[row]
        total = 0.0
        for j in range(n_labels):
            on = on_false + truth[j] * (on_true - on_false)
            off = off_false + truth[j] * (off_true - off_false)
            total += np.float64(weights[j] * (on * p[j] + off * rest[j]))
            gain[j] = two * share * weights[j] * (on - off) * p[j] * rest[j]
        mean = constant[row] + scale[row] * total
        value[row] = times_exp(mean, excess)
        finish(row, q == 1.0, one, excess, mean, p, rest, gain, tanh, slope)


def factor(p, rest, power):
    """rest + p * power in float64."""


@overload(factor)
def _overload_factor(p, rest, power):
    if p == types.float32:
        # p and rest are rounded apart, so that their sum is 1 only to 1e-7; over many labels that
        # adds up. 1 - p (1 - power) is consistent.
        return lambda p, rest, power: 1.0 - np.float64(p) * (1.0 - power)
    return lambda p, rest, power: rest + p * power


@kernel
def fraction_rows(
    start, stop, scores, y_true, slots, q, one, step, sign, constant, on, off, empty, bounds, far_x,
    far_w, first, zero, count, power_true, power_false, weight, value, slope,
):  # fmt: skip
    """F(q) and its slope for N / D, D = first + sum of steps of the counted labels.

    At each node t, with f_j = (1 - p_j) + p_j t^step_j and N's conditional mean under the law
    tilted by t^D, E[N t^D] = prod f * N_t. The derivative along the logit of label j is

        prod f * p_j (1 - p_j) / f_j * (-(1 - t^step_j) N_t + (on_j - off_j) t^step_j / f_j).

    Where D can be 0 one more node, t = 0, takes out what the rule makes of D = 0 and puts the
    convention ``empty`` in.
    """
    n_labels = scores.shape[1]
    widest = max(weight.shape[2], len(far_x)) + 1
    p, rest, truth = np.empty_like(scores[0]), np.empty_like(scores[0]), np.empty_like(scores[0])
    gain, tanh = np.empty_like(scores[0]), np.zeros_like(scores[0])
    counted, missed = np.empty_like(scores[0]), np.empty_like(scores[0])
    difference = np.empty_like(scores[0])
    t_true, t_false, w = np.empty(widest), np.empty(widest), np.empty(widest)
    two, temper = one + one, one * q
    flip_true, flip_false = one * sign[0], one * sign[1]
    on_true, on_false = one * on[0], one * on[1]
    off_true, off_false = one * off[0], one * off[1]
    for row in range(start, stop):
        slot = slots[row]
        excess = states(
            scores, y_true, row, temper, flip_true, flip_false, one, p, rest, truth
        )
        excess -= q * tangents(scores, row, one, tanh) if q != 1.0 else excess
        all_p, true_p = 0.0, 0.0
        for j in range(n_labels):
            on_j = on_false + truth[j] * (on_true - on_false)
            off_j = off_false + truth[j] * (off_true - off_false)
            counted[j] = p[j] * on_j
            missed[j] = rest[j] * off_j
            difference[j] = on_j - off_j
            gain[j] = one - one
            all_p += np.float64(p[j])
            true_p += np.float64(truth[j] * p[j])
        center = first[slot] + step[0] * true_p + step[1] * (all_p - true_p)
        level = 0
        while level < len(bounds) and center > bounds[level]:
            level += 1
        if level < len(bounds):
            nodes = count[slot, level]
            for k in range(nodes):
                t_true[k] = power_true[slot, level, k]
                t_false[k] = power_false[slot, level, k]
                w[k] = weight[slot, level, k]
        else:
            nodes = len(far_x)
            for k in range(nodes):
                x = far_x[k] / center
                t_true[k] = exp(-x * step[0])
                t_false[k] = exp(-x * step[1])
                w[k] = far_w[k] / center * exp(-x * first[slot])
        if zero[slot] > 0:
            t_true[nodes] = 0.0 if step[0] > 0 else 1.0
            t_false[nodes] = 0.0 if step[1] > 0 else 1.0
            w[nodes] = 0.0
            for k in range(nodes):
                w[nodes] -= w[k]
            nodes += 1
        mean = 0.0
        for k in range(nodes):
            at_true, at_false = one * t_true[k], one * t_false[k]
            rise = at_true - at_false
            product = 1.0
            total = 0.0
            for j in range(n_labels):
                t = at_false + truth[j] * rise
                product *= factor(p[j], rest[j], np.float64(t))
                total += np.float64((t * counted[j] + missed[j]) / (rest[j] + p[j] * t))
            total += constant
            extra = empty if zero[slot] > 0 and k == nodes - 1 else 0.0
            term = w[k] * total + extra
            mean += product * term
            pull, push = one * (-product * term), one * (product * w[k])
            for j in range(n_labels):
                t = at_false + truth[j] * rise
                inverse = one / (rest[j] + p[j] * t)
                gain[j] += inverse * (pull * (one - t) + push * difference[j] * t * inverse)
        for j in range(n_labels):
            turn = flip_false + truth[j] * (flip_true - flip_false)
            gain[j] *= two * turn * p[j] * rest[j]
            # Back from the counted state to the label itself.
            if turn < one - one:
                p[j], rest[j] = rest[j], p[j]
        value[row] = times_exp(mean, excess)
        finish(row, q == 1.0, one, excess, mean, p, rest, gain, tanh, slope)
