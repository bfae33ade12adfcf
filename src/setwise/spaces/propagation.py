"""Sum-product on a forest of labels: two passes, O(l) a row.

The paper computes its gradient by two shortest-distance passes over a weighted automaton with two
arcs from each state to the next. That automaton is a chain of labels; `collect` and what follows it
are the same passes on any forest, with a 2x2 table of weights on each edge. Some rows go through
together, as the lanes of a vector: what belongs to a label is a vector with one entry for each of
these rows, and the small functions at the top are loops over lanes that the compiler vectorises.

``order`` lists parents before their children. All weights are logarithms.
"""

import numpy as np
from numba.extending import register_jitable

from setwise.kernels import exp, kernel
from setwise.semirings import log_plus, max_plus

LANES = 16


@register_jitable
def load(scores, first, label, absent, present):
    """Start a label with the weight of its own score; +-inf fixes the label and adds nothing."""
    for b in range(len(absent)):
        score = np.float64(scores[first + b, label]) if first + b < len(scores) else 0.0
        is_fixed = abs(score) == np.inf
        absent[b] = min(-score, 0.0) if is_fixed else -score
        present[b] = min(score, 0.0) if is_fixed else score


@register_jitable
def normalise(absent, present, total):
    """Take the larger of the two states' weights out into the total, so that sums stay small."""
    for b in range(len(total)):
        high = absent[b] if absent[b] > present[b] else present[b]
        total[b] += high
        high = high if high > -np.inf else 0.0
        absent[b] -= high
        present[b] -= high


@register_jitable
def given_parent(state, extra, message, probability):
    """P(label in a state | its parent's state) = e^(weight - message), 0 if impossible."""
    for b in range(len(state)):
        weight = state[b] + extra
        chance = exp(weight - message[b])
        probability[b] = chance if weight > -np.inf else 0.0


@register_jitable
def mix(first, second, weight_first, weight_second, out):
    """out = first * weight_first + second * weight_second."""
    for b in range(len(out)):
        out[b] = first[b] * weight_first[b] + second[b] * weight_second[b]


@register_jitable
def add_mix(first, second, weight_first, weight_second, out):
    """out += first * weight_first + second * weight_second."""
    for b in range(len(out)):
        out[b] += first[b] * weight_first[b] + second[b] * weight_second[b]


def _collect_with(plus):
    """The pass from the leaves to the roots, summing with ``plus``."""

    @register_jitable
    def send(absent, present, extra_absent, extra_present, message, onward):
        for b in range(len(message)):
            message[b] = plus(absent[b] + extra_absent, present[b] + extra_present)
            onward[b] += message[b]

    @kernel
    def collect(scores, first, order, parents, potentials, up, message, total):
        """Fill up[i, state] and message[i, parent state] and the log-sum of each row in ``total``.

        up[i, s] is the log-sum over the subtree of i with i in state s, less a number common to
        both states; message[i, s] the log-sum over the subtree with i's parent in state s. If the
        fixed labels leave no set, the total is -inf.
        """
        total[:] = 0.0
        for i in range(len(order)):
            load(scores, first, i, up[i, 0], up[i, 1])
        for position in range(len(order) - 1, -1, -1):
            i = order[position]
            absent, present = up[i, 0], up[i, 1]
            normalise(absent, present, total)
            if parents[i] < 0:
                send(absent, present, 0.0, 0.0, message[i, 0], total)
            else:
                for s in range(2):
                    extra_absent, extra_present = potentials[i, 0, s], potentials[i, 1, s]
                    onward = up[parents[i], s]
                    send(absent, present, extra_absent, extra_present, message[i, s], onward)

    return collect


collect_log = _collect_with(log_plus)
collect_max = _collect_with(max_plus)


