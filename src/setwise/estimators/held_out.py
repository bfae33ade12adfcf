"""Rows held out from training: what models say of them, and how that is judged.

Most targets judge each row, so a mean of losses over rows is all there is to compare. A measure of
all rows together is decided for, and judged, once all rows held out so far are laid together. Rows
still have losses to compare, to first order (`row_losses` of such a target). The log-loss of the
marginals judges rows whatever the target.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone

from setwise.decoders.for_target import Decoder, HeldOut
from setwise.estimators.design import Rows
from setwise.estimators.folds import StratifiedLabelSets, at_most
from setwise.labels import LabelNames
from setwise.sparse import dense_rows
from setwise.targets.measure import Array

if TYPE_CHECKING:
    from setwise.estimators.set_classifier import SetClassifier

# Folds, and the most rows they are for: to fit a decoder.
FOLDS = ((5, 10_000), (3, np.inf))
# Gains in mean loss that are not worth going on for; of a log-loss, by the loss itself.
LEAST_GAIN, LEAST_SHARE = 3e-4, 0.005
# Probabilities this far from 0 and 1 are as surprising as any beyond.
LEAST = 1e-6


def folds_for(n_rows: int, by_rows: Sequence = FOLDS, seed: Any = None) -> StratifiedLabelSets:
    """Folds by the number of rows: few rows need more folds and can pay for them."""
    folds = next(folds for folds, most in by_rows if n_rows <= most)
    return at_most(folds, n_rows, 0 if seed is None else seed)


def held_out_rows(model: SetClassifier, design: Any, rows: Any) -> HeldOut:
    """What models trained on all folds but one say of the rows of that one.

    Of rows in blocks, of a sample of them.
    """
    if not design.in_memory:
        from setwise.estimators.block_folds import BlockFolds

        return BlockFolds.of(rows, None, model._seed).held_out(model)
    marginals = np.empty(rows.sets.shape, np.float32)
    splitter = folds_for(rows.n_rows, seed=model.random_state)
    for train, test in splitter.split(None, csr_array(rows.sets)):
        fold: Any = clone(model)
        part = replace(design, inputs=design.inputs[train], weights=design.weights[train])
        learnt = Rows(rows.inputs[train], rows.sets[train], rows.weights[train])
        with warnings.catch_warnings():
            # What is to be said was said of the fit to all rows.
            warnings.simplefilter("ignore")
            fold._fit(part, learnt, model._names, model._risk)
        marginals[test] = fold._marginals_of(rows.inputs[test])
    return HeldOut(marginals, dense_rows(rows.sets), rows.weights)


class Judged(NamedTuple):
    """The loss of rows held out, and a loss of each row, (n,), of about that mean by weight."""

    loss: float
    rows: Array


@dataclass(frozen=True)
class ByRow:
    """Judges each row by itself, by the loss of the target; of classes, by the error."""

    decoder: Decoder
    names: LabelNames
    keeps_marginals: ClassVar[bool] = False

    def kept(self, model: SetClassifier, inputs: Any, sets: Array) -> Array:
        """What is kept of the rows of a fold: their losses, (n,)."""
        if self.names.one_dimensional:
            return (model._predict(inputs) != self.names.decode(sets)).astype(np.float64)

        def losses(inputs: Any, sets: Any) -> Array:
            found = self.decoder.target.loss(model._decoded(inputs), dense_rows(sets))
            return np.asarray(found, np.float64)

        return model._by_ranges(losses, inputs, sets)

    def judged(self, folds: list[HeldOut]) -> Judged:
        """The mean loss of the folds, and the loss of each row."""
        return mean_of(folds)

    def least_gain(self, loss: float) -> float:
        """Gains over that loss that are not worth going on for."""
        return LEAST_GAIN


@dataclass(frozen=True)
class ByLikelihood:
    """Judges each row by the log-loss of its marginals: less noise, and the same for any target."""

    keeps_marginals: ClassVar[bool] = False

    def kept(self, model: SetClassifier, inputs: Any, sets: Array) -> Array:
        """What is kept of the rows of a fold: their losses, (n,)."""

        def losses(inputs: Any, sets: Any) -> Array:
            return surprise_of(model._marginals(inputs), dense_rows(sets))

        return model._by_ranges(losses, inputs, sets)

    def judged(self, folds: list[HeldOut]) -> Judged:
        """The mean loss of the folds, and the loss of each row."""
        return mean_of(folds)

    def least_gain(self, loss: float) -> float:
        """Gains over that loss that are not worth going on for: it has no unit of its own."""
        return LEAST_SHARE * loss


@dataclass(frozen=True)
class AllTogether:
    """Judges the rows of all folds together, decided from their marginals."""

    decoder: Any
    keeps_marginals: ClassVar[bool] = True

    def kept(self, model: SetClassifier, inputs: Any, sets: Array) -> Array:
        """What is kept of the rows of a fold: their marginals, (n, l)."""
        return model._marginals_of(inputs).astype(np.float32)

    def judged(self, folds: list[HeldOut]) -> Judged:
        """1 - the measure, and each row's share in it."""
        target, whole = self.decoder.target, together(folds)
        predicted = self.decoder.fitted(lambda: whole).decode(whole.probability)
        losses = target.row_losses(predicted, whole.sets, whole.weights)
        return Judged(float(np.average(losses, weights=whole.weights)), losses)

    def least_gain(self, loss: float) -> float:
        """Gains over that loss that are not worth going on for."""
        return LEAST_GAIN


def mean_of(folds: list[HeldOut]) -> Judged:
    """The mean over folds of the losses of their rows, and those."""
    means = [np.average(fold[0], weights=fold.weights) for fold in folds]
    return Judged(float(np.mean(means)), np.concatenate([fold[0] for fold in folds]))


def surprise_of(marginals: Array, sets: Array) -> Array:
    """The log-loss of the marginals of rows, all labels together, (n,)."""
    likely = np.clip(marginals, LEAST, 1.0 - LEAST)
    return -np.log(np.where(sets == 1, likely, 1.0 - likely)).sum(axis=1)


def judge_of(decoder: Decoder, names: LabelNames) -> ByRow | AllTogether:
    """How what is decided for a target is judged."""
    if decoder.is_of_whole and not names.one_dimensional:
        return AllTogether(decoder)
    return ByRow(decoder, names)


def together(folds: list[HeldOut]) -> HeldOut:
    """The rows of all folds, with their label sets as an array: as large as that of marginals."""
    dense = [fold._replace(sets=dense_rows(fold.sets)) for fold in folds]
    return HeldOut(*(np.concatenate(parts) for parts in zip(*dense, strict=True)))
