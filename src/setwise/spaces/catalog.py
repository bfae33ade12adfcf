"""A list of label sets."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from setwise.spaces.listing import Listing, posterior_of, row_chunks
from setwise.spaces.space import Array, Moments, Space, tempered_values
from setwise.targets.measure import find_rows
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
    is_list = True

    def __post_init__(self):
        sets = label_matrix(self.sets, None, "sets")
        if len(sets) == 0 or sets.shape[1] == 0:
            raise ValueError(
                f"a Catalog needs at least one label set, but sets has shape {sets.shape}"
            )
        _refuse_duplicates(sets)
        bias = _biases(np.zeros(len(sets)) if self.bias is None else self.bias, len(sets))
        vars(self).update(sets=sets, bias=bias, n_labels=sets.shape[1], is_joint=self.joint)

    @property
    def n_scores(self) -> int:
        """One score for each label, or for each set if joint."""
        return len(self.sets) if self.joint else self.n_labels

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

    @property
    def feature_group(self) -> int:
        """All: a set stands in one place of the list."""
        return len(self.sets)

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
        place = find_rows(self.sets, label_matrix(sets, self.n_labels, "sets"))
        return (place >= 0) & (self.bias[place] > -np.inf)

    def features(self, sets: Array) -> Array:
        """1 at the place of each set in the list, (m, K)."""
        return (find_rows(self.sets, sets)[:, None] == np.arange(len(self.sets))).astype(np.float64)

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
        """-log s(y) and its gradients, those of a softmax over the list.

        What the other sets weigh is kept apart, so that it may be small.
        """
        place, parts = find_rows(self.sets, sets), []
        for rows in row_chunks(len(scores), self):
            weights = self.weights(scores[rows].astype(np.float64))
            true = np.arange(len(weights)), place[rows]
            here, high = weights[true], weights.max(axis=1)
            gradient = np.exp(weights - high[:, None])
            gradient[true] = 0.0
            others, own = gradient.sum(axis=1), np.exp(here - high)
            gradient /= (own + others)[:, None]
            gradient[true] = -others / (own + others)
            near = others < own
            value = np.where(
                near,
                np.log1p(others / np.where(near, own, 1.0)),
                np.log(own + others) + high - here,
            )
            by_score, by_set = self.aggregate(gradient)
            by_set = by_set if parameters else by_set[:, :0]
            parts.append((value, by_score.astype(scores.dtype), by_set))
        value, by_score, by_set = (np.concatenate(part) for part in zip(*parts, strict=True))
        return value, by_score, by_set

    def __str__(self) -> str:
        return f"Catalog of {len(self.sets)} sets of {self.n_labels} labels"


def _biases(values: Any, n_sets: int) -> Array:
    bias = real_vector(values, n_sets, "bias", minus_infinity=True)
    if np.isneginf(bias).all():
        raise ValueError("bias must allow at least one label set, but every entry is -inf")
    return bias


def _refuse_duplicates(sets: Array) -> None:
    seen: dict[bytes, int] = {}
    for row, labels in enumerate(sets):
        first = seen.setdefault(labels.tobytes(), row)
        if first != row:
            raise ValueError(
                f"sets must not list a label set twice, but rows {first} and {row} are both "
                f"{labels.tolist()}"
            )
