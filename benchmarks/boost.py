"""A booster beside XGBoost's own multi-label objective: `python -m benchmarks boost --data FOLDER`.

The same trees (a vector in each leaf, the same settings) and the same number of rounds, in one
process, in turns. Of ours, the time that gradients and Hessians take is measured too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.quality import load
from benchmarks.rows import machine
from setwise import SetBooster
from setwise.estimators.boosting import xgboost
from setwise.estimators.design import Rows
from setwise.estimators.training import Objective

SETS = ("tmc2007_500", "scene")
ROUNDS, TURNS = 20, 3


class Took(NamedTuple):
    """Seconds by the clock on the wall, and of processors."""

    wall: float
    processor: float


def boost(data: Path | None = None, sets: Sequence[str] = SETS) -> Iterator[dict[str, Any]]:
    """A row for each set."""
    for name in sets if data is not None else ():
        assert data is not None
        X, Y, X_test, Y_test = load(data / name)
        ours, theirs, objective = [], [], []
        model = SetBooster("f1", n_estimators=ROUNDS, patience=None)
        for _ in range(TURNS):
            whole, part = timed(model, X, Y)
            ours.append(whole)
            objective.append(part.processor / whole.processor)
            theirs.append(plain(model, X, Y))
        logs = model.predict_distribution(X_test).log_probability(Y_test)
        least = {
            kind: [min(getattr(took, kind) for took in of) for of in (ours, theirs)]
            for kind in Took._fields
        }
        yield {
            "set": name, "rows": len(Y), "features": X.shape[1], "labels": Y.shape[1],
            "sets": len(np.unique(Y, axis=0)), "rounds": ROUNDS, "space": str(model.space_),
            "seconds": least["wall"][0], "xgboost_seconds": least["wall"][1],
            "ratio": least["wall"][0] / least["wall"][1],
            "cpu_ratio": least["processor"][0] / least["processor"][1],
            "share of the objective": min(objective),
            "log_loss": -float(logs[np.isfinite(logs)].mean()), **machine(),
        }  # fmt: skip


def timed(model: SetBooster, X: Any, Y: Any) -> tuple[Took, Took]:
    """What a fit takes, and its gradients and Hessians."""
    parts = []

    def counted(*arguments: Any) -> Any:
        found, took = clocked(derivatives, *arguments)
        parts.append(took)
        return found

    derivatives = Objective.derivatives
    with patch.object(Objective, "derivatives", counted):
        _, whole = clocked(model.fit, X, Y)
    return whole, Took(*np.sum(parts, axis=0))


def plain(model: SetBooster, X: Any, Y: Any) -> Took:
    """What XGBoost's own objective takes with the settings of a fitted booster."""
    rows = Rows(X, Y, np.ones(len(Y)))
    settings = {**model._settings(rows), "objective": "binary:logistic"}
    settings.pop("base_score")
    train, DMatrix = xgboost().train, xgboost().DMatrix
    return clocked(lambda: train(settings, DMatrix(X, label=Y), model.n_estimators))[1]


def clocked(function: Any, *arguments: Any) -> tuple[Any, Took]:
    """What a function gives, and what it takes."""
    wall, processor = time.perf_counter(), time.process_time()
    found = function(*arguments)
    return found, Took(time.perf_counter() - wall, time.process_time() - processor)
