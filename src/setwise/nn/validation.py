"""What comes in is checked once: shapes always, values where looking at them costs no waiting."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from setwise.nn.compiled import as_bytes
from setwise.nn.partition import is_traced
from setwise.spaces import Space
from setwise.targets.target import hierarchy_of
from setwise.taxonomy import Taxonomy
from setwise.validation import refuse_not_finite

REDUCTIONS = ("none", "mean", "sum")


def is_plain(tensor: Tensor) -> bool:
    """Whether values can be looked at now: on the CPU, neither compiled nor transformed."""
    return tensor.device.type == "cpu" and not is_traced()


def require_one_of(value: Any, known: tuple[str, ...], name: str) -> None:
    """Raise unless a setting is one of its names."""
    if value not in known:
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, known))}, but it is {value!r}"
        )


def require_space(space: object) -> None:
    """Raise unless it is a space."""
    if not isinstance(space, Space):
        raise ValueError(f"a space is an object such as Cube(10), but this is {space!r}")


def width_of(logits: Tensor) -> int:
    """The number of labels of logits without a space."""
    if not isinstance(logits, Tensor):
        raise ValueError(f"input must be a tensor of logits, but it is {_described(logits)}")
    if logits.ndim != 2 or logits.shape[1] == 0:
        raise ValueError(
            f"input must have shape (n, n_labels), but its shape is {tuple(logits.shape)}"
        )
    return logits.shape[1]


def refuse_logits(logits: Tensor, n_scores: int) -> None:
    """Raise unless there is a floating-point score for each row and label (or listed set)."""
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        kind = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(f"input must be a floating-point tensor of logits, but it is {kind}")
    if logits.ndim != 2 or logits.shape[1] != n_scores:
        raise ValueError(
            f"input must have shape (n, {n_scores}), one logit a column, "
            f"but its shape is {tuple(logits.shape)}"
        )


def refuse_not_finite_logits(logits: Tensor) -> None:
    """Raise for NaN and infinities, where looking costs no waiting."""
    if is_plain(logits):
        refuse_not_finite(logits.detach().numpy(), "input")


def refuse_labels(labels: Tensor, logits: Tensor, n_labels: int) -> None:
    """Raise unless there is a dense real column for each label, beside the logits."""
    if not isinstance(labels, Tensor):
        raise ValueError(f"target must be a tensor of 0 and 1, but it is {_described(labels)}")
    if labels.is_complex() or labels.layout != torch.strided:
        kind = f"{labels.layout} {labels.dtype}"
        raise ValueError(f"target must be a dense real tensor of 0 and 1, but it is {kind}")
    if labels.shape != (logits.shape[0], n_labels):
        raise ValueError(
            f"target must have shape ({logits.shape[0]}, {n_labels}), one 0/1 column for each "
            f"label, but its shape is {tuple(labels.shape)}"
        )
    _refuse_elsewhere(labels, logits, "target")


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
    hierarchy = hierarchy_of(target)
    if hierarchy is None or not space.is_closed or not is_plain(labels):
        return
    sets = labels.numpy()
    hierarchy.refuse_open(sets, "target")
    inside = (space.are_paths if space.is_path and not within else space.contains)(sets)  # type: ignore
    if not inside.all():
        Taxonomy.from_parents(space.parents).refuse_open(sets, "target")  # type: ignore
        raise ValueError(
            f"target must have one path a row, but row {int(np.argmin(inside))} is none of the "
            f"{space}; use Forest(parents, closed=True), which has all closed sets"
        )


def refuse_mask(mask: Tensor, labels: Tensor) -> None:
    """Raise unless the mask says of each label whether it is known."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != labels.shape:
        raise ValueError(
            f"mask must be a bool tensor of shape {tuple(labels.shape)}, True where the label is "
            f"known, but it is {_described(mask)}"
        )
    _refuse_elsewhere(mask, labels, "mask")


def refuse_sample_weight(weight: Tensor, logits: Tensor) -> None:
    """Raise unless there is a weight for each row: finite and not negative, where one can look."""
    if not isinstance(weight, Tensor) or weight.shape != logits.shape[:1]:
        raise ValueError(
            f"sample_weight must be a tensor of shape ({logits.shape[0]},), a weight for each row, "
            f"but it is {_described(weight)}"
        )
    _refuse_elsewhere(weight, logits, "sample_weight")
    if is_plain(weight):
        values = weight.detach().double().numpy()
        bad = np.flatnonzero(~((values >= 0) & np.isfinite(values)))
        if len(bad):
            raise ValueError(
                f"sample_weight must be finite and at least 0, but sample_weight[{bad[0]}] is "
                f"{values[bad[0]]}"
            )


def refuse_parameters(parameters: Tensor, space: Space) -> None:
    """Raise unless they fit the space, and exclude what it excludes, where one can look."""
    own = space.parameters
    if not isinstance(parameters, Tensor) or parameters.shape != own.shape:
        raise ValueError(
            f"parameters must be a tensor of shape {own.shape}, as {space} has so many, "
            f"but it is {_described(parameters)}"
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


def _refuse_elsewhere(tensor: Tensor, logits: Tensor, name: str) -> None:
    if tensor.device != logits.device:
        raise ValueError(
            f"{name} must be on the device of the input, {logits.device}, but it is on "
            f"{tensor.device}"
        )


def _described(value: object) -> str:
    """Type and shape of a tensor, or what else it is."""
    is_tensor = isinstance(value, Tensor)
    return f"{value.dtype} {tuple(value.shape)}" if is_tensor else type(value).__name__
