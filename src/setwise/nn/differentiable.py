"""Tables on every device, and gradients that are kept beside values: what torch lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from setwise.kernels import kernel
from setwise.lanes import LANES, load, spread, store, total, wide
from setwise.threads import for_rows


def is_traced() -> bool:
    """Whether operations are being compiled, or transformed by `torch.func`, one by one."""
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()


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
        key, tracing = (other.device, other.dtype), torch.compiler.is_compiling()
        if key in self._kept:
            return self._kept[key]
        # A copy made inside a transform or in inference mode could not be used outside of it.
        outside = None if tracing else torch._C._DisableFuncTorch()
        with nullcontext() if tracing else torch.inference_mode(False):
            # The type first: not every device has float64.
            dtype = other.dtype if self._values.is_floating_point() else self._values.dtype
            copy = self._values.to(dtype).to(other.device)
        del outside
        # While a compiler traces, tensors may be placeholders, which are not kept.
        if type(copy) is Tensor and not (tracing and torch._C._are_functorch_transforms_active()):
            self._kept[key] = copy
        return copy


@kernel
def scaled_rows(start, stop, rows, factors, out, sums):
    """out = factor * row, and the sum of each row in float64; (n, m), (n,), (n, m), (n,).

    In lanes, as ``out`` may be the rows: where arrays may overlap, the compiler goes one by one.
    """
    for row in range(start, stop):
        line, product, factor = rows[row], out[row], factors[row]
        whole, some = len(line) - len(line) % LANES, spread(0.0)
        for j in range(0, whole, LANES):
            lanes = load(line, j, factor)
            store(product, j, factor * lanes)
            some = some + wide(lanes)
        sums[row] = total(some)
        for j in range(whole, len(line)):
            sums[row] += np.float64(line[j])
            product[j] = factor * line[j]


def scaled(
    rows: np.ndarray, factors: np.ndarray, out: np.ndarray | None = None
) -> tuple[np.ndarray, bool]:
    """Each row (n, m) times its factor (n,), and whether all entries of the rows are finite.

    One pass, by the threads of the kernels: torch's own would be woken beside those. ``out`` may be
    the rows themselves.
    """
    out, sums = np.empty(rows.shape, rows.dtype) if out is None else out, np.empty(len(rows))
    for_rows(scaled_rows, len(rows), np.ascontiguousarray(rows), factors, out, sums)
    # A sum is finite only if its terms are.
    return out, bool(np.isfinite(sums).all())


class Kept(torch.autograd.Function):
    """Values of rows whose exact gradient is computed beside them and kept until it is asked for.

    ``direct(logits, parameters)`` gives the values (n,), their gradient by logits divided by a
    scale, (n, n_scores), by parameters (n, p), and that scale; either gradient may be None where
    its argument is. ``again(logits, parameters)`` gives the same values in torch operations, for a
    second derivative.
    """

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, logits: Tensor, parameters: Tensor | None, direct, again
    ) -> Tensor:
        """The value of each row, (n,)."""
        value, by_logit, by_parameter, ctx.scale = direct(logits.detach(), parameters)
        ctx.direct, ctx.again, ctx.is_spent = direct, again, False
        ctx.save_for_backward(logits, parameters, by_logit, by_parameter)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor):  # type: ignore[override]
        """The kept gradient times what comes from above."""
        logits, parameters, by_logit, by_parameter = ctx.saved_tensors
        gradients: list[Tensor | None] = [None] * 4
        wanted = [i for i in (0, 1) if ctx.needs_input_grad[i]]
        if torch.is_grad_enabled():
            # Asked for a derivative of the gradient too (create_graph). (Potentials of a forest
            # without edges are used by nothing.)
            value, inputs = ctx.again(logits, parameters), [(logits, parameters)[i] for i in wanted]
            options = {"create_graph": True, "materialize_grads": True}
            made = torch.autograd.grad(value, inputs, upstream, **options)
            for i, gradient in zip(wanted, made, strict=True):
                gradients[i] = gradient
        else:
            factor = ctx.scale * upstream
            if is_plain(by_logit):
                # Multiplied where it stands, once; who comes again (retain_graph) has it made anew.
                if ctx.is_spent:
                    by_logit = ctx.direct(logits.detach(), parameters)[1]
                ctx.is_spent, gradients[0] = True, by_logit.contiguous()
                kept, factors = gradients[0].numpy(), factor.numpy()
                # (A share of the mean, where that was foreseen: a number, 1 but for rounding.)
                if not np.abs(factors - 1.0).max(initial=0.0) <= np.finfo(kept.dtype).eps:
                    scaled(kept, factors, kept)
            else:
                gradients[0] = factor[:, None] * by_logit
            if parameters is not None:
                gradients[1] = upstream.to(parameters.dtype) @ by_parameter.to(parameters.dtype)
        return tuple(gradients)


def recomputed(function: Callable[..., Tensor], *arguments: Any) -> Tensor:
    """function(*arguments), whose backward pass makes again what it needs on the way."""
    if is_traced() or not torch.is_grad_enabled():
        return function(*arguments)
    return checkpoint(function, *arguments, use_reentrant=False, preserve_rng_state=False)  # type: ignore
