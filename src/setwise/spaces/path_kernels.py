"""Paths from a root to a node: sums along a path by one pass down, sums below a node by one up.

The weight of the path to node k is z_k = sum of 2 score along it (less the sum of all scores, which
is common to all paths and left out here). ``is_end`` (nodes,) says at which nodes a path may end.
Sums over labels: the value of a path is the sum of what its labels add when present and all others
when absent; the mean over the paths below a node gives the gradient.

Arrays of nodes are flat, (nodes * LANES,), see `nodes`.
"""

import numpy as np

from setwise.kernels import copy_into, exp, inner, kernel
from setwise.spaces.nodes import (
    GROUP,
    LANES,
    add_to_parents,
    add_up,
    fill_lanes,
    of_parents,
    plus,
    read_rows,
    read_values,
    slope_factors,
    take_large_factors,
    times_into,
    write_lanes,
    write_rows,
    write_values,
)
from setwise.targets.measure import ZERO_DIFFERENCE


@inner
def add_down(values, nodes, part):
    """Turn what each node adds into sums along the path to it, roots to leaves, in place."""
    above, ends = nodes.above, nodes.ends
    for group in range(1, len(ends)):
        first, stop = ends[group - 1], ends[group]
        of_parents(values, first, stop, above, part)
        plus(values[first * LANES : stop * LANES], part)


@inner
def add_below(values, nodes):
    """Turn what each node adds into sums over the nodes below it, leaves to roots, in place."""
    above, ends = nodes.above, nodes.ends
    for group in range(len(ends) - 1, 0, -1):
        first, stop = ends[group - 1], ends[group]
        add_to_parents(values[first * LANES : stop * LANES], first, stop, above, values)


@inner
def weigh(scores, row, rows, nodes, factor, z, part):
    """Fill z, the weight of the path to each node, times ``factor``."""
    read_rows(scores, row, rows, nodes.labels, 2.0 * factor, 0.0, z)
    add_down(z, nodes, part)


@inner
def share_out(z, is_end, ends, high, mass, chance, highs):
    """Fill chance with the probability of the path to each node, and high, mass of A's log-sum.

    A = high + log(mass). Nodes at which no path ends have no chance. ``highs`` is scratch.
    """
    high[:], mass[:] = -np.inf, 0.0
    for k in range(len(is_end)):
        for b in range(LANES):
            weight = z[k * LANES + b] if is_end[k] else -np.inf
            high[b] = weight if weight > high[b] else high[b]
    fill_lanes(high, highs)
    chance[:LANES] = 0.0
    for group in range(1, len(ends)):
        first, stop = ends[group - 1], ends[group]
        here, until = first * LANES, stop * LANES
        exponentials(z[here:until], highs, is_end[first:stop], chance[here:until])
        add_up(chance[here:until], mass)
    for k in range(len(is_end)):
        for b in range(LANES):
            chance[k * LANES + b] /= mass[b]


@inner
def exponentials(z, highs, is_end, out):
    """out = e^(z - high) at the ends of paths, else 0."""
    for j in range(len(z)):
        out[j] = exp(z[j] - highs[j])
    for k in range(len(is_end)):
        if not is_end[k]:
            out[k * LANES : (k + 1) * LANES] = 0.0


@kernel
def marginal_rows(start, stop, scores, nodes, is_end, log_sum, out):
    """P(label) of each row, (n, l), and the log-sum of the weights, (n,)."""
    labels, ends, size = nodes.labels, nodes.ends, len(nodes.labels) * LANES
    z, chance, part = np.empty(size), np.empty(size), np.empty(GROUP * LANES)
    high, mass = np.empty(LANES), np.empty(LANES)
    for row in range(start, stop, LANES):
        weigh(scores, row, stop, nodes, 1.0, z, part)
        share_out(z, is_end, ends, high, mass, chance, part)
        add_below(chance, nodes)
        write_rows(chance[LANES:], row, stop, labels, 1, len(labels), out)
        write_lanes(high + np.log(mass), row, stop, log_sum)


@kernel
def likelihood_rows(start, stop, scores, last, nodes, is_end, value, by_score):
    """-log s(y) of the path to node ``last`` (n,), and E[y'] - y with y' in +-1, (n, l).

    inf and 0 where ``last`` is -1. The true path is kept apart from the others: what they weigh
    together is what y lacks of probability 1, also where that is small.
    """
    size = len(nodes.labels) * LANES
    z, chance, part = np.empty(size), np.empty(size), np.empty(GROUP * LANES)
    high, mass, own = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for row in range(start, stop, LANES):
        weigh(scores, row, stop, nodes, 1.0, z, part)
        share_out(z, is_end, nodes.ends, high, mass, chance, part)
        for b in range(LANES):
            node = last[min(row + b, stop - 1)]
            own[b] = z[max(node, 0) * LANES + b]
            chance[max(node, 0) * LANES + b] = 0.0
        add_below(chance, nodes)
        # chance[0] is now the probability of all other paths.
        for b in range(min(LANES, stop - row)):
            if last[row + b] < 0:
                value[row + b] = np.inf
                by_score[row + b] = 0.0
                continue
            value[row + b] = (
                -np.log1p(-chance[b]) if chance[b] < 0.5 else high[b] + np.log(mass[b]) - own[b]
            )
        write_slopes(row, stop, last, nodes, chance, by_score)


