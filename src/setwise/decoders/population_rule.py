"""Deciding for a measure of the whole population, from the probabilities of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from setwise.decoders.budget import (
    Budget,
    BudgetProblem,
    Entries,
    Linear,
    cut_together,
    frank_wolfe,
)
from setwise.decoders.calibration import Calibration
from setwise.decoders.coordinate_ascent import best_ascent
from setwise.decoders.dual_bound import dual_bound
from setwise.decoders.fixed_point import fixed_points
from setwise.decoders.micro_macro import micro_macro
from setwise.decoders.population import POPULATIONS, Population
from setwise.decoders.threshold_search import ScoredRows, best_thresholds, labelled, weighted
from setwise.decoders.thresholds import cross_fit, reached
from setwise.spelling import argument
from setwise.targets import get_target
from setwise.targets.measure import Array
from setwise.validation import probability_matrix, require_one_of, whole_number

Rule = Literal[
    "auto", "expected", "calibrated", "batch", "thresholds", "cross_fitted", "micro_macro"
]
RULES = ("auto", "expected", "calibrated", "batch", "thresholds", "cross_fitted", "micro_macro")
NEED_SETS = ("calibrated", "thresholds", "cross_fitted", "micro_macro")
OF_THRESHOLDS = ("calibrated", "cross_fitted", "micro_macro")
FOLDS = 3


@dataclass(eq=False, repr=False)
class PopulationRule(BaseEstimator):
    """Decide from marginal probabilities for a measure of the whole population.

    Measures such as macro-F1 judge the counts of all rows together. What is best for them is a
    threshold on each label's probability, or with a budget of k labels a row the k largest of
    slope_j · probability + offset_j. The rules differ in what they find it by:

    - "expected": the largest measure of the expected counts of the probabilities given to `fit`.
      It is exact without a budget: no 0/1 matrix has a larger one. For F-beta the threshold is
      v / (1 + beta²) at the optimal value v, for Jaccard v / (1 + v), for balanced accuracy the
      share of positives.
    - "calibrated": the same after the log-odds of all labels were replaced by slope · log-odds +
      shift, the most likely two numbers for known label sets. "expected" is best for probabilities
      that are right; so they are made right first, and two numbers do not overfit.
    - "batch": as "expected", of the rows to be decided, so what is predicted for a row depends on
      the rows it comes with, and a single row is refused.
    - "thresholds": the best thresholds on probabilities with known label sets, best out of fold.
    - "cross_fitted": of those and one threshold for all labels, what folds prefer; see
      `Thresholds`.
    - "micro_macro": for rare labels (Lin and Lin): labels by falling frequency; in each of three
      folds the m-th takes the cut that maximises its own utility divided by m plus that of the
      counts of all labels so far; the mean of the folds' cuts.
    - "auto": with label sets "calibrated", without them "expected"; with a budget "thresholds" for
      a micro average with label sets, otherwise "expected". For a measure that forgives misses,
      such as precision, with label sets and without a budget "micro_macro": its best threshold is
      the largest probability there is, which new rows rarely reach. Over six data sets with
      official and random splits and two kinds of marginals "calibrated" was the best on average for
      F1 and Jaccard, and less than 0.003 below the best rule, "batch", for balanced accuracy and
      G-mean (docs/benchmarks.md, *population*).

    Parameters
    ----------
    target : target or str, default "macro_f1"
        `Macro`, `Micro` or `Weighted` of a measure, or its name.
    rule : {"auto", "expected", "calibrated", "batch", "thresholds", "cross_fitted", "micro_macro"}
        How to decide, by default "auto".
    budget : int, optional
        Predict exactly so many labels a row.
    at_most : int, optional
        Predict at most so many labels a row.
    random_state : int or None, default 0
        Seed of the folds of "cross_fitted" and "micro_macro".

    Attributes
    ----------
    rule_ : str
        The rule that was used.
    thresholds_ : array of shape (n_labels,) or None
        Without a budget, the threshold of each label; None for "batch".
    slopes_, offsets_ : arrays of shape (n_labels,) or None
        With a budget, what the gains of labels are found by.

    Notes
    -----
    **Budgets.** A micro average is decided exactly, that of G-mean but for ties: the most probable
    labels of each row, above one threshold. For the others "expected" and "thresholds" take the
    best single decision (no random mixture) among those that Frank and Wolfe's steps meet, and
    "batch" goes on from it by coordinate ascent: every row anew, given all others, until none
    gains, so it is never worse on the same probabilities. Neither need be the best there is; `gap`
    says how far it can be.

    **Conventions.** A label without a positive (or with no expected one) has the threshold +inf.
    Equal probabilities of a label are decided alike; so, of G-mean, which is no quotient, the best
    thresholds are found, and where probabilities tie some 0/1 matrix may be better, in small
    batches by much. Of equal
    values the one with fewer predictions is taken, of equal gains the lower label.
    ``zero_division`` of nan counts as 0 while deciding.

    **Sparse probabilities** (CSR) count as 0 where nothing is stored; no dense copy is made. With
    known label sets, those true where nothing is stored are counted all the same ("calibrated" too,
    but for G-mean): so thresholds do not suffer from shortlists that end at some probability.

    **Cost.** "expected", "calibrated" and "batch" take a few passes over the entries, without a
    sort; with a budget as many more. The others sort.

    References
    ----------
    Koyejo, Natarajan, Ravikumar and Dhillon (2015); Dembczyński, Kotłowski, Koyejo and Natarajan
    (2017); Lin and Lin (2023), On the thresholding strategy for infrequent labels in multi-label
    classification; Schultheis, Wydmuch, Kotłowski, Babbar and Dembczyński (2023, 2024): budgets, by
    coordinate ascent and by Frank and Wolfe's method.

    Examples
    --------
    >>> probability = [[0.9, 0.2], [0.6, 0.4], [0.3, 0.1], [0.2, 0.3]]
    >>> rule = PopulationRule("macro_f1").fit(probability)
    >>> rule.thresholds_.round(3)
    array([0.375, 0.233])
    >>> rule.decode(probability).tolist()
    [[1, 0], [1, 1], [0, 0], [0, 1]]
    >>> PopulationRule("macro_f1", "batch", budget=1).fit(probability).decode(probability).tolist()
    [[1, 0], [0, 1], [1, 0], [0, 1]]
    """

    target: Any = "macro_f1"
    rule: Rule = "auto"
    budget: int | None = None
    at_most: int | None = None
    random_state: int | None = 0

    def __post_init__(self):
        Population.of(get_target(self.target))
        require_one_of(self.rule, RULES, "rule")
        for name in ("budget", "at_most"):
            if getattr(self, name) is not None:
                whole_number(getattr(self, name), name, 1)
        if self.budget is not None and self.at_most is not None:
            raise ValueError(
                f"{argument('budget', self.budget)} and {argument('at_most', self.at_most)} "
                f"exclude each other: a row has exactly so many labels, or at most, not both"
            )
        if self._budget is not None and self.rule in OF_THRESHOLDS:
            raise ValueError(
                f"{argument('rule', self.rule)} finds a threshold for each label, which a budget "
                f"of labels a row does not go by; use 'expected', 'batch' or 'thresholds'"
            )
        if self.random_state is not None:
            whole_number(self.random_state, "random_state", 0)

    @property
    def depends_on_batch(self) -> bool:
        """Whether a row's prediction depends on the rows it is predicted with."""
        return self.rule == "batch"

    def fit(self, probability, y_true=None, sample_weight=None) -> PopulationRule:
        """Find how to decide.

        Parameters
        ----------
        probability : array or CSR matrix of shape (n, n_labels)
            Marginal probabilities, in [0, 1], best of rows that the model was not trained on.
        y_true : array or CSR matrix of shape (n, n_labels), optional
            The true label sets, as 0/1.
        sample_weight : array of shape (n,), optional
            How much each row counts.
        """
        table, rule = probability_matrix(probability), self._rule(y_true)
        if rule in NEED_SETS:
            if y_true is None:
                raise ValueError(
                    f"{argument('rule', rule)} needs label sets: fit(probability, y_true); "
                    f"'expected' and 'batch' go by probabilities alone"
                )
            sample = labelled(table, y_true, sample_weight)
        else:
            sample = weighted(table, table, sample_weight)
        self.require_room(sample.shape[1])
        self.rule_, self.n_labels_ = rule, sample.shape[1]
        self.thresholds_ = self.slopes_ = self.offsets_ = None
        if rule == "batch":
            return self
        if self._budget is None:
            self.thresholds_ = self._thresholds(sample, rule)
        else:
            problem = BudgetProblem.of(sample, self._population, self._budget)
            linear = self._linear(problem)
            self.slopes_, self.offsets_ = linear.slope, linear.offset
        return self

    def decode(self, probability):
        """Decide the label sets.

        Parameters
        ----------
        probability : array or CSR matrix of shape (n, n_labels)
            Marginal probabilities, in [0, 1].

        Returns
        -------
        array or CSR array of shape (n, n_labels)
            The label sets as 0/1 of type uint8, CSR for sparse probabilities.
        """
        n_labels = getattr(self, "n_labels_", None)
        if n_labels is None:
            raise NotFittedError(
                "this PopulationRule is not fitted: call fit(probability, y_true) before decode"
            )
        table = probability_matrix(probability)
        if table.shape[1] != n_labels:
            raise ValueError(
                f"probability must have shape (n, {n_labels}), one column for each label, but its "
                f"shape is {table.shape}"
            )
        sample = ScoredRows(table, table)
        if self.rule_ == "batch":
            return self._decode_batch(sample)
        if self.thresholds_ is not None:
            return reached(table, self.thresholds_)
        fitted: Any = self
        choice = Entries.of(sample).choose(fitted._budget, fitted.slopes_, fitted.offsets_)
        return choice.sets(table)

    def _decode_batch(self, sample: ScoredRows) -> Any:
        """The decisions with the largest measure of the expected counts of these rows."""
        if sample.shape[0] == 1:
            raise ValueError(
                f"{get_target(self.target)} is decided here for all rows together, by their "
                f"probabilities alone, and a single row says nothing; decide more rows at once, or "
                f"by a model or rule fitted for it to other rows"
            )
        if self._budget is None:
            return reached(sample.scores, self._thresholds(sample, "expected"))
        problem = BudgetProblem.of(sample, self._population, self._budget)
        choice = self._linear(problem).choice
        if self._population.average == "macro":
            choice = best_ascent(problem, choice)
        return choice.sets(sample.scores)

    def gap(self, probability) -> float:
        """How far the decisions for these probabilities can be from the best within the budget.

        No decisions have a measure of the expected counts that is larger by more. The bound is
        Lagrange's: each label by itself, with a price for the labels of a row. Offered for macro
        and weighted averages; those of all entries together are decided exactly.
        """
        if self._population.average == "micro" or self._budget is None:
            raise ValueError(
                "gap is for a macro or weighted average with a budget; other decisions by rule "
                "'batch' are the best there are"
            )
        y_pred, table = self.decode(probability), probability_matrix(probability)
        problem = BudgetProblem.of(ScoredRows(table, table), self._population, self._budget)
        tp = np.asarray((table * y_pred).sum(axis=0), np.float64)
        predicted = np.asarray(y_pred.sum(axis=0), np.float64)
        value = problem.value(tp, predicted)
        return max(0.0, min(1.0, dual_bound(problem, tp, predicted)) - value)

    def _thresholds(self, sample: ScoredRows, rule: str) -> Array:
        """The threshold of each label without a budget, (l,)."""
        metric, average, _ = self._population
        own = POPULATIONS[average] == "label"
        if rule == "expected":
            found = fixed_points(sample, metric, average)
        elif rule == "calibrated":
            calibration = Calibration.of(sample)
            table = calibration.applied(sample.scores)
            right = ScoredRows(table, table, sample.weight, _missed(sample))
            found = calibration.undone(fixed_points(right, metric, average))
        elif rule == "thresholds":
            found = best_thresholds(sample, metric, average, own)[0]
        elif rule == "cross_fitted":
            if sample.shape[0] < 2:
                raise ValueError(
                    f"{argument('rule', rule)} compares folds, so it needs at least 2 rows of "
                    f"positive weight, but there is 1"
                )
            found = cross_fit(sample, metric, average, own, self._folds(sample))[0]
        else:
            found = micro_macro(sample, metric, self._folds(sample))
        return np.broadcast_to(found, sample.shape[1]).copy()

    def _linear(self, problem: BudgetProblem) -> Linear:
        """The gains of each label with a budget, and what they choose."""
        if self._population.average == "macro":
            return frank_wolfe(problem)
        return cut_together(problem, self._population.metric)

    def _folds(self, sample: ScoredRows) -> Array:
        order = np.random.default_rng(self.random_state).permutation(sample.shape[0])
        return order % min(FOLDS, sample.shape[0])

    def _rule(self, y_true: Any) -> str:
        """The rule that "auto" stands for."""
        if self.rule != "auto":
            return self.rule
        if y_true is None:
            return "expected"
        if self._budget is None:
            return "micro_macro" if self._population.forgives_misses else "calibrated"
        return "thresholds" if self._population.average == "micro" else "expected"

    @property
    def _population(self) -> Population:
        return Population.of(get_target(self.target))

    @property
    def _budget(self) -> Budget | None:
        size = self.budget if self.budget is not None else self.at_most
        return None if size is None else Budget(size, self.budget is not None)

    def require_room(self, n_labels: int) -> None:
        """Raise where the budget is of more labels than there are."""
        if self._budget is not None and self._budget.size > n_labels:
            name = "budget" if self._budget.exact else "at_most"
            raise ValueError(
                f"{name} must be at most the number of labels, which is {n_labels}, but it is "
                f"{self._budget.size}"
            )


def _missed(sample: ScoredRows) -> Array | None:
    """The weight of true entries that have no stored probability, by label, (l,)."""
    if isinstance(sample.scores, np.ndarray):
        return None
    label, score, true = sample.entries
    return np.bincount(label, np.where(score == 0.0, true, 0.0), sample.shape[1])
