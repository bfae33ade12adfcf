"""How the time of training and prediction grows: `python -m benchmarks model_growth`.

Drawn data, of which one size is doubled while the others stay: rows, features, labels, and the
number of label sets that occur. Processor seconds on one thread, all methods in one process; models
are compiled before. Settings are defaults: what is compared is growth, not quality.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from threadpoolctl import threadpool_limits

from benchmarks.rows import machine
from setwise import CatalogClassifier, SetBooster, SetClassifier, TargetDecoder
from setwise.threads import threads_limited

BASE = {"rows": 2_000, "features": 100, "labels": 20, "label sets": 100}
DOUBLINGS = {"rows": 4, "features": 3, "labels": 3, "label sets": 4}
FIRST = {"rows": 1_000, "features": 50, "labels": 10, "label sets": 25}


def methods() -> dict[str, Any]:
    """Of ours and of scikit-learn's."""
    one = LogisticRegression(max_iter=300)
    forest = ExtraTreesClassifier(100, random_state=0)
    return {
        "SetClassifier": SetClassifier("f1"),
        "SetClassifier, sized": SetClassifier("f1", space="sized"),
        "SetBooster, 30 rounds": SetBooster("f1", n_estimators=30, patience=None),
        "TargetDecoder(one-vs-rest)": TargetDecoder(OneVsRestClassifier(one), "f1"),
        "CatalogClassifier(extra trees)": CatalogClassifier(forest, "f1"),
        "one-vs-rest": OneVsRestClassifier(one),
        "classifier chain": ClassifierChain(one),
        "extra trees": forest,
    }


def drawn(shape: dict[str, int], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows near the centre of their label set, of so many sets."""
    rng = np.random.default_rng(seed)
    kinds = rng.random((4 * shape["label sets"], shape["labels"])) < 3.0 / shape["labels"]
    kinds = np.unique(kinds.astype(np.int64), axis=0)
    kinds = rng.permutation(kinds)[: shape["label sets"]]
    kinds[0] = 1  # every label is there
    centres = kinds @ rng.normal(size=(shape["labels"], shape["features"]))
    chosen = np.append(np.arange(len(kinds)), rng.integers(0, len(kinds), shape["rows"]))
    chosen = chosen[: shape["rows"]]
    return centres[chosen] + 2.0 * rng.normal(size=(len(chosen), shape["features"])), kinds[chosen]


def model_growth() -> Iterator[dict[str, Any]]:
    """A row for each size, step of it and method."""
    with warnings.catch_warnings(), threadpool_limits(1), threads_limited(1):
        warnings.simplefilter("ignore")  # solvers that stop early
        for model in methods().values():
            X, Y = drawn({**BASE, "rows": 300, "features": 5})
            model.fit(X, Y).predict(X)  # compiles
        for size, steps in DOUBLINGS.items():
            for step in range(steps):
                shape = {**BASE, size: FIRST[size] * 2**step}
                X, Y = drawn(shape)
                for name, model in methods().items():
                    fit, _ = _seconds(model.fit, X, Y)
                    predict, _ = _seconds(model.predict, X[:1_000])
                    yield {
                        "grows": size, **shape, "method": name, "fit_seconds": fit,
                        "predict_seconds": predict, **machine(),
                    }  # fmt: skip


def _seconds(work: Any, *given: Any) -> tuple[float, Any]:
    began = time.process_time()
    found = work(*given)
    return time.process_time() - began, found
