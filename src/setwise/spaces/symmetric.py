"""Elementary symmetric polynomials of label weights, scaled so that nothing overflows or vanishes.

The weight of all sets of size k is e_k(w), w_i = e^(2 h_i); adding label j to the first j - 1:

    e_k <- e_k + w_j e_(k-1)

With the K labels of highest score first, descending, e_k (k <= K, the largest size) lies between
the product of the k largest weights and that times C(l, k), from the k-th label to the last. So
e_k is stored divided by

    exp(offset_k) = (product of the k largest weights) * sqrt(C(l, k)),

within [C(l,k)^(-1/2), C(l,k)^(1/2)] for any scores. The recursion's factor becomes

    ratio_jk = exp(2 h_j - 2 h_(k)) * sqrt(k / (l - k + 1)),

where h_(k) >= h_j is the k-th largest score: a product of a number for j and one for k, unless the
scores span more than an exponential can hold, when it is computed cell by cell.

A label left out multiplies by keep_j. The symmetric polynomials have keep = 1; the law of the
number of independent labels, the Poisson-binomial, has 1 - p_j with ratio p_j and no scaling.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from setwise.kernels import exp, kernel

# e^(2 h_j - reference) and its inverse must both be representable, with room for products.
WIDEST_SPAN = 600.0
# Half of log C(l, k) must be within the exponents of a float64.
LARGEST_LOG_BINOMIAL = 1380.0


class Group(NamedTuple):
    """Room for the recursion over a group of n labels and sizes up to K, used for row after row."""

    order: np.ndarray  # (n,): the labels of the group, the K of highest score first
    logits: np.ndarray  # (n,): 2 h in that order
    keep: np.ndarray  # (n,)
    weight: np.ndarray  # (n,): the ratio's factor of label j
    step: np.ndarray  # (K + 1,): and of size k; or logarithms of both, see `scale`
    ratio: np.ndarray  # (K + 1,): of the label that is being added or taken back
    offset: np.ndarray  # (K + 1,)
    table: np.ndarray  # (n + 1, K + 1): row j is over the sets of the first j labels


@register_jitable
def group_of(n_labels, largest):
    """Room for so many labels, in their own order, and sizes."""
    width = largest + 1
    return Group(
        np.arange(n_labels), np.empty(n_labels), np.ones(n_labels), np.empty(n_labels),
        np.zeros(width), np.empty(width), np.zeros(width), np.empty((n_labels + 1, width)),
    )  # fmt: skip


@kernel
def largest_first(logits, largest, order):
    """Fill ``order`` with the labels of the ``largest`` highest logits, descending, then the rest.

    Equal logits keep their order. Only the first ``largest`` have to be sorted: a label beyond them
    has a ratio of at most 1 to each. By insertion, which is rare once the best have been seen.
    """
    kept, n = 0, len(logits)
    taken = np.zeros(n, dtype=np.uint8)
    for i in range(n):
        if kept == largest and (kept == 0 or logits[i] <= logits[order[kept - 1]]):
            continue
        if kept == largest:
            taken[order[kept - 1]] = 0
        else:
            kept += 1
        taken[i] = 1
        place = kept - 1
        while place > 0 and logits[order[place - 1]] < logits[i]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = i
    for i in range(n):
        if taken[i] == 0:
            order[kept] = i
            kept += 1


@kernel
def scale(group):
    """Fill ``offset`` and the two factors of the ratio: weight[j] * step[k].

    If a factor could overflow, ``weight`` and ``step`` receive logarithms. Returns whether they are
    factors.
    """
    _, logits, _, weight, step, _, offset, _ = group
    n, largest = len(logits), len(step) - 1
    high = low = logits[0] if n > 0 else 0.0
    for j in range(n):
        high, low = max(high, logits[j]), min(low, logits[j])
    factored, middle = high - low <= WIDEST_SPAN, 0.5 * (high + low)
    for j in range(n):
        weight[j] = exp(logits[j] - middle) if factored else logits[j]
    offset[0] = 0.0
    for k in range(1, min(largest, n) + 1):
        shrink = np.sqrt(k / (n - k + 1.0))
        offset[k] = offset[k - 1] + logits[k - 1] - np.log(shrink)
        step[k] = (
            exp(middle - logits[k - 1]) * shrink if factored else np.log(shrink) - logits[k - 1]
        )
    return factored


@register_jitable
def ratios(j, top, factored, weight, step, ratio):
    """ratio[k] for label j and 1 <= k <= top, from what `scale` left behind.

    (Here and below for each label: bare arrays, as a group of them would be counted and copied.)
    """
    for k in range(1, top + 1):
        if factored:
            ratio[k] = weight[j] * step[k]
        else:
            ratio[k] = exp(weight[j] + step[k])


@kernel
def fill(factored, group):
    """table[j, k] = sum over the sets of size k of the first j labels."""
    _, _, keep, weight, step, ratio, _, table = group
    largest = len(step) - 1
    table[0] = 0.0
    table[0, 0] = 1.0
    for j in range(len(keep)):
        top = min(j + 1, largest)
        ratios(j, top, factored, weight, step, ratio)
        left_out = keep[j]
        table[j + 1, 0] = left_out * table[j, 0]
        for k in range(1, top + 1):
            table[j + 1, k] = left_out * table[j, k] + ratio[k] * table[j, k - 1]
        for k in range(top + 1, largest + 1):
            table[j + 1, k] = 0.0


@register_jitable
def weigh(j, top, ratio, table, adjoint):
    """What the sets with and without label j weigh, given the adjoint of the labels after it."""
    present, absent = 0.0, adjoint[0] * table[j, 0]
    for k in range(1, top + 1):
        present += adjoint[k] * ratio[k] * table[j, k - 1]
        absent += adjoint[k] * table[j, k]
    return present, absent


@register_jitable
def step_back(top, left_out, ratio, adjoint):
    """The adjoint before label j, which multiplies by ``left_out`` when it is not taken."""
    for k in range(top):
        adjoint[k] = left_out * adjoint[k] + ratio[k + 1] * adjoint[k + 1]
    adjoint[top] *= left_out


@kernel
def sweep(factored, group, adjoint, on, off):
    """Reverse sweep: on[i] and off[i], (l,) each, from the adjoint of the table's last row."""
    order, _, keep, weight, step, ratio, _, table = group
    for j in range(len(order) - 1, -1, -1):
        # Among the first j + 1 labels no set is larger, and ratios beyond would overflow.
        top = min(j + 1, len(step) - 1)
        ratios(j, top, factored, weight, step, ratio)
        present, absent = weigh(j, top, ratio, table, adjoint)
        on[order[j]] = present
        off[order[j]] = keep[j] * absent
        step_back(top, keep[j], ratio, adjoint)