@kernel
def log_partition_rows(start, stop, scores, order, parents, potentials, out):
    """The log-partition function of each row."""
    up, message = np.empty((len(order), 2, LANES)), np.empty((len(order), 2, LANES))
    total = np.empty(LANES)
    for first in range(start, stop, LANES):
        collect_log(scores[:stop], first, order, parents, potentials, up, message, total)
        for row in range(first, min(first + LANES, stop)):
            out[row] = total[row - first]


@kernel
def log_probability_rows(start, stop, scores, order, parents, potentials, sets, out):
    """log s(y') of one set a row: the sum of log P(label's state | parent's state).

    Each term is -log(1 + e^gap) with the gap of the other state's weight to this one's, so a
    probability near 1 has a logarithm that is accurate relative to itself.
    """
    up, message = np.empty((len(order), 2, LANES)), np.empty((len(order), 2, LANES))
    total = np.empty(LANES)
    for first in range(start, stop, LANES):
        collect_log(scores[:stop], first, order, parents, potentials, up, message, total)
        for row in range(first, min(first + LANES, stop)):
            out[row] = 0.0
            for i in order:
                a = sets[row, i]
                this, other = up[i, a, row - first], up[i, 1 - a, row - first]
                if parents[i] >= 0:
                    this += potentials[i, a, sets[row, parents[i]]]
                    other += potentials[i, 1 - a, sets[row, parents[i]]]
                out[row] -= log_plus(0.0, other - this) if this > -np.inf else np.inf


@kernel
def most_likely_rows(start, stop, scores, order, parents, potentials, out):
    """The most likely set of each row; on a tie a label is left out, parents decided first."""
    up, message = np.empty((len(order), 2, LANES)), np.empty((len(order), 2, LANES))
    total = np.empty(LANES)
    for first in range(start, stop, LANES):
        collect_max(scores[:stop], first, order, parents, potentials, up, message, total)
        for i in order:
            for row in range(first, min(first + LANES, stop)):
                absent, present = up[i, 0, row - first], up[i, 1, row - first]
                if parents[i] >= 0:
                    s = out[row, parents[i]]
                    absent += potentials[i, 0, s]
                    present += potentials[i, 1, s]
                out[row, i] = present > absent


@kernel
def condition(order, parents, potentials, up, message, given):
    """given[i, a, s] = P(label i in state a | its parent in state s); a root's parent is nobody."""
    for i in order:
        for a in range(2):
            for s in range(2):
                if parents[i] < 0:
                    given_parent(up[i, a], 0.0, message[i, 0], given[i, a, s])
                else:
                    given_parent(up[i, a], potentials[i, a, s], message[i, s], given[i, a, s])


@kernel
def distribute(order, parents, given, state):
    """state[i, a] = P(label i in state a), from the roots to the leaves."""
    for i in order:
        for a in range(2):
            if parents[i] < 0:
                state[i, a, :] = given[i, a, 0]
            else:
                above = state[parents[i]]
                mix(above[0], above[1], given[i, a, 0], given[i, a, 1], state[i, a])


@kernel
def moments_rows(
    start, stop, scores, order, parents, potentials,
    log_partition, on, off, pairs,
):  # fmt: skip
    """Marginals of labels and, unless ``pairs`` has no rows, of edges."""
    n_labels = len(order)
    up, message = np.empty((n_labels, 2, LANES)), np.empty((n_labels, 2, LANES))
    given, state = np.empty((n_labels, 2, 2, LANES)), np.empty((n_labels, 2, LANES))
    total = np.empty(LANES)
    for first in range(start, stop, LANES):
        collect_log(scores[:stop], first, order, parents, potentials, up, message, total)
        condition(order, parents, potentials, up, message, given)
        distribute(order, parents, given, state)
        store(first, stop, parents, given, state, on, off, pairs)
        for row in range(first, min(first + LANES, stop)):
            log_partition[row] = total[row - first]


