"""A list of label sets."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from setwise.kernels import exp, inner, kernel
from setwise.spaces.listing import Listing, posterior_of
from setwise.spaces.prefixes import Prefixes, expected_rows
from setwise.spaces.space import Array, Moments, Space, tempered_values
from setwise.sparse import row_ranges
from setwise.spelling import brief
from setwise.targets.measure import RowIndex
from setwise.threads import for_rows
from setwise.validation import label_matrix, real_vector, score_matrix

# Rows that a pass over the list takes side by side.
LANES = 16
# The exponential of less is 0.
LEAST_EXPONENT = -700.0


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
            feature_group=len(sets),
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
        place = self._index.find(label_matrix(sets, self.n_labels, "sets"))
        return (place >= 0) & (self.bias[place] > -np.inf)

    def features(self, sets: Array) -> Array:
        """1 at the place of each set in the list, (m, K)."""
        return (self._index.find(sets)[:, None] == np.arange(len(self.sets))).astype(np.float64)

    def feature_sums(self, sets: Array, weights: Array) -> Array:
        """The weights of the rows that have each listed set, (K,)."""
        place = self._index.find(sets)
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
        """-log s(y) and its gradients, by going through the scores of each listed set."""
        n, precise = len(scores), scores.astype(np.float64, copy=False)
        place, value, by_score = self._index.find(sets), np.empty(n), np.empty_like(precise)
        by_set = np.empty((n if parameters else 0, self.count))
        for_rows(
            likelihood_rows, n, precise, *self._touched, self.bias, place, value, by_score, by_set
        )
        by_score = by_score.astype(scores.dtype, copy=False)
        return value, by_score, by_set if parameters else np.empty((n, 0))

    @property
    def has_expected(self) -> bool:
        """By the common beginnings of the sets."""
        return not self.joint

    def expected(self, scores: Array, weights: Array) -> tuple[Array, Array]:
        """P(label), (n, l), and the weighted sum over rows of P of each listed set, (K,).

        By products along the common beginnings of the sets; rows whose scores are too large for
        that, by the logarithms of all weights.
        """
        if self.joint:
            return super().expected(scores, weights)
        parent, label, place = self._prefixes
        high = self.bias.max()
        factor = np.where(place < 0, 0.0, np.exp(self.bias[place] - high))
        likely, within = np.empty(scores.shape), np.empty(len(scores), np.bool_)
        parts: dict[int, Array] = {}

        def of_rows(start: int, stop: int) -> None:
            parts[start] = np.zeros(len(place))
            given = scores, parent, label, factor, weights, likely, within, parts[start]
            expected_rows(start, stop, *given)

        for_rows(of_rows, len(scores))
        totals = np.zeros(self.count)
        # (In the order of the rows, whichever thread was first.)
        by_node = np.sum([parts[start] for start in sorted(parts)], axis=0)
        totals[place[place >= 0]] = by_node[place >= 0]
        beyond = np.flatnonzero(~within)
        for rows in row_ranges(len(beyond), self.count):
            part = beyond[rows]
            likely[part], more = super().expected(scores[part], weights[part])
            totals += more
        return likely, totals

    def start_scores(self, sets: Array, weights: Array) -> Array:
        """Zeros: the biases hold how frequent the sets are."""
        return np.zeros(self.n_scores)

    @cached_property
    def _index(self) -> RowIndex:
        """Where each set stands."""
        return RowIndex.of(self.sets)

    @cached_property
    def _prefixes(self) -> Prefixes:
        """The sets by their common beginnings."""
        return Prefixes.of(self.sets)

    @cached_property
    def _touched(self) -> tuple[Array, Array, float]:
        """Which scores weigh in each set, in compressed rows, and how much each does."""
        if self.joint:
            return np.arange(self.count + 1), np.arange(self.count), 1.0
        return *touched(self.sets), 2.0

    __repr__ = brief

    def __str__(self) -> str:
        return f"Catalog of {len(self.sets)} sets of {self.n_labels} labels"


def touched(sets: Array) -> tuple[Array, Array]:
    """The labels of each set in compressed rows: where each begins (K + 1,), and the labels."""
    rows, labels = np.nonzero(sets)
    # (Labels are every second number of an array; side by side they are read faster.)
    return np.searchsorted(rows, np.arange(len(sets) + 1)), np.ascontiguousarray(labels)


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


@kernel
def likelihood_rows(
    start, stop, scores, begins, columns, factor, bias, place, value, by_score, by_set
):
    """-log s(y) (n,), its gradient by the scores (n, n_scores) and, if it has rows, by biases.

    Set k weighs ``factor`` times its scores, columns[begins[k] : begins[k + 1]], plus its bias and
    a number common to all; ``place`` (n,) says where in the list y stands. The true set is kept
    apart from the others: what they weigh together is what y lacks of probability 1, also where
    that is small. Rows go through side by side, `LANES` at a time; lanes beyond the last row repeat
    it and are not written.
    """
    n_sets, n_scores = len(bias), scores.shape[1]
    line, out = np.empty(n_scores * LANES), np.empty(n_scores * LANES)
    weight, high, here = np.empty(n_sets * LANES), np.empty(LANES), np.empty(LANES)
    others, share = np.empty(LANES), np.empty(LANES)
    for first in range(start, stop, LANES):
        for b in range(LANES):
            row = min(first + b, stop - 1)
            for i in range(n_scores):
                line[i * LANES + b] = factor * np.float64(scores[row, i])
        weigh(line, begins, columns, bias, weight, high)
        for b in range(LANES):
            true = place[min(first + b, stop - 1)] * LANES + b
            here[b], weight[true] = weight[true], -np.inf
        exponentials(weight, high, others)
        for b in range(LANES):
            own = exp(here[b] - high[b]) if here[b] - high[b] > LEAST_EXPONENT else 0.0
            share[b] = 1.0 / (own + others[b])
            row = min(first + b, stop - 1)
            weight[place[row] * LANES + b] = -others[b]
            value[row] = (
                np.log1p(others[b] / own) if others[b] < own
                else np.log(own + others[b]) + high[b] - here[b]
            )  # fmt: skip
        collect(weight, begins, columns, share, out)
        for b in range(min(LANES, stop - first)):
            for i in range(n_scores):
                by_score[first + b, i] = factor * out[i * LANES + b]
            if len(by_set) > 0:
                for k in range(n_sets):
                    by_set[first + b, k] = weight[k * LANES + b]


@inner
def weigh(line, begins, columns, bias, weight, high):
    """The weight of each set in each lane, and the highest of each lane."""
    high[:] = -np.inf
    for k in range(len(bias)):
        here = k * LANES
        for b in range(LANES):
            weight[here + b] = bias[k]
        for position in range(begins[k], begins[k + 1]):
            source = columns[position] * LANES
            for b in range(LANES):
                weight[here + b] += line[source + b]
        for b in range(LANES):
            high[b] = max(high[b], weight[here + b])


@inner
def exponentials(weight, high, total):
    """e^(weight - high) in place of the weights, 0 where a set is excluded; their sums by lane."""
    total[:] = 0.0
    for k in range(len(weight) // LANES):
        for b in range(LANES):
            below = weight[k * LANES + b] - high[b]
            weight[k * LANES + b] = exp(below) if below > LEAST_EXPONENT else 0.0
            total[b] += weight[k * LANES + b]


@inner
def collect(weight, begins, columns, share, out):
    """Weights times the ``share`` of their lane, and their sums over the sets of each score."""
    out[:] = 0.0
    for k in range(len(begins) - 1):
        here = k * LANES
        for b in range(LANES):
            weight[here + b] *= share[b]
        for position in range(begins[k], begins[k + 1]):
            to = columns[position] * LANES
            for b in range(LANES):
                out[to + b] += weight[here + b]
