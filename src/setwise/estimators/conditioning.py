"""Variables of like curvature, for a solver.

The change of variables makes the objective bend nearly alike in all directions. The Hessian by the
weights of score j is the mean over rows of c_ij x_i x_i', plus alpha, where c_ij is the variance of
what score j multiplies: 4 p (1 - p) for a label of probability p. At scores that do not depend on
the inputs it is c_j Cov(X) + alpha: its inverse root makes round what was long and thin, and a
quasi-Newton method needs a tenth of the steps or fewer. As a model learns, rows that it is sure of
bend no more, so on the way the diagonal of the Hessian is taken anew, for every feature and score:
half the steps again, where penalties are small. With intercepts the features are centred, without
ever being changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.estimators.moments import Columns

Array = NDArray[Any]

# The least variance that a feature, a label or a parameter of the space is given.
LEAST_VARIANCE, LEAST_SPREAD = 1e-12, 1e-6


@dataclass(frozen=True)
class Conditioning:
    """weights = rotation (U * scale), intercept = v * by_score - sum of center * (U * scale).

    ``scale`` is (d, m) and ``center`` (d, 1) or (d, m), along the columns of the ``rotation``,
    which is None where the features are only scaled. Parameters of the space are divided by
    ``by_parameter``.
    """

    center: Array
    rotation: Array | None
    scale: Array
    by_score: Array
    by_parameter: Array

    @classmethod
    def of(cls, design: Columns, alpha: float, spread: Array, parameters: Array) -> Conditioning:
        """As if every row had the same spread of each score (m,); spread of parameters (p,)."""
        variance, rotation = design.spectrum
        spread = np.maximum(spread, LEAST_SPREAD)
        bend = np.maximum(variance, LEAST_VARIANCE)[:, None] * spread + alpha
        center = design.center if rotation is None else rotation.T @ design.center
        return cls(
            center[:, None], rotation, 1.0 / np.sqrt(bend), 1.0 / np.sqrt(spread),
            1.0 / np.sqrt(np.maximum(parameters, LEAST_SPREAD)),
        )  # fmt: skip

    def at(self, alpha: float, bends: tuple[Array, Array, Array], is_centred: bool) -> Conditioning:
        """With the second derivatives of the mean loss somewhere; parameters as they are.

        ``bends`` are those by each score (m,), times the features, and times their squares, (d, m).
        With intercepts the features are centred for each score by itself.
        """
        spread, first, second = bends
        spread = np.maximum(spread, LEAST_SPREAD)
        center = first / spread * is_centred
        bend = np.maximum(second - first * center, LEAST_VARIANCE * spread) + alpha
        return replace(self, center=center, scale=1.0 / np.sqrt(bend), by_score=spread**-0.5)

    def flat(self, weights: Array, intercept: Array, parameters: Array) -> Array:
        """The variables of a point."""
        inner = weights if self.rotation is None else self._product(self.rotation.T, weights)
        shift = (intercept + self._at_center(inner)) / self.by_score
        return np.concatenate([(inner / self.scale).ravel(), shift, parameters / self.by_parameter])

    def point(self, flat: Array) -> tuple[Array, Array, Array]:
        """Weights, intercepts and parameters of the variables."""
        inner, shift, rest = np.split(flat, np.cumsum([self.scale.size, len(self.by_score)]))
        inner = inner.reshape(self.scale.shape) * self.scale
        weights = inner if self.rotation is None else self._product(self.rotation, inner)
        return weights, shift * self.by_score - self._at_center(inner), rest * self.by_parameter

    def gradient(self, by_weight: Array, by_intercept: Array, by_parameter: Array) -> Array:
        """The gradient by the variables, from that by weights, intercepts and parameters."""
        inner = by_weight if self.rotation is None else self._product(self.rotation.T, by_weight)
        inner = (inner - self.center * by_intercept) * self.scale
        parts = by_intercept * self.by_score, by_parameter * self.by_parameter
        return np.concatenate([inner.ravel(), *parts])

    @staticmethod
    def _product(rotation: Array, other: Array) -> Array:
        """In the precision of the rotation, and float64 again."""
        return (rotation @ other.astype(rotation.dtype, copy=False)).astype(np.float64, copy=False)

    def _at_center(self, inner: Array) -> Array:
        """What the features add to each score at its center, (m,)."""
        if self.center.shape[1] == 1:
            return self.center[:, 0] @ inner
        return np.einsum("ij,ij->j", self.center, inner)
