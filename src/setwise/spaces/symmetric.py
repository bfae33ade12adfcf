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
"""

import numpy as np
from numba.extending import register_jitable

from setwise.kernels import exp, kernel

# e^(2 h_j - reference) and its inverse must both be representable, with room for products.
WIDEST_SPAN = 600.0
# Half of log C(l, k) must be within the exponents of a float64.
LARGEST_LOG_BINOMIAL = 1380.0


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
def scale(logits, largest, offset, weight, step):
    """Fill ``offset`` and the two factors of the ratio: weight[j] * step[k].

    ``logits`` are 2 h with the highest first; ``largest`` is the largest size. If a factor could
    overflow, ``weight`` and ``step`` receive logarithms. Returns whether they are factors.
    """
    n = len(logits)
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
    """ratio[k] for label j and 1 <= k <= top, from what `scale` left behind."""
    for k in range(1, top + 1):
        if factored:
            ratio[k] = weight[j] * step[k]
        else:
            ratio[k] = exp(weight[j] + step[k])


@kernel
def fill(n, largest, factored, keep, weight, step, ratio, table):
    """table[j, k] = sum over the sets of size k of the first j labels.

    A label j left out multiplies by keep[j], taken by ratio_jk. (The symmetric polynomials have
    keep = 1; the law of the number of independent labels has 1 - p_j and p_j.)
    """
    for k in range(largest + 1):
        table[0, k] = 1.0 if k == 0 else 0.0
    for j in range(n):
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
def moments_rows(
    start, stop, scores, bias, on_value, off_value,
    log_partition, on, off, size, total, total_on, total_off, total_size,
):  # fmt: skip
    """Marginals, the law of the size and, where asked for, moments of N = sum of label values.

    Forward: table (weights) and sums (weights times the values so far); backward: their adjoints.
    All terms have one sign where the values do.
    """
    n_labels, largest = scores.shape[1], len(bias) - 1
    wants_total = len(on_value) > 0
    width = largest + 1
    order = np.empty(n_labels, dtype=np.int64)
    logits, doubled = np.empty(n_labels), np.empty(n_labels)
    offset, step, ratio, log_size = (
        np.empty(width),
        np.empty(width),
        np.empty(width),
        np.empty(width),
    )
    weight, keep = np.empty(n_labels), np.ones(n_labels)
    table = np.empty((n_labels + 1, width))
    sums = np.zeros((n_labels + 1 if wants_total else 0, width))
    adjoint, after = np.empty(width), np.empty(width)
    for row in range(start, stop):
        # y' · h = y' · (h - middle) + middle * (2 size - n_labels): small sums stay small.
        middle = 0.0
        for i in range(n_labels):
            middle += scores[row, i] / n_labels
        shift = 0.0
        for i in range(n_labels):
            doubled[i] = 2.0 * (scores[row, i] - middle)
            shift += scores[row, i] - middle
        largest_first(doubled, largest, order)
        for j in range(n_labels):
            logits[j] = doubled[order[j]]
        factored = scale(logits, largest, offset, weight, step)
        fill(n_labels, largest, factored, keep, weight, step, ratio, table)
        high = -np.inf
        for k in range(width):
            log_size[k] = -np.inf
            if bias[k] > -np.inf:
                log_size[k] = bias[k] + offset[k] + np.log(table[n_labels, k])
                log_size[k] += middle * (2.0 * k - n_labels)
            high = max(high, log_size[k])
        mass = 0.0
        for k in range(width):
            size[row, k] = exp(log_size[k] - high) if log_size[k] > -np.inf else 0.0
            mass += size[row, k]
        log_partition[row] = high + np.log(mass) - shift
        for k in range(width):
            size[row, k] /= mass
            adjoint[k] = size[row, k] / table[n_labels, k]
            after[k] = 0.0
        if wants_total:
            for j in range(n_labels):
                top = min(j + 1, largest)
                ratios(j, top, factored, weight, step, ratio)
                value_on, value_off = on_value[row, order[j]], off_value[row, order[j]]
                sums[j + 1, 0] = sums[j, 0] + value_off * table[j, 0]
                for k in range(1, top + 1):
                    sums[j + 1, k] = (
                        sums[j, k] + value_off * table[j, k]
                        + ratio[k] * (sums[j, k - 1] + value_on * table[j, k - 1])
                    )  # fmt: skip
                for k in range(top + 1, width):
                    sums[j + 1, k] = 0.0
            total[row] = 0.0
            for k in range(width):
                total_size[row, k] = adjoint[k] * sums[n_labels, k]
                total[row] += total_size[row, k]
        for j in range(n_labels - 1, -1, -1):
            i = order[j]
            # Among the first j + 1 labels no set is larger, and ratios beyond would overflow.
            top = min(j + 1, largest)
            ratios(j, top, factored, weight, step, ratio)
            present, absent = weigh(j, top, ratio, table, adjoint)
            on[row, i] = present
            off[row, i] = absent
            if wants_total:
                value_on, value_off = on_value[row, i], off_value[row, i]
                sum_on = 0.0
                sum_off = after[0] * table[j, 0] + adjoint[0] * sums[j, 0]
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
            step_back(top, keep[j], ratio, adjoint)
