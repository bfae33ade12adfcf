"""All label sets: the labels are independent given the scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from setwise.spaces.space import Array, Moments, all_sets, refuse_large
from setwise.validation import label_matrix, score_matrix, whole_number


@dataclass(frozen=True)
class Cube:
    """All 2^l label sets of l labels.

    z(y') = y' · h, so A(h) = sum_i log(2 cosh h_i) and P(label i) = sigmoid(2 h_i): note the 2.
    O(l) a row. The most likely set has the labels with h_i >= 0 (sgn(0) = +1, as in the paper).

    Examples
    --------
    >>> Cube(3).most_likely([[2.0, -1.0, 0.0]])
    array([[1, 0, 1]], dtype=uint8)
    """

    n_labels: int
    is_independent = True
    is_path = False
    is_closed = False
    is_joint = False

    def __post_init__(self):
        object.__setattr__(self, "n_labels", whole_number(self.n_labels, "n_labels", 1))

    @property
    def size_bias(self) -> Array:
        """0 for every size."""
        return np.zeros(self.n_labels + 1)

    @property
    def n_scores(self) -> int:
        """One score for each label."""
        return self.n_labels

    @property
    def log_size(self) -> float:
        """log of the number of sets, l log 2."""
        return self.n_labels * float(np.log(2.0))

    @property
    def sizes(self) -> Array:
        """All sizes from 0 to the number of labels."""
        return np.arange(self.n_labels + 1)

    @property
    def parameters(self) -> Array:
        """None: the cube adds nothing to the scores."""
        return np.empty(0)

    @property
    def feature_group(self) -> int:
        """0: there are no features."""
        return 0

    def with_parameters(self, values) -> Cube:
        """The cube itself; it has no parameters."""
        if np.shape(values) != (0,):
            raise ValueError(f"{self} has no parameters, but got {np.shape(values)}")
        return self

    def tempered(self, q: float) -> Cube:
        """The cube itself; it has nothing to temper."""
        return self

    def log_partition(self, scores) -> Array:
        """A(h) = sum_i log(2 cosh h_i), (n,)."""
        checked = score_matrix(scores, self.n_labels)
        return self.mean_scores(checked.astype(np.float64))[0].astype(checked.dtype)

    def marginals(self, scores) -> Array:
        """sigmoid(2 h_i), (n, l)."""
        checked = score_matrix(scores, self.n_labels)
        return expit(2.0 * checked.astype(np.float64)).astype(checked.dtype)

    def most_likely(self, scores) -> Array:
        """The labels whose score is not negative, (n, l)."""
        return (score_matrix(scores, self.n_labels) >= 0).astype(np.uint8)

    def enumerate(self) -> Array:
        """All label sets, (2^l, l)."""
        refuse_large(self)
        return all_sets(self.n_labels)

    def contains(self, sets) -> Array:
        """True for every label set, (n,)."""
        return np.ones(len(label_matrix(sets, self.n_labels, "sets")), dtype=bool)

    def features(self, sets: Array) -> Array:
        """No parameters, so no features, (m, 0)."""
        return np.empty((len(sets), 0))

    def feature_gap(self, sets: Array, mean_features: Array) -> Array:
        """No parameters, so no features, (n, 0)."""
        return mean_features

    def mean_scores(self, scores: Array, parameters: bool = True) -> tuple[Array, Array, Array]:
        """A, tanh of the scores, and nothing for parameters."""
        size = np.abs(scores)
        log_partition = (size + np.log1p(np.exp(-2.0 * size))).sum(axis=1)
        return log_partition, np.tanh(scores), np.empty((len(scores), 0))

    def moments(self, scores: Array, features: bool = False) -> Moments:
        """The independent marginals."""
        log_partition, _, nothing = self.mean_scores(scores)
        return Moments(log_partition, expit(2.0 * scores), expit(-2.0 * scores), nothing)

    def log_probability(self, scores: Array, sets: Array) -> Array:
        """log s(y') of one set a row, accurate relative to itself, (n,)."""
        margin = np.where(sets == 1, scores, -scores)
        return -np.logaddexp(0.0, -2.0 * margin).sum(axis=1)

    def __str__(self) -> str:
        return f"Cube({self.n_labels})"