@kernel
def size_law(line, bias, doubled, group, size):
    """Fill the table for a row of scores and ``size`` with the law of the size, both (K + 1,).

    Returns whether ratios are factors, and the log-partition.
    """
    order, logits, _, _, _, _, offset, table = group
    n_labels, last = len(line), table[len(line)]
    # y' · h = y' · (h - middle) + middle * (2 size - n_labels): small sums stay small.
    middle, shift = 0.0, 0.0
    for i in range(n_labels):
        middle += line[i] / n_labels
    for i in range(n_labels):
        doubled[i] = 2.0 * (line[i] - middle)
        shift += line[i] - middle
    largest_first(doubled, len(bias) - 1, order)
    for j in range(n_labels):
        logits[j] = doubled[order[j]]
    factored = scale(group)
    fill(factored, group)
    high = -np.inf
    for k in range(len(bias)):
        size[k] = -np.inf
        if bias[k] > -np.inf:
            size[k] = bias[k] + offset[k] + np.log(last[k])
            size[k] += middle * (2.0 * k - n_labels)
        high = max(high, size[k])
    mass = 0.0
    for k in range(len(bias)):
        size[k] = exp(size[k] - high) if size[k] > -np.inf else 0.0
        mass += size[k]
    for k in range(len(bias)):
        size[k] /= mass
    return factored, high + np.log(mass) - shift


