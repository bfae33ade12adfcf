"""Sums over listed label sets by what they have in common: no exponential for each set.

The labels are parted in two halves. What a set has of a half is a node in a tree of such parts, one
label more than the node above it: its weight is one product more, e^(2 score) of that label. A set
weighs what its two nodes weigh together, and many sets share their nodes. So a row takes one
exponential a label, a product a node, and two products and sums a set; sums over the sets that have
a label go the other way, from the sets to their nodes and from the nodes to the roots.
"""

# pyright: reportCallIssue=false
# (Intrinsics are called without the context their definitions name first.)

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setwise.kernels import exp, view_inner, view_kernel
from setwise.lanes import add, load_row, room_in_lanes, store_row, where_smaller
from setwise.lanes import total as sum_of
from setwise.targets.measure import RowIndex
from setwise.threads import for_rows

# (Unsigned: in kernels Python's meaning of a negative place would cost as much as a sum.)
Places, Rows, Sums = NDArray[np.uint32], NDArray[np.int64], NDArray[np.float64]
ONE = np.uint64(1)

# Rows that are summed side by side, and rows whose sums are kept apart, so that these are the same
# however many threads there are.
LANES, CHUNK = 16, 256
# A row is summed by products if no set weighs more than e to this, and the true one at least e to
# the negative of that. What products lose below the least number there is, is then nothing.
MOST_EXPONENT, LEAST_EXPONENT = 350.0, -250.0
# e to what is less counts as 0. (`exp` takes it as if it were no less.)
LEAST = -708.0


class Prefixes(NamedTuple):
    """A tree of label sets as sequences of labels, the most frequent first, and their beginnings.

    A node comes before those below it; it has the node ``above`` it, (m,), and a ``label`` more.
    The first one is the empty set, which has neither: both are 0. ``node`` (K,) is that of a set.
    """

    above: Places
    label: Places
    node: Places

    @classmethod
    def of(cls, sets: NDArray[np.uint8]) -> Prefixes:
        """That of label sets (K, l), of which some may be alike."""
        columns = np.argsort(-sets.sum(axis=0, dtype=np.int64), kind="stable")
        bits = np.ascontiguousarray(np.packbits(sets[:, columns], axis=1))
        _, first, place = np.unique(
            bits.view(f"V{bits.shape[1]}")[:, 0], return_index=True, return_inverse=True
        )
        ordered = sets[first][:, columns] == 1
        # Labels from the first one on that differs from the set before have nodes of their own.
        differs = np.ones(ordered.shape, bool)
        differs[1:] = np.logical_or.accumulate(ordered[1:] != ordered[:-1], axis=1)
        is_new = ordered & differs
        depth = np.append(0, np.cumsum(ordered, axis=1)[is_new])
        label = np.append(0, np.broadcast_to(columns, ordered.shape)[is_new])
        above = np.zeros(len(depth), np.int64)
        for level in range(1, int(depth.max()) + 1):
            here, higher = np.flatnonzero(depth == level), np.flatnonzero(depth == level - 1)
            above[here] = higher[np.searchsorted(higher, here) - 1]
        # (A set comes before those that go on from it: its last node is new.)
        node = np.cumsum(is_new.sum(axis=1))[place]
        return cls(*(part.astype(np.uint32) for part in (above, label, node)))


