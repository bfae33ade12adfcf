"""Compiled passes over the rows of a batch on the cube, for sums over labels and at q = 0.

Each works in the precision of the scores; products over labels and long sums are kept in float64.
``one`` is 1 in the precision of the scores, from which the other constants are made. A row is read
into a room and stays there, in loops over its `lanes`, until its gradient is written.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from setwise.kernels import embedded, exp, inner, kernel, view_inner
from setwise.lanes import (
    LANES,
    load,
    product,
    size,
    spread,
    stand_apart,
    store,
    total,
    where_smaller,
    wide,
)


class Wanted(NamedTuple):
    """F(q) times e^log_scale, and its slope times ``share`` too, of scores times ``unit``."""

    q: float
    unit: np.floating  # in the precision of the scores
    one: np.floating  # 1 in it
    log_scale: float
    share: float


class AdditiveTable(NamedTuple):
    """constant + scale * sum of values[y_j, y'_j, j]; values in the scores' dtype."""

    values: np.ndarray  # (2, 2, l): [true, predicted, label]; on the cube in whole lanes
    scale: np.ndarray  # (n,)
    constant: np.ndarray  # (n,)


def like(one, x):
    """x in the precision of one."""
    return x


@overload(like)
def _overload_like(one, x):
    if one == types.float32:
        return lambda one, x: np.float32(x)
    return lambda one, x: np.float64(x)


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


@kernel
def state_sums(start, stop, y_true, if_false, if_true, sums):
    """Of each row the sum of if_true over its true labels and of if_false over the others."""
    for row in range(start, stop):
        y = y_true[row]
        total = 0.0
        for j in range(len(y)):
            total += if_true[j] if y[j] == 1 else if_false[j]
        sums[row] = total


@view_inner
def times_exp(value, exponent):
    """value * e^exponent, where 0 times an overflow is 0."""
    return value * np.exp(exponent) if value != 0.0 else 0.0


# A room, (ROOM, w), holds what there is of one row, in the precision of the scores, and serves row
# after row. Its width w is the number of labels, rounded up to whole lanes; beyond the last label
# scores and truth are 0, and p is 0 once all is known that belongs to the scores alone.
(
    SCORES,  # h
    TRUTH,  # y as 0 and 1
    P,  # the probability that a label counts, under the weights times q
    REST,  # and that it does not
    E,  # exp(-2 |q h|)
    MEAN,  # E_1[y'] = tanh(h), under the weights themselves
    E_ONE,  # exp(-2 |h|)
    SLOPE,  # by the scores
    ADDS,  # what a label adds to N when it counts, times p
    ROOM,
) = range(10)


@inner
def room_of(scores):
    """Room for rows like these."""
    return np.zeros((ROOM, -(-scores.shape[1] // LANES) * LANES), scores.dtype)


@view_inner
def enter(line, y, unit, one, room):
    """Read the scores, times the unit, and the true set of a row; 0, NaN if not all are finite."""
    scores, truth, whole = room[SCORES], room[TRUTH], len(line) - len(line) % LANES
    zero = one - one
    lanes, lack = spread(zero), zero
    for j in range(0, whole, LANES):
        x = load(line, j, one)
        lanes = lanes + zero * x
        store(scores, j, unit * x)
        store(truth, j, load(y, j, one))
    for j in range(whole, len(line)):
        lack += zero * line[j]
        scores[j] = unit * line[j]
        truth[j] = y[j]
    return np.float64(lack + total(lanes))


@view_inner
def leave(slope, one, out):
    """Write the slope of a row."""
    whole = len(out) - len(out) % LANES
    for j in range(0, whole, LANES):
        store(out, j, load(slope, j, one))
    for j in range(whole, len(out)):
        out[j] = slope[j]


@view_inner
def by_truth(truth, pair):
    """The first of the pair for a true label, the second for a false one."""
    return pair[1] + truth * (pair[0] - pair[1])


@view_inner
def probabilities(room, q, signs, one):
    """P that a label counts and that not, under the weights times q, and e = exp(-2 |q h|).

    A label of sign -1 counts when it is left out.
    """
    stand_apart()
    scores, truth, p, rest, all_e = room[SCORES], room[TRUTH], room[P], room[REST], room[E]
    zero, factor = spread(one - one), (one + one) * q
    factors = factor * signs[0], factor * signs[1]
    for j in range(0, len(p), LANES):
        x = load(scores, j, one) * by_truth(load(truth, j, one), factors)
        e = exp(-size(x))
        likely = one / (one + e)
        unlikely = e * likely
        store(p, j, where_smaller(x, zero, unlikely, likely))
        store(rest, j, where_smaller(x, zero, likely, unlikely))
        store(all_e, j, e)


@view_inner
def means(room, q, one):
    """tanh(h), and e = exp(-2 |h|); at q = 1/2 that is the square of exp(-2 |q h|)."""
    stand_apart()
    scores, mean, all_e, zero = room[SCORES], room[MEAN], room[E_ONE], spread(one - one)
    roots, is_half = room[E], q == 0.5
    for j in range(0, len(mean), LANES):
        x, root = load(scores, j, one), load(roots, j, one)
        e = root * root if is_half else exp(-size(x + x))
        large = (one - e) / (one + e)
        store(mean, j, where_smaller(x, zero, -large, large))
        store(all_e, j, e)


# A product of this many factors in [1/2, 1] is far from underflow.
BLOCK = 512


@view_inner
def log_products(e, one):
    """The sum of log((1 + e_j) / 2)."""
    logs = 0.0
    for first in range(0, len(e), BLOCK):
        factors = spread(1.0)
        for j in range(first, min(first + BLOCK, len(e)), LANES):
            factors = factors * (0.5 + 0.5 * wide(load(e, j, one)))
        logs += np.log(product(factors))
    return logs


@view_inner
def total_size(scores, one):
    """The sum of |h|."""
    sizes = spread(0.0)
    for j in range(0, len(scores), LANES):
        sizes = sizes + wide(size(load(scores, j, one)))
    return total(sizes)


@view_inner
def states(line, y, wanted, signs, room):
    """Fill the room of a row; returns log_scale + A_q - q A_1 - (1 - q) log|Y|.

    A = sum of log(2 cosh h). Where the sign of a true or false label is -1 it counts when left out.
    """
    q, unit, one, excess, _ = wanted
    excess += enter(line, y, unit, one, room)
    probabilities(room, like(one, q), signs, one)
    if q != 1.0:
        means(room, q, one)
        if q < 0.0:
            excess -= 2.0 * q * total_size(room[SCORES], one)
        excess += log_products(room[E], one) - q * log_products(room[E_ONE], one)
    for j in range(len(line), room.shape[1]):
        room[P, j], room[REST, j] = 0.0, 1.0
    return excess


@view_inner
def finish(wanted, signs, excess, mean, room, out):
    """e^excess mean of a row, and out = e^excess (slope p (1 - p) + mean (E_q[y'] - E_1[y']))."""
    q, _, one, _, share = wanted
    # Only for q < 0 or another scale: an overflow must not meet a zero.
    is_large = excess > 80.0
    height = np.exp(excess) if not is_large else 1.0
    factor, pull = like(one, height), like(one, height * share * mean)
    truth, all_p, all_rest, slopes = room[TRUTH], room[P], room[REST], room[SLOPE]
    all_means = room[MEAN]
    for j in range(0, len(slopes), LANES):
        turn = by_truth(load(truth, j, one), signs)
        p, rest = load(all_p, j, one), load(all_rest, j, one)
        slope = factor * load(slopes, j, one) * turn * p * rest
        if q != 1.0:
            # Back from the state that counts to the label itself.
            slope = pull * (turn * (p - rest) - load(all_means, j, one)) + slope
        store(slopes, j, slope)
    leave(slopes, one, out)
    if is_large:
        for j in range(len(out)):
            out[j] = times_exp(out[j], excess)
        return times_exp(mean, excess)
    return height * mean


@kernel
def soft_rows(start, stop, scores, y_true, wanted, pulls, weights, value, slope):
    """base * sum log cosh(h_j) - sum_j e_j h_j and its gradient: cross-entropy with soft labels.

    e_j = weights[1, j] pull_true if label j is true, else weights[0, j] pull_false: E_0[u y'_j].
    ``pulls`` are base, pull_true and pull_false, (n,) each. The weights have whole lanes.
    """
    soft_labels(start, stop, scores, y_true, wanted, pulls, weights, value, slope, room_of(scores))


@embedded
def soft_labels(start, stop, scores, y_true, wanted, pulls, weights, value, slope, room):
    """`soft_rows` in a room that is there."""
    (base, pull_true, pull_false), one, share = pulls, wanted.one, wanted.share
    for row in range(start, stop):
        pair = like(one, pull_true[row]), like(one, pull_false[row])
        log_cosh = enter(scores[row], y_true[row], wanted.unit, one, room)
        probabilities(room, one, (one, one), one)
        inner = pull_labels(like(one, base[row]), pair, like(one, share), weights, one, room)
        leave(room[SLOPE], one, slope[row])
        log_cosh += total_size(room[SCORES], one) + log_products(room[E], one)
        value[row] = base[row] * log_cosh - inner


@view_inner
def pull_labels(height, pulls, share, weights, one, room):
    """The sum of e_j h_j; fills share * (height * tanh(h_j) - e_j)."""
    scores, truth, p, rest = room[SCORES], room[TRUTH], room[P], room[REST]
    if_true, if_false, slope = weights[1], weights[0], room[SLOPE]
    inner = spread(0.0)
    for j in range(0, len(p), LANES):
        pair = pulls[0] * load(if_true, j, one), pulls[1] * load(if_false, j, one)
        pull = by_truth(load(truth, j, one), pair)
        inner = inner + wide(pull * load(scores, j, one))
        mean = load(p, j, one) - load(rest, j, one)
        store(slope, j, share * (height * mean - pull))
    return total(inner)


@view_inner
def sum_mean(share, values, one, room):
    """The mean of the sum of values[y_j, y'_j, j]; fills share times its slope over p (1 - p)."""
    truth, p, rest, slope = room[TRUTH], room[P], room[REST], room[SLOPE]
    on_true, off_true, on_false, off_false = values[1, 1], values[1, 0], values[0, 1], values[0, 0]
    sums = spread(0.0)
    for j in range(0, len(p), LANES):
        y = load(truth, j, one)
        on = by_truth(y, (load(on_true, j, one), load(on_false, j, one)))
        off = by_truth(y, (load(off_true, j, one), load(off_false, j, one)))
        sums = sums + wide(on * load(p, j, one) + off * load(rest, j, one))
        store(slope, j, share * (on - off))
    return total(sums)


@kernel
def additive_rows(start, stop, scores, y_true, wanted, table, value, slope):
    """F(q) (n,) and its slope (n, l) for an `AdditiveTable` whose values have whole lanes."""
    sums(start, stop, scores, y_true, wanted, table, value, slope, room_of(scores))


@embedded
def sums(start, stop, scores, y_true, wanted, table, value, slope, room):
    """`additive_rows` in a room that is there."""
    (values, scale, constant), one = table, wanted.one
    signs = one, one
    for row in range(start, stop):
        excess = states(scores[row], y_true[row], wanted, signs, room)
        share = like(one, 2.0 * wanted.share * scale[row])
        mean = constant[row] + scale[row] * sum_mean(share, values, one, room)
        value[row] = finish(wanted, signs, excess, mean, room, slope[row])
