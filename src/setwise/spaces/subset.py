"""Expectations of the subset 0/1 loss: the probability of one set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise.spaces.cube import Cube
from setwise.spaces.expectation import Moment, Moments, times_exp
from setwise.spaces.forest import Forest
from setwise.spaces.hierarchy import law_of, slopes_by_parameters
from setwise.spaces.paths import Paths
from setwise.spaces.sized import Sized
from setwise.spaces.space import Array
from setwise.targets.measure import Of
from setwise.targets.target import Target


@dataclass(frozen=True)
class SubsetMoments:
    """u = 1 on y alone, so F(q) = (|Y| s(y))^q / |Y| in closed form.

    A true set outside the space has utility 0 everywhere. The loss 1 - s(y) is only ever needed at
    q = 1; where ``loss`` is given, its moments are taken from there.
    """

    target: Target
    space: Cube | Forest | Sized | Paths
    loss: Moments | None = None

    def moment(
        self, scores: Array, y_true: Array, q: float, of: Of = "utility", log_scale: float = 0.0,
        parameters: bool = True,
    ) -> Moment:  # fmt: skip
        """F(q) and its derivatives."""
        if of == "loss":
            return self._loss_moment(scores, y_true, q, log_scale, parameters)
        law = self._likelihood(scores, y_true, parameters)
        inside = np.isfinite(law.value)
        excess = np.where(inside, law.value, 0.0) + self.space.log_size
        log_value = np.where(inside, q * excess + log_scale - self.space.log_size, -np.inf)
        value = times_exp(np.ones(len(scores)), log_value)
        return _scaled(value, law, log_value)

    def uniform(self, y_true: Array, of: Of = "utility", log_scale: float = 0.0) -> Array:
        """1 / |Y| inside the space, 0 outside; one minus that for the loss."""
        inside = self.space.contains(y_true)
        share = times_exp(inside * 1.0, log_scale - self.space.log_size)
        return share if of == "utility" else times_exp(np.ones(len(share)), log_scale) - share

    def logistic(
        self, scores: Array, y_true: Array, log_scale: float = 0.0, parameters: bool = True
    ) -> Moment:
        """-log(|Y| s(y)) / |Y|: the negative log-likelihood, less a constant, over |Y|."""
        law = self._likelihood(scores, y_true, parameters)
        inside = np.isfinite(law.value)
        excess = np.where(inside, law.value, 0.0) + self.space.log_size
        log_share = np.where(inside, log_scale - self.space.log_size, -np.inf)
        value = times_exp(-excess, log_share)
        np.negative(law.scores, out=law.scores)
        np.negative(law.parameters, out=law.parameters)
        return _scaled(value, law, log_share)

    def _likelihood(self, scores: Array, y_true: Array, parameters: bool) -> Moment:
        """log s(y), -inf outside the space, and its derivatives."""
        space = self.space
        law = law_of(space)
        if law is not None:
            value, away = law.likelihood(scores, y_true)
            return Moment(value, away, slopes_by_parameters(law, away, parameters))
        assert not isinstance(space, Paths)
        scores = scores.astype(np.float64)
        value = np.where(space.contains(y_true), space.log_probability(scores, y_true), -np.inf)
        m = space.moments(scores, features=parameters)
        # y_i - E[y'_i] as twice the probability of the other state, accurate near 0.
        away = 2.0 * np.where(y_true == 1, m.off, -m.on)
        if not parameters:
            return Moment(value, away, m.features)
        features = space.feature_gap(y_true, m.features)
        return Moment(value, away, features * np.isfinite(space.parameters))

    def _loss_moment(
        self, scores: Array, y_true: Array, q: float, log_scale: float, parameters: bool
    ) -> Moment:
        if self.loss is not None:
            return self.loss.moment(scores, y_true, q, "loss", log_scale, parameters)
        if q != 1.0:
            raise ValueError(f"the subset loss has closed moments at q = 1 only, not {q}")
        law = self._likelihood(scores, y_true, parameters)
        value = times_exp(-np.expm1(law.value), log_scale)
        np.negative(law.scores, out=law.scores)
        np.negative(law.parameters, out=law.parameters)
        return _scaled(value, law, law.value + log_scale)


def _scaled(value: Array, slopes: Moment, exponent: Array) -> Moment:
    """The value, and the slopes times e^exponent of their row."""
    if exponent.any():
        column = exponent[:, None]
        return Moment(value, times_exp(slopes.scores, column), times_exp(slopes.parameters, column))
    return Moment(value, slopes.scores, slopes.parameters)
