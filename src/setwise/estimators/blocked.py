"""Training rows that come in blocks: checked, surveyed, and as a solver sees them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from setwise.blocks import Block, Blocks
from setwise.blocks.block import OWN_SETS, Function
from setwise.estimators.design import LARGEST_INPUT, SCALINGS, Rows, read_training, scaled
from setwise.estimators.moments import Columns, standard_deviations
from setwise.estimators.seen import Seen
from setwise.labels import LabelNames
from setwise.sparse import held
from setwise.spelling import counted
from setwise.targets.registry import get_target
from setwise.targets.truth import refuse_open, refuse_other_labels
from setwise.validation import require_one_of

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class BlockRows:
    """Rows in blocks, all of positive weight, and what a survey of them told.

    ``sets`` are the different label sets, ``weights`` what the rows of each weigh together and
    ``counts`` how many they are: a space, and where its training begins, follow from them.
    """

    blocks: Blocks
    seen: Seen
    n_rows: int
    n_entries: int
    mass: float
    is_sparse: bool
    dtype: Any
    # (They are in the blocks.)
    inputs: ClassVar[None] = None

    @classmethod
    def of(cls, blocks: Blocks, target: Any, allow_missing: bool = False) -> BlockRows:
        """Checks every block, and surveys the rows in one pass."""
        checked = blocks.changed(Checked(blocks.n_features, blocks.n_labels, allow_missing))
        rows = cls.surveyed(checked)
        refuse_open(target, rows.sets)
        return replace(rows, blocks=blocks.changed(taken_rows))

    @classmethod
    def surveyed(cls, blocks: Blocks) -> BlockRows:
        """Rows that were checked, surveyed in one pass."""
        kind, n_rows, n_entries, mass, seen = blocks.sum(_survey)
        if not mass > 0:
            raise ValueError("there must be a row of positive weight, but there is none")
        form, name = kind.one
        return cls(blocks, seen, n_rows, n_entries, mass, form == "sparse", np.dtype(name))

    def scaled(self, scaling: str | None, unit: Array) -> Blocks:
        """The blocks with their inputs in a scaling."""
        return self.blocks if scaling is None else self.blocks.changed(Scaled(scaling, unit))

    @property
    def multiplications(self) -> float:
        """Of a pass over a block, for a score a label: blocks are shared among threads instead."""
        return 0.0

    def design(self, scaling: str | None, fit_intercept: bool) -> BlockDesign:
        """The inputs as a solver sees them."""
        return BlockDesign.of(self, scaling, fit_intercept)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.blocks.n_features

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.blocks.n_labels

    @cached_property
    def sets(self) -> Any:
        """The different label sets, (K, l), CSR where they are many."""
        return held(self.seen.sets)

    @property
    def weights(self) -> Array:
        """The weight of all rows of each label set, (K,)."""
        return self.seen.weights

    @property
    def counts(self) -> Array:
        """How many rows have each label set, (K,)."""
        return self.seen.counts


@dataclass(frozen=True)
class BlockDesign(Columns):
    """Rows in blocks, in the model's scaling; each feature divided by ``unit``."""

    blocks: Blocks
    unit: Array
    fit_intercept: bool
    n_entries: int
    mass: float
    dtype: Any
    is_turned: ClassVar[bool] = False
    precision: ClassVar[Any] = np.float64
    in_memory: ClassVar[bool] = False

    @classmethod
    def of(cls, rows: BlockRows, scaling: str | None, fit_intercept: bool) -> BlockDesign:
        """As they are, in units of the features' standard deviations, or with rows of length 1."""
        require_one_of(scaling, SCALINGS, "scaling")
        unit = np.ones(rows.n_features)
        if scaling == "standard":
            unit = standard_deviations(rows.blocks, rows.mass)
        blocks = rows.scaled(scaling, unit)
        return cls(blocks, unit, fit_intercept, rows.n_entries, rows.mass, rows.dtype)

    @property
    def n_features(self) -> int:
        return len(self.unit)

    def sum(self, function: Function, *parameters: Any) -> tuple[Any, ...]:
        return self.blocks.sum(function, *parameters)

    def rows(self, sets: Any, weights: Array) -> Blocks:
        """The rows themselves, which have their label sets and weights."""
        return self.blocks


# ------------------------------------------------------------------------------ what blocks become


@dataclass(frozen=True)
class Checked:
    """Blocks as they are, if they have these columns and no value that cannot be trained on."""

    n_features: int
    n_labels: int
    allow_missing: bool = False

    def __call__(self, number: int, block: Block) -> Block:
        wrong = self._wrong_shape(*block) or _wrong_values(*block, self.allow_missing)
        if wrong:
            raise ValueError(f"block {number}: {wrong}")
        return taken_rows(number, block)

    def _wrong_shape(self, inputs: Any, sets: Any, weights: Any) -> str:
        n = inputs.shape[0]
        for name, array, shape in (
            ("X", inputs, (n, self.n_features)),
            ("Y", sets, (n, self.n_labels)),
            ("weights", weights, (n,)),
        ):
            if array.shape != shape:
                return f"{name} has the shape {array.shape}, but {shape} is expected"
        return ""


