"""Expected utility of predicting the first k labels of a row, for every k: compiled passes.

With the first k labels predicted, tp of them are true and ``missed`` others. A linear-fractional
utility is N / D with N = n0 + n1 tp + n2 missed and D = start + steps of the labels that count; its
mean is a sum over the nodes t of a rule for 1/D,

    E[N / D] = sum_t w_t t^(start - base) prod_head f prod_tail f (n0 + n1 G + n2 R),

f_j = 1 - a_j (1 - t^step_j), a_j the probability that label j counts; G and R are the means of tp
and of missed under the distribution tilted by t^D. The head are the labels before k, the tail the
others: as k grows, one label at a time moves from the tail to the head.

Behind the labels of a row may stand others that are never predicted, of which only a sum is known:
``mass``, the expected number of true ones. They are a Poisson number of labels where ``chance`` is
0, else mass / chance labels of that probability each. (Only for utilities whose N is a multiple of
tp, and whose D does not count false labels.)
"""

from typing import Any, NamedTuple

import numpy as np

from setwise.decoders.decisions import TIE
from setwise.kernels import exp, view_inner, view_kernel

# Laguerre nodes are scaled by the mean of D. They serve sizes whose means differ by at most this
# factor: with the fewest nodes, more for each further node, and never beyond the widest.
NARROWEST, WIDER, WIDEST = 1.12, 0.08, 1.4
FEWEST_NODES = 4
# The factor of a sure label must not vanish, even where t is too small to matter.
ALMOST_ONE = 1.0 - 2.0**-52
# Utilities by rules of error 1e-7 are told apart only where they differ by more.
DOUBT = 4e-6
# Bounds that differ by no more prove nothing: they are rounded.
SLACK = 1e-9
# The precisions of rules: an error of 1e-10, or of 1e-7 with fewer nodes.
EXACT, QUICK = range(2)


class SizeTable(NamedTuple):
    """What the passes need of a utility over l labels, in units of the largest step of D.

    N = constant + growth k + hits tp + missed · (missed labels). Labels before k are the head,
    the others the tail. ``lift``: where N is a multiple of tp, D is no less than start + the step
    of a predicted label wherever N is not 0. The rules are for that, and the power of t that
    belongs to it is left out of the tilted share.
    """

    head_flips: bool  # whether predicted labels count when they are false
    tail_flips: bool  # and other labels
    head_step: float  # what a predicted label that counts adds to D
    tail_step: float  # and another; the larger of both steps is 1
    constant: float
    growth: float
    hits: float
    missed: float
    empty: float  # the utility where D is 0
    lift: float
    slope: float  # the growth of start with k
    start: Any  # (l + 1,): where D begins, by k; at 0 where it can be 0
    means: Any  # (bins,): the bins of the mean of D - base
    rule: Any  # (precisions, l + 1): the rule of each k
    last: Any  # (rules,): the last k it serves
    base: Any  # (rules,): where its D begins
    row: Any  # (rules, bins + 1): its row of nodes; up to `n_far`, of Laguerre nodes
    n_far: int  # the most Laguerre nodes; row m has m of them, to be scaled by the mean
    count: Any  # (rows,): numbers of nodes
    x: Any  # (rows, nodes): nodes, t = e^-x
    weight: Any  # (rows, nodes)


# Rows of the working space ``work`` (9, l + 2) of a row of labels: probabilities by falling value;
# sums of the first k that count in the head, last that with the labels outside the row; the same of
# the tail; bounds of the utility of each size; f and p / f of the labels that move; products of the
# factors of the tail, and missed · R, from the last label on; utilities. (Rows of one array, not a
# named tuple: that would be copied at every call.)
SORTED, SUMS, TAIL_SUMS, BOUNDS, FACTOR, SHARE, PRODUCTS, TOTALS, UTILITY = range(9)
# Rows of ``nodes`` (5, nodes): t to the step of a predicted label, of another; weights; t^slope;
# what is added to N times the weight, where D is 0.
T_HEAD, T_TAIL, WEIGHT, RATIO, EMPTY = range(5)


