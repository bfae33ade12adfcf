"""The compiled pass over the rows of a batch on the cube for a quotient of sums over labels.

1 / D is a sum of powers t^D over the nodes t of a rule (`quadrature`), and E[N t^D] is a product
over labels: two passes over the labels of a row for each pair of nodes. Rooms and precisions are
those of `cube_kernels`.
"""

from typing import NamedTuple

import numpy as np

from setwise.kernels import embedded, exp, kernel, view_inner
from setwise.lanes import LANES, load, product, spread, store, total, where_smaller, wide
from setwise.spaces.cube_kernels import (
    ADDS,
    REST,
    SLOPE,
    TRUTH,
    P,
    by_truth,
    finish,
    like,
    room_of,
    states,
)
from setwise.spaces.quadrature import RuleTable


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


@embedded
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
        all_x, all_w = far_x[nodes], far_w[nodes]
        # In whole lanes, more than are needed: rooms have place for them.
        for k in range(0, nodes, LANES):
            x = load(all_x, k, 1.0) * inverse_center
            t = exp(-x * step[1])
            store(t_false, k, t)
            store(t_true, k, t if step[0] == step[1] else exp(-x * step[0]))
            store(w, k, load(all_w, k, 1.0) * inverse_center * exp(-x * first[slot]))
    if zero[slot] > 0:
        t_true[nodes] = 0.0 if step[0] > 0 else 1.0
        t_false[nodes] = 0.0 if step[1] > 0 else 1.0
        w[nodes] = 0.0
        for k in range(nodes):
            w[nodes] -= w[k]
        nodes += 1
    return nodes


@view_inner
def weigh(steps, on, one, room, counted):
    """The mean of D - start; fills what labels add to N, and their p in float64, by step of D.

    ``counted`` (2, w) has labels with the step of true ones and with that of false ones, or, where
    the steps are equal, all labels in the first row.
    """
    truth, all_p, all_rest, adds = room[TRUTH], room[P], room[REST], room[ADDS]
    (first, second), mean = (counted[0], counted[1]), spread(one - one)
    step, are_equal = pair_like(one, steps), steps[0] == steps[1]
    for j in range(0, len(adds), LANES):
        y, p, rest = load(truth, j, one), load(all_p, j, one), load(all_rest, j, one)
        mean = mean + by_truth(y, step) * p
        store(adds, j, by_truth(y, on) * p)
        # Of p and 1 - p the smaller one is known to more digits.
        likely = where_smaller(wide(p), wide(rest), wide(p), 1.0 - wide(rest))
        if are_equal:
            store(first, j, likely)
        else:
            store(first, j, likely * wide(y))
            store(second, j, likely - likely * wide(y))
    return np.float64(total(mean))


@view_inner
def products(counted, lack, next_lack):
    """The products of 1 - p_j lack at two nodes."""
    mass, next_mass = spread(1.0), spread(1.0)
    for j in range(0, len(counted), LANES):
        p = load(counted, j, 1.0)
        mass = mass * (1.0 - p * lack)
        next_mass = next_mass * (1.0 - p * next_lack)
    return product(mass), product(next_mass)


@view_inner
def masses(step, lack, next_lack, counted):
    """E[t^(D - start)] = prod f at two nodes; lacks are 1 - t^step of a (true, false) label."""
    mass, next_mass = 1.0, 1.0
    if step[0] != 0.0:
        mass, next_mass = products(counted[0], lack[0], next_lack[0])
    if step[1] != step[0] and step[1] != 0.0:
        factor, next_factor = products(counted[1], lack[1], next_lack[1])
        mass, next_mass = mass * factor, next_mass * next_factor
    return mass, next_mass


@view_inner
def mass_at_zero(step, one, room):
    """P(D = start), prod f at t = 0: of 1 - p, to all its digits, of labels that have a step."""
    truth, rest, mass = room[TRUTH], room[REST], spread(1.0)
    for j in range(0, len(rest), LANES):
        own = wide(by_truth(load(truth, j, one), pair_like(one, step)))
        mass = mass * where_smaller(spread(0.0), own, wide(load(rest, j, one)), spread(1.0))
    return product(mass)


# Sums of this many labels are taken in the precision of the scores, sums of such sums in float64.
SHORT = 64


