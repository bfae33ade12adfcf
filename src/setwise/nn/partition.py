"""The log-partition of each space in torch operations, from a weight for each state of each label.

``states`` (..., l, 2) are the logarithms of what a label multiplies a set's weight by: [..., 0]
when it is not in the set, [..., 1] when it is; -inf makes a state impossible. For scores h they are
-h and h, but any number may be taken off both. Everything else follows: a power t^D of a sum D over
labels changes the states (`setwise.nn.expected`), a given set makes all others impossible.

The mean E[N] of what labels add to a number N is the derivative of A along it. All its terms have
one sign, so that small means stay accurate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

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
        """One number, or one a row, for the false labels and one for the true, exactly, (n, l).

        (On the CPU this is many times as fast as ``torch.where``.)
        """
        return if_false * (1.0 - self.truth) + if_true * self.truth

    def only_known(self, values: Tensor, otherwise: float = 0.0) -> Tensor:
        """The values, (n, l), replaced where the label is unknown."""
        return values if self.known is None else values.masked_fill(~self.known, otherwise)

    def counted(self, coefficients: list[float]) -> Tensor:
        """c_0 + c_1 (number of false labels) + c_2 (number of true labels), (n,)."""
        n_false, n_true = (
            n.to(self.truth.dtype) for n in (self.n_known - self.n_true, self.n_true)
        )
        return coefficients[0] + coefficients[1] * n_false + coefficients[2] * n_true


def softplus(values: Tensor) -> Tensor:
    """log(1 + e^values) without the cut-off of torch's own."""
    return -logsigmoid(-values)


def negative(values: Tensor) -> Tensor:
    """-|values|, with derivatives that make even functions of it smooth at 0."""
    return torch.where(values > 0, -values, values)


# A (...,) from states (..., l, 2) and the parameters of the space, (p,).
Partition = Callable[[Tensor, Tensor], Tensor]


def log_sum(terms: Tensor, dim: int) -> Tensor:
    """log of the sum of exponentials along a dimension; -inf where every term is.

    Torch's own ``logsumexp`` has derivatives that are not a number where every term is -inf; here
    they are 0, of any order.
    """
    high = terms.amax(dim, keepdim=True).detach()
    high = torch.where(high > -torch.inf, high, 0.0)
    total = torch.exp(terms - high).sum(dim)
    possible = total > 0
    log_total = torch.where(possible, total, 1.0).log() + high.squeeze(dim)
    return torch.where(possible, log_total, -torch.inf)


def log_polynomial(factors: Tensor, largest: int) -> Tensor:
    """The coefficients of prod_j (e^off_j + e^on_j t) up to t^largest, (..., largest + 1).

    Neighbours are multiplied until one polynomial is left: log2(l) steps, at most O(l^2) work.
    """
    while factors.shape[-2] > 1:
        width = factors.shape[-1]
        if factors.shape[-2] % 2:
            one = pad(torch.zeros_like(factors[..., :1, :1]), (0, width - 1), value=-torch.inf)
            factors = torch.cat([factors, one], -2)
        even, odd = factors[..., ::2, :], factors[..., 1::2, :]
        # Window c of the padded y holds y_(c - width + 1) to y_c, which meet x_(width - 1) to x_0.
        windows = pad(odd, (width - 1, width - 1), value=-torch.inf).unfold(-1, width, 1)
        factors = log_sum(even.flip(-1)[..., None, :] + windows[..., : largest + 1, :], -1)
    return factors[..., 0, : largest + 1]


def sized_partition(largest: int) -> Partition:
    """A bias for each size: symmetric polynomials of the labels' weights, O(l^2)."""

    def partition(states: Tensor, parameters: Tensor) -> Tensor:
        return log_sum(log_polynomial(states, largest) + parameters[: largest + 1], -1)

    return partition


def forest_partition(parents: np.ndarray) -> Partition:
    """Potentials on edges: messages from the deepest labels to the roots, level by level, O(l)."""
    depth = forest_levels(parents)
    levels = [np.flatnonzero(depth == d) for d in range(int(depth.max()) + 1)]
    place = np.concatenate([np.arange(len(labels)) for labels in levels])
    place[np.concatenate(levels)] = place.copy()
    # The labels of each level, and where in the level above their parents stand.
    tables = map(Constant, levels), (Constant(place[parents[labels]]) for labels in levels)
    tables = [list(part) for part in tables]

    def partition(states: Tensor, parameters: Tensor) -> Tensor:
        potentials = parameters.reshape(-1, 2, 2)
        labels, above = ([table.beside(parameters) for table in part] for part in tables)
        up = states[..., labels[-1], :]
        for d in range(len(levels) - 1, 0, -1):
            # A message is a sum over the label's own state, for each state of its parent.
            message = log_sum(up[..., None] + potentials[labels[d]], -2)
            up = states[..., labels[d - 1], :].index_add(-2, above[d], message)
        return log_sum(up, -1).sum(-1)

    return partition


def partition_of(space: Space) -> Partition | None:
    """The log-partition of a space; None where its sets are gone through one by one."""
    if space.is_independent:
        return forest_partition(np.full(space.n_labels, -1))
    if space.size_bias is not None:
        return sized_partition(int(space.sizes[-1]))
    parents = None if space.is_list else getattr(space, "parents", None)
    return None if parents is None else forest_partition(parents)
