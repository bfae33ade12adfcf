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
from setwise.spaces.quotient_kernels import choose_nodes

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


# Rows of the working space ``work`` (13, l + 2) of a row of labels: probabilities by falling value;
# sums of the first k, and of their squares, behind them those with the labels outside the row;
# bounds of the utility of each size; 1 - p and its sums; f and p / f of the labels that move;
# products of the factors of the tail, and n2 R, from the last label on; the probabilities that no
# predicted, and no other, label counts; utilities. (Rows of one array, not a named tuple: that
# would be copied at every call.)
SORTED, SUMS, SQUARES, BOUNDS, REST, REST_SUMS, FACTOR, SHARE, PRODUCTS, TOTALS = range(10)
BEFORE, AFTER, UTILITY = 10, 11, 12
# Rows of ``nodes`` (4, nodes): t to the step of a predicted label, of another; weights; t^slope.
T_HEAD, T_TAIL, WEIGHT, RATIO = range(4)


def scratch(n_labels: int, table: SizeTable) -> tuple[Any, Any]:
    """Working space for rows of so many labels: ``work`` and ``nodes``."""
    n_nodes = max(table.weight.shape[2], table.far_x.shape[1]) + 1
    return np.zeros((13, n_labels + 2)), np.empty((4, n_nodes))


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
    n, out, above = high - low, utility[low : high + 1], table.above
    factor, share, products, totals = work[FACTOR], work[SHARE], work[PRODUCTS], work[TOTALS]
    for k in range(n + 1):
        out[k] = totals[k] = 0.0
    for m in range(n_nodes):
        # The labels from low to high begin in the tail: products and totals with the last k of it.
        t_head, t_tail = nodes[T_HEAD, m], nodes[T_TAIL, m]
        lack = min(1.0 - t_tail, ALMOST_ONE)
        if above[3] == 0.0:
            product = product_of_factors(tail_after, lack) * outside_factor(mass, chance, lack)
        else:
            gain = above[3] * (1.0 if table.flips[1] else t_tail)
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
        gain = above[2] * (1.0 if table.flips[0] or table.lift > 0.0 else t_head)
        product, total = product_and_total(before, head_before, lack)
        product *= nodes[WEIGHT, m]
        factors(moving, head_moving, lack, factor, share)
        constant, growth, power = above[0] + above[1] * low, above[1], nodes[RATIO, m]
        for k in range(n):
            out[k] += product * products[k] * (constant + gain * total + totals[k])
            product *= factor[k] * power
            total += share[k]
            constant += growth
        out[n] += product * products[n] * (constant + gain * total + totals[n])


@view_inner
def mean_of_steps(k, step, head_sums, tail_sums):
    """The mean of D - start for the first k labels predicted."""
    return step[0] * head_sums[k] + step[1] * (tail_sums[-1] - tail_sums[k])


@view_inner
def node_count(rule, mean, table):
    """How many nodes a rule has at a mean of D - base; negative where they are scaled by it."""
    level = 0
    while level < len(table.means) and mean > table.means[level]:
        level += 1
    return table.count[rule, level]


@view_inner
def stretch(k, table, head_sums, tail_sums, high):
    """The last size up to ``high`` that shares nodes with k, and the mean that chooses them."""
    rule, step, start, lift = table.rule[k], table.step, table.start, table.lift
    high, base = min(high, table.last[rule]), table.base[rule]
    mean = max(start[k], start[high]) + lift - base + step[0] * head_sums[high]
    mean += step[1] * (tail_sums[-1] - tail_sums[k])
    n_nodes = node_count(rule, mean, table)
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


@view_inner
def add_convention(k, end, head, tail, rule_at_zero, outside, table, work, utility):
    """Where D can be 0: take out what the rule made of that, and put the convention in.

    D = 0 if no label with a step counts. Then tp and missed are known (a flipped label counts when
    false, so it is true) or, for labels without a step, independent of it. ``rule_at_zero`` is the
    sum of the weights of the rule, ``outside`` the probability that no label outside is true.
    """
    n_labels, step, flips, above = len(head), table.step, table.flips, table.above
    sums, before, after = work[SUMS], work[BEFORE], work[AFTER]
    before[0], after[n_labels] = 1.0, outside
    for j in range(n_labels):
        before[j + 1] = before[j] * (1.0 - head[j] if step[0] > 0.0 else 1.0)
    for j in range(n_labels - 1, -1, -1):
        after[j] = after[j + 1] * (1.0 - tail[j] if step[1] > 0.0 else 1.0)
    for size in range(k, end + 1):
        taken = 0.0
        # With a lift N is 0 there, and its tilted share was taken without the power of t.
        if table.lift == 0.0:
            hits = sums[size] if step[0] == 0.0 else (float(size) if flips[0] else 0.0)
            rest, others = sums[n_labels] - sums[size], float(n_labels - size)
            missed = rest if step[1] == 0.0 else (others if flips[1] else 0.0)
            taken = above[0] + above[1] * size + above[2] * hits + above[3] * missed
        if table.zero[size]:
            utility[size] += (table.empty - rule_at_zero * taken) * before[size] * after[size]


@view_inner
def prefix_sums(values, mass, chance, sums, squares):
    """The sums of the first k values, and of their squares; last, with the labels outside."""
    total, square = 0.0, 0.0
    sums[0] = squares[0] = 0.0
    for k in range(len(values)):
        total += values[k]
        square += values[k] * values[k]
        sums[k + 1], squares[k + 1] = total, square
    sums[-1], squares[-1] = total + mass, square + mass * chance


