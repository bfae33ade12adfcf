"""Sums over labels on closed sets and on paths, by passes over the nodes of their forest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit

from setwise.kernels import copy_into, inner, kernel
from setwise.spaces.cube import true_counts
from setwise.spaces.cube_kernels import AdditiveTable, state_sums
from setwise.spaces.expectation import Expectation, Moment, Tempered, additive, times_exp
from setwise.spaces.forest_kernels import Given, Tree, climb_closed, collect, read_weights
from setwise.spaces.nodes import (
    GROUP,
    LANES,
    Nodes,
    Power,
    add_up,
    fill_lanes,
    of_parents,
    read_values,
    slope_factors,
    take_large_factors,
    times_into,
    write_rows,
    write_values,
)
from setwise.spaces.space import Array
from setwise.targets.measure import Of
from setwise.threads import for_rows


@dataclass(frozen=True, eq=False)
class HierarchyExpectation(Expectation):
    """Additive targets on closed sets and on Paths; O(l) a row.

    One pass from the leaves to the roots and one back (on paths the other way round) for the
    weights times q, and for q other than 1 the same for the weights themselves. Work is in float64;
    results come in the precision of the scores. ``law`` (`ClosedLaw` or Paths) has the ``nodes``,
    the ``additive_pass`` = (kernel, what it takes), the ``uniform_marginals`` (l,), and derivatives
    ``by_parameters`` from those by the scores.
    """

    law: Any

    def moment(
        self, scores: Array, y_true: Array, q: float, of: Of = "utility", log_scale: float = 0.0,
        parameters: bool = True,
    ) -> Moment:  # fmt: skip
        power = Power(float(q), False, log_scale, self.space.log_size)
        found = self._pass(scores, y_true, power, of, parameters)
        return found or Tempered(self.target, self.space).moment(scores, y_true, q, of, log_scale)

    def logistic(
        self, scores: Array, y_true: Array, log_scale: float = 0.0, parameters: bool = True
    ) -> Moment:
        power = Power(0.0, True, log_scale, self.space.log_size)
        found = self._pass(scores, y_true, power, "utility", parameters)
        return found or Tempered(self.target, self.space).logistic(scores, y_true, log_scale)

    def uniform(self, y_true: Array, of: Of = "utility", log_scale: float = 0.0) -> Array:
        measure, present = additive(self.target, y_true.shape[1], of), self.law.uniform_marginals
        by_truth = measure.values[:, 1] * present + measure.values[:, 0] * (1.0 - present)
        total, n_true = np.empty(len(y_true)), true_counts(y_true).astype(np.float64)
        for_rows(state_sums, len(y_true), y_true, *by_truth, total)
        return times_exp(measure.constant(n_true) + measure.scale(n_true) * total, log_scale)

    def _pass(
        self, scores: Array, y_true: Array, power: Power, of: Of, parameters: bool
    ) -> Moment | None:
        """The wanted power and its slopes; None where those by parameters have no value.

        They are differences of slopes by scores, which may be infinite.
        """
        measure = additive(self.target, self.space.n_labels, of)
        n_true, (kernel, own) = true_counts(y_true).astype(np.float64), self.law.additive_pass
        by_node = AdditiveTable(
            self.law.nodes.of_labels(measure.values), measure.scale(n_true),
            measure.constant(n_true),
        )  # fmt: skip
        n, precise = len(scores), scores.astype(np.float64, copy=False)
        value, slope = np.empty(n), np.empty_like(precise)
        for_rows(kernel, n, precise, y_true, power, own, by_node, value, slope, least=8 * LANES)
        slope = slope.astype(scores.dtype, copy=False)
        if not parameters:
            return Moment(value, slope, np.empty((n, 0)))
        if len(self.space.parameters) > 0 and not np.isfinite(slope).all():
            return None
        return Moment(value, slope, self.law.by_parameters(slope))


@dataclass(frozen=True, eq=False)
class ClosedLaw:
    """A Forest whose sets are all closed ones.

    On closed sets the state of an edge is a sum of labels b in 0/1, so potentials only add to what
    labels weigh:

        g = sum over edges of [0, 0] + b_parent ([0, 1] - [0, 0]) + b ([1, 1] - [0, 1]).

    ``shift`` is what they add to each label, by node, and ``constant`` to every set.
    """

    parents: Array
    nodes: Nodes
    shift: Array
    constant: float

    @classmethod
    def of(cls, parents: Array, nodes: Nodes, potentials: Array) -> ClosedLaw | None:
        """The law, or None where potentials exclude other than a label without its parent."""
        child = np.flatnonzero(parents >= 0)
        (neither, parent), (excluded, both) = np.moveaxis(potentials[child], 0, -1)
        finite = np.isfinite(np.stack([neither, parent, both]))
        if not (np.isneginf(excluded).all() and finite.all()):
            return None
        shift = np.zeros(len(parents))
        shift[child] = both - parent
        np.add.at(shift, parents[child], parent - neither)
        return cls(parents, nodes, nodes.of_labels(shift), float(neither.sum()))

    @property
    def tree(self) -> Tree:
        """What kernels take."""
        return Tree(*self.nodes, None, self.shift)

    @cached_property
    def log_counts(self) -> Array:
        """log of the number of closed sets below each node that hold it, (nodes,)."""
        counts = np.zeros(len(self.nodes.labels))
        for first, stop in self.nodes.groups[::-1]:
            without = np.logaddexp(0.0, counts[first:stop])
            np.add.at(counts, self.nodes.above[first:stop], without)
        return counts

    @cached_property
    def uniform_marginals(self) -> Array:
        """The share of all closed sets that hold each label, (l,)."""
        share = expit(self.log_counts)
        share[0] = 1.0
        for first, stop in self.nodes.groups:
            share[first:stop] *= share[self.nodes.above[first:stop]]
        out = np.empty(len(self.parents))
        out[self.nodes.labels[1:]] = share[1:]
        return out

    @cached_property
    def additive_pass(self) -> tuple[Any, Any]:
        """The kernel for sums over labels, and what it needs of the law."""
        even = np.stack([expit(self.log_counts), expit(-self.log_counts)], axis=1)
        even[0] = 1.0, 0.0
        return additive_rows, (self.tree, even)

    def by_parameters(self, by_score: Array) -> Array:
        """Derivatives by the potentials from those by the scores, (n, 4 l).

        The states of an edge are 1 - b_parent, b_parent - b and b, and the derivative of a b is
        half that of y' = 2 b - 1. The fourth state is excluded.
        """
        half = 0.5 * by_score.astype(np.float64)
        out = np.zeros((*half.shape, 2, 2))
        child = np.flatnonzero(self.parents >= 0)
        own, above = half[:, child], half[:, self.parents[child]]
        out[:, child, 0, 0], out[:, child, 0, 1], out[:, child, 1, 1] = -above, above - own, own
        return out.reshape(len(half), 4 * half.shape[1])


@inner
def step(p, r, on, off, chance, around):
    """p becomes P(label) and on its covariance with N, from those of the parents.

    C = p (P(parent) r (V - W) + C of the parent), on closed sets.
    """
    for j in range(len(p)):
        on[j] = p[j] * ((on[j] - off[j]) * chance[j] * r[j] + around[j])
        p[j] *= chance[j]


@inner
def join(share, height, on, p, whole, part):
    """part = share C + height (P - P_1)."""
    for j in range(len(p)):
        part[j] = share[j] * on[j] + height[j] * (p[j] - whole[j])


@inner
def weigh(on, p, share, mean, x, part):
    """part = x E[u label], of the nodes of a group."""
    for k in range(len(p) // LANES):
        for b in range(LANES):
            j = k * LANES + b
            part[j] = x[j] * (share[b] * on[j] + mean[b] * p[j])


@kernel
def additive_rows(start, stop, scores, y_true, power, own, measure, value, slope):
    """The `Power` of an `AdditiveTable` of nodes on closed sets (n,), and its slopes (n, l).

    ``own`` = (tree, even): ``even`` (nodes, 2) holds p and r of the uniform law. Arrays named
    ``whole`` belong to the weights themselves, p, r, on and off to the weights times q.
    """
    (tree, even), q = own, power.q
    labels, above, ends, _, shift = tree
    size, most = len(labels) * LANES, GROUP * LANES
    a, p, r, on, off = (
        np.empty(size), np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    )  # fmt: skip
    whole, rest = np.empty(size), np.empty(size if power.limit else most)
    part, chance, around, soft = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    shares, heights = np.empty(most), np.empty(most)
    log_sum, log_whole, mean, share = (
        np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    )  # fmt: skip
    exponent, factor, inner = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for row in range(start, stop, LANES):
        if q == 0.0:
            for k in range(len(even)):
                for b in range(LANES):
                    p[k * LANES + b], r[k * LANES + b] = even[k, 0], even[k, 1]
            log_sum[:] = power.log_size
        else:
            climb_closed(scores, row, stop, tree, q, Given(a, p, r, soft), log_sum, part)
        read_values(y_true, row, stop, labels, measure, on, off)
        collect(tree, tree.potentials, p, r, p, r, on, off, part)
        copy_into(log_whole, log_sum)
        if q != 1.0:
            climb_closed(scores, row, stop, tree, 1.0, Given(a, whole, rest, soft), log_whole, part)
        slope_factors(power, log_sum, log_whole, exponent, factor)
        for b in range(LANES):
            at = min(row + b, stop - 1)
            share[b], mean[b] = measure.scale[at], measure.constant[at] + measure.scale[at] * on[b]
        fill_lanes(factor * share, shares)
        fill_lanes(factor * mean, heights)
        # The virtual root is certain, and its covariance 0.
        p[:LANES], whole[:LANES], on[:LANES], inner[:] = 1.0, 1.0, 0.0, 0.0
        if power.limit:
            read_weights(scores, row, stop, labels, 1.0, shift, rest)
        for group in range(1, len(ends)):
            first, end = ends[group - 1], ends[group]
            here, until = first * LANES, end * LANES
            of_parents(p, first, end, above, chance)
            of_parents(on, first, end, above, around)
            step(p[here:until], r[here:until], on[here:until], off[here:until], chance, around)
            at_one = p[here:until]
            if q != 1.0:
                at_one = whole[here:until]
                of_parents(whole, first, end, above, chance)
                times_into(at_one, chance, at_one)
            join(shares, heights, on[here:until], p[here:until], at_one, part)
            take_large_factors(exponent, part[: until - here])
            write_rows(part, row, stop, labels, first, end, slope)
            if power.limit:
                weigh(on[here:until], p[here:until], share, mean, rest[here:until], part)
                add_up(part[: until - here], inner)
        write_values(power, row, stop, mean, log_whole, inner, exponent, value)
