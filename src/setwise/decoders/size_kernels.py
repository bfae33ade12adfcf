"""Expected utility of predicting the first k labels of a row, for every k: compiled passes.

With the first k labels predicted, tp of them are true and ``missed`` others. A linear-fractional
utility is N / D with N = n0 + n1 tp + n2 missed and D = start + steps of the labels that count; its
mean is a sum over the nodes t of a rule for 1/D,

    E[N / D] = sum_t w_t t^(start - base) prod_head f prod_tail f (n0 + n1 G + n2 R),

f_j = 1 - a_j (1 - t^step_j), a_j the probability that label j counts; G and R are the means of tp
and of missed under the distribution tilted by t^D. The head are the labels before k, the tail the
others: as k grows, one label at a time moves from the tail to the head.

Rows are sorted as whole numbers: the bits of a probability (whose order is that of the numbers)
above, the label's index below, so that equal probabilities keep the order of the labels. That is
several times as fast as sorting indices. Where the index takes bits of the number, a last pass by
insertion puts the few numbers right that differ in those bits only.
"""

# pyright: reportCallIssue=false
# (An intrinsic is called without the context its definition names first.)

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from setwise.decoders.decisions import TIE
from setwise.kernels import bits, kernel, view_kernel
from setwise.spaces.cube_kernels import choose_nodes

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
# The bits of probabilities are below 2^62, so that keys have two bits to spare.
_ONE = np.int64(np.float64(1.0).view(np.int64))


class SizeTable(NamedTuple):
    """What the passes need of a utility over l labels, in units of the largest step of D.

    ``lift``: where N is a multiple of tp, D is no less than start + the step of a predicted label
    wherever N is not 0. The rules are for that, and the power of t that belongs to it is left out
    of the tilted share.
    """

    flips: Any  # (2,): whether predicted, and other, labels count when they are false
    step: Any  # (2,): of a predicted label that counts, and of another
    above: Any  # (4,): n0 at k = 0, its growth with k, n1, n2
    start: Any  # (l + 1,): where D begins, by the number of predicted labels
    zero: Any  # (l + 1,): whether D can be 0, and the utility then is ``empty``
    empty: float
    lift: float
    rule: Any  # (l + 1,): the rule of each size
    last: Any  # (rules,): the last size it serves
    base: Any  # (rules,): where its D begins
    slope: float  # the growth of start with the size
    means: Any  # (bins,): the bins of the mean of D - base
    far_x: Any  # (nodes + 1, nodes): nodes of the Laguerre rules
    far_w: Any  # (nodes + 1, nodes): their weights
    no_zero: Any  # (rules,): zeros
    count: Any  # (rules, bins + 1): numbers of nodes; negative: Laguerre, scaled by the mean
    power_head: Any  # (rules, bins + 1, nodes): t to the step of a predicted label
    power_tail: Any  # (rules, bins + 1, nodes): t to the step of another
    weight: Any  # (rules, bins + 1, nodes)


# Rows of the working space ``work`` (13, l + 1) of a row of labels: probabilities by falling value;
# sums of the first k, and of their squares; bounds of the utility of each size; 1 - p and its sums;
# f and p / f of the labels that move; products of the factors of the tail, and n2 R, from the last
# label on; the probabilities that no predicted, and no other, label counts; utilities. (Rows of one
# array, not a named tuple: that would be copied at every call.)
SORTED, SUMS, SQUARES, BOUNDS, REST, REST_SUMS, FACTOR, SHARE, PRODUCTS, TOTALS = range(10)
BEFORE, AFTER, UTILITY = 10, 11, 12
# Rows of ``nodes`` (6, nodes): t to the step of a predicted label, and of another; weights;
# t^slope; t^(start - base); log t.
T_HEAD, T_TAIL, WEIGHT, RATIO, SHIFT, LOG_T = range(6)


def scratch(n_labels: int, table: SizeTable) -> tuple[Any, Any]:
    """Working space for rows of so many labels: ``work`` and ``nodes``."""
    n_nodes = max(table.weight.shape[2], table.far_x.shape[1]) + 1
    return np.zeros((13, n_labels + 1)), np.empty((6, n_nodes))


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
def evaluate(p, head, tail, low, high, n_nodes, flips, lifted, above, work, nodes, utility):
    """utility[k] for k from low to high by one set of nodes, their weights those at k = low.

    ``head`` and ``tail`` (l,) are the probabilities that predicted, and other, labels count.
    """
    # Views are made once: each costs as much as a short loop.
    before, moving, after = p[:low], p[low:high], p[high:]
    head_before, head_moving = head[:low], head[low:high]
    tail_moving, tail_after = tail[low:high], tail[high:]
    n, out = high - low, utility[low : high + 1]
    factor, share, products, totals = work[FACTOR], work[SHARE], work[PRODUCTS], work[TOTALS]
    t_head, t_tail, weight, ratio = nodes[T_HEAD], nodes[T_TAIL], nodes[WEIGHT], nodes[RATIO]
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
def mean_of_steps(k, step, head_sums, tail_sums):
    """The mean of D - start for the first k labels predicted."""
    return step[0] * head_sums[k] + step[1] * (tail_sums[-1] - tail_sums[k])


