"""Expectations of any function of the confusion counts: the joint law of tp and fp.

True and false labels are two groups. The weight of tp = a, fp = b is the symmetric polynomial of
degree a of the true labels times that of degree b of the false ones times what the space adds for
the size a + b. The function is contracted with that law; a reverse sweep through each group's
table gives the joint mean of the function and each label. O(l K) a row, O(l^2) on the cube.
"""

import numpy as np

from setwise.kernels import exp, kernel
from setwise.spaces.symmetric import fill, group_of, largest_first, scale, sweep
from setwise.targets.measure import Array
from setwise.threads import for_rows


def count_mean(measure, scores: Array, y_true: Array, bias: Array) -> tuple[Array, ...]:
    """A, E[u], E[u y'] and E[u; size] of a measure that is a function of the counts.

    ``bias`` (K + 1,) is what the space adds for each size; without any the labels are independent,
    and A is left out. One number of true labels at a time: the table of u is the same for all.
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
        )  # fmt: skip
    return log_partition, value, on - off, by_size


@kernel
def fill_group(labels, line, independent, group):
    """Fill the tables of the group of the given labels; returns whether ratios are factors."""
    n = len(labels)
    if independent:
        group.order[:] = labels
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
    largest_first(doubled, len(group.step) - 1, group.order)
    for j in range(n):
        group.logits[j] = doubled[group.order[j]]
        group.order[j] = labels[group.order[j]]
    factored = scale(group)
    fill(factored, group)
    return factored


@kernel
def weigh_counts(bias, true, false, law):
    """law[a, b] = what multiplies true.table's a and false.table's b to make P(tp = a, fp = b).

    Returns the log-sum of all weights.
    """
    last_true, last_false = true.table[len(true.order)], false.table[len(false.order)]
    high = -np.inf
    for a in range(law.shape[0]):
        for b in range(law.shape[1]):
            law[a, b] = -np.inf
            if a + b < len(bias) and bias[a + b] > -np.inf:
                law[a, b] = bias[a + b] + true.offset[a] + false.offset[b]
                high = max(high, law[a, b] + np.log(last_true[a]) + np.log(last_false[b]))
    mass = 0.0
    for a in range(law.shape[0]):
        log_true = np.log(last_true[a])
        for b in range(law.shape[1]):
            if law[a, b] > -np.inf:
                mass += exp(law[a, b] + log_true + np.log(last_false[b]) - high)
    norm = high + np.log(mass)
    for a in range(law.shape[0]):
        for b in range(law.shape[1]):
            law[a, b] = exp(law[a, b] - norm) if law[a, b] > -np.inf else 0.0
    return norm


@kernel
def count_rows(
    start, stop, rows, scores, y_true, n_true, bias, values,
    log_partition, value, on, off, by_size,
):  # fmt: skip
    """E[u] (n,), E[u; label on] and E[u; label off] (n, l) and E[u; size] (n, K + 1).

    Of the given ``rows`` of scores and y_true, which have ``n_true`` true labels each.
    ``values[tp, fp]`` is u; an empty ``bias`` means independent labels (the cube).
    """
    independent, n_labels = len(bias) == 0, scores.shape[1]
    top_true, top_false = values.shape[0] - 1, values.shape[1] - 1
    true, false = group_of(n_true, top_true), group_of(n_labels - n_true, top_false)
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
