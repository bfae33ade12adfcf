"""The true label sets of a batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setwise.nn.tensors.constant import is_traced


def lasting(labels: Tensor) -> Tensor:
    """The labels; what was made in inference mode is copied, as no backward pass may keep it."""
    return labels.clone() if not is_traced() and labels.is_inference() else labels


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

    def only_known(self, values: Tensor, otherwise: float = 0.0) -> Tensor:
        """The values, (n, l), replaced where the label is unknown."""
        return values if self.known is None else torch.where(self.known, values, otherwise)
