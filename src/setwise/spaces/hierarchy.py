"""Expectations of sums over labels on closed sets and on paths, by passes over nodes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from setwise.spaces.additive import AdditiveMean
from setwise.spaces.closed import ClosedLaw
from setwise.spaces.closed_moments import closed_rows
from setwise.spaces.cube_kernels import state_sums
from setwise.spaces.expectation import Moment, Tempered, times_exp
from setwise.spaces.forest import Forest
from setwise.spaces.nodes import LANES
from setwise.spaces.path_moments import path_rows
from setwise.spaces.paths import Paths
from setwise.spaces.space import Array, Space
from setwise.spaces.true_sets import true_counts
from setwise.targets.measure import Additive, Of
from setwise.targets.target import Target
from setwise.threads import for_rows


def law_of(space: Space) -> ClosedLaw | Paths | None:
    """What has passes of its own: the closed sets of a forest, or its paths; None for others."""
    if isinstance(space, Forest):
        return space.closed_law
    return space if isinstance(space, Paths) else None


def slopes_by_parameters(law: ClosedLaw | Paths, by_score: Array, wanted: bool) -> Array:
    """Derivatives by the space's parameters from those by the scores, none unless wanted."""
    return law.by_parameters(by_score) if wanted else np.empty((len(by_score), 0))


@dataclass(frozen=True, eq=False)
class HierarchyMoments:
    """Additive targets on closed sets and on Paths; O(l) a row.

    One pass from the leaves to the roots and one back (on paths the other way round) for the
    weights times q, and for q other than 1 the same for the weights themselves. Work is in float64;
    results come in the precision of the scores.
    """

    target: Target
    space: Forest | Paths
    _law: ClosedLaw | Paths = field(init=False, repr=False)
    _structure: tuple[Array, ...] = field(init=False, repr=False)
    _present: Array = field(init=False, repr=False)

    def __post_init__(self):
        space, law = self.space, law_of(self.space)
        nothing = np.zeros((1, space.n_labels))
        if isinstance(law, ClosedLaw):
            even = replace(law, shift=np.zeros_like(law.shift))
            own = (law.shift, even.given_parents(nothing[0]))
            present = even.marginals(nothing)[1][0]
        else:
            assert law is not None
            own = (law.is_end,)
            present = law.marginals(nothing)[0]
        object.__setattr__(self, "_law", law)
        object.__setattr__(self, "_structure", (*law.nodes.arrays, *own))
        object.__setattr__(self, "_present", present)

    def moment(
        self, scores: Array, y_true: Array, q: float, of: Of = "utility", log_scale: float = 0.0,
        parameters: bool = True,
    ) -> Moment:  # fmt: skip
        """F(q) and its derivatives."""
        value, slope = self._pass(scores, y_true, float(q), False, of, log_scale)
        if parameters and self._overflows(slope):
            return self._general.moment(scores, y_true, q, of, log_scale)
        return Moment(value, slope, slopes_by_parameters(self._law, slope, parameters))

    def logistic(
        self, scores: Array, y_true: Array, log_scale: float = 0.0, parameters: bool = True
    ) -> Moment:
        """E_0[u] (A - log|Y|) - E_0[u z] and its derivatives E_0[u] E[y'] - E_0[u y']."""
        value, slope = self._pass(scores, y_true, 0.0, True, "utility", log_scale)
        if parameters and self._overflows(slope):
            return self._general.logistic(scores, y_true, log_scale)
        return Moment(value, slope, slopes_by_parameters(self._law, slope, parameters))

    def uniform(self, y_true: Array, of: Of = "utility", log_scale: float = 0.0) -> Array:
        """F(0), from the share of the space's sets that hold each label."""
        measure = self._measure(of)
        present, absent = self._present, 1.0 - self._present
        by_truth = measure.agreement[:, 1:] * present + measure.agreement[:, :1] * absent
        if_false, if_true = by_truth * measure.weights
        total = np.empty(len(y_true))
        for_rows(state_sums, len(y_true), y_true, if_true, if_false, total)
        n_true = true_counts(y_true).astype(np.float64)
        return times_exp(measure.constant(n_true) + measure.scale(n_true) * total, log_scale)

    def _pass(
        self, scores: Array, y_true: Array, q: float, limit: bool, of: Of, log_scale: float
    ) -> tuple[Array, Array]:
        """Value and slope by the scores of F(q), or of -F'(0) in the limit q -> 0."""
        measure = self._measure(of)
        n_true = true_counts(y_true).astype(np.float64)
        value, slope = np.empty(len(scores)), np.empty_like(scores)
        run = closed_rows if isinstance(self.space, Forest) else path_rows
        for_rows(
            run, len(scores), scores, y_true, q, limit, log_scale, self.space.log_size,
            *self._structure, self._law.nodes.of_labels(measure.weights), measure.agreement,
            measure.scale(n_true), measure.constant(n_true), value, slope, least=8 * LANES,
        )  # fmt: skip
        return value, slope

    def _overflows(self, slope: Array) -> bool:
        """Whether slopes by potentials, differences of these, have no value."""
        return isinstance(self.space, Forest) and not np.isfinite(slope).all()

    @property
    def _general(self) -> Tempered:
        assert isinstance(self.space, Forest)
        return Tempered(self.target, AdditiveMean(self.target, self.space))

    def _measure(self, of: Of) -> Additive:
        measure: Any = self.target.measure(self.space.n_labels, of)
        assert isinstance(measure, Additive)
        return measure
