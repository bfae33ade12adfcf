"""Closed label sets, where a label brings its parent along: one exponential a node.

With all labels absent as the reference and x_i what label i adds to the weight of a set,

    a_i = x_i + sum over children u_c,    u_i = log(1 + e^a_i):

u_i is the log-sum over the subtree of i given that i's parent is in the set, and p_i = sigmoid(a_i)
the probability of i given its parent, so P(i) is the product of p along the path to i. p and
r = 1 - p both come from e^-|a|, and either is accurate relative to itself.

Sums over labels: with what a label adds when present (on) and when absent (off), the mean of what
the subtree of i adds is

    on_i + sum over children (p_c V_c + r_c W_c) =: V_i  if i is present,
    off_i + sum over children W_c               =: W_i  if it is absent,

and the covariance of the whole sum with label i

    C_i = p_i (P(parent) r_i (V_i - W_i) + C_parent).

Nothing in it is larger than the mean, so everything is accurate relative to the mean.

Arrays of nodes are flat, (nodes * LANES,), see `nodes`; ``shift`` (nodes,) is what potentials add.
"""

import numpy as np
from numba.extending import register_jitable

from setwise.kernels import exp, kernel, log1p_unit
from setwise.spaces.nodes import (
    GROUP,
    LANES,
    add_to_parents,
    add_up,
    fill_lanes,
    of_parents,
    read_rows,
    read_values,
    slope_factors,
    take_large_factors,
    write_rows,
    write_values,
)


@register_jitable
def split(a, p, r, soft, u):
    """p = sigmoid(a), r = 1 - p, soft = log(1 + e^-|a|) and u = log(1 + e^a) of each entry."""
    for j in range(len(a)):
        e = exp(-abs(a[j]))
        likely = 1.0 / (1.0 + e)
        unlikely = e * likely
        p[j] = likely if a[j] >= 0.0 else unlikely
        r[j] = unlikely if a[j] >= 0.0 else likely
        soft[j] = log1p_unit(e)
        u[j] = max(a[j], 0.0) + soft[j]


@register_jitable
def read_weights(scores, row, rows, labels, factor, shift, out):
    """out[k] = factor * (2 score + shift_k), 0 at the virtual root."""
    read_rows(scores, row, rows, labels, 2.0 * factor, 0.0, out)
    for k in range(1, len(labels)):
        for b in range(LANES):
            out[k * LANES + b] += factor * shift[k]


@register_jitable
def of_group(values, here, until, size):
    """The entries of a group in an array of all nodes, or of one that serves every group anew."""
    return values[here:until] if len(values) == size else values[: until - here]


@register_jitable
def condition(scores, row, rows, nodes, factor, shift, a, p, r, soft, part):
    """Fill a, p, r and soft of every node, leaves to roots; a[0] is the log-sum of the forest.

    The virtual root is in every set: p = 1. Weights are ``factor`` times (2 score + shift). Where r
    or soft are not wanted they have room for a group only.
    """
    labels, above, ends = nodes
    read_weights(scores, row, rows, labels, factor, shift, a)
    p[:LANES], r[:LANES] = 1.0, 0.0
    for group in range(len(ends) - 1, 0, -1):
        first, stop = ends[group - 1], ends[group]
        here, until = first * LANES, stop * LANES
        rest, soften = of_group(r, here, until, len(a)), of_group(soft, here, until, len(a))
        split(a[here:until], p[here:until], rest, soften, part)
        add_to_parents(part, first, stop, above, a)


@register_jitable
def times(values, part):
    """values *= part, entry by entry."""
    for j in range(len(values)):
        values[j] *= part[j]


@kernel
def marginal_rows(start, stop, scores, nodes, shift, log_sum, out):
    """P(label) (n, l), and the log-sum (n,) of e^(sum of 2 score + shift over a set's labels)."""
    labels, above, ends = nodes
    size, most = len(labels) * LANES, GROUP * LANES
    a, p = np.empty(size), np.empty(size)
    r, soft, part = np.empty(most), np.empty(most), np.empty(most)
    for row in range(start, stop, LANES):
        condition(scores, row, stop, nodes, 1.0, shift, a, p, r, soft, part)
        for group in range(1, len(ends)):
            first, end = ends[group - 1], ends[group]
            chance = p[first * LANES : end * LANES]
            of_parents(p, first, end, above, part)
            times(chance, part)
            write_rows(chance, row, stop, labels, first, end, out)
        for b in range(min(LANES, stop - row)):
            log_sum[row + b] = a[b]


@register_jitable
def surprise(truth, above, a, soft, part):
    """-log P(state of label | parent) where the parent is true; infinite where only a child is."""
    for j in range(len(truth)):
        against = a[j] if truth[j] == 0.0 else -a[j]
        part[j] = above[j] * (max(against, 0.0) + soft[j])
        part[j] = np.inf if truth[j] > above[j] else part[j]


@register_jitable
def step_away(truth, r, above_on, above_off, p, off, part):
    """P(label), P(not label) from the parent's; E[y'] - y is twice the other state's."""
    for j in range(len(truth)):
        off[j] = above_off[j] + above_on[j] * r[j]
        p[j] *= above_on[j]
        part[j] = -2.0 * off[j] if truth[j] == 1.0 else 2.0 * p[j]


