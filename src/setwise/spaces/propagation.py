"""Sum-product on a forest of labels: two passes, O(l) a row.

The paper computes its gradient by two shortest-distance passes over a weighted automaton with two
arcs from each state to the next. That automaton is a chain of labels; `collect` and `distribute`
are the same passes on any forest, with a 2x2 table of weights on each edge. Eight rows go through
together so that the processor works on vectors.

``order`` lists parents before their children. All weights are logarithms.
"""

import numpy as np

from setwise.elementary import exp, kernel
from setwise.semirings import log_plus, max_plus

WIDTH = 8


def _collect_with(plus):
    """The pass from the leaves to the roots, summing with ``plus``."""

    @kernel
    def collect(scores, first, order, parents, potentials, up, message):
        """Fill up[i, state] and message[i, parent state]; return log-sums of the rows.

        up[i, s] is the log-sum over the subtree of i with i in state s, less a number common to
        both states; message[i, s] the log-sum over the subtree with i's parent in state s. A
        score of +-inf fixes its label and adds nothing itself; if no set is left the sum is -inf.
        """
        n_labels = len(order)
        width = min(WIDTH, len(scores) - first)
        total = np.zeros(WIDTH)
        for i in range(n_labels):
            for b in range(WIDTH):
                score = np.float64(scores[first + b, i]) if b < width else 0.0
                fixed = abs(score) == np.inf
                up[i, 0, b] = min(-score, 0.0) if fixed else -score
                up[i, 1, b] = min(score, 0.0) if fixed else score
        for position in range(n_labels - 1, -1, -1):
            i = order[position]
            parent = parents[i]
            for b in range(WIDTH):
                high = up[i, 0, b] if up[i, 0, b] > up[i, 1, b] else up[i, 1, b]
                total[b] += high
                high = high if high > -np.inf else 0.0
                up[i, 0, b] -= high
                up[i, 1, b] -= high
            if parent < 0:
                for b in range(WIDTH):
                    message[i, 0, b] = plus(up[i, 0, b], up[i, 1, b])
                    total[b] += message[i, 0, b]
            else:
                for s in range(2):
                    absent, present = potentials[i, 0, s], potentials[i, 1, s]
                    for b in range(WIDTH):
                        message[i, s, b] = plus(up[i, 0, b] + absent, up[i, 1, b] + present)
                        up[parent, s, b] += message[i, s, b]
        return total

    return collect


collect_log = _collect_with(log_plus)
collect_max = _collect_with(max_plus)


@kernel
def log_partition_rows(start, stop, scores, order, parents, potentials, out):
    """The log-partition function of each row."""
    up = np.empty((len(order), 2, WIDTH))
    message = np.empty((len(order), 2, WIDTH))
    for first in range(start, stop, WIDTH):
        total = collect_log(scores[:stop], first, order, parents, potentials, up, message)
        for b in range(min(WIDTH, stop - first)):
            out[first + b] = total[b]


@kernel
def log_probability_rows(start, stop, scores, order, parents, potentials, sets, out):
    """log s(y') of one set a row: the sum of log P(label's state | parent's state).

    Each term is -log(1 + e^gap) with the gap of the other state's weight to this one's, so a
    probability near 1 has a logarithm that is accurate relative to itself.
    """
    up = np.empty((len(order), 2, WIDTH))
    message = np.empty((len(order), 2, WIDTH))
    for first in range(start, stop, WIDTH):
        collect_log(scores[:stop], first, order, parents, potentials, up, message)
        for row in range(first, min(first + WIDTH, stop)):
            b = row - first
            out[row] = 0.0
            for i in order:
                a = sets[row, i]
                this, other = up[i, a, b], up[i, 1 - a, b]
                if parents[i] >= 0:
                    this += potentials[i, a, sets[row, parents[i]]]
                    other += potentials[i, 1 - a, sets[row, parents[i]]]
                out[row] -= log_plus(0.0, other - this) if this > -np.inf else np.inf


@kernel
def most_likely_rows(start, stop, scores, order, parents, potentials, out):
    """The most likely set of each row; on a tie a label is left out, parents decided first."""
    up = np.empty((len(order), 2, WIDTH))
    message = np.empty((len(order), 2, WIDTH))
    for first in range(start, stop, WIDTH):
        collect_max(scores[:stop], first, order, parents, potentials, up, message)
        for i in order:
            for b in range(min(WIDTH, stop - first)):
                absent, present = up[i, 0, b], up[i, 1, b]
                if parents[i] >= 0:
                    s = out[first + b, parents[i]]
                    absent += potentials[i, 0, s]
                    present += potentials[i, 1, s]
                out[first + b, i] = present > absent


