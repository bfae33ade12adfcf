"""scikit-learn's own classifiers, so that label sets of any data can be asked of them."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import fbeta_score, make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.utils.metaestimators import available_if

from setwise.decoders import TopK
from setwise.estimators.label_model import LabelModel
from setwise.estimators.wrapped import gives_probability, seeded
from setwise.targets import FBeta, Hamming, Jaccard, PrecisionAtK, RecallAtK, ZeroOne, get_target

N_TREES = 300


def logistic_regression() -> LogisticRegression:
    """scikit-learn's, with room to converge."""
    return LogisticRegression(max_iter=1000)


def random_forest(seed: int) -> RandomForestClassifier:
    """In one thread: several add up probabilities in an order that changes."""
    return RandomForestClassifier(N_TREES, random_state=seed)


def extra_trees(seed: int) -> ExtraTreesClassifier:
    """In one thread, as `random_forest`."""
    return ExtraTreesClassifier(N_TREES, random_state=seed)


class Undecoded(ClassifierMixin, BaseEstimator):
    """A classifier of label sets that predicts as it does by itself, whatever the target.

    A label that is always or never there in training, which many classifiers refuse, is predicted
    so. Precision@k and recall@k judge sets of k labels only: for these the k labels of highest
    probability are predicted.

    Parameters
    ----------
    estimator : classifier
        Of label matrices; cloned and fitted in `fit`.
    target : str or Target, default "hamming"
    random_state : int or None, default 0
        Seeds the parts of the estimator whose own random_state is None.
    """

    def __init__(self, estimator, target="hamming", random_state=0):
        self.estimator = estimator
        self.target = target
        self.random_state = random_state

    def fit(self, X, y):
        """Fit to label sets, (n, l), dense or sparse."""
        sets: Any = y.toarray() if issparse(y) else np.asarray(y)
        self._model = LabelModel.fit(seeded(self.estimator, self.random_state), X, sets, {})
        self.estimator_ = self._model.estimator
        self.classes_ = np.arange(sets.shape[1])
        return self

    def for_target(self, target) -> Undecoded:
        """The same fit for another target."""
        other: Any = copy(self)
        return other.set_params(target=target)

    def predict(self, X) -> csr_array:
        """The label sets, CSR (n, l)."""
        target = get_target(self.target)
        if isinstance(target, PrecisionAtK | RecallAtK):
            return csr_array(TopK(target.k).decode(self.predict_proba(X)))
        constant = self._model.constant
        varying = np.isnan(constant)
        sets = np.tile(np.nan_to_num(constant), (X.shape[0], 1)).astype(np.uint8)
        if varying.any():
            found: Any = self.estimator_.predict(X)
            dense = found.toarray() if issparse(found) else np.asarray(found)
            sets[:, varying] = dense.reshape(X.shape[0], -1)
        return csr_array(sets)

    @available_if(gives_probability)
    def predict_proba(self, X):
        """The probability of each label, (n, l)."""
        return self._model.probability(X)


class TunedLogistic(ClassifierMixin, BaseEstimator):
    """Its threshold tuned in three folds, or 1/2 where a class is too rare for them.

    The measure tuned for is the target's over the rows of one label: accuracy for Hamming and
    subset 0/1, the same F-beta or Jaccard, and F1 for others.
    """

    def __init__(self, target="f1"):
        self.target = target

    def fit(self, X, y):
        """Fit to one label."""
        tuned = TunedThresholdClassifierCV(logistic_regression(), scoring=self._scoring(), cv=3)
        plain = logistic_regression()
        self.model_ = (tuned if np.bincount(y).min() >= 3 else plain).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        """By the threshold."""
        return self.model_.predict(X)

    def predict_proba(self, X):
        """Without the threshold."""
        return self.model_.predict_proba(X)

    def _scoring(self) -> Any:
        target = get_target(self.target)
        if isinstance(target, Hamming | ZeroOne):
            return "accuracy"
        if isinstance(target, FBeta) and target.beta != 1.0:
            return make_scorer(fbeta_score, beta=target.beta)
        return "jaccard" if isinstance(target, Jaccard) else "f1"
