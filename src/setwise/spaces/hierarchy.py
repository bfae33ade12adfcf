"""Expectations of sums over labels on closed sets and on paths, by passes over nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from setwise.kernels import kernel
from setwise.spaces.cube import true_counts
from setwise.spaces.expectation import Moment, Tempered, additive, times_exp
from setwise.spaces.nodes import LANES, NodeMeasure, Nodes, Power
from setwise.spaces.space import Array, Space
from setwise.targets.measure import Of
from setwise.targets.target import Target
from setwise.threads import for_rows


class NodeLaw(Protocol):
    """A law over label sets that passes over the nodes of a forest can sum over."""

    @property
    def nodes(self) -> Nodes: ...

    @property
    def additive_pass(self) -> tuple[Any, Any]:
        """The kernel for sums over labels, and what it needs beside the nodes."""
        ...

    @property
    def uniform_marginals(self) -> Array:
        """The share of all sets that hold each label, (l,)."""
        ...

    def by_parameters(self, by_score: Array) -> Array:
        """Derivatives by the space's parameters from those by the scores, (n, p)."""
        ...


@dataclass(frozen=True, eq=False)
class HierarchyExpectation:
    """Additive targets on closed sets and on Paths; O(l) a row.

    One pass from the leaves to the roots and one back (on paths the other way round) for the
    weights times q, and for q other than 1 the same for the weights themselves. Work is in float64;
    results come in the precision of the scores.
    """

    target: Target
    space: Space
    law: NodeLaw

    def moment(
        self, scores: Array, y_true: Array, q: float, of: Of = "utility", log_scale: float = 0.0,
        parameters: bool = True,
    ) -> Moment:  # fmt: skip
        """F(q) and its derivatives."""
        power = Power(float(q), False, log_scale, self.space.log_size)
        value, slope = self._pass(scores, y_true, power, of)
        if parameters and self._overflows(slope):
            return Tempered(self.target, self.space).moment(scores, y_true, q, of, log_scale)
        return Moment(value, slope, self._by_parameters(slope, parameters))

    def logistic(
        self, scores: Array, y_true: Array, log_scale: float = 0.0, parameters: bool = True
    ) -> Moment:
        """E_0[u] (A - log|Y|) - E_0[u z] and its derivatives E_0[u] E[y'] - E_0[u y']."""
        power = Power(0.0, True, log_scale, self.space.log_size)
        value, slope = self._pass(scores, y_true, power, "utility")
        if parameters and self._overflows(slope):
            return Tempered(self.target, self.space).logistic(scores, y_true, log_scale)
        return Moment(value, slope, self._by_parameters(slope, parameters))

    def uniform(self, y_true: Array, of: Of = "utility", log_scale: float = 0.0) -> Array:
        """F(0), from the share of the space's sets that hold each label."""
        measure, present = (
            additive(self.target, self.space.n_labels, of),
            self.law.uniform_marginals,
        )
        by_truth = measure.agreement[:, 1:] * present + measure.agreement[:, :1] * (1.0 - present)
        if_false, if_true = by_truth * measure.weights
        total = np.empty(len(y_true))
        for_rows(state_sums, len(y_true), y_true, if_true, if_false, total)
        n_true = true_counts(y_true).astype(np.float64)
        return times_exp(measure.constant(n_true) + measure.scale(n_true) * total, log_scale)

    def _pass(self, scores: Array, y_true: Array, power: Power, of: Of) -> tuple[Array, Array]:
        """Value and slope by the scores."""
        measure = additive(self.target, self.space.n_labels, of)
        n_true, nodes = true_counts(y_true).astype(np.float64), self.law.nodes
        by_node = NodeMeasure(
            nodes.of_labels(measure.weights), measure.agreement,
            measure.scale(n_true), measure.constant(n_true),
        )  # fmt: skip
        value, slope = np.empty(len(scores)), np.empty_like(scores)
        kernel, own = self.law.additive_pass
        for_rows(
            kernel, len(scores), scores, y_true, power, own, by_node, value, slope,
            least=8 * LANES,
        )  # fmt: skip
        return value, slope

    def _by_parameters(self, slope: Array, wanted: bool) -> Array:
        return self.law.by_parameters(slope) if wanted else np.empty((len(slope), 0))

    def _overflows(self, slope: Array) -> bool:
        """Whether slopes by parameters, which are differences of these, have no value."""
        return len(self.space.parameters) > 0 and not np.isfinite(slope).all()


@kernel
def state_sums(start, stop, y_true, if_true, if_false, sums):
    """Of each row the sum of if_true over its true labels and of if_false over the others."""
    for row in range(start, stop):
        y = y_true[row]
        total = 0.0
        for j in range(len(y)):
            total += if_true[j] if y[j] == 1 else if_false[j]
        sums[row] = total
