"""Sums of exponentials in logarithms, with -inf for what is impossible.

Torch's own ``logsumexp`` and ``logaddexp`` have derivatives that are not a number where every term
is -inf. Here the derivative of an impossible sum is 0, of any order, backward and forward.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad


def log_sum(values: Tensor, dim: int) -> Tensor:
    """log of the sum of e^values along a dimension; -inf where all are."""
    high = _finite(values.amax(dim, keepdim=True).detach())
    return _log(torch.exp(values - high).sum(dim), high.squeeze(dim))


def _finite(high: Tensor) -> Tensor:
    return torch.where(high > -torch.inf, high, 0.0)


def _log(total: Tensor, high: Tensor) -> Tensor:
    possible = total > 0
    return torch.where(possible, torch.where(possible, total, 1.0).log() + high, -torch.inf)


def log_polynomial(off: Tensor, on: Tensor, largest: int) -> Tensor:
    """log of the coefficients of prod_j (e^off_j + e^on_j t) up to t^largest, (..., largest + 1).

    Neighbours are multiplied until one polynomial is left: log2(l) steps, at most O(l^2) work.
    """
    factors = torch.stack([off, on], dim=-1)
    while factors.shape[-2] > 1:
        width = factors.shape[-1]
        if factors.shape[-2] % 2:
            one = pad(torch.zeros_like(factors[..., :1, :1]), (0, width - 1), value=-torch.inf)
            factors = torch.cat([factors, one], dim=-2)
        factors = log_multiply(factors[..., 0::2, :], factors[..., 1::2, :], largest)
    return factors[..., 0, : largest + 1]


def log_multiply(a: Tensor, b: Tensor, largest: int) -> Tensor:
    """log of the coefficients of the product of two polynomials, up to t^largest."""
    width, terms = a.shape[-1], min(a.shape[-1] + b.shape[-1] - 1, largest + 1)
    # Window c of the padded b holds b_(c - width + 1) to b_c, which meet a_(width - 1) to a_0.
    windows = pad(b, (width - 1, width - 1), value=-torch.inf).unfold(-1, width, 1)
    return log_sum(a.flip(-1)[..., None, :] + windows[..., :terms, :], -1)


def log_multiply_matrices(a: Tensor, b: Tensor) -> Tensor:
    """log of the entries of the matrix product of e^a and e^b, (..., rows of a, columns of b)."""
    return log_sum(a[..., None] + b[..., None, :, :], -2)
