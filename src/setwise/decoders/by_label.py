"""Targets for which labels are decided from their own probabilities.

`EachLabel`: sums over labels (Hamming, weighted or not), one by one. `ClosedSets`: the same
where a set must contain the parents of its labels (tree distance). `Mode`: subset 0/1, for which
the most likely set is best.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba.extending import register_jitable
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from setwise.decoders.decisions import Decisions
from setwise.distributions import Independent
from setwise.kernels import kernel
from setwise.spaces.nodes import Nodes
from setwise.targets.measure import Additive, Array
from setwise.taxonomy import Taxonomy
from setwise.threads import for_rows

# A sum of gains below this share of its terms is rounding: a tie.
ROUNDING = 1e-14
# Gains become whole numbers that add up to no more than this.
CAPACITY = 2**30


@dataclass(frozen=True)
class EachLabel:
    """A loss that is a sum over labels: a label is predicted where that lowers its own loss.

    Exact for any distribution with these marginals: the expectation of a sum needs no more.
    """

    measure: Additive

    is_by_marginals = True

    @cached_property
    def constant(self) -> float:
        """What is lost whichever labels are predicted."""
        return float(self.measure.constant(np.zeros(1))[0])

    @cached_property
    def table(self) -> Array:
        """What each label loses, [true, predicted, label], (2, 2, l)."""
        return self.measure.values * float(self.measure.scale(np.zeros(1))[0])

    @cached_property
    def are_alike(self) -> bool:
        """Whether all labels lose the same."""
        return bool((self.table == self.table[..., :1]).all())

    @property
    def leaves_out_impossible(self) -> bool:
        """Whether a label of probability 0 is left out at no cost, whichever it is."""
        (absent, present), _ = self.table
        return bool((absent == 0.0).all() and (present >= 0.0).all() and self.are_alike)

    @cached_property
    def thresholds(self) -> Array | None:
        """The probability at which both states of a label cost the same, (l,), or (1,) for all.

        Where the probability does not matter ±inf; None where an improbable label may be better.
        """
        table = self.table[..., :1] if self.are_alike else self.table
        if_false, if_true = table[:, 1] - table[:, 0]
        if (if_true > if_false).any():
            return None
        slope, always = if_false - if_true, np.where(if_false < 0.0, -np.inf, np.inf)
        return np.where(slope > 0.0, if_false / np.where(slope > 0.0, slope, 1.0), always)

    @property
    def takes_outside(self) -> bool:
        """Whether improbable labels, of which only a sum is known, are left out."""
        return self.thresholds is not None

    @property
    def least_gainful(self) -> tuple[float, float]:
        """The probability from which on some label is predicted, and the most that is lost by one.

        That is by leaving out a label that is true.
        """
        thresholds: Any = self.thresholds
        return float(thresholds.min()), float((self.table[1, 0] - self.table[1, 1]).max())

    def decide(self, values: Array, second: bool, outside: Array | None = None) -> Decisions:
        """The labels whose loss is less when predicted; on a tie left out.

        True labels outside, ``outside[:, 0]`` of them, are missed at the dearest one's cost.
        """
        if not second and self.thresholds is not None:
            return Decisions.of_sets((values > self.thresholds).view(np.uint8))
        absent, present = self.losses(values)
        chosen = present < absent
        risk = np.where(chosen, present, absent).sum(axis=1) + self.constant
        if outside is not None:
            risk = risk + outside[:, 0] * (self.table[1, 0] - self.table[0, 0]).max()
        gap = np.abs(present - absent).min(axis=1)
        return Decisions(chosen.astype(np.uint8), risk, risk + gap)

    def of_sets(self, values: Array, sets: Array) -> Array:
        """The expected loss of given sets, (n,)."""
        absent, present = self.losses(values)
        return np.where(sets == 1, present, absent).sum(axis=1) + self.constant

    def losses(self, probability: Array) -> tuple[Array, Array]:
        """The expected loss of each label when left out and when predicted, (n, l) each."""
        p = probability.astype(np.float64)
        # Of some of the labels only where all are alike.
        return losses(p, self.table if self.table.shape[2] == p.shape[1] else self.table[..., :1])


@register_jitable
def losses(p, table):
    """The expected loss of a label when left out and when predicted, one or an array of them."""
    absent = p * table[1, 0] + (1.0 - p) * table[0, 0]
    return absent, p * table[1, 1] + (1.0 - p) * table[0, 1]


@dataclass(frozen=True)
class Mode:
    """Subset 0/1 loss from independent marginals: every label by its more likely state."""

    is_by_marginals = False
    leaves_out_impossible = True
    takes_outside = True
    # The probability from which on a label is predicted, and what is lost by leaving one out.
    least_gainful = 0.5, 1.0

    def decide(self, values: Array, second: bool, outside: Array | None = None) -> Decisions:
        """The labels with a probability above 1/2; that none outside is true is a part of it."""
        sets, *logs = Independent(values).most_likely(second)
        if outside is not None:
            logs = [log - outside[:, 0] for log in logs]
        return of_mode(sets, *logs)

    def of_sets(self, values: Array, sets: Array) -> Array:
        """1 less the probability of given sets, (n,)."""
        return -np.expm1(Independent(values).log_probability(sets))


def of_mode(sets: Array, log_probability: Array, second: Array) -> Decisions:
    """Decisions for subset 0/1 from the most likely set and the log probability of the next."""
    return Decisions(sets, -np.expm1(log_probability), 1.0 - np.exp(second))


@dataclass(frozen=True)
class ClosedSets:
    """The closed set of least expected distance, for the additive loss of a hierarchy.

    In a tree, O(l) a row: from the leaves to the roots, a label with its best descendants gains
    what it gains itself and what its children gain where that is positive; from the roots down, a
    label is predicted if its parent is and it gains.

    Where labels have several parents, ``parents`` is a spanning tree. Its best closed set is the
    answer if it is closed in the hierarchy, as the sets closed there are some of the tree's. Other
    rows are a minimum cut (Picard, 1976): labels that gain hang on the source, those that lose on
    the sink, a label leads to its parents without limit, and the labels on the source's side are
    the best. Gains are rounded to 1e-9 of their sum for that. ``second_risk`` is then NaN.
    """

    measure: Additive
    parents: Array
    hierarchy: Taxonomy

    is_by_marginals = True
    leaves_out_impossible = False

    @cached_property
    def _nodes(self) -> Nodes:
        return Nodes.of(self.parents)

    @cached_property
    def _labels(self) -> EachLabel:
        return EachLabel(self.measure)

    def decide(self, values: Array, second: bool) -> Decisions:
        """The closed set of least expected distance; on a tie a label is left out."""
        sets, gap = np.empty(values.shape, dtype=np.uint8), np.empty(len(values))
        for_rows(
            closed_set_rows, len(values), np.ascontiguousarray(values, np.float64),
            self._nodes.labels, self._nodes.above, self._labels.table, sets, gap,
        )  # fmt: skip
        if not self.hierarchy.is_tree:
            gap[:] = np.nan
            for row in np.flatnonzero(~self.hierarchy.is_closed(sets)):
                absent, present = self._labels.losses(values[[row]])
                sets[row] = self._minimum_cut((absent - present)[0])
        if not second:
            return Decisions.of_sets(sets)
        risk = self.of_sets(values, sets)
        return Decisions(sets, risk, risk + gap)

    def of_sets(self, values: Array, sets: Array) -> Array:
        """The expected distance of given sets, (n,)."""
        return self._labels.of_sets(values, sets)

    def _minimum_cut(self, gains: Array) -> Array:
        """The set closed in the hierarchy with the largest sum of gains, (l,)."""
        edges = self.hierarchy.edges
        # A label that neither gains nor stands above one that does is in no smallest best set.
        labels = np.flatnonzero(self.hierarchy.close((gains > 0)[None].astype(np.uint8))[0])
        place = np.full(len(gains) + 1, -1)
        place[labels] = np.arange(len(labels))
        above, child = place[edges].T
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
            over = edges[edges[:, 1] == label, 0]
            best[label] |= gains[label] > 0 and best[over[over >= 0]].all()
        return best


@kernel
def closed_set_rows(start, stop, probability, labels, above, table, sets, gaps):
    """The best closed set of each row, (n, l), and how much worse the second best is, (n,).

    ``probability`` (n, l); ``labels`` and ``above`` (l + 1,) are those of `Nodes`, parents first;
    ``table`` (2, 2, l) is what labels lose, [true, predicted, label].
    """
    gains, rounding = np.empty(len(labels)), np.empty(len(labels))
    chosen = np.empty(len(labels), dtype=np.bool_)
    for row in range(start, stop):
        line, out = probability[row], sets[row]
        # The virtual root is in every set, and what comes to it is not used.
        gains[0], rounding[0], chosen[0] = 0.0, 0.0, True
        for k in range(1, len(labels)):
            absent, present = losses(np.float64(line[labels[k]]), table[:, :, labels[k]])
            gains[k] = absent - present
            rounding[k] = ROUNDING * abs(gains[k])
        for k in range(len(labels) - 1, 0, -1):
            gains[above[k]] += max(gains[k], 0.0)
            rounding[above[k]] += rounding[k]
        gap = np.inf
        for k in range(1, len(labels)):
            free = chosen[above[k]]
            chosen[k] = free and gains[k] > rounding[k]
            out[labels[k]] = chosen[k]
            # Any other closed set differs first in a label whose parent both have.
            gap = min(gap, abs(gains[k])) if free else gap
        gaps[row] = gap
