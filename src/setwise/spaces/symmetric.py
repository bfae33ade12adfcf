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

For functions of the confusion counts true and false labels are two groups. The weight of tp = a,
fp = b is the polynomial of degree a of the true labels times that of degree b of the false ones
times what the space adds for the size a + b, see `count_mean`: O(l K) a row, O(l^2) on the cube.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from setwise.kernels import copy_into, exp, inner, kernel, view_inner, view_kernel
from setwise.targets.measure import Array
from setwise.threads import for_rows

# e^(2 h_j - reference) and its inverse must both be representable, with room for products.
WIDEST_SPAN = 600.0
# Half of log C(l, k) must be within the exponents of a float64.
LARGEST_LOG_BINOMIAL = 1380.0


class Group(NamedTuple):
    """Room for the recursion over a group of n labels and sizes up to K, used for row after row."""

    order: np.ndarray  # (n,): the labels of the group, the K of highest score first
    taken: np.ndarray  # (n,): room for choosing these
    logits: np.ndarray  # (n,): 2 h in that order
    keep: np.ndarray  # (n,)
    weight: np.ndarray  # (n,): the ratio's factor of label j
    step: np.ndarray  # (K + 1,): and of size k; or logarithms of both, see `scale`
    ratio: np.ndarray  # (K + 1,): of the label that is being added or taken back
    offset: np.ndarray  # (K + 1,)
    table: np.ndarray  # (n + 1, K + 1): row j is over the sets of the first j labels


def group_of(n_labels: int, largest: int) -> Group:
    """Room for so many labels, in their own order, and sizes."""
    width = largest + 1
    return Group(
        np.arange(n_labels), np.empty(n_labels, np.int64), np.empty(n_labels), np.ones(n_labels),
        np.empty(n_labels), np.zeros(width), np.empty(width), np.zeros(width),
        np.empty((n_labels + 1, width)),
    )  # fmt: skip


@view_inner
def largest_first(logits, largest, order, taken):
    """Fill ``order`` with the labels of the ``largest`` highest logits, descending, then the rest.

    ``taken`` (l,) says which they are. Equal logits keep their order. Only the first ``largest``
    have to be sorted: a label beyond them has a ratio of at most 1 to each. By insertion, which is
    rare once the best have been seen.
    """
    kept, n = 0, len(logits)
    for i in range(n):
        taken[i] = 0
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


@view_inner
def scale(group):
    """Fill ``offset`` and the two factors of the ratio: weight[j] * step[k].

    If a factor could overflow, ``weight`` and ``step`` receive logarithms. Returns whether they are
    factors.
    """
    _, _, logits, _, weight, step, _, offset, _ = group
    n, largest = len(logits), len(step) - 1
    high = low = logits[0] if n > 0 else 0.0
    for j in range(n):
        high = logits[j] if logits[j] > high else high
        low = logits[j] if logits[j] < low else low
    factored, middle = high - low <= WIDEST_SPAN, 0.5 * (high + low)
    for j in range(n):
        weight[j] = exp(logits[j] - middle) if factored else logits[j]
    offset[0] = 0.0
    for k in range(1, (largest if largest < n else n) + 1):
        shrink = np.sqrt(k / (n - k + 1.0))
        offset[k] = offset[k - 1] + logits[k - 1] - np.log(shrink)
        step[k] = (
            exp(middle - logits[k - 1]) * shrink if factored else np.log(shrink) - logits[k - 1]
        )
    return factored


@view_inner
def ratios(j, top, factored, weight, step, ratio):
    """ratio[k] for label j and 1 <= k <= top, from what `scale` left behind.

    (Here and below for each label: bare arrays, as a group of them would be counted and copied.)
    """
    for k in range(1, top + 1):
        if factored:
            ratio[k] = weight[j] * step[k]
        else:
            ratio[k] = exp(weight[j] + step[k])


@view_inner
def fill(factored, group):
    """table[j, k] = sum over the sets of size k of the first j labels."""
    _, _, _, keep, weight, step, ratio, _, table = group
    largest = len(step) - 1
    for k in range(largest + 1):
        table[0, k] = 1.0 if k == 0 else 0.0
    for j in range(len(keep)):
        top = j + 1 if j < largest else largest
        ratios(j, top, factored, weight, step, ratio)
        left_out = keep[j]
        table[j + 1, 0] = left_out * table[j, 0]
        for k in range(1, top + 1):
            table[j + 1, k] = left_out * table[j, k] + ratio[k] * table[j, k - 1]
        for k in range(top + 1, largest + 1):
            table[j + 1, k] = 0.0


