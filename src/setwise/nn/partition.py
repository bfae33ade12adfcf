"""The log-partition of each space in torch operations, from a weight for each state of each label.

``states`` (..., l, 2) are the logarithms of what a label multiplies a set's weight by: [..., 0]
when it is not in the set, [..., 1] when it is; -inf makes a state impossible. For scores h they are
-h and h, but any number may be taken off both. Everything else follows: a power t^D of a sum D over
labels changes the states (`setwise.nn.expected`), a given set makes all others impossible.

Beside log W each sum carries a mean E[N] of what labels add to a number N (the expectation
semiring): a product adds both, a sum of weights averages N by their shares. All terms have one
sign, so that small means stay accurate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, pad

from setwise.nn.differentiable import Constant
from setwise.spaces import Space
from setwise.taxonomy import forest_levels


@dataclass(frozen=True)
class Rows:
    """A batch: logits, true label sets, which labels are known, and the space's parameters.

    ``odds`` (n, n_scores) are twice the scores: on the cube the log-odds of each label.
    ``parameters`` (p,) are -inf where excluded. ``truth`` (n, l) is 0 or 1 in the type of the odds,
    0 where unknown; ``known`` (n, l) is None where all labels are. ``n_true`` and ``n_known``
    count labels, (n,), as whole numbers.
    """

    odds: Tensor
    parameters: Tensor
    truth: Tensor
    known: Tensor | None
    n_true: Tensor
    n_known: Tensor

    @classmethod
    def of(cls, odds: Tensor, parameters: Tensor, y_true: Tensor, known: Tensor | None) -> Rows:
        """Rows from label sets of any type."""
        present = y_true != 0
        if known is None:
            n_known = torch.full_like(present[:, 0], y_true.shape[1], dtype=torch.long)
        else:
            present, n_known = present & known, known.sum(1)
        truth, n_true = present.to(odds.dtype), present.sum(1)
        return cls(odds, parameters, truth, known, n_true, n_known)

    def at(self, odds: Tensor) -> Rows:
        """The same label sets at other logits."""
        return replace(self, odds=odds)

    def tempered(self, q: float | Tensor) -> Rows:
        """Logits and finite parameters times q; -inf stays."""
        parameters = torch.where(self.parameters > -torch.inf, q * self.free, -torch.inf)
        return replace(self, odds=q * self.odds, parameters=parameters)

    @property
    def free(self) -> Tensor:
        """The parameters, 0 where excluded."""
        return torch.where(self.parameters > -torch.inf, self.parameters, 0.0)

    @property
    def states(self) -> Tensor:
        """The states of the scores, less what makes the two weights of a label add up to 1.

        An unknown label is left out of the set and weighs nothing.
        """
        off, on = logsigmoid(-self.odds), logsigmoid(self.odds)
        return torch.stack([self.only_known(off), self.only_known(on, -torch.inf)], -1)

    def by_truth(self, if_false: float | Tensor, if_true: float | Tensor) -> Tensor:
        """A number, one a row or one a label, for false labels and for true ones, exactly, (n, l).

        (On the CPU this is many times as fast as ``torch.where``.)
        """
        return if_false * (1.0 - self.truth) + if_true * self.truth

    def only_known(self, values: Tensor, otherwise: float = 0.0) -> Tensor:
        """The values, (n, l), replaced where the label is unknown."""
        return values if self.known is None else values.masked_fill(~self.known, otherwise)

    def counted(self, coefficients: list[float]) -> Tensor:
        """c_0 + c_1 (number of true labels) + c_2 (number of false labels), (n,)."""
        n_true = self.n_true.to(self.truth.dtype)
        constant, of_true, of_false = coefficients
        return constant + of_true * n_true + of_false * (self.n_known - n_true)


def softplus(values: Tensor) -> Tensor:
    """log(1 + e^values) without the cut-off of torch's own."""
    return -logsigmoid(-values)


def negative(values: Tensor) -> Tensor:
    """-|values|, with derivatives that make even functions of it smooth at 0."""
    return torch.where(values > 0, -values, values)


class Sum(NamedTuple):
    """log of a sum of weights, and the mean of N under them (None where nobody asks)."""

    log: Tensor
    mean: Tensor | None = None

    def times(self, log_weight: Tensor) -> Sum:
        """Terms of other weights, with the same N."""
        return Sum(self.log + log_weight, self.mean)

    def map(self, change: Callable[..., Tensor], *others: Sum) -> Sum:
        """The same change of the logarithms and of the means, together with those of others."""
        log = change(self.log, *(other.log for other in others))
        if self.mean is None:
            return Sum(log)
        return Sum(log, change(self.mean, *(other.mean for other in others)))


