"""Measures of all rows together on real data: `python -m benchmarks averages --data FOLDER`.

And evidence for `PopulationRule(rule="auto")`: `python -m benchmarks population --data FOLDER`.
Every rule cuts the same marginals of test rows: of the model that `SetClassifierCV` chooses, and of
one-vs-rest logistic regressions with C chosen by the likelihood of held-out rows. Rules that are
fitted see probabilities of the training rows out of five folds. The first split of a set is its
official one; others are random, in parts as large.
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
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier

from benchmarks.data import load
from benchmarks.rows import machine
from setwise import SetClassifier, SetClassifierCV
from setwise.decoders import PopulationRule
from setwise.targets import get_target

SETS = ("emotions", "scene", "yeast", "medical", "slashdot", "enron")
SPLITS = {"emotions": 3, "scene": 2, "yeast": 2, "medical": 3, "slashdot": 1, "enron": 2}
TARGETS = ("macro_f1", "micro_f1", "macro_jaccard", "balanced_accuracy", "g_mean")
RULES = ("expected", "calibrated", "batch", "thresholds", "cross_fitted", "micro_macro")
FOLDS = KFold(5, shuffle=True, random_state=0)


def population(data: Path | None = None, sets: Sequence[str] = SETS) -> Iterator[dict[str, Any]]:
    """A row for each set, split, kind of marginals and measure."""
    for name in sets if data is not None else ():
        assert data is not None
        stored = load(data / name)
        for split in range(SPLITS[name]):
            X, Y, X_test, Y_test = stored if split == 0 else resplit(stored, split)
            for kind, marginals in (("sets seen", of_sets), ("one-vs-rest", one_vs_rest)):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    out_of_fold, of_test = marginals(X, Y, X_test)
                for target in TARGETS:
                    values = {
                        rule: value(target, rule, out_of_fold, Y, of_test, Y_test) for rule in RULES
                    }
                    half = get_target(target).utility((of_test > 0.5).astype(int), Y_test)
                    yield {
                        "set": name, "split": split, "marginals": kind, "measure": target,
                        "at 1/2": float(half), **values, **machine(),
                    }  # fmt: skip


def averages(data: Path | None = None, sets: Sequence[str] = SETS) -> Iterator[dict[str, Any]]:
    """A row for each set and average of F1: `SetClassifierCV` of it, as it is."""
    for name in sets if data is not None else ():
        assert data is not None
        X, Y, X_test, Y_test = load(data / name)
        for target in ("macro_f1", "micro_f1"):
            begun = time.process_time()
            model = SetClassifierCV(target).fit(X, Y)
            seconds = time.process_time() - begun
            yield {
                "set": name, "measure": target, "value": model.score(X_test, Y_test),
                **model.best_params_, "cpu_seconds": seconds, **machine(),
            }  # fmt: skip


def value(target: str, rule: Any, out_of_fold, Y, of_test, Y_test) -> float:
    """The measure that a rule reaches on the test rows."""
    decided = PopulationRule(target, rule).fit(out_of_fold, Y).decode(of_test)
    return float(get_target(target).utility(decided, Y_test))


def resplit(stored: tuple[Any, ...], seed: int) -> tuple[Any, ...]:
    """All rows of a set, in random parts as large as those it has."""
    X, Y, X_test, Y_test = stored
    stack: Any = sparse.vstack if sparse.issparse(X) else np.concatenate
    X, Y, n_train = stack([X, X_test]), np.concatenate([Y, Y_test]), len(Y)
    X = X.tocsr() if sparse.issparse(X) else X
    order = np.random.default_rng(seed).permutation(len(Y))
    train, test = np.split(order, [n_train])
    return X[train], Y[train], X[test], Y[test]


def of_sets(X, Y, X_test) -> tuple[Any, Any]:
    """Marginals of the training rows, out of fold, and of the test rows: `SetClassifierCV`."""
    chosen = SetClassifierCV("f1").fit(X, Y)
    out_of_fold = np.empty(Y.shape)
    for train, held_out in FOLDS.split(Y):
        model = SetClassifier("f1", **chosen.best_params_).fit(X[train], Y[train])
        out_of_fold[held_out] = model.predict_proba(X[held_out])
    return out_of_fold, chosen.predict_proba(X_test)


def one_vs_rest(X, Y, X_test) -> tuple[Any, Any]:
    """The same of logistic regressions, one a label."""
    tried = []
    for C in (0.1, 1.0, 10.0):
        model = OneVsRestClassifier(LogisticRegression(C=C, max_iter=1000))
        p: Any = cross_val_predict(model, X, Y, cv=FOLDS, method="predict_proba")
        p = np.clip(p, 1e-9, 1.0 - 1e-9)
        tried.append((-np.log(np.where(Y == 1, p, 1.0 - p)).mean(), C, p, model))
    _, _, out_of_fold, model = min(tried, key=lambda one: one[:2])
    return out_of_fold, model.fit(X, Y).predict_proba(X_test)
