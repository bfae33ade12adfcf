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

from setwise.evaluation.figure import Better, Group

Array = NDArray[Any]


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
    """Means over rows: sum_r w_r x_r / sum_r w_r for each column x of ``rows``, (n, n_figures)."""

    titles: tuple[Title, ...]
    rows: Array

    def at(self, weights: Array) -> Array:
        return self.rows.T @ weights / weights.sum(axis=0)


@dataclass(frozen=True)
class RatiosOfSums:
    """sum_r w_r x_r / sum_r w_r z_r for columns x of ``above`` and z of ``below``.

    ``nothing`` is the value at 0/0.
    """

    titles: tuple[Title, ...]
    above: Array
    below: Array
    nothing: float

    def at(self, weights: Array) -> Array:
        return quotient(self.above.T @ weights, self.below.T @ weights, self.nothing)


def quotient(above: Any, below: Any, nothing: float) -> Array:
    """``above / below``, and ``nothing`` where ``below`` is 0."""
    return np.divide(above, below, out=np.full(np.shape(below), nothing), where=below != 0)
