"""E[u] over a space, tempered: the one quantity from which the comp-sum family is made.

With s(y') = exp(z(y') - A) the probability of a set, |Y| the number of sets and E_0 the uniform
mean over them, define the *moment* of a measure u (utility or loss against a true set y)

    F(q) = E_0[u (|Y| s)^q] = exp(A_q - q A_1 - (1 - q) log|Y|) M_q,

where A_q and M_q belong to the weights q z. F(0) is the uniform mean, F(1) the expectation under
the model, and the comp-sum losses on the unit scale are (F(0) - F(q)) / q. The derivative along the
scores carries a factor q, which is left out so that the limit q -> 0 needs no care:

    (1/q) dF/dh_i = exp(A_q - q A_1 - (1 - q) log|Y|) (E_q[u y'_i] - M_q E_1[y'_i]).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from setwise.spaces.space import Array, Space
from setwise.targets.measure import Of
from setwise.targets.target import Target

# For so many q a tempered space is kept: enough for one loss, and no more as q moves in training.
KEPT = 16
# Spaces with more sets than this are not listed for a target that has no other way.
LISTABLE = 2**14
# A forest with no more sets than this is listed for a linear-fractional target: that is faster than
# a pass for each node of a rule, and takes no differences.
FEW = 2**9


@dataclass(frozen=True)
class Moment:
    """F(q), and its derivatives divided by q: by scores (n, n_scores), by parameters (n, p)."""

    value: Array
    scores: Array
    parameters: Array


@dataclass(frozen=True)
class Mean:
    """A, E[u], E[u y'] (or E[u set] for joint scores) and E[u feature] under a space's own law."""

    log_partition: Array
    value: Array
    scores: Array
    parameters: Array


class Moments(Protocol):
    """F(q) for every q."""

    def moment(
        self, scores: Array, y_true: Array, q: float, of: Of = "utility", log_scale: float = 0.0,
        parameters: bool = True,
    ) -> Moment:  # fmt: skip
        """F(q) of utility or loss, with its derivatives, times e^log_scale.

        Without ``parameters`` the derivatives by them have no meaning and may be left out.
        """
        ...


class Expectation(Moments, Protocol):
    """The moments of one target on one space, and what the limit q -> 0 needs.

    Results can be asked for times e^log_scale: the sums of the paper are means times a number of
    label sets that may be too large, and a mean too small, for a float.
    """

    @property
    def target(self) -> Target: ...

    @property
    def space(self) -> Space: ...

    def uniform(self, y_true: Array, of: Of = "utility", log_scale: float = 0.0) -> Array:
        """F(0), the uniform mean, (n,)."""
        ...

    def logistic(
        self, scores: Array, y_true: Array, log_scale: float = 0.0, parameters: bool = True
    ) -> Moment:
        """-F'(0) = E_0[u log(1 / (|Y| s))] of the utility, and its own derivatives."""
        ...


class MeanOf(Protocol):
    """How E[u], E[u y'] and E[u feature] are computed for one form of target on one space."""

    @property
    def space(self) -> Space: ...

    def mean(self, scores: Array, y_true: Array, of: Of, parameters: bool = True) -> Mean: ...

    def on(self, space: Space) -> MeanOf: ...


@dataclass(frozen=True)
class Tempered:
    """Moments from means: the weights times q are the scores times q on the tempered space."""

    target: Target
    route: MeanOf
    _tempered: dict[float, MeanOf] = field(default_factory=dict, repr=False)

    @property
    def space(self) -> Space:
        """The space of the moments."""
        return self.route.space

    def moment(
        self, scores: Array, y_true: Array, q: float, of: Of = "utility", log_scale: float = 0.0,
        parameters: bool = True,
    ) -> Moment:  # fmt: skip
        """F(q) by tempering, with its derivatives."""
        space = self.space
        scores = scores.astype(np.float64)
        log_partition, mean_scores, mean_features = space.mean_scores(scores, parameters)
        mean = self._at(q).mean(q * scores, y_true, of, parameters)
        excess = (mean.log_partition - space.log_size) - q * (log_partition - space.log_size)
        excess += log_scale
        return Moment(
            times_exp(mean.value, excess),
            times_exp(mean.scores - mean.value[:, None] * mean_scores, excess[:, None]),
            times_exp(self._apart(mean.parameters, mean_features), excess[:, None])
            if parameters
            else mean_features,
        )

    def uniform(self, y_true: Array, of: Of = "utility", log_scale: float = 0.0) -> Array:
        """F(0): the mean without scores on the space without finite biases."""
        return times_exp(self._uniform_mean(y_true, of, False).value, log_scale)

    def logistic(
        self, scores: Array, y_true: Array, log_scale: float = 0.0, parameters: bool = True
    ) -> Moment:
        """E_0[u] (A - log|Y|) - E_0[u z] and its derivatives E_0[u] E[y'] - E_0[u y']."""
        space = self.space
        scores = scores.astype(np.float64)
        log_partition, mean_scores, mean_features = space.mean_scores(scores, parameters)
        biased = np.where(np.isfinite(space.parameters), space.parameters, 0.0)
        flat = self._uniform_mean(y_true, "utility", parameters or bool(biased.any()))
        value = flat.value * (log_partition - space.log_size)
        value -= (scores * flat.scores).sum(axis=1)
        if biased.any():
            value -= flat.parameters @ biased
        return Moment(
            times_exp(value, log_scale),
            times_exp(flat.value[:, None] * mean_scores - flat.scores, log_scale),
            times_exp(-self._apart(flat.parameters, mean_features), log_scale)
            if parameters
            else mean_features,
        )

    def _at(self, q: float) -> MeanOf:
        """The route on the space tempered by q, made once for the latest q."""
        if q not in self._tempered:
            if len(self._tempered) >= KEPT:
                del self._tempered[next(iter(self._tempered))]
            route = self.route if q == 1.0 else self.route.on(self.space.tempered(q))
            self._tempered[q] = route
        return self._tempered[q]

    def _uniform_mean(self, y_true: Array, of: Of, parameters: bool) -> Mean:
        nothing = np.zeros((len(y_true), self.space.n_scores))
        return self._at(0.0).mean(nothing, y_true, of, parameters)

    def _apart(self, weighted: Array, mean_features: Array) -> Array:
        """E_q[u f] - E_q[u] E_1[f] for each feature f; 0 for excluded ones.

        In a group of features of which exactly one is 1, it is E_q[u f] P_1(not f) -
        E_q[u; not f] P_1(f), where "not f" is the sum of the others: accurate also where one
        feature is all but certain.
        """
        group = self.space.feature_group
        if group == 0:
            return np.zeros_like(mean_features)
        shape = (len(weighted), -1, group) if len(weighted) else (0, 0, group)
        weight, mean = weighted.reshape(shape), mean_features.reshape(shape)
        apart = weight * _others(mean) - _others(weight) * mean
        return apart.reshape(mean_features.shape) * np.isfinite(self.space.parameters)


def _others(values: Array) -> Array:
    """The sum of all other entries of the last axis, without a difference."""
    before, after = np.zeros_like(values), np.zeros_like(values)
    np.cumsum(values[..., :-1], axis=-1, out=before[..., 1:])
    after[..., :-1] = np.cumsum(values[..., :0:-1], axis=-1)[..., ::-1]
    return before + after


def times_exp(values: Array, exponent: Array | float) -> Array:
    """values * e^exponent, where 0 times an overflow is 0 and nothing is NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = values * np.exp(exponent)
    return np.where(values == 0.0, 0.0, product)