@view_inner
def weigh(j, top, ratio, table, adjoint):
    """What the sets with and without label j weigh, given the adjoint of the labels after it."""
    present, absent = 0.0, adjoint[0] * table[j, 0]
    for k in range(1, top + 1):
        present += adjoint[k] * ratio[k] * table[j, k - 1]
        absent += adjoint[k] * table[j, k]
    return present, absent


@view_inner
def step_back(top, left_out, ratio, adjoint):
    """The adjoint before label j, which multiplies by ``left_out`` when it is not taken."""
    for k in range(top):
        adjoint[k] = left_out * adjoint[k] + ratio[k + 1] * adjoint[k + 1]
    adjoint[top] *= left_out


@view_inner
def sweep(factored, group, adjoint, on, off):
    """Reverse sweep: on[i] and off[i], (l,) each, from the adjoint of the table's last row."""
    order, _, _, keep, weight, step, ratio, _, table = group
    for j in range(len(order) - 1, -1, -1):
        # Among the first j + 1 labels no set is larger, and ratios beyond would overflow.
        top = j + 1 if j + 1 < len(step) else len(step) - 1
        ratios(j, top, factored, weight, step, ratio)
        present, absent = weigh(j, top, ratio, table, adjoint)
        on[order[j]] = present
        off[order[j]] = keep[j] * absent
        step_back(top, keep[j], ratio, adjoint)


@view_inner
def size_law(line, bias, doubled, group, size):
    """Fill the table for a row of scores and ``size`` with the law of the size, both (K + 1,).

    Returns whether ratios are factors, and the log-partition.
    """
    order, taken, logits, _, _, _, _, offset, table = group
    n_labels, last = len(line), table[len(line)]
    # y' · h = y' · (h - middle) + middle * (2 size - n_labels): small sums stay small.
    middle, shift = 0.0, 0.0
    for i in range(n_labels):
        middle += line[i] / n_labels
    for i in range(n_labels):
        doubled[i] = 2.0 * (line[i] - middle)
        shift += line[i] - middle
    largest_first(doubled, len(bias) - 1, order, taken)
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
        high = size[k] if size[k] > high else high
    mass = 0.0
    for k in range(len(bias)):
        size[k] = exp(size[k] - high) if size[k] > -np.inf else 0.0
        mass += size[k]
    for k in range(len(bias)):
        size[k] /= mass
    return factored, high + np.log(mass) - shift


@view_inner
def fill_sums(factored, group, value_on, value_off, sums):
    """sums[j, k] = as table[j, k], with every set times what the first j labels add to N."""
    order, _, _, _, weight, step, ratio, _, table = group
    largest = len(step) - 1
    for j in range(len(order)):
        top, i = j + 1 if j < largest else largest, order[j]
        ratios(j, top, factored, weight, step, ratio)
        sums[j + 1, 0] = sums[j, 0] + value_off[i] * table[j, 0]
        for k in range(1, top + 1):
            sums[j + 1, k] = (
                sums[j, k] + value_off[i] * table[j, k]
                + ratio[k] * (sums[j, k - 1] + value_on[i] * table[j, k - 1])
            )  # fmt: skip
        for k in range(top + 1, largest + 1):
            sums[j + 1, k] = 0.0


@view_inner
def sweep_sums(factored, group, value_on, value_off, sums, adjoint, after, on, off, joint):
    """As `sweep`, and E[N; label] and E[N; no label], (l,) each, in ``joint``.

    ``after`` is the adjoint of ``sums``: what the labels from j on add to N.
    """
    order, _, _, _, weight, step, ratio, _, table = group
    for k in range(len(after)):
        after[k] = 0.0
    for j in range(len(order) - 1, -1, -1):
        i, top = order[j], j + 1 if j + 1 < len(step) else len(step) - 1
        ratios(j, top, factored, weight, step, ratio)
        present, absent = weigh(j, top, ratio, table, adjoint)
        sum_on, sum_off = 0.0, after[0] * table[j, 0] + adjoint[0] * sums[j, 0]
        for k in range(1, top + 1):
            sum_on += ratio[k] * (after[k] * table[j, k - 1] + adjoint[k] * sums[j, k - 1])
            sum_off += after[k] * table[j, k] + adjoint[k] * sums[j, k]
        on[i], off[i] = present, absent
        joint[0][i], joint[1][i] = sum_on + value_on[i] * present, sum_off + value_off[i] * absent
        for k in range(top):
            after[k] += value_off[i] * adjoint[k] + ratio[k + 1] * (
                after[k + 1] + value_on[i] * adjoint[k + 1]
            )
        after[top] += value_off[i] * adjoint[top]
        step_back(top, 1.0, ratio, adjoint)


