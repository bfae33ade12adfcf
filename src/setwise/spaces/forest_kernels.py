"""Sum-product on a forest of labels: two passes, O(l) a row.

The paper computes its gradient by two shortest-distance passes over a weighted automaton with two
arcs from each state to the next. That automaton is a chain of labels; `collect` and what follows it
are the same passes on any forest, with a 2x2 table of weights on each edge. Some rows go through
together, as the lanes of a vector: what belongs to a label is a vector with one entry for each of
these rows, and the small functions at the top are loops over lanes that the compiler vectorises.
All weights are logarithms.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from setwise.kernels import exp, kernel
from setwise.semirings import log_plus, max_plus

LANES = 16


class Tree(NamedTuple):
    """A forest and what its edges add."""

    order: np.ndarray  # (l,): the labels, parents before their children
    parents: np.ndarray  # (l,): -1 for a root
    potentials: np.ndarray  # (l, 2, 2): [label, its state, its parent's state]


class Room(NamedTuple):
    """What the passes leave behind for the rows of all lanes."""

    up: np.ndarray  # (l, 2, LANES): log-sum over the subtree of a label in each state
    message: np.ndarray  # (l, 2, LANES): and with its parent in each state
    given: np.ndarray  # (l, 2, 2, LANES): P(label in state a | its parent in state s)
    state: np.ndarray  # (l, 2, LANES): P(label in state a)
    total: np.ndarray  # (LANES,): log-partition


@register_jitable
def room_of(n_labels, conditioned):
    """Room for one group of rows; ``given`` and ``state`` only where they are wanted."""
    n = n_labels if conditioned else 0
    return Room(
        np.empty((n_labels, 2, LANES)), np.empty((n_labels, 2, LANES)),
        np.empty((n, 2, 2, LANES)), np.empty((n, 2, LANES)), np.empty(LANES),
    )  # fmt: skip


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


@register_jitable
def add_share(chance, around, weight, inside, own, whole):
    """whole += chance * (around + weight * (inside - own))."""
    for b in range(len(whole)):
        whole[b] += chance[b] * (around[b] + weight[b] * (inside[b] - own[b]))


def _collect_with(plus):
    """The pass from the leaves to the roots, summing with ``plus``."""

    @register_jitable
    def send(absent, present, extra_absent, extra_present, message, onward):
        for b in range(len(message)):
            message[b] = plus(absent[b] + extra_absent, present[b] + extra_present)
            onward[b] += message[b]

    @kernel
    def collect(scores, first, tree, room):
        """Fill ``up``, ``message`` and ``total``, the log-sum of each row.

        ``up`` is less a number common to both states. If the fixed labels leave no set, the total
        is -inf.
        """
        order, parents, potentials = tree
        up, message, total = room.up, room.message, room.total
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
def pass_rows(scores, first, tree, room):
    """Both passes: ``given`` from the leaves to the roots, ``state`` from the roots to the leaves.

    A root's parent is nobody: both columns of ``given`` are its own law.
    """
    collect_log(scores, first, tree, room)
    order, parents, potentials = tree
    up, message, given, state = room.up, room.message, room.given, room.state
    for i in order:
        for a in range(2):
            for s in range(2):
                if parents[i] < 0:
                    given_parent(up[i, a], 0.0, message[i, 0], given[i, a, s])
                else:
                    given_parent(up[i, a], potentials[i, a, s], message[i, s], given[i, a, s])
    for i in order:
        for a in range(2):
            if parents[i] < 0:
                state[i, a, :] = given[i, a, 0]
            else:
                above = state[parents[i]]
                mix(above[0], above[1], given[i, a, 0], given[i, a, 1], state[i, a])


@kernel
def log_partition_rows(start, stop, scores, tree, out):
    """The log-partition function of each row, (n,)."""
    room = room_of(len(tree.order), False)
    for first in range(start, stop, LANES):
        collect_log(scores[:stop], first, tree, room)
        for row in range(first, min(first + LANES, stop)):
            out[row] = room.total[row - first]


@kernel
def most_likely_rows(start, stop, scores, tree, out):
    """The most likely set of each row (n, l); parents are decided first, a tie leaves out."""
    room = room_of(len(tree.order), False)
    for first in range(start, stop, LANES):
        collect_max(scores[:stop], first, tree, room)
        for i in tree.order:
            parent = tree.parents[i]
            for row in range(first, min(first + LANES, stop)):
                absent, present = room.up[i, 0, row - first], room.up[i, 1, row - first]
                if parent >= 0:
                    absent += tree.potentials[i, 0, out[row, parent]]
                    present += tree.potentials[i, 1, out[row, parent]]
                out[row, i] = present > absent


@kernel
def moments_rows(start, stop, scores, tree, log_partition, on, off, pairs):
    """Marginals of labels (n, l) and, unless ``pairs`` (n, l, 2, 2) has no rows, of edges."""
    room = room_of(len(tree.order), True)
    for first in range(start, stop, LANES):
        pass_rows(scores[:stop], first, tree, room)
        store(first, stop, tree.parents, room, log_partition, on, off, pairs)


@kernel
def store(first, stop, parents, room, log_partition, on, off, pairs):
    """Copy the marginals of the lanes to their rows."""
    given, state = room.given, room.state
    for row in range(first, min(first + LANES, stop)):
        b = row - first
        log_partition[row] = room.total[b]
        for i in range(len(parents)):
            on[row, i] = state[i, 1, b]
            off[row, i] = state[i, 0, b]
        if len(pairs) > 0:
            for i in range(len(parents)):
                if parents[i] >= 0:
                    for a in range(2):
                        for s in range(2):
                            pairs[row, i, a, s] = state[parents[i], s, b] * given[i, a, s, b]


@register_jitable
def surprise(i, b, true, above, is_root, potentials, up):
    """-log P(label i in its true state | its parent in the state ``above``), of lane b.

    It is log(1 + e^gap) with the gap of the other state's weight to this one's: accurate relative
    to itself where the probability is near 1.
    """
    this, other = up[i, true, b], up[i, 1 - true, b]
    if not is_root:
        this += potentials[i, true, above]
        other += potentials[i, 1 - true, above]
    return log_plus(0.0, other - this) if this > -np.inf else np.inf


@kernel
def likelihood_rows(start, stop, scores, sets, tree, value, by_score, by_pair):
    """-log s(y) of one set a row (n,), E[y'] - y (n, l) and, if it has rows, that by potentials.

    A set outside the support has the value inf. Gradients are probabilities of the other states,
    accurate where they are small.
    """
    (order, parents, potentials), room = tree, room_of(len(tree.order), True)
    up, state = room.up, room.state
    for first in range(start, stop, LANES):
        pass_rows(scores[:stop], first, tree, room)
        for row in range(first, min(first + LANES, stop)):
            b, y, total = row - first, sets[row], 0.0
            for i in range(len(order)):
                above, is_root = y[parents[i]], parents[i] < 0
                total += surprise(i, b, y[i], above, is_root, potentials, up)
                by_score[row, i] = -2.0 * state[i, 0, b] if y[i] == 1 else 2.0 * state[i, 1, b]
            value[row] = total
        if len(by_pair) > 0:
            write_pair_slopes(first, stop, sets, tree, room, by_pair)


@kernel
def write_pair_slopes(first, stop, sets, tree, room, by_pair):
    """P(edge in a state) less 1 at its true state, there as minus the sum of the others."""
    given, state, parents = room.given, room.state, tree.parents
    for row in range(first, min(first + LANES, stop)):
        b = row - first
        for i in range(len(parents)):
            out = by_pair[row, i]
            out[:] = 0.0
            if parents[i] < 0:
                continue
            true, above, others = sets[row, i], sets[row, parents[i]], 0.0
            for a in range(2):
                for s in range(2):
                    if a != true or s != above:
                        out[a, s] = state[parents[i], s, b] * given[i, a, s, b]
                        others += out[a, s]
            out[true, above] = -others


@kernel
def sum_moments_rows(
    start, stop, scores, tree, on_value, off_value,
    log_partition, on, off, pairs, total, total_on, total_off, total_pairs,
):  # fmt: skip
    """Marginals, and the moments of N = sum of what each label adds in its state.

    With value_i(a) what label i adds in state a, and c(a|s) = P(i in state a | parent in s):

        below_i(a) = value_i(a) + sum over children of sum_a' c(a'|a) below_child(a')
        joint_i(a) = E[N; i in state a]
                   = sum_s c(a|s) (joint_p(s) + P_p(s) (below_i(a) - sum_a' c(a'|s) below_i(a')))

    Nothing in it is larger than E[N], so it is accurate relative to E[N]. Shapes are those of
    `moments_rows`; ``total`` (n,).
    """
    order, parents, n_labels = tree.order, tree.parents, len(tree.order)
    room = room_of(n_labels, True)
    given, state = room.given, room.state
    below, joint = np.empty((n_labels, 2, LANES)), np.empty((n_labels, 2, LANES))
    whole, certain, own = np.empty(LANES), np.ones(LANES), np.empty(LANES)
    for first in range(start, stop, LANES):
        rows = min(LANES, stop - first)
        pass_rows(scores[:stop], first, tree, room)
        store(first, stop, parents, room, log_partition, on, off, pairs)
        whole[:] = 0.0
        for i in range(n_labels):
            for b in range(LANES):
                below[i, 0, b] = off_value[first + b, i] if b < rows else 0.0
                below[i, 1, b] = on_value[first + b, i] if b < rows else 0.0
        for position in range(n_labels - 1, -1, -1):
            i = order[position]
            for s in range(2 if parents[i] >= 0 else 1):
                onward = below[parents[i], s] if parents[i] >= 0 else whole
                add_mix(below[i, 0], below[i, 1], given[i, 0, s], given[i, 1, s], onward)
        for i in order:
            has_parent = parents[i] >= 0
            joint[i] = 0.0
            for s in range(2 if has_parent else 1):
                around = joint[parents[i], s] if has_parent else whole
                weight = state[parents[i], s] if has_parent else certain
                mix(below[i, 0], below[i, 1], given[i, 0, s], given[i, 1, s], own)
                for a in range(2):
                    chance, inside = given[i, a, s], below[i, a]
                    add_share(chance, around, weight, inside, own, joint[i, a])
                    if len(pairs) > 0 and has_parent:
                        for b in range(rows):
                            share = around[b] + weight[b] * (inside[b] - own[b])
                            total_pairs[first + b, i, a, s] = chance[b] * share
        for b in range(rows):
            total[first + b] = whole[b]
            for i in range(n_labels):
                total_on[first + b, i] = joint[i, 1, b]
                total_off[first + b, i] = joint[i, 0, b]
