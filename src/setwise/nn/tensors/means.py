"""Expected values of a measure on a space with structure, by the form of the measure.

``odds`` (n, l) are twice the scores: on the cube, the log-odds of each label.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from setwise.nn.tensors.batch import Batch
from setwise.nn.tensors.forest import ForestPartition
from setwise.nn.tensors.fraction import FractionMean
from setwise.nn.tensors.log_sum import log_polynomial, log_sum
from setwise.nn.tensors.partition import (
    CubePartition,
    Partition,
    SizedPartition,
    along,
    normalised,
    padded,
)
from setwise.nn.tensors.values import CountValues, LabelValues
from setwise.spaces import Cube, Forest, Sized
from setwise.targets.measure import Additive, Counts, Equality, Fraction, Measure


class MeanOf(Protocol):
    """E[u] under the law of a space."""

    def __call__(self, batch: Batch, odds: Tensor, parameters: Tensor) -> Tensor: ...


class AdditiveMean:
    """Sums over labels."""

    def __init__(self, measure: Additive, n_labels: int, partition: Partition):
        self.values, self._partition = LabelValues(measure, n_labels), partition

    def __call__(self, batch: Batch, odds: Tensor, parameters: Tensor) -> Tensor:
        on, off = self.values.states(batch)
        if self._partition.independent:
            known = batch.only_known(odds)
            total = (torch.sigmoid(known) * on + torch.sigmoid(-known) * off).sum(-1)
        else:
            total = along(self._partition, normalised(odds, batch), (on, off), parameters)[1]
        return self.values.complete(batch, total)


class EqualityMean:
    """The probability of the true set, 0 outside the space, or 1 minus it."""

    def __init__(self, measure: Equality, partition: Partition):
        self._is_utility, self._partition = measure.when_equal == 1.0, partition

    def log_probability(self, batch: Batch, odds: Tensor, parameters: Tensor) -> Tensor:
        """log s(y), -inf outside the space, (n,)."""
        towards = batch.by_truth(1.0, -1.0) * odds
        weight = batch.only_known(logsigmoid(towards)).sum(-1)
        if self._partition.independent:
            return weight
        normaliser = self._partition(normalised(odds, batch), parameters)
        return weight + self._partition.offset(batch, parameters) - normaliser

    def __call__(self, batch: Batch, odds: Tensor, parameters: Tensor) -> Tensor:
        log_probability = self.log_probability(batch, odds, parameters)
        return log_probability.exp() if self._is_utility else -torch.expm1(log_probability)


class CountMean:
    """Any function of the counts on Cube and Sized: the joint law of tp and fp."""

    def __init__(self, measure: Fraction | Counts, space: Cube | Sized, masked: bool):
        self._largest = int(space.sizes[-1])
        self._values = CountValues(measure, space.n_labels, masked, self._largest)
        self._is_cube = isinstance(space, Cube)

    def __call__(self, batch: Batch, odds: Tensor, parameters: Tensor) -> Tensor:
        on, off = normalised(odds, batch)
        none, never = torch.zeros_like(on), torch.full_like(on, -torch.inf)
        tp, fp = (
            log_polynomial(
                torch.where(group, off, none), torch.where(group, on, never), self._largest
            )
            for group in (batch.is_true, ~batch.is_true)
        )
        log_law = tp[:, :, None] + fp[:, None, :]
        count = torch.arange(self._largest + 1, device=on.device)
        if not self._is_cube:
            bias = padded(parameters[: self._largest + 1], 2 * self._largest + 1)
            log_law = log_law + bias[count[:, None] + count]
        law = torch.exp(log_law - log_sum(log_law.flatten(1), -1)[:, None, None])
        values = self._values.at(batch, count[None, :, None], count[None, None, :])
        return (law * values).sum((1, 2))


def partition_of(space: Cube | Sized | Forest) -> Partition:
    """The log-partition of a space with structure."""
    if isinstance(space, Cube):
        return CubePartition()
    return SizedPartition(space) if isinstance(space, Sized) else ForestPartition(space)


def mean_of(
    measure: Measure, space: Cube | Sized | Forest, partition: Partition, masked: bool
) -> MeanOf | None:
    """The way that uses the structure of the space, if there is one for this form."""
    if isinstance(measure, Additive):
        return AdditiveMean(measure, space.n_labels, partition)
    if isinstance(measure, Equality):
        return EqualityMean(measure, partition)
    if isinstance(measure, Fraction) and not isinstance(space, Sized):
        return FractionMean(measure, space.n_labels, partition, masked)
    if isinstance(measure, Fraction | Counts) and not isinstance(space, Forest):
        return CountMean(measure, space, masked)
    return None
