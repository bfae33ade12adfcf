"""Sums over listed label sets by their common beginnings: no exponential for each set.

Sets are sequences of labels, the most frequent label first, in a tree: a set is one label more than
the node above it, so what it weighs is one product more, e^(2 score) of that label. Sums over the
sets that have a label go the other way, from the leaves to the root. For a row that is one
exponential a label, and two products and three sums a node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setwise.kernels import exp, kernel

Array = NDArray[np.int32]

# Rows that a pass over the tree takes side by side.
LANES = 8
# A row is summed by products if no set weighs more than e to this, and all together at least that:
# what products lose below the least number there is, is then nothing beside the sum.
MOST_EXPONENT, LEAST_SUM = 300.0, 1e-100


class Prefixes(NamedTuple):
    """The tree, parents before children: what is above each node, its label, its set in the list.

    The first node is the empty set, with label -1. ``place`` is -1 where a node is no listed set.
    """

    parent: Array
    label: Array
    place: Array

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
        node = np.zeros(sorted_sets.shape, np.int32)
        node[is_new] = np.arange(1, np.count_nonzero(is_new) + 1)
        # In other places a set goes through the last node that a set before has made there.
        node = np.where(sorted_sets, np.maximum.accumulate(node, axis=0), 0)
        through = np.maximum.accumulate(node, axis=1)
        above = np.zeros_like(through)
        above[:, 1:] = through[:, :-1]
        place = np.full(np.count_nonzero(is_new) + 1, -1, np.int32)
        place[through[:, -1]] = order
        labels = np.broadcast_to(columns, sorted_sets.shape)[is_new]
        return cls(
            np.r_[-1, above[is_new]].astype(np.int32), np.r_[-1, labels].astype(np.int32), place
        )


@kernel
def expected_rows(start, stop, scores, parent, label, factor, weights, likely, within, by_node):
    """P(label) (n, l) and, added to ``by_node`` (m,), the rows' weighted P of the set of each node.

    ``factor`` (m,) is e^bias of a node's set, 0 where it has none. ``within`` (n,) says which rows
    could be summed by products; the others add nothing, and their P has no meaning.
    """
    n_nodes, n_labels = len(parent), scores.shape[1]
    line, out = np.empty(n_labels * LANES), np.empty(n_labels * LANES)
    weight, mass = np.empty(n_nodes * LANES), np.empty(n_nodes * LANES)
    high, share = np.empty(LANES), np.empty(LANES)
    for first in range(start, stop, LANES):
        high[:] = out[:] = 0.0
        for b in range(LANES):
            # (Lanes beyond the last row repeat it.)
            row = min(first + b, stop - 1)
            for i in range(n_labels):
                line[i * LANES + b] = 2.0 * np.float64(scores[row, i])
        for i in range(n_labels):
            for b in range(LANES):
                high[b] += max(line[i * LANES + b], 0.0)
        for position in range(n_labels * LANES):
            line[position] = exp(line[position])
        weight[:LANES] = 1.0
        for node in range(1, n_nodes):
            here, above, by = node * LANES, parent[node] * LANES, label[node] * LANES
            for b in range(LANES):
                weight[here + b] = weight[above + b] * line[by + b]
        for node in range(n_nodes):
            for b in range(LANES):
                mass[node * LANES + b] = factor[node] * weight[node * LANES + b]
        # From the weights of the sets to those of all below each node.
        for node in range(n_nodes - 1, 0, -1):
            here, above, by = node * LANES, parent[node] * LANES, label[node] * LANES
            for b in range(LANES):
                mass[above + b] += mass[here + b]
                out[by + b] += mass[here + b]
        for b in range(LANES):
            row = min(first + b, stop - 1)
            within[row] = high[b] <= MOST_EXPONENT and mass[b] >= LEAST_SUM
            share[b] = weights[row] / mass[b] if within[row] and first + b < stop else 0.0
            if not within[row]:
                for node in range(n_nodes):
                    weight[node * LANES + b] = 0.0
        for node in range(n_nodes):
            total = 0.0
            for b in range(LANES):
                total += weight[node * LANES + b] * share[b]
            by_node[node] += factor[node] * total
        for b in range(min(LANES, stop - first)):
            for i in range(n_labels):
                likely[first + b, i] = out[i * LANES + b] / mass[b]
