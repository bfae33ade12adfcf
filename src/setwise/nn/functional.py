"""The losses as functions of logits and true label sets."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from setwise.nn.row_loss import RowLoss, power_of, recipe_of, weights_of
from setwise.nn.validation import (
    REDUCTIONS,
    label_bytes,
    refuse_labels,
    refuse_logits,
    refuse_mask,
    refuse_parameters,
    refuse_sample_weight,
    require_one_of,
    require_space,
    width_of,
)
from setwise.spaces import Cube, Space

if TYPE_CHECKING:
    from setwise.nn.modules import LearnableSpace


def expected_loss(
    input: Tensor,
    y_true: Tensor,
    target: Any,
    space: Space | LearnableSpace | None = None,
    *,
    parameters: Tensor | None = None,
    mask: Tensor | None = None,
    sample_weight: Tensor | None = None,
    reduction: str = "mean",
    backend: str = "auto",
) -> Tensor:
    """The expected target loss of a label set drawn from the logits: see `ExpectedLoss`.

    Examples
    --------
    >>> import torch
    >>> logits, y_true = torch.tensor([[3.0, -1.0, 0.5]]), torch.tensor([[1, 0, 0]])
    >>> expected_loss(logits, y_true, "f1").round(decimals=4)
    tensor(0.3039)
    """
    return surrogate_loss(
        input, y_true, target, space, "expected_loss", parameters=parameters, mask=mask,
        sample_weight=sample_weight, reduction=reduction, backend=backend,
    )  # fmt: skip


def surrogate_loss(
    input: Tensor,
    y_true: Tensor,
    target: Any,
    space: Space | LearnableSpace | None = None,
    surrogate: str = "mean_absolute_error",
    *,
    q: float | None = None,
    margin: str | None = None,
    rho: float = 1.0,
    parameters: Tensor | None = None,
    mask: Tensor | None = None,
    sample_weight: Tensor | None = None,
    weight: Any = None,
    pos_weight: Any = None,
    reduction: str = "mean",
    backend: str = "auto",
) -> Tensor:
    """A surrogate of the target loss: see `SurrogateLoss`, which has the same settings.

    ``parameters`` (p,) replace those of the space, and receive a gradient; a `LearnableSpace`
    brings its own.

    Examples
    --------
    >>> import torch
    >>> logits, y_true = torch.tensor([[3.0, -1.0, 0.5]]), torch.tensor([[1, 0, 0]])
    >>> surrogate_loss(logits, y_true, "f1", surrogate="logistic").round(decimals=4)
    tensor(-0.1904)
    """
    require_one_of(reduction, REDUCTIONS, "reduction")
    if isinstance(space, nn.Module):
        if parameters is not None:
            raise ValueError("a LearnableSpace has its own parameters: hand over one of the two")
        space, parameters = space.initial, space()
    power = power_of(surrogate, q)
    weights = (weights_of(weight, "weight"), weights_of(pos_weight, "pos_weight"))
    settings = (target, surrogate, margin, rho, backend, *weights)
    width = width_of(input) if space is None else None
    # A target or a space of one's own may have no hash; then its tables are made again.
    keep = isinstance(target, Hashable) and isinstance(space, Hashable)
    make = _kept_row_loss if keep else _row_loss
    loss = make(settings, space, width)
    return loss_of(loss, input, y_true, parameters, mask, sample_weight, reduction, power)


def _row_loss(settings: tuple, space: Space | None, width: int | None) -> RowLoss:
    space = Cube(width or 1) if space is None else space
    require_space(space)
    return RowLoss(recipe_of(*settings), space)


_kept_row_loss = lru_cache(maxsize=64)(_row_loss)


def loss_of(
    loss: RowLoss,
    logits: Tensor,
    y_true: Tensor,
    parameters: Tensor | None,
    mask: Tensor | None,
    sample_weight: Tensor | None,
    reduction: str,
    q: float | None,
) -> Tensor:
    """Check what comes in, compute the loss of each row in float32 or float64, and reduce."""
    space = loss.space
    refuse_logits(logits, space.n_scores)
    refuse_labels(y_true, logits, space.n_labels)
    if parameters is not None:
        refuse_parameters(parameters, space)
    if sample_weight is not None:
        refuse_sample_weight(sample_weight, logits)
    if mask is not None:
        refuse_mask(mask, y_true)
        loss.refuse_known(mask)
        # Whatever stands where nothing is known: it has no value and no gradient.
        logits, y_true = logits.masked_fill(~mask, 0), y_true.masked_fill(~mask, 0)
    # float64 stays, everything else is computed in float32, where autocast would round products.
    work = logits if logits.dtype == torch.float64 else logits.float()
    kind = logits.device.type
    has_autocast = torch.amp.is_autocast_available(kind)
    with torch.autocast(kind, enabled=False) if has_autocast else nullcontext():
        rows = loss(work, parameters, label_bytes(y_true), mask, q)
        if sample_weight is not None:
            rows = rows * sample_weight.to(rows.dtype)
        if reduction == "none":
            return rows
        if reduction == "sum":
            return rows.sum()
        # The mean is over the rows that have a known label.
        counted = max(len(rows), 1) if mask is None else mask.any(1).sum().clamp(min=1)
        return rows.sum() / counted