def moments_room(n_labels: int, largest: int) -> tuple[Group, Array, Array]:
    """What `moments_rows` works in, for sizes up to ``largest``."""
    return group_of(n_labels, largest), np.empty(n_labels), np.empty(largest + 1)


def sums_room(n_labels: int, largest: int) -> tuple[Any, ...]:
    """What `sum_moments_rows` works in."""
    tables = np.zeros((n_labels + 1, largest + 1)), np.empty(largest + 1)
    return *tables, *moments_room(n_labels, largest)


@view_kernel
def moments_rows(start, stop, scores, bias, law, group, doubled, adjoint):
    """``law``: A (n,), P(label), P(not label) (n, l) and P(size) (n, at least K + 1).

    The last three are `moments_room`.
    """
    (log_partition, on, off, sizes), width = law, len(bias)
    last = group.table[scores.shape[1]]
    for row in range(start, stop):
        size = sizes[row]
        factored, log_partition[row] = size_law(scores[row], bias, doubled, group, size)
        for k in range(width):
            adjoint[k] = size[k] / last[k]
        sweep(factored, group, adjoint, on[row], off[row])


@view_kernel
def sum_moments_rows(
    start, stop, scores, bias, values, law, sums, table_of_sums, after, group, doubled, adjoint
):  # fmt: skip
    """Marginals, and the moments of a sum over labels.

    ``law`` = what `moments_rows` gives; ``sums`` = the same of N: E[N], E[N; label], E[N; no label]
    and E[N; size]. N = sum of values[0] over the labels in a set and of values[1] over the others,
    (n, l) each. All terms have one sign where the values do. The last five are `sums_room`; the
    first row of its table is 0.
    """
    n_labels, width = scores.shape[1], len(bias)
    last = group.table[n_labels]
    for row in range(start, stop):
        size, value_on, value_off = law[3][row], values[0][row], values[1][row]
        factored, law[0][row] = size_law(scores[row], bias, doubled, group, size)
        fill_sums(factored, group, value_on, value_off, table_of_sums)
        sums[0][row] = 0.0
        for k in range(width):
            adjoint[k] = size[k] / last[k]
            sums[3][row, k] = adjoint[k] * table_of_sums[n_labels, k]
            sums[0][row] += sums[3][row, k]
        sweep_sums(
            factored, group, value_on, value_off, table_of_sums, adjoint, after,
            law[1][row], law[2][row], (sums[1][row], sums[2][row]),
        )  # fmt: skip


def count_mean(measure, scores: Array, y_true: Array, bias: Array) -> tuple[Array, ...]:
    """A, E[u], E[u y'] and E[u; size] of a measure that is a function of the counts.

    The function is contracted with the joint law of tp and fp; a reverse sweep through the table of
    true and of false labels gives the joint mean of the function and each label. ``bias`` (K + 1,)
    is what the space adds for each size; without any the labels are independent, and A is left out.
    One number of true labels at a time: the table of u is the same for all.
    """
    n, n_labels = scores.shape
    largest = len(bias) - 1 if len(bias) else n_labels
    log_partition, value, by_size = np.empty(n), np.empty(n), np.zeros((n, len(bias)))
    on, off = np.empty((n, n_labels)), np.empty((n, n_labels))
    n_true = y_true.sum(axis=1, dtype=np.int64)
    for positives in np.unique(n_true):
        rows = np.flatnonzero(n_true == positives)
        tp = np.arange(min(positives, largest) + 1.0)[:, None]
        fp = np.arange(min(n_labels - positives, largest) + 1.0)[None, :]
        values = measure.of_counts(tp, fp, positives - tp, n_labels - positives - fp)
        for_rows(
            count_rows, len(rows), rows, scores, y_true, positives, bias, np.array(values),
            log_partition, value, on, off, by_size, least=8,
            room=partial(_count_room, positives, n_labels - positives, tp.size - 1, fp.size - 1),
        )  # fmt: skip
    return log_partition, value, on - off, by_size


