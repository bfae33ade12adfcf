"""The most likely label set of a space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise.decoders.decisions import Decisions
from setwise.spaces.space import Array, Space


@dataclass(frozen=True)
class MostLikely:
    """The label set with the highest weight: argmax over the space of y' · scores + g(y').

    Sign on the cube, best size then top labels on a sized space, max-product on a forest, the best
    row of a list; ties as the space breaks them. The minimum-risk decision for subset 0/1 loss, and
    the one the guarantees of the comp-sum and constrained surrogates speak of.

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> MostLikely(Cube(3)).decode([[2.0, -1.0, 0.5]])
    array([[1, 0, 1]], dtype=uint8)
    """

    space: Space

    def __post_init__(self):
        if not isinstance(self.space, Space):
            raise ValueError(f"a space is an object such as Cube(10), but this is {self.space!r}")

    def decode(self, scores) -> Array:
        """The most likely set of each row of scores, (n, l)."""
        return self.space.most_likely(scores)


def most_likely_decisions(space: Any, scores: Array, second: bool) -> Decisions:
    """Subset 0/1 on a space: its most likely set, and the best with some label the other way."""
    sets = space.most_likely(scores)
    risk = -np.expm1(space.log_probability(scores, sets))
    other = np.full(len(scores), -np.inf)
    beyond = 4.0 * (1.0 + np.abs(scores).sum(axis=1) + _span(space))
    for label in range(space.n_labels if second else 0):
        forced = scores.copy()
        forced[:, label] = np.where(sets[:, label] == 1, -beyond, beyond)
        changed = space.most_likely(forced)
        found = np.where(
            changed[:, label] != sets[:, label], space.log_probability(scores, changed), -np.inf
        )
        other = np.maximum(other, found)
    outside = space.log_size < space.n_labels * np.log(2.0) - 1e-9
    other = np.maximum(np.exp(other), 0.0 if outside else -np.inf)
    return Decisions(sets, risk, 1.0 - other)


def _span(space: Any) -> float:
    """How much the parameters of a space can weigh."""
    parameters = space.parameters
    return float(np.abs(parameters[np.isfinite(parameters)]).sum())
