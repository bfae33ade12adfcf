"""Closed label sets, where a label brings its parent along: one exponential a node.

With all labels absent as the reference and x_i what label i adds to the weight of a set,

    a_i = x_i + sum over children u_c,    u_i = log(1 + e^a_i):

u_i is the log-sum over the subtree of i given that i's parent is in the set, and p_i = sigmoid(a_i)
the probability of i given its parent, so P(i) is the product of p along the path to i. p and
r = 1 - p both come from e^-|a|, and either is accurate relative to itself.
"""

import numpy as np
from numba.extending import register_jitable

from setwise.kernels import exp, kernel, log1p_unit
from setwise.spaces.node_kernels import add_to_parents, add_up, of_parents, read_rows, write_rows
from setwise.spaces.nodes import GROUP, LANES


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
def condition(scores, row, rows, labels, above, ends, factor, shift, a, p, r, soft, part):
    """Fill a, p, r and soft of every node, leaves to roots; a[0] is the log-sum of the forest.

    The virtual root is in every set: p = 1. Weights are ``factor`` times (2 score + shift). Where r
    or soft are not wanted they have room for a group only.
    """
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


@register_jitable
def multiply_down(p, above, ends, part):
    """Turn P(node | parent) into P(node), roots to leaves, in place."""
    for group in range(1, len(ends)):
        first, stop = ends[group - 1], ends[group]
        of_parents(p, first, stop, above, part)
        times(p[first * LANES : stop * LANES], part)


@kernel
def log_sum_rows(start, stop, scores, labels, above, ends, shift, out):
    """log sum over closed sets of e^(sum of 2 score + shift over the set's labels), (n,)."""
    size, most = len(labels) * LANES, GROUP * LANES
    a, p = np.empty(size), np.empty(size)
    r, soft, part = np.empty(most), np.empty(most), np.empty(most)
    for row in range(start, stop, LANES):
        condition(scores, row, stop, labels, above, ends, 1.0, shift, a, p, r, soft, part)
        for b in range(min(LANES, stop - row)):
            out[row + b] = a[b]


@kernel
def given_parents(scores, labels, above, ends, shift, out):
    """p and r of each node for one row of scores, (1, l), into (nodes, 2)."""
    size, most = len(labels) * LANES, GROUP * LANES
    a, p, r, soft, part = (
        np.empty(size), np.empty(size), np.empty(size), np.empty(most), np.empty(most)
    )  # fmt: skip
    condition(scores, 0, 1, labels, above, ends, 1.0, shift, a, p, r, soft, part)
    for k in range(len(labels)):
        out[k, 0], out[k, 1] = p[k * LANES], r[k * LANES]


@kernel
def marginal_rows(start, stop, scores, labels, above, ends, shift, log_sum, out):
    """P(label) of each row, (n, l), and the log-sum, (n,)."""
    size, most = len(labels) * LANES, GROUP * LANES
    a, p = np.empty(size), np.empty(size)
    r, soft, part = np.empty(most), np.empty(most), np.empty(most)
    for row in range(start, stop, LANES):
        condition(scores, row, stop, labels, above, ends, 1.0, shift, a, p, r, soft, part)
        multiply_down(p, above, ends, part)
        for group in range(1, len(ends)):
            first, end = ends[group - 1], ends[group]
            write_rows(p[first * LANES : end * LANES], row, stop, labels, first, end, out)
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
def step_away(truth, p, r, above_on, above_off, on, off, part):
    """P(label), P(not label) from the parent's; y - E[y'] is twice the other state's."""
    for j in range(len(truth)):
        on[j] = above_on[j] * p[j]
        off[j] = above_off[j] + above_on[j] * r[j]
        part[j] = 2.0 * off[j] if truth[j] == 1.0 else -2.0 * on[j]


@kernel
def likelihood_rows(start, stop, scores, y_true, labels, above, ends, shift, log_probability, away):
    """log s(y), -inf where y is not closed, (n,), and y - E[y'] with y' in +-1, (n, l)."""
    size = len(labels) * LANES
    a, p, r, soft = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    truth, off = np.empty(size), np.empty(size)
    part, above_on, above_off = (
        np.empty(GROUP * LANES),
        np.empty(GROUP * LANES),
        np.empty(GROUP * LANES),
    )
    total = np.empty(LANES)
    for row in range(start, stop, LANES):
        condition(scores, row, stop, labels, above, ends, 1.0, shift, a, p, r, soft, part)
        read_rows(y_true, row, stop, labels, 1.0, 1.0, truth)
        off[:LANES], total[:] = 0.0, 0.0
        for group in range(1, len(ends)):
            first, end = ends[group - 1], ends[group]
            here, until = first * LANES, end * LANES
            inside = part[: until - here]
            of_parents(truth, first, end, above, above_on)
            surprise(truth[here:until], above_on, a[here:until], soft[here:until], part)
            add_up(inside, total)
            of_parents(p, first, end, above, above_on)
            of_parents(off, first, end, above, above_off)
            step_away(
                truth[here:until], p[here:until], r[here:until], above_on, above_off,
                p[here:until], off[here:until], part,
            )  # fmt: skip
            write_rows(part, row, stop, labels, first, end, away)
        for b in range(min(LANES, stop - row)):
            log_probability[row + b] = -total[b]
