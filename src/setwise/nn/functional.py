"""The losses as functions of logits and true label sets."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from torch import Tensor

from setwise.nn.modules import LearnableSpace, SurrogateLoss
from setwise.nn.validation import label_numbers, power_of
from setwise.spaces import Space

__all__ = ["expected_loss", "surrogate_loss"]


def expected_loss(
    input: Tensor, y_true: Tensor, target: Any, space: Space | LearnableSpace | None = None,
    **options: Any,
) -> Tensor:  # fmt: skip
    """The expected target loss of a label set drawn from the logits: see `ExpectedLoss`.

    The options are those of `surrogate_loss`.

    Examples
    --------
    >>> import torch
    >>> logits, y_true = torch.tensor([[3.0, -1.0, 0.5]]), torch.tensor([[1, 0, 0]])
    >>> expected_loss(logits, y_true, "f1").round(decimals=4)
    tensor(0.3039)
    """
    return surrogate_loss(input, y_true, target, space, "expected_loss", **options)


def surrogate_loss(
    input: Tensor, y_true: Tensor, target: Any, space: Space | LearnableSpace | None = None,
    surrogate: str = "mean_absolute_error", *, q: float | None = None, margin: str | None = None,
    rho: float = 1.0, parameters: Tensor | None = None, mask: Tensor | None = None,
    sample_weight: Tensor | None = None, weight: Any = None, pos_weight: Any = None,
    reduction: str = "mean", backend: str = "auto",
) -> Tensor:  # fmt: skip
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
    if isinstance(space, LearnableSpace):
        if parameters is not None:
            raise ValueError("a LearnableSpace has its own parameters: hand over one of the two")
        space, parameters = space.initial, space()
    settings = {
        "margin": margin, "rho": rho, "backend": backend,
        "weight": label_numbers(weight, "weight"),
        "pos_weight": label_numbers(pos_weight, "pos_weight"),
    }  # fmt: skip
    try:
        loss = _kept(target, space, surrogate, **settings)
    except TypeError:
        # A target or a space of one's own may have no hash; then its tables are made again.
        loss = _kept.__wrapped__(target, space, surrogate, **settings)
    q = power_of(surrogate, q)
    return loss.value(input, y_true, parameters, mask, sample_weight, reduction, q)


@lru_cache(maxsize=64)
def _kept(target: Any, space: Space | None, surrogate: str, **settings: Any) -> SurrogateLoss:
    """A loss of any q, made once."""
    q = 0.0 if surrogate == "comp_sum" else None
    return SurrogateLoss(target, space, surrogate, q=q, **settings)
