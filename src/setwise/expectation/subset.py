"""Expectations of the subset 0/1 loss: the probability of one set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise.expectation.expectation import Moment, times_exp
from setwise.spaces.cube import Cube
from setwise.spaces.forest import Forest
from setwise.spaces.space import Array
from setwise.targets.measure import Of
from setwise.targets.target import Target


@dataclass(frozen=True)
class SubsetMoments:
    """u = 1 on y alone, so F(q) = (|Y| s(y))^q / |Y| in closed form.

    For the loss, 1 - s(y), only q = 0 and 1 are ever needed. A true set outside the space has
    utility 0 everywhere.
    """

    target: Target
    space: Cube | Forest

    def moment(self, scores: Array, y_true: Array, q: float, of: Of = "utility") -> Moment:
        """F(q) and its derivatives."""
        scores = scores.astype(np.float64)
        m = self.space.moments(scores, features=True)
        inside = self.space.contains(y_true)
        log_probability = self.space.log_probability(scores, y_true)
        # y_i - E[y'_i] as twice the probability of the other state, accurate near 0.
        away = 2.0 * np.where(y_true == 1, m.off, -m.on)
        features = self.space.feature_gap(y_true, m.features)
        log_size = self.space.log_size
        with np.errstate(invalid="ignore", over="ignore"):
            if of == "utility":
                log_value = q * (log_probability + log_size) - log_size
                value = np.where(inside, np.exp(log_value), 0.0)
                return self._moment(
                    value, np.where(inside, log_value, -np.inf), away, features, 1.0
                )
            if q != 1.0:
                raise ValueError(f"the subset loss has closed moments at q = 1 only, not {q}")
            value = np.where(inside, -np.expm1(log_probability), 1.0)
            log_weight = np.where(inside, log_probability, -np.inf)
            return self._moment(value, log_weight, away, features, -1.0)

    def uniform(self, y_true: Array, of: Of = "utility") -> Array:
        """1 / |Y| inside the space, 0 outside; one minus that for the loss."""
        share = np.where(self.space.contains(y_true), np.exp(-self.space.log_size), 0.0)
        return share if of == "utility" else 1.0 - share

    def logistic(self, scores: Array, y_true: Array) -> Moment:
        """-log(|Y| s(y)) / |Y|: the negative log-likelihood, less a constant, over |Y|."""
        at_zero = self.moment(scores, y_true, 0.0)
        inside = self.space.contains(y_true)
        log_probability = self.space.log_probability(scores.astype(np.float64), y_true)
        excess = np.where(inside, log_probability + self.space.log_size, 0.0)
        return Moment(-at_zero.value * excess, -at_zero.scores, -at_zero.parameters)

    def _moment(self, value, log_weight, away, features, sign) -> Moment:
        column = log_weight[:, None]
        finite = np.isfinite(self.space.parameters)
        return Moment(
            value, sign * times_exp(away, column), sign * times_exp(features, column) * finite
        )