@kernel
def moments_rows(start, stop, scores, bias, log_partition, on, off, size):
    """A (n,), the marginals (n, l) and the law of the size (n, at least K + 1)."""
    n_labels, width = scores.shape[1], len(bias)
    group, doubled, adjoint = group_of(n_labels, width - 1), np.empty(n_labels), np.empty(width)
    for row in range(start, stop):
        factored, log_partition[row] = size_law(scores[row], bias, doubled, group, size[row])
        for k in range(width):
            adjoint[k] = size[row, k] / group.table[n_labels, k]
        sweep(factored, group, adjoint, on[row], off[row])


@kernel
def fill_sums(factored, group, value_on, value_off, sums):
    """sums[j, k] = as table[j, k], with every set times what the first j labels add to N."""
    order, _, _, weight, step, ratio, _, table = group
    largest = len(step) - 1
    for j in range(len(order)):
        top, i = min(j + 1, largest), order[j]
        ratios(j, top, factored, weight, step, ratio)
        sums[j + 1, 0] = sums[j, 0] + value_off[i] * table[j, 0]
        for k in range(1, top + 1):
            sums[j + 1, k] = (
                sums[j, k] + value_off[i] * table[j, k]
                + ratio[k] * (sums[j, k - 1] + value_on[i] * table[j, k - 1])
            )  # fmt: skip
        for k in range(top + 1, largest + 1):
            sums[j + 1, k] = 0.0


@kernel
def sum_moments_rows(
    start, stop, scores, bias, on_value, off_value,
    log_partition, on, off, size, total, total_on, total_off, total_size,
):  # fmt: skip
    """As `moments_rows`, and E[N], E[N; label], E[N; no label], E[N; size] of a sum of values.

    N = sum of on_value over the labels in a set and of off_value over the others, (n, l) each.
    Forward: table (weights) and sums (weights times the values so far); backward: their adjoints.
    All terms have one sign where the values do.
    """
    n_labels, width = scores.shape[1], len(bias)
    group, doubled = group_of(n_labels, width - 1), np.empty(n_labels)
    adjoint, after, sums = np.empty(width), np.empty(width), np.zeros((n_labels + 1, width))
    order, _, _, weight, step, ratio, _, table = group
    for row in range(start, stop):
        factored, log_partition[row] = size_law(scores[row], bias, doubled, group, size[row])
        fill_sums(factored, group, on_value[row], off_value[row], sums)
        total[row] = 0.0
        for k in range(width):
            adjoint[k], after[k] = size[row, k] / table[n_labels, k], 0.0
            total_size[row, k] = adjoint[k] * sums[n_labels, k]
            total[row] += total_size[row, k]
        for j in range(n_labels - 1, -1, -1):
            i, top = order[j], min(j + 1, width - 1)
            ratios(j, top, factored, weight, step, ratio)
            present, absent = weigh(j, top, ratio, table, adjoint)
            on[row, i], off[row, i] = present, absent
            value_on, value_off = on_value[row, i], off_value[row, i]
            sum_on, sum_off = 0.0, after[0] * table[j, 0] + adjoint[0] * sums[j, 0]
            for k in range(1, top + 1):
                sum_on += ratio[k] * (after[k] * table[j, k - 1] + adjoint[k] * sums[j, k - 1])
                sum_off += after[k] * table[j, k] + adjoint[k] * sums[j, k]
            total_on[row, i] = sum_on + value_on * present
            total_off[row, i] = sum_off + value_off * absent
            for k in range(top):
                after[k] += value_off * adjoint[k] + ratio[k + 1] * (
                    after[k + 1] + value_on * adjoint[k + 1]
                )
            after[top] += value_off * adjoint[top]
            step_back(top, 1.0, ratio, adjoint)
