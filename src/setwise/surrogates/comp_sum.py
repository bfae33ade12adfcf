"""The comp-sum family of the paper in one parameter q."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
from numpy.polynomial.legendre import leggauss

from setwise.spaces.expectation import Expectation, Moment
from setwise.spaces.space import Array, Space, require_space
from setwise.surrogates.names import DEFAULT_Q
from setwise.surrogates.surrogate import Scale, as_type, checked
from setwise.targets.target import Target
from setwise.validation import real_number, require_one_of

# Below this |q| the difference F(0) - F(q) loses digits that its integral form keeps, as long as
# |q| times the span of the weights is moderate; the rule's error there is below 1e-12.
SMALL_Q, MODERATE_SPAN, SMALL_Q_NODES = 0.01, 4.0, 8
# Below this |q| dividing by q would show the rounding of float32.
FLOAT32_Q = 0.1
# Below this |q| the loss is that of q = 0 to the last digit (and 1/q would overflow).
ZERO_Q = 1e-100


@dataclass(frozen=True, eq=False)
class CompSum:
    """sum over y' of u(y', y) Psi_q(1 / s(y')), Psi_q(v) = (1 - v^(-q)) / q.

    q = -1 is the sum-exponential loss, 0 the (multi-label) logistic loss, between 0 and 1 the
    generalised cross-entropy, 1 the mean absolute error (equation (comp) of the paper). On the
    unit scale, with F of `setwise.spaces`,

        unit_q = (F(0) - F(q)) / q,    unit_0 = -F'(0),

    which has the same minimisers, is 0 where all sets weigh the same, is continuous in q and does
    not grow with the number of sets; the paper's own sum is |Y|^(1-q) unit_q + a constant.

    Parameters
    ----------
    target : Target or str
        What a prediction is judged by.
    space : Space
        The label sets that may be predicted.
    q : float, default 0.0
        Member of the family, in [-1, 1].
    scale : {"unit", "paper"}, default "unit"
        The scale of values and gradients.

    Notes
    -----
    For q in [0, 1] values and gradients are finite for scores up to 1e300. For q < 0 they grow like
    exp(2 sum |h|): finite or infinite, never NaN. Cost: that of the pair of target and space.

    The unit scale is a mean over label sets. Where the utility or the model lives on few of very
    many sets it is small: with the subset target it is the negative log-likelihood, less a
    constant, divided by |Y|. For a likelihood choose ``scale="paper"``, which is it.

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> value, gradient = CompSum("f1", Cube(3), q=1.0).value_and_gradient(
    ...     [[1.0, 0.0, -1.0]], [[1, 0, 0]]
    ... )
    >>> value.round(4), gradient.round(3)
    (array([-0.3536]), array([[-0.169,  0.138,  0.046]]))
    """

    target: Any
    space: Space
    q: float = 0.0
    scale: Scale = "unit"
    expectation: Expectation = field(init=False, repr=False)

    def __post_init__(self):
        require_one_of(self.scale, get_args(Scale), "scale")
        require_space(self.space)
        pair = self.space.expectation(self.target)
        vars(self).update(q=_power(self.q), expectation=pair, target=pair.target)

    def with_q(self, q: float) -> CompSum:
        """Another member of the family; what was made for the target and the space is shared."""
        other = copy(self)
        vars(other).update(q=_power(q))
        return other

    def of_logits(self, share: float) -> CompSum | None:
        """The same of logits, as `Expectation.of_logits` has it; None where they must be halved."""
        pair = self.expectation.of_logits(share)
        if pair is None or 0.0 < abs(self.q) < SMALL_Q:
            return None
        other = copy(self)
        vars(other).update(expectation=pair)
        return other

    def value_and_gradient(self, scores, y_true) -> tuple[Array, Array]:
        """Values (n,) and the gradient with respect to the scores (n, n_scores)."""
        return self.value_and_gradients(scores, y_true, parameters=False)[:2]

    def value_and_gradients(
        self, scores, y_true, parameters: bool = True
    ) -> tuple[Array, Array, Array]:
        """Values, score gradient, and the gradient by the space's parameters (n, p).

        Without ``parameters`` the last has no meaning, and may cost less.
        """
        arrays = checked(scores, y_true, self.space.n_scores, self.space.n_labels)
        return self.of_checked(*arrays, parameters)

    def of_checked(
        self, scores: Array, y_true: Array, parameters: bool = True
    ) -> tuple[Array, Array, Array]:
        """Values and both gradients of arrays that need no check: finite scores, 0/1 bytes."""
        # What is too large for a float becomes infinite; sums that then have no value are replaced.
        with np.errstate(over="ignore", invalid="ignore"):
            loss = (self._power if self.q else self._logistic)(scores, y_true, parameters)
        return as_type(scores.dtype, *loss)  # type: ignore

    def probability(self, scores) -> Array:
        """P(label) under s_h, the law over label sets that the scores define, (n, l).

        For the logistic loss with the subset target, the likelihood, it estimates P(label | x).
        For other choices, q = 1 above all, s_h is a law to predict from, not one of y given x.
        """
        return self.space.marginals(scores)

    def steepness(self, y_true: Array, scores: Array | None = None) -> Array:
        """F(q) of checked arrays, on this scale, (n,): derivatives are in proportion to it.

        Without scores, where all sets are alike. At q = 0, where that is everywhere, the Hessian by
        the scores is F(0) times the covariance of the labels under s_h.
        """
        scale = self._log_scale
        if scores is None or self.q == 0.0:
            return self.expectation.uniform(y_true, log_scale=scale)
        return self.expectation.moment(
            scores, y_true, self.q, log_scale=scale, parameters=False
        ).value

    @property
    def _log_scale(self) -> float:
        """log of what the unit scale is multiplied by: |Y|^(1-q) on the paper's."""
        return (1.0 - self.q) * self.space.log_size if self.scale == "paper" else 0.0

    def _logistic(self, scores: Array, y_true: Array, parameters: bool) -> Moment:
        """-F'(0); the paper's sum is |Y| times that plus L1 log|Y|."""
        loss = self.expectation.logistic(scores, y_true, self._log_scale, parameters)
        return Moment(self._shifted(loss.value, y_true), loss.scores, loss.parameters)

    def _power(self, scores: Array, y_true: Array, parameters: bool) -> Moment:
        """(F(0) - F(q)) / q; the paper's sum is (|Y| F(0) - |Y|^(1-q) F(q)) / q."""
        if abs(self.q) < FLOAT32_Q:
            scores = scores.astype(np.float64)
        moment = self.expectation.descent(scores, y_true, self.q, self._log_scale, parameters)
        whole = self.space.log_size if self.scale == "paper" else 0.0
        uniform = self.expectation.uniform(y_true, log_scale=whole)
        value = (uniform - moment.value) / self.q
        # Neither sum is negative, so where one is too large for a float the loss is infinite.
        value[np.isinf(uniform) | np.isinf(moment.value)] = np.inf
        if abs(self.q) < SMALL_Q:
            value = self._by_integral(scores, y_true, value)
        return Moment(value, moment.scores, moment.parameters)

    def _by_integral(self, scores: Array, y_true: Array, direct: Array) -> Array:
        """unit_q = - integral of F'(s q) over s in [0, 1], where that is the more accurate form.

        F'(r) = <slope of F(r), (scores, parameters)> + F(r) KL(s || uniform): no small differences.
        """
        parameters = np.where(np.isfinite(self.space.parameters), self.space.parameters, 0.0)
        span = 2.0 * (np.abs(scores).sum(axis=1, dtype=np.float64) + np.abs(parameters).sum())
        rows = np.flatnonzero(np.abs(self.q) * span < MODERATE_SPAN)
        if len(rows) == 0:
            return direct
        scores, y_true = scores[rows].astype(np.float64), y_true[rows]
        matter = bool(parameters.any())

        def along(by_score: Array, by_parameter: Array) -> Array:
            """<slopes, (scores, parameters)> of each row."""
            total = (scores * by_score).sum(axis=1)
            return total + by_parameter @ parameters if matter else total

        log_partition, *slopes = self.space.mean_scores(scores, matter)
        divergence = along(*slopes) - (log_partition - self.space.log_size)
        nodes, weights = leggauss(SMALL_Q_NODES)
        total = np.zeros(len(rows))
        for node, weight in zip((1.0 + nodes) / 2.0, weights / 2.0, strict=True):
            at, scale = node * self.q, self._log_scale
            moment = self.expectation.moment(scores, y_true, at, log_scale=scale, parameters=matter)
            total -= weight * (along(moment.scores, moment.parameters) + moment.value * divergence)
        value = direct.copy()
        value[rows] = self._shifted(total, y_true)
        return value

    def _shifted(self, value: Array, y_true: Array) -> Array:
        """On the paper's scale: plus L1 (1 - |Y|^-q) / q with L1 = |Y| F(0)."""
        if self.scale == "unit":
            return value
        log_size, q = self.space.log_size, self.q
        steps = log_size if q == 0.0 else -np.expm1(-q * log_size) / q
        constant = steps * self.expectation.uniform(y_true, log_scale=log_size)
        return np.where(
            np.isinf(constant), np.inf, np.where(np.isinf(value), 0.0, value) + constant
        )

    def __str__(self) -> str:
        return f"comp-sum q={self.q:g} [{self.target}] on {self.space}"


def _power(q: Any) -> float:
    q = real_number(q, "q", -1.0, 1.0)
    return 0.0 if abs(q) < ZERO_Q else q


def SumExponential(target: Target | str, space: Space, scale: Scale = "unit") -> CompSum:
    """The comp-sum loss with q = -1: Psi(v) = v - 1.

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> value, gradient = SumExponential("f1", Cube(2)).value_and_gradient([[1.0, -0.5]], [[1, 0]])
    >>> value.round(3), gradient.round(3)
    (array([-0.144]), array([[-0.065, -0.205]]))
    """
    return CompSum(target, space, -1.0, scale)


def Logistic(target: Target | str, space: Space, scale: Scale = "unit") -> CompSum:
    """The comp-sum loss with q = 0: Psi(v) = log v, the paper's multi-label logistic loss.

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> value, gradient = Logistic("f1", Cube(2)).value_and_gradient([[1.0, -0.5]], [[1, 0]])
    >>> value.round(3), gradient.round(3)
    (array([-0.228]), array([[-0.099, -0.109]]))
    """
    return CompSum(target, space, 0.0, scale)


def inner_power(q: Any) -> float:
    """The number q of generalised cross-entropy."""
    power = real_number(q, "q", -1.0, 1.0)
    if not 0.0 < power < 1.0:
        raise ValueError(
            f"q must be above 0 and below 1 for the generalized cross-entropy, not {q}; at the "
            f"ends it is the logistic loss and the mean absolute error"
        )
    return power


def GeneralizedCrossEntropy(
    target: Target | str, space: Space, q: float = DEFAULT_Q, scale: Scale = "unit"
) -> CompSum:
    """The comp-sum loss with 0 < q < 1: Psi(v) = (1 - v^(-q)) / q.

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> loss = GeneralizedCrossEntropy("f1", Cube(2), q=0.5)
    >>> value, gradient = loss.value_and_gradient([[1.0, -0.5]], [[1, 0]])
    >>> value.round(3), gradient.round(3)
    (array([-0.294]), array([[-0.134, -0.021]]))
    """
    return CompSum(target, space, inner_power(q), scale)


def MeanAbsoluteError(target: Target | str, space: Space, scale: Scale = "unit") -> CompSum:
    """The comp-sum loss with q = 1: Psi(v) = 1 - 1/v, the expected loss of a random prediction.

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> loss = MeanAbsoluteError("f1", Cube(2))
    >>> value, gradient = loss.value_and_gradient([[1.0, -0.5]], [[1, 0]])
    >>> value.round(3), gradient.round(3)
    (array([-0.385]), array([[-0.191,  0.115]]))
    """
    return CompSum(target, space, 1.0, scale)
