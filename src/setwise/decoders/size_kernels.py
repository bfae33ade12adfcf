"""Expected utility of predicting the first k labels of a row, for every k: compiled passes.

With the first k labels predicted, tp of them are true and ``missed`` others. A linear-fractional
utility is N / D with N = n0 + n1 tp + n2 missed and D = start + steps of the labels that count; its
mean is a sum over the nodes t of a rule for 1/D,

    E[N / D] = sum_t w_t t^(start - base) prod_head f prod_tail f (n0 + n1 G + n2 R),

f_j = 1 - a_j (1 - t^step_j), a_j the probability that label j counts; G and R are the means of tp
and of missed under the law tilted by t^D. The head are the labels before k, the tail the others: as
k grows, one label at a time moves from the tail to the head.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from setwise.decoders.arrangement import take_sorted
from setwise.decoders.decisions import TIE
from setwise.decoders.size_bounds import candidates, mean_of_steps
from setwise.kernels import view_kernel
from setwise.spaces.cube_kernels import choose_nodes

# Laguerre nodes are scaled by the mean of D: good for sizes whose means differ by this factor, at
# the least number of nodes and for each node more, and at most.
NARROWEST, WIDER, WIDEST = 1.12, 0.08, 1.4
FEWEST_NODES = 4
# The factor of a sure label must not vanish, even where t is too small to matter.
ALMOST_ONE = 1.0 - 2.0**-52
# Utilities by rules of error 1e-7 that differ by no more prove nothing.
DOUBT = 4e-6


class SizeTable(NamedTuple):
    """What the passes need of a utility, in units of the largest step of D.

    By predicted size: ``start`` of D, whether it can be ``zero`` (then the utility is ``empty``),
    its ``rule``. By rule: the ``last`` size it serves, the ``base`` where its D begins, and by bin
    of the mean the ``count`` of nodes, the powers of t and the weights. ``slope`` is the growth of
    start with the size; ``above`` = (n0 at size 0, its growth, n1, n2). Where N is a multiple of
    tp, no less than ``lift`` = the step of a predicted label is added to start wherever N is not 0:
    the rules are for that, and the power of t that belongs to it is left out of the tilted share.
    """

    flips: Any
    step: Any
    above: Any
    start: Any
    zero: Any
    empty: float
    lift: float
    rule: Any
    last: Any
    base: Any
    slope: float
    means: Any
    far_x: Any
    far_w: Any
    no_zero: Any
    count: Any
    power_head: Any
    power_tail: Any
    weight: Any


@register_jitable
def product_of_factors(chance, lack):
    """Product of 1 - chance_j lack."""
    product = 1.0
    for j in range(len(chance)):
        product *= 1.0 - chance[j] * lack
    return product


@register_jitable
def product_and_total(p, chance, lack):
    """Product of f_j = 1 - chance_j lack, and sum of p_j / f_j."""
    product, total = 1.0, 0.0
    for j in range(len(p)):
        f = 1.0 - chance[j] * lack
        product *= f
        total += p[j] / f
    return product, total


@register_jitable
def factors(p, chance, lack, factor, share):
    """Of each label: f_j = 1 - chance_j lack, and p_j / f_j."""
    for j in range(len(p)):
        f = 1.0 - chance[j] * lack
        factor[j] = f
        share[j] = p[j] / f


@register_jitable
def evaluate(
    p, head, tail, low, high, n_nodes, t_head, t_tail, flips, lifted, ratio, weight, above, work,
    utility,
):  # fmt: skip
    """utility[k] for k from low to high: ``head`` and ``tail`` are the chances that labels count.

    ``above`` = (n0 at k = 0, its growth with k, n1, n2). ``weight`` and ``ratio`` are the weights
    of the nodes at k = low and their factor from one k to the next.
    """
    # Views are made once: each costs as much as a short loop.
    before, moving, after = p[:low], p[low:high], p[high:]
    head_before, head_moving = head[:low], head[low:high]
    tail_moving, tail_after = tail[low:high], tail[high:]
    n, out = high - low, utility[low : high + 1]
    factor, share, products, totals = work[3], work[4], work[5], work[6]
    for k in range(n + 1):
        out[k] = 0.0
        totals[k] = 0.0
    for m in range(n_nodes):
        # The labels from low to high begin in the tail: products and totals with the last k of it.
        lack = min(1.0 - t_tail[m], ALMOST_ONE)
        gain = 1.0 if flips[1] else t_tail[m]
        if above[3] == 0.0:
            product = product_of_factors(tail_after, lack)
        else:
            product, total = product_and_total(after, tail_after, lack)
            factors(moving, tail_moving, lack, factor, share)
            totals[n] = above[3] * gain * total
            for k in range(n - 1, -1, -1):
                totals[k] = totals[k + 1] + above[3] * gain * share[k]
        products[n] = product
        for k in range(n - 1, -1, -1):
            product *= 1.0 - tail_moving[k] * lack
            products[k] = product
        # Then they move to the head, one by one.
        lack = min(1.0 - t_head[m], ALMOST_ONE)
        gain = 1.0 if flips[0] or lifted else t_head[m]
        product, total = product_and_total(before, head_before, lack)
        product *= weight[m]
        factors(moving, head_moving, lack, factor, share)
        constant, growth, hits, power = above[0] + above[1] * low, above[1], above[2], ratio[m]
        for k in range(n):
            out[k] += product * products[k] * (constant + hits * gain * total + totals[k])
            product *= factor[k] * power
            total += share[k]
            constant += growth
        out[n] += product * products[n] * (constant + hits * gain * total + totals[n])


@register_jitable
def stretch(k, high, step, start, lift, base, means, count, head_sums, tail_sums):
    """The last size up to ``high`` that shares nodes with size k, and the mean to choose them by.

    ``count`` are the numbers of nodes by bin of the mean; negative: scaled by the mean of D.
    """
    mean = max(start[k], start[high]) + lift - base + step[0] * head_sums[high]
    mean += step[1] * (tail_sums[-1] - tail_sums[k])
    level = 0
    while level < len(means) and mean > means[level]:
        level += 1
    if count[level] >= 0:
        return high, mean
    widest = min(WIDEST, NARROWEST + WIDER * (-count[level] - FEWEST_NODES))
    smallest = largest = start[k] + lift + mean_of_steps(k, step, head_sums, tail_sums)
    last = k
    while last < high:
        here = start[last + 1] + lift + mean_of_steps(last + 1, step, head_sums, tail_sums)
        if max(largest, here) > widest * min(smallest, here):
            break
        smallest, largest = min(smallest, here), max(largest, here)
        last += 1
    return last, np.sqrt(smallest * largest) - base


@register_jitable
def add_convention(k, end, sums, head, tail, rule_at_zero, table, work, utility):
    """Where D can be 0: take out what the rule made of that, and put the convention in.

    D = 0 if no label with a step counts. Then tp and missed are known (a flipped label counts when
    false, so it is true) or, for labels without a step, independent of it. ``rule_at_zero`` is the
    sum of the weights of the rule.
    """
    n_labels, step, flips, above = len(head), table.step, table.flips, table.above
    before, after = work[9], work[10]
    before[0] = after[n_labels] = 1.0
    for j in range(n_labels):
        before[j + 1] = before[j] * (1.0 - head[j] if step[0] > 0.0 else 1.0)
    for j in range(n_labels - 1, -1, -1):
        after[j] = after[j + 1] * (1.0 - tail[j] if step[1] > 0.0 else 1.0)
    for size in range(k, end + 1):
        hits = sums[size] if step[0] == 0.0 else (float(size) if flips[0] else 0.0)
        rest = sums[n_labels] - sums[size]
        missed = rest if step[1] == 0.0 else (float(n_labels - size) if flips[1] else 0.0)
        taken = above[0] + above[1] * size + above[2] * hits + above[3] * missed
        if table.lift > 0.0:
            # N is 0 there, and its tilted share was taken without the power that makes it so.
            taken = 0.0
        if table.zero[size]:
            utility[size] += (table.empty - rule_at_zero * taken) * before[size] * after[size]


@register_jitable
def constant_denominator(low, high, table, sums, utility):
    """utility[k] where D depends on k alone: the mean of N over it."""
    above = table.above
    for k in range(low, high + 1):
        mean = above[0] + above[1] * k + above[2] * sums[k] + above[3] * (sums[-1] - sums[k])
        utility[k] = table.empty if table.zero[k] else mean / table.start[k]


@register_jitable
def prefix_sums(values, sums, squares):
    """The sums of the first k values, and of their squares."""
    total, square = 0.0, 0.0
    sums[0] = squares[0] = 0.0
    for k in range(len(values)):
        total += values[k]
        square += values[k] * values[k]
        sums[k + 1] = total
        squares[k + 1] = square


@register_jitable
def is_short(exponent):
    """Whether a power is soon multiplied out."""
    return exponent == np.floor(exponent) and 0.0 <= exponent < 64.0


@register_jitable
def powers(t, log_t, n_nodes, exponent, out):
    """t^exponent."""
    if is_short(exponent):
        for m in range(n_nodes):
            out[m] = 1.0
        for _ in range(int(exponent)):
            for m in range(n_nodes):
                out[m] *= t[m]
    else:
        for m in range(n_nodes):
            out[m] = np.exp(exponent * log_t[m])


@register_jitable
def logarithms(rule, mean, t, n_nodes, table, log_t):
    """log t of the chosen nodes: from x where they are scaled, as t may be too close to 1."""
    level = 0
    while level < len(table.means) and mean > table.means[level]:
        level += 1
    scaled = table.count[rule, level] < 0
    for m in range(n_nodes):
        if scaled:
            log_t[m] = -table.far_x[n_nodes, m] / (table.base[rule] + mean)
        else:
            log_t[m] = np.log(t[m])


@register_jitable
def utilities(p, low, high, summed, table, work, nodes, utility):
    """utility[k] for k from low to high; ``summed`` says that work[0] holds the sums of p."""
    head, tail, head_sums, tail_sums = p, p, work[0], work[0]
    sums, flips, step, start, base = (
        work[0], table.flips, table.step, table.start, table.base
    )  # fmt: skip
    if not summed:
        prefix_sums(p, sums, work[1])
    if step[0] == 0.0 and step[1] == 0.0:
        constant_denominator(low, high, table, sums, utility)
        return
    if flips[0] or flips[1]:
        rest, rest_sums = work[1][: len(p)], work[2]
        for j in range(len(p)):
            rest[j] = 1.0 - p[j]
        prefix_sums(rest, rest_sums, work[3])
        if flips[0]:
            head, head_sums = rest, rest_sums
        if flips[1]:
            tail, tail_sums = rest, rest_sums
    t_head, t_tail, w, ratio, shift = nodes[0], nodes[1], nodes[2], nodes[3], nodes[4]
    log_t = nodes[5]
    k = low
    while k <= high:
        rule = table.rule[k]
        end, mean = stretch(
            k, min(high, table.last[rule]), step, start, table.lift, base[rule], table.means,
            table.count[rule], head_sums, tail_sums,
        )  # fmt: skip
        n_nodes = choose_nodes(
            rule, mean, table.means, step, table.far_x, table.far_w, base, table.no_zero,
            table.count, table.power_head, table.power_tail, table.weight, t_head, t_tail, w,
        )  # fmt: skip
        # One of the two steps is the unit, so one of the powers is t itself.
        t = t_head if step[0] == 1.0 else t_tail
        extra = start[k] + table.lift - base[rule]
        if not (is_short(table.slope) and is_short(extra)):
            logarithms(rule, mean, t, n_nodes, table, log_t)
        powers(t, log_t, n_nodes, table.slope, ratio)
        powers(t, log_t, n_nodes, extra, shift)
        for m in range(n_nodes):
            w[m] *= shift[m]
        evaluate(
            p, head, tail, k, end, n_nodes, t_head, t_tail, flips, table.lift > 0.0, ratio, w,
            table.above, work, utility,
        )  # fmt: skip
        if table.zero[k] or table.zero[end]:
            total = 0.0
            for m in range(n_nodes):
                total += w[m]
            add_convention(k, end, sums, head, tail, total, table, work, utility)
        k = end + 1


@register_jitable
def decide(p, low, high, prune, allowed, table, quick, work, nodes, utility):
    """The best size from low to high, its utility and that of the next best size.

    Sizes whose utilities differ by rounding are equal; the smallest of them is taken. With
    ``prune`` most sizes are ruled out, by a bound and by the rules of ``quick``, which have fewer
    nodes; those that remain are compared exactly. The next best is then not known.
    """
    first, final, nothing = low, high, -np.inf
    pruned = prune and low == 0
    if pruned:
        prefix_sums(p, work[0], work[1])
        nothing = table.empty * product_of_factors(p, 1.0) if table.zero[0] else 0.0
        first, final = candidates(
            p, table.start, table.step, table.above[2], nothing, work[0], work[1], work[2], 1, high
        )
        utilities(p, first, final, True, quick, work, nodes, utility)
        best = utility[first]
        for k in range(first + 1, final + 1):
            best = max(best, utility[k])
        while utility[first] < best - DOUBT:
            first += 1
        while utility[final] < best - DOUBT:
            final -= 1
        if first == final and abs(best - nothing) > DOUBT:
            return (first, best, -np.inf) if best > nothing else (0, nothing, -np.inf)
    utilities(p, first, final, pruned, table, work, nodes, utility)
    best, second, size = nothing, -np.inf, 0
    for k in range(first, final + 1):
        if allowed[k] and utility[k] > best:
            best = utility[k]
    if nothing < best - TIE:
        size = first
        while not (allowed[size] and utility[size] >= best - TIE):
            size += 1
        best = utility[size]
    for k in range(first, final + 1):
        if allowed[k] and k != size and utility[k] > second:
            second = utility[k]
    return size, best, second


@view_kernel
def sorted_rows(
    values, keys, descending, mask, low, high, prune, allowed, table, quick, labels, work, nodes,
    sets, best, second,
):  # fmt: skip
    """Decide every row of a block from its sorted keys; marks the labels in ``sets``."""
    p, utility = work[7][: values.shape[1]], work[8]
    for row in range(len(keys)):
        take_sorted(values[row], keys[row], descending, mask, labels, p)
        size, best[row], second[row] = decide(
            p, low, high, prune, allowed, table, quick, work, nodes, utility
        )
        for j in range(size):
            sets[row, labels[j]] = 1


@view_kernel
def arranged_rows(arranged, sizes, table, work, nodes, value):
    """The utility of predicting the first ``sizes[row]`` labels of each row as they stand."""
    utility = work[8]
    for row in range(len(arranged)):
        size = sizes[row]
        utilities(arranged[row], size, size, False, table, work, nodes, utility)
        value[row] = utility[size]


def working_space(n_labels: int, table: SizeTable) -> tuple[Any, Any]:
    """Arrays for a row: eleven of its length and one more, and six of the nodes."""
    n_nodes = max(table.weight.shape[2], table.far_x.shape[1]) + 1
    return np.zeros((11, n_labels + 1)), np.empty((6, n_nodes))
