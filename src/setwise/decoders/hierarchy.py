"""Tree distance where labels may have several parents: the best set that holds all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from setwise.decoders.by_label import ClosedSets, Labels
from setwise.decoders.decisions import Decisions
from setwise.targets.measure import Array
from setwise.taxonomy import Taxonomy

# Gains become whole numbers that add up to no more than this.
CAPACITY = 2**30


@dataclass(frozen=True)
class HierarchySets:
    """The set of least expected distance among those closed under every edge of a hierarchy.

    The best closed set of the spanning tree, if it is closed in the hierarchy: the sets closed
    there are some of the tree's. Other rows are a minimum cut (Picard, 1976): labels that gain hang
    on the source, those that lose on the sink, a label leads to its parents without limit, and the
    labels on the source's side are the best. Gains are rounded to 1e-9 of their sum for that.

    ``second_risk`` is not computed, and NaN.
    """

    tree: ClosedSets
    hierarchy: Taxonomy

    leaves_out_impossible = False

    def decide(self, values: Array, second: bool) -> Decisions:
        """The closed set of least expected distance; on a tie the smallest."""
        sets = self.tree.decide(values, False).sets
        is_open = np.flatnonzero(~self.hierarchy.is_closed(sets))
        if len(is_open):
            gains = Labels(self.tree.measure).gains(values[is_open])
            sets[is_open] = [self._best(row) for row in gains]
        return Decisions(sets, self.of_sets(values, sets), np.full(len(sets), np.nan))

    def of_sets(self, values: Array, sets: Array) -> Array:
        """The expected distance of given sets, (n,)."""
        return self.tree.of_sets(values, sets)

    def _best(self, gains: Array) -> Array:
        """The closed set with the largest sum of gains, (l,)."""
        # A label that neither gains nor stands above one that does is in no smallest best set.
        near = self.hierarchy.close((gains > 0)[None].astype(np.uint8))[0]
        labels = np.flatnonzero(near)
        place = np.full(len(gains) + 1, -1)
        place[labels] = np.arange(len(labels))
        above, child = place[self.hierarchy.edges].T
        inside = (above >= 0) & (child >= 0)
        source, sink = len(labels), len(labels) + 1
        share = np.rint(gains[labels] / np.abs(gains[labels]).sum() * CAPACITY).astype(np.int32)
        up, down = np.flatnonzero(share > 0), np.flatnonzero(share < 0)
        start = np.concatenate([np.full(len(up), source), down, child[inside]])
        end = np.concatenate([up, np.full(len(down), sink), above[inside]])
        endless = np.full(int(inside.sum()), np.iinfo(np.int32).max, np.int32)
        limit = np.concatenate([share[up], -share[down], endless])
        graph = csr_array((limit, (start, end)), shape=(sink + 1, sink + 1))
        left = graph - maximum_flow(graph, source, sink).flow
        left.data = (left.data > 0).astype(np.int32)
        left.eliminate_zeros()
        reached = breadth_first_order(left, source, return_predecessors=False)
        best = np.zeros(len(gains), np.uint8)
        best[labels[reached[reached < source]]] = 1
        # A gain too small to be a whole number is one all the same.
        for label in labels[np.argsort(self.hierarchy.levels[labels], kind="stable")]:
            above = self._above(label)
            best[label] |= gains[label] > 0 and best[above].all()
        return best

    def _above(self, label: int) -> Array:
        """The parents of a label."""
        first, stop = np.searchsorted(self.hierarchy.edges[:, 1], [label, label + 1])
        above = self.hierarchy.edges[first:stop, 0]
        return above[above >= 0]
