"""What it costs to choose a model, and by what: `python -m benchmarks searches --data FOLDER`.

`SetClassifierCV("f1")` against scikit-learn's `LogisticRegressionCV(Cs=10, cv=5)` for each label,
in processor seconds on one thread of the same process. The latter is fitted to the labels that are
in at least five rows, one a fold. Then what is reached on test rows by models chosen by each target
itself, and by one model chosen by likelihood.

`python -m benchmarks fits --data FOLDER`: one fit of `SetClassifier("f1")` on each space against
scikit-learn's `LogisticRegression` for each label, with the same penalty and tolerance. (Our scores
are halves of log-odds: by the weights of log-odds the penalty is a quarter of alpha, and a gradient
half of ours.)
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.multiclass import OneVsRestClassifier
from threadpoolctl import threadpool_limits

from benchmarks.quality import TARGETS, load
from benchmarks.rows import machine
from setwise import SetClassifier, SetClassifierCV
from setwise.targets import get_target
from setwise.threads import threads_limited

SETS = ("emotions", "scene", "yeast", "medical", "slashdot", "enron", "text", "bibtex")
# Sets small enough for every target to be searched for.
COMPARED = SETS[:6]
FOLDS, PENALTIES = 5, 10
# The first of so many training rows of a set, in a random order, are a set of their own.
IMDB = {"imdb, quarter": 21_000, "imdb, half": 42_000, "imdb": 84_000}
PARTS = {"text": ("reuters21578", 2250)} | {name: ("imdb", most) for name, most in IMDB.items()}
FITTED, SPACES, ALPHA, TOL = (*SETS, *IMDB), ("auto", "sized", "backoff"), 1e-3, 1e-4


def searches(data: Path | None = None, sets: Sequence[str] = SETS) -> Iterator[dict[str, Any]]:
    """A row for each set."""
    assert data is not None, "data sets are needed: --data FOLDER"
    for name in sets:
        with warnings.catch_warnings(), threadpool_limits(1), threads_limited(1):
            warnings.simplefilter("ignore")  # solvers that stop early
            yield measured(name, *rows_of(data, name)) | machine()


def fits(data: Path | None = None, sets: Sequence[str] = FITTED) -> Iterator[dict[str, Any]]:
    """A row for each set and space; ``growth`` where the set of half the rows came before."""
    assert data is not None, "data sets are needed: --data FOLDER"
    taken = {}
    for name in sets:
        with warnings.catch_warnings(), threadpool_limits(1), threads_limited(1):
            warnings.simplefilter("ignore")  # solvers that stop early
            for row in fitted(name, *rows_of(data, name)):
                taken[row["rows"], row["space"]] = row["seconds"]
                half = taken.get((row["rows"] // 2, row["space"])) if name in IMDB else None
                yield row | {"growth": half and row["seconds"] / half}


def fitted(name: str, X: Any, Y: Any, X_test: Any, Y_test: Any) -> Iterator[dict[str, Any]]:
    """One model of ours on each space, beside theirs."""
    both = Y[:, (Y.min(axis=0) < 1) & (Y.max(axis=0) > 0)]
    one = LogisticRegression(C=4.0 / (ALPHA * len(Y)), tol=TOL / 2.0, max_iter=1000)
    yardstick, _ = seconds(lambda: OneVsRestClassifier(one).fit(X, both))
    for space in SPACES:
        model = SetClassifier("f1", space=space, alpha=ALPHA, tol=TOL)
        model.fit(X[:100], Y[:100])  # compiles
        ours, _ = seconds(lambda model=model: model.fit(X, Y))
        yield {
            "set": name, "rows": len(Y), "features": X.shape[1], "labels": Y.shape[1],
            "space": f"auto: {type(model.space_).__name__}" if space == "auto" else space,
            "seconds": ours, "their seconds": yardstick, "ratio": ours / yardstick,
            "steps": model.n_iter_, "f1": reached(model, "f1", X_test, Y_test), **machine(),
        }  # fmt: skip


def rows_of(data: Path, name: str) -> tuple[Any, Any, Any, Any]:
    """Training and test rows of a set, or of a part of one."""
    whole, most = PARTS.get(name, (name, None))
    X, Y, X_test, Y_test = load(data / whole)
    chosen = np.random.default_rng(0).permutation(len(Y))[:most] if most else slice(None)
    return X[chosen], Y[chosen], X_test, Y_test


def measured(name: str, X: Any, Y: Any, X_test: Any, Y_test: Any) -> dict[str, Any]:
    """Seconds of ours and theirs, and what is reached."""
    SetClassifierCV("f1", max_iter=1).fit(X[:100], Y[:100])  # compiles
    often = Y[:, (Y.sum(axis=0) >= FOLDS) & ((1 - Y).sum(axis=0) >= FOLDS)]
    theirs = OneVsRestClassifier(LogisticRegressionCV(Cs=PENALTIES, cv=FOLDS))
    ours, models = seconds(lambda: SetClassifierCV("f1").fit(X, Y))
    yardstick, _ = seconds(lambda: theirs.fit(X, often))
    by_target = {"f1": models}
    by_likelihood: Any = None
    taken = None
    if name in COMPARED:
        by_target |= {t: SetClassifierCV(t).fit(X, Y) for t in TARGETS[1:]}
        taken, by_likelihood = seconds(
            lambda: SetClassifierCV("f1", choose_by="likelihood").fit(X, Y)
        )
    row: dict[str, Any] = {
        "set": name, "rows": len(Y), "features": X.shape[1], "labels": Y.shape[1],
        "labels of theirs": often.shape[1], "seconds": ours, "their seconds": yardstick,
        "ratio": ours / yardstick, "seconds by likelihood": taken,
    }  # fmt: skip
    for target in TARGETS:
        same = by_likelihood and by_likelihood.for_target(target)
        row[target] = reached(by_target.get(target), target, X_test, Y_test)
        row[f"{target}, by likelihood"] = reached(same, target, X_test, Y_test)
    return row


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds, and what came of it."""
    began = time.process_time()
    made = work()
    return time.process_time() - began, made


def reached(model: Any, target: str, X: Any, Y: Any) -> float | None:
    """The mean utility of test rows, None without a model."""
    if model is None:
        return None
    return 1.0 - float(get_target(target).loss(model.predict(X), Y).mean())
