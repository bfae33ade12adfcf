"""An ensemble of classifier chains in random orders, whose votes are averaged and cut at 1/2."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.multioutput import ClassifierChain


class ChainEnsemble(ClassifierMixin, BaseEstimator):
    """Chains that differ in the order of the labels."""

    def __init__(self, estimator: Any, n_chains: int = 10, random_state: int = 0):
        self.estimator, self.n_chains, self.random_state = estimator, n_chains, random_state

    def fit(self, X, y):
        self.chains_ = [
            ClassifierChain(clone(self.estimator), order="random", random_state=seed).fit(X, y)
            for seed in range(self.random_state, self.random_state + self.n_chains)
        ]
        return self

    def predict_proba(self, X):
        return np.mean([chain.predict_proba(X) for chain in self.chains_], axis=0)

    def predict(self, X):
        return (self.predict_proba(X) >= 0.5).astype(np.int64)
