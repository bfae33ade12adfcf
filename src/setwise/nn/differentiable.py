"""Tables on every device, and gradients that are kept beside values: what torch lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint


def in_transform() -> bool:
    """Whether `torch.func` is at work. (It offers no public way to ask.)"""
    return torch._C._are_functorch_transforms_active()


def is_traced() -> bool:
    """Whether operations are being compiled or transformed, and must be seen one by one."""
    return torch.compiler.is_compiling() or in_transform()


def is_plain(tensor: Tensor) -> bool:
    """Whether values can be looked at now: on the CPU, neither compiled nor transformed."""
    return tensor.device.type == "cpu" and not is_traced()


class Constant:
    """An array as a tensor: copied to each device once, and kept there in each floating type.

    Whole numbers and truth values keep their type.
    """

    def __init__(self, values: Iterable | np.ndarray):
        # A copy that torch owns; see `LearnableSpace`.
        self._values = torch.tensor(np.asarray(values))
        self._kept: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    def beside(self, other: Tensor) -> Tensor:
        """The array on the device and in the floating type of another tensor."""
        key = other.device, other.dtype
        if key in self._kept:
            return self._kept[key]
        dtype = other.dtype if self._values.is_floating_point() else self._values.dtype
        if torch.compiler.is_compiling():
            copy = self._values.to(dtype).to(other.device)
        else:
            # A copy made inside a transform or in inference mode could not be used outside of it.
            outside = torch._C._DisableFuncTorch()
            with torch.inference_mode(False):
                # The type first: not every device has float64.
                copy = self._values.to(dtype).to(other.device)
            del outside
        # While a compiler traces, tensors may be placeholders, which are not kept.
        if type(copy) is Tensor and not (torch.compiler.is_compiling() and in_transform()):
            self._kept[key] = copy
        return copy


class Kept(torch.autograd.Function):
    """Values of rows whose exact gradient is computed beside them and kept until it is asked for.

    ``direct(logits, parameters)`` gives the values (n,), their gradient by logits divided by
    ``scale``, (n, n_scores), and by parameters (n, p); either may be None where its argument is.
    ``again(logits, parameters)`` gives the same values in torch operations, for a second
    derivative.
    """

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        logits: Tensor,
        parameters: Tensor | None,
        direct: Callable,
        again: Callable,
        scale: float,
    ) -> Tensor:
        """The value of each row, (n,)."""
        value, by_logit, by_parameter = direct(logits.detach(), parameters)
        ctx.again, ctx.scale = again, scale
        ctx.save_for_backward(logits, parameters, by_logit, by_parameter)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor):  # type: ignore[override]
        """The kept gradient times what comes from above."""
        logits, parameters, by_logit, by_parameter = ctx.saved_tensors
        needed = ctx.needs_input_grad[:2]
        gradients: list[Tensor | None] = [None, None]
        if torch.is_grad_enabled():
            # Asked for a derivative of the gradient too (create_graph).
            inputs = [x for x, wanted in zip((logits, parameters), needed, strict=True) if wanted]
            # (Potentials of a forest without edges are used by nothing.)
            made = torch.autograd.grad(
                ctx.again(logits, parameters), inputs, upstream,
                create_graph=True, materialize_grads=True,
            )  # fmt: skip
            left = iter(made)
            gradients = [next(left) if wanted else None for wanted in needed]
        else:
            gradients[0] = (ctx.scale * upstream)[:, None] * by_logit
            if needed[1]:
                gradients[1] = upstream.to(parameters.dtype) @ by_parameter.to(parameters.dtype)
        return *gradients, None, None, None


def recomputed(function: Callable[..., Tensor], *arguments: Any) -> Tensor:
    """function(*arguments), whose backward pass makes again what it needs on the way."""
    if is_traced() or not torch.is_grad_enabled():
        return function(*arguments)
    return checkpoint(function, *arguments, use_reentrant=False, preserve_rng_state=False)  # type: ignore
