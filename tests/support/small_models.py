"""Boosters, forests and searches that are small, so that tests of what is around them are quick."""

from functools import partial

import numpy as np

from setwise import SetBooster
from setwise.estimators.leaf_forest import LeafForest
from setwise.study import tuned_thresholds


def few_trees(monkeypatch):
    """Boosters of few rounds, forests of few trees, searches of few folds and thresholds."""
    defaults = {**SetBooster.__init__.__kwdefaults__, "n_estimators": 6, "n_jobs": 1}
    monkeypatch.setattr(SetBooster.__init__, "__kwdefaults__", defaults)
    monkeypatch.setattr(
        LeafForest.__init__, "__defaults__", (8, *LeafForest.__init__.__defaults__[1:])
    )
    monkeypatch.setattr("setwise.estimators.set_classifier_cv.FOLDS", ((2, np.inf),))
    few = partial(tuned_thresholds.TunedThresholdClassifierCV, thresholds=5)
    monkeypatch.setattr(tuned_thresholds, "TunedThresholdClassifierCV", few)
