"""Statistics of a sample: its figures for any weights of its rows, intervals and p-values.

Every figure follows from weighted sums over rows: with all weights 1 it is that of the sample
itself, and a thousand resamples are a product with a matrix of weights.

The weights are those of the Bayesian bootstrap (Rubin, 1981): exponential, scaled to a mean of 1.
Drawing rows with replacement gives intervals of the same width for means over rows. But it leaves
out a row in more than a third of the resamples, so that a rare label vanishes, its figure becomes
the convention for 0/0, and the resamples lie beside the figure of the sample. Positive weights
keep every label and class that the sample has.

But of a label that is true in one row, weights cannot show that its recall might be another than 0
or 1. So where figures of labels are averaged, each resample adds to each label's four counts (true
and predicted, predicted only, true only, neither) weights of Jeffreys' prior, Gamma(1/2): little
beside many rows, much beside none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
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
    """What a figure is called, where it belongs, which values are good, and the largest."""

    name: str
    group: Group
    better: Better | None
    most: float = 1.0


def titled(group: Group, better: Better | None, *names: str, most: float = 1.0) -> list[Title]:
    """The titles of some figures of one group."""
    return [Title(name, group, better, most) for name in names]


@dataclass(frozen=True)
class Statistic:
    """Figures that follow from weighted sums over rows.

    Attributes
    ----------
    titles : tuple of Title
        The figures it gives, in order.
    figures : callable
        ``figures(total, *sums)`` is (n_figures, n_weightings), for the sum of the weights,
        (n_weightings,), and the weighted sums of the columns of each part; with ``has_prior`` also
        ``figures(total, *sums, prior)``, for weights (4, n_labels, n_weightings) of `Bootstrap`.
    parts : tuple of CSR arrays of shape (n_columns, n)
        Sparse even where they are full: the product then needs one thread and adds in a fixed
        order. Dense products this small gain nothing from more threads, and lose all where other
        work keeps the cores busy.
    """

    titles: tuple[Title, ...]
    figures: Callable[..., Array]
    parts: tuple[Any, ...]
    has_prior: bool = False

    @classmethod
    def of(
        cls,
        titles: Sequence[Title],
        figures: Callable[..., Array],
        *parts: Any,
        has_prior: bool = False,
    ) -> Statistic:
        """For matrices with a row for each row of the sample, dense or sparse."""
        columns = tuple(csr_array(part.T).astype(np.float64) for part in parts)
        return cls(tuple(titles), figures, columns, has_prior)

    def at(self, weights: Array, prior: Array | None = None) -> Array:
        """Its figures, (n_figures, n_weightings), for weights of shape (n, n_weightings)."""
        sums = [part @ weights for part in self.parts]
        more = [prior] if self.has_prior and prior is not None else []
        return self.figures(weights.sum(axis=0), *sums, *more)


def row_means(titles: Sequence[Title], columns: Array) -> Statistic:
    """Means over rows: sum_r w_r x_r / sum_r w_r for each column x; NaN is left out."""
    missing = np.isnan(columns)
    if missing.any():
        return ratios_of_sums(titles, np.where(missing, 0.0, columns), ~missing, math.nan)
    return Statistic.of(titles, lambda total, sums: sums / total, columns)


def first_order(titles: Sequence[Title], values: Array, slopes: Array) -> Statistic:
    """Figures in [0, 1] that are no function of sums, by their slopes at equal weights.

    ``slopes`` (n, n_figures) are the derivatives by the weight of each row. They add up to 0, as
    the figures do not change with the scale of the weights: with weights w of mean 1 a figure is
    about value + sum_r w_r slope_r, and just its value where all weights are 1.
    """

    def figures(total: Array, moved: Array) -> Array:
        return np.clip(values[:, None] + moved * (len(slopes) / total), 0.0, 1.0)

    return Statistic.of(titles, figures, slopes)


def ratios_of_sums(titles: Sequence[Title], above: Any, below: Any, nothing: float) -> Statistic:
    """sum_r w_r x_r / sum_r w_r z_r for columns x and z; ``nothing`` is the value at 0/0."""
    return Statistic.of(titles, lambda _, x, z: quotient(x, z, nothing), above, below)


def quotient(above: Any, below: Any, nothing: float) -> Array:
    """``above / below``, and ``nothing`` where ``below`` is 0."""
    return np.divide(above, below, out=np.full(np.shape(below), nothing), where=below != 0)


def mean_of_known(values: Array) -> Array:
    """The mean over the first axis without NaN; NaN where there is nothing else."""
    known = ~np.isnan(values)
    return quotient(np.where(known, values, 0.0).sum(axis=0), known.sum(axis=0), math.nan)


@dataclass(frozen=True)
class Bootstrap:
    """How many resamples, from which seed, and the level of the intervals."""

    n_resamples: int
    confidence: float
    random_state: Any

    def __post_init__(self):
        object.__setattr__(self, "n_resamples", whole_number(self.n_resamples, "n_bootstrap", 0))
        confidence = real_number(self.confidence, "confidence", 0.0, 1.0)
        if confidence in (0.0, 1.0):
            raise ValueError(f"confidence must lie between 0 and 1, but it is {confidence}")
        object.__setattr__(self, "confidence", confidence)

    def drawn(
        self, n_rows: int, n_labels: int, has_prior: bool = False
    ) -> Iterator[tuple[Array, Any]]:
        """The weight of each row, (n, some resamples at a time), of mean 1 in each resample.

        With those of the prior, (4, n_labels, ...), or None; each from a stream of its own.
        """
        try:
            generator = np.random.default_rng(self.random_state)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"random_state must be a whole number of at least 0, a numpy Generator or None, "
                f"but it is {self.random_state!r}"
            ) from error
        apart = np.random.default_rng(generator.integers(2**63)) if self.n_resamples else generator
        fitting = WEIGHT_ENTRIES // max(n_rows, (4 if has_prior else 1) * n_labels)
        step = min(max(fitting, LEAST_AT_ONCE), MOST_AT_ONCE)
        for start in range(0, self.n_resamples, step):
            size = min(step, self.n_resamples - start)
            drawn = generator.standard_exponential((size, n_rows))
            weights = np.ascontiguousarray((drawn / drawn.mean(axis=1, keepdims=True)).T)
            # (Half the square of a normal variable is Gamma(1/2).)
            prior = apart.standard_normal((size, 4, n_labels)) ** 2 / 2.0 if has_prior else None
            yield weights, None if prior is None else np.moveaxis(prior, 0, -1)

    def replicates(self, statistics: Sequence[Statistic], n_rows: int, n_labels: int) -> Array:
        """All figures on all resamples, (n_figures, n_resamples); the same rows for all."""
        n_figures = sum(len(statistic.titles) for statistic in statistics)
        has_prior = any(statistic.has_prior for statistic in statistics)
        parts = [
            np.concatenate([statistic.at(weights, prior) for statistic in statistics])
            for weights, prior in self.drawn(n_rows, n_labels, has_prior)
        ]
        return np.concatenate([np.empty((n_figures, 0)), *parts], axis=1)

    def judged(
        self, groups: Sequence[Sequence[Statistic]], n_rows: int, n_labels: int
    ) -> list[tuple[Array, Array]]:
        """The figures of each group on the rows as they are, and on the same resamples."""
        replicates = self.replicates(list(chain(*groups)), n_rows, n_labels)
        equal, found = np.ones((n_rows, 1)), []
        for statistics in groups:
            values = np.concatenate([statistic.at(equal)[:, 0] for statistic in statistics])
            own, replicates = np.split(replicates, [len(values)])
            found.append((values, own))
        return found

    def intervals(
        self, values: Array, replicates: Array, least: Any, most: Any
    ) -> list[tuple[float | None, float | None]]:
        """An interval about each value, from its replicates; (None, None) without resamples.

        The percentiles of the replicates, moved so that their median is the value, within the
        bounds of the figure. So it covers the value, and takes from the resamples how widely and
        how unevenly figures spread, not where they lie: a figure that is no mean over rows has
        another expectation on resamples than on samples. A value that is NaN has no interval.
        """
        if self.n_resamples == 0:
            return [(None, None)] * len(replicates)
        tail = (1.0 - self.confidence) / 2.0
        low, median, high = np.quantile(replicates, [tail, 0.5, 1.0 - tail], axis=1)
        low = np.maximum(values + (low - median), np.minimum(least, values))
        high = np.minimum(values + (high - median), np.maximum(most, values))
        return [
            (None, None) if math.isnan(value) else (a, b)
            for value, a, b in zip(values, low.tolist(), high.tolist(), strict=True)
        ]


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
