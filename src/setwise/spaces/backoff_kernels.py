"""The compiled pass of the space that backs off: from the likelihood of the base to its own."""

import numpy as np

from setwise.kernels import exp, kernel

# Rows that go through the list together, side by side: as many as arithmetic takes at a time.
LANES = 8


@kernel
def likelihood_rows(
    start, stop, scores, sets, place, own_bias, begins, columns, bias, lifts, value, by_score,
    share, extra, by_parameter,
):  # fmt: skip
    """From -log p(y) of the base to -log s(y), in ``value`` (n,), and so its gradient by scores.

    Listed set k has the labels columns[begins[k] : begins[k + 1]] and, in the base, ``bias``; y is
    at ``place`` of the list, or at -1, and has ``own_bias``. Out: the ``share`` of the base (n,)
    and, where they have rows, what the bonuses add to the probability of each set other than y,
    ``extra`` (n, K), and the gradient by the bonuses, the last of ``by_parameter`` (n, p). The true
    set is kept apart from the others: what they weigh together is what y lacks of probability 1,
    also where that is small. Rows whose set the base does not have, with a value of inf, stay.
    """
    n_labels, n_sets, (lift, gain, kept) = scores.shape[1], len(bias), lifts
    first = by_parameter.shape[1] - n_sets
    logit, slope = np.empty(n_labels * LANES), np.empty(n_labels * LANES)
    weight, line = np.empty(n_sets * LANES), np.empty(LANES)
    level, high, gained, least, scale = np.empty((5, LANES))
    for row in range(start, stop, LANES):
        # Lanes beyond the last row repeat it and are not written.
        for b in range(LANES):
            at = min(row + b, stop - 1)
            level[b] = -value[at] - own_bias[at] if value[at] < np.inf else -np.inf
            for i in range(n_labels):
                logit[i * LANES + b] = 2.0 * np.float64(scores[at, i])
                if sets[at, i] == 1:
                    level[b] -= logit[i * LANES + b]
        high[:] = gained[:] = least[:] = slope[:] = 0.0
        for k in range(n_sets):
            added = bias[k] + lift[k]
            for b in range(LANES):
                line[b] = level[b] + added
            for position in range(begins[k], begins[k + 1]):
                label = columns[position] * LANES
                for b in range(LANES):
                    line[b] += logit[label + b]
            for b in range(LANES):
                weight[k * LANES + b] = line[b]
                high[b] = max(high[b], line[b])
        for k in range(n_sets):
            for b in range(LANES):
                weight[k * LANES + b] -= high[b]
        # One long loop, which the compiler vectorises.
        for j in range(len(weight)):
            weight[j] = exp(weight[j])
        for b in range(min(LANES, stop - row)):
            if place[row + b] >= 0:
                weight[place[row + b] * LANES + b] = 0.0
        for k in range(n_sets):
            for b in range(LANES):
                gained[b] += weight[k * LANES + b] * gain[k]
                least[b] += weight[k * LANES + b] * kept[k]
        scale[:] = 0.0
        for b in range(min(LANES, stop - row)):
            lack, true = value[row + b], place[row + b]
            if lack == np.inf:
                continue
            others = max(gained[b] - exp(-high[b]) * np.expm1(-lack), least[b])
            own_log = -lack - high[b]
            if true >= 0:
                own_log += lift[true] + np.log(kept[true])
            own = exp(own_log) if own_log > -700.0 else 0.0
            small = others < own
            value[row + b] = np.log1p(others / own) if small else np.log(own + others) - own_log
            scale[b] = 1.0 / (own + others)
            share[row + b], least[b] = exp(-high[b]) * scale[b], others * scale[b]
        for k in range(n_sets):
            for b in range(LANES):
                weight[k * LANES + b] *= scale[b]
                line[b] = 2.0 * weight[k * LANES + b] * gain[k]
            for position in range(begins[k], begins[k + 1]):
                label = columns[position] * LANES
                for b in range(LANES):
                    slope[label + b] += line[b]
        for b in range(min(LANES, stop - row)):
            out, total = by_score[row + b], 2.0 * gained[b] * scale[b]
            for i in range(n_labels):
                lost = total if sets[row + b, i] == 1 else 0.0
                out[i] = share[row + b] * out[i] + (slope[i * LANES + b] - lost)
            if first >= 0:
                for k in range(n_sets):
                    extra[row + b, k] = weight[k * LANES + b] * gain[k]
                    by_parameter[row + b, first + k] = weight[k * LANES + b] * kept[k]
                if place[row + b] >= 0 and scale[b] > 0.0:
                    by_parameter[row + b, first + place[row + b]] = -least[b]