def _count_room(n_true: int, n_false: int, top_true: int, top_false: int) -> tuple[Group, Group]:
    """Rooms for the true labels of a row and for the others."""
    return group_of(n_true, top_true), group_of(n_false, top_false)


@inner
def fill_group(labels, line, independent, group):
    """Fill the tables of the group of the given labels; returns whether ratios are factors."""
    n = len(labels)
    if independent:
        copy_into(group.order, labels)
        for j in range(n):
            size = exp(-abs(2.0 * line[labels[j]]))
            likely, unlikely = 1.0 / (1.0 + size), size / (1.0 + size)
            positive = line[labels[j]] >= 0
            group.weight[j] = likely if positive else unlikely
            group.keep[j] = unlikely if positive else likely
        group.step[:] = 1.0
        fill(True, group)
        return True
    doubled = np.empty(n)
    for j in range(n):
        doubled[j] = 2.0 * line[labels[j]]
    largest_first(doubled, len(group.step) - 1, group.order, group.taken)
    for j in range(n):
        group.logits[j] = doubled[group.order[j]]
        group.order[j] = labels[group.order[j]]
    factored = scale(group)
    fill(factored, group)
    return factored


@inner
def weigh_counts(bias, true, false, law):
    """law[a, b] = what multiplies true.table's a and false.table's b to make P(tp = a, fp = b).

    Returns the log-sum of all weights.
    """
    log_true = np.log(true.table[len(true.order)])
    log_false = np.log(false.table[len(false.order)])
    high, mass = -np.inf, 0.0
    for a in range(law.shape[0]):
        for b in range(law.shape[1]):
            law[a, b] = -np.inf
            if a + b < len(bias) and bias[a + b] > -np.inf:
                law[a, b] = bias[a + b] + true.offset[a] + false.offset[b]
                high = max(high, law[a, b] + log_true[a] + log_false[b])
    for a in range(law.shape[0]):
        for b in range(law.shape[1]):
            if law[a, b] > -np.inf:
                mass += exp(law[a, b] + log_true[a] + log_false[b] - high)
    norm = high + np.log(mass)
    for a in range(law.shape[0]):
        for b in range(law.shape[1]):
            law[a, b] = exp(law[a, b] - norm) if law[a, b] > -np.inf else 0.0
    return norm


@kernel
def count_rows(
    start, stop, rows, scores, y_true, n_true, bias, values,
    log_partition, value, on, off, by_size, true, false,
):  # fmt: skip
    """E[u] (n,), E[u; label on] and E[u; label off] (n, l) and E[u; size] (n, K + 1).

    Of the given ``rows`` of scores and y_true, which have ``n_true`` true labels each.
    ``values[tp, fp]`` is u; an empty ``bias`` means independent labels (the cube).
    """
    independent, n_labels = len(bias) == 0, scores.shape[1]
    top_true, top_false = values.shape[0] - 1, values.shape[1] - 1
    by_true, by_false = np.empty(top_true + 1), np.empty(top_false + 1)
    law = np.ones(values.shape)
    for place in range(start, stop):
        row = rows[place]
        line, y = scores[row], y_true[row]
        factored_true = fill_group(np.flatnonzero(y), line, independent, true)
        factored_false = fill_group(np.flatnonzero(y == 0), line, independent, false)
        last_true, last_false = true.table[n_true], false.table[n_labels - n_true]
        if not independent:
            log_partition[row] = weigh_counts(bias, true, false, law) - line.sum()
        total = 0.0
        by_true[:], by_false[:] = 0.0, 0.0
        for a in range(top_true + 1):
            for b in range(top_false + 1):
                part = law[a, b] * values[a, b]
                both = part * last_true[a] * last_false[b]
                total += both
                if a + b < len(bias):
                    by_size[row, a + b] += both
                by_true[a] += part * last_false[b]
                by_false[b] += part * last_true[a]
        value[row] = total
        sweep(factored_true, true, by_true, on[row], off[row])
        sweep(factored_false, false, by_false, on[row], off[row])
