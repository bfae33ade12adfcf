"""Margin functions Phi(u): what a prediction with margin u costs, and its derivative."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from setwise.spaces.space import Array


@dataclass(frozen=True)
class Margin:
    """Phi, its derivative, and how scores minimising it become probabilities, if they do.

    At a kink the derivative is that of the side with the larger margin. ``probability`` maps a
    score to P(label) at the minimiser of eta Phi(h) + (1 - eta) Phi(-h).
    """

    value: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    probability: Callable[[Array], Array] | None = None


def rho_margin(rho: float) -> Margin:
    """min(max(0, 1 - u / rho), 1)."""
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
    ),
    "exponential": Margin(
        _exponential, lambda u: -_exponential(u), lambda scores: expit(2.0 * scores)
    ),
    "hinge": Margin(lambda u: np.maximum(0.0, 1.0 - u), lambda u: np.where(u < 1.0, -1.0, 0.0)),
    "squared_hinge": Margin(
        lambda u: np.maximum(0.0, 1.0 - u) ** 2,
        lambda u: -2.0 * np.maximum(0.0, 1.0 - u),
        lambda scores: (np.clip(scores, -1.0, 1.0) + 1.0) / 2.0,
    ),
}
