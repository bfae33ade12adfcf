"""Expectations of any function of the confusion counts: the joint law of tp and fp.

True and false labels are two groups. The weight of tp = a, fp = b is the symmetric polynomial of
degree a of the true labels times that of degree b of the false ones times what the space adds for
the size a + b. The function is contracted with that law; a reverse sweep through each group's
table gives the joint mean of the function and each label. O(l K) a row, O(l^2) on the cube.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise.kernels import exp, kernel
from setwise.spaces.cube import Cube
from setwise.spaces.expectation import Mean
from setwise.spaces.sized import Sized
from setwise.spaces.symmetric import fill, largest_first, ratios, scale, step_back, weigh
from setwise.targets.measure import Array, Counts, Equality, Fraction, Of
from setwise.targets.target import Target
from setwise.threads import for_rows


@dataclass(frozen=True)
class CountMean:
    """Targets that are functions of the counts, on Cube and Sized spaces."""

    target: Target
    space: Cube | Sized

    def mean(self, scores: Array, y_true: Array, of: Of, parameters: bool = True) -> Mean:
        """Contract the law of (tp, fp) with the table of the measure, one n_true at a time."""
        n, n_labels = scores.shape
        measure = self.target.measure(n_labels, of)
        assert isinstance(measure, Equality | Fraction | Counts)
        bias = getattr(self.space, "bias", np.empty(0))
        largest = len(bias) - 1 if len(bias) else n_labels
        log_partition, value, by_size = np.empty(n), np.empty(n), np.zeros((n, len(bias)))
        on, off = np.empty((n, n_labels)), np.empty((n, n_labels))
        n_true = y_true.sum(axis=1, dtype=np.int64)
        for positives in np.unique(n_true):
            rows = np.flatnonzero(n_true == positives)
            tp = np.arange(min(positives, largest) + 1.0)[:, None]
            fp = np.arange(min(n_labels - positives, largest) + 1.0)[None, :]
            table = measure.of_counts(tp, fp, positives - tp, n_labels - positives - fp)
            for_rows(
                count_rows, len(rows), rows, scores, y_true, bias, np.array(table),
                log_partition, value, on, off, by_size, least=8,
            )  # fmt: skip
        if isinstance(self.space, Cube):
            log_partition = self.space.mean_scores(scores)[0]
        return Mean(log_partition, value, on - off, by_size)

    def on(self, space: Cube | Sized) -> CountMean:
        """The same target on another space."""
        return CountMean(self.target, space)


@kernel
def group(labels, scores, independent, largest, logits, offset, keep, weight, step, ratio, table):
    """Fill the table of one group of labels, sorting them; returns whether ratios are factors."""
    n = len(labels)
    if independent:
        for j in range(n):
            size = exp(-abs(2.0 * scores[labels[j]]))
            likely, unlikely = 1.0 / (1.0 + size), size / (1.0 + size)
            positive = scores[labels[j]] >= 0
            weight[j] = likely if positive else unlikely
            keep[j] = unlikely if positive else likely
        step[:] = 1.0
        offset[:] = 0.0
        factored = True
    else:
        order = np.empty(n, dtype=np.int64)
        doubled = np.empty(n)
        for j in range(n):
            doubled[j] = 2.0 * scores[labels[j]]
        largest_first(doubled, largest, order)
        labels[:] = labels[order]
        for j in range(n):
            logits[j] = doubled[order[j]]
        keep[:] = 1.0
        factored = scale(logits[:n], largest, offset, weight, step)
    fill(n, largest, factored, keep, weight, step, ratio, table)
    return factored


@kernel
def sweep(row, labels, factored, largest, keep, weight, step, ratio, table, adjoint, on, off):
    """Reverse sweep: on[row, i] and off[row, i] from the adjoint of the group's last line."""
    for j in range(len(labels) - 1, -1, -1):
        top = min(j + 1, largest)
        ratios(j, top, factored, weight, step, ratio)
        present, absent = weigh(j, top, ratio, table, adjoint)
        on[row, labels[j]] = present
        off[row, labels[j]] = keep[j] * absent
        step_back(top, keep[j], ratio, adjoint)


