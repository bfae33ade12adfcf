"""Sums over listed label sets by their common beginnings: no exponential for each set.

Sets are sequences of labels, the most frequent label first, in a tree: a set is one label more than
the node above it, so what it weighs is one product more, e^(2 score) of that label. Sums over the
sets that have a label go the other way, from the leaves to the root. For a row that is one
exponential a label, and two products and three sums a node.
"""

# pyright: reportCallIssue=false
# (Intrinsics are called without the context their definitions name first.)

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setwise.kernels import exp, view_kernel
from setwise.lanes import add, empty_lanes, load_row, store_row
from setwise.lanes import total as sum_of
from setwise.targets.measure import RowIndex
from setwise.threads import for_rows

# (Unsigned: in kernels Python's meaning of a negative place would cost as much as a sum.)
Places, Rows, Sums = NDArray[np.uint32], NDArray[np.int64], NDArray[np.float64]
ONE = np.uint64(1)

# Rows that a pass over the tree takes side by side, and rows whose sums are kept apart, so that
# these are the same however many threads there are.
LANES, CHUNK = 32, 256
# A row is summed by products if no set weighs more than e to this, and the true one at least e to
# the negative of that. What products lose below the least number there is, is then nothing.
MOST_EXPONENT, LEAST_EXPONENT = 350.0, -250.0


class Prefixes(NamedTuple):
    """The tree, a node before those below it: depth (m,) and label (m,) of each.

    The first node is the empty set, of depth 0 and without a label; what is above a node is the
    last node before it that is one less deep. ``node`` (K,) says where each set of the list is.
    """

    depth: Places
    label: Places
    node: Places

    @classmethod
    def of(cls, sets: NDArray[np.uint8]) -> Prefixes:
        """That of label sets (K, l), no two alike."""
        columns = np.argsort(-sets.sum(axis=0, dtype=np.int64), kind="stable")
        order = np.lexsort(sets[:, columns[::-1]].T)
        sorted_sets = sets[order][:, columns] == 1
        # Labels from the first one on that differs from the set before have nodes of their own.
        differs = np.ones(sorted_sets.shape, bool)
        differs[1:] = np.logical_or.accumulate(sorted_sets[1:] != sorted_sets[:-1], axis=1)
        is_new = sorted_sets & differs
        depth = np.cumsum(sorted_sets, axis=1)[is_new]
        label = np.broadcast_to(columns, sorted_sets.shape)[is_new]
        # (A set comes before those that go on from it: its last node is new.)
        node = np.empty(len(sets), np.uint32)
        node[order] = np.cumsum(is_new.sum(axis=1))
        return cls(np.r_[0, depth].astype(np.uint32), np.r_[0, label].astype(np.uint32), node)

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
        by_node = np.zeros(len(self.depth))
        by_node[self.node] = factor
        total, by_score = np.empty(len(scores)), np.empty(scores.shape)
        sets = np.ascontiguousarray(sets, np.uint8)
        parts = np.zeros((-(-len(scores) // CHUNK), len(by_node)))
        n_labels, n_depths = scores.shape[1], self.depth.max() + 2
        for_rows(
            sum_chunks, len(parts), scores.astype(np.float64, copy=False), self.depth, self.label,
            sets, by_node, start, np.where(true < 0, -1, self.node[true].astype(np.int64)), rest,
            weights, total, by_score, parts, least=1,
            room=lambda: lanes(n_labels, n_labels, len(by_node), n_depths, 1),
        )  # fmt: skip
        return total, by_score, parts.sum(axis=0)[self.node]


@dataclass(frozen=True, eq=False)
class Lookup:
    """Where the sets of a list (K, l) are; made once for it, whatever the biases of its sets."""

    sets: NDArray[np.uint8]

    @cached_property
    def index(self) -> RowIndex:
        """By their labels."""
        return RowIndex.of(self.sets)

    @cached_property
    def prefixes(self) -> Prefixes:
        """By their common beginnings."""
        return Prefixes.of(self.sets)


def within_products(scores: Sums, log_weight: Sums) -> NDArray[np.bool_]:
    """Which rows can be summed by products, of a true set whose weight has that logarithm."""
    high = np.maximum(scores, 0.0).sum(axis=1, dtype=np.float64)
    return (2.0 * high <= MOST_EXPONENT) & (log_weight >= LEAST_EXPONENT)


def lanes(*counts: int) -> tuple[Sums, ...]:
    """Arrays of so many rows of lanes each."""
    return tuple(empty_lanes((count,), LANES) for count in counts)


@view_kernel
def sum_chunks(
    start, stop, scores, depth, label, sets, factor, log_start, true, rest, weights, total,
    by_score, by_node, line, out, weight, stack, part,
):  # fmt: skip
    """`Prefixes.sums` of chunks of rows; factors are by node, as is the sum of a chunk, (c, m).

    Nodes are gone through with what is above them on a stack, of a place for each depth; back,
    there are the sums of what is below.
    """
    n_nodes, (n, n_labels) = np.uint64(len(depth)), scores.shape
    for b in range(LANES):
        part[0, b] = 0.0
    nothing = load_row(part, 0, LANES)
    for chunk in range(start, stop):
        end = n if n < (chunk + 1) * CHUNK else (chunk + 1) * CHUNK
        for first in range(chunk * CHUNK, end, LANES):
            for b in range(LANES):
                # (Lanes beyond the last row repeat it.)
                row = first + b if first + b < end else end - 1
                stack[0, b] = log_start[row]
                for i in range(n_labels):
                    line[i, b] = 2.0 * scores[row, i]
            for i in range(n_labels):
                store_row(line, i, exp(load_row(line, i, LANES)))
                store_row(out, i, nothing)
            store_row(weight, 0, exp(load_row(stack, 0, LANES)))
            store_row(stack, 0, load_row(weight, 0, LANES))
            for node in range(ONE, n_nodes):
                level = depth[node]
                here = load_row(stack, level - ONE, LANES) * load_row(line, label[node], LANES)
                store_row(stack, level, here)
                store_row(weight, node, here)
            for b in range(LANES):
                left_out = true[first + b if first + b < end else end - 1]
                if left_out >= 0:
                    weight[left_out, b] = 0.0
            for level in range(len(stack)):
                store_row(stack, level, nothing)
            for back in range(n_nodes):
                node = n_nodes - ONE - back
                level, by = depth[node], label[node]
                below = load_row(stack, level + ONE, LANES)
                store_row(stack, level + ONE, nothing)
                below = add(below, factor[node], load_row(weight, node, LANES))
                store_row(stack, level, add(below, 1.0, load_row(stack, level, LANES)))
                if node > 0:
                    store_row(out, by, add(below, 1.0, load_row(out, by, LANES)))
            for b in range(LANES):
                part[0, b] = 0.0
                if first + b < end:
                    row = first + b
                    total[row] = stack[0, b]
                    share = 1.0 / (rest[row] + total[row])
                    part[0, b] = weights[row] * share
                    for i in range(n_labels):
                        by_score[row, i] = 2.0 * share * (out[i, b] - sets[row, i] * total[row])
            shares = load_row(part, 0, LANES)
            for node in range(n_nodes):
                by_node[chunk, node] += sum_of(shares * load_row(weight, node, LANES))