@kernel
def likelihood_rows(start, stop, scores, y_true, nodes, shift, value, by_score):
    """-log s(y), inf where y is not closed, (n,), and E[y'] - y with y' in +-1, (n, l)."""
    labels, above, ends = nodes
    size, most = len(labels) * LANES, GROUP * LANES
    a, p, r, soft = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    truth, off, total = np.empty(size), np.empty(size), np.empty(LANES)
    part, above_on, above_off = np.empty(most), np.empty(most), np.empty(most)
    for row in range(start, stop, LANES):
        condition(scores, row, stop, nodes, 1.0, shift, a, p, r, soft, part)
        read_rows(y_true, row, stop, labels, 1.0, 1.0, truth)
        off[:LANES], total[:] = 0.0, 0.0
        for group in range(1, len(ends)):
            first, end = ends[group - 1], ends[group]
            here, until = first * LANES, end * LANES
            of_parents(truth, first, end, above, above_on)
            surprise(truth[here:until], above_on, a[here:until], soft[here:until], part)
            add_up(part[: until - here], total)
            of_parents(p, first, end, above, above_on)
            of_parents(off, first, end, above, above_off)
            step_away(
                truth[here:until], r[here:until], above_on, above_off,
                p[here:until], off[here:until], part,
            )  # fmt: skip
            write_rows(part, row, stop, labels, first, end, by_score)
        for b in range(min(LANES, stop - row)):
            value[row + b] = total[b]


@register_jitable
def mix(p, r, on, off, part):
    """part = p on + r off."""
    for j in range(len(p)):
        part[j] = p[j] * on[j] + r[j] * off[j]


@register_jitable
def collect(nodes, p, r, on, off, part):
    """Turn on and off into V and W, leaves to roots; on[0] is then the mean of the sum."""
    ends = nodes.ends
    for group in range(len(ends) - 1, 0, -1):
        first, stop = ends[group - 1], ends[group]
        here, until = first * LANES, stop * LANES
        mix(p[here:until], r[here:until], on[here:until], off[here:until], part)
        add_to_parents(part, first, stop, nodes.above, on)
        add_to_parents(off[here:until], first, stop, nodes.above, off)


@register_jitable
def step(p, r, on, off, chance, around):
    """p becomes P(label) and on its covariance C, from those of the parents."""
    for j in range(len(p)):
        on[j] = p[j] * ((on[j] - off[j]) * chance[j] * r[j] + around[j])
        p[j] *= chance[j]


@register_jitable
def join(share, height, on, p, whole, part):
    """part = share C + height (P - P_1)."""
    for j in range(len(p)):
        part[j] = share[j] * on[j] + height[j] * (p[j] - whole[j])


@register_jitable
def spread(even, p, r):
    """The same P(label | parent) in every lane."""
    for k in range(len(even)):
        for b in range(LANES):
            p[k * LANES + b], r[k * LANES + b] = even[k, 0], even[k, 1]


@register_jitable
def weigh(on, p, share, mean, x, part):
    """part = x E[u label], of the nodes of a group."""
    for k in range(len(p) // LANES):
        for b in range(LANES):
            j = k * LANES + b
            part[j] = x[j] * (share[b] * on[j] + mean[b] * p[j])


@kernel
def additive_rows(start, stop, scores, y_true, power, nodes, own, measure, value, slope):
    """The `Power` of a `NodeMeasure` (n,), and its slope by the scores (n, l).

    ``own`` = (shift, even): ``even`` (nodes, 2) holds p and r of the uniform law. Arrays named
    ``whole`` belong to the weights themselves, p, r, on and off to the weights times q.
    """
    (labels, above, ends), (shift, even), q = nodes, own, power.q
    size, most = len(labels) * LANES, GROUP * LANES
    a, p, r, on, off = (
        np.empty(size), np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    )  # fmt: skip
    whole, rest = np.empty(size), np.empty(size if power.limit else most)
    part, chance, around, soft = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    shares, heights, log_sum, mean, share, exponent, factor, inner = (
        np.empty(most), np.empty(most), np.empty(LANES), np.empty(LANES), np.empty(LANES),
        np.empty(LANES), np.empty(LANES), np.empty(LANES),
    )  # fmt: skip
    for row in range(start, stop, LANES):
        if q == 0.0:
            spread(even, p, r)
            log_sum[:] = power.log_size
        else:
            condition(scores, row, stop, nodes, q, shift, a, p, r, soft, part)
            log_sum[:] = a[:LANES]
        read_values(y_true, row, stop, labels, measure, on, off)
        collect(nodes, p, r, on, off, part)
        if q != 1.0:
            condition(scores, row, stop, nodes, 1.0, shift, a, whole, rest, soft, part)
        slope_factors(power, log_sum, a, exponent, factor)
        for b in range(LANES):
            at = min(row + b, stop - 1)
            share[b], mean[b] = measure.scale[at], measure.constant[at] + measure.scale[at] * on[b]
        fill_lanes(factor * share, shares)
        fill_lanes(factor * mean, heights)
        # The virtual root is certain, and its covariance 0.
        on[:LANES], inner[:] = 0.0, 0.0
        if power.limit:
            read_weights(scores, row, stop, labels, 1.0, shift, rest)
        for group in range(1, len(ends)):
            first, end = ends[group - 1], ends[group]
            here, until = first * LANES, end * LANES
            of_parents(p, first, end, above, chance)
            of_parents(on, first, end, above, around)
            step(p[here:until], r[here:until], on[here:until], off[here:until], chance, around)
            at_one = p[here:until]
            if q != 1.0:
                at_one = whole[here:until]
                of_parents(whole, first, end, above, chance)
                times(at_one, chance)
            join(shares, heights, on[here:until], p[here:until], at_one, part)
            take_large_factors(exponent, part[: until - here])
            write_rows(part, row, stop, labels, first, end, slope)
            if power.limit:
                weigh(on[here:until], p[here:until], share, mean, rest[here:until], part)
                add_up(part[: until - here], inner)
        write_values(power, row, stop, mean, a, inner, exponent, value)