@view_inner
def tilt(t, next_t, one, room, inverses, next_inverses):
    """The sums of adds_j t_j / f_j at two nodes; fills 1 / f, f = (1 - p) + p t."""
    truth, all_p, all_rest, all_adds = room[TRUTH], room[P], room[REST], room[ADDS]
    above, next_above = spread(0.0), spread(0.0)
    for first in range(0, len(all_p), SHORT):
        part, next_part = spread(one - one), spread(one - one)
        for j in range(first, min(first + SHORT, len(all_p)), LANES):
            y, p, rest = load(truth, j, one), load(all_p, j, one), load(all_rest, j, one)
            here, there = by_truth(y, t), by_truth(y, next_t)
            inverse, next_inverse = one / (rest + p * here), one / (rest + p * there)
            store(inverses, j, inverse)
            store(next_inverses, j, next_inverse)
            adds = load(all_adds, j, one)
            part = part + adds * (here * inverse)
            next_part = next_part + adds * (there * next_inverse)
        above, next_above = above + wide(part), next_above + wide(next_part)
    return total(above), total(next_above)


@view_inner
def sum_of_absent(off, n_labels, one, room, inverses):
    """The sum of off_j (1 - p_j) / f_j: what labels that do not count add to N."""
    truth, rest, sums = room[TRUTH], room[REST], spread(0.0)
    # Beyond the last label nothing is absent.
    for j in range(n_labels, len(rest)):
        inverses[j] = 0.0
    for j in range(0, len(rest), LANES):
        adds = by_truth(load(truth, j, one), off) * load(rest, j, one)
        sums = sums + wide(adds * load(inverses, j, one))
    return total(sums)


@view_inner
def add_slope(node, next_node, one, room, inverses, next_inverses):
    """slope_j += (down_j + up_j / f_j) / f_j at two nodes, each (down, up) of (true, false)."""
    (down, up), (next_down, next_up) = node, next_node
    truth, slopes = room[TRUTH], room[SLOPE]
    for j in range(0, len(slopes), LANES):
        y, inverse, next_inverse = (
            load(truth, j, one), load(inverses, j, one), load(next_inverses, j, one)
        )  # fmt: skip
        added = inverse * (by_truth(y, down) + by_truth(y, up) * inverse)
        next_added = next_inverse * (by_truth(y, next_down) + by_truth(y, next_up) * next_inverse)
        store(slopes, j, load(slopes, j, one) + added + next_added)


@view_inner
def pair_like(one, pair):
    """Both numbers in the precision of one."""
    return like(one, pair[0]), like(one, pair[1])


# What is known of a node: t^step of a true and of a false label, the weight; then the mass, and the
# term that it adds to the mean for a mass of 1.
T_TRUE, T_FALSE, WEIGHT, MASS, TERM, KNOWN = range(6)


@view_inner
def slope_of(one, k, nodes, double, rates):
    """(down, up) of `add_slope` of node k, for (true, false) labels; rates are 2 (on - off)."""
    # 1 - t before rounding to the precision of the scores: near t = 1 that is what counts.
    t, pull = (nodes[T_TRUE, k], nodes[T_FALSE, k]), -double * nodes[MASS, k] * nodes[TERM, k]
    push, down = nodes[MASS, k] * nodes[WEIGHT, k], (pull * (1.0 - t[0]), pull * (1.0 - t[1]))
    up = push * t[0] * rates[0], push * t[1] * rates[1]
    return pair_like(one, down), pair_like(one, up)


