"""What comes in is checked once: shapes always, values where looking at them costs no waiting."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from setwise.nn.passes import as_bytes
from setwise.spaces import Forest, Paths, Space
from setwise.targets import TreeDistance
from setwise.taxonomy import Taxonomy
from setwise.validation import refuse_not_finite

REDUCTIONS = ("none", "mean", "sum")


def is_plain(tensor: Tensor) -> bool:
    """Whether values can be looked at now: on the CPU, neither compiled nor transformed."""
    if torch.compiler.is_compiling() or tensor.device.type != "cpu":
        return False
    # (torch.func offers no public way to ask; autograd.Function itself asks like this.)
    return not torch._C._are_functorch_transforms_active()


def untraced(make: Callable[[Any], None]) -> Callable[[Any], None]:
    """A function that makes tables, kept from a compiler that traces.

    (As a decorator it would load the compiler for everybody.)
    """
    if not torch.compiler.is_compiling():
        return make
    return cast("Callable[[Any], None]", torch.compiler.disable(make))


def refuse_shape(logits: Tensor, n_scores: int) -> None:
    """Raise unless there is a floating-point score for each row and label (or listed set)."""
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        kind = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(f"input must be a floating-point tensor of logits, but it is {kind}")
    if logits.ndim != 2 or logits.shape[1] != n_scores:
        raise ValueError(
            f"input must have shape (n, {n_scores}), one logit a column, "
            f"but its shape is {tuple(logits.shape)}"
        )


def refuse_bad_logits(logits: Tensor) -> None:
    """Raise for NaN and infinities, where looking costs no waiting."""
    if is_plain(logits):
        # (NumPy has no bfloat16.)
        refuse_not_finite(logits.detach().to(working_type(logits)).numpy(), "input")


def refuse_elsewhere(tensor: Tensor, logits: Tensor, name: str) -> None:
    """Raise unless the tensor is where the logits are."""
    if tensor.device != logits.device:
        raise ValueError(
            f"{name} must be on the device of the input, {logits.device}, but it is on "
            f"{tensor.device}"
        )


def refuse_labels(labels: Tensor, logits: Tensor, n_labels: int) -> None:
    """Raise unless there is a dense real column for each label, beside the logits."""
    if not isinstance(labels, Tensor):
        raise ValueError(f"target must be a tensor of 0 and 1, but it is {type(labels).__name__}")
    if labels.is_complex() or labels.layout != torch.strided:
        kind = f"{labels.layout} {labels.dtype}"
        raise ValueError(f"target must be a dense real tensor of 0 and 1, but it is {kind}")
    if labels.shape != (logits.shape[0], n_labels):
        raise ValueError(
            f"target must have shape ({logits.shape[0]}, {n_labels}), one 0/1 column for each "
            f"label, but its shape is {tuple(labels.shape)}"
        )
    refuse_elsewhere(labels, logits, "target")


def label_bytes(labels: Tensor) -> Tensor:
    """True label sets as 0/1 bytes (n, n_labels), from bool, whole or floating-point numbers."""
    if labels.dtype == torch.bool:
        return labels.view(torch.uint8)
    if not is_plain(labels):
        return (labels != 0).view(torch.uint8)
    # (A kernel for each type of number would be many: the others become one of the usual three.)
    if labels.dtype in (torch.float16, torch.bfloat16):
        labels = labels.float()
    elif not labels.is_floating_point():
        labels = labels.long()
    return torch.from_numpy(as_bytes(labels.detach().numpy(), "target"))


def refuse_open(labels: Tensor, target: Any, space: Space, within: bool) -> None:
    """Raise where tree distance on closed sets or paths is given a set that is none.

    A likelihood asks for sets ``within`` the space; other losses take paths to inner nodes on a
    space of paths to leaves.
    """
    if not isinstance(target, TreeDistance) or not is_plain(labels):
        return
    if not isinstance(space, Paths | Forest) or (isinstance(space, Forest) and not space.closed):
        return
    sets = labels.numpy()
    target.hierarchy.refuse_open(sets, "target")
    is_inside = space.are_paths if isinstance(space, Paths) and not within else space.contains
    inside = is_inside(sets)
    if not inside.all():
        Taxonomy.from_parents(space.parents).refuse_open(sets, "target")
        raise ValueError(
            f"target must have one path a row, but row {int(np.argmin(inside))} is none of the "
            f"{space}; use Forest(parents, closed=True), which has all closed sets"
        )


def refuse_mask(mask: Tensor, labels: Tensor) -> None:
    """Raise unless the mask says of each label whether it is known."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != labels.shape:
        kind = type(mask).__name__
        what = f"{mask.dtype} {tuple(mask.shape)}" if isinstance(mask, Tensor) else kind
        raise ValueError(
            f"mask must be a bool tensor of shape {tuple(labels.shape)}, True where the label is "
            f"known, but it is {what}"
        )
    refuse_elsewhere(mask, labels, "mask")


