"""What one method has over another on the same splits, and whether chance explains it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

# A difference below this is called none.
LEAST = 5e-4
# Of two splits alone the spread may be 0 by chance, and any difference then seem certain.
LEAST_SPLITS = 3
Rows = Sequence[dict[str, Any]]


class Gain(NamedTuple):
    """For each set the differences in a measure, one for each split and seed that both have.

    ``ratio`` has the test rows of a set over its training rows.
    """

    by_set: dict[str, list[float]]
    ratio: dict[str, float]

    @property
    def means(self) -> list[float]:
        """Of the sets."""
        return [float(np.mean(own)) for own in self.by_set.values()]

    @property
    def mean(self) -> float:
        """Over the sets, which count alike."""
        return float(np.mean(self.means))

    @property
    def won(self) -> int:
        """On how many sets there is more."""
        return sum(value > LEAST for value in self.means)

    @property
    def lost(self) -> int:
        """On how many sets there is less."""
        return sum(value < -LEAST for value in self.means)

    @property
    def n_tested(self) -> int:
        """How many sets have enough splits for the test to rest on."""
        return sum(len(own) >= LEAST_SPLITS for own in self.by_set.values())

    @property
    def p(self) -> float | None:
        """Two-sided, that on other splits of these sets the mean would be 0; None with few splits.

        Splits of a set share rows. So the variance of a set's mean over J splits is taken as
        s^2 (1/J + test rows / training rows), the corrected resampled t-test of Nadeau and Bengio
        (2003). Sets are independent: their variances add, with Welch's degrees of freedom. It says
        nothing of other sets.
        """
        often = {name: own for name, own in self.by_set.items() if len(own) >= LEAST_SPLITS}
        if not often:
            return None
        sizes = np.array([len(own) for own in often.values()])
        scale = 1.0 / sizes + [self.ratio[name] for name in often]
        variance = scale * [np.var(own, ddof=1) for own in often.values()]
        total = sum(float(np.mean(own)) for own in often.values())
        if not variance.any():
            return float(total == 0.0)
        degrees = variance.sum() ** 2 / (variance**2 / (sizes - 1)).sum()
        return float(2.0 * student.sf(abs(total) / np.sqrt(variance.sum()), degrees))

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ({self.won}/{self.lost})"


def gain(rows: Rows, measure: str, one: str, other: str) -> Gain | None:
    """Of rows that both have: the same set, split and seed, each made for the measure."""
    found: dict[tuple[str, str, int], dict[str, float]] = {}
    ratio = {}
    for row in rows:
        if row["target"] == measure and row["method"] in (one, other):
            pair = found.setdefault((row["set"], row["split"], row["seed"]), {})
            pair[row["method"]] = row[measure]
            ratio[row["set"]] = row["test_rows"] / row["rows"]
    by_set: dict[str, list[float]] = {}
    for (name, *_), pair in found.items():
        if len(pair) == 2:
            by_set.setdefault(name, []).append(pair[one] - pair[other])
    return Gain(by_set, ratio) if by_set else None
