"""What q = 0 on the cube needs of a target: there it is cross-entropy with soft labels.

M(0) = E_0[u] and the pulls E_0[u y'_i] of each row, in which the logits have no part.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from setwise.nn.tensors.batch import Batch
from setwise.nn.tensors.constant import Constant
from setwise.nn.tensors.elementary import LOG_2
from setwise.nn.tensors.fraction import FractionMean
from setwise.nn.tensors.means import AdditiveMean, EqualityMean, MeanOf
from setwise.nn.tensors.values import LabelValues
from setwise.spaces import Cube, Space
from setwise.targets.target import Target


class SoftLabels(Protocol):
    """M(0) (n, 1), and the pull of each label (n, l), 0 where it is unknown."""

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]: ...


class ByNumber:
    """Three numbers for each number of true labels, of a target that sees only counts."""

    def __init__(self, target: Target, n_labels: int):
        sets = np.tri(n_labels + 1, n_labels, -1, dtype=np.uint8)
        flat = Cube(n_labels).expectation(target).moment(np.zeros(sets.shape), sets, 1.0)
        self._level = Constant(flat.value)
        self._true, self._false = Constant(flat.scores[:, 0]), Constant(flat.scores[:, -1])

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        level, if_true, if_false = (
            table.beside(batch.truth)[batch.n_true][:, None]
            for table in (self._level, self._true, self._false)
        )
        return level, batch.by_truth(if_true, if_false)


class ByLabel:
    """Sums over labels."""

    def __init__(self, values: LabelValues):
        self._values = values

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        on, off = self._values.states(batch)
        level = self._values.complete(batch, (on + off).sum(-1) / 2.0)[:, None]
        nothing = self._values.complete(batch, torch.zeros_like(on))
        return level, self._values.complete(batch, (on - off) / 2.0) - nothing


class AtZero:
    """A quotient over the known labels: its mean and gradient at zero logits."""

    def __init__(self, mean: FractionMean):
        self._mean = mean

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        level, gradient = self._mean.with_gradient(batch, torch.zeros_like(batch.truth))
        return level[:, None], 2.0 * gradient


def soft_labels_of(target: Target, mean: MeanOf, space: Space, masked: bool) -> SoftLabels | None:
    """The numbers of a target on the cube; None where there are none but by the general way."""
    if not isinstance(space, Cube) or isinstance(mean, EqualityMean):
        return None
    if isinstance(mean, AdditiveMean):
        return ByLabel(mean.values)
    if not masked:
        return ByNumber(target, space.n_labels)
    return AtZero(mean) if isinstance(mean, FractionMean) else None


def soft_cross_entropy(batch: Batch, logits: Tensor, level: Tensor, pull: Tensor) -> Tensor:
    """level * sum log cosh(x_i / 2) - sum pull_i x_i / 2 over the known labels, (n,).

    That is ``level`` times cross-entropy with the labels (1 + pull_i / level) / 2, less log 2 each.
    """
    lean = pull / torch.where(level > 0, level, 1.0)
    terms = binary_cross_entropy_with_logits(
        batch.only_known(logits), ((1.0 + lean) / 2.0).clamp(0.0, 1.0), reduction="none"
    )
    return level[:, 0] * (terms - LOG_2).sum(-1)
