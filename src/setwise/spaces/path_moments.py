"""Sums over labels on the paths of a taxonomy: value and gradient by passes down and up.

The value of a path is the sum of what its labels add when present and all others when absent; the
mean over the paths below a node gives the gradient.
"""

import numpy as np
from numba.extending import register_jitable

from setwise.kernels import kernel
from setwise.spaces.moment_kernels import LARGE, read_values, take_large_factors, times_exp
from setwise.spaces.node_kernels import add_up, fill_lanes, write_rows
from setwise.spaces.nodes import GROUP, LANES
from setwise.spaces.path_kernels import add_below, add_down, share_out, weigh
from setwise.targets.measure import ZERO_DIFFERENCE


@register_jitable
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


@register_jitable
def times_into(first, second, out):
    """out = first * second, entry by entry."""
    for j in range(len(out)):
        out[j] = first[j] * second[j]


@register_jitable
def join(factors, heights, weighted, chance, part):
    """part = factor E[u label] - height P(label)."""
    for j in range(len(weighted)):
        part[j] = factors[j] * weighted[j] - heights[j] * chance[j]


@kernel
def path_rows(
    start, stop, scores, y_true, q, limit, log_scale, log_size, labels, above, ends,
    is_end, weights, agreement, scale, constant, value, slope,
):  # fmt: skip
    """F(q) and its slope; with ``limit`` (q = 0) -F'(0) and its slope.

    The sum is constant + scale * sum of weights_i agreement[y_i, y'_i].
    """
    size, most = len(labels) * LANES, GROUP * LANES
    z, chance, on, off = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    part, factors, heights = np.empty(most), np.empty(most), np.empty(most)
    high, mass, log_sum, total, mean, inner, exponent, scales, constants, factor = (
        np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES),
        np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES),
    )  # fmt: skip
    for row in range(start, stop, LANES):
        total[:], mean[:], inner[:] = 0.0, 0.0, 0.0
        read_values(y_true, row, stop, labels, weights, agreement, on, off)
        add_up(off, total)
        add_down(on, above, ends, part)
        add_down(off, above, ends, part)
        for b in range(LANES):
            at = min(row + b, stop - 1)
            scales[b], constants[b] = scale[at], constant[at]
        values_of_paths(on, off, total, scales, constants)
        if q == 0.0:
            for k in range(len(is_end)):
                for b in range(LANES):
                    chance[k * LANES + b] = np.exp(-log_size) if is_end[k] else 0.0
            log_sum[:] = log_size
        else:
            weigh(scores, row, stop, labels, above, ends, q, z, part)
            share_out(z, is_end, ends, high, mass, chance, part)
            for b in range(LANES):
                log_sum[b] = high[b] + np.log(mass[b])
        times_into(on, chance, off)
        add_up(off, mean)
        if q != 1.0:
            weigh(scores, row, stop, labels, above, ends, 1.0, z, part)
            if limit:
                times_into(off, z, on)
                add_up(on, inner)
            share_out(z, is_end, ends, high, mass, chance, part)
        add_below(off, above, ends)
        add_below(chance, above, ends)
        for b in range(LANES):
            whole = high[b] + np.log(mass[b])
            exponent[b] = log_scale
            if q != 1.0 and not limit:
                exponent[b] += (log_sum[b] - log_size) - q * (whole - log_size)
            factor[b] = -2.0 if limit else 2.0
            if exponent[b] <= LARGE:
                factor[b] *= np.exp(exponent[b])
            total[b] = factor[b] * mean[b]
            if limit:
                mean[b] = mean[b] * (whole - log_size) - inner[b]
        fill_lanes(factor, factors)
        fill_lanes(total, heights)
        for group in range(1, len(ends)):
            first, end = ends[group - 1], ends[group]
            here, until = first * LANES, end * LANES
            join(factors, heights, off[here:until], chance[here:until], part)
            take_large_factors(exponent, part[: until - here])
            write_rows(part, row, stop, labels, first, end, slope)
        for b in range(min(LANES, stop - row)):
            value[row + b] = times_exp(mean[b], exponent[b])
