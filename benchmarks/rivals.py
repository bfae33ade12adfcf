"""F1 before and after, tuned rivals included: `python -m benchmarks rivals --data FOLDER`.

Data sets as in `benchmarks.quality`, with their official splits. What is tuned is tuned on folds of
the training rows, for the F1 of its own predictions. Rows of sets that are not measured again stay.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from benchmarks.data import load
from benchmarks.rows import load as stored
from benchmarks.rows import machine
from setwise import SetBooster, SetClassifierCV, SetEnsemble, TargetDecoder

SETS = ("emotions", "scene", "yeast", "medical", "enron", "slashdot")
PENALTIES = np.logspace(-3, 4, 8)
AVERAGES = ("samples", "micro", "macro")
# A row without true and predicted labels has F1 1; a label that never occurs counts 0.
NOTHING = {"samples": 1.0, "micro": 0.0, "macro": 0.0}


def one_vs_rest() -> OneVsRestClassifier:
    """A logistic regression for each label, cut at 0.5."""
    return OneVsRestClassifier(LogisticRegression(max_iter=1000))


def tuned(X: Any, decoded: bool) -> GridSearchCV:
    """One-vs-rest, its C and the scaling of the features chosen in five folds."""
    scalings = ["passthrough", Normalizer() if sparse.issparse(X) else StandardScaler()]
    model: Any = Pipeline([("scaling", "passthrough"), ("labels", one_vs_rest())])
    grid = {"scaling": scalings, "labels__estimator__C": PENALTIES}
    if decoded:
        model = TargetDecoder(model, "f1")
        grid = {f"estimator__{name}": values for name, values in grid.items()}
    scoring = make_scorer(f1_score, average="samples", zero_division=1.0)
    return GridSearchCV(model, grid, scoring=scoring, cv=KFold(5, shuffle=True, random_state=0))


METHODS = {
    "one-vs-rest": lambda X: one_vs_rest(),
    "tuned one-vs-rest": lambda X: tuned(X, decoded=False),
    "TargetDecoder(tuned one-vs-rest)": lambda X: tuned(X, decoded=True),
    "SetClassifierCV": lambda X: SetClassifierCV("f1"),
    "SetBooster": lambda X: SetBooster("f1"),
    "SetEnsemble": lambda X: SetEnsemble("f1"),
}


def rivals(data: Path | None = None, sets: Sequence[str] = SETS) -> Iterator[dict[str, Any]]:
    """A row for each set and method, in the order of `SETS`."""
    assert data is not None, "data sets are needed: --data FOLDER"
    before = stored("rivals")
    for name in SETS:
        if name not in sets:
            yield from (row for row in before if row["set"] == name)
            continue
        X, Y, X_test, Y_test = load(data / name)
        for method, make in METHODS.items():
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # labels missing in a fold; solvers that stop early
                model = make(X).fit(X, Y)
                y_pred = model.predict(X_test)
            yield {
                "set": name, "method": method,
                **{f"{average} f1": float(f1_score(
                    Y_test, y_pred, average=average, zero_division=NOTHING[average]
                )) for average in AVERAGES},
                "seconds": time.perf_counter() - began,
                "chosen": _chosen(getattr(model, "best_params_", {})), **machine(),
            }  # fmt: skip


def _chosen(settings: dict[str, Any]) -> str:
    """What was chosen, without the path to each parameter."""
    return ", ".join(f"{name.split('__')[-1]}={value}" for name, value in settings.items())