def scratch(n_labels: int, table: SizeTable) -> tuple[Any, Any]:
    """Working space for rows of so many labels: ``work`` and ``nodes``."""
    return np.zeros((9, n_labels + 2)), np.empty((5, table.x.shape[1] + 1))


@view_inner
def outside_factor(mass, chance, lack):
    """The product of 1 - p lack over the labels outside the row."""
    if mass == 0.0:
        return 1.0
    if chance == 0.0:
        return exp(-mass * lack)
    return exp(mass / chance * np.log1p(-chance * lack))


@view_inner
def product_of_factors(chance, lack):
    """Product of 1 - chance_j lack."""
    product = 1.0
    for j in range(len(chance)):
        product *= 1.0 - chance[j] * lack
    return product


@view_inner
def product_and_total(p, chance, lack):
    """Product of f_j = 1 - chance_j lack, and sum of p_j / f_j."""
    product, total = 1.0, 0.0
    for j in range(len(p)):
        f = 1.0 - chance[j] * lack
        product *= f
        total += p[j] / f
    return product, total


@view_inner
def factors(p, chance, lack, factor, share):
    """Of each label: f_j = 1 - chance_j lack, and p_j / f_j."""
    for j in range(len(p)):
        f = 1.0 - chance[j] * lack
        factor[j] = f
        share[j] = p[j] / f


@view_inner
def evaluate(p, head, tail, low, high, n_nodes, mass, chance, table, work, nodes, utility):
    """utility[k] for k from low to high by one set of nodes, their weights those at k = low.

    ``head`` and ``tail`` (l,) are the probabilities that predicted, and other, labels count.
    """
    # Views are made once: each costs as much as a short loop.
    before, moving, after = p[:low], p[low:high], p[high:]
    head_before, head_moving = head[:low], head[low:high]
    tail_moving, tail_after = tail[low:high], tail[high:]
    n, out = high - low, utility[low : high + 1]
    factor, share, products, totals = work[FACTOR], work[SHARE], work[PRODUCTS], work[TOTALS]
    for k in range(n + 1):
        out[k] = totals[k] = 0.0
    for m in range(n_nodes):
        # The labels from low to high begin in the tail: products and totals with the last k of it.
        t_head, t_tail = nodes[T_HEAD, m], nodes[T_TAIL, m]
        lack = min(1.0 - t_tail, ALMOST_ONE)
        if table.missed == 0.0:
            product = product_of_factors(tail_after, lack) * outside_factor(mass, chance, lack)
        else:
            gain = table.missed * (1.0 if table.tail_flips else t_tail)
            product, total = product_and_total(after, tail_after, lack)
            factors(moving, tail_moving, lack, factor, share)
            totals[n] = gain * total
            for k in range(n - 1, -1, -1):
                totals[k] = totals[k + 1] + gain * share[k]
        products[n] = product
        for k in range(n - 1, -1, -1):
            product *= 1.0 - tail_moving[k] * lack
            products[k] = product
        # Then they move to the head, one by one.
        lack = min(1.0 - t_head, ALMOST_ONE)
        gain = table.hits * (1.0 if table.head_flips or table.lift > 0.0 else t_head)
        product, total = product_and_total(before, head_before, lack)
        weight, empty = nodes[WEIGHT, m], nodes[EMPTY, m]
        factors(moving, head_moving, lack, factor, share)
        constant, power = table.constant + table.growth * low, nodes[RATIO, m]
        for k in range(n):
            mean = constant + gain * total + totals[k]
            out[k] += product * products[k] * (weight * mean + empty)
            product *= factor[k] * power
            total += share[k]
            constant += table.growth
        mean = constant + gain * total + totals[n]
        out[n] += product * products[n] * (weight * mean + empty)


@view_inner
def mean_of_steps(k, table, head_sums, tail_sums):
    """The mean of D - start for the first k labels predicted."""
    return table.head_step * head_sums[k] + table.tail_step * (tail_sums[-1] - tail_sums[k])


@view_inner
def nodes_at(rule, mean, table):
    """The row of nodes that a rule has at a mean of D - base."""
    level = 0
    while level < len(table.means) and mean > table.means[level]:
        level += 1
    return table.row[rule, level]


