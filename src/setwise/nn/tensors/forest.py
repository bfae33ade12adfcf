"""The log-partition of a forest: potentials on the edges."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from setwise.nn.tensors.batch import Batch
from setwise.nn.tensors.constant import Constant
from setwise.nn.tensors.log_sum import log_multiply_matrices, log_sum
from setwise.nn.tensors.partition import Power, States, tilted
from setwise.spaces import Forest
from setwise.taxonomy import forest_levels


class ForestPartition:
    """Sums over the states of all labels, by whichever sweep takes fewer steps."""

    independent = False

    def __init__(self, space: Forest):
        self._sweep = _Chains(space) if _is_chains(space) else _Levels(space)
        self._child = Constant(np.flatnonzero(space.parents >= 0))
        self._parent = Constant(space.parents[space.parents >= 0])

    def __call__(self, weights: States, parameters: Tensor) -> Tensor:
        on, off = weights
        own = torch.stack([off, on], dim=-1)
        total = self._sweep(own.flatten(0, -3), parameters.reshape(-1, 2, 2))
        return total.reshape(on.shape[:-1])

    def tilted(
        self, weights: States, power: Power, values: States, parameters: Tensor
    ) -> tuple[Tensor, Tensor]:
        return tilted(self, weights, power, values, parameters)

    def offset(self, batch: Batch, parameters: Tensor) -> Tensor:
        child, parent = self._child.beside(parameters), self._parent.beside(parameters)
        state = batch.is_true.long()
        edge = 4 * child + 2 * state[:, child] + state[:, parent]
        return parameters[edge].sum(-1)


class _Levels:
    """Messages from the deepest labels to the roots, all labels of a depth at once."""

    def __init__(self, space: Forest):
        depth = forest_levels(space.parents)
        levels = [np.flatnonzero(depth == d) for d in range(int(depth.max()) + 1)]
        place = np.zeros(space.n_labels, dtype=np.int64)
        for labels in levels:
            place[labels] = np.arange(len(labels))
        self._labels = [Constant(labels) for labels in levels]
        # Where in the level above the parents of a level stand.
        self._above = [Constant(place[space.parents[labels]]) for labels in levels]

    def __call__(self, own: Tensor, potentials: Tensor) -> Tensor:
        """The log-partition, (n,), of log-weights own[row, label, state]."""
        labels = [level.beside(own) for level in self._labels]
        up = own[:, labels[-1]]
        for depth in range(len(labels) - 1, 0, -1):
            # message[parent's state] = log-sum over the label's own state.
            message = log_sum(up[..., None] + potentials[labels[depth]], -2)
            above = self._above[depth].beside(own)
            up = own[:, labels[depth - 1]].index_add(1, above, message)
        return log_sum(up, -1).sum(-1)


class _Chains:
    """No label has two children: a product of 2 x 2 matrices, neighbours first: log2(l) steps.

    Chains stand one after the other; a potential of 0 joins a root to the label before it.
    """

    def __init__(self, space: Forest):
        child = np.full(space.n_labels, -1)
        child[space.parents[space.parents >= 0]] = np.flatnonzero(space.parents >= 0)
        order = []
        for label in np.flatnonzero(space.parents < 0).tolist():
            while label >= 0:
                order.append(label)
                label = int(child[label])
        self._order = Constant(np.array(order))
        self._is_root = Constant((space.parents[order] < 0)[:, None, None])
        # Before the first label there is one state.
        join = np.zeros((space.n_labels, 2, 2))
        join[0, :, 1] = -np.inf
        self._join = Constant(join)

    def __call__(self, own: Tensor, potentials: Tensor) -> Tensor:
        """The log-partition, (n,), of log-weights own[row, label, state]."""
        order, is_root = self._order.beside(own), self._is_root.beside(own)
        edges = torch.where(is_root, self._join.beside(own), potentials[order])
        # matrices[label's state, state of the label before]
        matrices = own[:, order, :, None] + edges
        while matrices.shape[1] > 1:
            even = matrices.shape[1] // 2 * 2
            product = log_multiply_matrices(matrices[:, 1:even:2], matrices[:, 0:even:2])
            matrices = torch.cat([product, matrices[:, even:]], dim=1)
        return log_sum(matrices[:, 0].flatten(1), -1)


def _is_chains(space: Forest) -> bool:
    """Whether no label has two children, and there are more levels than steps by doubling."""
    parents = space.parents[space.parents >= 0]
    few = int(forest_levels(space.parents).max()) <= math.log2(space.n_labels)
    return len(set(parents.tolist())) == len(parents) and not few
