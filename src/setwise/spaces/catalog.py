"""A list of label sets."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from setwise.spaces.listing import Listing, posterior_apart, posterior_of
from setwise.spaces.prefixes import Lookup, within_products
from setwise.spaces.space import Array, Moments, Space, tempered_values
from setwise.sparse import row_ranges
from setwise.spelling import brief
from setwise.validation import label_matrix, real_vector, score_matrix


@dataclass(frozen=True, eq=False)
class Catalog(Listing, Space):
    """Listed label sets with a bias each.

    Label-wise scores: z(y'_k) = y'_k · h + bias[k], one matrix product. Joint scores: one score
    for each listed set, z(y'_k) = h_k + bias[k]; then every distribution on the list is reachable.

    Parameters
    ----------
    sets : array of shape (K, n_labels)
        The label sets, no two alike.
    bias : array of shape (K,), optional
        Finite, or -inf to exclude a set; 0 by default.
    joint : bool, default False
        Whether there is a score for each set rather than for each label.

    Examples
    --------
    >>> Catalog([[1, 0], [0, 1]]).most_likely([[0.3, 0.2]])
    array([[1, 0]], dtype=uint8)
    """

    sets: Any
    bias: Any = None
    joint: bool = False
    n_labels: int = field(init=False, repr=False)
    is_joint: bool = field(init=False, repr=False)
    feature_group: int = field(init=False, repr=False)
    _lookup: ClassVar[Lookup]
    is_list = True

    def __post_init__(self):
        sets = label_matrix(self.sets, None, "sets")
        if len(sets) == 0 or sets.shape[1] == 0:
            raise ValueError(
                f"a Catalog needs at least one label set, but sets has shape {sets.shape}"
            )
        refuse_duplicates(sets)
        bias = _biases(np.zeros(len(sets)) if self.bias is None else self.bias, len(sets))
        vars(self).update(
            sets=sets, bias=bias, n_labels=sets.shape[1], is_joint=self.joint,
            feature_group=len(sets), _lookup=Lookup(sets),
        )  # fmt: skip

    @property
    def n_scores(self) -> int:
        """One score for each label, or for each set if joint."""
        return self.count if self.joint else self.n_labels

    @property
    def log_size(self) -> float:
        """log of the number of sets that are not excluded."""
        return float(np.log(np.count_nonzero(self.bias > -np.inf)))

    @property
    def sizes(self) -> Array:
        """The sizes of the listed sets that are not excluded."""
        return np.unique(self.enumerate().sum(axis=1, dtype=np.int64))

    @property
    def parameters(self) -> Array:
        """The bias of each set."""
        return self.bias.copy()

    def with_parameters(self, values) -> Catalog:
        """The same list, which is not checked again, with other biases."""
        other = copy(self)
        vars(other).update(bias=_biases(values, len(self.sets)))
        return other

    def tempered(self, q: float) -> Catalog:
        """Finite biases times q."""
        return self.with_parameters(tempered_values(self.bias, q))

    def most_likely(self, scores) -> Array:
        """The heaviest set; ties: the earlier row of the list, (n, l)."""
        checked = score_matrix(scores, self.n_scores).astype(np.float64)
        return self.sets[np.argmax(self.weights(checked), axis=1)]

    def enumerate(self) -> Array:
        """The listed sets that are not excluded, in the order of the list, (|Y|, l)."""
        return self.sets[self.bias > -np.inf]

    def contains(self, sets) -> Array:
        """Whether the set is listed and not excluded, (n,)."""
        place = self._lookup.index.find(label_matrix(sets, self.n_labels, "sets"))
        return (place >= 0) & (self.bias[place] > -np.inf)

    def features(self, sets: Array) -> Array:
        """1 at the place of each set in the list, (m, K)."""
        return (self._lookup.index.find(sets)[:, None] == np.arange(len(self.sets))).astype(
            np.float64
        )

    def feature_sums(self, sets: Array, weights: Array) -> Array:
        """The weights of the rows that have each listed set, (K,)."""
        place = self._lookup.index.find(sets)
        return np.bincount(place[place >= 0], weights[place >= 0], self.count)

    def moments(self, scores: Array, *, features: bool = False) -> Moments:
        """A, the marginals and the probability of each listed set."""
        log_partition, posterior = posterior_of(self, scores)
        sets = self.sets.astype(np.float64)
        return Moments(log_partition, posterior @ sets, posterior @ (1.0 - sets), posterior)

    def mean_scores(self, scores: Array, parameters: bool = True) -> tuple[Array, Array, Array]:
        """A and its gradients."""
        log_partition, posterior = posterior_of(self, scores)
        return log_partition, *self.aggregate(posterior)

    def negative_log_likelihood(
        self, scores: Array, sets: Array, parameters: bool = True
    ) -> tuple[Array, Array, Array]:
        """-log s(y) and its gradients; those by the biases from the logarithms of all weights."""
        n = len(scores)
        if not parameters:
            return *self.summed_likelihood(scores, sets, np.ones(n))[:2], np.empty((n, 0))
        value, by_set = posterior_apart(self.weights(scores), self._lookup.index.find(sets))
        return value, self.aggregate(by_set)[0].astype(scores.dtype), by_set

    def summed_likelihood(
        self, scores: Array, sets: Array, weights: Array, parameters: bool = True
    ) -> tuple[Array, Array, Array]:
        """The same with a sum over rows, by products of what the listed sets have in common.

        Rows whose scores are too large for that, by the logarithms of all weights.
        """
        place, bias = self._lookup.index.find(sets), self.bias - self.bias.max()
        value, by_score, total = np.empty(len(scores)), np.empty_like(scores), np.zeros(self.count)
        near = np.zeros(len(scores), bool)
        if not self.joint:
            own = 2.0 * np.einsum("ij,ij->i", scores, sets)
            own += np.where(place < 0, -np.inf, bias[place])
            near = within_products(scores, own)
            rows = slice(None) if near.all() else np.flatnonzero(near)
            value[rows], by_score[rows], total = self._by_products(
                scores[rows], sets[rows], place[rows], -own[rows], weights[rows]
            )
        far = np.flatnonzero(~near)
        for part in row_ranges(len(far), self.count) if len(far) else ():
            rows = far[part]
            found = posterior_apart(self.weights(scores[rows]), place[rows])
            value[rows], by_score[rows] = found[0], self.aggregate(found[1])[0]
            total += weights[rows] @ found[1]
        return value, by_score, total

    def _by_products(
        self, scores: Array, sets: Array, place: Array, start: Array, weights: Array
    ) -> tuple[Array, Array, Array]:
        """`summed_likelihood` of rows within reach of products; what all weigh over the true set.

        The true set is kept apart from the others: what they weigh together is what y lacks of
        probability 1, also where that is small.
        """
        factor, ones = np.exp(self.bias - self.bias.max()), np.ones(len(scores))
        others, by_score, by_set = self._lookup.halves.sums(
            scores, sets, factor, start, place, ones, weights
        )
        lacks = others / (1.0 + others)
        by_true = np.bincount(place, weights * lacks, self.count)
        return np.log1p(others), by_score, factor * by_set - by_true

    def start_scores(self, sets: Array, weights: Array) -> Array:
        """Zeros: the biases hold how frequent the sets are."""
        return np.zeros(self.n_scores)

    __repr__ = brief

    def __str__(self) -> str:
        return f"Catalog of {len(self.sets)} sets of {self.n_labels} labels"


def _biases(values: Any, n_sets: int) -> Array:
    bias = real_vector(values, n_sets, "bias", minus_infinity=True)
    if np.isneginf(bias).all():
        raise ValueError("bias must allow at least one label set, but every entry is -inf")
    return bias


def refuse_duplicates(sets: Array) -> None:
    """Raise if two rows are the same label set."""
    seen: dict[bytes, int] = {}
    for row, labels in enumerate(sets):
        first = seen.setdefault(labels.tobytes(), row)
        if first != row:
            raise ValueError(
                f"sets must not list a label set twice, but rows {first} and {row} are both "
                f"{labels.tolist()}"
            )
