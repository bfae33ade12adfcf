"""E[u] of a measure u on a space with a log-partition, in torch operations.

One way for each form of a measure: a sum over labels is a mean that the log-partition carries
along; equality is the probability of one set; a quotient N / D is a sum of such means with powers
t^D in the weights; any other function of the counts is summed over their law.

``odds`` (n, l) are twice the scores: on the cube, the log-odds of each label.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, pad

from setwise.nn.batch import Batch, recomputed, states_of
from setwise.nn.partition import Constant, Partition, Sum, log_polynomial, log_sum
from setwise.nn.quotient import FractionMean, rounding
from setwise.spaces import Space
from setwise.spaces.expectation import FEW
from setwise.targets.measure import (
    ZERO_DIFFERENCE,
    Additive,
    Counts,
    Equality,
    Fraction,
    Measure,
)

# A function of the counts is tabulated; a table has at most this many entries.
LARGEST_TABLE = 2**22


class MeanOf(Protocol):
    """E[u] under the distribution of a space, (n,)."""

    def __call__(self, batch: Batch, odds: Tensor, parameters: Tensor) -> Tensor: ...


class LabelValues:
    """constant + scale * sum over labels of what each adds in its state (an additive measure)."""

    def __init__(self, measure: Additive, n_labels: int):
        sizes = np.arange(n_labels + 1.0)
        self._weights, self._agreement = Constant(measure.weights), measure.agreement.tolist()
        self._constant = Constant(measure.constant(sizes))
        self._scale = Constant(measure.scale(sizes))

    def states(self, batch: Batch) -> Tensor:
        """What each label adds when it is not in the set and when it is, (n, l, 2).

        Where labels are unknown, the weights of the known ones are made to add up to the same.
        """
        weights = self._weights.beside(batch.truth)
        if batch.known is not None:
            total, weights = weights.sum(), batch.only_known(weights)
            known_total = weights.sum(1, keepdim=True)
            weights = weights * (total / torch.where(known_total > 0, known_total, 1.0))
        return weights[..., None] * batch.by_state(self._agreement)

    def complete(self, batch: Batch, total: Tensor) -> Tensor:
        """The value from the sum over labels, (n,)."""
        constant, scale = (
            part.beside(total)[batch.n_true] for part in (self._constant, self._scale)
        )
        return constant + scale * total

    def of_sets(self, batch: Batch, sums: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """The value of each listed set, (n, K), where a difference that is only rounding is 0."""
        off, on = self.states(batch).unbind(-1)
        total = sums(on, off)
        constant, scale = (
            part.beside(total)[batch.n_true][:, None] for part in (self._constant, self._scale)
        )
        value = constant + scale * total
        rounding = max(ZERO_DIFFERENCE, 16.0 * torch.finfo(total.dtype).eps)
        return torch.where(value.abs() <= rounding * constant.abs(), 0.0, value)


class AdditiveMean:
    """Sums over labels: their mean comes with the log-partition."""

    def __init__(self, measure: Additive, space: Space, partition: Partition):
        self._values, self._partition = LabelValues(measure, space.n_labels), partition

    def __call__(self, batch: Batch, odds: Tensor, parameters: Tensor) -> Tensor:
        def total(odds: Tensor, parameters: Tensor) -> Tensor:
            states = Sum(states_of(odds, batch), self._values.states(batch))
            mean = self._partition(states, parameters).mean
            assert mean is not None
            return mean

        return self._values.complete(batch, recomputed(total, odds, parameters))


class EqualityMean:
    """The probability of the true set, 0 outside the space, or 1 minus it."""

    def __init__(self, measure: Equality, space: Space, partition: Partition):
        self._is_utility, self._partition = measure.when_equal == 1.0, partition
        self._is_independent = space.is_independent

    def log_probability(self, batch: Batch, odds: Tensor, parameters: Tensor) -> Tensor:
        """log s(y), -inf outside the space, (n,)."""
        towards = batch.by_truth(1.0, -1.0) * odds
        weight = batch.only_known(logsigmoid(towards)).sum(-1)
        if self._is_independent:
            return weight
        # Where every other state is impossible, the log-partition is g of the true set.
        never = torch.where(batch.is_true, 0.0, -torch.inf).to(odds.dtype)
        only = torch.stack([torch.where(batch.is_true, -torch.inf, 0.0).to(odds.dtype), never], -1)
        own, all_sets = (
            self._partition(Sum(states), parameters).log
            for states in (only, states_of(odds, batch))
        )
        return weight + own - all_sets

    def __call__(self, batch: Batch, odds: Tensor, parameters: Tensor) -> Tensor:
        log_probability = self.log_probability(batch, odds, parameters)
        return log_probability.exp() if self._is_utility else -torch.expm1(log_probability)


class CountValues:
    """A function of tp, fp, fn and tn over ``n_labels`` labels, or, if masked, over fewer too.

    Equality and quotients are computed; any other function is tabulated, for predicted sets of
    up to ``largest`` labels.
    """

    def __init__(self, measure: Measure, n_labels: int, masked: bool, largest: int):
        self._table, self._when_equal = None, None
        if isinstance(measure, Fraction):
            self._quotient = measure.numerator.tolist(), measure.denominator.tolist()
            self._largest, self._empty = float(np.abs(measure.denominator).max()), measure.empty
        elif isinstance(measure, Equality):
            self._when_equal = measure.when_equal == 1.0
        elif isinstance(measure, Counts):
            self._table = Constant(tabulated(measure, n_labels, masked, min(n_labels, largest)))

    def at(self, batch: Batch, tp: Tensor, fp: Tensor) -> Tensor:
        """The value at whole numbers of tp and fp, with the rows of the batch in front."""
        dtype = batch.truth.dtype
        column = (-1,) + (1,) * (tp.ndim - 1)
        n_true, n_known = batch.n_true.reshape(column), batch.n_known.reshape(column)
        if self._table is not None:
            table = self._table.beside(batch.truth)
            known = n_known if table.shape[0] > 1 else torch.zeros_like(n_known)
            most = table.shape[-1] - 1
            return table[known, n_true, tp.clamp(max=most), fp.clamp(max=most)]
        if self._when_equal is not None:
            return (((fp == 0) & (tp == n_true)) == self._when_equal).to(dtype)
        counts = [k.to(dtype) for k in (tp, fp, n_true - tp, n_known - n_true - fp)]
        above, below = (
            c[0] + sum(c[i] * k for i, k in enumerate(counts, 1)) for c in self._quotient
        )
        nothing = below.abs() <= rounding(dtype, 16.0) * self._largest
        return torch.where(nothing, self._empty, above / torch.where(nothing, 1.0, below))


def tabulated(measure: Counts, n_labels: int, masked: bool, largest: int) -> np.ndarray:
    """values[number of known labels, n_true, tp, fp]; only one number known unless masked."""
    shape = (n_labels + 1 if masked else 1, n_labels + 1, largest + 1, largest + 1)
    if np.prod(shape, dtype=np.float64) > LARGEST_TABLE:
        raise ValueError(
            f"a function of the counts over {n_labels} labels needs a table of "
            f"{' x '.join(map(str, shape))} entries in torch operations, but the limit is "
            f"{LARGEST_TABLE}; on the CPU use backend='compiled'"
        )
    known, n_true, tp, fp = np.indices(shape)
    known = known if masked else known + n_labels
    possible = (known > 0) & (n_true <= known) & (tp <= n_true) & (fp <= known - n_true)
    counts = (tp, fp, n_true - tp, known - n_true - fp)
    table = np.zeros(shape)
    table[possible] = measure.of_counts(*(count[possible] for count in counts))
    return table


class CountMean:
    """Any function of the counts, where g depends on the size alone: the joint law of tp and fp."""

    def __init__(
        self, measure: Fraction | Counts, space: Space, partition: Partition, masked: bool
    ):
        self._largest, self._partition = int(space.sizes[-1]), partition
        self._values = CountValues(measure, space.n_labels, masked, self._largest)

    def __call__(self, batch: Batch, odds: Tensor, parameters: Tensor) -> Tensor:
        states, size = states_of(odds, batch), self._largest + 1
        absent = pad(torch.zeros_like(states[..., :1]), (0, 1), value=-torch.inf)
        tp, fp = (
            log_polynomial(Sum(torch.where(group[..., None], states, absent)), size - 1).log
            for group in (batch.is_true, ~batch.is_true)
        )
        bias = self._partition.size_bias(parameters)
        assert bias is not None
        count = torch.arange(size, device=odds.device)
        bias = pad(bias, (0, size), value=-torch.inf)[count[:, None] + count]
        log_law = tp[:, :, None] + fp[:, None, :] + bias
        law = torch.exp(log_law - log_sum(Sum(log_law.flatten(1)), -1).log[:, None, None])
        return (law * self._values.at(batch, count[None, :, None], count[None, None, :])).sum(
            (1, 2)
        )


def mean_of(measure: Measure, space: Space, partition: Partition, masked: bool) -> MeanOf | None:
    """The way that uses the structure of the space, if there is one for this form."""
    if isinstance(measure, Additive):
        return AdditiveMean(measure, space, partition)
    if isinstance(measure, Equality):
        return EqualityMean(measure, space, partition)
    has_law = partition.size_bias(torch.as_tensor(space.parameters)) is not None
    few = space.log_size <= np.log(FEW) + 1e-9
    if isinstance(measure, Fraction) and (space.is_independent or not (has_law or few)):
        return FractionMean(measure, space, partition, masked)
    if isinstance(measure, Fraction | Counts) and has_law:
        return CountMean(measure, space, partition, masked)
    return None
