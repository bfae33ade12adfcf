"""Sum-product on a forest of labels: two passes over its nodes, O(l) a row.

The paper computes its gradient by two shortest-distance passes over a weighted automaton with two
arcs from each state to the next. That automaton is a chain of labels; here are the same passes on
any forest, with a 2x2 table of weights on each edge. For label i and the state s of its parent,

    gap_i(s) = (weight of i present and all below it) - (weight of i absent and all below it),

both as logarithms, p_i(s) = sigmoid(gap_i(s)) the probability of i given s and r = 1 - p. Both come
from e^-|gap|, and either is accurate relative to itself. From the leaves to the roots a label sends
its parent log(e^absent + e^present) for each s; from the roots to the leaves P(i) follows from p.

Where sets are *closed* (a label brings its parent along) nothing is below an absent parent: p_i(0)
is 0, all weights are taken against the set without labels, and one exponential a label is enough.

Sums over labels: with what a label adds when present (on) and when absent (off), what the subtree
of i adds in the mean is

    V_i = on_i + sum over children (p_c(1) V_c + r_c(1) W_c)   if i is present,
    W_i = off_i + sum over children (p_c(0) V_c + r_c(0) W_c)  if it is absent.

Nothing in what follows from V and W is larger than the mean, so all is accurate relative to it.

Arrays of nodes are flat, (nodes * LANES,), see `nodes`.
"""

from typing import NamedTuple

import numpy as np

from setwise.kernels import copy_into, exp, inner, kernel, log1p_unit
from setwise.spaces.nodes import (
    GROUP,
    LANES,
    add_to_parents,
    add_up,
    of_group,
    of_parents,
    plus,
    read_rows,
    write_lanes,
    write_rows,
)

# Beyond this e^-|gap| is 0.
LARGEST_GAP = 708.0


class Tree(NamedTuple):
    """The nodes of a forest (m of them, the virtual root first) and what its edges add."""

    labels: np.ndarray  # (m,)
    above: np.ndarray  # (m,)
    ends: np.ndarray  # (groups,)
    potentials: np.ndarray | None  # (m, 2, 2): [node, its state, its parent's]; None: closed sets
    shift: np.ndarray  # (m,): what the potentials of closed sets add to each label


class Given(NamedTuple):
    """The law of each label given the state of its parent; of all nodes, or of a group at a time.

    What closed sets have given an absent parent is the same for every group.
    """

    gap: np.ndarray
    p: np.ndarray
    r: np.ndarray
    soft: np.ndarray  # log(1 + e^-|gap|)


class Room(NamedTuple):
    """What the passes leave behind for the rows of all lanes."""

    absent: np.ndarray  # the weight of all below a label in each state, less the larger of both
    present: np.ndarray  # (neither for closed sets)
    without: Given  # the label's law given that its parent is absent
    beside: Given  # and given that it is present
    on: np.ndarray  # P(label in the set)
    off: np.ndarray  # P(label not in it)
    log_sum: np.ndarray  # (LANES,): log-partition; for closed sets against the set without labels
    part: np.ndarray  # scratch for a group
    other: np.ndarray


@inner
def filled(n, value):
    """So many times the same value. (A way for each would have to be compiled.)"""
    out = np.empty(n)
    for j in range(n):
        out[j] = value
    return out


@inner
def room_of(tree, potentials):
    """Room for the passes over a forest."""
    size, most = len(tree.labels) * LANES, GROUP * LANES
    full, n = (0, most) if potentials is None else (size, size)
    without = Given(filled(n, -np.inf), filled(n, 0.0), filled(n, 1.0), filled(n, 0.0))
    beside = Given(np.empty(size), np.empty(size), np.empty(size), np.empty(size))
    return Room(
        np.empty(full), np.empty(full), without, beside, np.empty(size), np.empty(size),
        np.empty(LANES), np.empty(most), np.empty(most),
    )  # fmt: skip


