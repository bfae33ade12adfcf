"""A study that takes a while, so that a kill comes in the middle of it."""

import time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from setwise.study import Study


class Slow(ClassifierMixin, BaseEstimator):
    """Sleeps, and predicts what its seed says."""

    def __init__(self, target=None, seconds=0.01, random_state=None):
        self.target = target
        self.seconds = seconds
        self.random_state = random_state

    def fit(self, X, y):
        time.sleep(self.seconds)
        self.n_labels_ = y.shape[1]
        return self

    def predict(self, X):
        generator = np.random.default_rng(self.random_state)
        return generator.integers(2, size=(len(X), self.n_labels_))


def run(folder):
    """All sixty units of it, as far as they are not in the folder."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 4))
    Y = (X @ generator.normal(size=(4, 3)) + generator.normal(size=(60, 3)) > 0.4).astype(int)
    methods = {"binary_relevance": "binary_relevance", "slow": Slow(), "catalog": "catalog",
               "chain": "chain", "per target": Slow("f1", 0.002)}  # fmt: skip
    return Study(X, Y, methods=methods, targets=["f1", "hamming", "subset"], folds=4).run(folder)