@kernel
def store(first, stop, parents, given, state, on, off, pairs):
    """Copy the marginals of the lanes to their rows."""
    for row in range(first, min(first + LANES, stop)):
        b = row - first
        for i in range(len(parents)):
            on[row, i] = state[i, 1, b]
            off[row, i] = state[i, 0, b]
        if len(pairs) > 0:
            for i in range(len(parents)):
                if parents[i] >= 0:
                    for a in range(2):
                        for s in range(2):
                            pairs[row, i, a, s] = state[parents[i], s, b] * given[i, a, s, b]


@kernel
def sum_moments_rows(
    start, stop, scores, order, parents, potentials, on_value, off_value,
    log_partition, on, off, pairs, total, total_on, total_off, total_pairs,
):  # fmt: skip
    """Marginals, and the moments of N = sum of what each label adds in its state.

    With value_i(a) what label i adds in state a, and c(a|s) = P(i in state a | parent in s):

        below_i(a) = value_i(a) + sum over children of sum_a' c(a'|a) below_child(a')
        joint_i(a) = E[N; i in state a]
                   = sum_s c(a|s) (joint_p(s) + P_p(s) (below_i(a) - sum_a' c(a'|s) below_i(a')))

    Nothing in it is larger than E[N], so it is accurate relative to E[N].
    """
    n_labels = len(order)
    up, message = np.empty((n_labels, 2, LANES)), np.empty((n_labels, 2, LANES))
    given, state = np.empty((n_labels, 2, 2, LANES)), np.empty((n_labels, 2, LANES))
    below, joint = np.empty((n_labels, 2, LANES)), np.empty((n_labels, 2, LANES))
    sums, whole, own = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for first in range(start, stop, LANES):
        collect_log(scores[:stop], first, order, parents, potentials, up, message, sums)
        condition(order, parents, potentials, up, message, given)
        distribute(order, parents, given, state)
        store(first, stop, parents, given, state, on, off, pairs)
        for i in range(n_labels):
            for b in range(LANES):
                below[i, 0, b] = off_value[first + b, i] if first + b < stop else 0.0
                below[i, 1, b] = on_value[first + b, i] if first + b < stop else 0.0
        whole[:] = 0.0
        for position in range(n_labels - 1, -1, -1):
            i = order[position]
            absent, present = below[i, 0], below[i, 1]
            if parents[i] < 0:
                add_mix(absent, present, state[i, 0], state[i, 1], whole)
            else:
                for s in range(2):
                    add_mix(absent, present, given[i, 0, s], given[i, 1, s], below[parents[i], s])
        for i in order:
            absent, present = below[i, 0], below[i, 1]
            joint[i] = 0.0
            for s in range(2 if parents[i] >= 0 else 1):
                mix(absent, present, given[i, 0, s], given[i, 1, s], own)
                for a in range(2):
                    chance, inside, out = given[i, a, s], below[i, a], joint[i, a]
                    if parents[i] < 0:
                        for b in range(LANES):
                            out[b] += chance[b] * (whole[b] + inside[b] - own[b])
                    else:
                        around, weight = joint[parents[i], s], state[parents[i], s]
                        for b in range(LANES):
                            out[b] += chance[b] * (around[b] + weight[b] * (inside[b] - own[b]))
        for row in range(first, min(first + LANES, stop)):
            b = row - first
            log_partition[row], total[row] = sums[b], whole[b]
            for i in range(n_labels):
                total_on[row, i] = joint[i, 1, b]
                total_off[row, i] = joint[i, 0, b]
                if len(pairs) > 0 and parents[i] >= 0:
                    for s in range(2):
                        weight, around = state[parents[i], s, b], joint[parents[i], s, b]
                        here = (
                            given[i, 0, s, b] * below[i, 0, b] + given[i, 1, s, b] * below[i, 1, b]
                        )
                        for a in range(2):
                            total_pairs[row, i, a, s] = given[i, a, s, b] * (
                                around + weight * (below[i, a, b] - here)
                            )
