"""Training for a measure of a whole population: costs and models in turn, on folds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setwise.decoders.population_rule import PopulationRule
from setwise.estimators.design import Array, Design, Solution
from setwise.estimators.folds import StratifiedLabelSets
from setwise.estimators.solver import Fitting
from setwise.estimators.training import Training
from setwise.labels import LabelNames
from setwise.spaces import Cube
from setwise.surrogates.binary_relevance import BinaryRelevance
from setwise.surrogates.metro import costs_at, refuse_others
from setwise.targets.additive import CostSensitive
from setwise.validation import positive_number, whole_number

# Folds whose held-out rows the value is taken from, rounds at most, and a change that ends them.
N_FOLDS, ROUNDS, STILL = 3, 4, 1e-3


@dataclass(frozen=True)
class Metro:
    """Rounds of costs and models: the surrogate that a population measure is best trained on.

    The first costs are those at the value of the best cuts of plain logistic regressions. In each
    round every fold's model is trained for the costs, from where it was; its decisions on the rows
    held out, by the sign of the scores, are counted over all folds together, and their value gives
    the next costs. Each label (micro: all together) keeps the costs with the largest value. With
    ``n_folds=1`` there is one model, and the value is that of the rows it is trained on.
    """

    target: Any
    design: Design
    sets: Array
    alpha: float
    tol: float
    max_iter: int
    n_folds: int = N_FOLDS

    def surrogate(self, names: LabelNames | None = None, decoder: Any = "auto") -> BinaryRelevance:
        """Binary relevance for the costs found; refused for classes and other targets."""
        refuse_others(self.target)
        if decoder != "auto":
            raise ValueError(
                f"'metro' decides by the sign of the scores, but decoder is {decoder!r}; use "
                f"decoder='auto', or another surrogate, whose probabilities a rule may cut"
            )
        if names is not None and names.one_dimensional:
            raise ValueError("'metro' is of label sets, but y has one class for each row")
        positive_number(self.alpha, "alpha")
        positive_number(self.tol, "tol")
        whole_number(self.max_iter, "max_iter", 1)
        n_folds = min(self.n_folds, len(self.sets))
        folds = StratifiedLabelSets(n_folds).assign(self.sets) if n_folds > 1 else None
        models: list[Solution | None] = [None] * n_folds
        costs = costs_at(self.target, self._cut(self._scores(None, folds, models)))
        best, most = costs, np.full(self.sets.shape[1], -np.inf)
        for _ in range(ROUNDS):
            counts = self._counts(self._scores(costs, folds, models) >= 0.0)
            value = self._values(counts)
            better, most = value > most, np.maximum(value, most)
            best = CostSensitive(
                np.where(better, costs.miss, best.miss),
                np.where(better, costs.false_alarm, best.false_alarm),
            )
            last, costs = costs, costs_at(self.target, counts)
            if np.abs(costs.miss - last.miss).max() <= STILL:
                break
        return BinaryRelevance("logistic", best)

    def _scores(self, costs: Any, folds: Array | None, models: list) -> Array:
        """The score of each label for each row, by the model that has not seen it, (n, l)."""
        scores, every = np.empty(self.sets.shape), np.ones(len(self.sets), bool)
        training = Training(BinaryRelevance("logistic", costs), self.target)
        for fold, last in enumerate(models):
            train, test = (every, every) if folds is None else (folds != fold, folds == fold)
            inputs, weights = self.design.inputs[train], self.design.weights[train]
            design = replace(self.design, inputs=inputs, weights=weights)
            fitting = Fitting(
                training, Cube(self.sets.shape[1]), design, self.sets[train], weights,
                self.alpha, self.tol, self.max_iter,
            )  # fmt: skip
            models[fold] = found = fitting.solve(last)
            scores[test] = self.design.inputs[test] @ found.weights + found.intercept
        return scores

    def _cut(self, scores: Array) -> Array:
        """The counts of the best cuts of the plain scores."""
        probability = BinaryRelevance("logistic").probability(scores)
        cuts = PopulationRule(self.target, "thresholds")
        cuts.fit(probability, self.sets, self.design.weights)
        return self._counts(np.asarray(cuts.decode(probability)) == 1)

    def _counts(self, predicted: Array) -> Array:
        """tp, fp, fn, tn of each label by weight, (4, l)."""
        true, weights = self.sets == 1, self.design.weights
        parts = predicted & true, predicted & ~true, ~predicted & true, ~predicted & ~true
        return np.stack([weights @ part for part in parts])

    def _values(self, counts: Array) -> Array:
        """What each label is judged by, (l,): for micro the value of all."""
        if self.target.average == "micro":
            return np.full(counts.shape[1], float(self.target.of_counts(counts)))
        return np.nan_to_num(self.target.by_label(counts), nan=0.0)
