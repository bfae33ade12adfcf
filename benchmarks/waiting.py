"""What a person waits for: the first call in a process, one row, a fit on a busy machine."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from benchmarks.rows import machine
from benchmarks.speed import interleaved
from setwise import SetClassifier
from setwise.kernel_cache import count_installed
from setwise.threads import thread_count

TARGETS = ("f1", "f2", "jaccard", "subset", "hamming", "precision@3", "recall@3")
# What is fitted in a fresh process, of a `target` by its name or, last, of a hierarchy.
ESTIMATORS = {
    "SetClassifier": "SetClassifier(target)",
    "SetClassifier, sized": "SetClassifier(target, space='sized')",
    "SetClassifier, binary relevance": "SetClassifier(target, 'binary_relevance')",
    "SetClassifierCV": "SetClassifierCV(target)",
    "TargetDecoder": "TargetDecoder(OneVsRestClassifier(LogisticRegression()), target)",
}
# Rows, features and labels: those of small tables people have.
SHAPES = ((600, 72, 6), (1_000, 100, 14), (1_000, 1_000, 50))
ROUNDS, CALLS, THREADS = 30, 50, 8
BUSY_SHAPES = ((322, 260, 19), (463, 1_186, 27))
FRESH_PROCESS = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
def now():
    return time.perf_counter(), time.process_time()
began = now()
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
theirs = now()
import numpy as np
from setwise import SetClassifier, SetClassifierCV, TargetDecoder
from setwise.targets import TreeDistance
generator = np.random.default_rng(0)
X = generator.normal(size=(300, 20))
Y = (X[:, :6] + generator.normal(size=(300, 6)) > 0.5).astype(int)
target, parents = sys.argv[1], [-1, 0, 0, 1, 1, -1]
if target == "tree":
    target = TreeDistance(parents)
    for label, parent in enumerate(parents):
        Y[:, label] *= Y[:, parent] if parent >= 0 else 1
MODEL.fit(X, Y).predict(X[:5])
ended = now()
print(json.dumps([theirs[0] - began[0], ended[0] - began[0], ended[1] - theirs[1]]))
"""


def drawn(n_rows: int, n_features: int, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal features, and labels that depend on them."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n_rows, n_features))
    effect = generator.normal(size=(n_features, n_labels)) / np.sqrt(n_features)
    noise = generator.normal(size=(n_rows, n_labels))
    return X, (X @ effect + 0.5 * noise > 1.2).astype(np.int64)


def one_row() -> Iterator[dict[str, Any]]:
    """`predict` of one row against scikit-learn's one-vs-rest, and from several threads at once."""
    for shape in SHAPES:
        X, Y = drawn(*shape)
        theirs = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
        for target in TARGETS:
            model = SetClassifier(target).fit(X, Y)
            runs = [partial(_repeated, one.predict, X[:1]) for one in (model, theirs)]
            interleaved(runs, 2)
            ours, other = interleaved(runs, ROUNDS)
            yield {
                "rows": shape[0], "features": shape[1], "labels": shape[2], "target": target,
                "ratio": ours / other, "milliseconds": 1e3 * ours / CALLS,
                "one_vs_rest_milliseconds": 1e3 * other / CALLS,
                "same_from_threads": _same_from_threads(model, X), "rounds": ROUNDS, **machine(),
            }  # fmt: skip


def _repeated(predict: Any, row: np.ndarray) -> None:
    for _ in range(CALLS):
        predict(row)


def _same_from_threads(model: Any, X: np.ndarray) -> bool:
    """Whether rows predicted one by one, by several threads at once, are those of one call."""
    with ThreadPoolExecutor(THREADS) as pool:
        parts = list(pool.map(lambda row: model.predict(X[row : row + 1]), range(len(X))))
    return bool(np.array_equal(np.concatenate(parts), model.predict(X)))


def first_call() -> Iterator[dict[str, Any]]:
    """Import, fit and predict in fresh processes, without kept kernels and with them."""
    _, installed = count_installed()
    for name, model in ESTIMATORS.items():
        # (All label sets of some size are not those of a hierarchy.)
        for target in TARGETS if "sized" in name else (*TARGETS, "tree"):
            with tempfile.TemporaryDirectory() as folder:
                runs = np.array([_fresh(target, model, folder) for _ in range(3)])
            sklearn, total, beyond = runs.T
            yield {
                "target": target, "estimator": name, "installed": installed,
                "cold_seconds": total[0], "cold_processor_seconds": beyond[0],
                "warm_seconds": total[1:].min(),
                "warm_processor_seconds": beyond[1:].min(), "sklearn_seconds": sklearn.min(),
                "warm_over_sklearn": total[1:].min() / sklearn.min(), **machine(),
            }  # fmt: skip


def _fresh(target: str, model: str, folder: str) -> list[float]:
    command = [sys.executable, "-c", FRESH_PROCESS.replace("MODEL", model), target]
    environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout)


def busy() -> Iterator[dict[str, Any]]:
    """A fit alone, and beside as many busy processes as there are processors."""
    for shape in BUSY_SHAPES:
        X, Y = drawn(*shape)
        fits = {"default threads": _fit, "one thread": _fit_on_one_thread}
        alone = {name: min(_seconds(fit, X, Y) for _ in range(3)) for name, fit in fits.items()}
        with _busy_processes(thread_count()):
            beside = {name: _seconds(fit, X, Y) for name, fit in fits.items()}
        for name in fits:
            yield {
                "rows": shape[0], "features": shape[1], "labels": shape[2], "fit": name,
                "seconds_alone": alone[name], "seconds_beside": beside[name],
                "ratio": beside[name] / alone[name], **machine(),
            }  # fmt: skip


def _fit(X: np.ndarray, Y: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SetClassifier("f1").fit(X, Y)


def _fit_on_one_thread(X: np.ndarray, Y: np.ndarray) -> None:
    from threadpoolctl import threadpool_limits

    from setwise.threads import threads_limited

    with threadpool_limits(1), threads_limited(1):
        _fit(X, Y)


def _seconds(fit: Any, X: np.ndarray, Y: np.ndarray) -> float:
    began = time.perf_counter()
    fit(X, Y)
    return time.perf_counter() - began


@contextmanager
def _busy_processes(count: int) -> Iterator[None]:
    """That many other processes, each of which keeps a processor busy."""
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=_burn, daemon=True) for _ in range(count)]
    for other in others:
        other.start()
    # So that they are at it.
    time.sleep(2.0)
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.join()


def _burn() -> None:
    while True:
        pass
