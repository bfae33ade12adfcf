"""Quality on real data with its official splits: `python -m benchmarks quality --data FOLDER`.

The folder holds a folder for each set: X.npz (CSR) or X.npy, Y.npz (CSR 0/1) and meta.json with the
split. Without the option nothing is measured. Every method sees the same training and test rows as
they are stored; nothing is tuned on the test rows. Rows are stored as they are made.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier

from benchmarks.rows import machine
from setwise import CatalogClassifier, SetClassifierCV, TargetDecoder
from setwise.targets import get_target

SETS = ("emotions", "scene", "yeast", "medical", "enron", "slashdot", "bibtex")
TARGETS = ("f1", "jaccard", "subset", "hamming")
# Trees keep a number for each class in each leaf: with more classes they do not fit in memory.
MOST_CLASSES = 1000
TREES = {"n_estimators": 300, "n_jobs": 2, "random_state": 0}


def logistic() -> LogisticRegression:
    """Scikit-learn's own, with room to converge."""
    return LogisticRegression(max_iter=1000)


class TunedLogistic(ClassifierMixin, BaseEstimator):
    """Its threshold tuned for F1 in three folds, or 1/2 where a class is too rare for them."""

    def fit(self, X, y):
        """Fit to one label."""
        tuned = TunedThresholdClassifierCV(logistic(), scoring="f1", cv=3)
        self.model_ = (tuned if np.bincount(y).min() >= 3 else logistic()).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        """By the threshold."""
        return self.model_.predict(X)


METHODS: dict[str, Callable[[], Any]] = {
    "SetClassifierCV": lambda: SetClassifierCV("f1"),
    "one-vs-rest logistic": lambda: OneVsRestClassifier(logistic()),
    "classifier chain": lambda: ClassifierChain(logistic(), random_state=0),
    "tuned thresholds": lambda: MultiOutputClassifier(TunedLogistic()),
    "TargetDecoder(one-vs-rest)": lambda: TargetDecoder(OneVsRestClassifier(logistic()), "f1"),
    "random forest": lambda: RandomForestClassifier(**TREES),
    "TargetDecoder(random forest)": lambda: TargetDecoder(RandomForestClassifier(**TREES), "f1"),
    "CatalogClassifier(extra trees)": lambda: CatalogClassifier(
        ExtraTreesClassifier(**TREES), "f1"
    ),
}

THEIRS = ("one-vs-rest logistic", "classifier chain", "tuned thresholds", "random forest")


def load(folder: Path) -> tuple[Any, Any, Any, Any]:
    """X and Y to train on, X and Y to test on."""
    stored = folder / "X.npz"
    X = sparse.csr_array(sparse.load_npz(stored)) if stored.exists() else np.load(folder / "X.npy")
    Y = sparse.load_npz(folder / "Y.npz").toarray().astype(np.int64)
    split = json.loads((folder / "meta.json").read_text())["split"]
    if split is None:
        order = np.random.default_rng(7).permutation(len(Y))
        train, test = np.split(order, [int(0.7 * len(Y))])
    else:
        train, test = (rows(split[part], folder) for part in ("train", "test"))
    return X[train], Y[train], X[test], Y[test]


def rows(part: dict[str, Any], folder: Path) -> np.ndarray:
    """The rows of one part of a split."""
    if "range" in part:
        return np.arange(*part["range"])
    if "indices" in part:
        return np.array(part["indices"])
    return np.load(folder / part["file"])


def quality(data: Path | None = None, sets: Sequence[str] = SETS) -> Iterator[dict[str, Any]]:
    """A row for each set and method."""
    for name in sets if data is not None else ():
        assert data is not None
        if not (data / name).exists():
            print(f"{name} is not in {data}: skipped")
            continue
        X, Y, X_test, Y_test = load(data / name)
        n_sets = len(np.unique(Y, axis=0))
        for method, make in METHODS.items():
            if method.startswith("CatalogClassifier") and n_sets > MOST_CLASSES:
                continue
            began = time.perf_counter()
            # Scikit-learn's own refuse a label that is always or never true: it is predicted so.
            labels = np.ptp(Y, axis=0) > 0 if method in THEIRS else np.ones(Y.shape[1], bool)
            y_pred = np.tile(Y[0], (len(Y_test), 1)).astype(np.uint8)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = make().fit(X, Y[:, labels])
                y_pred[:, labels] = model.predict(X_test)
            losses = {t: get_target(t).loss(y_pred, Y_test).mean() for t in TARGETS}
            yield {
                "set": name, "method": method,
                **{f"{target} utility": 1.0 - float(loss) for target, loss in losses.items()},
                "seconds": time.perf_counter() - began,
                "chosen": str(getattr(model, "best_params_", "")), **machine(),
            }  # fmt: skip
