"""The losses in torch operations: for any device, compilers, and derivatives of any order.

With F(q) = exp(A_q - q A_1 - (1 - q) log|Y|) M_q, as in `setwise.spaces.expectation`, the comp-sum
loss on the unit scale is (F(0) - F(q)) / q, and -F'(0) at q = 0. `Structured` has A and M from a
log-partition; `Listed` sums over the sets of a list, term by term.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.polynomial.legendre import leggauss
from torch import Tensor
from torch.func import jvp
from torch.nn.functional import binary_cross_entropy_with_logits, relu

from setwise.nn.expected import (
    Batch,
    CountValues,
    EqualityMean,
    LabelValues,
    MeanOf,
    mean_of,
    states_of,
)
from setwise.nn.partition import (
    Constant,
    Partition,
    Sum,
    is_traced,
    log_sum,
    negative,
    partition_of,
    softplus,
)
from setwise.spaces import Cube, Space
from setwise.spaces.expectation import LISTABLE
from setwise.spaces.listing import Listing
from setwise.surrogates.comp_sum import MODERATE_SPAN, SMALL_Q, SMALL_Q_NODES
from setwise.surrogates.constrained import LISTED
from setwise.targets.measure import Additive, Measure, Of, Table
from setwise.targets.target import Target

LOG_2 = math.log(2.0)
# Exponents this near to the largest leave room for what a derivative is multiplied by.
ROOM = 20.0
# Rows of features made at a time while the parameters of listed sets are looked up.
ROWS = 1024
_NODES, _WEIGHTS = (part.tolist() for part in leggauss(SMALL_Q_NODES))


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


def margin_loss(margin: Tensor, name: str, rho: float = 1.0) -> Tensor:
    """Phi of `MARGINS`; at a kink the slope is that of the larger margin."""
    if name == "logistic":
        return softplus(-margin)
    if name == "exponential":
        return torch.exp(-margin)
    if name == "rho":
        return relu(1.0 - margin / rho) - relu(-margin / rho)
    return relu(1.0 - margin) ** (2 if name == "squared_hinge" else 1)


def law_of(target: Target, space: Space, of: Of, masked: bool, listed: bool) -> Structured | Listed:
    """The losses of a target (already on the space); refused where there is no exact way.

    ``masked``: some labels may be unknown. ``listed``: the loss is a sum over all label sets that
    no log-partition gives, as for margins other than the exponential.
    """
    if listed and space.log_size > np.log(LISTED) + 1e-9:
        raise ValueError(
            f"constrained losses with a margin other than 'exponential' sum over all label sets, "
            f"and {space} has about e^{space.log_size:.0f}; the limit in torch operations is "
            f"{LISTED}. Use margin='exponential', or backend='compiled', which draws a sample"
        )
    measure = target.measure(space.n_labels, of)
    partition = None if listed else partition_of(space)
    if partition is not None:
        mean = mean_of(measure, space, partition, masked)
        if mean is not None:
            flat = None
            if of == "utility" and space.is_independent and not masked:
                flat = _flat_moments(target, space.n_labels)
            return Structured(space, partition, mean, flat)
    if not listed and not isinstance(space, Listing) and space.log_size > np.log(LISTABLE) + 1e-9:
        raise ValueError(
            f"{target} on {space} would need all e^{space.log_size:.0f} label sets in torch "
            f"operations; use a Catalog of label sets"
        )
    return Listed(space, measure, masked)


def _flat_moments(target: Target, n_labels: int) -> list[Constant] | None:
    """M(0) and E_0[u y'] of a true and of a false label, for each number of true labels.

    None for a target that sees more than counts.
    """
    if target.form not in ("linear_fractional", "counts"):
        return None
    sets = np.tri(n_labels + 1, n_labels, -1, dtype=np.uint8)
    flat = Cube(n_labels).expectation(target).moment(np.zeros(sets.shape), sets, 1.0)
    return [Constant(part) for part in (flat.value, flat.scores[:, 0], flat.scores[:, -1])]


class Structured:
    """A measure on a space with a log-partition."""

    def __init__(
        self, space: Space, partition: Partition, mean: MeanOf, flat: list[Constant] | None
    ):
        self._partition, self._mean, self._flat = partition, mean, flat
        self._is_independent, self._log_size = space.is_independent, space.log_size
        self._finite = Constant(np.isfinite(space.parameters))
        center = space.tempered(0.0).mean_scores(np.zeros((1, space.n_scores)))[1:]
        self._center = [Constant(part[0]) for part in center]

    def comp_sum(self, batch: Batch, logits: Tensor, parameters: Tensor, q: float) -> Tensor:
        """The comp-sum loss of the utility on the unit scale, (n,)."""
        if isinstance(self._mean, EqualityMean):
            # (1 - (|Y| s(y))^q) / (q |Y|), 0 outside the space.
            log_probability = self._mean.log_probability(batch, logits, parameters)
            log_size = self._size(batch, logits)
            inside = log_probability > -torch.inf
            return psi(torch.where(inside, log_probability + log_size, 0.0), q, log_size)

        def moment(power: float | Tensor) -> Tensor:
            return self._moment(batch, logits, parameters, power)

        soft = self._soft_labels(batch, parameters) if self._is_independent else None
        if q == 0.0:
            return (
                -_slope(moment, 0.0, logits)
                if soft is None
                else _cross_entropy(batch, logits, *soft)
            )
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
        with torch.no_grad():
            span = batch.only_known(logits).abs().sum(-1)
            span = span + 2.0 * self._free(parameters).abs().sum()
            integral = -sum(
                w / 2.0 * _slope(moment, q * (1.0 + x) / 2.0, logits)
                for x, w in zip(_NODES, _WEIGHTS, strict=True)
            )
            lost = torch.where(abs(q) * span < MODERATE_SPAN, integral - direct, 0.0)
        return direct + lost.detach()

    def expected(self, batch: Batch, logits: Tensor, parameters: Tensor) -> Tensor:
        """The expected measure, (n,)."""
        return self._mean(batch, logits, parameters)

    def likelihood(self, batch: Batch, logits: Tensor, parameters: Tensor) -> Tensor:
        """-log s(y), 0 outside the space, (n,)."""
        assert isinstance(self._mean, EqualityMean)
        log_probability = self._mean.log_probability(batch, logits, parameters)
        return torch.where(log_probability > -torch.inf, -log_probability, 0.0)

    def constrained(
        self, batch: Batch, logits: Tensor, parameters: Tensor, margin: str, rho: float
    ) -> Tensor:
        """e^(A - log|Y| - E_0[z]) times the expected loss: the exponential margin, (n,)."""
        low = negative(logits)
        exponent = batch.only_known(softplus(low) - low / 2.0).sum(-1)
        exponent = exponent + self._relative(batch, logits, self._tempered(parameters, 1.0))
        scores_center, features_center = (part.beside(logits) for part in self._center)
        mean_weight = logits @ scores_center / 2.0 + self._free(parameters) @ features_center
        exponent = exponent - self._size(batch, logits) - mean_weight
        return times_exp(self.expected(batch, logits, parameters), exponent)

    def _soft_labels(self, batch: Batch, parameters: Tensor) -> tuple[Tensor, Tensor] | None:
        """On the cube, M(0) (n, 1) and E_0[u y'] (n, l): tabulated, or the gradient of M at 0.

        None where operations are traced, which has no gradient inside.
        """
        if self._flat is not None:
            level, if_true, if_false = (
                table.beside(batch.truth)[batch.n_true][:, None] for table in self._flat
            )
            return level, batch.by_truth(if_true, if_false)
        if is_traced() or torch.is_inference_mode_enabled():
            return None
        with torch.enable_grad():
            flat = torch.zeros_like(batch.truth, requires_grad=True)
            level = self._mean(batch, flat, parameters)
            (pull,) = torch.autograd.grad(level.sum(), flat)
        return level.detach()[:, None], 2.0 * pull

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
        if not self._is_independent:
            excess = excess + self._relative(batch, odds, tempered)
            excess = excess - q * self._relative(batch, logits, self._tempered(parameters, 1.0))
        return times_exp(mean, excess - (1.0 - q) * self._size(batch, logits))

    def _relative(self, batch: Batch, odds: Tensor, parameters: Tensor) -> Tensor:
        """A beside that of independent labels with the same odds, (n,)."""
        if self._is_independent:
            return torch.zeros_like(odds[:, 0])
        return self._partition(Sum(states_of(odds, batch)), parameters).log

    def _size(self, batch: Batch, like: Tensor) -> Tensor:
        """log|Y| of each row: unknown labels leave a smaller cube, (n,)."""
        if self._is_independent:
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


def _cross_entropy(batch: Batch, logits: Tensor, level: Tensor, pull: Tensor) -> Tensor:
    """level * sum log cosh(x_i / 2) - sum pull_i x_i / 2 over the known labels, (n,).

    That is ``level`` times cross-entropy with the labels (1 + pull_i / level) / 2, less log 2 each.
    """
    lean = pull / torch.where(level > 0, level, 1.0)
    terms = binary_cross_entropy_with_logits(
        batch.only_known(logits), ((1.0 + lean) / 2.0).clamp(0.0, 1.0), reduction="none"
    )
    return level[:, 0] * (terms - LOG_2).sum(-1)


class Listed:
    """A measure on a space whose sets are listed, (K, l)."""

    def __init__(self, space: Space, measure: Measure, masked: bool):
        sets = space.enumerate()
        self._sets, self._log_size = Constant(sets.astype(np.float64)), math.log(len(sets))
        self._is_joint = space.is_joint
        # Each set uses as many parameters as any other: one of each group that has a meaning.
        used = [np.nonzero(space.features(part))[1] for part in _parts(sets)]
        self._places = Constant(np.concatenate(used).reshape(len(sets), -1))
        self._measure, self._values = measure, None
        if isinstance(measure, Additive):
            self._values = LabelValues(measure, space.n_labels)
        elif isinstance(measure, Table):
            self._known = Constant(measure.sets.astype(np.float64))
            self._columns = Constant(measure.values[measure.index(sets, "sets")].T)
        else:
            self._counts = CountValues(measure, space.n_labels, masked, space.n_labels)

    def comp_sum(self, batch: Batch, logits: Tensor, parameters: Tensor, q: float) -> Tensor:
        """The mean over the list of u (1 - (|Y| s)^q) / q, or of -u log(|Y| s) at q = 0, (n,)."""
        utility, weights = self.values(batch), self._weights(batch, logits, parameters)
        lift = weights - log_sum(Sum(weights), -1).log[:, None] + self._log_size
        return (utility * psi(torch.where(utility == 0.0, 0.0, lift), q)).mean(-1)

    def expected(self, batch: Batch, logits: Tensor, parameters: Tensor) -> Tensor:
        """The expected measure, (n,)."""
        weights = self._weights(batch, logits, parameters)
        return (torch.softmax(weights, -1) * self.values(batch)).sum(-1)

    def likelihood(self, batch: Batch, logits: Tensor, parameters: Tensor) -> Tensor:
        """-log s(y), 0 outside the list, (n,)."""
        weights, is_true = self._weights(batch, logits, parameters), self.values(batch) == 1.0
        own = torch.where(is_true, weights, 0.0).sum(-1)
        return torch.where(is_true.any(-1), log_sum(Sum(weights), -1).log - own, 0.0)

    def constrained(
        self, batch: Batch, logits: Tensor, parameters: Tensor, margin: str, rho: float
    ) -> Tensor:
        """The mean over the list of L Phi(-z), with z centred, (n,)."""
        weights, loss = self._weights(batch, logits, parameters), self.values(batch)
        centred = weights.mean(-1, keepdim=True) - weights
        if margin == "exponential":
            return times_exp(loss, -centred - self._log_size).sum(-1)
        # A square may overflow, which must not meet a loss of 0.
        return (loss * margin_loss(torch.where(loss == 0.0, 0.0, centred), margin, rho)).mean(-1)

    def values(self, batch: Batch) -> Tensor:
        """The measure of each set against the true set, (n, K)."""
        sets = self._sets.beside(batch.truth).T
        if self._values is not None:
            return self._values.of_sets(batch, lambda on, off: on @ sets + off @ (1.0 - sets))
        if isinstance(self._measure, Table):
            # A true set that the table does not list has no value.
            signs = 2.0 * self._known.beside(batch.truth) - 1.0
            same = (2.0 * batch.truth - 1.0) @ signs.T > signs.shape[1] - 0.5
            values = self._columns.beside(batch.truth)[same.long().argmax(-1)]
            return torch.where(same.any(-1, keepdim=True), values, torch.nan)
        tp = (batch.truth @ sets).round().long()
        size = (batch.only_known(torch.ones_like(batch.truth)) @ sets).round().long()
        return self._counts.at(batch, tp, size - tp)

    def _weights(self, batch: Batch, logits: Tensor, parameters: Tensor) -> Tensor:
        """z of each set, (n, K); an unknown label weighs nothing."""
        scores = logits / 2.0 if self._is_joint else batch.only_known(logits / 2.0)
        places = self._places.beside(parameters)
        bias = parameters[places].sum(-1)
        if self._is_joint:
            return scores[:, places[:, 0]] + bias
        return scores @ (2.0 * self._sets.beside(scores) - 1.0).T + bias


def _parts(sets: np.ndarray) -> list[np.ndarray]:
    return np.array_split(sets, range(ROWS, len(sets), ROWS))
