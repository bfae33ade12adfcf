"""Label sets weighted by their size."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import gammaln

from setwise.spaces.expectation import (
    Expectation,
    Mean,
    SubsetExpectation,
    Tempered,
    additive_mean,
)
from setwise.spaces.size_products import FEWEST_ROWS, product_rows, products_room
from setwise.spaces.space import Array, Moments, Space, refuse_large, tempered_values
from setwise.spaces.symmetric import (
    LARGEST_LOG_BINOMIAL,
    count_mean,
    moments_room,
    moments_rows,
    sum_moments_rows,
    sums_room,
)
from setwise.spelling import brief
from setwise.targets.measure import Of
from setwise.targets.target import Target
from setwise.threads import for_rows
from setwise.validation import label_matrix, real_vector, score_matrix, whole_number


@dataclass(frozen=True, eq=False)
class Sized(Space):
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
    log_size: float = field(init=False, repr=False)
    sizes: Array = field(init=False, repr=False)
    size_bias: Array = field(init=False, repr=False)
    feature_group: int = field(init=False, repr=False)
    carries = frozenset({"additive", "subset", "linear_fractional", "counts"})

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
        largest, middle = int(allowed[-1]), np.array([min(allowed[-1], n_labels // 2)])
        if log_binomial(n_labels, middle)[0] > LARGEST_LOG_BINOMIAL:
            raise ValueError(
                f"a Sized space of {n_labels} labels and sizes up to {largest} is wider than its "
                f"arithmetic: log C(n_labels, size) must not exceed {LARGEST_LOG_BINOMIAL:.0f}; "
                f"use a smaller largest size, or Cube"
            )
        log_size = float(np.logaddexp.reduce(log_binomial(n_labels, allowed)))
        vars(self).update(
            n_labels=n_labels, bias=bias, sizes=allowed, size_bias=bias[: largest + 1],
            log_size=log_size, feature_group=len(bias),
        )  # fmt: skip

    @property
    def parameters(self) -> Array:
        """The bias of each size."""
        return self.bias.copy()

    def with_parameters(self, values) -> Sized:
        """The same labels with other biases."""
        return replace(self, bias=real_vector(values, len(self.bias), "bias", minus_infinity=True))

    def tempered(self, q: float) -> Sized:
        """Finite biases times q."""
        return replace(self, bias=tempered_values(self.bias, q))

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
        checked = label_matrix(sets, self.n_labels, "sets")
        allowed = np.zeros(self.n_labels + 1, dtype=bool)
        allowed[self.sizes] = True
        return allowed[checked.sum(axis=1, dtype=int)]

    def features(self, sets: Array) -> Array:
        """1 at the size of each set, (m, len(bias))."""
        size = sets.sum(axis=1, dtype=np.int64)
        return (size[:, None] == np.arange(len(self.bias))).astype(np.float64)

    def sample(self, n_samples: int, generator: np.random.Generator) -> Array:
        """A size by its share of the sets, and that many labels, (n_samples, l)."""
        shares = np.exp(log_binomial(self.n_labels, self.sizes) - self.log_size)
        sizes = generator.choice(self.sizes, n_samples, p=shares / shares.sum())
        ranks = generator.random((n_samples, self.n_labels)).argsort(axis=1).argsort(axis=1)
        return (ranks < sizes[:, None]).astype(np.uint8)

    def expectation(self, target: Target | str) -> Expectation:
        """As every space; the subset loss, where it is small, from the law of the counts."""
        paired = self.paired(target)
        tempered = Tempered(paired, self)
        return SubsetExpectation(paired, self, tempered) if paired.form == "subset" else tempered

    def moments(
        self, scores: Array, values: tuple[Array, Array] | None = None, *, features: bool = False
    ) -> Moments:
        """Marginals and, with ``values`` = (on, off) of shape (n, l), the moments of their sum.

        The features, the law of the size, come with them.
        """
        n, n_labels = scores.shape

        def room(n: int) -> tuple[Array, Array, Array, Array]:
            sizes = np.zeros((n, len(self.bias)))
            return np.empty(n), np.empty((n, n_labels)), np.empty((n, n_labels)), sizes

        law, sums = room(n), room(n if values else 0)
        # (Kernels of their own: the second takes as long again to compile, and few need it.)
        if values is None:
            self._fill(scores, law)
        else:
            ends = n_labels, len(self.size_bias) - 1
            for_rows(
                sum_moments_rows, n, scores, self.size_bias, values, law, sums, least=8,
                room=lambda: sums_room(*ends),
            )  # fmt: skip
        return Moments(*law, *sums)

    def _fill(self, scores: Array, law: tuple[Array, Array, Array, Array]) -> None:
        """The law of each row by plain products or, where those are no floats, scaled ones."""
        n, bias = len(scores), self.size_bias
        ends, high = (self.n_labels, len(bias) - 1), bias.max()
        for_rows(
            product_rows, n, scores, np.exp(bias - high), law, least=FEWEST_ROWS,
            room=lambda: products_room(*ends),
        )  # fmt: skip
        law[0][:] += high
        rows = np.flatnonzero(np.isnan(law[0]))
        if len(rows):
            found = tuple(part[rows] for part in law)
            for_rows(
                moments_rows, len(rows), scores[rows], bias, found, least=8,
                room=lambda: moments_room(*ends),
            )  # fmt: skip
            for part, these in zip(law, found, strict=True):
                part[rows] = these

    def mean(
        self, target: Target, scores: Array, y_true: Array, of: Of, parameters: bool = True
    ) -> Mean:
        """Sums over labels by the moments of a sum, functions of the counts by their joint law."""
        if target.form == "additive":
            return additive_mean(self, target, scores, y_true, of, parameters)
        if target.form == "table":
            return super().mean(target, scores, y_true, of, parameters)
        return Mean(*count_mean(target.measure(self.n_labels, of), scores, y_true, self.bias))

    __repr__ = brief

    def __str__(self) -> str:
        if len(self.sizes) == 1:
            return f"Slice({self.n_labels}, {self.sizes[0]})"
        return f"Sized({self.n_labels}, sizes {self.sizes[0]} to {self.sizes[-1]})"


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
