"""Probabilities made right by rows with known label sets: one slope and one shift of log-odds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from setwise.decoders.threshold_search import ScoredRows
from setwise.targets.measure import Array

# Log-odds are those of probabilities this far from 0 and 1, laid together in so many cells.
LEAST, CELLS = 1e-6, 4096
# Where the slope and the shift may lie; and the precision of what is thought of them before.
SLOPES, SHIFTS, PRIOR = (0.1, 10.0), (-5.0, 5.0), 1.0


class Calibration(NamedTuple):
    """Log-odds z are replaced by slope z + shift, of all labels alike; so no ranking changes."""

    slope: float
    shift: float

    @classmethod
    def of(cls, sample: ScoredRows) -> Calibration:
        """The most likely one, by what is true of the entries whose probability is not 0.

        Drawn to no change at all by a normal prior of variance 1, so that few rows do not overfit.
        (Two numbers for all labels: rare ones are judged by what holds for the others.)
        """
        possible = sample.entries[1] > 0.0
        score, true, size = (part[possible] for part in (*sample.entries[1:], sample.sizes))
        odds = log_odds(score)
        reach = logit(1.0 - LEAST)
        cell = np.clip((odds / reach + 1.0) * (CELLS / 2), 0, CELLS - 1).astype(np.int64)
        many, truths, mean = (np.bincount(cell, part, CELLS) for part in (size, true, size * odds))
        mean = mean / np.where(many > 0, many, 1.0)

        def loss(at: Array) -> tuple[float, Array]:
            now, away = at[0] * mean + at[1], at - [1.0, 0.0]
            slope = many * expit(now) - truths
            value = many @ np.logaddexp(0.0, now) - truths @ now + PRIOR / 2 * (away @ away)
            return value, np.array([slope @ mean, slope.sum()]) + PRIOR * away

        bounds = [SLOPES, SHIFTS]
        found: Any = minimize(loss, [1.0, 0.0], jac=True, method="L-BFGS-B", bounds=bounds)
        return cls(*map(float, found.x))

    def applied(self, table: Any) -> Any:
        """The probabilities made right; 0 stays 0, stored or not."""
        if isinstance(table, np.ndarray):
            return np.where(table > 0.0, expit(self.slope * log_odds(table) + self.shift), 0.0)
        table = table.copy()
        table.data = self.applied(table.data)
        return table

    def undone(self, thresholds: Array) -> Array:
        """Thresholds on the probabilities as they were; those outside (0, 1) stay."""
        inside = (thresholds > 0.0) & (thresholds < 1.0)
        odds = logit(np.where(inside, thresholds, 0.5))
        return np.where(inside, expit((odds - self.shift) / self.slope), thresholds)


def log_odds(probability: Array) -> Array:
    """log p / (1 - p), finite."""
    return logit(np.clip(np.asarray(probability, np.float64), LEAST, 1.0 - LEAST))