@register_jitable
def bin_of(mean, means):
    """The bin of a mean."""
    level = 0
    while level < len(means) and mean > means[level]:
        level += 1
    return level


@register_jitable
def stretch(k, high, step, start, lift, base, means, count, head_sums, tail_sums):
    """The last size up to ``high`` that shares nodes with k, and the mean that chooses them.

    ``base`` and ``count`` (bins + 1,) are those of the rule of k.
    """
    mean = max(start[k], start[high]) + lift - base + step[0] * head_sums[high]
    mean += step[1] * (tail_sums[-1] - tail_sums[k])
    n_nodes = count[bin_of(mean, means)]
    if n_nodes >= 0:
        return high, mean
    widest = min(WIDEST, NARROWEST + WIDER * (-n_nodes - FEWEST_NODES))
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
def is_short(exponent):
    """Whether a power is soon multiplied out."""
    return exponent == np.floor(exponent) and 0.0 <= exponent < 64.0


@register_jitable
def powers(t, log_t, n_nodes, exponent, out):
    """t^exponent of each node."""
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
def add_convention(k, end, head, tail, rule_at_zero, table, work, utility):
    """Where D can be 0: take out what the rule made of that, and put the convention in.

    D = 0 if no label with a step counts. Then tp and missed are known (a flipped label counts when
    false, so it is true) or, for labels without a step, independent of it. ``rule_at_zero`` is the
    sum of the weights of the rule.
    """
    n_labels, step, flips, above = len(head), table.step, table.flips, table.above
    sums, before, after = work[SUMS], work[BEFORE], work[AFTER]
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
def utilities(p, low, high, table, work, nodes, utility):
    """utility[k] for k from low to high; the working space holds the prefix sums of p."""
    sums, above, step, start, base = work[SUMS], table.above, table.step, table.start, table.base
    if step[0] == 0.0 and step[1] == 0.0:
        # D depends on k alone: the mean of N over it.
        for k in range(low, high + 1):
            mean = above[0] + above[1] * k + above[2] * sums[k] + above[3] * (sums[-1] - sums[k])
            utility[k] = table.empty if table.zero[k] else mean / start[k]
        return
    head, tail, head_sums, tail_sums = p, p, sums, sums
    if table.flips[0] or table.flips[1]:
        rest = work[REST][: len(p)]
        for j in range(len(p)):
            rest[j] = 1.0 - p[j]
        prefix_sums(rest, work[REST_SUMS], work[BOUNDS])
        if table.flips[0]:
            head, head_sums = rest, work[REST_SUMS]
        if table.flips[1]:
            tail, tail_sums = rest, work[REST_SUMS]
    weight, shift, log_t = nodes[WEIGHT], nodes[SHIFT], nodes[LOG_T]
    # One of the two steps is the unit, so one of the powers is t itself.
    t = nodes[T_HEAD] if step[0] == 1.0 else nodes[T_TAIL]
    k = low
    while k <= high:
        rule = table.rule[k]
        end, mean = stretch(
            k, min(high, table.last[rule]), step, start, table.lift, base[rule], table.means,
            table.count[rule], head_sums, tail_sums,
        )  # fmt: skip
        n_nodes = choose_nodes(
            rule, mean, table.means, step, table.far_x, table.far_w, base, table.no_zero,
            table.count, table.power_head, table.power_tail, table.weight,
            nodes[T_HEAD], nodes[T_TAIL], weight,
        )  # fmt: skip
        extra = start[k] + table.lift - base[rule]
        if not (is_short(table.slope) and is_short(extra)):
            # From x where nodes are scaled, as t may be too close to 1.
            scaled = table.count[rule, bin_of(mean, table.means)] < 0
            for m in range(n_nodes):
                x = table.far_x[n_nodes, m] / (base[rule] + mean) if scaled else -np.log(t[m])
                log_t[m] = -x
        powers(t, log_t, n_nodes, table.slope, nodes[RATIO])
        powers(t, log_t, n_nodes, extra, shift)
        rule_at_zero = 0.0
        for m in range(n_nodes):
            weight[m] *= shift[m]
            rule_at_zero += weight[m]
        evaluate(
            p, head, tail, k, end, n_nodes, table.flips, table.lift > 0.0, above, work, nodes,
            utility,
        )  # fmt: skip
        if table.zero[k] or table.zero[end]:
            add_convention(k, end, head, tail, rule_at_zero, table, work, utility)
        k = end + 1


@view_kernel
def size_rows(arranged, low, high, table, work, nodes, utility):
    """utility[row, k] for k from low[row] to high[row], the labels of each row as they stand.

    ``arranged`` (n, l), ``low`` and ``high`` (n,), ``utility`` (n, l + 1).
    """
    for row in range(len(arranged)):
        prefix_sums(arranged[row], work[SUMS], work[SQUARES])
        utilities(arranged[row], low[row], high[row], table, work, nodes, utility[row])


# --------------------------------------------------------- the best size, most others ruled out


