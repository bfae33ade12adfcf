"""Statistics of a sample that give its figures for any weights of its rows.

A bootstrap resample repeats some rows and leaves out others, so it is a vector of whole-number
weights. A statistic keeps what its figures need of each row, and has one method, `at`: its figures
at given weights. With all weights 1 these are the figures of the sample itself; a thousand
resamples are a product with a matrix of weights, and `Bootstrap` draws these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

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


@dataclass(frozen=True)
class Sums:
    """Weighted sums over rows of each column of a dense or sparse matrix.

    The product is a sparse one even where the matrix is full: it needs one thread and adds in a
    fixed order. Dense products this small gain nothing from more threads, and lose all where
    other work keeps the cores busy.
    """

    by_column: Any

    @classmethod
    def of(cls, columns: Any) -> Sums:
        """For a matrix with a row for each row of the sample."""
        return cls(csr_array(columns.T).astype(np.float64))

    def at(self, weights: Array) -> Array:
        """sum_r w_r x_r for each column x, (n_columns, n_weightings)."""
        return self.by_column @ weights


class Title(NamedTuple):
    """What a figure is called, where it belongs, and which values of it are good."""

    name: str
    group: Group
    better: Better | None


class Statistic(Protocol):
    """What some figures need of each row."""

    @property
    def titles(self) -> tuple[Title, ...]:
        """The figures it gives, in order."""
        ...

    def at(self, weights: Array) -> Array:
        """Its figures, (n_figures, n_weightings), for weights of shape (n, n_weightings)."""
        ...


@dataclass(frozen=True)
class RowMeans:
    """Means over rows: sum_r w_r x_r / sum_r w_r for each column x."""

    titles: tuple[Title, ...]
    columns: Sums

    def at(self, weights: Array) -> Array:
        return self.columns.at(weights) / weights.sum(axis=0)


@dataclass(frozen=True)
class RatiosOfSums:
    """sum_r w_r x_r / sum_r w_r z_r for columns x of ``above`` and z of ``below``.

    ``nothing`` is the value at 0/0.
    """

    titles: tuple[Title, ...]
    above: Sums
    below: Sums
    nothing: float

    def at(self, weights: Array) -> Array:
        return quotient(self.above.at(weights), self.below.at(weights), self.nothing)


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
            raise ValueError(
                f"confidence must be between 0 and 1, such as 0.95, but it is {confidence}"
            )
        object.__setattr__(self, "confidence", confidence)

    def weights(self, n_rows: int, n_labels: int) -> Iterator[Array]:
        """How often each row is drawn in each resample, (n, some resamples at a time)."""
        generator = self._generator()
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
        parts = [
            np.concatenate([statistic.at(weights) for statistic in statistics])
            for weights in self.weights(n_rows, n_labels)
        ]
        n_figures = sum(len(statistic.titles) for statistic in statistics)
        return np.concatenate([np.empty((n_figures, 0)), *parts], axis=1)

    def intervals(self, replicates: Array) -> list[tuple[float | None, float | None]]:
        """Percentile interval of each row of replicates; (None, None) without resamples."""
        if self.n_resamples == 0:
            return [(None, None)] * len(replicates)
        tail = (1.0 - self.confidence) / 2.0
        low, high = np.quantile(replicates, [tail, 1.0 - tail], axis=1)
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def _generator(self) -> np.random.Generator:
        try:
            return np.random.default_rng(self.random_state)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"random_state must be a whole number of at least 0, a numpy Generator or None, "
                f"but it is {self.random_state!r}"
            ) from error
