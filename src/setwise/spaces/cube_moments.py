"""Expectations on the cube, where labels are independent: O(l) a row for most targets."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from setwise.spaces.count_law import CountMean
from setwise.spaces.cube import Cube
from setwise.spaces.cube_kernels import (
    additive_rows,
    fraction_rows,
    soft_rows,
)
from setwise.spaces.expectation import Moment, Moments, Tempered, times_exp
from setwise.spaces.quadrature import (
    DOUBLE_ERROR,
    MEANS,
    SINGLE_ERROR,
    Rules,
    laguerre_table,
)
from setwise.spaces.subset import SubsetMoments
from setwise.spaces.true_sets import true_counts
from setwise.targets.measure import Additive, Array, Fraction, Of
from setwise.targets.target import Target
from setwise.threads import for_rows

_FAR = laguerre_table()


@dataclass(frozen=True)
class CubeMoments:
    """Moments on the cube; which kernel serves depends on the form of the target.

    At q = 0 every target on the cube is cross-entropy with soft labels: the loss needs only
    M(0) = E_0[u] and E_0[u y'_i], which for a function of the counts are three numbers for each
    number of true labels. They are computed once, by the general way at zero scores.
    """

    target: Target
    space: Cube
    _general: Moments = field(repr=False)
    _uniform: dict = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, target: Target, space: Cube) -> CubeMoments | SubsetMoments:
        """The moments of a target of any form but a table."""
        if target.form == "additive":
            return cls(target, space, AdditiveOnCube(target, space))
        if target.form == "linear_fractional":
            return cls(target, space, FractionOnCube(target, space))
        if target.form == "subset":
            return SubsetMoments(target, space)
        return cls(target, space, Tempered(target, CountMean(target, space)))

    def moment(
        self, scores: Array, y_true: Array, q: float, of: Of = "utility", log_scale: float = 0.0,
        parameters: bool = True,
    ) -> Moment:  # fmt: skip
        """F(q) and its derivatives."""
        return self._general.moment(scores, y_true, q, of, log_scale)

    def uniform(self, y_true: Array, of: Of = "utility", log_scale: float = 0.0) -> Array:
        """F(0), the mean over all label sets."""
        base, _, _, _ = self._pulls(y_true, of)
        return times_exp(base, log_scale)

    def logistic(
        self, scores: Array, y_true: Array, log_scale: float = 0.0, parameters: bool = True
    ) -> Moment:
        """M(0) sum_i log cosh(h_i) - sum_i E_0[u y'_i] h_i, by one pass."""
        base, up, down, weights = self._pulls(y_true, "utility")
        value, slope = np.empty(len(scores)), np.empty_like(scores)
        one = scores.dtype.type(1)
        for_rows(
            soft_rows, len(scores), scores, y_true, one, base, up, down,
            weights.astype(scores.dtype), value, slope,
        )  # fmt: skip
        if log_scale != 0.0:
            value, slope = times_exp(value, log_scale), times_exp(slope, log_scale)
        return Moment(value, slope, np.empty((len(scores), 0)))

    def _pulls(self, y_true: Array, of: Of) -> tuple[Array, Array, Array, Array]:
        """M(0), and E_0[u y'_i] / weights_i for a true and for a false label, of each row."""
        measure = self.target.measure(self.space.n_labels, of)
        if isinstance(measure, Additive):
            sizes = true_counts(y_true).astype(np.float64)
            even = (measure.weights == measure.weights[0]).all()
            true_weight = measure.weights[0] * sizes if even else y_true @ measure.weights
            scale, agreement = measure.scale(sizes), measure.agreement
            false_weight = measure.weights.sum() - true_weight
            level = agreement.mean(axis=1)
            base = measure.constant(sizes) + scale * (
                level[1] * true_weight + level[0] * false_weight
            )
            half = (agreement[:, 1] - agreement[:, 0]) / 2.0
            return base, scale * half[1], scale * half[0], measure.weights
        weights = np.ones(self.space.n_labels)
        n_true = true_counts(y_true)
        table = self._tabulated(np.flatnonzero(np.bincount(n_true)), of)
        return *table[n_true].T.copy(), weights

    def _tabulated(self, needed: Array, of: Of) -> Array:
        """For each number of true labels: M(0) and E_0[u y'_i] of a true and of a false label.

        The target sees only counts, so one true set of each size stands for all.
        """
        known = self._uniform.get(of)
        if known is None:
            known = np.full((self.space.n_labels + 1, 3), np.nan)
        new = needed[np.isnan(known[needed, 0])]
        if len(new):
            known = known.copy()
            sets = (np.arange(self.space.n_labels) < new[:, None]).astype(np.uint8)
            flat = self._general.moment(np.zeros(sets.shape), sets, 1.0, of)
            last = self.space.n_labels - 1
            known[new, 0] = flat.value
            known[new, 1] = np.where(new > 0, flat.scores[:, 0], 0.0)
            known[new, 2] = np.where(new <= last, flat.scores[:, last], 0.0)
            self._uniform[of] = known
        return known


def in_range(scores: Array, q: float) -> Array:
    """The scores; for q < 0 in float64, as powers of probabilities then outgrow float32."""
    return scores if q >= 0 else scores.astype(np.float64)


@dataclass(frozen=True)
class AdditiveOnCube:
    """Sums over labels: linear in the marginals."""

    target: Target
    space: Cube

    def moment(
        self, scores: Array, y_true: Array, q: float, of: Of = "utility", log_scale: float = 0.0,
        parameters: bool = True,
    ) -> Moment:  # fmt: skip
        """F(q) and its derivatives by one pass."""
        measure = self.target.measure(self.space.n_labels, of)
        assert isinstance(measure, Additive)
        work = in_range(scores, q)
        n_true = true_counts(y_true).astype(np.float64)
        value, slope = np.empty(len(work)), np.empty_like(work)
        for_rows(
            additive_rows, len(work), work, y_true, float(q), work.dtype.type(1), log_scale,
            measure.weights.astype(work.dtype), measure.agreement,
            measure.scale(n_true), measure.constant(n_true), value, slope,
        )  # fmt: skip
        return Moment(value, slope, np.empty((len(work), 0)))


@dataclass(frozen=True)
class FractionOnCube:
    """Linear-fractional targets by quadrature: one product over labels for each node."""

    target: Target
    space: Cube
    _rules: dict = field(default_factory=dict, repr=False)

    def moment(
        self, scores: Array, y_true: Array, q: float, of: Of = "utility", log_scale: float = 0.0,
        parameters: bool = True,
    ) -> Moment:  # fmt: skip
        """F(q) and its derivatives by one pass."""
        work = in_range(scores, q)
        rules = self._rules_of(of, work.dtype == np.float32)
        n_true = true_counts(y_true)
        table = rules.table(n_true)
        value, slope = np.empty(len(work)), np.empty_like(work)
        run = partial(for_rows, fraction_rows, len(work), work, y_true, table.slot[n_true])
        run(
            float(q), work.dtype.type(1), log_scale, rules.step, np.where(rules.flip, -1.0, 1.0),
            rules.on, rules.off, rules.measure.empty, np.array(MEANS), *_FAR,
            table.start, table.zero, table.least, table.count, table.power_true, table.power_false,
            table.weight, value, slope,
        )  # fmt: skip
        return Moment(value, slope, np.empty((len(work), 0)))

    def _rules_of(self, of: Of, single: bool) -> Rules:
        key = (of, single)
        if key not in self._rules:
            measure = self.target.measure(self.space.n_labels, of)
            assert isinstance(measure, Fraction)
            error = SINGLE_ERROR if single else DOUBLE_ERROR
            self._rules[key] = Rules(measure, self.space.n_labels, error)
        return self._rules[key]
