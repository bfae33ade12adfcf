"""Evidence for the rule of `space="auto"`: `python -m benchmarks choice --data FOLDER`.

On each data set the list of seen label sets and the sized space are trained with penalties chosen
by cross-validation, on at most 5,000 of its training rows (fewer too, where that leaves more label
sets unseen), and tested on at most 5,000 of its test rows, drawn by a fixed seed. Beside stand Good
and Turing's estimate of the mass of label sets never seen, and the share of test rows that had one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.data import load
from benchmarks.rows import machine
from setwise import SetClassifierCV
from setwise.estimators.choice import unseen_mass
from setwise.targets import get_target

SETS = (
    "scene", "emotions", "reuters21578", "slashdot", "imclef07a", "yeast", "medical", "tmc2007_500",
    "enron", "bibtex", "corel5k", "delicious",
)  # fmt: skip
ROWS = {"enron": (5000, 250), "bibtex": (5000, 500), "corel5k": (5000, 1000, 300)}
ROWS |= {"delicious": (1000,), "yeast": (5000, 150)}
MOST_ROWS = 5000
SPACES = ("catalog", "sized")


def choice(data: Path | None = None, sets: Sequence[str] = SETS) -> Iterator[dict[str, Any]]:
    """A row for each set: the estimate, what was seen, and what each space reached."""
    for name in sets if data is not None else ():
        assert data is not None
        stored = load(data / name)
        for most in ROWS.get(name, (MOST_ROWS,)):
            yield measured(name, most, *stored) | machine()


def measured(name: str, most: int, X, Y, X_test, Y_test) -> dict[str, Any]:
    """What each space reaches with at most that many training rows."""
    rng = np.random.default_rng(0)
    train, test = rng.permutation(len(Y))[:most], rng.permutation(len(Y_test))[:MOST_ROWS]
    X, Y, X_test, Y_test = X[train], Y[train], X_test[test], Y_test[test]
    seen = {row.tobytes() for row in Y}
    row: dict[str, Any] = {
        "set": name, "rows": len(Y), "labels": Y.shape[1], "sets": len(seen),
        "unseen, estimated": unseen_mass(Y.astype(np.uint8)),
        "unseen in test": float(np.mean([row.tobytes() not in seen for row in Y_test])),
    }  # fmt: skip
    for space in SPACES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = SetClassifierCV("f1", spaces=[space], cv=3).fit(X, Y)
        losses = get_target("f1").loss(model.predict(X_test), Y_test)
        row[f"{space} f1"] = 1.0 - float(losses.mean())
        row[f"{space} f1, folds"] = 1.0 - model.best_loss_
    return row