@view_inner
def stretch(k, rule, high, table, head_sums, tail_sums):
    """The last size up to ``high`` that shares nodes with k, and the mean that chooses them."""
    start, base = table.start, table.base[rule]
    high, beyond = min(high, table.last[rule]), tail_sums[-1] - tail_sums[k]
    mean = max(start[k], start[high]) + table.lift - base
    mean += table.head_step * head_sums[high] + table.tail_step * beyond
    row = nodes_at(rule, mean, table)
    if row > table.n_far:
        return high, mean
    widest = min(WIDEST, NARROWEST + WIDER * (table.count[row] - FEWEST_NODES))
    smallest = largest = start[k] + table.lift + mean_of_steps(k, table, head_sums, tail_sums)
    last = k
    while last < high:
        here = start[last + 1] + table.lift
        here += mean_of_steps(last + 1, table, head_sums, tail_sums)
        if max(largest, here) > widest * min(smallest, here):
            break
        smallest, largest = min(smallest, here), max(largest, here)
        last += 1
    return last, np.sqrt(smallest * largest) - base


@view_inner
def place_nodes(k, rule, mean, table, nodes):
    """Fill in the nodes for sizes from k on, their weights those at k; returns their number."""
    row, base = nodes_at(rule, mean, table), table.base[rule]
    is_far, n_nodes = row <= table.n_far, table.count[row]
    scale = 1.0 / (base + mean) if is_far else 1.0
    power, total = table.start[k] + table.lift - (0.0 if is_far else base), 0.0
    for m in range(n_nodes):
        x = scale * table.x[row, m]
        nodes[T_HEAD, m], nodes[T_TAIL, m] = exp(-table.head_step * x), exp(-table.tail_step * x)
        nodes[WEIGHT, m] = scale * table.weight[row, m] * exp(-power * x)
        nodes[RATIO, m] = exp(-table.slope * x)
        total += nodes[WEIGHT, m]
        nodes[EMPTY, m] = 0.0
    if table.start[k] > 0.0:
        return n_nodes
    # One more, at t = 0, takes out what the others make of D = 0, and puts the convention in. (With
    # a lift they make nothing of it.)
    nodes[T_HEAD, n_nodes] = 0.0 if table.head_step > 0.0 else 1.0
    nodes[T_TAIL, n_nodes] = 0.0 if table.tail_step > 0.0 else 1.0
    nodes[WEIGHT, n_nodes] = -total if table.lift == 0.0 else 0.0
    nodes[RATIO, n_nodes], nodes[EMPTY, n_nodes] = 1.0, table.empty
    return n_nodes + 1


@view_inner
def prefix_sums(values, mass, sums):
    """The sums of the first k values; last, that with the labels outside."""
    sums[0] = total = 0.0
    for k in range(len(values)):
        total += values[k]
        sums[k + 1] = total
    sums[-1] = total + mass


@view_inner
def utilities(
    p, head, tail, low, high, mass, chance, precision, table, tail_sums, work, nodes, utility
):  # fmt: skip
    """utility[k] for k from low to high; ``work`` has the sums of the head."""
    head_sums, k = work[SUMS], low
    while k <= high:
        rule = table.rule[precision, k]
        end, mean = stretch(k, rule, high, table, head_sums, tail_sums)
        n_nodes = place_nodes(k, rule, mean, table, nodes)
        evaluate(p, head, tail, k, end, n_nodes, mass, chance, table, work, nodes, utility)
        k = end + 1


@view_kernel
def size_rows(arranged, head, tail, low, high, outside, table, work, nodes, utility):
    """utility[row, k] for k from low[row] to high[row], the labels of each row as they stand.

    ``arranged`` (n, l) are the probabilities, ``head`` and ``tail`` (n, l) those that predicted,
    and other, labels count; ``low`` and ``high`` (n,), ``outside`` (n, 2) with mass and chance of
    the labels outside, ``utility`` (n, l + 1).
    """
    for row in range(len(arranged)):
        mass, chance, tail_sums = outside[row, 0], outside[row, 1], work[TAIL_SUMS]
        prefix_sums(tail[row], mass, tail_sums)
        prefix_sums(head[row], mass, work[SUMS])
        utilities(
            arranged[row], head[row], tail[row], low[row], high[row], mass, chance, EXACT, table,
            tail_sums, work, nodes, utility[row],
        )  # fmt: skip