@view_inner
def utilities(p, low, high, mass, chance, table, work, nodes, utility):
    """utility[k] for k from low to high; the working space holds the prefix sums of p."""
    sums, above, step, start = work[SUMS], table.above, table.step, table.start
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
        prefix_sums(rest, 0.0, 0.0, work[REST_SUMS], work[BOUNDS])
        if table.flips[0]:
            head, head_sums = rest, work[REST_SUMS]
        if table.flips[1]:
            tail, tail_sums = rest, work[REST_SUMS]
    # One of the two steps is the unit, so one of the powers is t itself.
    t, weight = nodes[T_HEAD if step[0] == 1.0 else T_TAIL], nodes[WEIGHT]
    k = low
    while k <= high:
        rule = table.rule[k]
        end, mean = stretch(k, table, head_sums, tail_sums, high)
        n_nodes = choose_nodes(
            rule, mean, table.means, step, table.far_x, table.far_w, table.base, table.no_zero,
            table.count, table.power_head, table.power_tail, table.weight,
            nodes[T_HEAD], nodes[T_TAIL], weight,
        )  # fmt: skip
        base, scaled, rule_at_zero = table.base[rule], node_count(rule, mean, table) < 0, 0.0
        extra = start[k] + table.lift - base
        for m in range(n_nodes):
            # Not from t where nodes are scaled: it may be too close to 1.
            x = table.far_x[n_nodes, m] / (base + mean) if scaled else -np.log(t[m])
            nodes[RATIO, m] = exp(-table.slope * x)
            weight[m] *= exp(-extra * x)
            rule_at_zero += weight[m]
        evaluate(p, head, tail, k, end, n_nodes, mass, chance, table, work, nodes, utility)
        if table.zero[k] or table.zero[end]:
            outside = outside_factor(mass, chance, 1.0)
            add_convention(k, end, head, tail, rule_at_zero, outside, table, work, utility)
        k = end + 1


@view_kernel
def size_rows(arranged, low, high, outside, table, work, nodes, utility):
    """utility[row, k] for k from low[row] to high[row], the labels of each row as they stand.

    ``arranged`` (n, l), ``low`` and ``high`` (n,), ``outside`` (n, 2) with mass and chance of the
    labels outside, ``utility`` (n, l + 1).
    """
    for row in range(len(arranged)):
        p, mass, chance = arranged[row], outside[row, 0], outside[row, 1]
        prefix_sums(p, mass, chance, work[SUMS], work[SQUARES])
        utilities(p, low[row], high[row], mass, chance, table, work, nodes, utility[row])


# --------------------------------------------------------- the best size, most others ruled out


@view_inner
def candidates(p, table, nothing, sums, squares, bounds):
    """The sizes from 1 on whose expected utility can be the largest: an interval.

    For N = n1 tp and steps of at most 1, given that label i is true, let D' be the denominator,
    Y - step_head p_i its mean and V a bound of its variance. Then

        1 / E[D'] <= E[1 / D'] <= min(1 / (E[D'] - 1), (1 + V / (E[D'] min D')) / E[D']),

    the first by Jensen's inequality, the second because no sum of independent steps is wider in the
    convex order than a Poisson variable, for which it follows by integration by parts, the third
    from 1/x = 1/y - (x - y)/y² + (x - y)²/(x y²). The loose bound n1 sums / (Y - 1 - step_head p_0)
    is a concave over a convex function of k, so it falls to both sides of its peak.
    """
    start, step, n1, high = table.start, table.step, table.above[2], len(p)
    fixed = step[1] * sums[-1] - (1.0 + step[0] * p[0] - step[0])
    for k in range(high + 1):
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


@view_inner
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


@view_inner
def best_size(p, mass, chance, table, quick, work, nodes):
    """The best size; the smallest of those whose utilities differ by rounding.

    Most sizes are ruled out by bounds, then by the rules of ``quick``, which have fewer nodes;
    those that remain are compared exactly.
    """
    utility, sums, squares = work[UTILITY], work[SUMS], work[SQUARES]
    prefix_sums(p, mass, chance, sums, squares)
    nothing = table.empty * product_of_factors(p, 1.0) if table.zero[0] else 0.0
    nothing *= outside_factor(mass, chance, 1.0)
    first, final = candidates(p, table, nothing, sums, squares, work[BOUNDS])
    utilities(p, first, final, mass, chance, quick, work, nodes, utility)
    best = utility[first]
    for k in range(first + 1, final + 1):
        best = max(best, utility[k])
    while utility[first] < best - DOUBT:
        first += 1
    while utility[final] < best - DOUBT:
        final -= 1
    if first == final and abs(best - nothing) > DOUBT:
        return first if best > nothing else 0
    utilities(p, first, final, mass, chance, table, work, nodes, utility)
    best = nothing
    for k in range(first, final + 1):
        best = max(best, utility[k])
    if nothing >= best - TIE:
        return 0
    while utility[first] < best - TIE:
        first += 1
    return first


@view_kernel
def best_rows(values, ordered, outside, table, quick, work, nodes, sets):
    """Mark the labels of the best size of each row in ``sets`` (n, l).

    ``ordered`` (n, l) are the values by rising size, ``outside`` (n, 2) as in `size_rows`.
    Of labels that tie for the last places the first are taken.
    """
    n_labels = values.shape[1]
    p = work[SORTED][:n_labels]
    for row in range(len(values)):
        for j in range(n_labels):
            p[j] = ordered[row, n_labels - 1 - j]
        size = best_size(p, outside[row, 0], outside[row, 1], table, quick, work, nodes)
        if size == 0:
            continue
        least, room = ordered[row, n_labels - size], size
        for j in range(size):
            room -= p[j] > least
        for j in range(n_labels):
            tied = values[row, j] == least and room > 0
            room -= tied
            sets[row, j] = values[row, j] > least or tied
