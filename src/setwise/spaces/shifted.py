"""Linear-fractional expectations on a forest, by shifting scores.

On any space E_h[t^(a·b)] = exp(A(h + a log(t)/2) - A(h)) t^(sum a / 2): a power of a linear count
is a change of scores. So E[N / D] is a sum over the nodes of a rule for 1/D of the moments of N at
shifted scores. D has no concentrated law here (a forest may favour small and large sets together),
so the rule is one that holds for every value D can take.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise.spaces.expectation import Mean
from setwise.spaces.forest import Forest
from setwise.spaces.fraction import Reduced, reduce
from setwise.spaces.quadrature import exponential_sum, jacobi
from setwise.spaces.space import Array, Moments
from setwise.targets.measure import Fraction, Of
from setwise.targets.target import Target


@dataclass(frozen=True)
class ShiftedMean:
    """Linear-fractional targets on a Forest: one pass of the forest for each node of the rule."""

    target: Target
    space: Forest

    def mean(self, scores: Array, y_true: Array, of: Of, parameters: bool = True) -> Mean:
        """Sum over the rule of weight * E[N t^D], and what D = 0 contributes."""
        measure = self.target.measure(self.space.n_labels, of)
        assert isinstance(measure, Fraction)
        form = reduce(measure, y_true)
        plain = self.space.moments(scores, features=parameters)
        total = Mean(
            plain.log_partition,
            np.zeros(len(scores)),
            np.zeros(scores.shape),
            np.zeros(plain.features.shape),
        )
        if len(scores) == 0:
            return total
        x_nodes, weights = _rule(form)
        for x, weight in zip(x_nodes, weights, strict=True):
            shifted = self.space.moments(
                scores - 0.5 * x * form.step, form.values, features=parameters
            )
            exponent = shifted.log_partition - plain.log_partition
            exponent -= x * (form.start + 0.5 * form.step.sum(axis=1))
            total = _add(total, shifted, weight * np.exp(exponent), form.constant, 1.0)
        if form.has_zero.any():
            total = self._add_zero(
                total, plain, scores, form, weights.sum(), measure.empty, parameters
            )
        return total

    def on(self, space: Forest) -> ShiftedMean:
        """The same target on another forest."""
        return ShiftedMean(self.target, space)

    def _add_zero(
        self,
        total: Mean,
        plain: Moments,
        scores: Array,
        form: Reduced,
        excess: float,
        empty: float,
        parameters: bool,
    ) -> Mean:
        """Where D can be 0: take out what the rule made of it and put the convention in.

        D = 0 when every label with a positive step is out of the set and every label with a
        negative one in it: the moments with these labels fixed.
        """
        side = np.where(form.has_zero[:, None], -np.sign(form.step), 0.0)
        fixed = np.where(side == 0.0, scores, np.where(side > 0, np.inf, -np.inf))
        m = self.space.moments(fixed, form.values, features=parameters)
        exponent = m.log_partition + (side * scores).sum(axis=1) - plain.log_partition
        probability = np.where(form.has_zero, np.exp(exponent), 0.0)
        return _add(total, m, probability, empty - excess * form.constant, -excess)


def _rule(form: Reduced) -> tuple[Array, Array]:
    """Nodes x (t = e^-x) and weights for 1/D on all values that D takes in these rows."""
    low, high = form.smallest.min(), form.largest.max()
    x, w = exponential_sum(low, max(high, low))
    if form.whole and high <= 2 * len(x):
        t, w = jacobi(int(np.ceil(high / 2.0)), 0.0)
        return -np.log(t), w / t
    return x, w


def _add(total: Mean, m: Moments, weight: Array, constant: Array, factor: float) -> Mean:
    """total + weight * (constant + factor * N), in mean and in both joint means."""
    column, constants = weight[:, None], np.reshape(constant, (-1, 1))
    return Mean(
        total.log_partition,
        total.value + weight * (constant + factor * m.total),
        total.scores + column * (constants * (m.on - m.off) + factor * (m.total_on - m.total_off)),
        total.parameters + column * (constants * m.features + factor * m.total_features),
    )
