"""Linear-fractional expectations on a forest, by shifting scores.

On any space E_h[t^(a·b)] = exp(A(h + a log(t)/2) - A(h)) t^(sum a / 2): a power of a linear count
is a change of scores. So E[N / D] is a sum over the nodes of a rule for 1/D of the moments of N at
shifted scores. D has no concentrated law here (a forest may favour small and large sets together),
so the rule is one that holds for every value D can take.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from setwise.spaces.expectation import Mean
from setwise.spaces.quadrature import exponential_sum, jacobi, whole_steps
from setwise.spaces.space import Array, Moments
from setwise.targets.measure import ZERO_DENOMINATOR, Fraction


class HasSumMoments(Protocol):
    """A space with the moments of a sum over labels; a score of +-inf fixes its label."""

    def moments(
        self, scores: Array, values: tuple[Array, Array] | None = None, *, features: bool = False
    ) -> Moments: ...


def shifted_mean(
    space: HasSumMoments, measure: Fraction, scores: Array, y_true: Array, parameters: bool
) -> Mean:
    """Sum over the rule of weight * E[N t^D], and what D = 0 contributes: a pass for each node."""
    plain = space.moments(scores, features=parameters)
    zeros = np.zeros(len(scores)), np.zeros(scores.shape), np.zeros(plain.features.shape)
    total = Mean(plain.log_partition, *zeros)
    if len(scores) == 0:
        return total
    form = Reduced.of(measure, y_true)
    x_nodes, weights = form.rule()
    for x, weight in zip(x_nodes, weights, strict=True):
        m = space.moments(scores - 0.5 * x * form.step, form.values, features=parameters)
        exponent = m.log_partition - plain.log_partition
        exponent -= x * (form.start + 0.5 * form.step.sum(axis=1))
        total = _add(total, m, weight * np.exp(exponent), form.constant, 1.0)
    if form.has_zero.any():
        # D = 0 when every label with a positive step is out of the set and every label with a
        # negative one in it: take out what the rule made of that, and put the convention in.
        side = np.where(form.has_zero[:, None], -np.sign(form.step), 0.0)
        fixed = np.where(side == 0.0, scores, np.where(side > 0, np.inf, -np.inf))
        m = space.moments(fixed, form.values, features=parameters)
        exponent = m.log_partition + (side * scores).sum(axis=1) - plain.log_partition
        probability = np.where(form.has_zero, np.exp(exponent), 0.0)
        excess = weights.sum()
        total = _add(total, m, probability, measure.empty - excess * form.constant, -excess)
    return total


class Reduced(NamedTuple):
    """D = start + sum_i step_i b_i and N = constant + sum_i (on_i if b_i else off_i), row by row.

    ``values`` = (on, off), (n, l) each. ``smallest`` and ``largest`` (n,) are the bounds of D where
    it is not 0; ``has_zero`` says where it can be 0; ``whole`` if all its values are whole numbers.
    """

    start: Array
    step: Array
    constant: float
    values: tuple[Array, Array]
    smallest: Array
    largest: Array
    has_zero: Array
    whole: bool

    @classmethod
    def of(cls, measure: Fraction, y_true: Array) -> Reduced:
        """The fraction for given true sets, in units that make its steps whole if possible."""
        unit, steps = whole_steps(measure)
        above, below = measure.numerator / unit, measure.denominator / unit
        n_true = y_true.sum(axis=1, dtype=np.float64)
        n_false = y_true.shape[1] - n_true
        start = below[0] + below[3] * n_true + below[4] * n_false
        low = start + n_true * min(steps[0], 0.0) + n_false * min(steps[1], 0.0)
        high = start + n_true * max(steps[0], 0.0) + n_false * max(steps[1], 0.0)
        has_zero = low <= ZERO_DENOMINATOR * np.abs(below).max()
        sizes = np.abs(steps)
        smallest_step = np.where(
            (n_true > 0) & (sizes[0] > 0),
            np.where((n_false > 0) & (sizes[1] > 0), min(sizes), sizes[0]),
            sizes[1],
        )
        smallest = np.where(has_zero, np.where(smallest_step > 0, smallest_step, 1.0), low)
        is_true, every = y_true == 1, np.concatenate([low, high, sizes])
        return cls(
            start=start,
            step=np.where(is_true, steps[0], steps[1]),
            constant=above[0],
            values=(np.where(is_true, above[1], above[2]), np.where(is_true, above[3], above[4])),
            smallest=smallest,
            largest=np.maximum(high, smallest),
            has_zero=has_zero,
            whole=bool(np.abs(every - np.round(every)).max() < ZERO_DENOMINATOR),
        )

    def rule(self) -> tuple[Array, Array]:
        """Nodes x (t = e^-x) and weights for 1/D on all values that D takes in these rows."""
        low, high = self.smallest.min(), self.largest.max()
        x, w = exponential_sum(low, max(high, low))
        if self.whole and high <= 2 * len(x):
            t, w = jacobi(int(np.ceil(high / 2.0)), 0.0)
            return -np.log(t), w / t
        return x, w


def _add(total: Mean, m: Moments, weight: Array, constant: float, factor: float) -> Mean:
    """total + weight * (constant + factor * N), in mean and in both joint means."""
    column = weight[:, None]
    return Mean(
        total.log_partition,
        total.value + weight * (constant + factor * m.total),
        total.scores + column * (constant * (m.on - m.off) + factor * (m.total_on - m.total_off)),
        total.parameters + column * (constant * m.features + factor * m.total_features),
    )