# --------------------------------------------------------- the best size, most others ruled out


@view_inner
def candidates(p, table, nothing, sums, bounds):
    """The sizes from 1 on whose expected utility can be the largest: an interval.

    For N = n1 tp, a head's step of at most 1 and a tail's of 1: given that label i is true, let D'
    be the denominator, and Y - step_head p_i its mean. Then

        1 / E[D'] <= E[1 / D'] <= 1 / (E[D'] - 1),

    the first by Jensen's inequality, the second because no sum of independent steps is wider in the
    convex order than a Poisson variable, for which it follows by integration by parts. The bound
    n1 sums / (Y - 1 - step_head p_0) is a concave over a convex function of k, so it falls to both
    sides of its peak.
    """
    start, step, hits, high = table.start, table.head_step, table.hits, len(p)
    fixed = sums[-1] - (1.0 + step * p[0] - step)
    for k in range(high + 1):
        room = start[k] + (step - 1.0) * sums[k] + fixed
        bounds[k] = hits * sums[k] / room if room > 0.0 else np.inf
    # The peak by halving: the bounds rise up to it and fall from there on.
    peak, above = 1, high
    while peak < above:
        middle = (peak + above) // 2
        if bounds[middle + 1] > bounds[middle]:
            peak = middle + 1
        else:
            above = middle
    mean, reached = start[peak] + step + mean_of_steps(peak, table, sums, sums), 0.0
    for j in range(peak):
        reached += p[j] / (mean - step * p[j])
    best = max(nothing, hits * reached) - SLACK
    first, last = peak, peak
    while first > 1 and bounds[first - 1] >= best:
        first -= 1
    while last < high and bounds[last + 1] >= best:
        last += 1
    return first, last


@view_inner
def best_size(p, mass, chance, table, work, nodes):
    """The best size; the smallest of those whose utilities differ by rounding.

    Most sizes are ruled out by bounds, then by the quick rules; those that remain are compared
    exactly.
    """
    utility, sums = work[UTILITY], work[SUMS]
    prefix_sums(p, mass, sums)
    nothing = table.empty * product_of_factors(p, 1.0) if table.start[0] == 0.0 else 0.0
    nothing *= outside_factor(mass, chance, 1.0)
    first, final = candidates(p, table, nothing, sums, work[BOUNDS])
    best, doubt = 0.0, DOUBT
    for precision in range(QUICK, EXACT - 1, -1):
        utilities(p, p, p, first, final, mass, chance, precision, table, sums, work, nodes, utility)
        best = utility[first]
        for k in range(first + 1, final + 1):
            best = max(best, utility[k])
        while utility[first] < best - doubt:
            first += 1
        while utility[final] < best - doubt:
            final -= 1
        if first == final and abs(best - nothing) > doubt:
            break
        doubt = TIE
    return first if best > nothing + TIE else 0


@view_kernel
def best_rows(values, ordered, outside, table, work, nodes, sets):
    """Mark the labels of the best size of each row in ``sets`` (n, l).

    ``ordered`` (n, l) are the values by rising size, ``outside`` (n, 2) as in `size_rows`.
    Of labels that tie for the last places the first are taken.
    """
    n_labels = values.shape[1]
    p = work[SORTED][:n_labels]
    for row in range(len(values)):
        for j in range(n_labels):
            p[j] = ordered[row, n_labels - 1 - j]
        size = best_size(p, outside[row, 0], outside[row, 1], table, work, nodes)
        if size == 0:
            continue
        least, room = ordered[row, n_labels - size], size
        for j in range(size):
            room -= p[j] > least
        for j in range(n_labels):
            tied = values[row, j] == least and room > 0
            room -= tied
            sets[row, j] = values[row, j] > least or tied
