"""A loss for each label in torch operations: binary relevance, and the cube's likelihood."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from setwise.nn.recipe import Recipe
from setwise.nn.tensors.listed import margin_loss


def relevance_rows(recipe: Recipe, logits: Tensor, y_true: Tensor, known: Tensor | None) -> Tensor:
    """sum_i w_i Phi(y_i logit_i) over the known labels, positive terms times their weight, (n,).

    The logits are the scores here: with the logistic margin sigmoid(logit) is P(label), and so it
    is for a likelihood, which has no margin.
    """
    truth = y_true.to(logits.dtype)
    positive = _vector(recipe.pos_weight, logits, "pos_weight")
    if recipe.margin in (None, "logistic"):
        terms = binary_cross_entropy_with_logits(
            logits, truth, pos_weight=positive, reduction="none"
        )
    else:
        terms = margin_loss((2.0 * truth - 1.0) * logits, recipe.margin)
        if positive is not None:
            terms = terms * (1.0 + truth * (positive - 1.0))
    weight = _vector(recipe.weight, logits, "weight")
    terms = terms if weight is None else terms * weight
    return (terms if known is None else torch.where(known, terms, 0.0)).sum(1)


def _vector(values: tuple[float, ...] | None, logits: Tensor, name: str) -> Tensor | None:
    if values is None:
        return None
    if len(values) not in (1, logits.shape[1]):
        raise ValueError(
            f"{name} must have a number for each of the {logits.shape[1]} labels, "
            f"but it has {len(values)}"
        )
    make = _tensor if torch.compiler.is_compiling() else _kept_tensor
    return make(values, logits.dtype, logits.device)


def _tensor(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    # (A tensor made in inference mode could not be trained with later.)
    with torch.inference_mode(False):
        return torch.tensor(values, dtype=dtype, device=device)


# Once for each device: a copy to another device waits for it.
_kept_tensor = lru_cache(maxsize=64)(_tensor)