def log_sum(terms: Sum, dim: int) -> Sum:
    """The sum along a dimension; -inf, with mean 0, where every term is.

    Torch's own ``logsumexp`` has derivatives that are not a number where every term is -inf; here
    they are 0, of any order.
    """
    high = terms.log.amax(dim, keepdim=True).detach()
    high = torch.where(high > -torch.inf, high, 0.0)
    share = torch.exp(terms.log - high)
    total = share.sum(dim)
    possible = total > 0
    total = torch.where(possible, total, 1.0)
    log = torch.where(possible, total.log() + high.squeeze(dim), -torch.inf)
    return Sum(log, None if terms.mean is None else (share * terms.mean).sum(dim) / total)


def log_polynomial(factors: Sum, largest: int) -> Sum:
    """The coefficients of prod_j (e^off_j + e^on_j t) up to t^largest, (..., largest + 1).

    Neighbours are multiplied until one polynomial is left: log2(l) steps, at most O(l^2) work.
    """
    while factors.log.shape[-2] > 1:
        if factors.log.shape[-2] % 2:
            one = torch.zeros_like(factors.log[..., :1, :])
            never = pad(one[..., :1], (0, one.shape[-1] - 1), value=-torch.inf)
            factors = factors.map(lambda x, y: torch.cat([x, y], -2), Sum(never, one))
        even, odd = (factors.map(lambda x, k=k: x[..., k::2, :]) for k in (0, 1))
        factors = _multiplied(even, odd, largest)
    return factors.map(lambda x: x[..., 0, : largest + 1])


def _multiplied(a: Sum, b: Sum, largest: int) -> Sum:
    """The product of two polynomials of the same degree, up to t^largest."""
    width = a.log.shape[-1]
    terms = min(2 * width - 1, largest + 1)

    def pairs(x: Tensor, y: Tensor) -> Tensor:
        # Window c of the padded y holds y_(c - width + 1) to y_c, which meet x_(width - 1) to x_0.
        nothing = -torch.inf if x is a.log else 0.0
        windows = pad(y, (width - 1, width - 1), value=nothing).unfold(-1, width, 1)
        return x.flip(-1)[..., None, :] + windows[..., :terms, :]

    return log_sum(a.map(pairs, b), -1)


# A and E[N] (...,) from states (..., l, 2) and the parameters of the space, (p,).
Partition = Callable[[Sum, Tensor], Sum]


def sized_partition(largest: int) -> Partition:
    """A bias for each size: symmetric polynomials of the labels' weights, O(l^2)."""

    def partition(states: Sum, parameters: Tensor) -> Sum:
        return log_sum(log_polynomial(states, largest).times(parameters[: largest + 1]), -1)

    return partition


def forest_partition(parents: np.ndarray) -> Partition:
    """Potentials on edges: messages from the deepest labels to the roots, level by level, O(l)."""
    depth = forest_levels(parents)
    levels = [np.flatnonzero(depth == d) for d in range(int(depth.max()) + 1)]
    place = np.zeros(len(parents), dtype=np.int64)
    place[np.concatenate(levels)] = np.concatenate([np.arange(len(labels)) for labels in levels])
    # The labels of each level, and where in the level above their parents stand.
    tables = [Constant(x) for x in levels], [Constant(place[parents[x]]) for x in levels]

    def partition(states: Sum, parameters: Tensor) -> Sum:
        potentials = parameters.reshape(-1, 2, 2)
        labels, above = ([table.beside(parameters) for table in part] for part in tables)
        up = states.map(lambda x: x[..., labels[-1], :])
        for d in range(len(labels) - 1, 0, -1):
            # A message is a sum over the label's own state, for each state of its parent.
            message = log_sum(up.map(lambda x: x[..., None]).times(potentials[labels[d]]), -2)
            up = states.map(
                lambda x, y, d=d: x[..., labels[d - 1], :].index_add(-2, above[d], y), message
            )
        return log_sum(up, -1).map(lambda x: x.sum(-1))

    return partition


def partition_of(space: Space) -> Partition | None:
    """The log-partition of a space; None where its sets are gone through one by one."""
    if space.is_independent:
        return forest_partition(np.full(space.n_labels, -1))
    if space.size_bias is not None:
        return sized_partition(int(space.sizes[-1]))
    parents = None if space.is_list else getattr(space, "parents", None)
    return None if parents is None else forest_partition(parents)