def _wrong_values(inputs: Any, sets: Any, weights: Any, allow_missing: bool) -> str:
    """What is wrong with the values of a block, in words; empty if nothing is."""
    values, ones = (a.data if issparse(a) else a for a in (inputs, sets))
    if values.dtype not in (np.float32, np.float64):
        return f"X has the type {values.dtype}, but float32 or float64 is expected"
    values = values[~np.isnan(values)] if allow_missing else values
    # (As Python's floats, since the bound is beyond single precision; False of NaN.)
    ends = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    if not (ends[0] >= -LARGEST_INPUT and ends[1] <= LARGEST_INPUT):
        within = np.abs(values.astype(np.float64)) <= LARGEST_INPUT
        bad = counted(int(np.count_nonzero(~within)), "value")
        return f"X must be finite and within {LARGEST_INPUT:g}, but that is not so of {bad}"
    if not np.isin(ones, (0, 1)).all():
        return "Y must hold only 0 and 1"
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        return "weights must be finite and not negative"
    return ""


def taken_rows(number: int, block: Block) -> Block:
    """The rows of positive weight: others are as if not there."""
    kept = block.weights > 0
    return block if kept.all() else block.take(np.flatnonzero(kept))


@dataclass(frozen=True)
class Scaled:
    """Blocks in a scaling of their inputs."""

    scaling: str
    unit: Array

    def __call__(self, number: int, block: Block) -> Block:
        return block._replace(inputs=scaled(block.inputs, self.scaling, self.unit))


class _Kind:
    """How the inputs of blocks are held; a sum of blocks that are held differently is refused."""

    def __init__(self, one: tuple[str, str] | None):
        self.one = one

    def __add__(self, other: _Kind) -> _Kind:
        if self.one is None or other.one is None or self.one == other.one:
            return self if other.one is None else other
        this, that = (f"{form} {name}" for form, name in (self.one, other.one))
        raise ValueError(
            f"all blocks must hold X alike, but in one it is {this} and in another {that}"
        )


def _survey(block: Block) -> tuple[_Kind, int, int, float, Seen]:
    """Of a block: how its inputs are held, rows, stored entries, weight, label sets."""
    inputs, n = block.inputs, block.inputs.shape[0]
    kind = "sparse" if issparse(inputs) else "dense", str(inputs.dtype)
    entries = int(inputs.nnz if issparse(inputs) else inputs.size)
    seen = Seen.of(block.sets, block.weights)
    return _Kind(kind if n else None), n, entries, float(block.weights.sum()), seen


def read_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Rows | BlockRows, LabelNames]:
    """What `fit` is given, arrays or blocks, checked; rows of positive weight, names of labels."""
    if not isinstance(X, Blocks):
        rows, names = read_training(estimator, X, y, sample_weight)
        return rows.taken(), names
    if y is not None or sample_weight is not None:
        raise ValueError(OWN_SETS)
    target = get_target(estimator.target)
    take_columns(estimator, X, target)
    return BlockRows.of(X, target), X.names


def take_columns(estimator: Any, blocks: Blocks, target: Any) -> None:
    """Let an estimator know the features of blocks; refuses labels that the target has not."""
    refuse_other_labels(target, blocks.names)
    estimator.n_features_in_, estimator._of_blocks = blocks.n_features, True
    vars(estimator).pop("feature_names_in_", None)
    if blocks.feature_names is not None:
        estimator.feature_names_in_ = np.array([str(n) for n in blocks.feature_names], object)


def refuse_blocks(X: Any) -> None:
    """Raise for blocks, where rows are to be in memory."""
    if isinstance(X, Blocks):
        raise ValueError(
            "X is blocks of rows, which SetClassifier, SetClassifierCV and LabelTreeClassifier "
            "take, and setwise.dask.SetBooster on a cluster; this estimator learns from arrays"
        )


def gathered(estimator: Any, blocks: Blocks) -> Rows:
    """All rows of blocks in memory, checked, with their label sets as CSR."""
    take_columns(estimator, blocks, get_target(estimator.target))
    checked = blocks.changed(Checked(blocks.n_features, blocks.n_labels))
    parts = [tuple(map(csr_array, block[:2])) + block[2:] for block in checked.each(tuple)]
    inputs, sets, weights = zip(*parts, strict=True)
    return Rows(csr_array(vstack(inputs)), csr_array(vstack(sets)), np.concatenate(weights))  # type: ignore
