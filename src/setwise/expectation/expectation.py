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

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from setwise.spaces.space import Array, Space
from setwise.targets.measure import Of
from setwise.targets.target import Target


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

    def moment(self, scores: Array, y_true: Array, q: float, of: Of = "utility") -> Moment:
        """F(q) of utility or loss, with its derivatives."""
        ...


class Expectation(Moments, Protocol):
    """The moments of one target on one space, and what the limit q -> 0 needs."""

    @property
    def target(self) -> Target: ...

    @property
    def space(self) -> Space: ...

    def uniform(self, y_true: Array, of: Of = "utility") -> Array:
        """F(0), the uniform mean, (n,)."""
        ...

    def logistic(self, scores: Array, y_true: Array) -> Moment:
        """-F'(0) = E_0[u log(1 / (|Y| s))] of the utility, and its own derivatives."""
        ...


class MeanOf(Protocol):
    """How E[u], E[u y'] and E[u feature] are computed for one form of target on one space."""

    @property
    def space(self) -> Space: ...

    def mean(self, scores: Array, y_true: Array, of: Of) -> Mean: ...

    def on(self, space: Space) -> MeanOf: ...


@dataclass(frozen=True)
class Tempered:
    """Moments from means: the weights times q are the scores times q on the tempered space."""

    target: Target
    route: MeanOf

    @property
    def space(self) -> Space:
        """The space of the moments."""
        return self.route.space

    def moment(self, scores: Array, y_true: Array, q: float, of: Of = "utility") -> Moment:
        """F(q) by tempering, with its derivatives."""
        space = self.space
        scores = scores.astype(np.float64)
        log_partition, mean_scores, mean_features = space.mean_scores(scores)
        route = self.route if q == 1.0 else self.route.on(space.tempered(q))
        mean = route.mean(q * scores, y_true, of)
        excess = (mean.log_partition - space.log_size) - q * (log_partition - space.log_size)
        return Moment(
            times_exp(mean.value, excess),
            times_exp(mean.scores - mean.value[:, None] * mean_scores, excess[:, None]),
            times_exp(mean.parameters - mean.value[:, None] * mean_features, excess[:, None])
            * np.isfinite(space.parameters),
        )

    def uniform(self, y_true: Array, of: Of = "utility") -> Array:
        """F(0): the mean without scores on the space without finite biases."""
        return self._uniform_mean(y_true, of).value

    def logistic(self, scores: Array, y_true: Array) -> Moment:
        """E_0[u] (A - log|Y|) - E_0[u z] and its derivatives E_0[u] E[y'] - E_0[u y']."""
        space = self.space
        scores = scores.astype(np.float64)
        log_partition, mean_scores, mean_features = space.mean_scores(scores)
        flat = self._uniform_mean(y_true, "utility")
        weight = flat.value[:, None]
        biased = np.where(np.isfinite(space.parameters), space.parameters, 0.0)
        return Moment(
            flat.value * (log_partition - space.log_size)
            - (scores * flat.scores).sum(axis=1)
            - flat.parameters @ biased,
            weight * mean_scores - flat.scores,
            (weight * mean_features - flat.parameters) * np.isfinite(space.parameters),
        )

    def _uniform_mean(self, y_true: Array, of: Of) -> Mean:
        flat = self.route.on(self.space.tempered(0.0))
        return flat.mean(np.zeros((len(y_true), self.space.n_scores)), y_true, of)


def times_exp(values: Array, exponent: Array) -> Array:
    """values * e^exponent, where 0 times an overflow is 0 and nothing is NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = values * np.exp(exponent)
    return np.where(values == 0.0, 0.0, product)
