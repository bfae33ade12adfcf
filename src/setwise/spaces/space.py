"""What every space of label sets offers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]

ENUMERATION_LIMIT = 2**20


@dataclass(frozen=True)
class Moments:
    """First moments of label sets drawn with probability s(y') = exp(z(y') - A).

    ``on`` and ``off`` are P(label in the set) and P(label not in it), each accurate relative to
    itself. ``features`` is the expected sufficient statistic of each parameter of the space. If a
    sum N(y') = sum_i (on_i if label i is in y' else off_i) was asked for, ``total`` is E[N],
    ``total_on`` is E[N; label on], ``total_off`` E[N; label off], ``total_features`` E[N feature].
    """

    log_partition: Array
    on: Array
    off: Array
    features: Array
    total: Array = field(default_factory=lambda: np.empty(0))
    total_on: Array = field(default_factory=lambda: np.empty((0, 0)))
    total_off: Array = field(default_factory=lambda: np.empty((0, 0)))
    total_features: Array = field(default_factory=lambda: np.empty((0, 0)))


@runtime_checkable
class Space(Protocol):
    """The label sets that may be predicted, and how sums over them are taken.

    A set y' (as ±1) has the weight z(y') = y' · scores + g(y'), where g, linear in the space's
    ``parameters``, is what the space adds: biases or potentials. A parameter of -inf excludes the
    sets it touches; the sets with g > -inf are the support.
    """

    # Facts about a space that other packages go by, in place of its class.
    @property
    def is_independent(self) -> bool:
        """Whether the labels are independent given the scores."""
        ...

    @property
    def is_path(self) -> bool:
        """Whether each set is one path from a root of a hierarchy."""
        ...

    @property
    def is_closed(self) -> bool:
        """Whether the sets are all those closed under a forest, or all its paths."""
        ...

    @property
    def is_joint(self) -> bool:
        """Whether each listed set has a score of its own."""
        ...

    @property
    def size_bias(self) -> Array | None:
        """g by the size of a set, where it depends on nothing else; None where it does."""
        ...

    @property
    def n_labels(self) -> int: ...

    @property
    def n_scores(self) -> int: ...

    @property
    def log_size(self) -> float: ...

    @property
    def sizes(self) -> Array: ...

    @property
    def parameters(self) -> Array: ...

    @property
    def feature_group(self) -> int:
        """Features come in groups of this many, of which exactly one is 1; 0 without features."""
        ...

    def with_parameters(self, values: ArrayLike) -> Space: ...

    def tempered(self, q: float) -> Space: ...

    def log_partition(self, scores: ArrayLike) -> Array: ...

    def marginals(self, scores: ArrayLike) -> Array: ...

    def most_likely(self, scores: ArrayLike) -> Array: ...

    def enumerate(self) -> Array: ...

    def contains(self, sets: ArrayLike) -> Array: ...

    def features(self, sets: Array) -> Array: ...

    def mean_scores(self, scores: Array, parameters: bool = True) -> tuple[Array, Array, Array]:
        """A, its gradient with respect to the scores and to the parameters.

        Without ``parameters`` a space may leave the last out.
        """
        ...


def tempered_values(values: Array, q: float) -> Array:
    """Finite entries times q; -inf stays."""
    return np.where(np.isneginf(values), -np.inf, q * np.where(np.isneginf(values), 0.0, values))


def weighted_features(features: Array, parameters: Array) -> Array:
    """g of each set: features · parameters, where 0 times -inf counts as 0, (m,)."""
    excluded = np.isneginf(parameters)
    total = features[:, ~excluded] @ parameters[~excluded]
    return np.where(features[:, excluded].any(axis=1), -np.inf, total)


def refuse_large(space: Space) -> None:
    """Raise if the support has more sets than can be listed."""
    if space.log_size > np.log(ENUMERATION_LIMIT) + 1e-9:
        raise ValueError(
            f"{space} has about e^{space.log_size:.1f} label sets, too many to list; "
            f"the limit is {ENUMERATION_LIMIT}"
        )


def all_sets(n_labels: int) -> NDArray[np.uint8]:
    """All 2^n_labels label sets in the order of binary numbers, label 0 the highest digit."""
    numbers = np.arange(2**n_labels, dtype=np.int64)[:, None]
    return ((numbers >> np.arange(n_labels - 1, -1, -1)) & 1).astype(np.uint8)
