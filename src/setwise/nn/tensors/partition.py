"""Log-partitions of spaces with structure, from a weight for each state of each label.

``on`` and ``off`` (..., l) are the logarithms of what a label multiplies a set's weight by when it
is in the set and when it is not; -inf makes a state impossible. For the scores h they are h and -h,
but any number may be taken off both, which keeps sums small: see `normalised`. The derivative of
the log-partition along what labels add to a sum N in either state is E[N], with every term of one
sign, so that small values stay accurate. A power t^D of another such sum changes ``on`` and
``off``.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.func import jvp
from torch.nn.functional import logsigmoid, pad

from setwise.nn.tensors.batch import Batch
from setwise.nn.tensors.elementary import negative, softplus
from setwise.nn.tensors.log_sum import log_polynomial, log_sum
from setwise.spaces import Sized

# One number for each label when it is in the set, and one when it is not.
States = tuple[Tensor, Tensor]


class Power(NamedTuple):
    """t^D for m values of t: log t^step of each label, (n, m, l), and when the label counts.

    A label counts towards D when it is in the set, where ``left_out`` (n, l), when it is not.
    """

    log: Tensor
    left_out: Tensor

    def shift(self) -> States:
        """What is added to on and off, (n, m, l) each."""
        left_out = self.left_out[:, None]
        return torch.where(left_out, 0.0, self.log), torch.where(left_out, self.log, 0.0)


class Partition(Protocol):
    """Sums over the label sets of a space; ``parameters`` are the space's, -inf where excluded.

    The weights (n, l) are normalised.
    """

    independent: bool

    def __call__(self, weights: States, parameters: Tensor) -> Tensor:
        """The log-partition, (...,)."""
        ...

    def tilted(
        self, weights: States, power: Power, values: States, parameters: Tensor
    ) -> tuple[Tensor, Tensor]:
        """log E[t^D] and E[N t^D] / E[t^D], (n, m) each, with N the sum of ``values`` (n, l)."""
        ...

    def offset(self, batch: Batch, parameters: Tensor) -> Tensor:
        """g of the true set of each row, -inf outside the space, (n,)."""
        ...


def normalised(odds: Tensor, batch: Batch) -> States:
    """on and off for the scores odds / 2, less what makes e^on + e^off = 1.

    An unknown label is left out of the set and weighs nothing.
    """
    return batch.only_known(logsigmoid(odds), -torch.inf), batch.only_known(logsigmoid(-odds))


class CubePartition:
    """Independent labels: A = 0 where every label is normalised."""

    independent = True

    def __call__(self, weights: States, parameters: Tensor) -> Tensor:
        return torch.zeros_like(weights[0][..., 0])

    def tilted(
        self, weights: States, power: Power, values: States, parameters: Tensor
    ) -> tuple[Tensor, Tensor]:
        """A factor f = (1 - p) + p t for each label, p = P(it counts).

        Near 1, log f comes from f - 1; elsewhere from the larger of the two terms and the odds of
        p t against 1 - p, in logarithms, which are finite with all their derivatives for any t.
        """
        (counts, rest), (adds, adds_not) = (
            [torch.where(power.left_out, pair[1 - side], pair[side])[:, None] for side in (0, 1)]
            for pair in (weights, values)
        )
        odds = counts - rest + power.log
        gap = counts.exp() * torch.expm1(power.log)
        near = gap > -0.5
        larger = torch.where(odds >= 0, counts + power.log, rest)
        log_factor = torch.where(
            near, torch.log1p(torch.where(near, gap, 0.0)), larger + softplus(negative(odds))
        )
        total = (adds * torch.sigmoid(odds) + adds_not * torch.sigmoid(-odds)).sum(-1)
        return log_factor.sum(-1), total

    def offset(self, batch: Batch, parameters: Tensor) -> Tensor:
        return torch.zeros_like(batch.truth[:, 0])


class SizedPartition:
    """A bias for each size: symmetric polynomials of the labels' weights."""

    independent = False

    def __init__(self, space: Sized):
        self._largest = int(space.sizes[-1])

    def __call__(self, weights: States, parameters: Tensor) -> Tensor:
        on, off = weights
        sizes = log_polynomial(off, on, self._largest)
        return log_sum(sizes + parameters[: self._largest + 1], -1)

    def tilted(
        self, weights: States, power: Power, values: States, parameters: Tensor
    ) -> tuple[Tensor, Tensor]:
        return tilted(self, weights, power, values, parameters)

    def offset(self, batch: Batch, parameters: Tensor) -> Tensor:
        return padded(parameters, batch.truth.shape[1] + 1)[batch.n_true]


def along(
    partition: Partition, weights: States, values: States, parameters: Tensor
) -> tuple[Tensor, Tensor]:
    """The log-partition and its derivative along the values, E[N]."""
    answer = jvp(lambda on, off: partition((on, off), parameters), weights, values)
    return answer[0], answer[1]


def tilted(
    partition: Partition, weights: States, power: Power, values: States, parameters: Tensor
) -> tuple[Tensor, Tensor]:
    """By the log-partition at changed weights, and its derivative along the values."""
    log_partition = partition(weights, parameters)[:, None]
    on, off = (w[:, None] + change for w, change in zip(weights, power.shift(), strict=True))
    add, add_not = (part[:, None].expand_as(power.log) for part in values)
    changed, mean = along(partition, (on, off), (add, add_not), parameters)
    return changed - log_partition, mean


def padded(bias: Tensor, length: int) -> Tensor:
    """A bias for each size, -inf for those beyond its end."""
    return pad(bias, (0, max(length - len(bias), 0)), value=-torch.inf)
