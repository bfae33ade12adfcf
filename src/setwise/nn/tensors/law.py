"""Which way in torch operations fits a target and a space, or why none does."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from torch import Tensor

from setwise.nn.tensors.batch import Batch
from setwise.nn.tensors.listed import Listed
from setwise.nn.tensors.means import mean_of, partition_of
from setwise.nn.tensors.soft_labels import soft_labels_of
from setwise.nn.tensors.structured import Structured
from setwise.spaces import Cube, Forest, Sized, Space
from setwise.spaces.expectation import FEW, LISTABLE
from setwise.surrogates.constrained import LISTED
from setwise.targets.measure import Fraction, Of
from setwise.targets.target import Target


class Law(Protocol):
    """The losses that can be made of one measure on one space, each (n,)."""

    def comp_sum(self, batch: Batch, logits: Tensor, parameters: Tensor, q: float) -> Tensor:
        """The comp-sum loss on the unit scale; the measure is a utility."""
        ...

    def expected(self, batch: Batch, logits: Tensor, parameters: Tensor) -> Tensor:
        """The expected measure."""
        ...

    def likelihood(self, batch: Batch, logits: Tensor, parameters: Tensor) -> Tensor:
        """-log s(y), 0 outside the space; the measure is equality."""
        ...

    def exponential(self, batch: Batch, logits: Tensor, parameters: Tensor) -> Tensor:
        """The constrained loss with the exponential margin; the measure is a loss."""
        ...


def law_of(target: Target, space: Space, of: Of, masked: bool) -> Structured | Listed:
    """The losses of a target (already on the space); refused where there is no exact way.

    ``masked``: some labels may be unknown.
    """
    measure = target.measure(space.n_labels, of)
    few = space.log_size <= np.log(FEW) + 1e-9
    if isinstance(space, Cube | Sized | Forest):
        listed_is_better = isinstance(space, Forest) and isinstance(measure, Fraction) and few
        partition = partition_of(space)
        mean = None if listed_is_better else mean_of(measure, space, partition, masked)
        if mean is not None:
            soft = soft_labels_of(target, mean, space, masked) if of == "utility" else None
            return Structured(space, partition, mean, soft)
        if space.log_size > np.log(LISTABLE) + 1e-9:
            raise ValueError(
                f"{target} on {space} would need all e^{space.log_size:.0f} label sets in torch "
                f"operations; use a Catalog of label sets"
            )
    return Listed(space, measure, masked)


def listed_law_of(target: Target, space: Space, masked: bool) -> Listed:
    """The losses of a target by a sum over all sets of the space, for margins that need it."""
    if space.log_size > np.log(LISTED) + 1e-9:
        raise ValueError(
            f"constrained losses with a margin other than 'exponential' sum over all label sets, "
            f"and {space} has about e^{space.log_size:.0f}; the limit in torch operations is "
            f"{LISTED}. Use margin='exponential', or backend='compiled', which draws a sample"
        )
    return Listed(space, target.measure(space.n_labels, "loss"), masked)
