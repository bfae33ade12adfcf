"""Losses on spaces with structure, from the log-partition A and the expected measure M.

With F(q) = exp(A_q - q A_1 - (1 - q) log|Y|) M_q, as in `setwise.spaces`, the comp-sum loss on
the unit scale is (F(0) - F(q)) / q, and -F'(0) at q = 0, a derivative that is taken forward.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.polynomial.legendre import leggauss
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import jvp

from setwise.nn.tensors.batch import Batch
from setwise.nn.tensors.constant import Constant, is_traced
from setwise.nn.tensors.elementary import LOG_2, negative, psi, softplus, times_exp
from setwise.nn.tensors.means import EqualityMean, MeanOf
from setwise.nn.tensors.partition import Partition, normalised
from setwise.nn.tensors.soft_labels import SoftLabels, soft_cross_entropy
from setwise.spaces import Cube, Forest, Sized
from setwise.surrogates.comp_sum import MODERATE_SPAN, SMALL_Q, SMALL_Q_NODES

_NODES, _WEIGHTS = (part.tolist() for part in leggauss(SMALL_Q_NODES))


class Structured:
    """A measure on a Cube, Sized or Forest space."""

    def __init__(
        self,
        space: Cube | Sized | Forest,
        partition: Partition,
        mean: MeanOf,
        soft_labels: SoftLabels | None,
    ):
        self._partition, self._mean, self._log_size = partition, mean, space.log_size
        self._soft_labels = soft_labels
        self._finite = Constant(np.isfinite(space.parameters))
        center = space.tempered(0.0).mean_scores(np.zeros((1, space.n_scores)))[1:]
        self._center = [Constant(part[0]) for part in center]

    def comp_sum(self, batch: Batch, logits: Tensor, parameters: Tensor, q: float) -> Tensor:
        """The comp-sum loss of the utility on the unit scale, (n,)."""
        if isinstance(self._mean, EqualityMean):
            return self._subset(self._mean, batch, logits, parameters, q)

        soft = None if self._soft_labels is None else self._soft_labels(batch)
        if q == 0.0 and soft is not None:
            return soft_cross_entropy(batch, logits, *soft)

        def moment(power: float | Tensor) -> Tensor:
            return self._moment(batch, logits, parameters, power)

        if q == 0.0:
            return -_slope(moment, 0.0, logits)
        if soft is not None:
            uniform = soft[0][:, 0]
        else:
            flat = torch.zeros_like(logits), torch.zeros_like(parameters)
            uniform = self._moment(batch, *flat, 1.0)
        direct = (uniform - moment(q)) / q
        if abs(q) >= SMALL_Q:
            return direct
        # The difference loses digits of the value, though not of its derivatives, that its
        # integral keeps.
        slope = _slope_alone if self._partition.independent and not is_traced() else _slope
        with torch.no_grad():
            span = batch.only_known(logits).abs().sum(-1)
            span = span + 2.0 * self._free(parameters).abs().sum()
            integral = -sum(
                w / 2.0 * slope(moment, q * (1.0 + x) / 2.0, logits)
                for x, w in zip(_NODES, _WEIGHTS, strict=True)
            )
            lost = torch.where(abs(q) * span < MODERATE_SPAN, integral - direct, 0.0)
        return direct + lost.detach()

    def expected(self, batch: Batch, logits: Tensor, parameters: Tensor) -> Tensor:
        """The expected measure, (n,)."""
        return self._moment(batch, logits, parameters, 1.0)

    def likelihood(self, batch: Batch, logits: Tensor, parameters: Tensor) -> Tensor:
        """-log s(y), 0 outside the space, (n,)."""
        assert isinstance(self._mean, EqualityMean)
        log_probability = self._mean.log_probability(batch, logits, parameters)
        return torch.where(log_probability > -torch.inf, -log_probability, 0.0)

    def exponential(self, batch: Batch, logits: Tensor, parameters: Tensor) -> Tensor:
        """e^(A - log|Y| - E_0[z]) times the expected measure: the constrained loss, (n,)."""
        free = self._free(parameters)
        exponent = batch.only_known(softplus(negative(logits)) - negative(logits) / 2.0).sum(-1)
        exponent = exponent + self._relative(batch, logits, self._tempered(parameters, 1.0))
        exponent = exponent - self._size(batch, logits)
        scores_center, features_center = (part.beside(logits) for part in self._center)
        exponent = exponent - logits @ scores_center / 2.0 - free @ features_center
        return times_exp(self.expected(batch, logits, parameters), exponent)

    def _subset(
        self, mean: EqualityMean, batch: Batch, logits: Tensor, parameters: Tensor, q: float
    ) -> Tensor:
        """(1 - (|Y| s(y))^q) / (q |Y|), 0 outside the space."""
        log_probability = mean.log_probability(batch, logits, parameters)
        inside, log_size = log_probability > -torch.inf, self._size(batch, logits)
        lift = torch.where(inside, log_probability + log_size, 0.0)
        return psi(lift, q, log_size)

    def _moment(
        self, batch: Batch, logits: Tensor, parameters: Tensor, q: float | Tensor
    ) -> Tensor:
        """F(q), (n,)."""
        odds, tempered = q * logits, self._tempered(parameters, q)
        mean = self._mean(batch, odds, tempered)
        if isinstance(q, float) and q == 1.0:
            return mean
        # log cosh(q h) - q log cosh(h) summed over labels, h = logits / 2: an even function, whose
        # terms do not cancel at -|h|.
        low = negative(logits)
        excess = batch.only_known(softplus(q * low) - q * softplus(low)).sum(-1)
        if not self._partition.independent:
            excess = excess + self._relative(batch, odds, tempered)
            excess = excess - q * self._relative(batch, logits, self._tempered(parameters, 1.0))
        return times_exp(mean, excess - (1.0 - q) * self._size(batch, logits))

    def _relative(self, batch: Batch, odds: Tensor, parameters: Tensor) -> Tensor:
        """A beside that of independent labels with the same odds, (n,)."""
        return self._partition(normalised(odds, batch), parameters)

    def _size(self, batch: Batch, like: Tensor) -> Tensor:
        """log|Y| of each row: unknown labels leave a smaller cube, (n,)."""
        if self._partition.independent:
            return LOG_2 * batch.n_known.to(like.dtype)
        return torch.full_like(like[:, 0], self._log_size)

    def _free(self, parameters: Tensor) -> Tensor:
        """The parameters, 0 where excluded."""
        return torch.where(self._finite.beside(parameters), parameters, 0.0)

    def _tempered(self, parameters: Tensor, q: float | Tensor) -> Tensor:
        """Finite parameters times q; -inf stays."""
        finite = self._finite.beside(parameters)
        return torch.where(finite, q * self._free(parameters), -torch.inf)


def _slope(moment: Callable[[Tensor], Tensor], at: float, like: Tensor) -> Tensor:
    """F'(at), (n,)."""
    place = torch.full_like(like[:0].sum(), at)
    return jvp(moment, (place,), (torch.ones_like(place),))[1]


def _slope_alone(moment: Callable[[Tensor], Tensor], at: float, like: Tensor) -> Tensor:
    """The same outside of any transform, where a mean may bring its own derivative along."""
    place = torch.full_like(like[:0].sum(), at)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(place, torch.ones_like(place))
        tangent = forward_ad.unpack_dual(moment(dual)).tangent
    assert tangent is not None
    return tangent