@register_jitable
def candidates(p, start, step, n1, nothing, sums, squares, bounds):
    """The sizes from 1 on whose expected utility can be the largest: an interval.

    For N = n1 tp and steps of at most 1, given that label i is true, let D' be the denominator,
    Y - step_head p_i its mean and V a bound of its variance. Then

        1 / E[D'] <= E[1 / D'] <= min(1 / (E[D'] - 1), (1 + V / (E[D'] min D')) / E[D']),

    the first by Jensen's inequality, the second because no sum of independent steps is wider in the
    convex order than a Poisson variable, for which it follows by integration by parts, the third
    from 1/x = 1/y - (x - y)/y² + (x - y)²/(x y²). The loose bound n1 sums / (Y - 1 - step_head p_0)
    is a concave over a convex function of k, so it falls to both sides of its peak.
    """
    high = len(p)
    fixed = step[1] * sums[-1] - (1.0 + step[0] * p[0] - step[0])
    for k in range(len(bounds)):
        room = start[k] + (step[0] - step[1]) * sums[k] + fixed
        bounds[k] = n1 * sums[k] / room if room > 0.0 else np.inf
    # The peak by halving: the bounds rise up to it and fall from there on.
    peak, above = 1, high
    while peak < above:
        middle = (peak + above) // 2
        if bounds[middle + 1] > bounds[middle]:
            peak = middle + 1
        else:
            above = middle
    mean = start[peak] + step[0] + mean_of_steps(peak, step, sums, sums)
    best = max(nothing, n1 * (sums[peak] + step[0] * squares[peak] / mean) / mean) - SLACK
    first, last = peak, peak
    while first > 1 and bounds[first - 1] >= best:
        first -= 1
    while last < high and bounds[last + 1] >= best:
        last += 1
    while first < last and n1 * tight_bound(first, p[0], start, step, sums, squares) < best:
        first += 1
    while first < last and n1 * tight_bound(last, p[0], start, step, sums, squares) < best:
        last -= 1
    return first, last


@register_jitable
def tight_bound(k, highest, start, step, sums, squares):
    """The smaller of the two upper bounds of E[tp / D] in `candidates`."""
    mean, hits = start[k] + step[0] + mean_of_steps(k, step, sums, sums), sums[k]
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
def best_size(p, table, quick, work, nodes):
    """The best size; the smallest of those whose utilities differ by rounding.

    Most sizes are ruled out by bounds, then by the rules of ``quick``, which have fewer nodes;
    those that remain are compared exactly.
    """
    utility, sums, squares = work[UTILITY], work[SUMS], work[SQUARES]
    prefix_sums(p, sums, squares)
    nothing = table.empty * product_of_factors(p, 1.0) if table.zero[0] else 0.0
    first, final = candidates(
        p, table.start, table.step, table.above[2], nothing, sums, squares, work[BOUNDS]
    )
    utilities(p, first, final, quick, work, nodes, utility)
    best = utility[first]
    for k in range(first + 1, final + 1):
        best = max(best, utility[k])
    while utility[first] < best - DOUBT:
        first += 1
    while utility[final] < best - DOUBT:
        final -= 1
    if first == final and abs(best - nothing) > DOUBT:
        return first if best > nothing else 0
    utilities(p, first, final, table, work, nodes, utility)
    best = nothing
    for k in range(first, final + 1):
        best = max(best, utility[k])
    if nothing >= best - TIE:
        return 0
    while utility[first] < best - TIE:
        first += 1
    return first


@kernel
def fill_keys(probability, mask, keys):
    """Keys of a block of rows (n, l), which sort by falling probability."""
    for row in range(len(probability)):
        line, out = probability[row], keys[row]
        for j in range(len(line)):
            # Adding 0 makes a negative zero a zero.
            place = _ONE - bits(np.float64(line[j]) + 0.0)
            out[j] = ((place << 2) & ~mask) | j


@register_jitable
def take_sorted(line, keys, mask, labels, sorted_line):
    """Labels and probabilities of a row in the order of its sorted keys."""
    for j in range(len(keys)):
        labels[j] = keys[j] & mask
    for j in range(len(keys)):
        sorted_line[j] = line[labels[j]]
    for j in range(1, len(keys)):
        if precedes(sorted_line[j], labels[j], sorted_line[j - 1], labels[j - 1]):
            p, label, place = sorted_line[j], labels[j], j
            while place > 0 and precedes(p, label, sorted_line[place - 1], labels[place - 1]):
                sorted_line[place], labels[place] = sorted_line[place - 1], labels[place - 1]
                place -= 1
            sorted_line[place], labels[place] = p, label


@register_jitable
def precedes(p, label, other_p, other_label):
    """Whether a label comes before another: by falling probability, then by index."""
    return label < other_label if p == other_p else p > other_p


@view_kernel
def best_rows(values, keys, mask, labels, table, quick, work, nodes, sets):
    """Mark the labels of the best size of each row in ``sets`` (n, l), from its sorted keys."""
    p = work[SORTED][: values.shape[1]]
    for row in range(len(keys)):
        take_sorted(values[row], keys[row], mask, labels, p)
        for j in range(best_size(p, table, quick, work, nodes)):
            sets[row, labels[j]] = 1
