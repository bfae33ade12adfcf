"""Conditional surrogate risks: what a surrogate expects at one input, as a function of the scores.

On a listed space the expectation over y given x needs one number for each label set y', its
*worth*: the expected utility E[u(y', y)] (comp-sum), the expected loss (constrained), or the
probability of y' itself (likelihood). Binary relevance needs the marginals.

Arrays have an axis of inputs before that of the label sets: weights z and worth are (n, m, K) for n
problems on m inputs, with the probability of an input multiplied into its worth. All values are on
the scale of the paper's sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from scipy.special import logsumexp

from setwise.spaces.space import Array
from setwise.surrogates.margins import MARGINS, Margin, rho_margin

Worth = Literal["utility", "loss", "law"]
# A score that stands for infinity: the most likely set has all but e^-200 of the mass.
FAR = 200.0


class ConditionalRisk(Protocol):
    """A surrogate's conditional risk over listed sets."""

    @property
    def worth(self) -> Worth:
        """What it needs to know of each label set."""
        ...

    @property
    def is_convex(self) -> bool:
        """Whether it is convex in the scores."""
        ...

    def log_unit(self, log_size: float) -> float:
        """Log of a regret on the paper's scale over that on the unit scale."""
        ...

    def value(self, z: Array, worth: Array) -> Array:
        """The risk, (n,)."""
        ...

    def derivatives(self, z: Array, worth: Array, features: Array) -> tuple[Array, Array]:
        """Gradient (n, d) and Hessian (n, d, d) by the scores; features are (m, K, d)."""
        ...

    def least(self, worth: Array) -> tuple[Array, Array]:
        """Weights z and value of the least risk over *all* laws, from worth (n, K)."""
        ...


@dataclass(frozen=True)
class CompSumRisk:
    """sum over y' of worth(y') (1 - s(y')^q) / q; q = 0 is -sum worth log s.

    With the worth of a set its probability and q = 0 it is the log-loss, whose least value over
    all laws is the entropy. Over all laws the least risk has s proportional to worth^(1/(1-q)).
    """

    q: float
    worth: Worth = "utility"

    @property
    def is_convex(self) -> bool:
        """For q <= 0: log-sum-exp, and exponentials of it."""
        return self.q <= 0.0

    def log_unit(self, log_size: float) -> float:
        """|Y|^(1-q); the log-loss has one scale only."""
        return 0.0 if self.worth == "law" else (1.0 - self.q) * log_size

    def value(self, z: Array, worth: Array) -> Array:
        log_law = z - logsumexp(z, axis=-1, keepdims=True)
        if self.q == 0.0:
            # A set without worth may have no mass.
            terms = -worth * np.where(worth > 0.0, log_law, 0.0)
        else:
            terms = -worth * np.expm1(self.q * log_law) / self.q
        return terms.sum(axis=(-2, -1))

    def derivatives(self, z: Array, worth: Array, features: Array) -> tuple[Array, Array]:
        """With w = worth s^q and W = sum w: W s - w by z, and its derivative."""
        log_law = z - logsumexp(z, axis=-1, keepdims=True)
        law = np.exp(log_law)
        pull = worth * np.exp(self.q * log_law)
        total = pull.sum(axis=-1, keepdims=True)
        mean = (law[:, :, None] @ features)[:, :, 0]
        pulled = (pull[:, :, None] @ features)[:, :, 0]
        spread = _spread(total * law - self.q * pull, features)
        apart = self.q * pulled - (1.0 + self.q) * total * mean
        cross = np.swapaxes(mean, 1, 2) @ apart + self.q * np.swapaxes(pulled, 1, 2) @ mean
        return (total * mean - pulled).sum(axis=1), spread + cross

    def least(self, worth: Array) -> tuple[Array, Array]:
        if self.q == 1.0:
            best = np.argmax(worth, axis=1)
            z = FAR * (np.arange(worth.shape[1]) == best[:, None])
            return z, worth.sum(axis=1) - worth.max(axis=1)
        with np.errstate(divide="ignore"):
            z = np.maximum(np.log(worth), -FAR) / (1.0 - self.q)
        return z, self.value(z[:, None], worth[:, None])


