"""E[u] of a measure u on a space with a log-partition, in torch operations.

One way for each form of a measure: a sum over labels is a mean that the log-partition carries
along; equality is the probability of one set; a quotient N / D is a sum of such means with powers
t^D in the weights; any other function of the counts is summed over their law.

``odds`` (n, l) are twice the scores: on the cube, the log-odds of each label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, pad
from torch.utils.checkpoint import checkpoint

from setwise.nn.partition import Constant, Partition, Sum, is_traced, log_polynomial, log_sum
from setwise.spaces import Space
from setwise.spaces.expectation import FEW
from setwise.spaces.quadrature import (
    DOUBLE_ERROR,
    MEANS,
    SINGLE_ERROR,
    Rules,
    exponential_sum,
    laguerre_table,
)
from setwise.targets.measure import (
    ZERO_DENOMINATOR,
    ZERO_DIFFERENCE,
    Additive,
    Counts,
    Equality,
    Fraction,
    Measure,
)

# A function of the counts is tabulated; a table has at most this many entries.
LARGEST_TABLE = 2**22
# Nodes of a rule for 1/D taken together: fewer and larger operations against memory.
AT_ONCE = 9


@dataclass(frozen=True)
class Batch:
    """True label sets, and which of their labels are known.

    ``is_true`` (n, l), False where unknown, and ``truth`` the same as 0/1 in the type of the
    logits; ``known`` (n, l) or None where all are; ``n_true`` and ``n_known`` count labels, (n,),
    as whole numbers.
    """

    is_true: Tensor
    truth: Tensor
    known: Tensor | None
    n_true: Tensor
    n_known: Tensor

    @classmethod
    def of(cls, y_true: Tensor, known: Tensor | None, like: Tensor) -> Batch:
        """A batch from label sets of any type, in the floating type of another tensor."""
        present = y_true != 0
        if known is None:
            n_known = torch.full_like(present[:, 0], y_true.shape[1], dtype=torch.long)
        else:
            present, n_known = present & known, known.sum(1)
        return cls(present, present.to(like.dtype), known, present.sum(1), n_known)

    def by_truth(self, if_true: float | Tensor, if_false: float | Tensor) -> Tensor:
        """One number, or one a row, for the true labels and one for the others, exactly, (n, l).

        (On the CPU this is many times as fast as ``torch.where``.)
        """
        return if_true * self.truth + if_false * (1.0 - self.truth)

    def by_state(self, table: list[list[float]]) -> Tensor:
        """table[true][state] of each label, 0 where it is unknown, (n, l, 2)."""
        states = (self.by_truth(table[1][state], table[0][state]) for state in (0, 1))
        return torch.stack([self.only_known(values) for values in states], -1)

    def only_known(self, values: Tensor, otherwise: float = 0.0) -> Tensor:
        """The values, (n, l), replaced where the label is unknown."""
        return values if self.known is None else torch.where(self.known, values, otherwise)

    def counted(self, coefficients: list[float]) -> Tensor:
        """c_0 + c_1 (number of false labels) + c_2 (number of true labels), (n,)."""
        n_true, n_false = (
            n.to(self.truth.dtype) for n in (self.n_true, self.n_known - self.n_true)
        )
        return coefficients[0] + coefficients[1] * n_false + coefficients[2] * n_true


def states_of(odds: Tensor, batch: Batch) -> Tensor:
    """The states of scores odds / 2, less what makes the two weights of a label add up to 1.

    An unknown label is left out of the set and weighs nothing.
    """
    off, on = batch.only_known(logsigmoid(-odds)), batch.only_known(logsigmoid(odds), -torch.inf)
    return torch.stack([off, on], -1)


def recomputed(function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """function(*tensors), which keeps the tensors and not what it makes of them on the way."""
    if is_traced() or not torch.is_grad_enabled():
        return function(*tensors)
    return checkpoint(function, *tensors, use_reentrant=False, preserve_rng_state=False)  # type: ignore


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


class FractionMean:
    """E[N / D], N and D sums over labels, by one log-partition for each node of a rule.

    1/D is a sum over nodes of weight * e^(-x (D - start)), so that E[N / D] is a sum of terms
    E[N e^(-x D)]. Where D can be 0, one more node, x = inf, takes out what the rule makes of that
    and puts the convention in.
    """

    def __init__(self, measure: Fraction, space: Space, partition: Partition, masked: bool):
        self._partition, self._empty = partition, measure.empty
        above, self._adds = beyond_least(measure.numerator)
        below, self._counts = beyond_least(measure.denominator)
        self._above, self._below = above.tolist(), below.tolist()
        self._largest = float(np.abs(measure.denominator).max())
        sees_negatives = measure.numerator[4] != 0.0 or measure.denominator[4] != 0.0
        self._rules: dict[torch.dtype, RowRule | SharedRule] = {}
        for dtype, error in ((torch.float32, SINGLE_ERROR), (torch.float64, DOUBLE_ERROR)):
            rules = Rules(measure, space.n_labels, error)
            by_row = space.is_independent and not (masked and sees_negatives)
            self._rules[dtype] = RowRule(rules) if by_row else SharedRule(rules, masked)

    def __call__(self, batch: Batch, odds: Tensor, parameters: Tensor) -> Tensor:
        start, constant = batch.counted(self._below), batch.counted(self._above)[:, None]
        zero = start <= rounding(odds.dtype, 64.0) * self._largest
        counts = batch.by_state(self._counts)
        with torch.no_grad():
            mean = (states_of(odds, batch).exp() * counts).sum((1, 2))
            x, weight = self._rules[odds.dtype].at(batch, torch.where(zero, 0.0, start), mean)
        weight = torch.cat([weight, torch.where(zero, -weight.sum(-1), 0.0)[:, None]], -1)
        x = pad(x, (0, 1), value=torch.inf)
        empty = pad(torch.zeros_like(x[:, :-1]), (0, 1), value=self._empty) * zero[:, None]
        at_once = x.shape[1] if torch.compiler.is_compiling() else AT_ONCE

        def part(odds: Tensor, parameters: Tensor, nodes: slice) -> Tensor:
            states, log_t = states_of(odds, batch), -x[:, nodes, None, None]
            log_power = torch.where(counts[:, None] > 0, log_t * counts[:, None], 0.0)
            adds = batch.by_state(self._adds)[:, None].expand_as(log_power)
            whole = self._partition(Sum(states), parameters).log[:, None]
            log_mass, mean = self._partition(Sum(states[:, None], adds), parameters, log_power)
            assert mean is not None
            each = weight[:, nodes] * (constant + mean) + empty[:, nodes]
            return (torch.exp(log_mass - whole) * each).sum(-1)

        parts = [
            recomputed(lambda o, p, k=k: part(o, p, slice(k, k + at_once)), odds, parameters)
            for k in range(0, x.shape[1], at_once)
        ]
        return torch.stack(parts).sum(0)


class RowRule:
    """On the cube D is concentrated: few nodes, by the row's number of true labels and mean of D.

    For a measure that does not see true negatives they serve rows with unknown labels too.
    """

    def __init__(self, rules: Rules):
        table, self._unit = rules.table(np.arange(rules.n_labels + 1)), rules.unit
        width = int(np.abs(table.count).max())
        power = table.power_true if rules.step[0] == 1.0 else table.power_false
        used = np.arange(power.shape[2]) < table.count[..., None]
        with np.errstate(divide="ignore"):
            x = -np.log(np.where(used, power, 1.0))
        near = x, np.where(used, table.weight, 0.0)
        self._near = [Constant(_wide(part, width)) for part in near]
        self._far = [Constant(_wide(part, width)) for part in laguerre_table()]
        self._count, self._means = Constant(table.count), Constant(MEANS)

    def at(self, batch: Batch, start: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
        """Nodes and weights of each row, (n, m); ``mean`` is that of D - start, (n,)."""
        start, mean = start / self._unit, mean / self._unit
        level = torch.bucketize(mean, self._means.beside(mean))
        count = self._count.beside(mean)[batch.n_true, level]
        # A negative count: so many Laguerre nodes, scaled by the row's mean of D.
        x, weight = (part.beside(mean)[(-count).clamp(min=0)] for part in self._far)
        x, weight = (part / (start + mean)[:, None] for part in (x, weight))
        far, is_far = (x, weight * torch.exp(-x * start[:, None])), (count < 0)[:, None]
        x, weight = (
            torch.where(is_far, one, other.beside(mean)[batch.n_true, level])
            for one, other in zip(far, self._near, strict=True)
        )
        return x / self._unit, weight / self._unit


class SharedRule:
    """One rule for every value that D can take, whatever its distribution."""

    def __init__(self, rules: Rules, masked: bool):
        below, beyond = beyond_least(rules.measure.denominator)
        largest = np.abs(rules.measure.denominator).max()
        n_true, n_known = np.indices((rules.n_labels + 1, rules.n_labels + 1))
        possible = (n_true <= n_known) & (n_known > 0 if masked else n_known == rules.n_labels)
        numbers = np.stack([(n_known - n_true)[possible], n_true[possible]])
        start, steps = below[0] + below[1:] @ numbers, np.max(beyond, axis=1)
        least_step = steps[steps > 0].min(initial=largest)
        low = float(np.where(start > ZERO_DENOMINATOR * largest, start, least_step).min())
        x, w = exponential_sum(low, max(float((start + steps @ numbers).max()), low))
        self._x, self._w = Constant(x[None]), Constant(w)

    def at(self, batch: Batch, start: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
        """Nodes (1, m) and weights (n, m)."""
        x = self._x.beside(start)
        return x, self._w.beside(start) * torch.exp(-x * start[:, None])


def _wide(values: np.ndarray, width: int) -> np.ndarray:
    """As much of the last axis, with zeros where it ends before."""
    values = values[..., :width]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, width - values.shape[-1])])


def beyond_least(coefficients: np.ndarray) -> tuple[np.ndarray, list[list[float]]]:
    """c · (1, tp, fp, fn, tn) as what labels add at least, and what they add beyond that.

    The first is (c_0, least of a false label, least of a true label); the second [true][state], 0
    or more, so that sums have terms of one sign.
    """
    states = np.array([[coefficients[4], coefficients[2]], [coefficients[3], coefficients[1]]])
    least = states.min(axis=1)
    beyond = states - least[:, None]
    beyond[beyond <= ZERO_DENOMINATOR * np.abs(coefficients).max()] = 0.0
    return np.array([coefficients[0], *least]), beyond.tolist()


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


def rounding(dtype: torch.dtype, steps: float) -> float:
    """The share of its terms up to which a denominator is 0 in this type."""
    return max(ZERO_DENOMINATOR, steps * torch.finfo(dtype).eps)


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
