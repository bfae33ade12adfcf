"""Label sets weighted by their size."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import gammaln

from setwise.spaces.space import Array, Moments, refuse_large, tempered_values
from setwise.threads import for_rows
from setwise.validation import label_matrix, real_vector, score_matrix, whole_number


@dataclass(frozen=True, eq=False)
class Sized:
    """Label sets with a bias for their size: z(y') = y' · h + bias[size of y'].

    Elementary symmetric polynomials forward and backward, O(l K) a row with K the largest size.

    Parameters
    ----------
    n_labels : int
        Number of labels.
    bias : array of shape (K + 1,)
        ``bias[k]`` for sets of size k, -inf where that size is excluded; sizes beyond the end of
        the array are excluded.

    Examples
    --------
    One or two labels of three, all sets equally likely:

    >>> Sized(3, [-np.inf, 0.0, 0.0]).marginals([[0.0, 0.0, 0.0]])
    array([[0.5, 0.5, 0.5]])
    """

    n_labels: int
    bias: Any
    _largest: int = field(init=False, repr=False)
    is_independent = False
    is_path = False
    is_closed = False
    is_joint = False

    def __post_init__(self):
        n_labels = whole_number(self.n_labels, "n_labels", 1)
        bias = real_vector(self.bias, None, "bias", minus_infinity=True)
        if len(bias) > n_labels + 1:
            raise ValueError(
                f"bias must have at most {n_labels + 1} entries, one for each size from 0 to "
                f"{n_labels}, but it has {len(bias)}"
            )
        allowed = np.flatnonzero(bias > -np.inf)
        if len(allowed) == 0:
            raise ValueError("bias must allow at least one size, but every entry is -inf")
        object.__setattr__(self, "n_labels", n_labels)
        object.__setattr__(self, "bias", bias)
        object.__setattr__(self, "_largest", int(allowed[-1]))
        self._refuse_wide()

    @property
    def size_bias(self) -> Array:
        """The bias of each size up to the largest."""
        return self.bias[: self._largest + 1]

    @property
    def n_scores(self) -> int:
        """One score for each label."""
        return self.n_labels

    @property
    def sizes(self) -> Array:
        """The sizes that are not excluded."""
        return np.flatnonzero(self.bias > -np.inf)

    @property
    def log_size(self) -> float:
        """log of the number of sets of the allowed sizes."""
        return float(np.logaddexp.reduce(log_binomial(self.n_labels, self.sizes)))

    @property
    def parameters(self) -> Array:
        """The bias of each size."""
        return self.bias.copy()

    @property
    def feature_group(self) -> int:
        """All: a set has one size."""
        return len(self.bias)

    def with_parameters(self, values) -> Sized:
        """The same labels with other biases."""
        return replace(self, bias=real_vector(values, len(self.bias), "bias", minus_infinity=True))

    def tempered(self, q: float) -> Sized:
        """Finite biases times q."""
        return replace(self, bias=tempered_values(self.bias, q))

    def log_partition(self, scores) -> Array:
        """A(h) from the symmetric polynomials of all allowed sizes, (n,)."""
        checked = score_matrix(scores, self.n_labels)
        return self.moments(checked.astype(np.float64)).log_partition.astype(checked.dtype)

    def marginals(self, scores) -> Array:
        """P(label in the set), (n, l)."""
        checked = score_matrix(scores, self.n_labels)
        return self.moments(checked.astype(np.float64)).on.astype(checked.dtype)

    def most_likely(self, scores) -> Array:
        """The best size and its top labels; ties: the smaller size, the lower label, (n, l)."""
        checked = score_matrix(scores, self.n_labels).astype(np.float64)
        order = np.argsort(-checked, axis=1, kind="stable")
        gains = np.cumsum(2.0 * np.take_along_axis(checked, order, axis=1), axis=1)
        weights = np.hstack([np.zeros((len(checked), 1)), gains])[:, : len(self.bias)] + self.bias
        best = np.argmax(weights, axis=1)
        out = np.zeros(checked.shape, dtype=np.uint8)
        chosen = np.arange(self.n_labels)[None, :] < best[:, None]
        np.put_along_axis(out, order, chosen.astype(np.uint8), axis=1)
        return out

    def enumerate(self) -> Array:
        """All sets of the allowed sizes, in the order of binary numbers, (|Y|, l)."""
        refuse_large(self)
        sets = np.zeros((round(np.exp(self.log_size)), self.n_labels), dtype=np.uint8)
        row = 0
        for size in self.sizes:
            for labels in combinations(range(self.n_labels), int(size)):
                sets[row, list(labels)] = 1
                row += 1
        return sets[np.lexsort(sets.T[::-1])]

    def contains(self, sets) -> Array:
        """Whether the set has an allowed size, (n,)."""
        size = label_matrix(sets, self.n_labels, "sets").sum(axis=1, dtype=np.int64)
        allowed = np.zeros(self.n_labels + 1, dtype=bool)
        allowed[self.sizes] = True
        return allowed[size]

    def features(self, sets: Array) -> Array:
        """1 at the size of each set, (m, len(bias))."""
        size = sets.sum(axis=1, dtype=np.int64)
        return (size[:, None] == np.arange(len(self.bias))).astype(np.float64)

    def feature_gap(self, sets: Array, mean_features: Array) -> Array:
        """Features of one set a row less their means, accurate where the mean is near 1."""
        others = mean_features @ (1.0 - np.eye(len(self.bias)))
        return np.where(self.features(sets) == 1.0, others, -mean_features)

    def mean_scores(self, scores: Array, parameters: bool = True) -> tuple[Array, Array, Array]:
        """A and its gradients: E[y'] and the probability of each size."""
        moments = self.moments(scores)
        return moments.log_partition, moments.on - moments.off, moments.features

    def moments(
        self, scores: Array, values: tuple[Array, Array] | None = None, features: bool = True
    ) -> Moments:
        """Marginals and, with ``values`` = (on, off) of shape (n, l), the moments of their sum."""
        from setwise.spaces.symmetric import moments_rows

        n, n_labels = scores.shape
        rows = n if values is not None else 0
        on_value, off_value = values if values is not None else np.empty((2, 0, n_labels))
        log_partition, on, off = np.empty(n), np.empty((n, n_labels)), np.empty((n, n_labels))
        size, total_size = np.zeros((n, len(self.bias))), np.zeros((rows, len(self.bias)))
        total, total_on, total_off = np.empty(rows), *np.empty((2, rows, n_labels))
        for_rows(
            moments_rows, n, scores, self.bias[: self._largest + 1], on_value, off_value,
            log_partition, on, off, size, total, total_on, total_off, total_size, least=8,
        )  # fmt: skip
        if values is None:
            return Moments(log_partition, on, off, size)
        return Moments(log_partition, on, off, size, total, total_on, total_off, total_size)

    def log_probability(self, scores: Array, sets: Array) -> Array:
        """log s(y') of one set a row, -inf outside the support, (n,)."""
        padded = np.full(self.n_labels + 1, -np.inf)
        padded[: len(self.bias)] = self.bias
        weight = ((2.0 * sets - 1.0) * scores).sum(axis=1) + padded[
            sets.sum(axis=1, dtype=np.int64)
        ]
        return weight - self.moments(scores).log_partition

    def __str__(self) -> str:
        if len(self.sizes) == 1:
            return f"Slice({self.n_labels}, {self.sizes[0]})"
        return f"Sized({self.n_labels}, sizes {self.sizes[0]} to {self.sizes[-1]})"

    def _refuse_wide(self) -> None:
        from setwise.spaces.symmetric import LARGEST_LOG_BINOMIAL

        middle = min(self._largest, self.n_labels // 2)
        if log_binomial(self.n_labels, np.array([middle]))[0] > LARGEST_LOG_BINOMIAL:
            raise ValueError(
                f"a Sized space of {self.n_labels} labels and sizes up to {self._largest} is wider "
                f"than its arithmetic: log C(n_labels, size) must not exceed "
                f"{LARGEST_LOG_BINOMIAL:.0f}; use a smaller largest size, or Cube"
            )


def Slice(n_labels: int, size: int) -> Sized:
    """The label sets of exactly ``size`` labels: a Sized space with a single size.

    Examples
    --------
    >>> Slice(4, 2).most_likely([[0.1, 0.5, 0.5, 0.5]])
    array([[0, 1, 1, 0]], dtype=uint8)
    """
    n_labels = whole_number(n_labels, "n_labels", 1)
    if size not in range(n_labels + 1):
        raise ValueError(
            f"size must be a whole number from 0 to the {n_labels} labels, but it is {size!r}"
        )
    return Sized(n_labels, np.where(np.arange(size + 1) == size, 0.0, -np.inf))


def log_binomial(n: int, k: Array) -> Array:
    """log C(n, k)."""
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
