"""Closed label sets of a forest, weighed label by label."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit

from setwise.spaces.closed_kernels import additive_rows, likelihood_rows, marginal_rows
from setwise.spaces.nodes import Nodes
from setwise.spaces.space import Array
from setwise.sparse import entries_of
from setwise.taxonomy import are_closed, steps_up
from setwise.threads import for_rows


@dataclass(frozen=True, eq=False)
class ClosedLaw:
    """A Forest whose sets are all closed ones: one exponential a node in place of 2x2 tables.

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

    @cached_property
    def log_counts(self) -> Array:
        """log of the number of closed sets below each node that hold it, (nodes,)."""
        counts = np.zeros(len(self.nodes.labels))
        for first, stop in self._groups[::-1]:
            without = np.logaddexp(0.0, counts[first:stop])
            np.add.at(counts, self.nodes.above[first:stop], without)
        return counts

    @property
    def log_size(self) -> float:
        """log of the number of closed sets."""
        return float(self.log_counts[0])

    @property
    def uniform_marginals(self) -> Array:
        """The share of all closed sets that hold each label, (l,)."""
        return self._uniform

    @cached_property
    def _uniform(self) -> Array:
        share = expit(self.log_counts)
        share[0] = 1.0
        for first, stop in self._groups:
            share[first:stop] *= share[self.nodes.above[first:stop]]
        out = np.empty(len(self.parents))
        out[self.nodes.labels[1:]] = share[1:]
        return out

    @property
    def additive_pass(self) -> tuple[Any, Any]:
        """The kernel for sums over labels; the shift, and P(label | parent) of the uniform law."""
        return additive_rows, (self.shift, self._even)

    @cached_property
    def _even(self) -> Array:
        """P(label | parent) and P(no label | parent) of the uniform law, (nodes, 2)."""
        even = np.stack([expit(self.log_counts), expit(-self.log_counts)], axis=1)
        even[0] = 1.0, 0.0
        return even

    @cached_property
    def _groups(self) -> Array:
        """Where each group of nodes begins and ends, the virtual root's left out, (groups, 2)."""
        return np.column_stack([self.nodes.ends[:-1], self.nodes.ends[1:]])

    def marginals(self, scores: Array) -> tuple[Array, Array]:
        """A and P(label), (n,) and (n, l)."""
        log_sum, on = np.empty(len(scores)), np.empty_like(scores)
        for_rows(marginal_rows, len(scores), scores, self.nodes, self.shift, log_sum, on)
        # The sets were weighed against the one without labels.
        return log_sum - scores.sum(axis=1, dtype=np.float64) + self.constant, on

    def negative_log_likelihood(self, scores: Array, sets: Array) -> tuple[Array, Array]:
        """-log s(y), inf where y is not closed, and E[y'] - y of one set a row, (n,) and (n, l)."""
        value, by_score = np.empty(len(scores)), np.empty_like(scores)
        for_rows(
            likelihood_rows, len(scores), scores, sets, self.nodes, self.shift, value, by_score
        )
        return value, by_score

    def contains(self, sets: Array) -> Array:
        """Whether each set is closed, (n,)."""
        edges = np.column_stack([self.parents, np.arange(len(self.parents))])
        return are_closed(entries_of(sets), steps_up(edges, len(edges)))

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
