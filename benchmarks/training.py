"""Training of binary relevance against scikit-learn: `python -m benchmarks training --data FOLDER`.

All minimise the same objective, mean loss + alpha / 2 ||W||² with alpha = 1 / n (C = 1), for each
label. Each row has what was reached: the objective and the largest entry of its gradient, by one
function in float64 from coefficients and intercepts. Scikit-learn uses one thread: vectors of one
label are too short for its linear algebra to gain by more. Liblinear penalises the intercept too,
though little with this scaling, and stops by a rule of its own.

Then the memory of training on whole data sets: the peak of a fresh process, and what it was before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from threadpoolctl import threadpool_limits

from benchmarks.data import load
from benchmarks.rows import machine
from benchmarks.speed import interleaved
from setwise import SetClassifier

SETS = ("bibtex", "tmc2007_500", "delicious")
TOLS = (1e-4, 1e-6)
ROUNDS = 1
MAX_ITER = 10_000
MEMORY_SETS = ("delicious", "imdb")
# Memory is at its peak in the first steps; to the end the likelihood would train for minutes.
MEMORY_STEPS = 5
MEMORY_OF = {
    "SetClassifier(binary relevance)": {"surrogate": "binary_relevance"},
    "SetClassifier()": {"max_iter": MEMORY_STEPS},
}
FRESH_PROCESS = """
import json, sys, warnings
from pathlib import Path
from scipy.sparse import csr_array, load_npz
from setwise import SetClassifier
warnings.simplefilter("ignore")
# Not getrusage, which has the peak of the process this one was started from.
def peak():
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index("VmHWM:") + 1]) / 1024
folder, settings = Path(sys.argv[1]), json.loads(sys.argv[2])
X, Y = (csr_array(load_npz(folder / name)) for name in ("X.npz", "Y.npz"))
model = SetClassifier(**settings)
before = peak()
model.fit(X, Y)
print(*X.shape, Y.shape[1], before, peak())
"""


def setwise_model(n: int, tol: float) -> Any:
    """Ours."""
    return SetClassifier(surrogate="binary_relevance", alpha=1.0 / n, tol=tol, max_iter=MAX_ITER)


def one_vs_rest(n: int, tol: float, **settings: Any) -> Any:
    """Scikit-learn's logistic regression, a label after the other."""
    return OneVsRestClassifier(LogisticRegression(tol=tol, max_iter=MAX_ITER, **settings))


METHODS: dict[str, Callable[[int, float], Any]] = {
    "SetClassifier(binary relevance)": setwise_model,
    "one-vs-rest lbfgs": one_vs_rest,
    "one-vs-rest liblinear": partial(one_vs_rest, solver="liblinear", intercept_scaling=10.0),
}


def training(data: Path | None = None, sets: Sequence[str] = SETS) -> Iterator[dict[str, Any]]:
    """A row for each set, tolerance and method; then one for each set and model in memory."""
    if data is None:
        return
    for name in sets:
        X, Y, _, _ = load(data / name)
        Y = Y[:, np.ptp(Y, axis=0) > 0]
        setwise_model(100, 1e-4).fit(X[:100], Y[:100])
        for tol in TOLS:
            yield from _rows(name, X, Y, tol)
    for name in MEMORY_SETS:
        for method, settings in MEMORY_OF.items():
            yield _memory(data / name, method, settings)


def on_one_thread(work: Callable[[], Any]) -> None:
    """Runs it without threads in linear algebra."""
    with threadpool_limits(1):
        work()


def _rows(name: str, X: Any, Y: np.ndarray, tol: float) -> Iterator[dict[str, Any]]:
    n = X.shape[0]
    models = [make(n, tol) for make in METHODS.values()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours, *theirs = (partial(model.fit, X, Y) for model in models)
        times = interleaved([ours, *(partial(on_one_thread, fit) for fit in theirs)], ROUNDS)
    ends = [reached(X, Y, *parameters(model), 1.0 / n) for model in models]
    for method, seconds, (objective, largest) in zip(METHODS, times, ends, strict=True):
        yield {
            "set": name, "rows": n, "features": X.shape[1], "labels": Y.shape[1],
            "method": method, "tol": tol, "seconds": seconds, "time_over_ours": seconds / times[0],
            "objective": objective, "over_ours": objective - ends[0][0],
            "largest_gradient": largest, "before_mib": None, "peak_mib": None, "rounds": ROUNDS,
            **machine(),
        }  # fmt: skip


def parameters(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Weights (d, l) and intercepts (l,) in float64."""
    parts = getattr(model, "estimators_", [model])
    weights = np.concatenate([part.coef_ for part in parts]).T
    intercept = np.concatenate([part.intercept_ for part in parts])
    return weights.astype(np.float64), intercept.astype(np.float64)


def reached(
    X: Any, Y: np.ndarray, weights: np.ndarray, intercept: np.ndarray, alpha: float
) -> tuple[float, float]:
    """The sum of the labels' objectives and the largest entry of the gradient, in float64."""
    inputs = X.astype(np.float64)
    scores = np.asarray(inputs @ weights) + intercept
    losses = np.logaddexp(0.0, np.where(Y, -scores, scores)).mean(axis=0)
    slopes = (expit(scores) - Y) / len(Y)
    by_weight = np.asarray(inputs.T @ slopes) + alpha * weights
    largest = max(np.abs(by_weight).max(), np.abs(slopes.sum(axis=0)).max())
    return float(losses.sum() + alpha / 2.0 * np.square(weights).sum()), float(largest)


def _memory(folder: Path, method: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The peak resident memory of a process that trains on all rows of a set."""
    ran = subprocess.run(
        [sys.executable, "-c", FRESH_PROCESS, str(folder), json.dumps(settings)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows, features, labels, before, peak = map(float, ran.stdout.split())
    return {
        "set": folder.name, "rows": int(rows), "features": int(features), "labels": int(labels),
        "method": method, "tol": None, "seconds": None, "time_over_ours": None,
        "objective": None, "over_ours": None, "largest_gradient": None, "before_mib": before,
        "peak_mib": peak, "rounds": 1, **machine(),
    }  # fmt: skip
