"""The true label sets of a batch, and the weights of the two states of each label.

``odds`` (n, l) are twice the scores: on the cube, the log-odds of each label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid
from torch.utils.checkpoint import checkpoint

from setwise.nn.partition import is_traced


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
