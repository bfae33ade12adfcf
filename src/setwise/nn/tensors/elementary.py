"""Elementary functions with derivatives of any order that are finite wherever they are."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

LOG_2 = math.log(2.0)
# Exponents this near to the largest leave room for what a derivative is multiplied by.
ROOM = 20.0


def softplus(values: Tensor) -> Tensor:
    """log(1 + e^values) without the cut-off of torch's own."""
    return -logsigmoid(-values)


def negative(values: Tensor) -> Tensor:
    """-|values|, with derivatives that make even functions of it smooth at 0."""
    return torch.where(values > 0, -values, values)


def times_exp(values: Tensor, exponent: Tensor) -> Tensor:
    """values * e^exponent; what is too large is infinite, without a slope; 0 times that is 0."""
    limit = math.log(torch.finfo(values.dtype).max) - ROOM
    small = exponent < limit
    product = torch.where(small, values, 0.0) * torch.exp(torch.where(small, exponent, 0.0))
    return torch.where(small | (values <= 0.0), product, torch.inf)


def in_range(logits: Tensor, q: float) -> Tensor:
    """The logits; for q < 0 in float64, as powers of probabilities then outgrow float32.

    (One kind of device has no float64.)
    """
    return logits.double() if q < 0.0 and logits.device.type != "mps" else logits


def psi(lift: Tensor, q: float, log_size: Tensor | float = 0.0) -> Tensor:
    """(1 - e^(q lift)) / q, or -lift at q = 0, divided by e^log_size."""
    shrink = torch.exp(torch.zeros_like(lift) - log_size)
    if q == 0.0:
        return -lift * shrink
    exponent = q * lift
    near = -torch.expm1(exponent.clamp(max=1.0)) * shrink
    far = shrink - times_exp(torch.ones_like(lift), exponent - log_size)
    return torch.where(exponent < 1.0, near, far) / q


def within_unit(values: Tensor) -> Tensor:
    """The values, which only rounding takes out of [0, 1], put back; derivatives are as before."""
    return values + (values.clamp(0.0, 1.0) - values).detach()
