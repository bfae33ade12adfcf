"""A conditional distribution p(y | x) at one input: finitely many label sets with a probability."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise.spaces.space import Array, Space
from setwise.validation import label_matrix, real_vector

# How far the probabilities may be from a sum of 1.
SUM_ERROR = 1e-9


@dataclass(frozen=True, eq=False)
class Distribution:
    """The probability of each listed label set; every other set has probability 0.

    Parameters
    ----------
    sets : array of shape (m, n_labels)
        The label sets, no two alike.
    probability : array of shape (m,)
        Not negative, with the sum 1.

    Examples
    --------
    >>> print(Distribution([[0, 0], [0, 1], [1, 1]], [0.3, 0.3, 0.4]))
    P(00) = 0.3, P(01) = 0.3, P(11) = 0.4
    """

    sets: Any
    probability: Any

    def __post_init__(self):
        sets = label_matrix(self.sets, None, "sets")
        probability = real_vector(self.probability, len(sets), "probability")
        if len(sets) == 0 or len(np.unique(sets, axis=0)) < len(sets):
            raise ValueError("sets must list at least one label set and none twice")
        if (probability < 0.0).any():
            row = int(np.argmax(probability < 0.0))
            raise ValueError(
                f"probability must not be negative, but probability[{row}] is {probability[row]}"
            )
        if abs(probability.sum() - 1.0) > SUM_ERROR:
            raise ValueError(f"probability must add up to 1, but its sum is {probability.sum()!r}")
        object.__setattr__(self, "sets", sets)
        object.__setattr__(self, "probability", probability)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.sets.shape[1]

    def mean(self, values: Array) -> Array:
        """The expectation of values given for each listed set, along their first axis."""
        return self.probability @ values

    def marginals(self) -> Array:
        """P(label in the set), (l,)."""
        return self.mean(self.sets)

    def __str__(self) -> str:
        shown = np.flatnonzero(self.probability > 0.0)
        return ", ".join(f"P({word(self.sets[k])}) = {self.probability[k]:.4g}" for k in shown)

    def to_dict(self) -> dict[str, Any]:
        """The label sets and their probabilities as plain lists."""
        return {"sets": self.sets.tolist(), "probability": self.probability.tolist()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Distribution:
        """The inverse of `to_dict`."""
        return cls(values["sets"], values["probability"])


def as_distribution(value: Any, space: Space) -> Distribution:
    """A distribution as it is, or from probabilities of the space's own sets in their order."""
    if isinstance(value, Distribution):
        if value.n_labels != space.n_labels:
            raise ValueError(
                f"the distribution must have as many labels as {space}, {space.n_labels}, "
                f"but it has {value.n_labels}"
            )
        return value
    return Distribution(space.enumerate(), value)


def word(labels: Iterable[Any]) -> str:
    """A label set in short: 0110."""
    return "".join(str(int(label)) for label in labels)
