"""Margin functions Phi, and binary relevance: one binary problem for each label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from setwise.spaces.space import Array
from setwise.surrogates.surrogate import as_type, checked
from setwise.targets.additive import CostSensitive
from setwise.validation import require_one_of, score_matrix


@dataclass(frozen=True)
class Margin:
    """Phi, its derivative, and how scores minimising it become probabilities, if they do.

    At a kink the derivative is that of the side with the larger margin. ``probability`` maps a
    score to P(label) at the minimiser of eta Phi(h) + (1 - eta) Phi(-h), and ``log_odds`` to its
    log-odds and their derivative.
    """

    value: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    probability: Callable[[Array], Array] | None = None
    log_odds: Callable[[Array], tuple[Array, Array]] | None = None


def margin_of(name: str, rho: float) -> Margin:
    """The margin function of that name: "rho" is min(max(0, 1 - u / rho), 1)."""
    if name != "rho":
        return MARGINS[name]
    return Margin(
        lambda u: np.clip(1.0 - u / rho, 0.0, 1.0),
        lambda u: np.where((u >= 0.0) & (u < rho), -1.0 / rho, 0.0),
    )


def _exponential(u: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.exp(-u)


MARGINS: dict[str, Margin] = {
    "logistic": Margin(
        lambda u: np.log1p(np.exp(-np.abs(u))) + np.maximum(-u, 0.0),
        lambda u: -expit(-u),
        expit,
        lambda scores: (scores, np.ones_like(scores)),
    ),
    "exponential": Margin(
        _exponential,
        lambda u: -_exponential(u),
        lambda scores: expit(2.0 * scores),
        lambda scores: (2.0 * scores, np.full_like(scores, 2.0)),
    ),
    "hinge": Margin(lambda u: np.maximum(0.0, 1.0 - u), lambda u: np.where(u < 1.0, -1.0, 0.0)),
    "squared_hinge": Margin(
        lambda u: np.maximum(0.0, 1.0 - u) ** 2,
        lambda u: -2.0 * np.maximum(0.0, 1.0 - u),
        lambda scores: (np.clip(scores, -1.0, 1.0) + 1.0) / 2.0,
        lambda scores: _of_clipped(scores),
    ),
}


def _of_clipped(scores: Array) -> tuple[Array, Array]:
    """log (1 + h) - log (1 - h) and its derivative; beyond ±1 infinite and 0."""
    inside = np.abs(scores) < 1.0
    kept = np.where(inside, scores, 0.0)
    odds = np.where(inside, 2.0 * np.arctanh(kept), np.copysign(np.inf, scores))
    return odds, np.where(inside, 2.0 / (1.0 - kept**2), 0.0)


@dataclass(frozen=True)
class BinaryRelevance:
    """sum_i c_i Phi(y_i h_i) with a margin function Phi, y in ±1, and costs c_i.

    Parameters
    ----------
    margin : {"logistic", "exponential", "hinge", "squared_hinge"}, default "logistic"
        Phi(u) = log(1 + e^-u), e^-u, max(0, 1 - u) or its square.
    costs : CostSensitive, optional
        What the term of a label is multiplied by: the cost of a miss where the label is true, that
        of a false alarm where it is not. 1 by default.

    Notes
    -----
    With the logistic margin P(label i) is sigmoid(h_i), or with costs sigmoid(h_i - log(miss_i /
    false_alarm_i)); on the cube of the comp-sum losses it is sigmoid(2 h_i). With costs the sign of
    the score decides for the target `CostSensitive`.

    Examples
    --------
    >>> BinaryRelevance("hinge").value_and_gradient([[0.5, 0.0]], [[1, 0]])
    (array([1.5]), array([[-1.,  1.]]))
    """

    margin: str = "logistic"
    costs: Any = None

    def __post_init__(self):
        require_one_of(self.margin, MARGINS, "margin")
        if self.costs is not None and not isinstance(self.costs, CostSensitive):
            raise ValueError(
                f"costs must be a CostSensitive(miss, false_alarm) or None, not {self.costs!r}"
            )

    def by_truth(self, n_labels: int) -> Array | None:
        """The costs of false alarms and of misses, (2, l); None where all are 1."""
        return None if self.costs is None else np.stack(self.costs.costs(n_labels)[::-1])

    def value_and_gradient(self, scores, y_true) -> tuple[Array, Array]:
        """Values (n,) and the gradient with respect to the scores (n, l)."""
        return self.value_and_gradients(scores, y_true)[:2]

    def value_and_gradients(self, scores, y_true) -> tuple[Array, Array, Array]:
        """Values, score gradient, and an empty parameter gradient (n, 0)."""
        scores, y_true = checked(scores, y_true, None, None)
        sign = 2.0 * y_true - 1.0
        margin = sign * scores
        phi, costs = MARGINS[self.margin], self.by_truth(scores.shape[1])
        value, gradient = phi.value(margin), sign * phi.derivative(margin)
        if costs is not None:
            cost = np.where(y_true == 1, costs[1], costs[0])
            value, gradient = cost * value, cost * gradient
        value = value.sum(axis=1)
        return as_type(scores.dtype, value, gradient, np.empty((len(scores), 0)))  # type: ignore

    def probability(self, scores) -> Array:
        """P(label) of each label at the minimiser, (n, l); the hinge has none."""
        scores = score_matrix(scores, None)
        likely, costs = self._linked("probability")(scores), self.by_truth(scores.shape[1])
        if costs is None:
            return likely
        # At the minimiser the link gives the share of the misses in the expected costs; where one
        # kind costs nothing that says nothing.
        known = (costs > 0.0).all(axis=0)
        false_alarm, miss = np.where(known, costs, 1.0)
        share = likely * false_alarm / (likely * false_alarm + (1.0 - likely) * miss)
        return np.where(known, share, 0.5).astype(scores.dtype)

    def log_odds(self, scores) -> tuple[Array, Array]:
        """log P(label) - log(1 - P(label)) of each label and the derivative by its score, (n, l).

        Infinite where the margin says that a label is certain; the hinge has none.
        """
        scores = score_matrix(scores, None)
        odds, slope = self._linked("log_odds")(scores)
        costs = self.by_truth(scores.shape[1])
        if costs is None:
            return odds, slope
        known = (costs > 0.0).all(axis=0)
        false_alarm, miss = np.where(known, costs, 1.0)
        return np.where(known, odds + np.log(false_alarm / miss), 0.0), slope * known

    def _linked(self, name: str) -> Any:
        """How scores become probabilities, or log-odds, or a ValueError."""
        link = getattr(MARGINS[self.margin], name)
        if link is None:
            raise ValueError(
                f"scores trained on the {self.margin} margin have no probability; "
                f"use margin='logistic'"
            )
        return link

    def __str__(self) -> str:
        own = "" if self.costs is None else f", {self.costs}"
        return f"binary relevance ({self.margin}{own})"
