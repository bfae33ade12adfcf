"""E[u] over a space, tempered: the one quantity from which the comp-sum family is made.

With s(y') = exp(z(y') - A) the probability of a set, |Y| the number of sets and E_0 the uniform
mean over them, define the *moment* of a measure u (utility or loss against a true set y)

    F(q) = E_0[u (|Y| s)^q] = exp(A_q - q A_1 - (1 - q) log|Y|) M_q,

where A_q and M_q belong to the weights q z. F(0) is the uniform mean, F(1) the expectation under
the model, and the comp-sum losses on the unit scale are (F(0) - F(q)) / q. The derivative along the
scores carries a factor q, which is left out so that the limit q -> 0 needs no care:

    (1/q) dF/dh_i = exp(A_q - q A_1 - (1 - q) log|Y|) (E_q[u y'_i] - M_q E_1[y'_i]).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from setwise.spaces.space import Array, Moments, Space
from setwise.targets.measure import Additive, Of, distinct_rows
from setwise.targets.target import Target

# For so many q a tempered space is kept: enough for one loss, and no more as q moves in training.
KEPT = 16


class Moment(NamedTuple):
    """F(q), and its derivatives divided by q: by scores (n, n_scores), by parameters (n, p)."""

    value: Array
    scores: Array
    parameters: Array


class Mean(NamedTuple):
    """A, E[u], E[u y'] (or E[u set] for joint scores) and E[u feature] under a space's own law."""

    log_partition: Array
    value: Array
    scores: Array
    parameters: Array


@dataclass(frozen=True)
class Expectation(ABC):
    """The moments of one target on one space, for every q, and what the limit q -> 0 needs.

    Results can be asked for times e^log_scale: the sums of the paper are means times a number of
    label sets that may be too large, and a mean too small, for a float. Without ``parameters`` the
    derivatives by them have no meaning and may be left out.
    """

    target: Target
    space: Space

    @abstractmethod
    def moment(
        self, scores: Array, y_true: Array, q: float, of: Of = "utility", log_scale: float = 0.0,
        parameters: bool = True,
    ) -> Moment:  # fmt: skip
        """F(q) of utility or loss, with its derivatives."""

    def descent(
        self, scores: Array, y_true: Array, q: float, log_scale: float = 0.0,
        parameters: bool = True,
    ) -> Moment:  # fmt: skip
        """F(q) of the utility with its derivatives turned round, as those of a loss."""
        moment = self.moment(scores, y_true, q, "utility", log_scale, parameters)
        # Its arrays are fresh.
        np.negative(moment.scores, out=moment.scores)
        np.negative(moment.parameters, out=moment.parameters)
        return moment

    def of_logits(self, share: float) -> Expectation | None:
        """The same of logits, twice the scores; None where they must be halved first.

        Derivatives are by the logits, times ``share``. Of logits that are not finite, which nobody
        has looked for, the value is NaN.
        """
        return None

    @abstractmethod
    def uniform(self, y_true: Array, of: Of = "utility", log_scale: float = 0.0) -> Array:
        """F(0), the uniform mean, (n,)."""

    @abstractmethod
    def logistic(
        self, scores: Array, y_true: Array, log_scale: float = 0.0, parameters: bool = True
    ) -> Moment:
        """-F'(0) = E_0[u] (A - log|Y|) - E_0[u z] of the utility, and its derivatives.

        They are E_0[u] E[y'] - E_0[u y'].
        """


@dataclass(frozen=True)
class Tempered(Expectation):
    """Moments from `Space.mean`: the weights times q are the scores times q, tempered space."""

    _spaces: dict[float, Space] = field(default_factory=dict, repr=False)

    def moment(
        self, scores: Array, y_true: Array, q: float, of: Of = "utility", log_scale: float = 0.0,
        parameters: bool = True,
    ) -> Moment:  # fmt: skip
        space = self.space
        scores = scores.astype(np.float64)
        log_partition, mean_scores, mean_features = space.mean_scores(scores, parameters)
        mean = self._at(q).mean(self.target, q * scores, y_true, of, parameters)
        excess = (mean.log_partition - space.log_size) - q * (log_partition - space.log_size)
        excess += log_scale
        return Moment(
            times_exp(mean.value, excess),
            times_exp(mean.scores - mean.value[:, None] * mean_scores, excess[:, None]),
            times_exp(self._apart(mean, mean_features), excess[:, None])
            if parameters
            else mean_features,
        )

    def uniform(self, y_true: Array, of: Of = "utility", log_scale: float = 0.0) -> Array:
        return times_exp(self._uniform_mean(y_true, of, False).value, log_scale)

    def logistic(
        self, scores: Array, y_true: Array, log_scale: float = 0.0, parameters: bool = True
    ) -> Moment:
        space = self.space
        scores = scores.astype(np.float64)
        log_partition, mean_scores, mean_features = space.mean_scores(scores, parameters)
        biased = np.where(np.isfinite(space.parameters), space.parameters, 0.0)
        flat = self._uniform_mean(y_true, "utility", parameters or bool(biased.any()))
        value = flat.value * (log_partition - space.log_size)
        value -= (scores * flat.scores).sum(axis=1)
        if biased.any():
            value -= flat.parameters @ biased
        return Moment(
            times_exp(value, log_scale),
            times_exp(flat.value[:, None] * mean_scores - flat.scores, log_scale),
            times_exp(-self._apart(flat, mean_features), log_scale)
            if parameters
            else mean_features,
        )

    def _at(self, q: float) -> Space:
        """The space tempered by q, made once for the latest q."""
        found = self._spaces.get(q)
        if found is None:
            found = self.space if q == 1.0 else self.space.tempered(q)
            # (Other threads may be here too: what one needs is not looked up again.)
            for earlier in list(self._spaces)[: 1 - KEPT]:
                self._spaces.pop(earlier, None)
            self._spaces[q] = found
        return found

    def _uniform_mean(self, y_true: Array, of: Of, parameters: bool) -> Mean:
        """Of each true set once, however many rows have it; a table names the row it lacks."""
        every = np.arange(len(y_true))
        first, inverse = (every, every) if self.target.form == "table" else distinct_rows(y_true)
        nothing = np.zeros((len(first), self.space.n_scores))
        mean = self._at(0.0).mean(self.target, nothing, y_true[first], of, parameters)
        return Mean(*(part[inverse] for part in mean))

    def _apart(self, of: Mean, mean: Array) -> Array:
        """E_q[u f] - E_q[u] E_1[f] for each feature f; 0 for excluded ones.

        As E_q[u f] P_1(not f) - E_q[u; not f] P_1(f), accurate also where one feature is all but
        certain.
        """
        others, certain = self.space.others, np.ones(len(mean))
        apart = of.parameters * others(mean, certain) - others(of.parameters, of.value) * mean
        return apart * np.isfinite(self.space.parameters)


@dataclass(frozen=True)
class SubsetExpectation(Expectation):
    """u = 1 on y alone, so F(q) = (|Y| s(y))^q / |Y| in closed form, from the likelihood.

    A true set outside the space has utility 0 everywhere. The loss 1 - s(y) is only ever needed at
    q = 1; where ``loss`` is given, its moments are taken from there.
    """

    loss: Expectation | None = None

    def moment(
        self, scores: Array, y_true: Array, q: float, of: Of = "utility", log_scale: float = 0.0,
        parameters: bool = True,
    ) -> Moment:  # fmt: skip
        if of == "loss":
            return self._loss_moment(scores, y_true, q, log_scale, parameters)
        inside, surprise, by_score, by_parameter = self._law(scores, y_true, parameters)
        log_size = self.space.log_size
        log_value = np.where(inside, q * (log_size - surprise) + log_scale - log_size, -np.inf)
        value = times_exp(np.ones(len(scores)), log_value)
        return Moment(value, _scaled(by_score, log_value, -1), _scaled(by_parameter, log_value, -1))

    def uniform(self, y_true: Array, of: Of = "utility", log_scale: float = 0.0) -> Array:
        """1 / |Y| inside the space, 0 outside; one minus that for the loss."""
        inside = self.space.contains(y_true)
        share = times_exp(inside * 1.0, log_scale - self.space.log_size)
        return share if of == "utility" else times_exp(np.ones(len(share)), log_scale) - share

    def logistic(
        self, scores: Array, y_true: Array, log_scale: float = 0.0, parameters: bool = True
    ) -> Moment:
        """-log(|Y| s(y)) / |Y|: the negative log-likelihood, less a constant, over |Y|."""
        inside, surprise, by_score, by_parameter = self._law(scores, y_true, parameters)
        log_share = np.where(inside, log_scale - self.space.log_size, -np.inf)
        value = times_exp(surprise - self.space.log_size, log_share)
        return Moment(value, _scaled(by_score, log_share), _scaled(by_parameter, log_share))

    def _law(self, scores: Array, y_true: Array, parameters: bool):
        """Whether y is in the space, -log s(y) (0 where it is not), and its gradients."""
        inside = self.space.contains(y_true)
        surprise, *slopes = self.space.negative_log_likelihood(scores, y_true, parameters)
        return inside, np.where(inside, surprise, 0.0), *slopes

    def _loss_moment(
        self, scores: Array, y_true: Array, q: float, log_scale: float, parameters: bool
    ) -> Moment:
        if self.loss is not None:
            return self.loss.moment(scores, y_true, q, "loss", log_scale, parameters)
        if q != 1.0:
            raise ValueError(f"the subset loss has closed moments at q = 1 only, not {q}")
        inside, surprise, by_score, by_parameter = self._law(scores, y_true, parameters)
        log_value = np.where(inside, log_scale - surprise, -np.inf)
        value = times_exp(np.where(inside, -np.expm1(-surprise), 1.0), log_scale)
        return Moment(value, _scaled(by_score, log_value), _scaled(by_parameter, log_value))


def _scaled(slopes: Array, exponent: Array, sign: int = 1) -> Array:
    """Slopes of -log s(y), which are the caller's to change, times sign e^exponent of their row."""
    if sign < 0:
        np.negative(slopes, out=slopes)
    return times_exp(slopes, exponent[:, None]) if exponent.any() else slopes


def additive_mean(
    space: Any, target: Target, scores: Array, y_true: Array, of: Of, parameters: bool
) -> Mean:
    """constant + scale * E[N] of an additive target, from a space's moments of N.

    N is the sum of what each label adds when present and when absent.
    """
    measure, n_true = additive(target, y_true.shape[1], of), y_true.sum(axis=1, dtype=np.float64)
    values = measure.states(y_true)[::-1]
    m: Moments = space.moments(scores, values, features=parameters)
    constant, scale = measure.constant(n_true), measure.scale(n_true)
    return Mean(
        m.log_partition,
        constant + scale * m.total,
        constant[:, None] * (m.on - m.off) + scale[:, None] * (m.total_on - m.total_off),
        constant[:, None] * m.features + scale[:, None] * m.total_features,
    )


def additive(target: Target, n_labels: int, of: Of) -> Additive:
    """The measure of a target that is a sum over labels."""
    measure = target.measure(n_labels, of)
    assert isinstance(measure, Additive)
    return measure


def times_exp(values: Array, exponent: Array | float) -> Array:
    """values * e^exponent, where 0 times an overflow is 0 and nothing is NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = values * np.exp(exponent)
    return np.where(values == 0.0, 0.0, product)
