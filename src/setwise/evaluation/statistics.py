"""Statistics of a sample that give its figures for any weights of its rows.

A bootstrap resample repeats some rows and leaves out others, so it is a vector of whole-number
weights. A statistic keeps what its figures need of each row, and has one method, `at`: its figures
at given weights. With all weights 1 these are the figures of the sample itself; a thousand
resamples are a product with a matrix of weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setwise.evaluation.figure import Better, Group

Array = NDArray[Any]


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
