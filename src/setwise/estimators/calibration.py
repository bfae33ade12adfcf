"""Probabilities put right by what was seen out of fold: one increasing function a label."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import check_cv

from setwise.estimators.folds import StratifiedLabelSets
from setwise.estimators.wrapped import logits
from setwise.targets.measure import Array
from setwise.validation import whole_number

Method = Literal["sigmoid", "isotonic"]
METHODS = ("sigmoid", "isotonic")
# A label with fewer positive or fewer negative rows is left as it is.
LEAST_ROWS = 10


class Calibrator(Protocol):
    """An increasing function from probabilities to probabilities."""

    def predict(self, probability: Array, /) -> Array:
        """The calibrated probabilities, (n,)."""
        ...


@dataclass(frozen=True)
class Sigmoid:
    """p -> 1 / (1 + exp(-slope * logit(p) - intercept)), slope >= 0 (Platt, 2000).

    On the logit, so that probabilities that are right already are kept (slope 1, intercept 0).
    Logits are cut at ``limit``: a probability of 0 says less than its logit.
    """

    slope: float
    intercept: float
    limit: float

    @classmethod
    def fit(cls, probability: Array, y_true: Array, weight: Array) -> Sigmoid:
        """The least log-loss against Platt's targets, (N+ + 1) / (N+ + 2) and 1 / (N- + 2).

        Among increasing functions only: out of fold, a label that cannot be predicted correlates
        with its own probability negatively. N+ and N- are sums of the weights, in units of their
        mean: weights say how much a row counts beside others.
        """
        weight = weight * (np.count_nonzero(weight) / weight.sum())
        limit = float(np.log(2.0 * len(y_true) + 1.0))
        given = _cut_logits(probability, limit)
        positive, negative = weight @ y_true, weight @ (1.0 - y_true)
        goal = np.where(y_true == 1, (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0))
        share = weight / weight.sum()

        def loss(parameters: Array) -> tuple[float, Array]:
            score = parameters[0] * given + parameters[1]
            value = share @ (np.logaddexp(0.0, score) - goal * score)
            slack = share * (expit(score) - goal)
            return float(value), np.array([slack @ given, slack.sum()])

        bounds = [(0.0, None), (None, None)]
        found = minimize(loss, np.array([1.0, 0.0]), jac=True, bounds=bounds, method="L-BFGS-B")
        return cls(float(found.x[0]), float(found.x[1]), limit)

    def predict(self, probability: Array) -> Array:
        return expit(self.slope * _cut_logits(probability, self.limit) + self.intercept)


def _cut_logits(probability: Array, limit: float) -> Array:
    return np.clip(logits(probability.astype(np.float64)), -limit, limit)


def fit_calibrator(method: Method, probability: Array, y_true: Array, weight: Array) -> Calibrator:
    """The increasing function that best maps the probabilities of a label to what was true."""
    if method == "sigmoid":
        return Sigmoid.fit(probability, y_true, weight)
    isotonic = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    return isotonic.fit(probability.astype(np.float64), y_true, sample_weight=weight)


def enough_rows(sets: Array, weight: Array) -> Array:
    """Which labels have at least `LEAST_ROWS` positive and as many negative rows, (l,).

    Rows that weigh nothing do not count.
    """
    counted = sets[weight > 0]
    positive = counted.sum(axis=0, dtype=np.int64)
    return np.minimum(positive, len(counted) - positive) >= LEAST_ROWS


def calibrate(probability: Array, calibrators: list[Calibrator | None]) -> Array:
    """The calibrated probabilities, (n, l), of the same type; labels without calibrator stay."""
    calibrated = probability.copy()
    for label, calibrator in enumerate(calibrators):
        if calibrator is not None:
            calibrated[:, label] = np.clip(calibrator.predict(probability[:, label]), 0.0, 1.0)
    return calibrated


# ------------------------------------------------------------------------------------------ folds


def out_of_fold(sets: Array, splits: Iterator, predict: Callable[[Array, Array], Array]) -> Array:
    """``predict(train, test)`` for the rows of each fold, put together, (n, l)."""
    probability, times = np.zeros(sets.shape), np.zeros(len(sets), np.int64)
    for train, test in splits:
        probability[test] = predict(np.asarray(train), np.asarray(test))
        times[test] += 1
    if (times != 1).any():
        row = int(np.argmax(times != 1))
        raise ValueError(
            f"cv must hold out each row once, but row {row} is held out {times[row]} times"
        )
    return probability


def splits_of(cv: Any, X: Any, sets: Array, random_state: Any, params: dict) -> Iterator:
    """Pairs of training and held-out rows: of a number of folds, or of a splitter as it is.

    ``params`` are handed to the splitter beside X and y, such as groups.
    """
    if isinstance(cv, int | np.integer):
        folds = StratifiedLabelSets(whole_number(cv, "cv", 2), random_state=random_state)
        # Sparse, because a single dense column would be one of classes.
        return folds.split(None, csr_array(sets))
    splitter: Any = check_cv(cv)
    return splitter.split(X, sets.astype(np.int64), **params)
