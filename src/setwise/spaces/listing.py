"""Spaces that can hold their sets in a list, and the list of any small space."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from setwise.spaces.space import Array, Space, weighted_features


@runtime_checkable
class Listing(Protocol):
    """A space that offers the weight of each of its sets.

    ``sets`` (K, l), ``count`` K; `sums` adds up values over the labels of each set; `weights` gives
    z of each set, -inf where excluded; `aggregate` carries a number for each set back to the scores
    and the parameters.
    """

    @property
    def sets(self) -> Array: ...

    @property
    def count(self) -> int: ...

    def sums(self, present: Array, absent: Array) -> Array: ...

    def weights(self, scores: Array) -> Array: ...

    def aggregate(self, weights: Array) -> tuple[Array, Array]: ...


@dataclass(frozen=True, eq=False)
class SetList:
    """Label sets of a space, listed, with the space's own parameters.

    All of the support, or, if ``is_sample``, sets drawn uniformly from it with replacement.
    """

    space: Space
    sets: Array
    is_sample: bool = False
    _features: Array = field(init=False, repr=False)
    _bias: Array = field(init=False, repr=False)

    def __post_init__(self):
        features = self.space.features(self.sets)
        object.__setattr__(self, "_features", features)
        object.__setattr__(self, "_bias", weighted_features(features, self.space.parameters))

    @property
    def count(self) -> int:
        """How many sets there are."""
        return len(self.sets)

    def sums(self, present: Array, absent: Array) -> Array:
        """``present`` over the labels of each set plus ``absent`` over the others, (n, K)."""
        return sums_over(self.sets, present, absent)

    def weights(self, scores: Array) -> Array:
        """z of each set, (n, K)."""
        return scores @ (2.0 * self.sets.T - 1.0) + self._bias

    def aggregate(self, weights: Array) -> tuple[Array, Array]:
        """Sums over the list of weights times y' and times the features."""
        return weights @ (2.0 * self.sets - 1.0), weights @ self._features


def sums_over(sets: Array, present: Array, absent: Array) -> Array:
    """``present`` over the labels of each set plus ``absent`` over the others, (n, K).

    Two products, not a base plus gains: sums of terms of one sign keep small values accurate.
    """
    return present @ sets.T.astype(np.float64) + absent @ (1.0 - sets.T)


def listing_of(space: Space) -> Listing:
    """The space itself if it is a list, else the list of its sets."""
    return space if isinstance(space, Listing) else SetList(space, space.enumerate())


def posterior_of(space: Listing, scores: Array) -> tuple[Array, Array]:
    """A and the probability of each listed set, (n,) and (n, K)."""
    weights = space.weights(scores)
    high = weights.max(axis=1, keepdims=True)
    posterior = np.exp(weights - high)
    mass = posterior.sum(axis=1, keepdims=True)
    posterior /= mass
    return (high + np.log(mass))[:, 0], posterior