@inner
def split(gap, p, r, soft, u):
    """p = sigmoid(gap), r = 1 - p, soft = log(1 + e^-|gap|) and u = log(1 + e^gap)."""
    for j in range(len(gap)):
        size = abs(gap[j])
        e = exp(-size) if size <= LARGEST_GAP else 0.0
        likely = 1.0 / (1.0 + e)
        unlikely = e * likely
        p[j] = likely if gap[j] >= 0.0 else unlikely
        r[j] = unlikely if gap[j] >= 0.0 else likely
        soft[j] = log1p_unit(e)
        u[j] = max(gap[j], 0.0) + soft[j]


@inner
def read_weights(scores, row, rows, labels, factor, shift, out):
    """out[k] = factor * (2 score + shift_k), 0 at the virtual root."""
    read_rows(scores, row, rows, labels, 2.0 * factor, 0.0, out)
    for k in range(1, len(labels)):
        for b in range(LANES):
            out[k * LANES + b] += factor * shift[k]


@inner
def climb_closed(scores, row, rows, tree, factor, given, log_sum, part):
    """Fill the law of each label given that its parent is present, for weights times ``factor``.

    Its p, r and soft may have room for a group only, where they are not wanted.
    """
    labels, above, ends, _, shift = tree
    gap, p, r, soft = given
    read_weights(scores, row, rows, labels, factor, shift, gap)
    for group in range(len(ends) - 1, 0, -1):
        first, stop = ends[group - 1], ends[group]
        here, until = first * LANES, stop * LANES
        split(
            gap[here:until], of_group(p, here, until, len(gap)), of_group(r, here, until, len(gap)),
            of_group(soft, here, until, len(gap)), part,
        )  # fmt: skip
        add_to_parents(part, first, stop, above, gap)
    copy_into(log_sum, gap)


@inner
def read_states(scores, row, rows, labels, absent, present):
    """Start each label with the weight of its score; +-inf fixes the label and adds nothing."""
    read_rows(scores, row, rows, labels, 1.0, 0.0, present)
    for j in range(len(present)):
        score = present[j]
        is_fixed = abs(score) == np.inf
        absent[j] = min(-score, 0.0) if is_fixed else -score
        present[j] = min(score, 0.0) if is_fixed else score


@inner
def normalise(absent, present, high):
    """Take the larger of the two states' weights out, so that sums stay small."""
    for j in range(len(absent)):
        high[j] = absent[j] if absent[j] > present[j] else present[j]
        taken = high[j] if high[j] > -np.inf else 0.0
        absent[j] -= taken
        present[j] -= taken


@inner
def compare(absent, present, extra_absent, extra_present, gap, high):
    """The gap of both states' weights with what an edge adds, and the larger; NaN if both -inf."""
    for k in range(len(extra_absent)):
        for b in range(LANES):
            j = k * LANES + b
            out, there = absent[j] + extra_absent[k], present[j] + extra_present[k]
            gap[j] = there - out
            high[j] = there if there > out else out


@inner
def climb(scores, row, rows, tree, potentials, room):
    """The pass from the leaves to the roots; if fixed labels leave no set, log_sum is -inf.

    ``potentials`` are those of the tree. (As an argument: where that is None the compiler leaves
    out what is for others.)
    """
    labels, above, ends, _, _ = tree
    absent, present, log_sum, high, part = (
        room.absent, room.present, room.log_sum, room.other, room.part
    )  # fmt: skip
    if potentials is None:
        climb_closed(scores, row, rows, tree, 1.0, room.beside, log_sum, part)
        return
    read_states(scores, row, rows, labels, absent, present)
    log_sum[:] = 0.0
    for group in range(len(ends) - 1, 0, -1):
        first, stop = ends[group - 1], ends[group]
        here, until = first * LANES, stop * LANES
        normalise(absent[here:until], present[here:until], high)
        add_up(high[: until - here], log_sum)
        for s in range(2):
            gap, p, r, soft = room.beside if s == 1 else room.without
            extra = potentials[first:stop, :, s]
            compare(
                absent[here:until], present[here:until], extra[:, 0], extra[:, 1],
                gap[here:until], high,
            )  # fmt: skip
            split(gap[here:until], p[here:until], r[here:until], soft[here:until], part)
            plus(high[: until - here], soft[here:until])
            add_to_parents(high, first, stop, above, present if s == 1 else absent)
    plus(log_sum, present[:LANES])


