"""Expectations of the subset 0/1 loss: the probability of one set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise.expectation.expectation import Moment, Moments, times_exp
from setwise.spaces.cube import Cube
from setwise.spaces.forest import Forest
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
    space: Cube | Forest | Sized
    loss: Moments | None = None

    def moment(
        self, scores: Array, y_true: Array, q: float, of: Of = "utility", log_scale: float = 0.0
    ) -> Moment:
        """F(q) and its derivatives."""
        scores = scores.astype(np.float64)
        if of == "loss":
            return self._loss_moment(scores, y_true, q, log_scale)
        log_probability = self._log_probability(scores, y_true)
        inside = np.isfinite(log_probability)
        excess = np.where(inside, log_probability, 0.0) + self.space.log_size
        log_value = np.where(inside, q * excess + log_scale - self.space.log_size, -np.inf)
        value = times_exp(np.ones(len(scores)), log_value)
        return self._moment(value, log_value, scores, y_true)

    def uniform(self, y_true: Array, of: Of = "utility", log_scale: float = 0.0) -> Array:
        """1 / |Y| inside the space, 0 outside; one minus that for the loss."""
        inside = self.space.contains(y_true)
        share = times_exp(inside * 1.0, log_scale - self.space.log_size)
        return share if of == "utility" else times_exp(np.ones(len(share)), log_scale) - share

    def logistic(self, scores: Array, y_true: Array, log_scale: float = 0.0) -> Moment:
        """-log(|Y| s(y)) / |Y|: the negative log-likelihood, less a constant, over |Y|."""
        scores = scores.astype(np.float64)
        at_zero = self.moment(scores, y_true, 0.0, log_scale=log_scale)
        log_probability = self._log_probability(scores, y_true)
        inside = np.isfinite(log_probability)
        excess = np.where(inside, log_probability, 0.0) + self.space.log_size
        return Moment(-at_zero.value * excess, -at_zero.scores, -at_zero.parameters)

    def _log_probability(self, scores: Array, y_true: Array) -> Array:
        """log s(y), -inf outside the space."""
        inside = self.space.contains(y_true)
        return np.where(inside, self.space.log_probability(scores, y_true), -np.inf)

    def _loss_moment(self, scores: Array, y_true: Array, q: float, log_scale: float) -> Moment:
        if self.loss is not None:
            return self.loss.moment(scores, y_true, q, "loss", log_scale)
        if q != 1.0:
            raise ValueError(f"the subset loss has closed moments at q = 1 only, not {q}")
        log_probability = self._log_probability(scores, y_true)
        value = times_exp(-np.expm1(log_probability), log_scale)
        m = self._moment(value, log_probability + log_scale, scores, y_true)
        return Moment(value, -m.scores, -m.parameters)

    def _moment(self, value: Array, log_weight: Array, scores: Array, y_true: Array) -> Moment:
        """The derivatives of a probability e^log_weight of y: times y - E[y'], features alike."""
        m = self.space.moments(scores, features=True)
        # y_i - E[y'_i] as twice the probability of the other state, accurate near 0.
        away = 2.0 * np.where(y_true == 1, m.off, -m.on)
        features = self.space.feature_gap(y_true, m.features)
        column = log_weight[:, None]
        finite = np.isfinite(self.space.parameters)
        return Moment(value, times_exp(away, column), times_exp(features, column) * finite)
