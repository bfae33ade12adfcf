"""The inputs of a linear model: read and checked, in the units a solver sees them in."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize
from sklearn.utils import _safe_indexing
from sklearn.utils.sparsefuncs import inplace_column_scale
from sklearn.utils.validation import _check_sample_weight, validate_data

from setwise.blocks.block import Block, Blocks, Function
from setwise.blocks.memory import Whole
from setwise.estimators.moments import Columns, standard_deviations
from setwise.labels import LabelNames, read_labels
from setwise.sparse import held, tidied
from setwise.targets.truth import read_truth, refuse_open
from setwise.validation import refuse_large, require_one_of, same_rows

Array = NDArray[Any]

# Inputs of at most this many entries are turned into float64 once, others by ranges of rows.
ENTRIES_AT_ONCE = 2**24
# The squares of larger inputs cannot be summed over any number of rows.
LARGEST_INPUT = 1e140
SCALINGS = (None, "standard", "rows")


class Rows(NamedTuple):
    """Inputs (n, d), label sets (n, l) and weights (n,) of the same rows.

    Inputs are dense or CSR, and so are label sets: CSR where they are many (`setwise.sparse.held`).
    """

    inputs: Any
    sets: Any
    weights: NDArray[np.float64]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.inputs.shape[0]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.inputs.shape[1]

    @property
    def is_sparse(self) -> bool:
        """Whether the inputs are sparse."""
        return issparse(self.inputs)

    @property
    def n_entries(self) -> int:
        """Stored entries of the inputs."""
        return int(self.inputs.nnz if self.is_sparse else self.inputs.size)

    @property
    def counts(self) -> None:
        """How many rows each label set stands for: here one."""
        return None

    @property
    def multiplications(self) -> float:
        """Of a pass over the rows, for a score a label."""
        return float(self.n_entries) * self.sets.shape[1]

    def design(self, scaling: str | None, fit_intercept: bool) -> Design:
        """The inputs as a solver sees them."""
        return Design.of(self, scaling, fit_intercept)

    def taken(self) -> Rows:
        """Those that have a positive weight: others are as if not there."""
        if (self.weights > 0).all():
            return self
        kept = self.positive(slice(None))
        return Rows(_safe_indexing(self.inputs, kept), self.sets[kept], self.weights[kept])

    def positive(self, rows: Any) -> NDArray[np.int64]:
        """Places of those of a split that have a positive weight."""
        chosen = np.arange(self.sets.shape[0])[rows]
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
        inputs = validated(estimator, given, reset, accept_sparse="csr", dtype=dtypes)
    except ValueError as error:
        if not str(error).startswith("Input X contains NaN"):
            raise
        name = type(estimator).__name__
        raise ValueError(
            f"Input X contains NaN. {name} does not accept missing values; put an imputer before "
            f"it, as the command `setwise` does: make_pipeline(SimpleImputer(), {name}(...))"
        ) from error
    advice = "sums of squares would overflow; divide columns first, as MaxAbsScaler does"
    refuse_large(inputs, LARGEST_INPUT, "X", advice)
    return inputs


def validated(estimator: Any, X: Any, reset: bool, **checks: Any) -> Any:
    """X by scikit-learn's `validate_data`; blocks are arrays, even where their columns have names.

    So a model of named blocks takes arrays as well as data frames of these columns.
    """
    if isinstance(X, Blocks):
        raise ValueError(
            "X is blocks of rows, and a model is asked of rows in memory: ask it block by block, "
            "as in `for X, y, weights in blocks.each(tuple): model.predict(X)`, or write the "
            "predictions for a folder of blocks to a file by `setwise predict MODEL FOLDER`"
        )
    if reset:
        vars(estimator).pop("_of_blocks", None)
    with warnings.catch_warnings():
        if getattr(estimator, "_of_blocks", False):
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return validate_data(estimator, X, reset=reset, **checks)


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
        and (not hasattr(estimator, "feature_names_in_") or hasattr(estimator, "_of_blocks"))
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
    sets = held(sets)
    same_rows(X=inputs, y=sets)
    return Rows(inputs, sets, weights_of(sample_weight, inputs))


def weights_of(sample_weight: Any, rows: Any) -> Array:
    """A weight for each row, float64, none negative and not all 0; ones if there are none."""
    # (Of weights that are all 0, older releases of scikit-learn say nothing.)
    weights = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    if not weights.sum() > 0:
        raise ValueError("sample_weight must not be all zero")
    # (For those that cannot be written kernels would be compiled anew.)
    return weights if weights.flags.writeable else weights.copy()


@dataclass(frozen=True)
class Design(Columns):
    """Inputs (n, d), dense or CSR, in the model's scaling; each feature divided by ``unit``.

    A row counts by its weight in all that is computed of them, so that a row of weight 3 and a row
    that is there three times lead a solver along the same path. ``is_turned`` says that the
    features are about principal directions already, or as good as those. Products with the inputs
    are in the type ``precision``.
    """

    inputs: Any
    unit: Array
    fit_intercept: bool
    weights: Array
    is_turned: bool = False
    precision: Any = np.float64
    in_memory: ClassVar[bool] = True

    @classmethod
    def of(cls, rows: Rows, scaling: str | None, fit_intercept: bool) -> Design:
        """As they are, in units of the features' standard deviations, or with rows of length 1.

        The weights of the rows count in the standard deviations.
        """
        inputs = rows.inputs
        require_one_of(scaling, SCALINGS, "scaling")
        unit = np.ones(inputs.shape[1])
        if scaling == "standard":
            whole = Whole(Block(inputs, None, rows.weights))
            unit = standard_deviations(whole, float(rows.weights.sum()))
        return cls(scaled(inputs, scaling, unit), unit, fit_intercept, rows.weights)

    @property
    def n_features(self) -> int:
        return self.inputs.shape[1]

    @property
    def dtype(self) -> Any:
        """That of the inputs."""
        return self.inputs.dtype

    @property
    def mass(self) -> float:
        return float(self.weights.sum())

    def sum(self, function: Function, *parameters: Any) -> tuple[Any, ...]:
        return function(Block(self.inputs, None, self.weights), *parameters)

    def rows(self, sets: Any, weights: Array) -> Whole:
        """The rows with their label sets and weights, as a solver sums over them."""
        return Whole(Block(self.precise, sets, weights))

    @cached_property
    def precise(self) -> Any:
        """The inputs in the type of products, unless they are too many."""
        few = self.n_entries <= ENTRIES_AT_ONCE
        return self.inputs.astype(self.precision, copy=False) if few else self.inputs

    @property
    def n_entries(self) -> int:
        """Stored entries."""
        return int(self.inputs.nnz if issparse(self.inputs) else self.inputs.size)

    def centred(self) -> tuple[Any, Array]:
        """Inputs less their center, and it, if they are dense and there are intercepts."""
        if issparse(self.inputs) or not self.fit_intercept:
            return self.inputs, np.zeros(self.inputs.shape[1])
        return (self.inputs - self.center).astype(self.inputs.dtype), self.center


def scaled(inputs: Any, scaling: str | None, unit: Array) -> Any:
    """The inputs in a scaling, in their own type; ``unit`` are the standard deviations, if used."""
    if scaling != "standard":
        return scaled_rows(inputs, scaling)
    if not issparse(inputs):
        return (inputs / unit).astype(inputs.dtype)
    inputs = inputs.copy()
    inplace_column_scale(inputs, 1.0 / unit)
    return inputs


def scaled_rows(inputs: Any, scaling: str | None) -> Any:
    """The inputs, with rows of Euclidean length 1 if that is the scaling; a row of 0 stays."""
    return normalize(inputs) if scaling == "rows" and inputs.shape[0] else inputs


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
        f"training has not converged: it stopped after {steps} iterations with a gradient of "
        f"{norm:.2e}, above tol = {tol:g}; raise max_iter or alpha, or scale the features",
        ConvergenceWarning,
        stacklevel=3,
    )
