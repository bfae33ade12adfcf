"""Bounds on the expected utility of predicting k labels, by which most sizes are ruled out.

For utilities that are a multiple of tp over a denominator that grows: F-beta, Jaccard, their like.
"""

import numpy as np
from numba.extending import register_jitable

# Bounds that differ by no more prove nothing: they are rounded.
SLACK = 1e-9


@register_jitable
def candidates(p, start, step, n1, nothing, sums, squares, bounds, low, high):
    """The sizes from low to high whose expected utility can be the largest: an interval.

    For N = n1 tp and steps of at most 1, given that label i is true, let D' be the denominator,
    Y - step_head p_i its mean and V a bound of its variance. Then

        1 / E[D'] <= E[1 / D'] <= min(1 / (E[D'] - 1), (1 + V / (E[D'] min D')) / E[D']),

    the first by Jensen's inequality, the second because no sum of independent steps is wider in the
    convex order than the Poisson law, for which it follows by integration by parts, the third from
    1/x = 1/y - (x - y)/y² + (x - y)²/(x y²). The loose bound n1 sums / (Y - 1 - step_head p_0) is a
    concave over a convex function of k, so it falls to both sides of its peak.
    """
    everything = sums[-1]
    most = 1.0 + step[0] * p[0] - step[0]
    fewer = step[0] - step[1]
    fixed = step[1] * everything - most
    for k in range(len(bounds)):
        room = start[k] + fewer * sums[k] + fixed
        bounds[k] = n1 * sums[k] / room if room > 0.0 else np.inf
    # The peak by halving: the bounds rise up to it and fall from there on.
    peak, above = low, high
    while peak < above:
        middle = (peak + above) // 2
        if bounds[middle + 1] > bounds[middle]:
            peak = middle + 1
        else:
            above = middle
    mean = conditional_mean(peak, start, step, sums)
    best = max(nothing, n1 * (sums[peak] + step[0] * squares[peak] / mean) / mean) - SLACK
    first, last = peak, peak
    while first > low and bounds[first - 1] >= best:
        first -= 1
    while last < high and bounds[last + 1] >= best:
        last += 1
    while first < last and n1 * tight_bound(first, p[0], start, step, sums, squares) < best:
        first += 1
    while first < last and n1 * tight_bound(last, p[0], start, step, sums, squares) < best:
        last -= 1
    return first, last


@register_jitable
def conditional_mean(k, start, step, sums):
    """Y of `candidates`."""
    return start[k] + step[0] + mean_of_steps(k, step, sums, sums)


@register_jitable
def tight_bound(k, highest, start, step, sums, squares):
    """The smaller of the two upper bounds of E[tp / D] in `candidates`."""
    mean, hits = conditional_mean(k, start, step, sums), sums[k]
    widest = step[0] * highest
    spread = step[0] ** 2 * (hits - squares[k])
    spread += step[1] ** 2 * (sums[-1] - hits - squares[-1] + squares[k])
    least, less = mean - widest, mean - 1.0 - widest
    by_variance = (hits + step[0] * squares[k] / least) / mean
    by_variance *= 1.0 + spread / (least * (start[k] + step[0]))
    if less <= 0.0:
        return by_variance
    return min(by_variance, (hits + step[0] * squares[k] / less) / (mean - 1.0))


@register_jitable
def mean_of_steps(k, step, head_sums, tail_sums):
    """The mean of D - start for the first k labels predicted."""
    return step[0] * head_sums[k] + step[1] * (tail_sums[-1] - tail_sums[k])