@inner
def mix(p1, r1, p0, r0, above_on, above_off, on, off):
    """on = p1 above_on + p0 above_off and off = r1 above_on + r0 above_off."""
    for j in range(len(on)):
        on[j] = p1[j] * above_on[j] + p0[j] * above_off[j]
        off[j] = r1[j] * above_on[j] + r0[j] * above_off[j]


@inner
def descend(tree, room, group):
    """From the roots to the leaves: P(label) and P(not label) of a group from its parents'.

    The virtual root, group 0, is certain.
    """
    if group == 0:
        room.on[:LANES], room.off[:LANES] = 1.0, 0.0
        return
    size, first, stop = len(room.on), tree.ends[group - 1], tree.ends[group]
    here, until = first * LANES, stop * LANES
    of_parents(room.on, first, stop, tree.above, room.part)
    of_parents(room.off, first, stop, tree.above, room.other)
    mix(
        room.beside.p[here:until], room.beside.r[here:until],
        of_group(room.without.p, here, until, size), of_group(room.without.r, here, until, size),
        room.part, room.other, room.on[here:until], room.off[here:until],
    )  # fmt: skip


@inner
def write_pairs(row, rows, tree, room, around_on, around_off, gain, pairs):
    """pairs[row, label, its state, its parent's state] = E[N; edge in that state], 0 for roots.

    N is a sum over labels: ``around`` = E[N; label in either state] and ``gain`` = V - W. With
    P(label) and P(not label) around and no gain, N is 1.
    """
    one, none, n_none = room.beside, room.without, len(room.without.p)
    for k in range(1, len(tree.labels)):
        for b in range(min(LANES, rows - row)):
            out, at, up = pairs[row + b, tree.labels[k]], k * LANES + b, tree.above[k] * LANES + b
            out[:] = 0.0
            if tree.above[k] > 0:
                p1, r1, p0, r0 = one.p[at], one.r[at], none.p[at % n_none], none.r[at % n_none]
                with_parent, without_parent = room.on[up] * gain[at], room.off[up] * gain[at]
                out[1, 1] = p1 * (around_on[up] + r1 * with_parent)
                out[0, 1] = r1 * (around_on[up] - p1 * with_parent)
                out[1, 0] = p0 * (around_off[up] + r0 * without_parent)
                out[0, 0] = r0 * (around_off[up] - p0 * without_parent)


@inner
def surprise(truth, above, gap1, soft1, gap0, soft0, part):
    """-log P(true state of a label | that of its parent) = log(1 + e^(gap of the other state))."""
    for j in range(len(truth)):
        gap = gap1[j] if above[j] == 1.0 else gap0[j]
        soft = soft1[j] if above[j] == 1.0 else soft0[j]
        against = gap if truth[j] == 0.0 else -gap
        # (Not a number where the parent's state has no set at all, and so in the sum.)
        part[j] = soft if against <= 0.0 else against + soft


@inner
def step_away(truth, on, off, part):
    """E[y'] - y with y' in +-1: twice the probability of the other state."""
    for j in range(len(truth)):
        part[j] = -2.0 * off[j] if truth[j] == 1.0 else 2.0 * on[j]


@kernel
def likelihood_rows(start, stop, scores, y_true, tree, value, by_score, by_pair):
    """-log s(y), inf outside the space, (n,), E[y'] - y (n, l) and that of edges, (n, l, 2, 2).

    The last is of no label, (n, 0, 2, 2), where it is not asked for. Slopes are probabilities of
    other states, accurate where small.
    """
    labels, above, ends, potentials, _ = tree
    room, total = room_of(tree, potentials), np.empty(LANES)
    truth, part, other = np.empty(len(room.on)), room.part, room.other
    nothing = filled(len(room.on) if by_pair.shape[1] else 0, 0.0)
    for row in range(start, stop, LANES):
        climb(scores, row, stop, tree, potentials, room)
        descend(tree, room, 0)
        read_rows(y_true, row, stop, labels, 1.0, 1.0, truth)
        total[:] = 0.0
        for group in range(1, len(ends)):
            first, end = ends[group - 1], ends[group]
            here, until = first * LANES, end * LANES
            of_parents(truth, first, end, above, other)
            surprise(
                truth[here:until], other, room.beside.gap[here:until], room.beside.soft[here:until],
                of_group(room.without.gap, here, until, len(truth)),
                of_group(room.without.soft, here, until, len(truth)), part,
            )  # fmt: skip
            add_up(part[: until - here], total)
            descend(tree, room, group)
            step_away(truth[here:until], room.on[here:until], room.off[here:until], part)
            write_rows(part, row, stop, labels, first, end, by_score)
        for b in range(min(LANES, stop - row)):
            value[row + b] = total[b] if total[b] == total[b] else np.inf
        if by_pair.shape[1] > 0:
            write_pairs(row, stop, tree, room, room.on, room.off, nothing, by_pair)
            less_truth(row, stop, tree, y_true, by_pair)


