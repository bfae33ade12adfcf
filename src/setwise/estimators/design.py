"""The inputs of a linear model: read and checked, in the units and variables a solver sees them in.

The change of variables makes the objective bend nearly alike in all directions. At scores that do
not depend on the inputs the Hessian by the weights of score j is c_j Cov(X) + alpha, where c_j is
the variance of what score j multiplies: 4 p (1 - p) for a label of frequency p. Its inverse root
makes round what was long and thin, and a quasi-Newton method needs a tenth of the steps or fewer.
With intercepts the features are centred, without ever being changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.preprocessing import normalize
from sklearn.utils.validation import _check_sample_weight, validate_data

from setwise.labels import LabelNames, read_labels
from setwise.targets.truth import read_truth, refuse_open

Array = NDArray[Any]

# Features are rotated to their principal directions only where that costs less than it saves.
MOST_ROTATED = 1024
ROTATION_COST = 16
# Inputs of at most this many entries are turned into float64 once, others by ranges of rows.
ENTRIES_AT_ONCE = 2**24
CHUNK_ROWS = 4096
SCALINGS = (None, "standard", "rows")
# The least variance that a feature, a label or a parameter of the space is given.
LEAST_VARIANCE, LEAST_SPREAD = 1e-12, 1e-6


class Rows(NamedTuple):
    """Inputs (n, d), label sets (n, l) and weights (n,) of the same rows."""

    inputs: Any
    sets: NDArray[np.uint8]
    weights: NDArray[np.float64]

    def counted(self) -> Rows:
        """Those of positive weight: one of weight 0 is as if it were not there."""
        return self if (self.weights > 0).all() else self.taken(self.weights > 0)

    def taken(self, rows: Any) -> Rows:
        """Those of a split, given by numbers or as a mask, that have a positive weight."""
        chosen = np.asarray(rows)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        kept = chosen[self.weights[chosen] > 0]
        if len(kept) == 0:
            raise ValueError(
                "a fold of cv has no row of positive weight to learn from or to judge by"
            )
        return Rows(self.inputs[kept], self.sets[kept], self.weights[kept])


def read_training(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, LabelNames]:
    """What `fit` is given, checked, and the names of the labels."""
    if y is None:
        read_labels(y)
    inputs: Any = validate_data(estimator, X, accept_sparse="csr", dtype=[np.float64, np.float32])
    sets, names = read_truth(estimator.target, y)
    sets = sets.toarray() if hasattr(sets, "toarray") else sets
    if len(sets) != inputs.shape[0]:
        raise ValueError(
            f"X and y must have the same number of rows, but X has {inputs.shape[0]} and y "
            f"{len(sets)}"
        )
    weights = np.asarray(
        _check_sample_weight(sample_weight, inputs, ensure_non_negative=True), np.float64
    )
    if not weights.sum() > 0:
        raise ValueError("sample_weight must not be all zero")
    refuse_open(estimator.target, sets, weights)
    return Rows(inputs, sets, weights), names


@dataclass(frozen=True)
class Design:
    """Inputs (n, d), dense or CSR, in the model's scaling; each feature divided by ``unit``."""

    inputs: Any
    unit: Array
    fit_intercept: bool

    @classmethod
    def of(cls, rows: Rows, scaling: str | None, fit_intercept: bool) -> Design:
        """As they are, in units of the features' standard deviations, or with rows of length 1.

        The weights of the rows count in the standard deviations.
        """
        inputs = rows.inputs
        if scaling not in SCALINGS:
            known = ", ".join(map(repr, SCALINGS))
            raise ValueError(f"scaling must be one of {known}, not {scaling!r}")
        unit = np.ones(inputs.shape[1])
        if scaling == "standard":
            unit = standard_deviations(inputs, rows.weights)
            inputs = _divided(inputs, unit)
        return cls(scaled_rows(inputs, scaling), unit, fit_intercept)

    @cached_property
    def precise(self) -> Any:
        """The inputs in float64 if they are not too many, else as they are."""
        if self.n_entries > ENTRIES_AT_ONCE:
            return self.inputs
        return self.inputs.astype(np.float64)

    @property
    def n_entries(self) -> int:
        """Stored entries."""
        return int(self.inputs.nnz if issparse(self.inputs) else self.inputs.size)

    @cached_property
    def center(self) -> Array:
        """The mean of each feature, or 0 without intercepts, (d,)."""
        if not self.fit_intercept:
            return np.zeros(self.inputs.shape[1])
        return np.asarray(self.inputs.mean(axis=0, dtype=np.float64)).ravel()

    def centred(self) -> tuple[Any, Array]:
        """Inputs less their center, and it, if they are dense and there are intercepts."""
        if issparse(self.inputs) or not self.fit_intercept:
            return self.inputs, np.zeros(self.inputs.shape[1])
        return (self.inputs - self.center).astype(self.inputs.dtype), self.center

    @cached_property
    def spectrum(self) -> tuple[Array, Array | None]:
        """Variances (d,) along the principal directions (d, d), or along the features and None."""
        d = self.inputs.shape[1]
        if d <= MOST_ROTATED and d * d <= ROTATION_COST * self.n_entries:
            variance, rotation = np.linalg.eigh(self._covariance())
        else:
            variance, rotation = squares(self.inputs, self.center), None
        return np.maximum(variance, 0.0), rotation

    def _covariance(self) -> Array:
        """Second moments about the center, (d, d)."""
        n, d = self.inputs.shape
        total = np.zeros((d, d))
        for first in range(0, n, CHUNK_ROWS):
            part = self.inputs[first : first + CHUNK_ROWS]
            if issparse(part):
                part = part.astype(np.float64)
                total += (part.T @ part).toarray()
            else:
                part = part - self.center
                total += part.T @ part
        return total / n - np.outer(self.center, self.center) * issparse(self.inputs)


def scaled_rows(inputs: Any, scaling: str | None) -> Any:
    """The inputs, with rows of Euclidean length 1 if that is the scaling; a row of 0 stays."""
    return normalize(inputs) if scaling == "rows" else inputs


def squares(inputs: Any, center: Array, weights: Array | None = None) -> Array:
    """Weighted mean of each feature's squared distance from its center, (d,)."""
    n, d = inputs.shape
    share = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    if issparse(inputs):
        row = np.repeat(np.arange(n), np.diff(inputs.indptr))
        far = (inputs.data - center[inputs.indices]) ** 2
        stored = np.bincount(inputs.indices, share[row], d)
        away = np.bincount(inputs.indices, share[row] * far, d)
        # What is not stored is 0, as far away as the center itself.
        return away + np.where(stored < 1.0 - 1e-12, 1.0 - stored, 0.0) * center**2
    total = np.zeros(d)
    for first in range(0, n, CHUNK_ROWS):
        rows = slice(first, first + CHUNK_ROWS)
        total += share[rows] @ np.square(inputs[rows] - center)
    return total


def standard_deviations(inputs: Any, weights: Array) -> Array:
    """Of each feature, 1 for one that is constant, (d,)."""
    mean = np.asarray(inputs.T @ (weights / weights.sum())).ravel()
    deviation = np.sqrt(squares(inputs, mean, weights))
    return np.where(deviation > 1e-7 * np.abs(mean), deviation, 1.0)


def _divided(inputs: Any, unit: Array) -> Any:
    """A copy with each feature divided by its unit, in the inputs' type."""
    if issparse(inputs):
        copy = inputs.copy()
        copy.data = (copy.data / unit[copy.indices]).astype(inputs.dtype)
        return copy
    return (inputs / unit).astype(inputs.dtype)


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
