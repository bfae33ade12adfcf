"""The bootstrap: how figures vary when rows are drawn again, with replacement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise.evaluation.statistics import Array, Statistic
from setwise.validation import real_number, whole_number

# Resamples are taken several at a time: so many that their weights, or their counts of labels, have
# about this many entries, within bounds.
WEIGHT_ENTRIES = 2**20
LEAST_AT_ONCE, MOST_AT_ONCE = 4, 100


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
            weights = np.empty((size, n_rows))
            for resample in weights:
                resample[:] = np.bincount(generator.integers(n_rows, size=n_rows), minlength=n_rows)
            yield np.ascontiguousarray(weights.T)

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
