"""Folds of rows that come in blocks: models learn from blocks, a sample in memory judges them.

The fold of a row follows from the numbers of its block and its row in it, so that it is the same
wherever the block is. Of the rows held out as many are kept in memory as fit there: a few hundred
thousand tell combinations apart as well as all would.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack
from sklearn.base import clone

from setwise.blocks import Block
from setwise.decoders.for_target import HeldOut
from setwise.estimators.blocked import BlockDesign, BlockRows
from setwise.estimators.design import Array, Design, Rows, scaled
from setwise.sparse import dense_rows
from setwise.validation import whole_number

# Folds where nobody says how many.
FOLDS = 3
# Rows held out that are kept in memory, and their entries of inputs and labels.
MOST_ROWS, MOST_ENTRIES = 2**18, 2**24


@dataclass(frozen=True, eq=False)
class BlockFolds:
    """Rows in blocks, in folds."""

    rows: BlockRows
    count: int = FOLDS
    seed: int = 0

    @classmethod
    def of(cls, rows: BlockRows, cv: Any, seed: int) -> BlockFolds:
        """So many folds; a splitter, which looks at all rows at once, is refused."""
        if cv is not None and not isinstance(cv, int | np.integer):
            raise ValueError(f"on blocks cv must be a number of folds, not {cv!r}")
        if rows.n_rows < 2:
            raise ValueError(
                f"cross-validation needs at least 2 rows of positive weight, but there are "
                f"n_samples = {rows.n_rows}"
            )
        return cls(rows, FOLDS if cv is None else whole_number(cv, "cv", 2), seed)

    @cached_property
    def sample(self) -> tuple[Rows, Array]:
        """Rows in memory, and the fold that each is held out in; no fold is empty."""
        kept, folds = self.drawn
        missing = np.setdiff1d(np.arange(self.count), folds)
        if len(missing):
            raise ValueError(
                f"{self.count} folds of {self.rows.n_rows} rows: fold {missing[0]} has none; use "
                f"fewer"
            )
        return kept, folds

    @cached_property
    def drawn(self) -> tuple[Rows, Array]:
        """The same, where folds may be empty."""
        rows = self.rows
        entries = rows.n_entries / rows.n_rows + rows.n_labels
        share = min(1.0, MOST_ROWS / rows.n_rows, MOST_ENTRIES / (entries * rows.n_rows))
        parts = list(rows.blocks.changed(_Sampled(self.count, self.seed, share)).each(tuple))
        # (A block without rows may hold its inputs in another way than the others.)
        parts = [part for part in parts if len(part[2])] or parts[:1]
        inputs, sets, weights, folds = ([part[i] for part in parts] for i in range(4))
        inputs = vstack(inputs, format="csr") if rows.is_sparse else np.concatenate(inputs)
        inputs = csr_array(inputs) if rows.is_sparse else inputs
        kept = Rows(inputs, np.concatenate(sets), np.concatenate(weights))
        return kept, np.concatenate(folds)

    @cached_property
    def _learnt(self) -> dict[int, BlockRows]:
        return {}

    def learnt(self, fold: int) -> BlockRows:
        """The rows that a model learns from which is judged by a fold."""
        if fold not in self._learnt:
            blocks = self.rows.blocks.changed(_But(self.count, self.seed, fold))
            self._learnt[fold] = BlockRows.surveyed(blocks)
        return self._learnt[fold]

    def held_out(self, model: Any) -> HeldOut:
        """What models trained on all folds but one say of the sample's rows of that one."""
        rows, folds = self.sample
        marginals = np.empty(rows.sets.shape, np.float32)
        for fold in range(self.count):
            learner: Any = clone(model)
            part, test = self.learnt(fold), folds == fold
            design = part.design(model.scaling, model.fit_intercept)
            with warnings.catch_warnings():
                # What is to be said was said of the fit to all rows.
                warnings.simplefilter("ignore")
                learner._fit(design, part, model._names, model._risk)
            marginals[test] = learner._marginals_of(rows.inputs[test])
        return HeldOut(marginals, rows.sets, rows.weights)


@dataclass(frozen=True, eq=False)
class BlockInputs:
    """The rows of folds in a scaling, by all rows."""

    folds: BlockFolds
    design: BlockDesign
    scaling: str | None
    turned: None = None

    @classmethod
    def of(cls, folds: BlockFolds, scaling: str | None, fit_intercept: bool) -> BlockInputs:
        """See `setwise.estimators.search.Inputs`."""
        return cls(folds, folds.rows.design(scaling, fit_intercept), scaling)

    def learnt(self, split: Any, rows: Rows) -> tuple[BlockDesign, BlockRows]:
        """Rows to learn from, and their label sets."""
        part = self.folds.learnt(split.train)
        return self._scaled(part), part

    def part(self, places: Array) -> Design:
        """Some rows of the sample."""
        rows, fit_intercept = self.folds.sample[0], self.design.fit_intercept
        inputs = scaled(rows.inputs[places], self.scaling, self.design.unit)
        return Design(inputs, np.ones(inputs.shape[1]), fit_intercept, rows.weights[places])

    def everything(self, rows: Rows) -> tuple[BlockDesign, BlockRows, BlockDesign]:
        """All rows to learn from: along a path, their label sets, by the plain features."""
        return self._scaled(self.folds.rows), self.folds.rows, self.design

    def _scaled(self, part: BlockRows) -> BlockDesign:
        """Rows in the scaling of all rows, as if they had come so."""
        plain = part.design(None, self.design.fit_intercept)
        return replace(plain, blocks=part.scaled(self.scaling, self.design.unit))


# ------------------------------------------------------------------------------ what blocks become


def folds_of_rows(number: int, n_rows: int, count: int, seed: int) -> Array:
    """The fold of each row of a block."""
    return np.random.default_rng([seed, number]).integers(0, count, n_rows)


@dataclass(frozen=True)
class _But:
    """Blocks without the rows of a fold."""

    count: int
    seed: int
    fold: int

    def __call__(self, number: int, block: Block) -> Block:
        folds = folds_of_rows(number, len(block.weights), self.count, self.seed)
        return block.take(np.flatnonzero(folds != self.fold))


@dataclass(frozen=True)
class _Sampled:
    """A share of the rows of a block: inputs, dense label sets, weights, and their folds."""

    count: int
    seed: int
    share: float

    def __call__(self, number: int, block: Block) -> Any:
        n = len(block.weights)
        draws = np.random.default_rng([self.seed, number, 1]).random(n)
        kept = np.flatnonzero(draws < self.share)
        sets = dense_rows(block.sets, kept)
        folds = folds_of_rows(number, n, self.count, self.seed)[kept]
        return block.inputs[kept], sets.astype(np.uint8), block.weights[kept], folds
