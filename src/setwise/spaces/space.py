"""What every space of label sets offers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise.sparse import label_sums
from setwise.targets.registry import get_target
from setwise.validation import score_matrix

if TYPE_CHECKING:
    from setwise.spaces.expectation import Expectation, Mean
    from setwise.targets.measure import Form, Of
    from setwise.targets.target import Target

Array = NDArray[Any]

ENUMERATION_LIMIT = 2**20
# Spaces with more sets than this are not listed for a target that has no other way.
LISTABLE = 2**14
# A forest with no more sets than this is listed for a linear-fractional target: that is faster than
# a pass for each node of a rule, and takes no differences.
FEW = 2**9


@dataclass(frozen=True)
class Moments:
    """First moments of label sets drawn with probability s(y') = exp(z(y') - A).

    ``on`` and ``off`` are P(label in the set) and P(label not in it), each accurate relative to
    itself, (n, l). ``features`` is the expected sufficient statistic of each parameter, (n, p). If
    a sum N(y') = sum_i (on_i if label i is in y' else off_i) was asked for, ``total`` is E[N],
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
    sets it touches; the sets with g > -inf are the support. A set has the probability
    s(y') = exp(z(y') - A), with A the log-partition.

    Public methods take anything array-like and check it. Those that take an ``Array`` (`moments`
    and all below it) are for kernels and trust their arguments: float scores (n, n_scores), sets of
    0/1 bytes (n, l).

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> Cube(2).log_partition([[0.0, 0.0]]).round(3), Cube(2).most_likely([[0.3, -0.2]])
    (array([1.386]), array([[1, 0]], dtype=uint8))
    """

    n_labels: int
    log_size: float = np.inf
    """log of the number of sets in the support."""
    sizes: Array = np.empty(0, dtype=np.int64)
    """The numbers of labels that sets have, ascending."""
    # Facts about a space that other packages go by, in place of its class.
    is_independent: ClassVar[bool] = False
    """Whether the labels are independent given the scores."""
    is_path: bool = False
    """Whether each set is one path from a root of a hierarchy."""
    is_list: bool = False
    """Whether all sets are gone through for every sum, however many there are."""
    is_closed: bool = False
    """Whether the sets are all those closed under a forest, or all its paths."""
    is_joint: bool = False
    """Whether each listed set has a score of its own."""
    feature_group: int = 0
    """Features come in groups of this many, of which exactly one is 1; 0 without features."""
    carries: frozenset[Form] = frozenset()
    """Forms of targets whose expectation needs no list of the label sets."""

    favoured: tuple[Space, Array] | None = None
    """A base and listed sets of it (K, l), where the space is the base with a bonus for these."""
    size_bias: Array | None = None
    """g by the size of a set, where it depends on nothing else; None where it does."""

    @property
    def n_scores(self) -> int:
        """One score for each label; with joint scores one for each set."""
        return self.n_labels

    @property
    def parameters(self) -> Array:
        """What the space adds to the scores, (p,); nothing unless a space says so."""
        return np.empty(0)

    @property
    def lower_bounds(self) -> Array:
        """The least value that each parameter may have, (p,); -inf unless a space says so."""
        return np.full(len(self.parameters), -np.inf)

    @property
    def penalties(self) -> Array:
        """How strongly training holds each parameter near 0, (p,); 0, not at all, by default.

        In units of rows: beside the sum of their losses stands the sum of penalty / 2 value².
        """
        return np.zeros(len(self.parameters))

    @property
    def is_even(self) -> bool:
        """Whether all sets weigh the same at scores of 0."""
        finite = self.parameters[np.isfinite(self.parameters)]
        return len(np.unique(finite)) <= 1

    @property
    def is_learnable(self) -> bool:
        """Whether parameters say something that scores do not.

        On closed sets potentials say nothing that intercepts do not.
        """
        return len(self.parameters) > 0 and not self.is_closed

    @property
    def has_label_sizes(self) -> bool:
        """Whether P(label in the set, size of the set) is known without a list of the sets."""
        return self.size_bias is not None

    def with_parameters(self, values: ArrayLike) -> Space:
        """The same space with other parameters."""
        if np.shape(values) != (0,):
            raise ValueError(f"{self} has no parameters, but got {np.shape(values)}")
        return self

    def tempered(self, q: float) -> Space:
        """The same space with its finite parameters times q."""
        return self

    def log_partition(self, scores: ArrayLike) -> Array:
        """A(h), the log-sum of the weights of all sets, (n,)."""
        checked = score_matrix(scores, self.n_scores)
        return self.mean_scores(checked.astype(np.float64), False)[0].astype(checked.dtype)

    def marginals(self, scores: ArrayLike) -> Array:
        """P(label in the set), (n, l)."""
        checked = score_matrix(scores, self.n_scores)
        return self.moments(checked.astype(np.float64)).on.astype(checked.dtype)

    def most_likely(self, scores: ArrayLike) -> Array:
        """The heaviest set of each row, (n, l)."""
        ...

    def enumerate(self) -> Array:
        """All sets of the support, (|Y|, l); refused where there are too many."""
        ...

    def contains(self, sets: ArrayLike) -> Array:
        """Whether each set is in the support, (n,)."""
        ...

    def sample(self, n_samples: int, generator: np.random.Generator) -> Array:
        """Sets drawn uniformly from the support, with replacement, (n_samples, l)."""
        sets = self.enumerate()
        return sets[generator.integers(0, len(sets), n_samples)]

    def expectation(self, target: Target | str) -> Expectation:
        """The exact moments of a target on this space; refused where there is no exact way."""
        from setwise.spaces.expectation import SubsetExpectation, Tempered

        paired = self.paired(target)
        return (SubsetExpectation if paired.form == "subset" else Tempered)(paired, self)

    def features(self, sets: Array) -> Array:
        """The sufficient statistic of each parameter, 0 or 1, (m, p)."""
        return np.empty((len(sets), 0))

    def feature_sums(self, sets: Array, weights: Array) -> Array:
        """The weighted sum over some sets of their features, (p,)."""
        return weights @ self.features(sets)

    def others(self, values: Array, total: Array) -> Array:
        """E[u; feature 0] (n, p) from E[u feature] (n, p) and E[u] (n,), of any u of 0 or more.

        Of a group of features exactly one is 1: it is the sum of the others, without a difference.
        """
        group = self.feature_group
        return others_of_group(values, group) if group else np.zeros_like(values)

    def shares(self, scores: Array) -> tuple[Array, Array]:
        """The law as a mixture of that of the base at these scores and of single favoured sets.

        The share of the base (n,) and those of the sets (n, K); all and none without ``favoured``.
        """
        return np.ones(len(scores)), np.empty((len(scores), 0))

    def moments(self, scores: Array, *, features: bool = False) -> Moments:
        """A, the marginals and, with ``features``, the means of the features."""
        ...

    def mean_scores(self, scores: Array, parameters: bool = True) -> tuple[Array, Array, Array]:
        """A (n,), its gradient by the scores, and that by the parameters, (n, p).

        Without ``parameters`` the last may be left out.
        """
        m = self.moments(scores, features=parameters)
        return m.log_partition, m.on - m.off, m.features

    def mean(
        self, target: Target, scores: Array, y_true: Array, of: Of, parameters: bool = True
    ) -> Mean:
        """A, E[u], E[u y'] and E[u feature] of a target that `paired` has accepted."""
        from setwise.spaces.listing import listed_mean

        return listed_mean(self, target, scores, y_true, of)

    def log_probability(self, scores: Array, sets: Array) -> Array:
        """log s(y') of one set a row, -inf outside the support, (n,)."""
        inside = self.contains(sets)
        return np.where(inside, -self.negative_log_likelihood(scores, sets, False)[0], -np.inf)

    def negative_log_likelihood(
        self, scores: Array, sets: Array, parameters: bool = True
    ) -> tuple[Array, Array, Array]:
        """-log s(y) of one set a row, (n,), and its gradients by scores and by parameters.

        The gradients are (n, n_scores), in the precision of the scores, and (n, p). The sets must
        be in the support: ask `contains` first. Without ``parameters`` the last may be left out; it
        is 0 for parameters of -inf.
        """
        m = self.moments(scores.astype(np.float64), features=parameters)
        # E[y'_i] - y_i as twice the probability of the other state, accurate near 0.
        by_score = 2.0 * np.where(sets == 1, -m.off, m.on)
        weight = np.einsum("ij,ij->i", 2.0 * sets - 1.0, scores)
        features = self.features(sets)
        weight += weighted_features(features, self.parameters)
        by_parameter = m.features
        if parameters and self.feature_group:
            # Of a group exactly one feature is 1, so 1 - P(one) is the sum of the others.
            others = others_of_group(m.features, self.feature_group)
            by_parameter = np.where(features == 1.0, -others, m.features)
            by_parameter *= np.isfinite(self.parameters)
        return m.log_partition - weight, by_score.astype(scores.dtype), by_parameter

    def summed_likelihood(
        self, scores: Array, sets: Array, weights: Array, parameters: bool = True
    ) -> tuple[Array, Array, Array]:
        """The same, but of the gradient by the parameters the weighted sum over rows, (p,)."""
        value, by_score, by_parameter = self.negative_log_likelihood(scores, sets, parameters)
        return value, by_score, weights @ by_parameter

    def paired(self, target: Target | str) -> Target:
        """The target as it is on this space; refused where its expectation has no exact way."""
        from setwise.spaces.listing import listing_of
        from setwise.targets.measure import Table

        paired = get_target(target).on(self)
        if paired.form in self.carries:
            return paired
        if not self.is_listable:
            raise ValueError(
                f"{paired} (a {paired.form} target) has no exact expectation on {self}: it would "
                f"need all e^{self.log_size:.0f} label sets. Use {_alternatives(paired, self)}"
            )
        measure = paired.measure(self.n_labels, "loss")
        if isinstance(measure, Table):
            try:
                # (Of a list also the sets that are excluded: they have a place in its sums.)
                measure.index(listing_of(self).sets, "sets")
            except ValueError as error:
                raise ValueError(f"{paired} does not cover {self}: {error}") from None
        return paired

    def start_scores(self, sets: Array, weights: Array) -> Array:
        """Scores, alike for every row, at which the distribution is near that of weighted sets.

        Here half the log-odds of each label, with half a row added to every count.
        """
        count = label_sums(sets, weights)
        share = (count + 0.5) / (weights.sum() + 1.0)
        return (np.log(share) - np.log1p(-share)) / 2.0

    @property
    def is_listable(self) -> bool:
        """Whether there are few enough sets to go through all of them."""
        return self.is_list or self.has_at_most(LISTABLE)

    def has_at_most(self, count: int) -> bool:
        """Whether there are no more sets than that."""
        return self.log_size <= np.log(count) + 1e-9

    @property
    def has_every_set(self) -> bool:
        """Whether all 2^l label sets are there."""
        return self.log_size >= self.n_labels * np.log(2.0) - 1e-9


def _alternatives(target: Target, space: Space) -> str:
    if target.form == "table":
        return "a Catalog of the label sets of the table"
    return (
        f"Cube({space.n_labels}), Sized or Slice, or a Catalog of label sets, "
        f"where any function of the counts is exact"
    )


def others_of_group(values: Array, group: int) -> Array:
    """The sum of all other entries of each group of the last axis, none of them below 0.

    Accurate also where one entry is nearly all of its group.
    """
    shape = values.shape
    if values.ndim == 2 and group == shape[1]:
        return sum_of_others(values)
    values = values.reshape(*shape[:-1], shape[-1] // group, group)
    before, after = np.zeros_like(values), np.zeros_like(values)
    np.cumsum(values[..., :-1], axis=-1, out=before[..., 1:])
    after[..., :-1] = np.cumsum(values[..., :0:-1], axis=-1)[..., ::-1]
    return (before + after).reshape(shape)


def sum_of_others(values: Array) -> Array:
    """The same of one group, (n, group), in less time.

    Only the largest entry can be more than half of the sum: the others of it are added up, those of
    smaller entries are the sum less the entry.
    """
    rows, largest = np.arange(len(values)), values.argmax(axis=1)
    rest = values.copy()
    rest[rows, largest] = 0.0
    found = values.sum(axis=1, keepdims=True) - values
    found[rows, largest] = rest.sum(axis=1)
    return found


def tempered_values(values: Array, q: float) -> Array:
    """Finite entries times q; -inf stays."""
    return np.where(np.isneginf(values), -np.inf, q * np.where(np.isneginf(values), 0.0, values))


def weighted_features(features: Array, parameters: Array) -> Array:
    """g of each set: features · parameters, where 0 times -inf counts as 0, (m,)."""
    excluded = np.isneginf(parameters)
    total = features[:, ~excluded] @ parameters[~excluded]
    return np.where(features[:, excluded].any(axis=1), -np.inf, total)


def require_space(space: Any) -> None:
    """Raise unless it is a space."""
    # (A protocol asks for every attribute; what inherits it has them.)
    if Space not in type(space).__mro__ and not isinstance(space, Space):
        raise ValueError(f"a space is an object such as Cube(10), but this is {space!r}")


def refuse_large(space: Space) -> None:
    """Raise if the support has more sets than can be listed."""
    if not space.has_at_most(ENUMERATION_LIMIT):
        raise ValueError(
            f"{space} has about e^{space.log_size:.1f} label sets, too many to list; "
            f"the limit is {ENUMERATION_LIMIT}"
        )


def all_sets(n_labels: int) -> NDArray[np.uint8]:
    """All 2^n_labels label sets in the order of binary numbers, label 0 the highest digit."""
    numbers = np.arange(2**n_labels, dtype=np.int64)[:, None]
    return ((numbers >> np.arange(n_labels - 1, -1, -1)) & 1).astype(np.uint8)


def smaller_first(sets: Array) -> Array:
    """The order of label sets by size, then those of lower labels first, (K,)."""
    return np.lexsort((*(1 - sets.T[::-1]), sets.sum(axis=1)))