def refuse_sample_weight(sample_weight: Tensor, logits: Tensor) -> None:
    """Raise unless there is a weight for each row: finite and not negative, where one can look."""
    n_rows = logits.shape[0]
    if not isinstance(sample_weight, Tensor) or sample_weight.shape != (n_rows,):
        is_tensor = isinstance(sample_weight, Tensor)
        what = tuple(sample_weight.shape) if is_tensor else type(sample_weight).__name__
        raise ValueError(
            f"sample_weight must be a tensor of shape ({n_rows},), a weight for each row, "
            f"but it is {what}"
        )
    refuse_elsewhere(sample_weight, logits, "sample_weight")
    if is_plain(sample_weight):
        weights = sample_weight.detach().double().numpy()
        bad = np.flatnonzero(~((weights >= 0) & np.isfinite(weights)))
        if len(bad):
            raise ValueError(
                f"sample_weight must be finite and at least 0, but sample_weight[{bad[0]}] is "
                f"{weights[bad[0]]}"
            )


def refuse_parameters(parameters: Tensor, space: Space) -> None:
    """Raise unless they fit the space, and exclude what it excludes, where one can look."""
    own = space.parameters
    if not isinstance(parameters, Tensor) or parameters.shape != own.shape:
        is_tensor = isinstance(parameters, Tensor)
        what = tuple(parameters.shape) if is_tensor else type(parameters).__name__
        raise ValueError(
            f"parameters must be a tensor of shape {own.shape}, as {space} has so many, "
            f"but it is {what}"
        )
    if is_plain(parameters):
        values = parameters.detach().double().numpy()
        wrong = np.where(np.isneginf(own), ~np.isneginf(values), ~np.isfinite(values))
        if wrong.any():
            i = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"parameters must be -inf where those of the space are, and finite elsewhere, "
                f"but parameters[{i}] is {values[i]} where {space} has {own[i]}"
            )


def working_type(logits: Tensor) -> torch.dtype:
    """float64 stays; everything else is computed in float32."""
    return torch.float64 if logits.dtype == torch.float64 else torch.float32


def without_autocast(device: torch.device) -> AbstractContextManager:
    """Automatic mixed precision turned off: its matrix products would be rounded."""
    if torch.amp.is_autocast_available(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


def reduced(rows: Tensor, reduction: str, counted: Tensor | None) -> Tensor:
    """All rows, their sum, or their mean over the rows that count."""
    if reduction == "none":
        return rows
    if reduction == "sum":
        return rows.sum()
    if counted is None:
        return rows.sum() / max(rows.shape[0], 1)
    return rows.sum() / counted.sum().clamp(min=1)


def require_reduction(reduction: str) -> None:
    """Raise unless the reduction is one of the three."""
    if reduction not in REDUCTIONS:
        raise ValueError(
            f"reduction must be one of {', '.join(map(repr, REDUCTIONS))}, but it is {reduction!r}"
        )


def require_space(space: object) -> None:
    """Raise unless it is a space."""
    if not isinstance(space, Space):
        raise ValueError(f"a space is an object such as Cube(10), but this is {space!r}")
