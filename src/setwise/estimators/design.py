"""The inputs of a linear model as a solver sees them: in which units, about which center."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.preprocessing import normalize

Array = NDArray[Any]

# Features are rotated to their principal directions only where that costs less than it saves.
MOST_ROTATED = 1024
ROTATION_COST = 16
# Inputs of at most this many entries are turned into float64 once, others by ranges of rows.
ENTRIES_AT_ONCE = 2**24
CHUNK_ROWS = 4096
SCALINGS = (None, "standard", "rows")


@dataclass(frozen=True)
class Design:
    """Inputs (n, d), dense or CSR, in the model's scaling; each feature divided by ``unit``."""

    inputs: Any
    unit: Array
    fit_intercept: bool

    @classmethod
    def of(cls, inputs: Any, scaling: str | None, fit_intercept: bool, weights: Array) -> Design:
        """As they are, in units of the features' standard deviations, or with rows of length 1.

        ``weights`` of the rows count in the standard deviations.
        """
        if scaling not in SCALINGS:
            known = ", ".join(map(repr, SCALINGS))
            raise ValueError(f"scaling must be one of {known}, not {scaling!r}")
        unit = np.ones(inputs.shape[1])
        if scaling == "standard":
            unit = standard_deviations(inputs, weights)
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
