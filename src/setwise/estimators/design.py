"""The inputs of a linear model: read and checked, in the units and variables a solver sees them in.

The change of variables makes the objective bend nearly alike in all directions. At scores that do
not depend on the inputs the Hessian by the weights of score j is c_j Cov(X) + alpha, where c_j is
the variance of what score j multiplies: 4 p (1 - p) for a label of frequency p. Its inverse root
makes round what was long and thin, and a quasi-Newton method needs a tenth of the steps or fewer.
With intercepts the features are centred, without ever being changed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize
from sklearn.utils.sparsefuncs import inplace_column_scale, mean_variance_axis
from sklearn.utils.validation import _check_sample_weight, validate_data

from setwise.labels import LabelNames, read_labels
from setwise.sparse import tidied
from setwise.targets.truth import read_truth, refuse_open
from setwise.validation import refuse_large, require_one_of, same_rows

Array = NDArray[Any]

# Features are rotated to their principal directions only where that costs less than it saves.
MOST_ROTATED = 1024
ROTATION_COST = 16
# Inputs of at most this many entries are turned into float64 once, others by ranges of rows.
ENTRIES_AT_ONCE = 2**24
CHUNK_ROWS = 4096
# The squares of larger inputs cannot be summed over any number of rows.
LARGEST_INPUT = 1e140
SCALINGS = (None, "standard", "rows")
# The least variance that a feature, a label or a parameter of the space is given.
LEAST_VARIANCE, LEAST_SPREAD = 1e-12, 1e-6


class Rows(NamedTuple):
    """Inputs (n, d), label sets (n, l) and weights (n,) of the same rows."""

    inputs: Any
    sets: NDArray[np.uint8]
    weights: NDArray[np.float64]

    def taken(self, rows: Any = None) -> Rows:
        """Those of a split (of all) that have a positive weight: others are as if not there."""
        if rows is None and (self.weights > 0).all():
            return self
        chosen = np.arange(len(self.sets))
        chosen = chosen if rows is None else chosen[np.asarray(rows)]
        kept = chosen[self.weights[chosen] > 0]
        if len(kept) == 0:
            raise ValueError(
                "a fold of cv has no row of positive weight to learn from or to judge by"
            )
        return Rows(self.inputs[kept], self.sets[kept], self.weights[kept])


def read_training(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, LabelNames]:
    """What `fit` is given, checked, and the names of the labels."""
    if y is None:
        read_labels(y)  # which refuses it before X is looked at
    inputs = checked_inputs(estimator, X)
    sets, names = read_truth(estimator.target, y)
    sets = sets.toarray() if hasattr(sets, "toarray") else sets
    same_rows(X=inputs, y=sets)
    weights = _check_sample_weight(
        sample_weight, inputs, dtype=np.float64, ensure_non_negative=True
    )
    if not weights.sum() > 0:
        raise ValueError("sample_weight must not be all zero")
    refuse_open(estimator.target, sets, weights)
    return Rows(inputs, sets, weights), names


def checked_inputs(estimator: Any, X: Any, **options: Any) -> Any:
    """X as scikit-learn checks it for an estimator, float32 or float64; CSR also for its places."""
    dtypes = [np.float64, np.float32]
    given = tidied(X, "X") if issparse(X) else X
    inputs = validate_data(estimator, given, accept_sparse="csr", dtype=dtypes, **options)
    advice = "sums of squares would overflow; divide columns first, as MaxAbsScaler does"
    refuse_large(inputs, LARGEST_INPUT, "X", advice)
    return inputs


@dataclass(frozen=True)
class Design:
    """Inputs (n, d), dense or CSR, in the model's scaling; each feature divided by ``unit``.

    A row counts by its weight in all that is computed of them, so that a row of weight 3 and a row
    that is there three times lead a solver along the same path.
    """

    inputs: Any
    unit: Array
    fit_intercept: bool
    weights: Array

    @classmethod
    def of(cls, rows: Rows, scaling: str | None, fit_intercept: bool) -> Design:
        """As they are, in units of the features' standard deviations, or with rows of length 1.

        The weights of the rows count in the standard deviations.
        """
        inputs = rows.inputs
        require_one_of(scaling, SCALINGS, "scaling")
        unit = np.ones(inputs.shape[1])
        if scaling == "standard":
            unit = standard_deviations(inputs, rows.weights)
            if issparse(inputs):
                inputs = inputs.copy()
                inplace_column_scale(inputs, 1.0 / unit)
            else:
                inputs = (inputs / unit).astype(inputs.dtype)
        return cls(scaled_rows(inputs, scaling), unit, fit_intercept, rows.weights)

    @cached_property
    def precise(self) -> Any:
        """The inputs in float64 if they are not too many, else as they are."""
        few = self.n_entries <= ENTRIES_AT_ONCE
        return self.inputs.astype(np.float64) if few else self.inputs

    @property
    def n_entries(self) -> int:
        """Stored entries."""
        return int(self.inputs.nnz if issparse(self.inputs) else self.inputs.size)

    @cached_property
    def center(self) -> Array:
        """The mean of each feature, or 0 without intercepts, (d,)."""
        if not self.fit_intercept:
            return np.zeros(self.inputs.shape[1])
        total = np.zeros(self.inputs.shape[1])
        for part, weights in self._parts():
            total += part.T @ weights
        return total / self.weights.sum()

    def _parts(self) -> Iterator[tuple[Any, Array]]:
        """Some rows at a time, in float64, with their weights."""
        for first in range(0, self.inputs.shape[0], CHUNK_ROWS):
            rows = slice(first, first + CHUNK_ROWS)
            yield self.inputs[rows].astype(np.float64), self.weights[rows]

    def centred(self) -> tuple[Any, Array]:
        """Inputs less their center, and it, if they are dense and there are intercepts."""
        if issparse(self.inputs) or not self.fit_intercept:
            return self.inputs, np.zeros(self.inputs.shape[1])
        return (self.inputs - self.center).astype(self.inputs.dtype), self.center

    @cached_property
    def spectrum(self) -> tuple[Array, Array | None]:
        """Variances (d,) along the principal directions (d, d), or along the features and None."""
        d = self.inputs.shape[1]
        if d > MOST_ROTATED or d * d > ROTATION_COST * self.n_entries:
            mean, variance = moments(self.inputs, self.weights)
            return variance + (mean - self.center) ** 2, None
        # Of dense inputs about the center, of sparse ones about 0.
        total, sparse = np.zeros((d, d)), issparse(self.inputs)
        for part, weights in self._parts():
            part = part if sparse else part - self.center
            root = np.sqrt(weights)[:, None]
            part = part.multiply(root).tocsr() if sparse else part * root
            product = part.T @ part
            total += product.toarray() if sparse else product
        covariance = total / self.weights.sum() - np.outer(self.center, self.center) * sparse
        variance, rotation = np.linalg.eigh(covariance)
        return np.maximum(variance, 0.0), rotation


def scaled_rows(inputs: Any, scaling: str | None) -> Any:
    """The inputs, with rows of Euclidean length 1 if that is the scaling; a row of 0 stays."""
    return normalize(inputs) if scaling == "rows" else inputs


def moments(inputs: Any, weights: Array) -> tuple[Array, Array]:
    """Weighted mean and variance of each feature, (d,)."""
    if issparse(inputs):
        found: Any = mean_variance_axis(inputs.astype(np.float64), 0, weights)
        return found
    share = weights / weights.sum()
    mean, variance = share @ inputs, np.zeros(inputs.shape[1])
    for first in range(0, len(inputs), CHUNK_ROWS):
        rows = slice(first, first + CHUNK_ROWS)
        variance += share[rows] @ np.square(inputs[rows] - mean)
    return mean, variance


def standard_deviations(inputs: Any, weights: Array) -> Array:
    """Of each feature, 1 for one that is constant, (d,)."""
    mean, variance = moments(inputs, weights)
    deviation = np.sqrt(variance)
    return np.where(deviation > 1e-7 * np.abs(mean), deviation, 1.0)


@dataclass(frozen=True)
class Solution:
    """Weights (d, n_scores), intercepts (n_scores,), parameters (p,), and how it ended."""

    weights: Array
    intercept: Array
    parameters: Array
    value: float = np.inf
    gradient_norm: float = np.inf
    n_iter: int = 0


def warn_of(steps: int, norm: float, tol: float) -> None:
    """Say that a solver stopped early, and where."""
    warnings.warn(
        f"the solver stopped after {steps} iterations with a gradient of {norm:.2e}, above "
        f"tol = {tol:g}; raise max_iter or alpha, or scale the features",
        ConvergenceWarning,
        stacklevel=3,
    )


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
        shift = (intercept + self.center @ weights) / self.by_score
        return np.concatenate(
            [(turned / self.scale).ravel(), shift, parameters / self.by_parameter]
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
        inner = inner if self.rotation is None else self.rotation.T @ inner
        parts = by_intercept * self.by_score, by_parameter * self.by_parameter
        return np.concatenate([(inner * self.scale).ravel(), *parts])
