"""Losses on spaces with structure, from the log-partition A and the expected measure M.

With F(q) = exp(A_q - q A_1 - (1 - q) log|Y|) M_q, as in `setwise.expectation`, the comp-sum loss on
the unit scale is (F(0) - F(q)) / q, and -F'(0) at q = 0, a derivative that is taken forward.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.polynomial.legendre import leggauss
from torch import Tensor
from torch.func import jvp
from torch.nn.functional import logsigmoid

from setwise.nn.tensors.batch import Batch
from setwise.nn.tensors.means import EqualityMean, MeanOf
from setwise.nn.tensors.partition import Partition, States, normalised
from setwise.nn.tensors.values import beside
from setwise.spaces import Cube, Forest, Sized
from setwise.surrogates.comp_sum import MODERATE_SPAN, SMALL_Q, SMALL_Q_NODES

LOG_2 = math.log(2.0)
_NODES, _WEIGHTS = (part.tolist() for part in leggauss(SMALL_Q_NODES))


class Structured:
    """A measure on a Cube, Sized or Forest space."""

    def __init__(self, space: Cube | Sized | Forest, partition: Partition, mean: MeanOf):
        self._partition, self._mean, self._log_size = partition, mean, space.log_size
        self._finite = torch.from_numpy(np.isfinite(space.parameters))
        center = space.tempered(0.0).mean_scores(np.zeros((1, space.n_scores)))[1:]
        self._center = [torch.from_numpy(np.array(part[0])) for part in center]

    def comp_sum(self, batch: Batch, logits: Tensor, parameters: Tensor, q: float) -> Tensor:
        """The comp-sum loss of the utility on the unit scale, (n,)."""
        if isinstance(self._mean, EqualityMean):
            return self._subset(self._mean, batch, logits, parameters, q)

        def moment(power: float | Tensor) -> Tensor:
            return self._moment(batch, logits, parameters, power)

        if q == 0.0:
            return -_slope(moment, 0.0, logits)
        uniform = self._moment(batch, torch.zeros_like(logits), torch.zeros_like(parameters), 1.0)
        direct = (uniform - moment(q)) / q
        if abs(q) >= SMALL_Q:
            return direct
        # The difference loses digits of the value that its integral keeps.
        span = batch.only_known(logits).abs().sum(-1) + 2.0 * self._free(parameters).abs().sum()
        integral = -sum(
            w / 2.0 * _slope(moment, q * (1.0 + x) / 2.0, logits)
            for x, w in zip(_NODES, _WEIGHTS, strict=True)
        )
        return torch.where(abs(q) * span < MODERATE_SPAN, integral, direct)

    def expected(self, batch: Batch, logits: Tensor, parameters: Tensor) -> Tensor:
        """The expected measure, (n,)."""
        return self._moment(batch, logits, parameters, 1.0)

    def likelihood(self, batch: Batch, logits: Tensor, parameters: Tensor) -> Tensor:
        """-log s(y), 0 outside the space, (n,)."""
        assert isinstance(self._mean, EqualityMean)
        weights = normalised(logits, 1.0, batch)
        log_probability = self._mean.log_probability(batch, weights, parameters)
        return torch.where(log_probability > -torch.inf, -log_probability, 0.0)

    def exponential(self, batch: Batch, logits: Tensor, parameters: Tensor) -> Tensor:
        """e^(A - log|Y| - E_0[z]) times the expected measure: the constrained loss, (n,)."""
        weights, free = normalised(logits, 1.0, batch), self._free(parameters)
        exponent = batch.only_known(_softplus(_negative(logits)) - _negative(logits) / 2.0).sum(-1)
        exponent = exponent + self._relative(weights, self._tempered(parameters, 1.0))
        exponent = exponent - self._size(batch, logits)
        scores_center, features_center = (beside(part, logits) for part in self._center)
        exponent = exponent - logits @ scores_center / 2.0 - free @ features_center
        return times_exp(self.expected(batch, logits, parameters), exponent)

    def _subset(
        self, mean: EqualityMean, batch: Batch, logits: Tensor, parameters: Tensor, q: float
    ) -> Tensor:
        """(1 - (|Y| s(y))^q) / (q |Y|), 0 outside the space."""
        weights = normalised(logits, 1.0, batch)
        log_probability = mean.log_probability(batch, weights, parameters)
        inside, log_size = log_probability > -torch.inf, self._size(batch, logits)
        lift = torch.where(inside, log_probability + log_size, 0.0)
        return psi(lift, q, log_size)

    def _moment(
        self, batch: Batch, logits: Tensor, parameters: Tensor, q: float | Tensor
    ) -> Tensor:
        """F(q), (n,)."""
        weights = normalised(logits, q, batch)
        mean = self._mean(batch, weights, self._tempered(parameters, q))
        if isinstance(q, float) and q == 1.0:
            return mean
        # log cosh(q h) - q log cosh(h) summed over labels, h = logits / 2: an even function, whose
        # terms do not cancel at -|h|.
        low = _negative(logits)
        excess = batch.only_known(_softplus(q * low) - q * _softplus(low)).sum(-1)
        if not self._partition.independent:
            ones = normalised(logits, 1.0, batch)
            excess = excess + self._relative(weights, self._tempered(parameters, q))
            excess = excess - q * self._relative(ones, self._tempered(parameters, 1.0))
        return times_exp(mean, excess - (1.0 - q) * self._size(batch, logits))

    def _relative(self, weights: States, parameters: Tensor) -> Tensor:
        """A beside that of independent labels with the same weights, (n,)."""
        if self._partition.independent:
            return torch.zeros_like(weights[0][:, 0])
        return self._partition(weights, parameters)

    def _size(self, batch: Batch, like: Tensor) -> Tensor:
        """log|Y| of each row: unknown labels leave a smaller cube, (n,)."""
        if self._partition.independent:
            return LOG_2 * batch.n_known.to(like.dtype)
        return torch.full_like(like[:, 0], self._log_size)

    def _free(self, parameters: Tensor) -> Tensor:
        """The parameters, 0 where excluded."""
        return torch.where(self._finite.to(parameters.device), parameters, 0.0)

    def _tempered(self, parameters: Tensor, q: float | Tensor) -> Tensor:
        """Finite parameters times q; -inf stays."""
        finite = self._finite.to(parameters.device)
        return torch.where(finite, q * self._free(parameters), -torch.inf)


# Exponents this near to the largest leave room for what a derivative is multiplied by.
ROOM = 20.0


def times_exp(values: Tensor, exponent: Tensor) -> Tensor:
    """values * e^exponent; what is too large is infinite, without a slope; 0 times that is 0."""
    limit = math.log(torch.finfo(values.dtype).max) - ROOM
    small = exponent < limit
    product = torch.where(small, values, 0.0) * torch.exp(torch.where(small, exponent, 0.0))
    return torch.where(small | (values <= 0.0), product, torch.inf)


def psi(lift: Tensor, q: float, log_size: Tensor | float = 0.0) -> Tensor:
    """(1 - e^(q lift)) / q, or -lift at q = 0, divided by e^log_size."""
    shrink = torch.exp(torch.zeros_like(lift) - log_size)
    if q == 0.0:
        return -lift * shrink
    exponent = q * lift
    near = -torch.expm1(exponent.clamp(max=1.0)) * shrink
    far = shrink - times_exp(torch.ones_like(lift), exponent - log_size)
    return torch.where(exponent < 1.0, near, far) / q


def _slope(moment: Callable[[Tensor], Tensor], at: float, like: Tensor) -> Tensor:
    """F'(at), (n,)."""
    place = torch.full_like(like[:0].sum(), at)
    return jvp(moment, (place,), (torch.ones_like(place),))[1]


def _softplus(values: Tensor) -> Tensor:
    """log(1 + e^values) without the cut-off of torch's own."""
    return -logsigmoid(-values)


def _negative(values: Tensor) -> Tensor:
    """-|values|, with derivatives that make even functions of it smooth at 0."""
    return torch.where(values > 0, -values, values)
