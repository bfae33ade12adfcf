"""Conditional surrogate risks: what a surrogate expects at one input, as a function of the scores.

Scores weigh the label sets of a small space (`Weights`), and the expectation over y given x needs
one number for each set y', its *worth*: the expected utility E[u(y', y)] (comp-sum), the expected
loss (constrained), or the probability of y' itself (likelihood). Binary relevance is a problem of
two sets, present and absent, for each label.

Arrays have an axis of inputs before that of the label sets: weights z and worth are (n, m, K) for n
problems on m inputs, with the probability of an input multiplied into its worth. All values are on
the scale of the paper's sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.special import log_softmax, xlogy

from setwise.spaces.space import Array, Space, weighted_features
from setwise.surrogates.binary_relevance import Margin, margin_of

Kind = Literal["labelwise", "joint"]
KINDS = ("labelwise", "joint")
# Spaces with more sets than this are not taken apart.
MOST_SETS = 4096
# A score that stands for infinity: the most likely set has all but e^-200 of the mass.
FAR = 200.0
# What is below 0, or above its largest value, by no more than this is rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Weights:
    """z = features · scores + offset: how d scores weigh K label sets at each of m inputs.

    ``features`` are (m, K, d), the ``offset`` (m, K).
    """

    features: Array
    offset: Array

    @classmethod
    def of(cls, space: Space, kind: Kind = "labelwise") -> Weights:
        """How scores weigh the sets of a small space, in the order of ``space.enumerate()``.

        Label-wise scores have features y' in ±1; joint scores, one for each set, those of the
        identity. The offset is g(y'), what the space adds.
        """
        if kind not in KINDS:
            raise ValueError(f"scores must be 'labelwise' or 'joint', but it is {kind!r}")
        if not space.has_at_most(MOST_SETS):
            raise ValueError(
                f"{space} has about e^{space.log_size:.1f} label sets, too many to examine one by "
                f"one; the limit is {MOST_SETS}. Examine a smaller space of the same kind"
            )
        sets = space.enumerate()
        offset = weighted_features(space.features(sets), space.parameters)
        features = np.eye(len(sets)) if kind == "joint" else 2.0 * sets - 1.0
        if space.is_joint:
            # Excluded sets have a score too, which moves nothing.
            features = np.eye(space.n_scores)[space.parameters > -np.inf]
        return cls(features[None], offset[None])

    def at(self, scores: Array) -> Array:
        """z for rows of scores (n, d), (n, m, K)."""
        return (scores @ self.flat.T).reshape(len(scores), *self.offset.shape) + self.offset

    @property
    def flat(self) -> Array:
        """The features of all inputs and sets, one below the other, (m K, d)."""
        return self.features.reshape(-1, self.features.shape[-1])

    @property
    def n_scores(self) -> int:
        """Number of scores, d."""
        return self.features.shape[-1]

    @cached_property
    def centred(self) -> Weights:
        """The same with mean 0 over the sets of each input."""
        return Weights(_centred(self.features, -2), _centred(self.offset, -1))

    @cached_property
    def directions(self) -> int:
        """In how many directions scores move the laws of the sets, of the m (K - 1) there are."""
        return int(np.linalg.matrix_rank(self.centred.flat))

    @property
    def reaches_every_law(self) -> bool:
        """Whether every law over the sets is s_h for some scores, or a limit of such.

        So it is where the sets are affinely independent: the assumption in the paper's proofs that
        "s^mu can be realized by some h'".
        """
        inputs, sets = self.offset.shape
        return self.directions == inputs * (sets - 1)

    def span(self, columns: Array) -> bool:
        """Whether every column (m K, c) is a combination of the features and a constant."""
        basis = np.column_stack([self.flat, np.ones(len(self.flat))])
        left = columns - basis @ np.linalg.lstsq(basis, columns, rcond=None)[0]
        return bool(np.abs(left).max(initial=0) <= 1e-9 * (1 + np.abs(columns).max(initial=0)))


@dataclass(frozen=True)
class CompSumRisk:
    """sum over y' of worth(y') (1 - s(y')^q) / q; q = 0 is -sum worth log s.

    With the worth of a set its probability and q = 0 it is the log-loss, whose least value over
    all laws is the entropy. Over all laws the least risk has s proportional to worth^(1/(1-q)).
    Convex for q <= 0: log-sum-exp, and exponentials of it.
    """

    q: float
    kinks = ()

    @property
    def is_convex(self) -> bool:
        """Whether it is convex in the scores."""
        return self.q <= 0.0

    def value(self, z: Array, worth: Array) -> Array:
        """The risk, (n,)."""
        log_law = log_softmax(z, axis=-1)
        # A set without worth may have no mass.
        log_law = np.where(worth > 0.0, log_law, 0.0)
        terms = log_law if self.q == 0.0 else np.expm1(self.q * log_law) / self.q
        return -(worth * terms).sum(axis=(-2, -1))

    def derivatives(self, z: Array, worth: Array, features: Array) -> tuple[Array, Array]:
        """Gradient (n, d) and Hessian (n, d, d) by the scores.

        With w = worth s^q and W = sum w the derivative by z is W s - w.
        """
        log_law = log_softmax(z, axis=-1)
        law, pull = np.exp(log_law), worth * np.exp(self.q * log_law)
        total = pull.sum(axis=-1, keepdims=True)
        mean = (law[:, :, None] @ features)[:, :, 0]
        pulled = (pull[:, :, None] @ features)[:, :, 0]
        spread = _spread(total * law - self.q * pull, features)
        apart = self.q * pulled - (1.0 + self.q) * total * mean
        cross = np.swapaxes(mean, 1, 2) @ apart + self.q * np.swapaxes(pulled, 1, 2) @ mean
        return (total * mean - pulled).sum(axis=1), spread + cross

    def least(self, worth: Array) -> tuple[Array, Array]:
        """Weights z (n, m, K) and value (n,) of the least risk over *all* laws."""
        if self.q == 1.0:
            best = np.argmax(worth, axis=-1)[..., None]
            z = FAR * (np.arange(worth.shape[-1]) == best)
            return z, (worth.sum(axis=-1) - worth.max(axis=-1)).sum(axis=-1)
        with np.errstate(divide="ignore"):
            z = np.maximum(np.log(worth), -FAR) / (1.0 - self.q)
        return z, self.value(z, worth)

    def lower_bound(self, weights: Weights, worth: Array, scores: Array) -> float:
        """A lower bound on the infimum over *all* scores by duality, for worth (m, K) and q <= 0.

        With w and s of equal feature means, sum_k w_k t_k >= W H(s) + (W s - w) · g for all scores,
        t_k = A - z_k. For q = 0 the risk is the left side with w = worth; for q = -a < 0 it is
        sum worth (e^(a t) - 1) / a >= sum w t + w (1 - log(w / worth)) / a - worth / a for every w.
        The law at the scores is corrected to meet the means, and mixed with w if that leaves the
        simplex, so that the bound is tight near the minimiser, also where that is at infinity.
        """
        log_law = log_softmax(weights.at(scores[None])[0], axis=1)
        law, pull = np.exp(log_law), worth * np.exp(self.q * log_law)
        total = pull.sum(axis=1, keepdims=True)
        own = pull / total
        # Centred, so that the correction leaves the sum of the law as it is.
        centred = total[..., None] * (weights.features - law[:, None] @ weights.features)
        law = _meeting(law, centred, np.einsum("bk,bkd->d", own, centred))
        below = law < -ROUNDING
        if below.any():
            share = (-law / np.maximum(own - law, 1e-300))[below].max()
            law = law + min(1.0, float(share)) * (own - law)
        if (law < -ROUNDING).any():
            return -np.inf
        law = np.maximum(law, 0.0)
        bound = (-total * xlogy(law, law) + (total * law - pull) * weights.offset).sum()
        if self.q < 0.0:
            # w / worth is s^q, 1 where both are 0.
            log_ratio = np.where(worth > 0.0, self.q * log_law, 0.0)
            bound += ((pull * (1.0 - log_ratio) - worth) / -self.q).sum()
        return float(bound)


@dataclass(frozen=True)
class ConstrainedRisk:
    """sum over y' of worth(y') Phi(-z(y')), worth the expected loss, z centred to the mean 0."""

    margin: str
    rho: float = 1.0

    @property
    def is_convex(self) -> bool:
        """All but the rho margin."""
        return self.margin != "rho"

    @property
    def phi(self) -> Margin:
        """The margin function."""
        return margin_of(self.margin, self.rho)

    @property
    def kinks(self) -> tuple[float, ...]:
        """The centred weights at which the cost of a set, made of lines, bends; () if smooth."""
        return {"hinge": (-1.0,), "rho": (-self.rho, 0.0)}.get(self.margin, ())

    def value(self, z: Array, worth: Array) -> Array:
        """The risk, (n,)."""
        return (worth * self.phi.value(-_centred(z, -1))).sum(axis=(-2, -1))

    def derivatives(self, z: Array, worth: Array, features: Array) -> tuple[Array, Array]:
        """Gradient (n, d) and Hessian (n, d, d) by the scores, of the smooth margins."""
        z, features = _centred(z, -1), _centred(features, -2)
        slope = -worth * self.phi.derivative(-z)
        bend = worth * (np.exp(z) if self.margin == "exponential" else 2.0 * (z > -1.0))
        gradient = slope.reshape(len(slope), -1) @ features.reshape(-1, features.shape[-1])
        return gradient, _spread(bend, features)

    def least(self, worth: Array) -> tuple[Array, Array]:
        """Weights z (n, m, K) and value (n,) of the least risk over *all* laws.

        e^z proportional to 1/worth; 1 + z proportional to 1/worth; or all on the best set.
        """
        count, floored = worth.shape[-1], np.maximum(worth, np.exp(-FAR))
        if self.margin == "exponential":
            z = -_centred(np.log(floored), -1)
        elif self.margin == "squared_hinge":
            z = count / floored / (1.0 / floored).sum(axis=-1, keepdims=True) - 1.0
        else:
            best = np.arange(count) == np.argmin(worth, axis=-1)[..., None]
            z = (self.rho if self.margin == "rho" else 1.0) * (count * best - 1.0)
        return z, self.value(z, worth)

    def lower_bound(
        self, weights: Weights, worth: Array, scores: Array, slopes: Array | None = None
    ) -> float:
        """A lower bound on the infimum over *all* scores by duality, for worth (m, K).

        Slopes whose feature means are 0 bound the risk by the sum of what worth Phi(-z) exceeds the
        line slope z by. They are those at the scores, or of the hinge's linear program, corrected.
        """
        weights = weights.centred
        if slopes is None:
            slopes = -worth * self.phi.derivative(-weights.at(scores[None])[0])
        met = _meeting(slopes, weights.features, np.zeros(len(scores)))
        if (met < -ROUNDING).any():
            # The features are centred, so that equal slopes are feasible.
            met = met - met.min()
        # A slope where there is no worth is rounding too.
        met = np.where((worth <= ROUNDING) & (met <= ROUNDING), 0.0, np.maximum(met, 0.0))
        # The largest b with worth Phi(-z) >= slope z + b for all z.
        if self.margin == "exponential":
            above = met - xlogy(met, met / np.maximum(worth, 1e-300))
        elif self.margin == "squared_hinge":
            above = met - met**2 / (4.0 * np.maximum(worth, 1e-300))
        else:
            above = np.where(met <= worth + ROUNDING, np.minimum(met, worth), -np.inf)
        return float((above + met * weights.offset).sum())


Risk = CompSumRisk | ConstrainedRisk


def _spread(factors: Array, features: Array) -> Array:
    """Sum over inputs and sets of factor times feature times feature, (n, d, d)."""
    n_scores = features.shape[-1]
    squares = (features[..., :, None] * features[..., None, :]).reshape(-1, n_scores**2)
    return (factors.reshape(len(factors), -1) @ squares).reshape(-1, n_scores, n_scores)


def _centred(values: Array, axis: int) -> Array:
    return values - values.mean(axis=axis, keepdims=True)


def _meeting(point: Array, features: Array, wanted: Array) -> Array:
    """A point near by whose features sum up to what is wanted: p + |p| (features · c), for some c.

    Entries change in proportion to their size: those that are 0 stay so.
    """
    flat, size = features.reshape(-1, features.shape[-1]), np.abs(point.ravel())
    missing = wanted - flat.T @ point.ravel()
    along = np.linalg.lstsq(flat.T @ (size[:, None] * flat), missing, rcond=None)[0]
    return point + (size * (flat @ along)).reshape(point.shape)
