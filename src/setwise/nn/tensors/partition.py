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

import numpy as np
import torch
from torch import Tensor
from torch.func import jvp
from torch.nn.functional import logsigmoid

from setwise.nn.tensors.batch import Batch
from setwise.nn.tensors.log_sum import log_add, log_polynomial, log_sum
from setwise.spaces import Cube, Forest, Sized
from setwise.spaces.nodes import parents_first

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
    """Sums over the label sets of a space; ``parameters`` are the space's, -inf where excluded."""

    independent: bool

    def __call__(self, weights: States, parameters: Tensor) -> Tensor:
        """The log-partition, (...,)."""
        ...

    def tilted(
        self, weights: States, power: Power, values: States, parameters: Tensor
    ) -> tuple[Tensor, Tensor]:
        """log E[t^D] and E[N t^D] / E[t^D], (n, m) each, with N the sum of ``values`` (n, l).

        The weights (n, l) are normalised.
        """
        ...

    def offset(self, batch: Batch, parameters: Tensor) -> Tensor:
        """g of the true set of each row, -inf outside the space, (n,)."""
        ...


def normalised(logits: Tensor, q: float | Tensor, batch: Batch) -> States:
    """on and off for the scores q h = q logits / 2, less what makes e^on + e^off = 1.

    An unknown label is left out of the set and weighs nothing.
    """
    on, off = logsigmoid(q * logits), logsigmoid(-q * logits)
    return batch.only_known(on, -torch.inf), batch.only_known(off)


class CubePartition:
    """Independent labels: A = sum of log(e^on + e^off), 0 where that is normalised."""

    independent = True

    def __call__(self, weights: States, parameters: Tensor) -> Tensor:
        return log_add(*weights).sum(-1)

    def tilted(
        self, weights: States, power: Power, values: States, parameters: Tensor
    ) -> tuple[Tensor, Tensor]:
        """A factor f = (1 - p) + p t for each label, p = P(it counts); near 1, log f from f - 1."""
        (likely, rest), (adds, adds_not) = (
            [torch.where(power.left_out, pair[1 - side], pair[side])[:, None] for side in (0, 1)]
            for pair in ((weights[0].exp(), weights[1].exp()), values)
        )
        counts, gap = likely * torch.exp(power.log), likely * torch.expm1(power.log)
        factor, near = rest + counts, gap > -0.5
        possible = factor > 0
        safe = torch.where(possible, factor, 1.0)
        log_factor = torch.where(
            near,
            torch.log1p(torch.where(near, gap, 0.0)),
            torch.where(possible, torch.log(torch.where(near, 1.0, safe)), -torch.inf),
        )
        total = ((adds * counts + adds_not * rest) / safe).sum(-1)
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
        return _tilted(self, weights, power, values, parameters)

    def offset(self, batch: Batch, parameters: Tensor) -> Tensor:
        return padded(parameters, batch.truth.shape[1] + 1)[batch.n_true]


class ForestPartition:
    """Potentials on the edges: messages from the deepest labels to the roots, depth by depth."""

    independent = False

    def __init__(self, space: Forest):
        depth = np.zeros(space.n_labels, dtype=np.int64)
        for label in parents_first(space.parents):
            if space.parents[label] >= 0:
                depth[label] = depth[space.parents[label]] + 1
        self._levels = [np.flatnonzero(depth == d) for d in range(int(depth.max()) + 1)]
        place = np.zeros(space.n_labels, dtype=np.int64)
        for labels in self._levels:
            place[labels] = np.arange(len(labels))
        self._labels = [torch.from_numpy(labels) for labels in self._levels]
        # Where in the level above the parents of a level stand.
        self._above = [torch.from_numpy(place[space.parents[labels]]) for labels in self._levels]
        self._child = torch.from_numpy(np.flatnonzero(space.parents >= 0))
        self._parent = torch.from_numpy(space.parents[space.parents >= 0])

    def __call__(self, weights: States, parameters: Tensor) -> Tensor:
        on, off = weights
        own = torch.stack([off, on], dim=-1).flatten(0, -3)
        potentials = parameters.reshape(-1, 2, 2)
        up = own[:, self._labels[-1].to(own.device)]
        for depth in range(len(self._labels) - 1, 0, -1):
            edges = potentials[self._labels[depth].to(own.device)]
            # message[parent's state] = log-sum over the label's own state.
            message = log_sum(up[..., None] + edges, -2)
            above = own[:, self._labels[depth - 1].to(own.device)]
            up = above.index_add(1, self._above[depth].to(own.device), message)
        return log_sum(up, -1).sum(-1).reshape(on.shape[:-1])

    def tilted(
        self, weights: States, power: Power, values: States, parameters: Tensor
    ) -> tuple[Tensor, Tensor]:
        return _tilted(self, weights, power, values, parameters)

    def offset(self, batch: Batch, parameters: Tensor) -> Tensor:
        child, parent = self._child.to(parameters.device), self._parent.to(parameters.device)
        state = batch.is_true.long()
        edge = 4 * child + 2 * state[:, child] + state[:, parent]
        return parameters[edge].sum(-1)


def _tilted(
    partition: Partition, weights: States, power: Power, values: States, parameters: Tensor
) -> tuple[Tensor, Tensor]:
    """By the log-partition at changed weights, and its derivative along the values."""
    on, off = (w[:, None] + change for w, change in zip(weights, power.shift(), strict=True))
    along = tuple(part[:, None].expand_as(power.log) for part in values)
    answer = jvp(lambda a, b: partition((a, b), parameters), (on, off), along)
    return answer[0] - partition(weights, parameters)[:, None], answer[1]


def padded(bias: Tensor, length: int) -> Tensor:
    """A bias for each size, -inf for those beyond its end."""
    return torch.nn.functional.pad(bias, (0, max(length - len(bias), 0)), value=-torch.inf)


def partition_of(space: Cube | Sized | Forest) -> Partition:
    """The log-partition of a space with structure."""
    if isinstance(space, Cube):
        return CubePartition()
    return SizedPartition(space) if isinstance(space, Sized) else ForestPartition(space)