@inner
def less_truth(row, rows, tree, y_true, pairs):
    """Less 1 at the true state of each edge, as minus the sum of its other states."""
    for k in range(1, len(tree.labels)):
        if tree.above[k] > 0:
            i, parent = tree.labels[k], tree.labels[tree.above[k]]
            for at in range(row, min(row + LANES, rows)):
                out, true, above = pairs[at, i], y_true[at, i], y_true[at, parent]
                out[true, above] = 0.0
                out[true, above] = -(out[0, 0] + out[0, 1] + out[1, 0] + out[1, 1])


@inner
def average(p, r, on, off, part):
    """part = p on + r off."""
    for j in range(len(on)):
        part[j] = p[j] * on[j] + r[j] * off[j]


@inner
def collect(tree, potentials, p1, r1, p0, r0, on, off, part):
    """Turn on and off into V and W, leaves to roots; on[0] is then the mean of the sum.

    p and r of each label given that its parent is present (1) or not (0); ``potentials`` are those
    of the tree.
    """
    for group in range(len(tree.ends) - 1, 0, -1):
        first, stop = tree.ends[group - 1], tree.ends[group]
        here, until = first * LANES, stop * LANES
        mine_on, mine_off = on[here:until], off[here:until]
        average(p1[here:until], r1[here:until], mine_on, mine_off, part)
        add_to_parents(part, first, stop, tree.above, on)
        if potentials is None:
            add_to_parents(mine_off, first, stop, tree.above, off)
        else:
            average(p0[here:until], r0[here:until], mine_on, mine_off, part)
            add_to_parents(part, first, stop, tree.above, off)


@inner
def carry(p1, r1, p0, r0, above, gain, on, off):
    """E[N; label in either state], where ``above`` = P and E[N; ...] of both states of parents."""
    above_on, above_off, around_on, around_off = above
    for j in range(len(on)):
        with_parent, without_parent = above_on[j] * gain[j], above_off[j] * gain[j]
        on[j] = p1[j] * (around_on[j] + r1[j] * with_parent)
        on[j] += p0[j] * (around_off[j] + r0[j] * without_parent)
        off[j] = r1[j] * (around_on[j] - p1[j] * with_parent)
        off[j] += r0[j] * (around_off[j] - p0[j] * without_parent)


@inner
def sums_of(values, row, rows, tree, room, gain, joint_on, joint_off, above):
    """Fill E[N; label] and E[N; no label], and V - W; E[N] stands at the virtual root.

    ``values`` = what a label adds to N in the set and out of it, (n, l) each; ``above`` is scratch.
    """
    one, none, size = room.beside, room.without, len(gain)
    read_rows(values[0], row, rows, tree.labels, 1.0, 0.0, gain)
    read_rows(values[1], row, rows, tree.labels, 1.0, 0.0, joint_off)
    of_present, of_absent = (one.p, one.r), (none.p, none.r)
    collect(tree, tree.potentials, *of_present, *of_absent, gain, joint_off, room.part)
    copy_into(joint_on[:LANES], gain)
    gain -= joint_off
    joint_off[:LANES] = 0.0
    for group in range(1, len(tree.ends)):
        first, end = tree.ends[group - 1], tree.ends[group]
        here, until = first * LANES, end * LANES
        of_parents(room.on, first, end, tree.above, above[0])
        of_parents(room.off, first, end, tree.above, above[1])
        of_parents(joint_on, first, end, tree.above, above[2])
        of_parents(joint_off, first, end, tree.above, above[3])
        carry(
            one.p[here:until], one.r[here:until], of_group(none.p, here, until, size),
            of_group(none.r, here, until, size), above, gain[here:until],
            joint_on[here:until], joint_off[here:until],
        )  # fmt: skip


