"""Deciding for a measure of the whole population, from the probabilities of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from setwise.decoders.population import POPULATIONS, Population
from setwise.decoders.threshold_search import Sample, best_thresholds, labelled, weighted
from setwise.decoders.thresholds import fixed_points, reached
from setwise.targets import get_target
from setwise.targets.measure import Array
from setwise.validation import probability_matrix, require_one_of, whole_number

Rule = Literal["auto", "expected", "batch", "thresholds"]
RULES = ("auto", "expected", "batch", "thresholds")


@dataclass(eq=False, repr=False)
class PopulationRule(BaseEstimator):
    """Decide from marginal probabilities for a measure of the whole population."""

    target: Any = "macro_f1"
    rule: Rule = "auto"
    budget: int | None = None
    at_most: int | None = None
    random_state: int | None = 0

    def __post_init__(self):
        self._population = Population.of(get_target(self.target))
        require_one_of(self.rule, RULES, "rule")
        for name in ("budget", "at_most"):
            if getattr(self, name) is not None:
                whole_number(getattr(self, name), name, 1)

    @property
    def depends_on_batch(self) -> bool:
        """Whether a row's prediction depends on the rows it is predicted with."""
        return self.rule == "batch"

    def fit(self, probability, y_true=None, sample_weight=None) -> PopulationRule:
        """Find the thresholds."""
        if y_true is None:
            table = probability_matrix(probability)
            sample = weighted(table, table, sample_weight)
        else:
            sample = labelled(probability_matrix(probability), y_true, sample_weight)
        self.thresholds_ = None if self.rule == "batch" else self._thresholds(sample)
        self.n_labels_ = sample.shape[1]
        return self

    def decode(self, probability):
        """The label sets."""
        if not hasattr(self, "n_labels_"):
            raise NotFittedError("this PopulationRule is not fitted: call fit before decode")
        table = probability_matrix(probability)
        thresholds = self.thresholds_
        if thresholds is None:
            thresholds = self._thresholds(Sample(table, table))
        return reached(table, thresholds)

    def _thresholds(self, sample: Sample) -> Array:
        metric, average, _ = self._population
        if sample.true is sample.scores:
            found = fixed_points(sample, metric, average)
        else:
            found = best_thresholds(sample, metric, average, POPULATIONS[average] == "label")[0]
        return np.broadcast_to(found, sample.shape[1]).copy()
