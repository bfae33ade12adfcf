"""The likelihood of one listed set a row, in one pass over the list.

z of a listed set is twice the sum of its labels' scores, plus its bias and a number common to all
sets; only its labels are touched. Sets are in compressed rows: those of set k are
labels[begins[k] : begins[k + 1]].
"""

import numpy as np

from setwise.kernels import exp, kernel


@kernel
def likelihood_rows(
    start, stop, scores, begins, labels, bias, place, value, by_score, by_set,
):  # fmt: skip
    """-log s(y) (n,), its gradient by the scores (n, l) and, if it has rows, by the biases (n, K).

    ``place`` (n,) says where in the list y stands. The true set is kept apart from the others: what
    they weigh together is what y lacks of probability 1, also where that is small.
    """
    n_sets = len(bias)
    weight = np.empty(n_sets)
    for row in range(start, stop):
        line, out, true = scores[row], by_score[row], place[row]
        high = -np.inf
        for k in range(n_sets):
            z = bias[k]
            for position in range(begins[k], begins[k + 1]):
                z += 2.0 * np.float64(line[labels[position]])
            weight[k] = z
            high = max(high, z)
        here = weight[true]
        weight[true] = -np.inf
        others = 0.0
        for k in range(n_sets):
            weight[k] = exp(weight[k] - high) if weight[k] > -np.inf else 0.0
            others += weight[k]
        own = exp(here - high) if here - high > -700.0 else 0.0
        value[row] = np.log1p(others / own) if others < own else np.log(own + others) + high - here
        share = 1.0 / (own + others)
        out[:] = 0.0
        for k in range(n_sets):
            weight[k] *= share
            for position in range(begins[k], begins[k + 1]):
                out[labels[position]] += 2.0 * weight[k]
        weight[true] = -others * share
        for position in range(begins[true], begins[true + 1]):
            out[labels[position]] += 2.0 * weight[true]
        if len(by_set) > 0:
            by_set[row] = weight
