"""The inputs of a linear model: read and checked, in the units and variables a solver sees them in.

The change of variables makes the objective bend nearly alike in all directions. The Hessian by the
weights of score j is about c_j Cov(X) + alpha, where c_j is the mean over rows of the variance of
what score j multiplies: 4 p (1 - p) for a label of probability p. (At scores that do not depend on
the inputs it is just that.) Its inverse root makes round what was long and thin, and a quasi-Newton
method needs a tenth of the steps or fewer. As a model learns, c_j falls, so it is taken anew on the
way. With intercepts the features are centred, without ever being changed.

Where many models are trained on parts of the same rows, the inputs are turned to their principal
directions once for all of them (`Turned`).
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
from setwise.threads import small_products
from setwise.validation import refuse_large, require_one_of, same_rows

Array = NDArray[Any]

# Features are rotated to their principal directions only where that costs less than it saves.
MOST_ROTATED = 1024
ROTATION_COST = 16
# Inputs are turned once for many models up to this many directions and entries.
MOST_TURNED, MOST_TURNED_ENTRIES = 2560, 2**24
# What an entry of sparse inputs costs a solver, and a variable more, by an entry of turned ones.
ENTRY_COST, VARIABLE_COST = 16, 512
# Inputs of at most this many entries are turned into float64 once, others by ranges of rows.
ENTRIES_AT_ONCE = 2**24
CHUNK_ROWS = 4096
# The squares of larger inputs cannot be summed over any number of rows.
LARGEST_INPUT = 1e140
# Turned inputs beyond this are kept in float64: sums of products would overflow in float32.
LARGEST_SINGLE = 1e18
SCALINGS = (None, "standard", "rows")
# The least variance that a feature, a label or a parameter of the space is given.
LEAST_VARIANCE, LEAST_SPREAD = 1e-12, 1e-6


class Rows(NamedTuple):
    """Inputs (n, d), label sets (n, l) and weights (n,) of the same rows."""

    inputs: Any
    sets: NDArray[np.uint8]
    weights: NDArray[np.float64]

    @property
    def multiplications(self) -> float:
        """Of a pass over the rows, for a score a label."""
        entries = self.inputs.nnz if issparse(self.inputs) else self.inputs.size
        return float(entries) * self.sets.shape[1]

    def taken(self) -> Rows:
        """Those that have a positive weight: others are as if not there."""
        if (self.weights > 0).all():
            return self
        kept = self.positive(slice(None))
        return Rows(self.inputs[kept], self.sets[kept], self.weights[kept])

    def positive(self, rows: Any) -> NDArray[np.int64]:
        """Places of those of a split that have a positive weight."""
        chosen = np.arange(len(self.sets))[rows]
        kept = chosen[self.weights[chosen] > 0]
        if len(kept) == 0:
            raise ValueError(
                "a fold of cv has no row of positive weight to learn from or to judge by"
            )
        return kept


def checked_inputs(estimator: Any, X: Any, reset: bool = True) -> Any:
    """X as floats, dense or CSR, by scikit-learn's rules: NaN is refused, with how to fill it.

    Sparse inputs are also checked for the places of their entries, and all for their size.
    """
    if not reset and _is_plain(estimator, X):
        return X
    given, dtypes = tidied(X, "X") if issparse(X) else X, [np.float64, np.float32]
    try:
        inputs: Any = validate_data(
            estimator, given, accept_sparse="csr", dtype=dtypes, reset=reset
        )
    except ValueError as error:
        if not str(error).startswith("Input X contains NaN"):
            raise
        name = type(estimator).__name__
        raise ValueError(
            f"Input X contains NaN, and {name} does not fill in missing values; an imputer before "
            f"it does: make_pipeline(SimpleImputer(), {name}(...)) takes the mean over the "
            f"training rows, as the command `setwise` does (its pipeline is this one)"
        ) from error
    advice = "sums of squares would overflow; divide columns first, as MaxAbsScaler does"
    refuse_large(inputs, LARGEST_INPUT, "X", advice)
    return inputs


def _is_plain(estimator: Any, X: Any) -> bool:
    """Whether an array passes every check at a glance, as most do.

    (scikit-learn's own look takes longer than the prediction of a row.)
    """
    return (
        type(X) is np.ndarray
        and X.dtype in (np.float64, np.float32)
        and X.ndim == 2
        and len(X) > 0
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
        # (False of NaN; as Python's floats, since the bound is beyond single precision.)
        and float(X.min()) >= -LARGEST_INPUT
        and float(X.max()) <= LARGEST_INPUT
    )


def read_training(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Rows, LabelNames]:
    """What `fit` is given, checked, and the names of the labels."""
    if y is None:
        read_labels(y)  # which refuses it before X is looked at
    inputs = checked_inputs(estimator, X)
    sets, names = read_truth(estimator.target, y)
    rows = rows_of(inputs, sets, sample_weight)
    refuse_open(estimator.target, rows.sets, rows.weights)
    return rows, names


def rows_of(inputs: Any, sets: Any, sample_weight: Any) -> Rows:
    """Checked inputs and label sets, dense or CSR, with the weights of their rows, checked."""
    sets = sets.toarray() if hasattr(sets, "toarray") else sets
    same_rows(X=inputs, y=sets)
    weights = _check_sample_weight(
        sample_weight, inputs, dtype=np.float64, ensure_non_negative=True
    )
    if not weights.sum() > 0:
        raise ValueError("sample_weight must not be all zero")
    return Rows(inputs, sets, weights)


@dataclass(frozen=True)
class Design:
    """Inputs (n, d), dense or CSR, in the model's scaling; each feature divided by ``unit``.

    A row counts by its weight in all that is computed of them, so that a row of weight 3 and a row
    that is there three times lead a solver along the same path. ``is_turned`` says that the
    features are about principal directions already, or as good as those, and that products with
    them need not be more precise than they are.
    """

    inputs: Any
    unit: Array
    fit_intercept: bool
    weights: Array
    is_turned: bool = False

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
        """The inputs in float64 unless they are too many, or turned."""
        few = self.n_entries <= ENTRIES_AT_ONCE and not self.is_turned
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
        if self.is_turned or d > MOST_ROTATED or d * d > ROTATION_COST * self.n_entries:
            mean, variance = moments(self.inputs, self.weights)
            return variance + (mean - self.center) ** 2, None
        variance, rotation = principal(self.covariance())
        return np.maximum(variance, 0.0), rotation

    def covariance(self) -> Array:
        """Of the features about the center, (d, d)."""
        d = self.inputs.shape[1]
        # Of dense inputs about the center, of sparse ones about 0.
        total, sparse = np.zeros((d, d)), issparse(self.inputs)
        for part, weights in self._parts():
            part = part if sparse else part - self.center
            root = np.sqrt(weights)[:, None]
            part = part.multiply(root).tocsr() if sparse else part * root
            product = part.T @ part
            total += product.toarray() if sparse else product
        return total / self.weights.sum() - np.outer(self.center, self.center) * sparse


@dataclass(frozen=True)
class Turned:
    """Inputs of a design along their principal directions V: (X - center) V, of shape (n, r).

    A ridge solution lies in the span of the rows it is learnt from (with intercepts, of the rows
    less any point), so that r is at most n and d, nothing is lost, and weights keep their length.
    One factorisation serves every part of the rows, every penalty and every space.

    ``basis`` is V (d, r), or (n, r) with V = (X - center)^T basis where rows are fewer.
    """

    design: Design
    inputs: Array
    basis: Array

    @classmethod
    def of(cls, design: Design, dtype: Any = np.float64) -> Turned | None:
        """None where the factorisation or the dense inputs would cost more than they save."""
        n, d = design.inputs.shape
        r = min(n, d)
        if r > MOST_TURNED or n * r > MOST_TURNED_ENTRIES or r == 0:
            return None
        plain = ENTRY_COST * design.n_entries + VARIABLE_COST * (d - r)
        if issparse(design.inputs) and n * r > plain:
            return None
        center = design.center
        if d <= n:
            basis = principal(design.covariance())[1]
            inputs = np.asarray(design.precise @ basis) - center @ basis
            return cls(design, kept(inputs, dtype), basis)
        gram = design.precise @ design.precise.T
        gram = gram.toarray() if issparse(gram) else gram
        shift = np.asarray(design.precise @ center)
        gram = gram - shift[:, None] - shift + center @ center
        values, vectors = principal(gram)
        large = values > n * np.finfo(np.float64).eps * max(values[-1], 0.0)
        root = np.sqrt(values[large])
        inputs = kept(vectors[:, large] * root, dtype)
        return cls(design, inputs, vectors[:, large] / root)

    def point(self, weights: Array, intercept: Array) -> tuple[Array, Array]:
        """Weights (d, m) and intercepts (m,) for the design, of those for the turned inputs."""
        center, plain = self.design.center, self.basis @ weights
        if len(self.basis) != len(center):
            shares = plain
            plain = np.asarray(self.design.precise.T @ shares)
            plain = plain - np.outer(center, shares.sum(axis=0))
        return plain, intercept - center @ plain


def principal(symmetric: Array) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and the directions that belong to them, as columns.

    The factorisation takes its steps by products with a vector. Several threads save a third of the
    time on processors that are free, and take ten times as long on busy ones.
    """
    with small_products(float(symmetric.size)):
        values, vectors = np.linalg.eigh(symmetric)
    return values, vectors


def kept(inputs: Any, dtype: Any) -> Any:
    """Inputs, dense or CSR, in that type, or as they are if they are too large for it."""
    entries = inputs.data if issparse(inputs) else inputs
    small = np.abs(entries).max(initial=0.0) <= LARGEST_SINGLE
    return inputs.astype(dtype, copy=False) if small else inputs


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
