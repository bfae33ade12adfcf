"""Expected quotients N / D of sums over labels.

1/D is a sum over nodes of weight * t^(D - start) (see `nodes`), so E[N / D] is a sum of terms
E[N t^(D - start)]; each is a log-partition with changed weights, and its derivative along N. Where
D can be 0, one more node, t = 0, takes out what the rule makes of that and puts the convention in.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from setwise.nn.tensors.batch import Batch
from setwise.nn.tensors.constant import is_traced
from setwise.nn.tensors.nodes import RowNodes, SharedNodes
from setwise.nn.tensors.partition import Partition, Power, States, normalised
from setwise.spaces.quadrature import DOUBLE_ERROR, SINGLE_ERROR, Rules
from setwise.targets.measure import Fraction

# Nodes taken together where the gradient is computed beside the value: fewer and larger operations
# against what they need at a time.
AT_ONCE = 4


class Terms(NamedTuple):
    """E[N / D] = sum over nodes of E[t^D] (weight * (constant + E[N t^D] / E[t^D]) + empty).

    log t^step of true and false labels, (n, m) or (1, m); weight and empty (n, m); what labels add
    to N when they are in the set and when not, (n, l), beyond the constant (n, 1); which labels
    count towards D when they are left out, (n, l).
    """

    log_true: Tensor
    log_false: Tensor
    weight: Tensor
    empty: Tensor
    values: States
    constant: Tensor
    left_out: Tensor


class FractionMean:
    """E[N / D] of a linear-fractional measure: one log-partition for each node."""

    def __init__(self, measure: Fraction, n_labels: int, partition: Partition, masked: bool):
        exact = Rules(measure, n_labels, DOUBLE_ERROR)
        self._partition, self._empty = partition, measure.empty
        self._step, self._turn = exact.step.tolist(), np.where(exact.flip, -1.0, 1.0).tolist()
        above = measure.numerator / exact.unit
        states = np.stack([above[1:3], above[3:5]])
        least = states.min(axis=0)
        # What a label adds to N beyond its least, which is part of the constant: [on, off][true].
        self._adds = (states - least).tolist()
        # The same by whether it counts towards D: [counts, does not][true].
        self._counting = (np.where(exact.flip, states[::-1], states) - least).tolist()
        self._constant = [float(above[0]), *least.tolist()]
        sees_negatives = measure.numerator[4] != 0.0 or measure.denominator[4] != 0.0
        if partition.independent and not (masked and sees_negatives):
            rough = RowNodes(Rules(measure, n_labels, SINGLE_ERROR))
            self._nodes = {torch.float32: rough, torch.float64: RowNodes(exact)}
        else:
            self._nodes = dict.fromkeys((torch.float32, torch.float64), SharedNodes(exact, masked))

    def __call__(self, batch: Batch, odds: Tensor, parameters: Tensor) -> Tensor:
        """E[N / D], with ``empty`` where D is 0, (n,)."""
        if self._partition.independent and not is_traced():
            return _WithGradient.apply(odds, self, batch)  # type: ignore
        return self.by_partitions(batch, odds, parameters)

    def by_partitions(self, batch: Batch, odds: Tensor, parameters: Tensor) -> Tensor:
        """The same, differentiable to any order; keeps what every node needs for that."""
        terms, weights = self._terms(batch, odds), normalised(odds, batch)
        log_power = torch.where(
            batch.is_true[:, None], terms.log_true[..., None], terms.log_false[..., None]
        )
        power = Power(log_power, terms.left_out)
        log_mass, mean = self._partition.tilted(weights, power, terms.values, parameters)
        each = terms.weight * (terms.constant + mean) + terms.empty
        return (torch.exp(log_mass) * each).sum(-1)

    def with_gradient(self, batch: Batch, odds: Tensor) -> tuple[Tensor, Tensor]:
        """On the cube, E[N / D] (n,) and its derivative (n, l), a few nodes at a time.

        With p = P(a label counts), f = (1 - p) + p t and s = p t / f, what p becomes under the law
        tilted by t^D: d log f = s - p = p (t - 1) (1 - s), and ds = s (1 - s), along the odds.
        """
        terms, turn = self._terms(batch, odds), batch.by_truth(*self._turn)
        to_count = batch.only_known(turn * odds, -torch.inf)[:, None]
        p, rest, truth = torch.sigmoid(to_count), torch.sigmoid(-to_count), batch.truth[:, None]
        adds, adds_not = (
            batch.only_known(batch.by_truth(*pair))[:, None] for pair in self._counting
        )
        change, least = adds - adds_not, torch.finfo(p.dtype).tiny
        value, gradient = torch.zeros_like(p[:, 0, 0]), torch.zeros_like(p[:, 0])
        for first in range(0, terms.weight.shape[1], AT_ONCE):
            nodes = slice(first, first + AT_ONCE)
            weight, log_true, log_false = (
                table[:, nodes, None] for table in (terms.weight, terms.log_true, terms.log_false)
            )
            gap = p * (log_false.expm1() + truth * (log_true.expm1() - log_false.expm1()))
            counts = p * (log_false.exp() + truth * (log_true.exp() - log_false.exp()))
            factor = rest + counts
            # Where a factor is too small for its reciprocal, so is the product of all.
            inverse = factor.clamp(min=least).reciprocal()
            s, s_not = counts * inverse, rest * inverse
            # log f from f - 1 where f > 1/2, otherwise log(1/2) + log(2 f).
            log_factor = gap.clamp(min=-0.5).log1p() + (2.0 * factor.clamp(max=0.5)).log()
            mass = log_factor.sum(-1, keepdim=True).exp()
            mean = terms.constant[..., None] + (adds_not * s_not + adds * s).sum(-1, keepdim=True)
            each = mass * (weight * mean + terms.empty[:, nodes, None])
            value = value + each.sum((1, 2))
            gradient = gradient + (s_not * (each * gap + mass * weight * change * s)).sum(1)
        return value, turn * gradient

    def _terms(self, batch: Batch, odds: Tensor) -> Terms:
        # (An unknown label is never in the set: then it must count when it is.)
        left_out = batch.only_known(batch.by_truth(*self._turn)) < 0
        nodes = self._nodes[odds.dtype].at(batch, odds.detach(), left_out)
        rest = torch.where(nodes.zero, -nodes.weight.sum(-1), 0.0)
        log_true, log_false = (
            pad(log, (0, 1), value=-torch.inf if step > 0 else 0.0)
            for log, step in zip((nodes.log_true, nodes.log_false), self._step, strict=True)
        )
        n_true, n_false = (
            count.to(odds.dtype) for count in (batch.n_true, batch.n_known - batch.n_true)
        )
        constant = self._constant[0] + self._constant[1] * n_true + self._constant[2] * n_false
        empty = pad(torch.zeros_like(nodes.weight), (0, 1), value=self._empty)
        on, off = (batch.only_known(batch.by_truth(*pair)) for pair in self._adds)
        return Terms(
            log_true,
            log_false,
            torch.cat([nodes.weight, rest[:, None]], -1),
            torch.where(nodes.zero[:, None], empty, 0.0),
            (on, off),
            constant[:, None],
            left_out,
        )


class _WithGradient(torch.autograd.Function):
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
