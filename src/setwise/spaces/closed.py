"""Closed label sets of a forest, weighed label by label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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

    def log_size(self) -> float:
        """log of the number of closed sets."""
        from setwise.spaces.closed_kernels import log_sum_rows

        size, nothing = np.empty(1), np.zeros((1, len(self.parents)))
        log_sum_rows(0, 1, nothing, *self.nodes.arrays, np.zeros_like(self.shift), size)
        return float(size[0])

    def marginals(self, scores: Array) -> tuple[Array, Array]:
        """A and P(label), (n,) and (n, l)."""
        from setwise.spaces.closed_kernels import marginal_rows

        log_sum, on = np.empty(len(scores)), np.empty_like(scores)
        for_rows(marginal_rows, len(scores), scores, *self.nodes.arrays, self.shift, log_sum, on)
        # The sets were weighed against the one without labels.
        return log_sum - scores.sum(axis=1, dtype=np.float64) + self.constant, on

    def given_parents(self, scores: Array) -> Array:
        """P(label | parent) and P(no label | parent) by node, of one row of scores, (l + 1, 2)."""
        from setwise.spaces.closed_kernels import given_parents

        out = np.empty((len(self.nodes.labels), 2))
        given_parents(scores[None], *self.nodes.arrays, self.shift, out)
        return out

    def likelihood(self, scores: Array, sets: Array) -> tuple[Array, Array]:
        """log s(y) and y - E[y'] of one set a row; -inf where it is not closed, (n,) and (n, l)."""
        from setwise.spaces.closed_kernels import likelihood_rows

        log_probability, away = np.empty(len(scores)), np.empty_like(scores)
        for_rows(
            likelihood_rows, len(scores), scores, sets, *self.nodes.arrays, self.shift,
            log_probability, away,
        )  # fmt: skip
        return log_probability, away

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
