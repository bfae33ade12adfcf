"""Compiled passes over the rows of a batch on the cube, one for each form of target.

Each works in the precision of the scores; products over labels and sums over a row are kept in
float64. ``one`` is 1 in the precision of the scores, from which the other constants are made.
``line`` is one row of scores, h in formulas. Loops over labels are plain so that the compiler
vectorises them.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from setwise.kernels import exp, inner, kernel, view_inner
from setwise.spaces.quadrature import RuleTable


class AdditiveTable(NamedTuple):
    """constant + scale * sum of values[y_j, y'_j, j]; values in the scores' dtype."""

    values: np.ndarray  # (2, 2, l): [true, predicted, label]
    scale: np.ndarray  # (n,)
    constant: np.ndarray  # (n,)


class FractionTable(NamedTuple):
    """N / D with the rules for 1/D, as `quadrature.Rules` makes them; pairs are (true, false)."""

    slot: np.ndarray  # (n,): the rules of each row, by its number of true labels
    step: np.ndarray  # (2,): what a label that counts adds to D
    sign: np.ndarray  # (2,): -1 where a label counts when it is left out
    on: np.ndarray  # (2,): what a label adds to N when it counts
    off: np.ndarray  # (2,): and when it does not
    empty: float  # the value at D = 0
    means: np.ndarray  # (bins - 1,): the bounds of the bins of the mean of D - start
    far_x: np.ndarray  # (m, m - 1): row k holds the k nodes of the Laguerre rule
    far_w: np.ndarray  # (m, m - 1): and its weights
    rules: RuleTable


class Room(NamedTuple):
    """Room for one row of l labels, in the precision of the scores, used for row after row."""

    p: np.ndarray  # (l,): the probability that a label counts, under the weights times q
    rest: np.ndarray  # (l,): and that it does not
    truth: np.ndarray  # (l,): y as 0 and 1
    tanh: np.ndarray  # (l,): E_1[y'], under the weights themselves; 0 for q = 1
    e: np.ndarray  # (l,): exp(-2 |q h|)
    e_one: np.ndarray  # (l,): exp(-2 |h|)
    inverse: np.ndarray  # (l,): 1 / f at a node
    slope: np.ndarray  # (l,): by the logits


@inner
def room_of(line):
    """Room for rows like this one."""
    return Room(
        np.empty_like(line), np.empty_like(line), np.empty_like(line), np.zeros_like(line),
        np.empty_like(line), np.empty_like(line), np.empty_like(line), np.empty_like(line),
    )  # fmt: skip


def like(one, x):
    """x in the precision of one."""
    return x


@overload(like)
def _overload_like(one, x):
    if one == types.float32:
        return lambda one, x: np.float32(x)
    return lambda one, x: np.float64(x)


# A product of this many factors in [1/2, 1] is far from underflow.
BLOCK = 512


@inner
def log_product(e):
    """log of the product of (1 + e_j) / 2, in float64: one logarithm.

    (A loop of its own: mixed with float32 arithmetic it would halve the length of the vectors.)
    """
    product = 1.0
    for j in range(len(e)):
        product *= 0.5 + 0.5 * np.float64(e[j])
    return np.log(product)


@inner
def log_products(e):
    """`log_product` of a row of any length.

    Blocks are slices, so that their loop starts at 0: the compiler vectorises only that.
    """
    if len(e) <= BLOCK:
        return log_product(e)
    total = 0.0
    for first in range(0, len(e), BLOCK):
        total += log_product(e[first : first + BLOCK])
    return total


@inner
def total_size(line):
    """The sum of |h|."""
    total = 0.0
    for j in range(len(line)):
        total += np.float64(abs(line[j]))
    return total


@inner
def log_excess(line, q, e, e_one):
    """A_q - q A_1 - (1 - q) log|Y|, where A = sum of |h| + log(1 + e), e = exp(-2 |h|)."""
    size = total_size(line) if q < 0.0 else 0.0
    return (abs(q) - q) * size + log_products(e) - q * log_products(e_one)


@kernel
def count_true_rows(start, stop, y_true, n_true):
    """The number of true labels of each row."""
    for row in range(start, stop):
        y = y_true[row]
        # (Narrow numbers: more of them are added at once.)
        count = np.uint32(0)
        for j in range(len(y)):
            count += np.uint32(y[j])
        n_true[row] = count


@inner
def states(line, y, q, signs, one, room):
    """Fill the room of a row for weights times q; returns A_q - q A_1 - (1 - q) log|Y|.

    Where the sign of a true or false label is -1 it counts when it is left out.
    """
    p, rest, truth, tanh, e, e_one, _, _ = room
    two, zero = one + one, one - one
    for j in range(len(line)):
        truth[j] = one if y[j] == 1 else zero
        sign = signs[1] + truth[j] * (signs[0] - signs[1])
        x = two * q * line[j]
        e[j] = exp(-abs(x))
        likely = one / (one + e[j])
        unlikely = e[j] * likely
        first = x * sign >= zero
        p[j] = likely if first else unlikely
        rest[j] = unlikely if first else likely
    if q == one:
        return 0.0
    tangents(line, one, tanh, e_one)
    return log_excess(line, np.float64(q), e, e_one)


@inner
def tangents(line, one, tanh, e):
    """tanh(h) and e = exp(-2 |h|) of each label."""
    two = one + one
    for j in range(len(line)):
        e[j] = exp(-two * abs(line[j]))
        t = (one - e[j]) / (one + e[j])
        tanh[j] = t if line[j] >= one - one else -t


@kernel
def soft_rows(start, stop, scores, y_true, one, base, pull_true, pull_false, weights, value, slope):
    """base * sum log cosh(h_j) - sum_j e_j h_j and its gradient: cross-entropy with soft labels.

    e_j = weights[1, j] pull_true if label j is true, else weights[0, j] pull_false: E_0[u y'_j].
    """
    n_labels, (if_false, if_true) = scores.shape[1], (weights[0], weights[1])
    e, tanh = np.empty_like(scores[0]), np.empty_like(scores[0])
    for row in range(start, stop):
        height = like(one, base[row])
        up, down = like(one, pull_true[row]), like(one, pull_false[row])
        line, y, out = scores[row], y_true[row], slope[row]
        tangents(line, one, tanh, e)
        total = total_size(line) + log_products(e)
        for j in range(n_labels):
            pull = up * if_true[j] if y[j] == 1 else down * if_false[j]
            out[j] = height * tanh[j] - pull
            e[j] = pull * line[j]
        inner = 0.0
        for j in range(n_labels):
            inner += np.float64(e[j])
        value[row] = base[row] * total - inner


@kernel
def state_sums(start, stop, y_true, if_false, if_true, sums):
    """Of each row the sum of if_true over its true labels and of if_false over the others."""
    for row in range(start, stop):
        y = y_true[row]
        total = 0.0
        for j in range(len(y)):
            total += if_true[j] if y[j] == 1 else if_false[j]
        sums[row] = total


@inner
def times_exp(value, exponent):
    """value * e^exponent, where 0 times an overflow is 0."""
    return value * np.exp(exponent) if value != 0.0 else 0.0


@inner
def finish(q, one, excess, mean, moved, out):
    """out = e^excess (mean * moved + out), moved = E_q[y'] - E_1[y'], which is 0 for q = 1."""
    height = like(one, mean if q != 1.0 else 0.0)
    if excess > 80.0:
        # Only for q < 0 or another scale: an overflow must not meet a zero.
        for j in range(len(out)):
            out[j] = times_exp(moved[j] * height + out[j], excess)
    else:
        factor = like(one, np.exp(excess))
        for j in range(len(out)):
            out[j] = factor * (moved[j] * height + out[j])


@kernel
def additive_rows(start, stop, scores, y_true, q, one, log_scale, sign, table, value, slope):
    """F(q) (n,) and ``sign`` times its slope (n, l) for an `AdditiveTable`.

    The slope is first filled with the derivative of the sum, then moved and scaled for q.
    """
    values, scale, constant = table
    n_labels = scores.shape[1]
    on_true, off_true, on_false, off_false = values[1, 1], values[1, 0], values[0, 1], values[0, 0]
    part, moved = np.empty_like(scores[0]), np.empty_like(scores[0])
    e, e_one, tanh = np.empty_like(scores[0]), np.empty_like(scores[0]), np.empty_like(scores[0])
    two, zero, temper = one + one, one - one, like(one, q)
    for row in range(start, stop):
        line, y, out = scores[row], y_true[row], slope[row]
        share = two * like(one, sign * scale[row])
        # (As in `states`, but in one loop: rows are short, and each loop costs its beginning.)
        for j in range(n_labels):
            e[j] = exp(-abs(two * temper * line[j]))
            likely = one / (one + e[j])
            unlikely = e[j] * likely
            p = likely if temper * line[j] >= zero else unlikely
            rest = unlikely if temper * line[j] >= zero else likely
            on = on_true[j] if y[j] == 1 else on_false[j]
            off = off_true[j] if y[j] == 1 else off_false[j]
            part[j] = on * p + off * rest
            moved[j] = p - rest
            out[j] = share * (on - off) * likely * unlikely
        total, excess = 0.0, log_scale
        for j in range(n_labels):
            total += np.float64(part[j])
        mean = constant[row] + scale[row] * total
        if q != 1.0:
            tangents(line, one, tanh, e_one)
            for j in range(n_labels):
                moved[j] -= tanh[j]
            excess += log_excess(line, q, e, e_one)
        value[row] = times_exp(mean, excess)
        if q != 1.0 or excess != 0.0:
            finish(q, one, excess, sign * mean, moved, out)


@view_inner
def choose_nodes(
    slot, mean, means, step, far_x, far_w, first, zero, count, power_true, power_false, weight,
    t_true, t_false, w,
):  # fmt: skip
    """Copy or make the nodes for a row; returns their number, the one at t = 0 included."""
    level = 0
    while level < len(means) and mean > means[level]:
        level += 1
    nodes = count[slot, level]
    if nodes >= 0:
        for k in range(nodes):
            t_true[k] = power_true[slot, level, k]
            t_false[k] = power_false[slot, level, k]
            w[k] = weight[slot, level, k]
    else:
        nodes = -nodes
        inverse_center = 1.0 / (first[slot] + mean)
        # Whole vectors of exponentials, more than are needed: a rest would cost as much.
        most = 4 if nodes <= 4 else (8 if nodes <= 8 else far_x.shape[1])
        for k in range(most):
            x = far_x[nodes, k] * inverse_center
            t_false[k] = exp(-x * step[1])
            w[k] = far_w[nodes, k] * inverse_center * exp(-x * first[slot])
        for k in range(most):
            t_true[k] = t_false[k]
        if step[0] != step[1]:
            for k in range(most):
                t_true[k] = exp(-far_x[nodes, k] * inverse_center * step[0])
    if zero[slot] > 0:
        t_true[nodes] = 0.0 if step[0] > 0 else 1.0
        t_false[nodes] = 0.0 if step[1] > 0 else 1.0
        w[nodes] = 0.0
        for k in range(nodes):
            w[nodes] -= w[k]
        nodes += 1
    return nodes


@inner
def tilt(one, lack, gain, near, truth, p, rest, inverse):
    """prod f and the sum of gain_j p_j / f_j at one node, f_j = 1 - p_j lack_j; fills 1 / f.

    ``lack`` = 1 - t^step and ``gain`` = t^step on of a (true, false) label. ``near`` t = 1 the
    factors are close to 1, and rounding each to float32 would add up over many labels.
    """
    lack_gap, gain_gap = lack[0] - lack[1], gain[0] - gain[1]
    product, total = 1.0, 0.0
    for j in range(len(p)):
        missing = lack[1] + truth[j] * lack_gap
        if near:
            f = one - p[j] * missing
            product *= 1.0 - np.float64(p[j]) * np.float64(missing)
        else:
            f = rest[j] + p[j] * (one - missing)
            product *= np.float64(f)
        inverse[j] = one / f
        total += np.float64((gain[1] + truth[j] * gain_gap) * p[j] * inverse[j])
    return product, total


@inner
def sum_of_absent(off, truth, rest, inverse):
    """The sum of off_j (1 - p_j) / f_j, in float64: what labels that do not count add to N."""
    gap, total = off[0] - off[1], 0.0
    for j in range(len(rest)):
        total += np.float64((off[1] + truth[j] * gap) * rest[j] * inverse[j])
    return total


@inner
def add_slope(pull, push, lack, gain, truth, inverse, slope):
    """slope_j += (pull lack_j + push gain_j / f_j) / f_j: what one node adds by the logits."""
    down_false, down_gap = pull * lack[1], pull * (lack[0] - lack[1])
    up_false, up_gap = push * gain[1], push * (gain[0] - gain[1])
    for j in range(len(inverse)):
        up = (up_false + truth[j] * up_gap) * inverse[j]
        slope[j] += inverse[j] * (down_false + truth[j] * down_gap + up)


@inner
def expected_step(step, truth, p):
    """The mean of D - start: the steps of labels that count, true and false."""
    all_p, true_p = 0.0, 0.0
    for j in range(len(p)):
        all_p += np.float64(p[j])
        true_p += np.float64(truth[j] * p[j])
    return step[0] * true_p + step[1] * (all_p - true_p)


@kernel
def fraction_rows(start, stop, scores, y_true, q, one, log_scale, sign, table, value, slope):
    """F(q) (n,) and ``sign`` times its slope (n, l) for N / D.

    D = start + the sum of the steps of labels that count, and ``table`` is a `FractionTable`. At
    each node t, with f_j = (1 - p_j) + p_j t^step_j and N_t the mean of N under the law tilted by
    t^D, E[N t^D] = prod f * N_t. The derivative along the logit of label j is

        prod f * p_j (1 - p_j) / f_j * (-(1 - t^step_j) N_t + (on_j - off_j) t^step_j / f_j).

    Where D can be 0 one more node, t = 0, takes out what the rule makes of D = 0 and puts the
    convention ``empty`` in.
    """
    slots, step, turns, on, off, empty, means, far_x, far_w, rules = table
    _, first, zero, least, count, power_true, power_false, weight = rules
    room, widest = room_of(scores[0]), max(weight.shape[2], far_x.shape[1]) + 1
    p, rest, truth, tanh, _, _, inverse, total_slope = room
    t_true, t_false, w = np.empty(widest), np.empty(widest), np.empty(widest)
    double, signs = like(one, 2.0 * sign), (like(one, turns[0]), like(one, turns[1]))
    on_true, on_false = like(one, on[0]), like(one, on[1])
    absent, has_off = (like(one, off[0]), like(one, off[1])), off[0] != 0.0 or off[1] != 0.0
    for row in range(start, stop):
        slot, out = slots[row], slope[row]
        excess = log_scale + states(scores[row], y_true[row], like(one, q), signs, one, room)
        nodes = choose_nodes(
            slot, expected_step(step, truth, p), means, step, far_x, far_w, first, zero, count,
            power_true, power_false, weight, t_true, t_false, w,
        )  # fmt: skip
        total_slope[:] = one - one
        mean = 0.0
        for k in range(nodes):
            # 1 - t before rounding to the precision of the scores: near t = 1 that is what counts.
            lack = like(one, 1.0 - t_true[k]), like(one, 1.0 - t_false[k])
            t = like(one, t_true[k]), like(one, t_false[k])
            gain = t[0] * on_true, t[1] * on_false
            near = min(t_true[k], t_false[k]) > 0.5
            product, above = tilt(one, lack, gain, near, truth, p, rest, inverse)
            if has_off:
                # N as its own sum of terms of one sign, not a base less a sum: accurate near 0.
                above += sum_of_absent(absent, truth, rest, inverse)
                gain = gain[0] - t[0] * absent[0], gain[1] - t[1] * absent[1]
            above += least[slot]
            extra = empty if zero[slot] > 0 and k == nodes - 1 else 0.0
            term = w[k] * above + extra
            mean += product * term
            pull, push = like(one, -product * term), like(one, product * w[k])
            add_slope(pull, push, lack, gain, truth, inverse, total_slope)
        for j in range(len(out)):
            turn = signs[1] + truth[j] * (signs[0] - signs[1])
            out[j] = total_slope[j] * double * turn * p[j] * rest[j]
            # Back from the state that counts to the label itself.
            total_slope[j] = turn * (p[j] - rest[j]) - tanh[j]
        value[row] = times_exp(mean, excess)
        if q != 1.0 or excess != 0.0:
            finish(q, one, excess, sign * mean, total_slope, out)
