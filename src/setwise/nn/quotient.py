"""Expected quotients N / D of sums over labels: a log-partition for each node of a rule for 1/D."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from setwise.nn.batch import Batch, recomputed, states_of
from setwise.nn.partition import Constant, Partition, Sum, is_traced
from setwise.spaces import Space
from setwise.spaces.quadrature import (
    DOUBLE_ERROR,
    MEANS,
    SINGLE_ERROR,
    Rules,
    exponential_sum,
    laguerre_table,
)
from setwise.targets.measure import ZERO_DENOMINATOR, Fraction

# Nodes taken together, by partitions and with a kept gradient: fewer and larger operations against
# memory.
AT_ONCE, KEPT_AT_ONCE = 9, 4


class Terms(NamedTuple):
    """E[N / D] = sum over nodes x of E[e^(-x D)] (weight * (constant + tilted E[N]) + empty).

    x and weight (n, m) or (1, m), empty (n, m), constant (n, 1); what each label adds to D and to N
    in its two states, beyond the least, (n, l, 2).
    """

    x: Tensor
    weight: Tensor
    empty: Tensor
    constant: Tensor
    counts: Tensor
    adds: Tensor

    def log_power(self, nodes: slice) -> Tensor:
        """log of t^(what a label adds to D), 0 where it adds nothing, (n, m, l, 2)."""
        counts = self.counts[:, None]
        return torch.where(counts > 0, -self.x[:, nodes, None, None] * counts, 0.0)


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
        self._is_independent = space.is_independent
        self._rules: dict[torch.dtype, RowRule | SharedRule] = {}
        for dtype, error in ((torch.float32, SINGLE_ERROR), (torch.float64, DOUBLE_ERROR)):
            rules = Rules(measure, space.n_labels, error)
            by_row = space.is_independent and not (masked and sees_negatives)
            self._rules[dtype] = RowRule(rules) if by_row else SharedRule(rules, masked)

    def __call__(self, batch: Batch, odds: Tensor, parameters: Tensor) -> Tensor:
        """E[N / D], with ``empty`` where D is 0, (n,)."""
        if self._is_independent and not is_traced():
            return _Kept.apply(odds, self, batch)  # type: ignore
        return self.by_partitions(batch, odds, parameters)

    def by_partitions(self, batch: Batch, odds: Tensor, parameters: Tensor) -> Tensor:
        """The same on any space, differentiable to any order."""
        terms = self._terms(batch, odds)
        at_once = terms.x.shape[1] if torch.compiler.is_compiling() else AT_ONCE

        def part(odds: Tensor, parameters: Tensor, nodes: slice) -> Tensor:
            states, log_power = states_of(odds, batch), terms.log_power(nodes)
            adds = terms.adds[:, None].expand_as(log_power)
            whole = self._partition(Sum(states), parameters).log[:, None]
            log_mass, mean = self._partition(Sum(states[:, None], adds), parameters, log_power)
            assert mean is not None
            each = terms.weight[:, nodes] * (terms.constant + mean) + terms.empty[:, nodes]
            return (torch.exp(log_mass - whole) * each).sum(-1)

        parts = [
            recomputed(lambda o, p, k=k: part(o, p, slice(k, k + at_once)), odds, parameters)
            for k in range(0, terms.x.shape[1], at_once)
        ]
        return torch.stack(parts).sum(0)

    def with_gradient(self, batch: Batch, odds: Tensor) -> tuple[Tensor, Tensor]:
        """On the cube, E[N / D] (n,) and its derivative (n, l), a few nodes at a time.

        With p = P(label) and f = (1 - p) t_off + p t_on the factor of a label in E[t^D], the label
        has probability s = p t_on / f under the weights tilted by t^D. Along its odds,
        d log f = s - p = p (1 - p) (t_on - t_off) / f and ds = s (1 - s).
        """
        terms, known_odds = self._terms(batch, odds), batch.only_known(odds, -torch.inf)[:, None]
        p, rest = torch.sigmoid(known_odds), torch.sigmoid(-known_odds)
        adds_off, adds_on = terms.adds[:, None].unbind(-1)
        value, gradient = torch.zeros_like(p[:, 0, 0]), torch.zeros_like(p[:, 0])
        for first in range(0, terms.x.shape[1], KEPT_AT_ONCE):
            nodes = slice(first, first + KEPT_AT_ONCE)
            log_off, log_on = terms.log_power(nodes).unbind(-1)
            # One of the two powers is 1, so that t - 1 and the differences below lose no digits.
            lack_off, lack_on = torch.expm1(log_off), torch.expm1(log_on)
            factor = rest * (1.0 + lack_off) + p * (1.0 + lack_on)
            # Where a factor is too small for its reciprocal, so is the product of all.
            inverse = factor.clamp(min=torch.finfo(p.dtype).tiny).reciprocal()
            s, s_not = p * (1.0 + lack_on) * inverse, rest * (1.0 + lack_off) * inverse
            # log f from f - 1 where f > 1/2, otherwise log(1/2) + log(2 f).
            gap = rest * lack_off + p * lack_on
            log_factor = gap.clamp(min=-0.5).log1p() + (2.0 * factor.clamp(max=0.5)).log()
            mass = log_factor.sum(-1, keepdim=True).exp()
            mean = terms.constant[..., None] + (adds_off * s_not + adds_on * s).sum(-1, True)
            weight, empty = terms.weight[:, nodes, None], terms.empty[:, nodes, None]
            each = mass * (weight * mean + empty)
            value = value + each.sum((1, 2))
            shift = p * rest * (lack_on - lack_off) * inverse
            change = mass * weight * (adds_on - adds_off) * s * s_not
            gradient = gradient + (each * shift + change).sum(1)
        return value, gradient

    def _terms(self, batch: Batch, odds: Tensor) -> Terms:
        start, constant = batch.counted(self._below), batch.counted(self._above)[:, None]
        zero = start <= rounding(odds.dtype, 64.0) * self._largest
        counts = batch.by_state(self._counts)
        with torch.no_grad():
            mean = (states_of(odds, batch).exp() * counts).sum((1, 2))
            x, weight = self._rules[odds.dtype].at(batch, torch.where(zero, 0.0, start), mean)
        weight = torch.cat([weight, torch.where(zero, -weight.sum(-1), 0.0)[:, None]], -1)
        x = pad(x, (0, 1), value=torch.inf)
        empty = pad(torch.zeros_like(x[:, :-1]), (0, 1), value=self._empty) * zero[:, None]
        return Terms(x, weight, empty, constant, counts, batch.by_state(self._adds))


class _Kept(torch.autograd.Function):
    """E[N / D] on the cube, which keeps its gradient and not what that was made from."""

    @staticmethod
    def forward(ctx: Any, odds: Tensor, mean: FractionMean, batch: Batch) -> Tensor:  # type: ignore[override]
        """The mean of each row, (n,)."""
        value, gradient = mean.with_gradient(batch, odds)
        ctx.mean, ctx.batch = mean, batch
        ctx.save_for_backward(odds, gradient)
        ctx.save_for_forward(gradient)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor):  # type: ignore[override]
        """The kept gradient times what comes from above."""
        odds, gradient = ctx.saved_tensors
        if torch.is_grad_enabled():
            # Asked for a derivative of the gradient too (create_graph).
            again = ctx.mean.by_partitions(ctx.batch, odds, odds)
            (gradient,) = torch.autograd.grad(again, odds, upstream, create_graph=True)
            return gradient, None, None
        return upstream[:, None] * gradient, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:  # type: ignore[override]
        """The change along a direction."""
        (gradient,) = ctx.saved_tensors
        return (gradient * tangent).sum(-1)


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


def rounding(dtype: torch.dtype, steps: float) -> float:
    """The share of its terms up to which a denominator is 0 in this type."""
    return max(ZERO_DENOMINATOR, steps * torch.finfo(dtype).eps)