@kernel
def condition(i, is_root, potentials, up, message, given):
    """given[a, s] = P(label i in state a | its parent in state s); a root has no parent."""
    for a in range(2):
        for s in range(2):
            extra = 0.0 if is_root else potentials[i, a, s]
            for b in range(WIDTH):
                below = message[i, 0, b] if is_root else message[i, s, b]
                gap = up[i, a, b] + extra - below
                possible = up[i, a, b] + extra > -np.inf
                given[a, s, b] = exp(gap) if possible else 0.0


@kernel
def moments_rows(
    start, stop, scores, order, parents, potentials, on_value, off_value,
    log_partition, on, off, pairs, total, total_on, total_off, total_pairs,
):  # fmt: skip
    """Marginals of labels and edges and, where asked for, moments of N = sum of label values.

    ``on_value`` has no rows if N is not asked for; ``pairs`` has none if edges are not. With
    value_i(a) what label i adds to N in state a, and c(a|s) = P(i in state a | parent in s):

        below_i(a) = value_i(a) + sum over children of sum_a' c(a'|a) below_child(a')
        joint_i(a) = E[N; i in state a]
                   = sum_s c(a|s) (joint_p(s) - P_p(s) sum_a' c(a'|s) below_i(a')
                                   + P_p(s) below_i(a))

    Nothing in it is larger than E[N], so it is accurate relative to E[N].
    """
    n_labels = len(order)
    wants_total, wants_pairs = len(on_value) > 0, len(pairs) > 0
    up = np.empty((n_labels, 2, WIDTH))
    message = np.empty((n_labels, 2, WIDTH))
    given = np.empty((n_labels, 2, 2, WIDTH))
    state = np.empty((n_labels, 2, WIDTH))
    below = np.zeros((n_labels, 2, WIDTH))
    joint = np.zeros((n_labels, 2, WIDTH))
    for first in range(start, stop, WIDTH):
        width = min(WIDTH, stop - first)
        sums = collect_log(scores[:stop], first, order, parents, potentials, up, message)
        for b in range(width):
            log_partition[first + b] = sums[b]
        for i in range(n_labels):
            condition(i, parents[i] < 0, potentials, up, message, given[i])
        if wants_total:
            for i in range(n_labels):
                for b in range(WIDTH):
                    below[i, 0, b] = off_value[first + b, i] if b < width else 0.0
                    below[i, 1, b] = on_value[first + b, i] if b < width else 0.0
            for position in range(n_labels - 1, -1, -1):
                i = order[position]
                if parents[i] >= 0:
                    for s in range(2):
                        for b in range(WIDTH):
                            below[parents[i], s, b] += (
                                given[i, 0, s, b] * below[i, 0, b]
                                + given[i, 1, s, b] * below[i, 1, b]
                            )
            for b in range(width):
                total[first + b] = 0.0
        for i in order:
            parent = parents[i]
            for a in range(2):
                for b in range(WIDTH):
                    if parent < 0:
                        state[i, a, b] = given[i, a, 0, b]
                    else:
                        state[i, a, b] = (
                            state[parent, 0, b] * given[i, a, 0, b]
                            + state[parent, 1, b] * given[i, a, 1, b]
                        )
            for b in range(width):
                on[first + b, i] = state[i, 1, b]
                off[first + b, i] = state[i, 0, b]
            if wants_pairs and parent >= 0:
                for a in range(2):
                    for s in range(2):
                        for b in range(width):
                            pairs[first + b, i, a, s] = state[parent, s, b] * given[i, a, s, b]
        if wants_total:
            for i in order:
                if parents[i] < 0:
                    for b in range(width):
                        total[first + b] += (
                            state[i, 0, b] * below[i, 0, b] + state[i, 1, b] * below[i, 1, b]
                        )
            for i in order:
                parent = parents[i]
                for b in range(WIDTH):
                    if parent < 0:
                        own = state[i, 0, b] * below[i, 0, b] + state[i, 1, b] * below[i, 1, b]
                        rest = total[first + b] - own if b < width else 0.0
                        joint[i, 0, b] = state[i, 0, b] * (rest + below[i, 0, b])
                        joint[i, 1, b] = state[i, 1, b] * (rest + below[i, 1, b])
                    else:
                        joint[i, 0, b] = 0.0
                        joint[i, 1, b] = 0.0
                        for s in range(2):
                            weight = state[parent, s, b]
                            from_i = (
                                given[i, 0, s, b] * below[i, 0, b]
                                + given[i, 1, s, b] * below[i, 1, b]
                            )
                            for a in range(2):
                                part = given[i, a, s, b] * (
                                    joint[parent, s, b] + weight * (below[i, a, b] - from_i)
                                )
                                joint[i, a, b] += part
                                if wants_pairs and b < width:
                                    total_pairs[first + b, i, a, s] = part
                for b in range(width):
                    total_on[first + b, i] = joint[i, 1, b]
                    total_off[first + b, i] = joint[i, 0, b]
