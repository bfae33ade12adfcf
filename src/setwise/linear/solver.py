"""Minimising mean loss + alpha / 2 ||W||² over linear scores X W + b and the space's parameters."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import issparse

from setwise.linear.objective import Objective

Array = NDArray[Any]

# Entries of scores that are held at a time.
CHUNK_ENTRIES = 2**24
MEMORY = 10


@dataclass(frozen=True)
class Solution:
    """Weights (d, n_scores), intercepts (n_scores,), parameters (p,), and how it ended."""

    weights: Array
    intercept: Array
    parameters: Array
    value: float
    gradient_norm: float
    n_iter: int


@dataclass(frozen=True)
class Problem:
    """Inputs and an objective; ``mass`` is the sum of the weights of the rows.

    With ``label_features`` V, a row for each score, the scores are (X W + b) V^T.
    """

    inputs: Any
    objective: Objective
    alpha: float
    fit_intercept: bool
    mass: float
    label_features: Array | None = None

    def start(self) -> Solution:
        """All weights 0, the parameters as the space has them."""
        space = self.objective.space
        features = self.label_features
        columns = self.objective.n_scores if features is None else features.shape[1]
        shape = (self.inputs.shape[1], columns)
        parameters = np.empty(0) if space is None else space.parameters
        return Solution(np.zeros(shape), np.zeros(shape[1]), parameters, np.inf, np.inf, 0)

    def value_and_gradient(
        self, weights: Array, intercept: Array, parameters: Array
    ) -> tuple[float, Array, Array, Array]:
        """The objective and its gradients by weights, intercepts and parameters."""
        dtype = self.inputs.dtype
        value, by_intercept, by_parameter = 0.0, np.zeros_like(intercept), np.zeros_like(parameters)
        by_weight = np.zeros_like(weights)
        cast, shift = weights.astype(dtype), intercept.astype(dtype)
        basis = None if self.label_features is None else self.label_features.astype(dtype)
        for rows in self._ranges():
            part = self.inputs[rows]
            scores = np.ascontiguousarray(part @ cast) + shift
            if basis is not None:
                scores = scores @ basis.T
            loss, gradient, by_part = self.objective.sums(rows, scores, parameters)
            if basis is not None:
                gradient = gradient @ basis
            value += loss
            by_weight += part.T @ gradient
            by_intercept += gradient.sum(axis=0, dtype=np.float64)
            by_parameter += by_part
        value = value / self.mass + self.alpha / 2.0 * float((weights**2).sum())
        by_weight = by_weight / self.mass + self.alpha * weights
        if not self.fit_intercept:
            by_intercept[:] = 0.0
        return value, by_weight, by_intercept / self.mass, by_parameter / self.mass

    def scale(self) -> Array:
        """A length for each feature that makes the curvature by its weights alike, (d,)."""
        squares = (
            self.inputs.multiply(self.inputs).mean(axis=0)
            if issparse(self.inputs)
            else np.einsum("ij,ij->j", self.inputs, self.inputs) / self.inputs.shape[0]
        )
        return 1.0 / np.sqrt(np.asarray(squares, np.float64).ravel() / 4.0 + self.alpha + 1e-12)

    def _ranges(self) -> Iterator[slice]:
        step = max(64, CHUNK_ENTRIES // max(self.objective.n_scores, 1))
        for first in range(0, self.inputs.shape[0], step):
            yield slice(first, min(first + step, self.inputs.shape[0]))


def solve(problem: Problem, start: Solution, tol: float, max_iter: int, warn: bool) -> Solution:
    """The minimiser by L-BFGS from ``start``, in features scaled to like curvature.

    Ends where no entry of the gradient exceeds ``tol``; else warns with the one that does.
    """
    shape, n_scores = start.weights.shape, len(start.intercept)
    free = np.isfinite(start.parameters)
    scale = problem.scale()[:, None]

    def unpack(flat: Array) -> tuple[Array, Array, Array]:
        weights = flat[: shape[0] * shape[1]].reshape(shape) * scale
        intercept = flat[weights.size : weights.size + n_scores]
        parameters = start.parameters.copy()
        parameters[free] = flat[weights.size + n_scores :]
        return weights, intercept, parameters

    last: dict[str, float] = {}

    def objective(flat: Array) -> tuple[float, Array]:
        value, by_weight, by_intercept, by_parameter = problem.value_and_gradient(*unpack(flat))
        last["norm"] = max(
            np.abs(part).max(initial=0.0) for part in (by_weight, by_intercept, by_parameter[free])
        )
        flat_gradient = np.concatenate(
            [(by_weight * scale).ravel(), by_intercept, by_parameter[free]]
        )
        return value, flat_gradient

    def stop(intermediate_result) -> None:
        if last["norm"] <= tol:
            raise StopIteration

    first = np.concatenate(
        [(start.weights / scale).ravel(), start.intercept, start.parameters[free]]
    )
    found = minimize(
        objective, first, jac=True, method="L-BFGS-B", callback=stop,
        options={"maxiter": max_iter, "maxcor": MEMORY, "gtol": 0.0, "ftol": 0.0,
                 "maxfun": 10 * max_iter + 10},
    )  # fmt: skip
    weights, intercept, parameters = unpack(found.x)
    value, *gradients = problem.value_and_gradient(weights, intercept, parameters)
    gradients[2] = gradients[2][free]
    norm = max(float(np.abs(part).max(initial=0.0)) for part in gradients)
    if warn and norm > tol:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"the solver stopped after {found.nit} iterations with a gradient of {norm:.2e}, above "
            f"tol = {tol:g}; raise max_iter or alpha, or scale the features",
            ConvergenceWarning,
            stacklevel=3,
        )
    return Solution(weights, intercept, parameters, value, norm, int(found.nit))
