"""The distributions that models give: independent labels, listed sets, scores on a space."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit

from setwise.distributions.distribution import (
    SUM_ERROR,
    TIE,
    Array,
    Distribution,
    Ranked,
    one_set_a_row,
)
from setwise.kernels import copy_into, view_kernel
from setwise.spaces.catalog import Catalog
from setwise.spaces.listing import SizeSums, listing_of, posterior_of
from setwise.spaces.space import require_space, smaller_first
from setwise.spaces.symmetric import fill, moments_room, size_law, sweep
from setwise.targets.measure import find_rows
from setwise.threads import for_rows
from setwise.validation import probability_matrix, real_array, score_matrix


@dataclass(frozen=True, eq=False)
class Independent(Distribution):
    """Labels that are independent of each other: P(y) = prod_i p_i^(y_i) (1 - p_i)^(1 - y_i).

    Parameters
    ----------
    probability : array or sparse matrix of shape (n, l)
        The probability of each label, in [0, 1]. In a sparse matrix absent means 0.

    Examples
    --------
    >>> Independent([[0.5, 0.25]]).log_probability([[1, 0]]).round(4)
    array([-0.9808])
    """

    probability: Any

    def __post_init__(self):
        vars(self).update(probability=probability_matrix(self.probability))

    @property
    def n_labels(self) -> int:
        return self.probability.shape[1]

    @property
    def is_sparse(self) -> bool:
        """Whether the probabilities are CSR."""
        return not isinstance(self.probability, np.ndarray)

    def __len__(self) -> int:
        return self.probability.shape[0]

    def __getitem__(self, rows) -> Independent:
        return Independent(self.probability[rows])

    def marginals(self) -> Any:
        """The probabilities as they were given, (n, l)."""
        return self.probability

    def log_probability(self, sets) -> Array:
        """Sum of log p over the labels of the set and of log(1 - p) over the others, (n,)."""
        checked, p = one_set_a_row(sets, self), self._dense()
        with np.errstate(divide="ignore"):
            return np.where(checked == 1, np.log(p), np.log1p(-p)).sum(axis=1)

    def tempered(self, power: float) -> Independent:
        """Log-odds times the power; what is certain stays so."""
        p = self.probability if not self.is_sparse else self.probability.copy()
        values = p.data if self.is_sparse else p
        with np.errstate(divide="ignore"):
            changed = expit(power * logit(values.astype(np.float64)))
        if not self.is_sparse:
            return Independent(changed)
        p.data = changed
        return Independent(p)

    def ranked(self) -> Ranked:
        """By their probabilities."""
        return Ranked(self.probability, None)

    def label_sizes(self) -> tuple[Array, Array]:
        """From the Poisson-binomial distribution of the size, O(l K^2) a row.

        K is the number of labels, or a smaller one that sets exceed with a probability below the
        precision of the others.
        """
        return label_sizes(self._dense(), None)

    def most_likely(self, second: bool) -> tuple[Array, Array, Array]:
        """The labels above 1/2; the next likely set has the least certain one the other way."""
        p = self._dense()
        likely = np.maximum(p, 1.0 - p)
        log_chance = np.log(likely).sum(axis=1)
        with np.errstate(divide="ignore"):
            other = log_chance + np.log(((1.0 - likely) / likely).max(axis=1))
        return (p > 0.5).astype(np.uint8), log_chance, other

    def _dense(self) -> Array:
        p = self.probability.toarray() if self.is_sparse else self.probability
        return p.astype(np.float64)

    def __str__(self) -> str:
        return "independent labels"


def label_sizes(values: Array, bias: Array | None) -> tuple[Array, Array]:
    """P(label, size) and P(size) of ranked labels; see `Ranked`. O(l K^2) a row."""
    n, n_labels = values.shape
    width = 1 + largest_size(values) if bias is None else len(bias)
    joint, size = np.empty((n, width, n_labels)), np.empty((n, width))
    given = np.empty(0) if bias is None else bias
    for_rows(
        label_size_rows, n, values, given, joint, size, least=1,
        room=lambda: (np.empty(n_labels), *moments_room(n_labels, width - 1)),
    )  # fmt: skip
    return joint, size


def largest_size(probability: Array) -> int:
    """A size that independent labels of such probabilities, (n, l), exceed with less than 1e-17.

    By Chernoff's bound: P(size >= k) <= exp(k - m) (m / k)^k for the mean size m, k > m.
    """
    mean, n_labels = probability.sum(axis=1).max(initial=0.0), probability.shape[1]
    sizes = np.arange(int(mean) + 1, n_labels + 1)
    bound = sizes - mean + sizes * np.log(max(mean, 1e-300) / np.maximum(sizes, 1))
    # (Sizes from the first that is too improbable on are left out.)
    rare = np.flatnonzero(bound < np.log(1e-17))
    return max(1, int(sizes[rare[0]]) - 1) if len(rare) else n_labels


def add_listed(
    joint: Array, size: Array, share: Array, sets: Array, shares: Array
) -> tuple[Array, Array]:
    """P(label, size) and P(size), which may be changed, times a share, and those of listed sets."""
    joint *= share[:, None, None]
    size *= share[:, None]
    own, own_size = SizeSums.of(sets)(shares)
    # (Listed sets may be larger than any that `largest_size` leaves.)
    lacks = max(0, own.shape[1] - joint.shape[1])
    joint, size = (
        np.pad(part, [(0, 0), (0, lacks), (0, 0)][: part.ndim]) for part in (joint, size)
    )
    joint[:, : own.shape[1]] += own
    size[:, : own.shape[1]] += own_size
    return joint, size


@view_kernel
def label_size_rows(start, stop, values, bias, joint, size, off, group, doubled, adjoint):
    """joint[row, s, i] and size[row, s] from values (n, l); see `label_sizes`.

    An empty ``bias`` means that the values are probabilities. The table of the sizes of the first j
    labels is filled once; then each size is carried back through it, alone. ``off`` (l,) and
    `moments_room` are what it works in.
    """
    n_labels, width = values.shape[1], joint.shape[1]
    last = group.table[n_labels]
    for row in range(start, stop):
        factored = True
        if len(bias) > 0:
            factored = size_law(values[row], bias, doubled, group, size[row])[0]
        else:
            for s in range(width):
                group.step[s] = 1.0
            for i in range(n_labels):
                group.weight[i], group.keep[i] = values[row, i], 1.0 - values[row, i]
            fill(True, group)
            copy_into(size[row], last)
        for s in range(width):
            for i in range(n_labels):
                joint[row, s, i] = 0.0
            if s > 0 and size[row, s] > 0.0:
                for k in range(width):
                    adjoint[k] = size[row, s] / last[s] if k == s else 0.0
                sweep(factored, group, adjoint, joint[row, s], off)


@dataclass(frozen=True, eq=False)
class Listed(Distribution):
    """A probability for each of K listed label sets; no other set is possible.

    Parameters
    ----------
    sets : array of shape (K, l)
        The label sets, no two alike.
    posterior : array of shape (n, K)
        The probability of each listed set; rows add up to 1.

    Examples
    --------
    >>> Listed([[1, 0], [1, 1]], [[0.75, 0.25]]).marginals()
    array([[1.  , 0.25]])
    """

    sets: Any
    posterior: Any

    def __post_init__(self):
        sets = Catalog(self.sets).sets
        vars(self).update(sets=sets, posterior=_posterior(self.posterior, len(sets)))

    @property
    def n_labels(self) -> int:
        return self.sets.shape[1]

    @classmethod
    def trusted(cls, sets: Array, posterior: Array) -> Listed:
        """Sets of a space and their probabilities, which need no check."""
        made = cls.__new__(cls)
        vars(made).update(sets=sets, posterior=posterior)
        return made

    def __len__(self) -> int:
        return len(self.posterior)

    def __getitem__(self, rows) -> Listed:
        posterior = self.posterior[rows]
        if posterior.ndim != 2:
            raise ValueError(f"rows must be a slice or an array of rows, but they are {rows!r}")
        return Listed.trusted(self.sets, posterior)

    def marginals(self) -> Array:
        """The sum of the probabilities of the sets with a label, (n, l)."""
        return np.clip(self.posterior @ self.sets, 0.0, 1.0)

    def log_probability(self, sets) -> Array:
        """log of the set's own entry, -inf where it is not listed, (n,)."""
        place = find_rows(self.sets, one_set_a_row(sets, self))
        with np.errstate(divide="ignore"):
            found = np.log(self.posterior[np.arange(len(place)), place])
        return np.where(place >= 0, found, -np.inf)

    def tempered(self, power: float) -> Listed:
        """Probabilities to that power, with a sum of 1."""
        highest = self.posterior.max(axis=1, keepdims=True)
        raised = (self.posterior / highest) ** power
        return Listed.trusted(self.sets, raised / raised.sum(axis=1, keepdims=True))

    def listed(self) -> tuple[Array, Array]:
        """The list itself."""
        return self.sets, self.posterior

    def label_sizes(self) -> tuple[Array, Array]:
        """Sums over the listed sets of each size, O(K l) a row."""
        return SizeSums.of(self.sets)(self.posterior)

    def most_likely(self, second: bool) -> tuple[Array, Array, Array]:
        """The set of highest probability, up to 1e-11; ties: the smaller, then the lower labels."""
        chance, rows = self.posterior, np.arange(len(self))
        tied = chance >= chance.max(axis=1, keepdims=True) - TIE
        place, several = np.argmax(tied, axis=1), np.flatnonzero(tied.sum(axis=1) > 1)
        if len(several):
            order = smaller_first(self.sets)
            place[several] = order[np.argmax(tied[several][:, order], axis=1)]
        highest, other = chance[rows, place], np.zeros(len(self))
        if second:
            chance = chance.copy()
            chance[rows, place] = 0.0
            other = chance.max(axis=1)
        with np.errstate(divide="ignore"):
            return self.sets[place], np.log(highest), np.log(other)

    def __str__(self) -> str:
        return f"a list of {len(self.sets)} label sets"