class Halves(NamedTuple):
    """Label sets as pairs of nodes of two trees, the nodes of the second behind those of the first.

    Sets are in an ``order`` (K,) of their own: those of node a of the first tree are from
    ``begins[a]`` to before ``begins[a + 1]``; their nodes in the second one are ``second`` (K,).
    """

    above: Places
    label: Places
    begins: Places
    second: Places
    order: Rows

    @classmethod
    def of(cls, sets: NDArray[np.uint8]) -> Halves:
        """Those of label sets (K, l), no two alike: in turns by how frequent the labels are."""
        frequent = np.argsort(-sets.sum(axis=0, dtype=np.int64), kind="stable")
        is_first = np.zeros(sets.shape[1], np.uint8)
        is_first[frequent[::2]] = 1
        one, other = Prefixes.of(sets * is_first), Prefixes.of(sets * (1 - is_first))
        behind, order = np.uint32(len(one.above)), np.lexsort((other.node, one.node))
        begins = np.searchsorted(one.node[order], np.arange(behind + 1))
        return cls(
            np.append(one.above, other.above + behind), np.append(one.label, other.label),
            begins.astype(np.uint32), other.node[order] + behind, order,
        )  # fmt: skip

    def sums(
        self, scores: Sums, sets: NDArray[np.uint8], factor: Sums, start: Sums, true: Rows,
        rest: Sums, weights: Sums,
    ) -> tuple[Sums, Sums, Sums]:  # fmt: skip
        """Over the sets but the true one of a row: of weights, slopes, and over all rows by set.

        Set k weighs factor[k] (K,) times e^(start + 2 score) of its labels, in units of the true
        set, which is in ``sets`` (n, l), at the place ``true`` (n,), -1 if it is not listed; with
        all that is not in the list a row has ``rest`` (n,) more. Out: that weight (n,), what these
        sets have of the gradient by the scores, twice the part of the whole that those with a
        label weigh, less the part of them all if the true set has it, (n, l), and the sum over rows
        of their ``weights`` times the part of a set, for a factor of 1 (K,).
        """
        (n, n_labels), n_sets, n_nodes = scores.shape, len(factor), len(self.above)
        place = np.full(n_sets + 1, -1)
        place[self.order] = np.arange(n_sets)
        total, by_score = np.empty(n), np.empty((n, n_labels))
        sets, parts = np.ascontiguousarray(sets, np.uint8), np.zeros((-(-n // CHUNK), n_sets))
        counts = n_labels, n_labels, n_nodes, n_nodes, 2
        for_rows(
            sum_chunks, len(parts), scores.astype(np.float64, copy=False), *self[:4],
            factor[self.order], sets, start, place[true], rest, weights, total, by_score, parts,
            least=1,
            room=lambda: (*room_in_lanes(LANES, *counts), np.zeros(n_sets, np.int64)),
        )  # fmt: skip
        return total, by_score, parts.sum(axis=0)[place[:-1]]


@dataclass(frozen=True, eq=False)
class Lookup:
    """Where the sets of a list (K, l) are; made once for it, whatever the biases of its sets."""

    sets: NDArray[np.uint8]

    @cached_property
    def index(self) -> RowIndex:
        """By their labels."""
        return RowIndex.of(self.sets)

    @cached_property
    def halves(self) -> Halves:
        """By what they have in common."""
        return Halves.of(self.sets)


def within_products(scores: Sums, log_weight: Sums) -> NDArray[np.bool_]:
    """Which rows can be summed by products, of a true set whose weight has that logarithm."""
    high = np.maximum(scores, 0.0).sum(axis=1, dtype=np.float64)
    return (2.0 * high <= MOST_EXPONENT) & (log_weight >= LEAST_EXPONENT)


@view_kernel
def sum_chunks(
    start, stop, scores, above, label, begins, second, factor, sets, log_start, true, rest, weights,
    total, by_score, by_set, line, out, weight, below, part, left_out,
):  # fmt: skip
    """`Halves.sums` of chunks of rows; listed sets are in their order, as is by_set (chunks, K).

    Of each node ``weight`` is its part of the weight of a set, and ``below`` what the sets that
    have it weigh without it. The last six are room; ``left_out`` (K,) says in bits in which lanes
    a set is the true one, and is 0 before and after.
    """
    n_nodes, n_first, (n, n_labels) = (
        np.uint64(len(above)),
        np.uint64(len(begins) - 1),
        scores.shape,
    )
    for b in range(LANES):
        part[0, b] = 0.0
        part[1, b] = LEAST
    nothing, least = load_row(part, 0, LANES), load_row(part, 1, LANES)
    for chunk in range(start, stop):
        end = n if n < (chunk + 1) * CHUNK else (chunk + 1) * CHUNK
        for first in range(chunk * CHUNK, end, LANES):
            for b in range(LANES):
                # (Lanes beyond the last row repeat it.)
                row = first + b if first + b < end else end - 1
                if true[row] >= 0:
                    left_out[true[row]] |= 1 << b
                # Half of it for either root.
                part[0, b] = 0.5 * log_start[row]
                for i in range(n_labels):
                    line[i, b] = 2.0 * scores[row, i]
            for i in range(n_labels):
                score = load_row(line, i, LANES)
                store_row(line, i, where_smaller(score, least, nothing, exp(score)))
                store_row(out, i, nothing)
            root = exp(load_row(part, 0, LANES))
            for node in range(n_nodes):
                here = root
                if node != 0 and node != n_first:
                    here = load_row(weight, above[node], LANES) * load_row(line, label[node], LANES)
                store_row(weight, node, here)
                store_row(below, node, nothing)
            for node in range(n_first):
                own, others = load_row(weight, node, LANES), nothing
                for k in range(np.uint64(begins[node]), np.uint64(begins[node + ONE])):
                    there, one, other = second[k], own, load_row(weight, second[k], LANES)
                    if left_out[k] != 0:
                        one = without(one, left_out[k], part)
                        other = without(other, left_out[k], part)
                    others = add(others, factor[k], other)
                    store_row(below, there, add(load_row(below, there, LANES), factor[k], one))
                store_row(below, node, others)
            for back in range(n_nodes):
                node = n_nodes - ONE - back
                if node != 0 and node != n_first:
                    higher, by, here = above[node], label[node], load_row(below, node, LANES)
                    over = here * load_row(line, by, LANES)
                    store_row(below, higher, over + load_row(below, higher, LANES))
                    over = here * load_row(weight, node, LANES)
                    store_row(out, by, over + load_row(out, by, LANES))
            store_row(part, 0, root * load_row(below, 0, LANES))
            for b in range(LANES):
                row, sum = first + b, part[0, b]
                part[0, b] = 0.0
                if row < end:
                    share = 1.0 / (rest[row] + sum)
                    total[row], part[0, b] = sum, weights[row] * share
                    for i in range(n_labels):
                        by_score[row, i] = 2.0 * share * (out[i, b] - sets[row, i] * sum)
            shares = load_row(part, 0, LANES)
            for node in range(n_first):
                own = shares * load_row(weight, node, LANES)
                for k in range(np.uint64(begins[node]), np.uint64(begins[node + ONE])):
                    one = own
                    if left_out[k] != 0:
                        one = without(own, left_out[k], part)
                        left_out[k] = 0
                    by_set[chunk, k] += sum_of(one * load_row(weight, second[k], LANES))


@view_inner
def without(numbers, left_out, room):
    """Lanes with 0 in those of the bits, by way of the second row of room."""
    store_row(room, 1, numbers)
    for b in range(LANES):
        if left_out >> b & 1:
            room[1, b] = 0.0
    return load_row(room, 1, LANES)
