"""What a solver minimises, and its sums over blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse

from setwise.blocks.block import Block
from setwise.estimators.conditioning import Conditioning
from setwise.estimators.design import Array, Solution
from setwise.estimators.strips import product, transposed_product
from setwise.estimators.training import Objective, penalty, ranges_for
from setwise.sparse import dense_rows, row_ranges

# Entries of rotated inputs that are held at a time.
TURNED_ENTRIES = 2**22


@dataclass(frozen=True)
class Terms:
    """What a block of rows adds to the sums that a solver needs; rows in ranges, of few entries.

    ``objective`` has no rows of its own. With ``label_features`` V the scores are (X W + b) V^T.
    Products with the inputs are in the type ``precision``, of gradients divided by ``unit``.
    """

    objective: Objective
    label_features: Array | None
    precision: Any
    unit: float

    def value_and_gradient(
        self, block: Block, weights: Array, intercept: Array, parameters: Array
    ) -> tuple[float, Array, Array, Array]:
        """The weighted losses, and their gradients by weights, intercepts and parameters."""
        features, value, by_weight = self.label_features, 0.0, np.zeros_like(weights)
        by_intercept, by_parameter = np.zeros_like(intercept), np.zeros_like(parameters)
        for objective, part, scores in self._scores(block, weights, intercept):
            loss, gradient, by_part = objective.sums(slice(None), scores, parameters)
            gradient = gradient if features is None else gradient @ features
            value += loss
            by_intercept += gradient.sum(axis=0)
            gradient = gradient if self.unit == 1.0 else gradient / self.unit
            by_weight += transposed_product(part, gradient.astype(part.dtype, copy=False))
            by_parameter += by_part
        if self.unit != 1.0:
            by_weight *= self.unit
        return value, by_weight, by_intercept, by_parameter

    def variance(
        self, block: Block, weights: Array, intercept: Array, parameters: Array
    ) -> tuple[Array]:
        """The weighted variance of what each score multiplies, (n_scores,)."""
        spread = np.zeros(self.objective.space.n_scores)
        for objective, _, scores in self._scores(block, weights, intercept):
            spread += objective.variance(slice(None), scores, parameters)
        return (spread,)

    def bends(
        self,
        block: Block,
        weights: Array,
        intercept: Array,
        parameters: Array,
        rotation: Array | None,
    ) -> tuple[Array, Array, Array]:
        """Sums over rows of the weighted variances (m,), times features, and their squares, (d, m).

        Of a likelihood, these are its second derivatives; features are along the rotation.
        """
        spread, first, second = (np.zeros_like(like) for like in (intercept, weights, weights))
        features = self.label_features
        for objective, part, scores in self._scores(block, weights, intercept):
            bends = objective.variances(slice(None), scores, parameters)
            bends = bends if features is None else bends @ features**2
            spread += bends.sum(axis=0)
            for rows in row_ranges(len(bends), weights.shape[0], TURNED_ENTRIES):
                inputs: Any = part[rows].astype(np.float64)
                inputs = inputs if rotation is None else product(inputs, rotation)
                first += transposed_product(inputs, bends[rows])
                inputs = inputs.power(2) if issparse(inputs) else np.square(inputs, out=inputs)
                second += transposed_product(inputs, bends[rows])
        return spread, first, second

    def _scores(
        self, block: Block, weights: Array, intercept: Array
    ) -> Iterator[tuple[Objective, Any, Array]]:
        """Rows in ranges: their objective, inputs and scores."""
        inputs, features, n = block.inputs, self.label_features, block.inputs.shape[0]
        weights = weights.astype(self.precision, copy=False)
        for rows in ranges_for(self.objective.space, n) if n else ():
            part = inputs if rows == slice(0, n) else inputs[rows]
            part = part.astype(self.precision, copy=False)
            scores = product(part, weights) + intercept
            objective = self.objective.of_rows(dense_rows(block.sets, rows), block.weights[rows])
            yield objective, part, scores if features is None else scores @ features.T


@dataclass(frozen=True)
class Problem:
    """A design and an objective, whose value is divided by the sum of the weights of the rows.

    With ``label_features`` V, a row for each score, the scores are (X W + b) V^T.
    """

    design: Any
    objective: Objective
    alpha: float
    label_features: Array | None = None

    def start(self) -> Solution:
        """All weights 0, intercepts and parameters as the objective has them to begin with."""
        intercept = self.objective.start()
        if self.label_features is not None:
            intercept = np.linalg.lstsq(self.label_features, intercept)[0]
        if not self.design.fit_intercept:
            intercept = np.zeros_like(intercept)
        weights = np.zeros((self.design.n_features, len(intercept)))
        return Solution(weights, intercept, self.objective.parameters)

    def value_and_gradient(
        self, weights: Array, intercept: Array, parameters: Array
    ) -> tuple[float, Array, Array, Array]:
        """The objective and its gradients by weights, intercepts and parameters.

        In float64, but for products with inputs, which are in the precision of the design.
        """
        mass = self.objective.mass
        value, by_weight, by_intercept, by_parameter = self._rows.sum(
            self._terms.value_and_gradient, weights, intercept, parameters
        )
        shrinkage, by_shrinkage = penalty(self.objective.space, parameters)
        value, by_parameter = value + shrinkage, by_parameter + by_shrinkage
        # (With few copies: where features are many, passes over the weights are what a step costs.)
        value = value / mass + self.alpha / 2.0 * float(np.einsum("ij,ij->", weights, weights))
        by_weight = by_weight / mass
        by_weight += self.alpha * weights
        by_intercept = by_intercept * self.design.fit_intercept
        return value, by_weight, by_intercept / mass, by_parameter / mass

    @cached_property
    def _rows(self) -> Any:
        return self.design.rows(self.objective.y_true, self.objective.weights)

    @cached_property
    def _terms(self) -> Terms:
        # (A power of 2, which changes no digit: weights may be too large or small for float32.)
        weight = self.objective.mass / len(self.objective.weights)
        unit = 1.0 if self.design.precision == np.float64 else 2.0 ** np.round(np.log2(weight))
        features, precision = self.label_features, self.design.precision
        return Terms(self.objective.of_no_rows(), features, precision, unit)

    def value(self, at: Solution) -> float:
        """The objective at a point."""
        return self.value_and_gradient(at.weights, at.intercept, at.parameters)[0]

    def gradient_norm(self, by_weight: Array, by_intercept: Array, by_parameter: Array) -> float:
        """Infinity norm of the gradient after centring the features.

        Uncentred, a feature with mean m adds m times the intercept's gradient to its own, which
        would dominate the stopping test. The plain gradient counts up to ten times the other, so
        that it is small too where features are near 0.
        """
        centred = self.design.center[:, None] * -by_intercept
        centred += by_weight
        plain, *parts = (
            float(max(part.max(initial=0.0), -part.min(initial=0.0)))
            for part in (by_weight, centred, by_intercept, by_parameter)
        )
        return max(*parts, min(plain, 10.0 * max(parts)))

    def conditioning(self, at: Solution) -> Conditioning:
        """The change of variables for the solver where it is; of parameters the finite ones."""
        point, mass = (at.weights, at.intercept, at.parameters), self.objective.mass
        parameters = self.objective.spread()[np.isfinite(at.parameters)]
        if self.objective.stage is None and at.weights.any():
            alike = np.ones(at.weights.shape[1])
            even = Conditioning.of(self.design, self.alpha, alike, parameters)
            bends = self._rows.sum(self._terms.bends, *point, even.rotation)
            bends = tuple(part / mass for part in bends)
            return even.at(self.alpha, bends, self.design.fit_intercept)
        spread = self._rows.sum(self._terms.variance, *point)[0] / mass
        if self.label_features is not None:
            spread = spread @ self.label_features**2
        return Conditioning.of(self.design, self.alpha, spread, parameters)
