"""Logistic regressions cut at 1/2, or at a threshold tuned for each label."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV

from setwise.decoders import TopK
from setwise.estimators.label_model import label_probability
from setwise.targets import Target
from setwise.targets.target import hierarchy_of, predicted_size


def cut_decoder(target: Target) -> str:
    """The decoder that cuts at 1/2; of a target that judges some sets only, that of these."""
    own_sets = predicted_size(target) is not None or hierarchy_of(target) is not None
    return "minimum_risk" if own_sets else "most_likely"


def logistic(C: float = 1.0) -> LogisticRegression:
    """scikit-learn's, with room to converge."""
    return LogisticRegression(C=C, max_iter=1000)


class TunedThresholds(ClassifierMixin, BaseEstimator):
    """A logistic regression for each label, its threshold tuned in three folds.

    The measure tuned for is the target's over the rows of one label: a ratio such as F-beta or
    Jaccard as it is, accuracy for Hamming and subset 0/1, and F1 for others. Labels too rare for
    three folds are cut at 1/2. Of targets @k, the k most probable labels are predicted. ``C`` is
    that of scikit-learn's `LogisticRegression`.
    """

    def __init__(self, target, C=1.0):
        self.target = target
        self.C = C

    def fit(self, X, y):
        """Fit to label sets (n, l)."""
        scoring, own_sets = "f1", cut_decoder(self.target) == "minimum_risk"
        # Of an average over labels, what is averaged.
        judge: Any = getattr(self.target, "of", self.target)
        if judge.form == "linear_fractional" or judge is not self.target:
            scoring = make_scorer(partial(_utility_over_rows, target=judge))
        elif self.target.form in ("additive", "subset") and not own_sets:
            scoring = "accuracy"
        labels = csr_array(y).toarray().T.astype(int)
        self.models_ = [_tuned(scoring, X, label, self.C) for label in labels]
        return self

    def predict(self, X):
        """The label sets, (n, l)."""
        k = predicted_size(self.target)
        if k is not None:
            return TopK(k).decode(self.predict_proba(X))
        return np.column_stack([model.predict(X) for model in self.models_])

    def predict_proba(self, X):
        """The probability of each label without the threshold, (n, l)."""
        return np.column_stack([label_probability(model, X, 1) for model in self.models_])


def _tuned(scoring: Any, X: Any, label: Any, C: float) -> Any:
    """A model of one label, fitted; `DummyClassifier` where it is always or never there."""
    least = np.bincount(label, minlength=2).min()
    model: Any = logistic(C) if least else DummyClassifier()
    if least >= 3:
        model = TunedThresholdClassifierCV(model, scoring=scoring, cv=3)
    return model.fit(X, label)


def _utility_over_rows(y_true: Any, y_pred: Any, target: Target) -> float:
    """The utility of the rows that have a label as though they were a label set."""
    return 1.0 - float(target.loss(y_pred[None], y_true[None])[0])
