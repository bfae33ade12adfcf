"""Boosters, forests and searches that are small, so that tests of what is around them are quick."""

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from setwise import SetBooster


def few_trees(monkeypatch):
    """Boosters of few rounds, forests of few trees, searches of few folds, in all that is made."""
    defaults = {**SetBooster.__init__.__kwdefaults__, "n_estimators": 6, "n_jobs": 1}
    monkeypatch.setattr(SetBooster.__init__, "__kwdefaults__", defaults)

    def few(n_estimators, **settings):
        return ExtraTreesClassifier(8, **settings)

    monkeypatch.setattr("setwise.estimators.set_ensemble.ExtraTreesClassifier", few, raising=False)
    monkeypatch.setattr("setwise.estimators.set_classifier_cv.FOLDS", ((2, np.inf),))
