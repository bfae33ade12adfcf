"""Sums over the sets of a list: those of a Catalog, of Paths, and of any small space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array

from setwise.spaces.expectation import Expectation, Mean, Moment, Tempered, times_exp
from setwise.spaces.space import (
    Array,
    Space,
    sum_of_others,
    tempered_values,
    weighted_features,
)
from setwise.sparse import row_ranges
from setwise.targets.measure import Of
from setwise.targets.target import Target
from setwise.threads import small_products

# Rows by sets that a sum goes through at a time, half a megabyte: its passes over them then find
# them in the cache of a processor. But no fewer rows, for which products would be slow.
AT_HAND, FEWEST_ROWS = 2**16, 64


class Listing:
    """Label sets (K, l) that are gone through one by one, with what is added to the weight of each.

    ``bias`` (K,) is -inf where a set is excluded; 0 stands for none.
    """

    sets: Any
    bias: Any = 0.0
    is_joint: bool = False

    @property
    def count(self) -> int:
        """How many sets there are."""
        return len(self.sets)

    @cached_property
    def signs(self) -> Array:
        """The sets as ±1, (l, K)."""
        return 2.0 * self.sets.T - 1.0

    @cached_property
    def size_sums(self) -> SizeSums:
        """Sums over the sets of each size."""
        return SizeSums.of(self.sets)

    def sums(self, present: Array, absent: Array) -> Array:
        """``present`` over the labels of each set plus ``absent`` over the others, (n, K)."""
        return sums_over(self.sets, present, absent)

    def weights(self, scores: Array) -> Array:
        """z of each set, (n, K)."""
        return (scores if self.is_joint else scores @ self.signs) + self.bias

    def aggregate(self, weights: Array) -> tuple[Array, Array]:
        """Sums over the list of weights times the derivative of z, by scores and parameters."""
        return (weights if self.is_joint else weights @ self.signs.T), weights

    def expectation(self, target: Target | str) -> Expectation:
        """Of a space that is a list: as every space, but in one pass over the list."""
        found = super().expectation(target)  # type: ignore
        return ListedExpectation(found.target, self) if type(found) is Tempered else found  # type: ignore


@dataclass(frozen=True)
class SizeSums:
    """Sums over listed sets by their size, and by size and label."""

    n_labels: int
    # (sizes * l + sizes, K): which sets have a size and a label; and below, which have a size.
    members: Any

    @classmethod
    def of(cls, sets: Array) -> SizeSums:
        """Sizes from 0 to that of the largest set."""
        sizes, n_labels = sets.sum(axis=1, dtype=np.int64), sets.shape[1]
        places, labels = np.nonzero(sets)
        below = (int(sizes.max()) + 1) * n_labels
        rows = np.concatenate([sizes[places] * n_labels + labels, below + sizes])
        columns = np.concatenate([places, np.arange(len(sets))])
        shape = below + below // n_labels, len(sets)
        return cls(n_labels, csr_array((np.ones(len(rows)), (rows, columns)), shape=shape))

    def __call__(self, shares: Array) -> tuple[Array, Array]:
        """Of the shares (n, K) of the sets: by size and label (n, S, l), and by size (n, S)."""
        found, n_sizes = self.members @ shares.T, self.members.shape[0] // (self.n_labels + 1)
        joint, size = np.split(found, [n_sizes * self.n_labels])
        joint = np.ascontiguousarray(joint.T).reshape(len(shares), n_sizes, self.n_labels)
        return joint, np.ascontiguousarray(size.T)


@dataclass(frozen=True, eq=False)
class SetList(Listing):
    """Label sets of a space, their features (K, p) and what the space adds to each, (K,)."""

    sets: Array
    features: Array
    bias: Array

    @classmethod
    def of(cls, space: Space, sets: Array) -> SetList:
        """The given sets with the space's own parameters."""
        features = space.features(sets)
        return cls(sets, features, weighted_features(features, space.parameters))

    def aggregate(self, weights: Array) -> tuple[Array, Array]:
        """Sums over the list of weights times y' and times the features."""
        by_score, by_set = super().aggregate(weights)
        return by_score, by_set @ self.features


