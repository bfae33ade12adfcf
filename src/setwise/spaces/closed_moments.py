"""Sums over labels on closed label sets: value and gradient by two passes over the forest.

With what a label adds when present (on) and when absent (off), and p, r of
`setwise.spaces.closed_kernels`, the mean of what the subtree of i adds is

    on_i + sum over children (p_c V_c + r_c W_c) =: V_i  if i is present,
    off_i + sum over children W_c               =: W_i  if it is absent,

and the covariance of the whole sum with label i

    C_i = p_i (P(parent) r_i (V_i - W_i) + C_parent).

Nothing in it is larger than the mean, so everything is accurate relative to the mean.
"""

import numpy as np
from numba.extending import register_jitable

from setwise.kernels import kernel
from setwise.spaces.closed_kernels import condition, read_weights, times
from setwise.spaces.moment_kernels import LARGE, read_values, take_large_factors, times_exp
from setwise.spaces.node_kernels import (
    add_to_parents,
    add_up,
    fill_lanes,
    of_parents,
    write_rows,
)
from setwise.spaces.nodes import GROUP, LANES


@register_jitable
def mix(p, r, on, off, part):
    """part = p on + r off."""
    for j in range(len(p)):
        part[j] = p[j] * on[j] + r[j] * off[j]


@register_jitable
def collect(above, ends, p, r, on, off, part):
    """Turn on and off into V and W, leaves to roots; on[0] is then the mean of the sum."""
    for group in range(len(ends) - 1, 0, -1):
        first, stop = ends[group - 1], ends[group]
        here, until = first * LANES, stop * LANES
        mix(p[here:until], r[here:until], on[here:until], off[here:until], part)
        add_to_parents(part, first, stop, above, on)
        add_to_parents(off[here:until], first, stop, above, off)


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
def closed_rows(
    start, stop, scores, y_true, q, limit, log_scale, log_size, labels, above, ends, shift, even,
    weights, agreement, scale, constant, value, slope,
):  # fmt: skip
    """F(q) and its slope; with ``limit`` (q = 0) -F'(0) and its slope.

    The sum is constant + scale * sum of weights_i agreement[y_i, y'_i]. ``even`` holds p and r of
    the uniform law.
    """
    size, most = len(labels) * LANES, GROUP * LANES
    a, p, r, on, off = (
        np.empty(size), np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    )  # fmt: skip
    whole, rest = np.empty(size), np.empty(size if limit else most)
    part, chance, around, soft = (
        np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    )  # fmt: skip
    shares, heights = np.empty(most), np.empty(most)
    log_sum, mean, share, exponent, inner = (
        np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    )  # fmt: skip
    for row in range(start, stop, LANES):
        if q == 0.0:
            spread(even, p, r)
            log_sum[:] = log_size
        else:
            condition(scores, row, stop, labels, above, ends, q, shift, a, p, r, soft, part)
            log_sum[:] = a[:LANES]
        read_values(y_true, row, stop, labels, weights, agreement, on, off)
        collect(above, ends, p, r, on, off, part)
        if q != 1.0:
            condition(
                scores, row, stop, labels, above, ends, 1.0, shift, a, whole, rest, soft, part
            )
        for b in range(LANES):
            at = min(row + b, stop - 1)
            mean[b] = constant[at] + scale[at] * on[b]
            share[b] = scale[at]
            exponent[b] = log_scale
            if q != 1.0 and not limit:
                exponent[b] += (log_sum[b] - log_size) - q * (a[b] - log_size)
            inner[b] = 0.0
            factor = -2.0 if limit else 2.0
            if exponent[b] <= LARGE:
                factor *= np.exp(exponent[b])
            shares[b], heights[b] = factor * share[b], factor * mean[b]
        fill_lanes(shares[:LANES].copy(), shares)
        fill_lanes(heights[:LANES].copy(), heights)
        # The virtual root is certain, and its covariance 0.
        on[:LANES] = 0.0
        if limit:
            read_weights(scores, row, stop, labels, 1.0, shift, rest)
        for group in range(1, len(ends)):
            first, end = ends[group - 1], ends[group]
            here, until = first * LANES, end * LANES
            of_parents(p, first, end, above, chance)
            of_parents(on, first, end, above, around)
            step(p[here:until], r[here:until], on[here:until], off[here:until], chance, around)
            if q != 1.0:
                of_parents(whole, first, end, above, chance)
                times(whole[here:until], chance)
                join(shares, heights, on[here:until], p[here:until], whole[here:until], part)
            else:
                join(shares, heights, on[here:until], p[here:until], p[here:until], part)
            take_large_factors(exponent, part[: until - here])
            write_rows(part, row, stop, labels, first, end, slope)
            if limit:
                weigh(on[here:until], p[here:until], share, mean, rest[here:until], part)
                add_up(part[: until - here], inner)
        for b in range(min(LANES, stop - row)):
            if limit:
                mean[b] = mean[b] * (a[b] - log_size) - inner[b]
            value[row + b] = times_exp(mean[b], exponent[b])
