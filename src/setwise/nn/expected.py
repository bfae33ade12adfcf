"""E[u] of a measure u on a space with a log-partition, in torch operations.

One way for each form of a measure. A quotient N / D of sums over labels is a sum over the nodes x
of a rule for 1/D of means of N under weights times e^(-x D); a sum over labels is such a quotient
with D = 1. Equality is the probability of one set; any other function of the counts is summed over
their joint distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, pad

from setwise.nn.differentiable import Constant, Kept, is_traced, recomputed
from setwise.nn.partition import Partition, Rows, Sum, log_polynomial, log_sum
from setwise.spaces import Space
from setwise.spaces.quadrature import (
    DOUBLE_ERROR,
    LAGUERRE_TABLE,
    MEANS,
    SINGLE_ERROR,
    Rules,
    uniform,
)
from setwise.spaces.space import FEW
from setwise.targets.measure import (
    ZERO_DENOMINATOR,
    Additive,
    Counts,
    Equality,
    Fraction,
    Measure,
)

# A function of the counts is tabulated; a table has at most this many entries.
LARGEST_TABLE = 2**22
# Nodes taken together by partitions, and numbers (rows x nodes x labels) on the cube: larger
# operations against memory.
NODES_AT_ONCE, NUMBERS_AT_ONCE = 9, 2**17
# The node that leaves only D = 0. (Infinity times a step of 0 would not be a number.)
FAR = 1e30


class Terms(NamedTuple):
    """E[u] = sum over nodes x of E[e^(-x D)] (weight * (constant + E_x[N]) + extra).

    E_x is the mean under the weights times e^(-x D). x (n, m) or (1, m), weight and extra (n, m),
    constant (n, 1). A label adds ``step`` to D when it counts: in the set if ``turn`` is 1, left
    out if it is -1. It adds ``on`` to N when it counts and ``off`` when not, all 0 or more, (n, l).
    """

    x: Tensor
    weight: Tensor
    extra: Tensor
    constant: Tensor
    turn: Tensor
    step: Tensor
    off: Tensor
    on: Tensor


class SumTerms:
    """constant + scale * sum over labels of what each adds in its state: one node, x = 0."""

    def __init__(self, measure: Additive, n_labels: int):
        sizes = np.arange(n_labels + 1.0)
        self._values, self._spread = Constant(measure.values), Constant(measure.spread)
        self._of_size = Constant(np.stack([measure.scale(sizes), measure.constant(sizes)], 1))

    def __call__(self, rows: Rows) -> Terms:
        """Where labels are unknown, the weights of the others are made to add up to the same."""
        off, on = (rows.by_truth(*pair) for pair in self._values.beside(rows.truth).unbind(1))
        if rows.known is not None:
            spread = self._spread.beside(rows.truth)
            known_total = rows.only_known(spread.expand_as(rows.truth)).sum(1, keepdim=True)
            raised = spread.sum() / torch.where(known_total > 0, known_total, 1.0)
            off, on = (rows.only_known(part) * raised for part in (off, on))
        scale, constant = self._of_size.beside(rows.truth)[rows.n_true].split(1, 1)
        step = torch.zeros_like(on)
        return Terms(0 * scale, scale, constant, 0 * scale, step + 1.0, step, off, on)


class QuotientTerms:
    """N / D, with ``empty`` where D is 0: a node takes out what the rule makes of that."""

    def __init__(self, measure: Fraction, space: Space, masked: bool):
        errors = {torch.float32: SINGLE_ERROR, torch.float64: DOUBLE_ERROR}
        made = {dtype: Rules(measure, space.n_labels, error) for dtype, error in errors.items()}
        rules = made[torch.float64]
        self._empty, self._largest = measure.empty, rules.largest
        self._start, self._least = rules.start.tolist(), rules.least.tolist()
        # Of a false and of a true label.
        parts = np.where(rules.flip, -1.0, 1.0), rules.step, rules.off, rules.on
        self._by_truth = [part[::-1].tolist() for part in parts]
        sees_negatives = measure.numerator[4] != 0.0 or measure.denominator[4] != 0.0
        if space.is_independent and not (masked and sees_negatives):
            self._rules = {dtype: RowRule(rules) for dtype, rules in made.items()}
        else:
            self._rules = dict.fromkeys(errors, SharedRule(rules, masked))

    def __call__(self, rows: Rows) -> Terms:
        """The rule of each row; where D can be 0 with one more node."""
        start, constant = rows.counted(self._start), rows.counted(self._least)[:, None]
        zero = start <= rounding(start.dtype, 64.0) * self._largest
        turn, *values = (rows.by_truth(*pair) for pair in self._by_truth)
        step, off, on = (rows.only_known(value) for value in values)
        with torch.no_grad():
            mean = (step * torch.sigmoid(turn * rows.odds)).sum(1)
            x, weight = self._rules[mean.dtype].at(rows, torch.where(zero, 0.0, start), mean)
        weight = torch.cat([weight, torch.where(zero, -weight.sum(-1), 0.0)[:, None]], -1)
        x = pad(x, (0, 1), value=FAR)
        extra = pad(torch.zeros_like(weight[:, :-1]), (0, 1), value=self._empty) * zero[:, None]
        return Terms(x, weight, extra, constant, turn, step, off, on)


class SumMean:
    """E[u] from terms: one log-partition for each node, or in closed form on the cube."""

    def __init__(self, terms: Callable[[Rows], Terms], partition: Partition, closed: bool):
        self._terms, self._partition, self._closed = terms, partition, closed

    def is_closed(self) -> bool:
        """Whether the closed form serves here: on the cube, outside compilers and transforms."""
        return self._closed and not is_traced()

    def __call__(self, rows: Rows) -> Tensor:
        """E[u], (n,)."""
        if not self.is_closed():
            return self._by_partitions(rows)

        def direct(odds: Tensor, _: None):
            return *self.with_gradient(rows.at(odds)), None, 1.0

        def again(odds: Tensor, _: None) -> Tensor:
            return self._by_partitions(rows.at(odds))

        return Kept.apply(rows.odds, None, direct, again)  # type: ignore

    def _by_partitions(self, rows: Rows) -> Tensor:
        """The same on any space, differentiable to any order."""
        terms = self._terms(rows)
        n_nodes = terms.x.shape[1]
        at_once = n_nodes if torch.compiler.is_compiling() else NODES_AT_ONCE
        # Back from whether a label counts to whether it is in the set.
        pairs = (torch.zeros_like(terms.step), terms.step), (terms.off, terms.on)
        turned = terms.turn[:, None, :, None] < 0
        counts, adds = (torch.stack(pair, -1)[:, None] for pair in pairs)
        counts, adds = (torch.where(turned, x.flip(-1), x) for x in (counts, adds))

        def part(first: int) -> Tensor:
            nodes, states = slice(first, first + at_once), rows.states
            changed = states[:, None] - terms.x[:, nodes, None, None] * counts
            both = Sum(changed, adds.expand_as(changed))
            log_mass, mean = self._partition(both, rows.parameters)
            assert mean is not None
            each = terms.weight[:, nodes] * (terms.constant + mean) + terms.extra[:, nodes]
            if isinstance(self._terms, SumTerms):
                return each[:, 0]
            whole = self._partition(Sum(states), rows.parameters).log[:, None]
            return (torch.exp(log_mass - whole) * each).sum(-1)

        parts = [recomputed(part, first) for first in range(0, n_nodes, at_once)]
        return torch.stack(parts).sum(0)

    def with_gradient(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """On the cube, E[u] (n,) and its derivative by the odds (n, l), without a graph."""
        terms = self._terms(rows)
        odds = rows.only_known(terms.turn * rows.odds, -torch.inf)
        x = terms.x.expand_as(terms.weight)
        given = x, *terms[1:4], terms.step, terms.off, terms.on, odds
        size = max(1, NUMBERS_AT_ONCE // max(1, x.shape[1] * odds.shape[1]))
        parts = zip(*(tensor.split(size) for tensor in given), strict=True)
        values, slopes = zip(*(_closed(*part) for part in parts), strict=True)
        return torch.cat(values), terms.turn * torch.cat(slopes)


def _closed(x, weight, extra, constant, step, off, on, odds) -> tuple[Tensor, Tensor]:
    """E[u] of some rows of the cube, (c,), and its derivative by the odds of counting, (c, l).

    With p the probability that a label counts, t = e^(-x step) and f = 1 + p (t - 1) its factor in
    E[e^(-x D)], it counts with probability s = p t / f under the weights times e^(-x D). Along its
    odds, d log f = (1 - p) p (t - 1) / f and ds = s (1 - s) = s (1 - p) / f.
    """
    p, rest = torch.sigmoid(odds), torch.sigmoid(-odds)
    power = torch.expm1(-x[..., None] * step[:, None])
    gap = p[:, None] * power
    # Where a factor is too small for its reciprocal, so is the product of all.
    inverse = (1.0 + gap).clamp_(min=torch.finfo(p.dtype).tiny).reciprocal_()
    mass = gap.log1p().sum(-1).exp_()
    s = power.add_(1.0).mul_(p[:, None]).mul_(inverse)
    mean = constant + (s @ on[..., None] + inverse @ (off * rest)[..., None])[..., 0]
    each = mass * (weight * mean + extra)
    slope = each[:, None] @ gap.mul_(inverse)
    change = (mass * weight)[:, None] @ s.mul_(inverse)
    return each.sum(-1), rest * (slope[:, 0] + (on - off) * change[:, 0])


class RowRule:
    """On the cube D is concentrated: few nodes, by the row's number of true labels and mean of D.

    For a measure that does not see true negatives they serve rows with unknown labels too.
    """

    def __init__(self, rules: Rules):
        table = rules.table(np.arange(rules.n_labels + 1))
        width = int(np.abs(table.count).max())
        power = table.power_true if rules.step[0] == 1.0 else table.power_false
        used = np.arange(power.shape[2]) < table.count[..., None]
        x = -np.log(np.where(used, np.maximum(power, np.finfo(np.float64).tiny), 1.0))
        near = x, np.where(used, table.weight, 0.0)
        self._near = [Constant(_wide(part, width)) for part in near]
        self._far = [Constant(_wide(part, width)) for part in LAGUERRE_TABLE]
        self._count, self._means = Constant(table.count), Constant(MEANS)

    def at(self, rows: Rows, start: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
        """Nodes and weights of each row, (n, m); ``mean`` is that of D - start, (n,)."""
        level = torch.bucketize(mean, self._means.beside(mean))
        count = self._count.beside(mean)[rows.n_true, level]
        # A negative count: so many Laguerre nodes, scaled by the row's mean of D.
        x, weight = (
            part.beside(mean)[(-count).clamp(min=0)] / (start + mean)[:, None] for part in self._far
        )
        far, is_far = (x, weight * torch.exp(-x * start[:, None])), (count < 0)[:, None]
        x, weight = (
            torch.where(is_far, one, other.beside(mean)[rows.n_true, level])
            for one, other in zip(far, self._near, strict=True)
        )
        return x, weight


def _wide(values: np.ndarray, width: int) -> np.ndarray:
    """As much of the last axis, with zeros where it ends before."""
    values = values[..., :width]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, width - values.shape[-1])])


class SharedRule:
    """One rule for every value that D can take, whatever its distribution."""

    def __init__(self, rules: Rules, masked: bool):
        n_known, n_true = np.indices((rules.n_labels + 1, rules.n_labels + 1))
        possible = (n_true <= n_known) & (n_known > 0 if masked else n_known == rules.n_labels)
        x, w = uniform(rules.step, *rules.ends(n_true[possible], n_known[possible])[:3])
        self._x, self._w = Constant(x[None]), Constant(w)

    def at(self, rows: Rows, start: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
        """Nodes (1, m) and weights (n, m)."""
        x = self._x.beside(start)
        return x, self._w.beside(start) * torch.exp(-x * start[:, None])


def rounding(dtype: torch.dtype, steps: float) -> float:
    """The share of its terms up to which a denominator is 0 in this type."""
    return max(ZERO_DENOMINATOR, steps * torch.finfo(dtype).eps)


class EqualityMean:
    """The probability of the true set, 0 outside the space, or 1 minus it."""

    def __init__(self, measure: Equality, space: Space, partition: Partition):
        self._is_utility, self._partition = measure.when_equal == 1.0, partition
        self._is_independent = space.is_independent

    def log_probability(self, rows: Rows) -> Tensor:
        """log s(y), -inf outside the space, (n,)."""
        towards = rows.by_truth(-1.0, 1.0) * rows.odds
        weight = rows.only_known(logsigmoid(towards)).sum(-1)
        if self._is_independent:
            return weight
        # Where every other state is impossible, the log-partition is g of the true set.
        only = torch.log(torch.stack([1.0 - rows.truth, rows.truth], -1))
        own, all_sets = (
            self._partition(Sum(states), rows.parameters).log for states in (only, rows.states)
        )
        return weight + own - all_sets

    def __call__(self, rows: Rows) -> Tensor:
        """E[u], (n,)."""
        log_probability = self.log_probability(rows)
        return log_probability.exp() if self._is_utility else -torch.expm1(log_probability)


class CountValues:
    """A function of tp, fp, fn and tn over ``n_labels`` labels, or, if masked, over fewer too.

    Equality and quotients are computed; any other function is tabulated, for predicted sets of
    up to ``largest`` labels.
    """

    def __init__(self, measure: Measure, n_labels: int, masked: bool, largest: int):
        self._measure = measure
        if isinstance(measure, Fraction):
            self._quotient = measure.numerator.tolist(), measure.denominator.tolist()
        elif isinstance(measure, Counts):
            self._table = Constant(tabulated(measure, n_labels, masked, min(n_labels, largest)))

    def at(self, rows: Rows, tp: Tensor, fp: Tensor) -> Tensor:
        """The value at whole numbers of tp and fp, with the rows in front."""
        dtype, column = rows.truth.dtype, (-1,) + (1,) * (tp.ndim - 1)
        n_true, n_known = rows.n_true.reshape(column), rows.n_known.reshape(column)
        if isinstance(self._measure, Counts):
            table = self._table.beside(rows.truth)
            known, most = n_known.clamp(max=len(table) - 1), table.shape[-1] - 1
            return table[known, n_true, tp.clamp(max=most), fp.clamp(max=most)]
        if isinstance(self._measure, Equality):
            return (((fp == 0) & (tp == n_true)) == bool(self._measure.when_equal)).to(dtype)
        counts = [k.to(dtype) for k in (tp, fp, n_true - tp, n_known - n_true - fp)]
        above, below = (
            c[0] + sum(c[i] * k for i, k in enumerate(counts, 1)) for c in self._quotient
        )
        nothing = below.abs() <= rounding(dtype, 16.0) * max(map(abs, self._quotient[1]))
        return torch.where(nothing, self._measure.empty, above / torch.where(nothing, 1.0, below))  # type: ignore


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
    """A function of the counts where g depends on the size alone: the joint law of tp and fp."""

    def __init__(self, measure: Measure, space: Space, masked: bool):
        self._largest = int(space.sizes[-1])
        self._values = CountValues(measure, space.n_labels, masked, self._largest)

    def __call__(self, rows: Rows) -> Tensor:
        """E[u], (n,)."""
        states, size, is_true = rows.states, self._largest + 1, rows.truth[..., None] > 0
        absent = pad(torch.zeros_like(states[..., :1]), (0, 1), value=-torch.inf)
        tp, fp = (
            log_polynomial(Sum(torch.where(group, states, absent)), size - 1).log
            for group in (is_true, ~is_true)
        )
        count = torch.arange(size, device=states.device)
        log_law = tp[:, :, None] + fp[:, None, :]
        # (The cube has no parameters.)
        if len(rows.parameters):
            bias = pad(rows.parameters[:size], (0, size), value=-torch.inf)
            log_law = log_law + bias[count[:, None] + count]
        law = torch.exp(log_law - log_sum(Sum(log_law.flatten(1)), -1).log[:, None, None])
        values = self._values.at(rows, count[None, :, None], count[None, None, :])
        return (law * values).sum((1, 2))


def mean_of(
    measure: Measure, space: Space, partition: Partition, masked: bool
) -> Callable[[Rows], Tensor] | None:
    """The way that uses the structure of the space, if there is one for this form."""
    if isinstance(measure, Equality):
        return EqualityMean(measure, space, partition)
    if isinstance(measure, Additive):
        return SumMean(SumTerms(measure, space.n_labels), partition, space.is_independent)
    by_size, few = space.size_bias is not None, space.has_at_most(FEW)
    if isinstance(measure, Fraction) and (space.is_independent or not (by_size or few)):
        return SumMean(QuotientTerms(measure, space, masked), partition, space.is_independent)
    if isinstance(measure, Fraction | Counts) and by_size:
        return CountMean(measure, space, masked)
    return None
