"""A booster beside XGBoost's own multi-label objective: `python -m benchmarks boost --data FOLDER`.

The same trees (a vector in each leaf, the same settings) and the same number of rounds, in one
process, in turns. Of ours, the time that gradients and Hessians take is measured too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.quality import load
from benchmarks.rows import machine
from setwise import SetBooster
from setwise.estimators.boosting import matrix, xgboost
from setwise.estimators.training import Objective

SETS = ("tmc2007_500", "scene")
ROUNDS, TURNS = 10, 2


def boost(data: Path | None = None, sets: Sequence[str] = SETS) -> Iterator[dict[str, Any]]:
    """A row for each set."""
    for name in sets if data is not None else ():
        assert data is not None
        X, Y, X_test, Y_test = load(data / name)
        ours, theirs, share = [], [], []
        model = SetBooster("f1", n_estimators=ROUNDS, patience=None)
        for _ in range(TURNS):
            seconds, of_objective = timed(model, X, Y)
            ours.append(seconds)
            share.append(of_objective / seconds)
            theirs.append(plain(model, X, Y))
        law = model.predict_distribution(X_test)
        logs = law.log_probability(Y_test)
        yield {
            "set": name, "rows": len(Y), "features": X.shape[1], "labels": Y.shape[1],
            "sets": len(np.unique(Y, axis=0)), "rounds": ROUNDS, "space": str(model.space_),
            "seconds": min(ours), "xgboost_seconds": min(theirs), "ratio": min(ours) / min(theirs),
            "share of the objective": share[int(np.argmin(ours))],
            "log_loss": -float(logs[np.isfinite(logs)].mean()), **machine(),
        }  # fmt: skip


def timed(model: SetBooster, X: Any, Y: Any) -> tuple[float, float]:
    """Seconds of a fit, and of its gradients and Hessians."""
    spent = [0.0]

    def counted(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            begun = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                spent[0] += time.perf_counter() - begun

        return call

    with patch.object(Objective, "derivatives", counted(Objective.derivatives)):
        begun = time.perf_counter()
        model.fit(X, Y)
        return time.perf_counter() - begun, spent[0]


def plain(model: SetBooster, X: Any, Y: Any) -> float:
    """Seconds of XGBoost's own objective with the settings of a fitted booster."""
    settings = model._settings(X)
    settings.pop("base_score")
    begun = time.perf_counter()
    xgboost().train(
        {**settings, "objective": "binary:logistic"}, matrix(X, label=Y), model.n_estimators
    )
    return time.perf_counter() - begun