@inner
def write_law(scores, row, rows, tree, room, nothing, law, pairs):
    """Both passes over the rows of the lanes, and their law, see `moments_rows`."""
    climb(scores, row, rows, tree, tree.potentials, room)
    for group in range(len(tree.ends)):
        descend(tree, room, group)
    write_rows(room.on[LANES:], row, rows, tree.labels, 1, len(tree.labels), law[1])
    write_rows(room.off[LANES:], row, rows, tree.labels, 1, len(tree.labels), law[2])
    write_lanes(room.log_sum, row, rows, law[0])
    if pairs.shape[1] > 0:
        write_pairs(row, rows, tree, room, room.on, room.off, nothing, pairs)


@kernel
def moments_rows(start, stop, scores, tree, law, pairs):
    """``law`` = log_sum (n,), P(label), P(not label) (n, l); ``pairs`` P(state of edge).

    The last is (n, l, 2, 2), or (n, 0, 2, 2) where it is not asked for.
    """
    room = room_of(tree, tree.potentials)
    nothing = filled(len(room.on) if pairs.shape[1] else 0, 0.0)
    for row in range(start, stop, LANES):
        write_law(scores, row, stop, tree, room, nothing, law, pairs)


@kernel
def sum_moments_rows(start, stop, scores, tree, values, law, pairs, sums, sum_pairs):
    """As `moments_rows`; and the same of a sum over labels N, see `sums_of`."""
    room, labels, n_nodes = room_of(tree, tree.potentials), tree.labels, len(tree.labels)
    size, most = len(room.on), GROUP * LANES
    gain, joint_on, joint_off = np.empty(size), np.empty(size), np.empty(size)
    nothing = filled(size if pairs.shape[1] else 0, 0.0)
    above = (np.empty(most), np.empty(most), np.empty(most), np.empty(most))
    for row in range(start, stop, LANES):
        write_law(scores, row, stop, tree, room, nothing, law, pairs)
        sums_of(values, row, stop, tree, room, gain, joint_on, joint_off, above)
        write_rows(joint_on[LANES:], row, stop, labels, 1, n_nodes, sums[1])
        write_rows(joint_off[LANES:], row, stop, labels, 1, n_nodes, sums[2])
        write_lanes(joint_on, row, stop, sums[0])
        if sum_pairs.shape[1] > 0:
            write_pairs(row, stop, tree, room, joint_on, joint_off, gain, sum_pairs)


@kernel
def most_likely_rows(start, stop, scores, tree, potentials, out):
    """The most likely set of each row (n, l), by max-product; ``potentials`` (m, 2, 2) of nodes.

    Parents are decided before their children, and a tie leaves a label out.
    """
    labels, above, n_nodes = tree.labels, tree.above, len(tree.labels)
    up, state = np.empty((n_nodes, 2)), np.ones(n_nodes, dtype=np.uint8)
    for row in range(start, stop):
        up[0] = 0.0
        for k in range(1, n_nodes):
            score = np.float64(scores[row, labels[k]])
            up[k, 0], up[k, 1] = -score, score
        for k in range(n_nodes - 1, 0, -1):
            high = max(up[k, 0], up[k, 1])
            up[k, 0] -= high
            up[k, 1] -= high
            for s in range(2):
                here = max(up[k, 0] + potentials[k, 0, s], up[k, 1] + potentials[k, 1, s])
                up[above[k], s] += here
        for k in range(1, n_nodes):
            s = state[above[k]]
            state[k] = up[k, 1] + potentials[k, 1, s] > up[k, 0] + potentials[k, 0, s]
            out[row, labels[k]] = state[k]