def _posterior(posterior: Any, n_sets: int) -> Array:
    array = real_array(posterior, "posterior").astype(np.float64)
    if array.ndim != 2 or array.shape[1] != n_sets or len(array) == 0:
        raise ValueError(
            f"posterior must have shape (n, {n_sets}), one column for each of the listed sets and "
            f"at least one row, but its shape is {array.shape}"
        )
    outside = np.argwhere(~((array >= 0.0) & (array <= 1.0 + SUM_ERROR)))
    if len(outside):
        row, column = outside[0].tolist()
        raise ValueError(
            f"posterior must lie in [0, 1], but posterior[{row}, {column}] is {array[row, column]}"
        )
    sums = array.sum(axis=1)
    row = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[row] - 1.0) > SUM_ERROR:
        raise ValueError(
            f"rows of posterior must add up to 1, but row {row} adds up to {sums[row]}"
        )
    return array


@dataclass(frozen=True, eq=False)
class OfSpace(Distribution):
    """Label sets of a space drawn with probability P(y) = exp(z(y) - A), z(y) = y · scores + g(y).

    (y as ±1; A is the log-partition function, g what the space adds.)

    Parameters
    ----------
    space : Space
        The label sets, such as ``Cube(10)``.
    scores : array of shape (n, space.n_scores)

    Examples
    --------
    >>> from setwise.spaces import Slice
    >>> OfSpace(Slice(3, 1), [[0.0, 0.0, 0.0]]).marginals().round(3)
    array([[0.333, 0.333, 0.333]])
    """

    space: Any
    scores: Any

    def __post_init__(self):
        require_space(self.space)
        scores = score_matrix(self.scores, self.space.n_scores)
        if 0 in scores.shape:
            raise ValueError(f"scores must have at least one row, but its shape is {scores.shape}")
        vars(self).update(scores=scores.astype(np.float64))

    @property
    def n_labels(self) -> int:
        return self.space.n_labels

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, rows) -> OfSpace:
        scores = self.scores[rows]
        if scores.ndim != 2 or len(scores) == 0:
            return replace(self, scores=scores)  # which says what is wrong
        some = copy(self)
        object.__setattr__(some, "scores", scores)
        return some

    def marginals(self) -> Array:
        """The space's marginals, without what rounding puts beyond 0 or 1, (n, l)."""
        return np.clip(self.space.marginals(self.scores), 0.0, 1.0)

    def log_probability(self, sets) -> Array:
        """z(y) - A, -inf outside the space, (n,)."""
        return self.space.log_probability(self.scores, one_set_a_row(sets, self))

    def tempered(self, power: float) -> Distribution:
        """Scores and what the space adds, times the power."""
        return OfSpace(self.space.tempered(power), power * self.scores)

    def ranked(self) -> Ranked | None:
        """By probability on independent labels, by score where only a bias for sizes is added."""
        if self.space.is_independent:
            return Ranked(self.marginals(), None)
        bias = self.space.size_bias
        return None if bias is None else Ranked(self.scores, bias)

    def listed(self) -> tuple[Array, Array] | None:
        """The sets of the space, if they are a list or few enough."""
        return self._list().listed() if self.space.is_listable else None

    def label_sizes(self) -> tuple[Array, Array] | None:
        """From the ranking of the labels or from the list, where there is one."""
        ranked = self.ranked()
        if ranked is not None:
            return label_sizes(ranked.values, ranked.bias)
        if self.space.has_label_sizes and self.space.favoured is not None:
            base, sets = self.space.favoured
            found: Any = replace(self, space=base).label_sizes()
            joint, size = found
            share, shares = self.space.shares(self.scores)
            return add_listed(joint, size, share, sets, shares)
        if not self.space.is_listable:
            return None
        listing = listing_of(self.space)
        return listing.size_sums(posterior_of(listing, self.scores)[1])

    def most_likely(self, second: bool) -> tuple[Array, Array, Array]:
        """The space's most likely set, and the best of those with some label the other way."""
        if self.space.is_list:
            return self._list().most_likely(second)
        space, scores = self.space, self.scores
        sets = space.most_likely(scores)
        other = np.full(len(scores), -np.inf)
        parameters = space.parameters[np.isfinite(space.parameters)]
        # More than any set can weigh: a label with such a score is decided by it.
        beyond = 4.0 * (1.0 + np.abs(scores).sum(axis=1) + np.abs(parameters).sum())
        for label in range(space.n_labels if second else 0):
            forced = scores.copy()
            forced[:, label] = np.where(sets[:, label] == 1, -beyond, beyond)
            changed = space.most_likely(forced)
            is_other = changed[:, label] != sets[:, label]
            found = np.where(is_other, space.log_probability(scores, changed), -np.inf)
            other = np.maximum(other, found)
        return sets, space.log_probability(scores, sets), other

    def _list(self) -> Listed:
        """The sets that are not excluded, and the probability of each."""
        listing = listing_of(self.space)
        sets, posterior = listing.sets, posterior_of(listing, self.scores)[1]
        allowed = listing.bias > -np.inf
        if not np.all(allowed):
            sets, posterior = sets[allowed], posterior[:, allowed]
        return Listed.trusted(sets, posterior)

    def __str__(self) -> str:
        return str(self.space)
