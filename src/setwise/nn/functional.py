"""The losses as functions of logits and true label sets."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any

from torch import Tensor

from setwise.nn.border import (
    label_bytes,
    reduced,
    refuse_labels,
    refuse_mask,
    refuse_parameters,
    refuse_sample_weight,
    refuse_shape,
    require_reduction,
    require_space,
    without_autocast,
    working_type,
)
from setwise.nn.learnable_space import LearnableSpace
from setwise.nn.recipe import power_of, recipe_of, weights_of
from setwise.nn.row_loss import RowLoss
from setwise.spaces import Cube, Space


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
    require_reduction(reduction)
    if isinstance(space, LearnableSpace):
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


def width_of(logits: Tensor) -> int:
    """The number of labels of logits without a space."""
    if not isinstance(logits, Tensor):
        raise ValueError(f"input must be a tensor of logits, but it is {type(logits).__name__}")
    if logits.ndim != 2 or logits.shape[1] == 0:
        raise ValueError(
            f"input must have shape (n, n_labels), but its shape is {tuple(logits.shape)}"
        )
    return logits.shape[1]


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
    refuse_shape(logits, space.n_scores)
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
    with without_autocast(logits.device):
        rows = loss(logits.to(working_type(logits)), parameters, label_bytes(y_true), mask, q)
        if sample_weight is not None:
            rows = rows * sample_weight.to(rows.dtype)
        return reduced(rows, reduction, None if mask is None else mask.any(1))