@inner
def write_slopes(row, stop, last, nodes, chance, by_score):
    """2 P(label) off the true path, -2 P(another path without the label) on it."""
    labels, above, _ = nodes
    for k in range(1, len(labels)):
        for b in range(min(LANES, stop - row)):
            if last[row + b] >= 0:
                by_score[row + b, labels[k]] = 2.0 * chance[k * LANES + b]
    for b in range(min(LANES, stop - row)):
        node = last[row + b]
        while node > 0:
            by_score[row + b, labels[node]] = 2.0 * (chance[node * LANES + b] - chance[b])
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


@inner
def values_of_paths(on, off, total, scale, constant):
    """on becomes constant + scale (on along the path + off elsewhere), from sums along the path.

    Both differences are 0 where they are rounding beside their terms.
    """
    least, least_value = np.empty(LANES), np.empty(LANES)
    for b in range(LANES):
        least[b] = ZERO_DIFFERENCE * abs(total[b])
        least_value[b] = ZERO_DIFFERENCE * abs(constant[b]) + abs(scale[b]) * least[b]
        least_value[b] = least_value[b] if constant[b] != 0.0 else 0.0
    for k in range(len(on) // LANES):
        for b in range(LANES):
            j = k * LANES + b
            elsewhere = total[b] - off[j]
            elsewhere = elsewhere if abs(elsewhere) > least[b] else 0.0
            value = constant[b] + scale[b] * (on[j] + elsewhere)
            on[j] = value if abs(value) > least_value[b] else 0.0


@inner
def read_path_values(y_true, row, rows, nodes, measure, path_value, off, part):
    """Fill the value of the path to each node; ``off`` and ``part`` are scratch."""
    total, scale, constant = np.zeros(LANES), np.empty(LANES), np.empty(LANES)
    read_values(y_true, row, rows, nodes.labels, measure, path_value, off)
    add_up(off, total)
    add_down(path_value, nodes, part)
    add_down(off, nodes, part)
    for b in range(LANES):
        at = min(row + b, rows - 1)
        scale[b], constant[b] = measure.scale[at], measure.constant[at]
    values_of_paths(path_value, off, total, scale, constant)


@inner
def join(factors, heights, weighted, chance, part):
    """part = factor E[u label] - height P(label)."""
    for j in range(len(weighted)):
        part[j] = factors[j] * weighted[j] - heights[j] * chance[j]


@kernel
def additive_rows(start, stop, scores, y_true, power, own, measure, value, slope):
    """The `Power` of an `AdditiveTable` of nodes (n,), and its slope by the scores (n, l).

    ``weighted`` is u times the probability under the weights times q, first of each path and then
    of all paths below a node; ``chance`` ends as the same of 1 under the weights themselves.
    """
    (nodes, is_end), q = own, power.q
    labels, ends, even = nodes.labels, nodes.ends, np.exp(-power.log_size)
    size, most = len(labels) * LANES, GROUP * LANES
    z, chance, path_value, weighted = (
        np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    )  # fmt: skip
    part, factors, heights = np.empty(most), np.empty(most), np.empty(most)
    high, mass, log_sum, mean = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    inner, exponent, factor = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for row in range(start, stop, LANES):
        mean[:], inner[:] = 0.0, 0.0
        read_path_values(y_true, row, stop, nodes, measure, path_value, weighted, part)
        if q == 0.0:
            for k in range(len(is_end)):
                for b in range(LANES):
                    chance[k * LANES + b] = even if is_end[k] else 0.0
            log_sum[:] = power.log_size
        else:
            weigh(scores, row, stop, nodes, q, z, part)
            share_out(z, is_end, ends, high, mass, chance, part)
            copy_into(log_sum, high + np.log(mass))
        times_into(path_value, chance, weighted)
        add_up(weighted, mean)
        if q != 1.0:
            weigh(scores, row, stop, nodes, 1.0, z, part)
            if power.limit:
                times_into(weighted, z, path_value)
                add_up(path_value, inner)
            share_out(z, is_end, ends, high, mass, chance, part)
        add_below(weighted, nodes)
        add_below(chance, nodes)
        whole = high + np.log(mass)
        slope_factors(power, log_sum, whole, exponent, factor)
        fill_lanes(factor, factors)
        fill_lanes(factor * mean, heights)
        for group in range(1, len(ends)):
            first, end = ends[group - 1], ends[group]
            here, until = first * LANES, end * LANES
            join(factors, heights, weighted[here:until], chance[here:until], part)
            take_large_factors(exponent, part[: until - here])
            write_rows(part, row, stop, labels, first, end, slope)
        write_values(power, row, stop, mean, whole, inner, exponent, value)
