"""The losses in torch operations: for any device, compilers, and derivatives of any order.

With F(q) = exp(A_q - q A_1 - (1 - q) log|Y|) M_q, as in `setwise.spaces.expectation`, the comp-sum
loss on the unit scale is (F(0) - F(q)) / q, and -F'(0) at q = 0. `Structured` has A and M from a
log-partition; `Listed` sums over the sets of a list, term by term.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.polynomial.legendre import leggauss
from torch import Tensor
from torch.func import jvp
from torch.nn.functional import binary_cross_entropy_with_logits, relu

from setwise.nn.differentiable import Constant
from setwise.nn.expected import CountValues, EqualityMean, SumMean, SumTerms, mean_of
from setwise.nn.partition import Partition, Rows, Sum, log_sum, negative, partition_of, softplus
from setwise.spaces import Space
from setwise.surrogates.comp_sum import MODERATE_SPAN, SMALL_Q, SMALL_Q_NODES
from setwise.surrogates.constrained import LISTED
from setwise.targets.measure import ZERO_DIFFERENCE, Additive, Measure, Of, Table
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
    if listed and not space.has_at_most(LISTED):
        raise ValueError(
            f"constrained losses with a margin other than 'exponential' sum over all label sets, "
            f"and {space} has about e^{space.log_size:.0f}; the limit in torch operations is "
            f"{LISTED}. Use margin='exponential', or backend='compiled', which draws a sample"
        )
    measure = target.measure(space.n_labels, of)
    partition = None if listed else partition_of(space)
    mean = None if partition is None else mean_of(measure, space, partition, masked)
    if partition is not None and mean is not None:
        by_count = target.form in ("linear_fractional", "counts") and of == "utility"
        tabulate = space.is_independent and by_count and not masked
        flat = None
        if tabulate:
            expectation: Any = space.expectation(target)
            flat = Constant(expectation.by_count(np.arange(space.n_labels + 1)))
        return Structured(space, partition, mean, flat)
    if not listed and not space.is_listable:
        raise ValueError(
            f"{target} on {space} would need all e^{space.log_size:.0f} label sets in torch "
            f"operations; use a Catalog of label sets"
        )
    return Listed(space, measure, masked)


class Structured:
    """A measure on a space with a log-partition."""

    def __init__(self, space: Space, partition: Partition, mean: Callable, flat: Constant | None):
        self._partition, self._mean, self._flat = partition, mean, flat
        self._is_independent, self._log_size = space.is_independent, space.log_size
        center = space.tempered(0.0).mean_scores(np.zeros((1, space.n_scores)))[1:]
        self._center = [Constant(part[0]) for part in center]

    def comp_sum(self, rows: Rows, q: float) -> Tensor:
        """The comp-sum loss of the utility on the unit scale, (n,)."""
        if isinstance(self._mean, EqualityMean):
            # (1 - (|Y| s(y))^q) / (q |Y|), 0 outside the space.
            log_probability, log_size = self._mean.log_probability(rows), self._size(rows)
            inside = log_probability > -torch.inf
            return psi(torch.where(inside, log_probability + log_size, 0.0), q, log_size)

        soft = self._soft_labels(rows)
        if q == 0.0:
            return -self._slope(rows, 0.0) if soft is None else _cross_entropy(rows, *soft)
        uniform = self._mean(rows.tempered(0.0)) if soft is None else soft[0][:, 0]
        direct = (uniform - self._moment(rows, q)) / q
        if abs(q) >= SMALL_Q:
            return direct
        # The difference loses digits of the value, though not of its derivatives, that its
        # integral keeps.
        with torch.no_grad():
            span = rows.only_known(rows.odds).abs().sum(-1) + 2.0 * rows.free.abs().sum()
            integral = -sum(
                w / 2.0 * self._slope(rows, q * (1.0 + x) / 2.0)
                for x, w in zip(_NODES, _WEIGHTS, strict=True)
            )
            lost = torch.where(abs(q) * span < MODERATE_SPAN, integral - direct, 0.0)
        return direct + lost.detach()

    def expected(self, rows: Rows) -> Tensor:
        """The expected measure, (n,)."""
        return self._mean(rows)

    def likelihood(self, rows: Rows) -> Tensor:
        """-log s(y), 0 outside the space, (n,)."""
        assert isinstance(self._mean, EqualityMean)
        log_probability = self._mean.log_probability(rows)
        return torch.where(log_probability > -torch.inf, -log_probability, 0.0)

    def constrained(self, rows: Rows, margin: str, rho: float) -> Tensor:
        """e^(A - log|Y| - E_0[z]) times the expected loss: the exponential margin, (n,)."""
        low = negative(rows.odds)
        exponent = rows.only_known(softplus(low) - low / 2.0).sum(-1) + self._relative(rows)
        scores_center, features_center = (part.beside(low) for part in self._center)
        mean_weight = rows.odds @ scores_center / 2.0 + rows.free @ features_center
        return times_exp(self._mean(rows), exponent - self._size(rows) - mean_weight)

    def _soft_labels(self, rows: Rows) -> tuple[Tensor, Tensor] | None:
        """On the cube, M(0) (n, 1) and E_0[u y'] (n, l): tabulated, or the gradient of M at 0.

        None where neither is at hand.
        """
        if self._flat is not None:
            level, if_true, if_false = self._flat.beside(rows.truth)[rows.n_true].split(1, 1)
            return level, rows.by_truth(if_false, if_true)
        if not isinstance(self._mean, SumMean) or not self._mean.is_closed():
            return None
        level, slope = self._mean.with_gradient(rows.at(torch.zeros_like(rows.truth)))
        return level[:, None], 2.0 * slope

    def _moment(self, rows: Rows, q: float | Tensor) -> Tensor:
        """F(q), (n,)."""
        if isinstance(q, float) and q == 1.0:
            return self._mean(rows)
        return times_exp(self._mean(rows.tempered(q)), self._excess(rows, q))

    def _excess(self, rows: Rows, q: float | Tensor) -> Tensor:
        """A_q - q A_1 - (1 - q) log|Y|, (n,)."""
        # log cosh(q h) - q log cosh(h) summed over labels, h = odds / 2: an even function, whose
        # terms do not cancel at -|h|.
        low = negative(rows.odds)
        excess = rows.only_known(softplus(q * low) - q * softplus(low)).sum(-1)
        excess = excess + self._relative(rows.tempered(q)) - q * self._relative(rows)
        return excess - (1.0 - q) * self._size(rows)

    def _slope(self, rows: Rows, at: float) -> Tensor:
        """F'(at), (n,); where no graph is asked for, from the gradient of a closed mean."""
        place = torch.full_like(rows.odds[:0].sum(), at)
        one, mean = torch.ones_like(place), self._mean
        if torch.is_grad_enabled() or not (isinstance(mean, SumMean) and mean.is_closed()):
            return jvp(lambda q: self._moment(rows, q), (place,), (one,))[1]
        excess, change = jvp(lambda q: self._excess(rows, q), (place,), (one,))[:2]
        value, slope = mean.with_gradient(rows.tempered(at))
        return torch.exp(excess) * (value * change + (slope * rows.only_known(rows.odds)).sum(-1))

    def _relative(self, rows: Rows) -> Tensor | float:
        """A beside that of independent labels with the same odds, (n,)."""
        if self._is_independent:
            return 0.0
        return self._partition(Sum(rows.states), rows.parameters).log

    def _size(self, rows: Rows) -> Tensor:
        """log|Y| of each row: unknown labels leave a smaller cube, (n,)."""
        if self._is_independent:
            return LOG_2 * rows.n_known.to(rows.odds.dtype)
        return torch.full_like(rows.odds[:, 0], self._log_size)


def _cross_entropy(rows: Rows, level: Tensor, pull: Tensor) -> Tensor:
    """level * sum log cosh(x_i / 2) - sum pull_i x_i / 2 over the known labels, (n,).

    That is ``level`` times cross-entropy with the labels (1 + pull_i / level) / 2, less log 2 each.
    """
    lean = pull / torch.where(level > 0, level, 1.0)
    terms = binary_cross_entropy_with_logits(
        rows.only_known(rows.odds), ((1.0 + lean) / 2.0).clamp(0.0, 1.0), reduction="none"
    )
    return level[:, 0] * (terms - LOG_2).sum(-1)


class Listed:
    """A measure on a space whose sets are listed, (K, l)."""

    def __init__(self, space: Space, measure: Measure, masked: bool):
        sets, n_labels = space.enumerate(), space.n_labels
        self._sets, self._log_size = Constant(sets.astype(np.float64)), math.log(len(sets))
        self._is_joint = space.is_joint
        # Each set uses as many parameters as any other: one of each group that has a meaning.
        parts = np.array_split(sets, range(ROWS, len(sets), ROWS))
        used = np.concatenate([np.nonzero(space.features(part))[1] for part in parts])
        self._places = Constant(used.reshape(len(sets), -1))
        if isinstance(measure, Additive):
            self._values, self._terms = self._of_sums, SumTerms(measure, n_labels)
        elif isinstance(measure, Table):
            self._values, self._known = self._of_table, Constant(measure.sets.astype(np.float64))
            self._columns = Constant(measure.values[measure.index(sets, "sets")].T)
        else:
            self._values = self._of_counts
            self._counts = CountValues(measure, n_labels, masked, n_labels)

    def comp_sum(self, rows: Rows, q: float) -> Tensor:
        """The mean over the list of u (1 - (|Y| s)^q) / q, or of -u log(|Y| s) at q = 0, (n,)."""
        utility, weights = self._values(rows), self._weights(rows)
        lift = weights - log_sum(Sum(weights), -1).log[:, None] + self._log_size
        return (utility * psi(torch.where(utility == 0.0, 0.0, lift), q)).mean(-1)

    def expected(self, rows: Rows) -> Tensor:
        """The expected measure, (n,)."""
        return (torch.softmax(self._weights(rows), -1) * self._values(rows)).sum(-1)

    def likelihood(self, rows: Rows) -> Tensor:
        """-log s(y), 0 outside the list, (n,)."""
        weights, is_true = self._weights(rows), self._values(rows) == 1.0
        own = torch.where(is_true, weights, 0.0).sum(-1)
        return torch.where(is_true.any(-1), log_sum(Sum(weights), -1).log - own, 0.0)

    def constrained(self, rows: Rows, margin: str, rho: float) -> Tensor:
        """The mean over the list of L Phi(-z), with z centred, (n,)."""
        weights, loss = self._weights(rows), self._values(rows)
        centred = weights.mean(-1, keepdim=True) - weights
        if margin == "exponential":
            return times_exp(loss, -centred - self._log_size).sum(-1)
        # A square may overflow, which must not meet a loss of 0.
        return (loss * margin_loss(torch.where(loss == 0.0, 0.0, centred), margin, rho)).mean(-1)

    def _of_sums(self, rows: Rows) -> Tensor:
        """constant + scale * sum over labels, (n, K); a difference that is only rounding is 0."""
        terms, sets = self._terms(rows), self._sets.beside(rows.truth).T
        value = terms.extra + terms.weight * (terms.on @ sets + terms.off @ (1.0 - sets))
        rounding = max(ZERO_DIFFERENCE, 16.0 * torch.finfo(value.dtype).eps)
        return torch.where(value.abs() <= rounding * terms.extra.abs(), 0.0, value)

    def _of_table(self, rows: Rows) -> Tensor:
        """The column of the true set, (n, K); one that the table does not list has no value."""
        signs = 2.0 * self._known.beside(rows.truth) - 1.0
        same = (2.0 * rows.truth - 1.0) @ signs.T > signs.shape[1] - 0.5
        values = self._columns.beside(rows.truth)[same.long().argmax(-1)]
        return torch.where(same.any(-1, keepdim=True), values, torch.nan)

    def _of_counts(self, rows: Rows) -> Tensor:
        """A function of the counts of each set, (n, K)."""
        sets = self._sets.beside(rows.truth).T
        tp = (rows.truth @ sets).round().long()
        size = (rows.only_known(torch.ones_like(rows.truth)) @ sets).round().long()
        return self._counts.at(rows, tp, size - tp)

    def _weights(self, rows: Rows) -> Tensor:
        """z of each set, (n, K); an unknown label weighs nothing."""
        places = self._places.beside(rows.parameters)
        bias = rows.parameters[places].sum(-1)
        if self._is_joint:
            return rows.odds[:, places[:, 0]] / 2.0 + bias
        signs = 2.0 * self._sets.beside(rows.odds) - 1.0
        return rows.only_known(rows.odds / 2.0) @ signs.T + bias