_listings: WeakKeyDictionary[Any, SetList] = WeakKeyDictionary()


def listing_of(space: Space) -> Listing:
    """The space itself if it is a list, else the list of its sets, made once."""
    if isinstance(space, Listing):
        return space
    # (The key may be an equal space, which may be gone a moment later.)
    found = _listings.get(space)
    if found is None:
        found = _listings[space] = SetList.of(space, space.enumerate())
    return found


def sampled_listing(space: Space, n_samples: int, seed: int) -> SetList:
    """``n_samples`` sets of a space, drawn uniformly by a generator of that seed."""
    return SetList.of(space, space.sample(n_samples, np.random.default_rng(seed)))


def sums_over(sets: Array, present: Array, absent: Array) -> Array:
    """``present`` over the labels of each set plus ``absent`` over the others, (n, K).

    Two products, not a base plus gains: sums of terms of one sign keep small values accurate.
    """
    return present @ sets.T.astype(np.float64) + absent @ (1.0 - sets.T)


def posterior_of(listing: Listing, scores: Array) -> tuple[Array, Array]:
    """A and the probability of each listed set, (n,) and (n, K)."""
    return normalised(listing.weights(scores))


def normalised(weights: Array) -> tuple[Array, Array]:
    """log of the sum of e^z of each row, (n,), and e^z over that sum, from z (n, K)."""
    high = weights.max(axis=1, keepdims=True)
    posterior = np.exp(weights - high)
    mass = posterior.sum(axis=1, keepdims=True)
    posterior /= mass
    return (high + np.log(mass))[:, 0], posterior


def posterior_apart(weights: Array, place: Array) -> tuple[Array, Array]:
    """-log s(y) (n,) and its gradient by z of each listed set (n, K), where y is at ``place``.

    ``weights`` are z (n, K), which are lost. The true set is kept apart from the others: what they
    weigh together is what y lacks of probability 1, also where that is small.
    """
    rows = np.arange(len(weights))
    own, weights[rows, place] = weights[rows, place], -np.inf
    high = np.maximum(weights.max(axis=1), own)
    by_set = np.exp(weights - high[:, None])
    others = by_set.sum(axis=1)
    value, part = log_share(others, own - high)
    by_set *= part[:, None]
    by_set[rows, place] = -others * part
    return value, by_set


def log_share(others: Array, log_own: Array) -> tuple[Array, Array]:
    """-log of the share of one weight beside ``others``, accurate near 0, and 1 over their sum."""
    own = np.exp(np.minimum(log_own, 700.0))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        far = np.log(own + others) - log_own
        return np.where(others < own, np.log1p(others / own), far), 1.0 / (own + others)


