"""Losses on listed label sets: sums over the list, term by term."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import relu

from setwise.nn.tensors.batch import Batch
from setwise.nn.tensors.constant import Constant
from setwise.nn.tensors.elementary import psi, times_exp
from setwise.nn.tensors.log_sum import log_sum
from setwise.nn.tensors.values import CountValues, LabelValues
from setwise.spaces import Catalog, Space
from setwise.targets.measure import Additive, Counts, Equality, Fraction, Measure, Table


class Listed:
    """A measure on a space whose sets are listed, (K, l)."""

    def __init__(self, space: Space, measure: Measure, masked: bool):
        sets = space.enumerate()
        self._sets = Constant(sets.astype(np.float64))
        self._log_size = float(np.log(len(sets)))
        self._is_joint = isinstance(space, Catalog) and space.joint
        # The sets of the support use no excluded parameter; a Catalog's use one each.
        finite = np.isfinite(space.parameters)
        self._kept, self._features = Constant(np.flatnonzero(finite)), None
        if not isinstance(space, Catalog):
            self._features = Constant(space.features(sets)[:, finite])
        self._values = _values_of(measure, sets, masked)

    def comp_sum(self, batch: Batch, logits: Tensor, parameters: Tensor, q: float) -> Tensor:
        """The mean over the list of u (1 - (|Y| s)^q) / q, or of -u log(|Y| s) at q = 0, (n,)."""
        utility = self._values.of(batch, self)
        weights = self._weights(batch, logits, parameters)
        lift = weights - log_sum(weights, -1)[:, None] + self._log_size
        return (utility * psi(torch.where(utility == 0.0, 0.0, lift), q)).mean(-1)

    def expected(self, batch: Batch, logits: Tensor, parameters: Tensor) -> Tensor:
        """The expected measure, (n,)."""
        weights = self._weights(batch, logits, parameters)
        return (torch.softmax(weights, -1) * self._values.of(batch, self)).sum(-1)

    def likelihood(self, batch: Batch, logits: Tensor, parameters: Tensor) -> Tensor:
        """-log s(y), 0 outside the list, (n,)."""
        weights = self._weights(batch, logits, parameters)
        is_true = self._values.of(batch, self) == 1.0
        own = torch.where(is_true, weights, 0.0).sum(-1)
        return torch.where(is_true.any(-1), log_sum(weights, -1) - own, 0.0)

    def exponential(self, batch: Batch, logits: Tensor, parameters: Tensor) -> Tensor:
        """The mean over the list of L e^z, with z centred, (n,)."""
        weights = self._weights(batch, logits, parameters)
        exponent = log_sum(weights, -1) - weights.mean(-1) - self._log_size
        return times_exp(self.expected(batch, logits, parameters), exponent)

    def constrained(
        self, batch: Batch, logits: Tensor, parameters: Tensor, margin: str, rho: float
    ) -> Tensor:
        """The mean over the list of L Phi(-z), with z centred, (n,)."""
        weights, loss = self._weights(batch, logits, parameters), self._values.of(batch, self)
        centred = weights.mean(-1, keepdim=True) - weights
        # A square may overflow, which must not meet a loss of 0.
        return (loss * margin_loss(torch.where(loss == 0.0, 0.0, centred), margin, rho)).mean(-1)

    def present(self, values: Tensor) -> Tensor:
        """Sums of label values over the labels of each set, (n, K)."""
        return values @ self._sets.beside(values).T

    def absent(self, values: Tensor) -> Tensor:
        """Sums of label values over the labels not in each set, (n, K)."""
        return values @ (1.0 - self._sets.beside(values)).T

    def _weights(self, batch: Batch, logits: Tensor, parameters: Tensor) -> Tensor:
        """z of each set, (n, K); an unknown label weighs nothing."""
        scores = batch.only_known(logits / 2.0) if batch.known is not None else logits / 2.0
        kept = self._kept.beside(parameters)
        bias = parameters[kept]
        if self._features is not None:
            bias = self._features.beside(logits) @ bias
        if self._is_joint:
            return scores[:, kept] + bias
        return scores @ (2.0 * self._sets.beside(scores) - 1.0).T + bias


class _LabelSums:
    """An additive measure of each listed set."""

    def __init__(self, measure: Additive, n_labels: int):
        self._values = LabelValues(measure, n_labels)

    def of(self, batch: Batch, listed: Listed) -> Tensor:
        on, off = self._values.states(batch)
        return self._values.of_sets(batch, listed.present(on) + listed.absent(off))


class _CountSums:
    """A function of the counts of each listed set."""

    def __init__(self, measure: Equality | Fraction | Counts, n_labels: int, masked: bool):
        self._values = CountValues(measure, n_labels, masked, n_labels)

    def of(self, batch: Batch, listed: Listed) -> Tensor:
        tp = listed.present(batch.truth).round().long()
        size = listed.present(batch.only_known(torch.ones_like(batch.truth))).round().long()
        return self._values.at(batch, tp, size - tp)


class _TableRows:
    """A table of losses, looked up by the true set; one that is not listed has no value."""

    def __init__(self, measure: Table, sets: np.ndarray):
        self._known = Constant(measure.sets.astype(np.float64))
        self._columns = Constant(measure.values[measure.index(sets, "sets")].T)

    def of(self, batch: Batch, listed: Listed) -> Tensor:
        signs = 2.0 * self._known.beside(batch.truth) - 1.0
        same = (2.0 * batch.truth - 1.0) @ signs.T > signs.shape[1] - 0.5
        values = self._columns.beside(batch.truth)[same.long().argmax(-1)]
        return torch.where(same.any(-1, keepdim=True), values, torch.nan)


def _values_of(measure: Measure, sets: np.ndarray, masked: bool):
    if isinstance(measure, Additive):
        return _LabelSums(measure, sets.shape[1])
    if isinstance(measure, Table):
        return _TableRows(measure, sets)
    assert isinstance(measure, Equality | Fraction | Counts)
    return _CountSums(measure, sets.shape[1], masked)


def margin_loss(margin: Tensor, name: str, rho: float = 1.0) -> Tensor:
    """Phi of `setwise.surrogates.margins`; at a kink the slope is that of the larger margin."""
    if name == "exponential":
        return torch.exp(-margin)
    if name == "rho":
        return relu(1.0 - margin / rho) - relu(-margin / rho)
    return relu(1.0 - margin) ** (2 if name == "squared_hinge" else 1)
