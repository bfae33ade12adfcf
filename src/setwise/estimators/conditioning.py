"""A change of variables in which the objective bends nearly alike in all directions.

At scores that do not depend on the inputs the Hessian by the weights of score j is c_j Cov(X) +
alpha, where c_j is the variance of what score j multiplies: 4 p (1 - p) for a label of frequency p.
Its inverse root makes round what was long and thin, and a quasi-Newton method needs a tenth of the
steps or fewer. With intercepts the features are centred, without ever being changed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise.estimators.design import Array, Design

# The least variance that a feature, a label or a parameter of the space is given.
LEAST_VARIANCE, LEAST_SPREAD = 1e-12, 1e-6


@dataclass(frozen=True)
class Conditioning:
    """weights = rotation (U * scale), intercept = v * by_score - center · weights.

    Parameters of the space are divided by ``by_parameter``. ``rotation`` is None where the features
    are only scaled.
    """

    center: Array
    rotation: Array | None
    scale: Array
    by_score: Array
    by_parameter: Array

    @classmethod
    def of(cls, design: Design, alpha: float, spread: Array, parameters: Array) -> Conditioning:
        """For a penalty, the spread of each score (m,) and of each parameter (p,)."""
        variance, rotation = design.spectrum
        spread = np.maximum(spread, LEAST_SPREAD)
        bend = np.maximum(variance, LEAST_VARIANCE)[:, None] * spread + alpha
        return cls(
            design.center, rotation, 1.0 / np.sqrt(bend), 1.0 / np.sqrt(spread),
            1.0 / np.sqrt(np.maximum(parameters, LEAST_SPREAD)),
        )  # fmt: skip

    def flat(self, weights: Array, intercept: Array, parameters: Array) -> Array:
        """The variables of a point."""
        turned = weights if self.rotation is None else self.rotation.T @ weights
        return np.concatenate(
            [
                (turned / self.scale).ravel(),
                (intercept + self.center @ weights) / self.by_score,
                parameters / self.by_parameter,
            ]
        )

    def point(self, flat: Array) -> tuple[Array, Array, Array]:
        """Weights, intercepts and parameters of the variables."""
        inner, shift, rest = np.split(flat, np.cumsum([self.scale.size, len(self.by_score)]))
        inner = inner.reshape(self.scale.shape) * self.scale
        weights = inner if self.rotation is None else self.rotation @ inner
        return weights, shift * self.by_score - self.center @ weights, rest * self.by_parameter

    def gradient(self, by_weight: Array, by_intercept: Array, by_parameter: Array) -> Array:
        """The gradient by the variables, from that by weights, intercepts and parameters."""
        inner = by_weight - np.outer(self.center, by_intercept)
        if self.rotation is not None:
            inner = self.rotation.T @ inner
        return np.concatenate(
            [
                (inner * self.scale).ravel(),
                by_intercept * self.by_score,
                by_parameter * self.by_parameter,
            ]
        )