@dataclass(frozen=True)
class ListedExpectation(Expectation):
    """The moments of any target on a space that is a list, in one pass over the list, O(n K l).

    With s_k the probability of a set, and t_k its utility times the probability tempered by q, the
    derivative of F(q) by z_k, divided by q, is t_k (1 - s_k) - s_k (sum of the other t), times what
    scales F. A set has at most one parameter, its own bias.
    """

    def moment(
        self, scores: Array, y_true: Array, q: float, of: Of = "utility", log_scale: float = 0.0,
        parameters: bool = True,
    ) -> Moment:  # fmt: skip
        log_size = self.space.log_size

        def found(weights: Array, values: Array) -> tuple[Array, Array, Array]:
            log_partition, posterior = normalised(weights)
            log_tempered, shares = log_partition, posterior
            if q != 1.0:
                log_tempered, shares = normalised(tempered_values(weights, q))
            shares = shares * values
            exponent = (log_tempered - log_size) - q * (log_partition - log_size) + log_scale
            return shares.sum(axis=1), _apart(shares, posterior), exponent

        return self._summed(scores, y_true, of, found, parameters)

    def uniform(self, y_true: Array, of: Of = "utility", log_scale: float = 0.0) -> Array:
        listing, measure = listing_of(self.space), self.target.measure(self.space.n_labels, of)
        inside = np.broadcast_to(np.isfinite(listing.bias), listing.count)
        share = inside * np.exp(-self.space.log_size)

        def means(sets: Array) -> Array:
            return measure.matrix(listing, sets) @ share

        with small_products(_multiplications(listing)):
            found = [means(y_true[rows]) for rows in row_ranges(len(y_true), listing.count)]
        return times_exp(np.concatenate(found), log_scale)

    def logistic(
        self, scores: Array, y_true: Array, log_scale: float = 0.0, parameters: bool = True
    ) -> Moment:
        log_size = self.space.log_size

        def found(weights: Array, values: Array) -> tuple[Array, Array, Array]:
            log_partition, posterior = normalised(weights)
            inside = weights > -np.inf
            shares = inside * values * np.exp(-log_size)
            value = shares.sum(axis=1) * (log_partition - log_size)
            value -= np.einsum("ij,ij->i", shares, np.where(inside, weights, 0.0))
            return value, -_apart(shares, posterior), np.full(len(value), log_scale)

        return self._summed(scores, y_true, "utility", found, parameters)

    def _summed(
        self, scores: Array, y_true: Array, of: Of,
        found: Callable[[Array, Array], tuple[Array, Array, Array]], parameters: bool,
    ) -> Moment:  # fmt: skip
        """What is ``found`` from z and the values of the sets (n, K), some rows at a time.

        That is the moment (n,), its derivatives by z, divided by q, and the logarithm of what
        scales both. The largest z of a row is 0 there: moments do not depend on it, and large
        numbers do not cancel.
        """
        listing, measure = listing_of(self.space), self.target.measure(self.space.n_labels, of)
        scores, parts = scores.astype(np.float64), []
        with small_products(_multiplications(listing)):
            for rows in row_ranges(len(scores), listing.count):
                values = measure.matrix(listing, y_true[rows])
                for few in row_ranges(len(values), listing.count, AT_HAND, FEWEST_ROWS):
                    weights = listing.weights(scores[rows][few])
                    weights -= weights.max(axis=1, keepdims=True)
                    value, by_set, exponent = found(weights, values[few])
                    slopes = listing.aggregate(by_set)
                    slopes = slopes if parameters else (slopes[0], np.empty((len(value), 0)))
                    slopes = (times_exp(part, exponent[:, None]) for part in slopes)
                    parts.append((times_exp(value, exponent), *slopes))
        return Moment(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _apart(shares: Array, posterior: Array) -> Array:
    """shares (1 - posterior) - posterior (sum of the other shares), (n, K).

    Accurate also where one set is all but certain.
    """
    return shares * sum_of_others(posterior) - posterior * sum_of_others(shares)


def _multiplications(listing: Listing) -> int:
    """How many multiplications a product of some rows with the list takes."""
    return max(AT_HAND, FEWEST_ROWS * listing.count) * listing.sets.shape[1]


def listed_mean(space: Space, target: Target, scores: Array, y_true: Array, of: Of) -> Mean:
    """E[u] of any target as the sum over the list of u times the probability, O(n K l).

    Some rows at a time, so that memory stays bounded.
    """
    listing, measure = listing_of(space), target.measure(space.n_labels, of)
    parts = []
    for rows in row_ranges(len(scores), listing.count):
        log_partition, posterior = posterior_of(listing, scores[rows])
        weighted = posterior * measure.matrix(listing, y_true[rows])
        parts.append((log_partition, weighted.sum(axis=1), *listing.aggregate(weighted)))
    return Mean(*(np.concatenate(part) for part in zip(*parts, strict=True)))