@kernel
def count_rows(
    start, stop, rows, scores, y_true, bias, values, log_partition, value, on, off, by_size
):
    """E[u], E[u; label on], E[u; label off] and E[u; size] of rows with the same number true.

    ``values[tp, fp]``; an empty ``bias`` means independent labels (the cube).
    """
    n_labels = scores.shape[1]
    top_true, top_false = values.shape[0] - 1, values.shape[1] - 1
    independent = len(bias) == 0
    width = max(top_true, top_false) + 1
    logits, keep_t, keep_f = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    weight_t, weight_f = np.empty(n_labels), np.empty(n_labels)
    offset_t, offset_f, step_t, step_f = (
        np.zeros(width), np.zeros(width), np.zeros(width), np.zeros(width),
    )  # fmt: skip
    ratio, adjoint_t, adjoint_f = np.empty(width), np.empty(width), np.empty(width)
    law = np.empty(values.shape)
    n_true = 0
    for i in range(n_labels):
        n_true += y_true[rows[start], i] if stop > start else 0
    table_t = np.empty((n_true + 1, top_true + 1))
    table_f = np.empty((n_labels - n_true + 1, top_false + 1))
    for place in range(start, stop):
        row = rows[place]
        true, false = np.flatnonzero(y_true[row]), np.flatnonzero(y_true[row] == 0)
        factored_t = group(
            true, scores[row], independent, top_true,
            logits, offset_t, keep_t, weight_t, step_t, ratio, table_t,
        )  # fmt: skip
        factored_f = group(
            false, scores[row], independent, top_false,
            logits, offset_f, keep_f, weight_f, step_f, ratio, table_f,
        )  # fmt: skip
        last_t, last_f = table_t[len(true)], table_f[len(false)]
        # law[a, b]: what multiplies last_t[a] * last_f[b] to make P(tp = a, fp = b).
        if independent:
            law[:] = 1.0
        else:
            high = -np.inf
            for a in range(top_true + 1):
                for b in range(top_false + 1):
                    law[a, b] = -np.inf
                    if a + b < len(bias) and bias[a + b] > -np.inf:
                        law[a, b] = bias[a + b] + offset_t[a] + offset_f[b]
                        whole = law[a, b] + np.log(last_t[a]) + np.log(last_f[b])
                        high = max(high, whole)
            mass = 0.0
            for a in range(top_true + 1):
                log_t = np.log(last_t[a])
                for b in range(top_false + 1):
                    if law[a, b] > -np.inf:
                        mass += exp(law[a, b] + log_t + np.log(last_f[b]) - high)
            log_partition[row] = high + np.log(mass) - scores[row].sum()
            norm = high + np.log(mass)
            for a in range(top_true + 1):
                for b in range(top_false + 1):
                    law[a, b] = exp(law[a, b] - norm) if law[a, b] > -np.inf else 0.0
            for k in range(len(bias)):
                by_size[row, k] = 0.0
        total = 0.0
        adjoint_t[:] = 0.0
        adjoint_f[:] = 0.0
        for a in range(top_true + 1):
            for b in range(top_false + 1):
                part = law[a, b] * values[a, b]
                both = part * last_t[a] * last_f[b]
                total += both
                if not independent and a + b < len(bias):
                    by_size[row, a + b] += both
                adjoint_t[a] += part * last_f[b]
                adjoint_f[b] += part * last_t[a]
        value[row] = total
        sweep(row, true, factored_t, top_true, keep_t, weight_t, step_t, ratio, table_t,
              adjoint_t, on, off)  # fmt: skip
        sweep(row, false, factored_f, top_false, keep_f, weight_f, step_f, ratio, table_f,
              adjoint_f, on, off)  # fmt: skip
