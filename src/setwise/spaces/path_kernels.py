"""Paths from a root to a node: sums along a path by one pass down, sums below a node by one up.

The weight of the path to node k is z_k = sum of 2 score along it (less the sum of all scores, which
is common to all paths and left out here). ``is_end`` says at which nodes a path may end.
"""

import numpy as np
from numba.extending import register_jitable

from setwise.kernels import exp, kernel
from setwise.spaces.node_kernels import (
    add_to_parents,
    add_up,
    fill_lanes,
    of_parents,
    read_rows,
    write_rows,
)
from setwise.spaces.nodes import GROUP, LANES


@register_jitable
def plus(values, part):
    """values += part, entry by entry."""
    for j in range(len(values)):
        values[j] += part[j]


@register_jitable
def add_down(values, above, ends, part):
    """Turn what each node adds into sums along the path to it, roots to leaves, in place."""
    for group in range(1, len(ends)):
        first, stop = ends[group - 1], ends[group]
        of_parents(values, first, stop, above, part)
        plus(values[first * LANES : stop * LANES], part)


@register_jitable
def add_below(values, above, ends):
    """Turn what each node adds into sums over the nodes below it, leaves to roots, in place."""
    for group in range(len(ends) - 1, 0, -1):
        first, stop = ends[group - 1], ends[group]
        add_to_parents(values[first * LANES : stop * LANES], first, stop, above, values)


@register_jitable
def weigh(scores, row, rows, labels, above, ends, factor, z, part):
    """Fill z, the weight of the path to each node, times ``factor``."""
    read_rows(scores, row, rows, labels, 2.0 * factor, 0.0, z)
    add_down(z, above, ends, part)


@register_jitable
def highest(z, is_end, high):
    """The largest weight of a path in each lane."""
    high[:] = -np.inf
    for k in range(len(is_end)):
        for b in range(LANES):
            weight = z[k * LANES + b] if is_end[k] else -np.inf
            high[b] = weight if weight > high[b] else high[b]


@register_jitable
def exponentials(z, highs, is_end, out):
    """out = e^(z - high) at the ends of paths, else 0."""
    for j in range(len(z)):
        out[j] = exp(z[j] - highs[j])
    for k in range(len(is_end)):
        if not is_end[k]:
            out[k * LANES : (k + 1) * LANES] = 0.0


@register_jitable
def share_out(z, is_end, ends, high, mass, chance, highs):
    """Fill chance with the probability of the path to each node, and high, mass of A's log-sum."""
    highest(z, is_end, high)
    fill_lanes(high, highs)
    mass[:] = 0.0
    chance[:LANES] = 0.0
    for group in range(1, len(ends)):
        first, stop = ends[group - 1], ends[group]
        here, until = first * LANES, stop * LANES
        exponentials(z[here:until], highs, is_end[first:stop], chance[here:until])
        add_up(chance[here:until], mass)
    for k in range(len(is_end)):
        for b in range(LANES):
            chance[k * LANES + b] /= mass[b]


@kernel
def marginal_rows(start, stop, scores, labels, above, ends, is_end, log_sum, out):
    """P(label) of each row, (n, l), and the log-sum of the weights, (n,)."""
    size = len(labels) * LANES
    z, chance, part = np.empty(size), np.empty(size), np.empty(GROUP * LANES)
    high, mass = np.empty(LANES), np.empty(LANES)
    for row in range(start, stop, LANES):
        weigh(scores, row, stop, labels, above, ends, 1.0, z, part)
        share_out(z, is_end, ends, high, mass, chance, part)
        add_below(chance, above, ends)
        for group in range(1, len(ends)):
            first, end = ends[group - 1], ends[group]
            write_rows(chance[first * LANES : end * LANES], row, stop, labels, first, end, out)
        for b in range(min(LANES, stop - row)):
            log_sum[row + b] = high[b] + np.log(mass[b])


@register_jitable
def last_node(line, labels, above):
    """The node in which the path of a label set ends, -1 if the set is no path."""
    last, size = 0, 0
    for k in range(1, len(labels)):
        if line[labels[k]] == 1:
            last, size = k, size + 1
    node = last
    while node > 0 and line[labels[node]] == 1:
        node, size = above[node], size - 1
    return last if node == 0 and size == 0 and last > 0 else -1


@kernel
def last_node_rows(start, stop, sets, labels, above, is_end, out):
    """Of each set the node in which its path ends, -1 if it is none of the paths."""
    for row in range(start, stop):
        node = last_node(sets[row], labels, above)
        out[row] = node if node > 0 and is_end[node] else -1


@kernel
def likelihood_rows(start, stop, scores, last, labels, above, ends, is_end, log_probability, away):
    """log s(y) of the path to node ``last``, and y - E[y'] with y' in +-1; -inf and 0 if -1.

    The true path is kept apart from the others: what they weigh together is what y lacks of
    probability 1, also where that is small.
    """
    size = len(labels) * LANES
    z, chance, part = np.empty(size), np.empty(size), np.empty(GROUP * LANES)
    high, mass = np.empty(LANES), np.empty(LANES)
    own = np.empty(LANES)
    for row in range(start, stop, LANES):
        weigh(scores, row, stop, labels, above, ends, 1.0, z, part)
        share_out(z, is_end, ends, high, mass, chance, part)
        for b in range(LANES):
            node = last[min(row + b, stop - 1)]
            own[b] = z[max(node, 0) * LANES + b]
            chance[max(node, 0) * LANES + b] = 0.0
        add_below(chance, above, ends)
        # chance[0] is now the probability of all other paths.
        for b in range(min(LANES, stop - row)):
            if last[row + b] < 0:
                log_probability[row + b] = -np.inf
                away[row + b] = 0.0
                continue
            log_probability[row + b] = (
                np.log1p(-chance[b]) if chance[b] < 0.5 else own[b] - high[b] - np.log(mass[b])
            )
        write_away(row, stop, last, labels, above, ends, chance, part, away)


@register_jitable
def write_away(row, stop, last, labels, above, ends, chance, part, away):
    """-2 P(label) off the true path, 2 P(another path without the label) on it."""
    for group in range(1, len(ends)):
        first, end = ends[group - 1], ends[group]
        here = first * LANES
        for j in range((end - first) * LANES):
            part[j] = -2.0 * chance[here + j]
        for b in range(min(LANES, stop - row)):
            if last[row + b] >= 0:
                line = away[row + b]
                for k in range(first, end):
                    line[labels[k]] = part[(k - first) * LANES + b]
    for b in range(min(LANES, stop - row)):
        node = last[row + b]
        while node > 0:
            away[row + b, labels[node]] = 2.0 * (chance[b] - chance[node * LANES + b])
            node = above[node]


@kernel
def from_roots_rows(start, stop, order, parents, sums):
    """Sums along the path to each label, in place, any number of them in a row."""
    for row in range(start, stop):
        line = sums[row]
        for label in order:
            if parents[label] >= 0:
                line[label] += line[parents[label]]


@kernel
def to_roots_rows(start, stop, order, parents, sums):
    """Sums over the labels below each label, in place."""
    for row in range(start, stop):
        line = sums[row]
        for position in range(len(order) - 1, -1, -1):
            label = order[position]
            if parents[label] >= 0:
                line[parents[label]] += line[label]