@dataclass(frozen=True)
class ConstrainedRisk:
    """sum over y' of worth(y') Phi(-z(y')), worth the expected loss, z centred to the mean 0."""

    margin: str
    rho: float = 1.0
    worth: Worth = "loss"

    @property
    def is_convex(self) -> bool:
        """All but the rho margin."""
        return self.margin != "rho"

    @property
    def is_smooth(self) -> bool:
        """Whether it has a derivative everywhere."""
        return self.margin in ("exponential", "squared_hinge")

    @property
    def phi(self) -> Margin:
        """The margin function."""
        return rho_margin(self.rho) if self.margin == "rho" else MARGINS[self.margin]

    @property
    def kinks(self) -> tuple[float, ...]:
        """The centred weights at which the cost of a set bends, where it is made of lines."""
        return {"hinge": (-1.0,), "rho": (-self.rho, 0.0)}[self.margin]

    def log_unit(self, log_size: float) -> float:
        """|Y|."""
        return log_size

    def value(self, z: Array, worth: Array) -> Array:
        return (worth * self.phi.value(-_centred(z, -1))).sum(axis=(-2, -1))

    def derivatives(self, z: Array, worth: Array, features: Array) -> tuple[Array, Array]:
        z, features = _centred(z, -1), _centred(features, -2)
        slope = -worth * self.phi.derivative(-z)
        bend = worth * (np.exp(z) if self.margin == "exponential" else 2.0 * (z > -1.0))
        gradient = slope.reshape(len(slope), -1) @ features.reshape(-1, features.shape[-1])
        return gradient, _spread(bend, features)

    def least(self, worth: Array) -> tuple[Array, Array]:
        """e^z proportional to 1/worth; 1 + z proportional to 1/worth; or all on the best set."""
        count = worth.shape[1]
        if self.is_smooth:
            floored = np.maximum(worth, np.exp(-FAR))
            if self.margin == "exponential":
                z = -_centred(np.log(floored), -1)
            else:
                z = count / floored / (1.0 / floored).sum(axis=1, keepdims=True) - 1.0
        else:
            best = np.arange(count) == np.argmin(worth, axis=1)[:, None]
            z = (self.rho if self.margin == "rho" else 1.0) * (count * best - 1.0)
        return z, self.value(z[:, None], worth[:, None])


@dataclass(frozen=True)
class RelevanceRisk:
    """sum over labels of eta_i Phi(h_i) + (1 - eta_i) Phi(-h_i), eta the marginals."""

    margin: str = "logistic"

    @property
    def phi(self) -> Margin:
        """The margin function."""
        return MARGINS[self.margin]

    def value(self, scores: Array, marginals: Array) -> Array:
        """The risk, (n,), from scores and marginals (n, l)."""
        terms = marginals * self.phi.value(scores) + (1.0 - marginals) * self.phi.value(-scores)
        return terms.sum(axis=1)

    def least(self, marginals: Array) -> tuple[Array, Array]:
        """Scores and value of the least risk: each label by itself."""
        marginals = np.clip(marginals, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            odds = np.clip(np.log(marginals) - np.log1p(-marginals), -FAR, FAR)
        scores = {
            "logistic": odds,
            "exponential": odds / 2.0,
            "squared_hinge": 2.0 * marginals - 1.0,
            "hinge": np.where(marginals >= 0.5, 1.0, -1.0),
        }[self.margin]
        return scores, self.value(scores, marginals)


def _spread(weights: Array, features: Array) -> Array:
    """Sum over inputs and sets of weight times feature times feature, (n, d, d)."""
    n_scores = features.shape[-1]
    squares = (features[..., :, None] * features[..., None, :]).reshape(-1, n_scores**2)
    return (weights.reshape(len(weights), -1) @ squares).reshape(-1, n_scores, n_scores)


def _centred(values: Array, axis: int) -> Array:
    return values - values.mean(axis=axis, keepdims=True)
