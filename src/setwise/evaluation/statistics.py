"""Statistics of a sample: its figures for any weights of its rows, intervals and p-values.

A bootstrap resample repeats some rows and leaves out others, so it is a vector of whole-number
weights. Every figure follows from weighted sums over rows: with all weights 1 it is that of the
sample itself, and a thousand resamples are a product with a matrix of weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setwise.evaluation.figure import Better, Group
from setwise.validation import real_number, whole_number

Array = NDArray[Any]
# Resamples are taken several at a time: so many that their weights, or their counts of labels, have
# about this many entries, within bounds.
WEIGHT_ENTRIES = 2**20
LEAST_AT_ONCE, MOST_AT_ONCE = 4, 100
# Differences this close count as equal in the p-value: they differ by rounding only.
ROUNDING = 1e-12


class Title(NamedTuple):
    """What a figure is called, where it belongs, and which values of it are good."""

    name: str
    group: Group
    better: Better | None


def titled(group: Group, better: Better | None, *names: str) -> list[Title]:
    """The titles of some figures of one group."""
    return [Title(name, group, better) for name in names]


@dataclass(frozen=True)
class Statistic:
    """Figures that follow from weighted sums over rows.

    Attributes
    ----------
    titles : tuple of Title
        The figures it gives, in order.
    figures : callable
        ``figures(total, *sums)`` is (n_figures, n_weightings), for the sum of the weights,
        (n_weightings,), and the weighted sums of the columns of each part.
    parts : tuple of CSR arrays of shape (n_columns, n)
        Sparse even where they are full: the product then needs one thread and adds in a fixed
        order. Dense products this small gain nothing from more threads, and lose all where other
        work keeps the cores busy.
    """

    titles: tuple[Title, ...]
    figures: Callable[..., Array]
    parts: tuple[Any, ...]

    @classmethod
    def of(cls, titles: Sequence[Title], figures: Callable[..., Array], *parts: Any) -> Statistic:
        """For matrices with a row for each row of the sample, dense or sparse."""
        columns = tuple(csr_array(part.T).astype(np.float64) for part in parts)
        return cls(tuple(titles), figures, columns)

    def at(self, weights: Array) -> Array:
        """Its figures, (n_figures, n_weightings), for weights of shape (n, n_weightings)."""
        return self.figures(weights.sum(axis=0), *(part @ weights for part in self.parts))


def row_means(titles: Sequence[Title], columns: Array) -> Statistic:
    """Means over rows: sum_r w_r x_r / sum_r w_r for each column x."""
    return Statistic.of(titles, lambda total, sums: sums / total, columns)


def ratios_of_sums(titles: Sequence[Title], above: Any, below: Any, nothing: float) -> Statistic:
    """sum_r w_r x_r / sum_r w_r z_r for columns x and z; ``nothing`` is the value at 0/0."""
    return Statistic.of(titles, lambda _, x, z: quotient(x, z, nothing), above, below)


def quotient(above: Any, below: Any, nothing: float) -> Array:
    """``above / below``, and ``nothing`` where ``below`` is 0."""
    return np.divide(above, below, out=np.full(np.shape(below), nothing), where=below != 0)


@dataclass(frozen=True)
class Bootstrap:
    """How often rows are drawn again, from which seed, and the level of the intervals."""

    n_resamples: int
    confidence: float
    random_state: Any

    def __post_init__(self):
        object.__setattr__(self, "n_resamples", whole_number(self.n_resamples, "n_bootstrap", 0))
        confidence = real_number(self.confidence, "confidence", 0.0, 1.0)
        if confidence in (0.0, 1.0):
            raise ValueError(f"confidence must lie between 0 and 1, but it is {confidence}")
        object.__setattr__(self, "confidence", confidence)

    def weights(self, n_rows: int, n_labels: int) -> Iterator[Array]:
        """How often each row is drawn in each resample, (n, some resamples at a time)."""
        try:
            generator = np.random.default_rng(self.random_state)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"random_state must be a whole number of at least 0, a numpy Generator or None, "
                f"but it is {self.random_state!r}"
            ) from error
        fitting = WEIGHT_ENTRIES // max(n_rows, n_labels)
        step = min(max(fitting, LEAST_AT_ONCE), MOST_AT_ONCE)
        for start in range(0, self.n_resamples, step):
            size = min(step, self.n_resamples - start)
            # Each resample counts into a range of its own.
            drawn = generator.integers(n_rows, size=(size, n_rows))
            drawn += n_rows * np.arange(size)[:, None]
            counts = np.bincount(drawn.ravel(), minlength=size * n_rows)
            yield np.ascontiguousarray(counts.reshape(size, n_rows).T, dtype=np.float64)

    def replicates(self, statistics: Sequence[Statistic], n_rows: int, n_labels: int) -> Array:
        """All figures on all resamples, (n_figures, n_resamples); the same rows for all."""
        n_figures = sum(len(statistic.titles) for statistic in statistics)
        parts = [
            np.concatenate([statistic.at(weights) for statistic in statistics])
            for weights in self.weights(n_rows, n_labels)
        ]
        return np.concatenate([np.empty((n_figures, 0)), *parts], axis=1)

    def intervals(self, replicates: Array) -> list[tuple[float | None, float | None]]:
        """Percentile interval of each row of replicates; (None, None) without resamples."""
        if self.n_resamples == 0:
            return [(None, None)] * len(replicates)
        tail = (1.0 - self.confidence) / 2.0
        low, high = np.quantile(replicates, [tail, 1.0 - tail], axis=1)
        return list(zip(low.tolist(), high.tolist(), strict=True))


def p_values(values: Array, replicates: Array) -> Array:
    """Two-sided p-value of each difference, from its replicates around it; see `compare`."""
    deviations = np.abs(replicates - values[:, None])
    as_large = (deviations >= np.abs(values)[:, None] - ROUNDING).sum(axis=1)
    return (1.0 + as_large) / (replicates.shape[1] + 1.0)


def holm(p: Array) -> Array:
    """P-values corrected for their number, in the order given; see `compare`."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
