"""Tables that losses are made with, where they are needed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor


def in_transform() -> bool:
    """Whether `torch.func` is at work. (It offers no public way to ask.)"""
    return torch._C._are_functorch_transforms_active()


def is_traced() -> bool:
    """Whether operations are being compiled or transformed, which need them one by one."""
    return torch.compiler.is_compiling() or in_transform()


class Constant:
    """An array as a tensor: carried to each device once, and kept there in each floating type.

    Whole numbers and truth values keep their type.
    """

    def __init__(self, values: Iterable | np.ndarray):
        # A copy that torch owns; see `LearnableSpace`.
        self._values = torch.tensor(np.asarray(values))
        self._kept: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    def beside(self, other: Tensor) -> Tensor:
        """The array on the device and in the floating type of another tensor."""
        key = other.device, other.dtype
        kept = self._kept.get(key)
        if kept is None:
            kept = self._carried(*key)
            # A tensor that stands for others while something is traced must not outlive that.
            if type(kept) is Tensor and not (torch.compiler.is_compiling() and in_transform()):
                self._kept[key] = kept
        return kept

    def _carried(self, device: torch.device, dtype: torch.dtype) -> Tensor:
        values = self._values
        dtype = dtype if values.is_floating_point() else values.dtype
        if torch.compiler.is_compiling():
            return values.to(dtype).to(device)
        # What is kept belongs to no transform and to no mode that the first caller is in.
        outside = torch._C._DisableFuncTorch()
        with torch.inference_mode(False):
            # The type first: not every device has float64.
            carried = values.to(dtype).to(device)
        del outside
        return carried