@embedded
def quotient_mean(n_nodes, at_zero, n_labels, least, table, wanted, room, counted, nodes, inverses):
    """E[N / D] of a row, two nodes at a time; fills its slope over p (1 - p).

    ``nodes`` is (KNOWN, m), ``inverses`` (m, w) room for 1 / f at each. ``at_zero`` is the place of
    the node t = 0, which has ``empty`` beside N, or -1 where D cannot be 0.
    """
    one, step, off, double = wanted.one, table.step, table.off, 2.0 * wanted.share
    rates = double * (table.on[0] - off[0]), double * (table.on[1] - off[1])
    # Beside the last of an odd number stands a node at t = 1 without a weight.
    nodes[T_TRUE, n_nodes], nodes[T_FALSE, n_nodes], nodes[WEIGHT, n_nodes] = 1.0, 1.0, 0.0
    mean = 0.0
    for k in range(0, n_nodes, 2):
        t, next_t = (nodes[0, k], nodes[1, k]), (nodes[0, k + 1], nodes[1, k + 1])
        lack, next_lack = (1.0 - t[0], 1.0 - t[1]), (1.0 - next_t[0], 1.0 - next_t[1])
        mass, next_mass = masses(step, lack, next_lack, counted)
        mass = mass_at_zero(step, one, room) if k == at_zero else mass
        next_mass = mass_at_zero(step, one, room) if k + 1 == at_zero else next_mass
        t, next_t, here, there = (
            pair_like(one, t), pair_like(one, next_t), inverses[k], inverses[k + 1]
        )  # fmt: skip
        above, next_above = tilt(t, next_t, one, room, here, there)
        if off[0] != 0.0 or off[1] != 0.0:
            # N as its own sum of terms of one sign, not a base less a sum: accurate near 0.
            absent = like(one, off[0]), like(one, off[1])
            above += sum_of_absent(absent, n_labels, one, room, here)
            next_above += sum_of_absent(absent, n_labels, one, room, there)
        term = nodes[WEIGHT, k] * (above + least) + (table.empty if k == at_zero else 0.0)
        next_term = nodes[WEIGHT, k + 1] * (next_above + least)
        next_term += table.empty if k + 1 == at_zero else 0.0
        mean += mass * term + next_mass * next_term
        nodes[MASS, k], nodes[MASS, k + 1] = mass, next_mass
        nodes[TERM, k], nodes[TERM, k + 1] = term, next_term
    slopes = room[SLOPE]
    for j in range(0, len(slopes), LANES):
        store(slopes, j, spread(one - one))
    # Apart from the sums, so that no node waits for those of another.
    for k in range(0, n_nodes, 2):
        node = slope_of(one, k, nodes, double, rates)
        next_node = slope_of(one, k + 1, nodes, double, rates)
        add_slope(node, next_node, one, room, inverses[k], inverses[k + 1])
    return mean


@embedded
def quotients(
    start, stop, scores, y_true, wanted, table, value, slope, room, counted, nodes, inverses
):
    """`fraction_rows` in rooms that are there."""
    one, rules, step = wanted.one, table.rules, table.step
    signs, on = pair_like(one, table.sign), pair_like(one, table.on)
    for row in range(start, stop):
        slot = table.slot[row]
        excess = states(scores[row], y_true[row], wanted, signs, room)
        n_nodes = choose_nodes(
            slot, weigh(step, on, one, room, counted), table.means, step,
            table.far_x, table.far_w, rules.start, rules.zero, rules.count, rules.power_true,
            rules.power_false, rules.weight, nodes[0], nodes[1], nodes[2],
        )  # fmt: skip
        at_zero = n_nodes - 1 if rules.zero[slot] > 0 else -1
        least = rules.least[slot]
        mean = quotient_mean(
            n_nodes, at_zero, scores.shape[1], least, table, wanted, room, counted, nodes, inverses
        )
        value[row] = finish(wanted, signs, excess, mean, room, slope[row])


@kernel
def fraction_rows(start, stop, scores, y_true, wanted, table, value, slope):
    """F(q) (n,) and its slope (n, l) for N / D, by a `FractionTable`.

    D = start + the sum of the steps of labels that count. At each node t, with f_j = (1 - p_j) +
    p_j t^step_j and N_t the mean of N under the law tilted by t^D, E[N t^D] = prod f * N_t. The
    derivative along the logit of label j is

        prod f * p_j (1 - p_j) / f_j * (-(1 - t^step_j) N_t + (on_j - off_j) t^step_j / f_j).

    Where D can be 0 one more node, t = 0, takes out what the rule makes of D = 0 and puts the
    convention ``empty`` in.
    """
    room = room_of(scores)
    most = max(table.rules.weight.shape[2], table.far_x.shape[1]) + 2
    width, nodes = room.shape[1], np.empty((KNOWN, most))
    counted, inverses = np.empty((2, width)), np.empty((most, width), scores.dtype)
    quotients(
        start, stop, scores, y_true, wanted, table, value, slope, room, counted, nodes, inverses
    )
