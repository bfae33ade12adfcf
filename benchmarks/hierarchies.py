"""Quality on hierarchical data: `python -m benchmarks hierarchies --data FOLDER`.

The folder is as of `benchmarks.quality`, with the hierarchy in meta.json. For every method alike,
dense features are standardised, with missing ones at their mean, and sparse rows have length 1.
Every method chooses its penalty from the same grid by the tree distance of the same three folds of
the training rows, ours its surrogate and space too. Rows are stored as they are made.

HiClass's local classifiers are compared where it is installed and every label set is one path.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from benchmarks.quality import load
from benchmarks.rows import machine
from setwise import SetClassifier, SetClassifierCV, Taxonomy
from setwise.evaluation import compare
from setwise.folds import StratifiedLabelSets
from setwise.spaces import Paths
from setwise.targets import TreeDistance

SETS = ("enron_hmc", "cellcycle_fun", "diatoms", "imclef07a")
SURROGATES = ("likelihood", "binary_relevance")
# Penalties alpha of mean loss + alpha / 2 ||W||²; scikit-learn's C is 1 / (n alpha).
ALPHAS = tuple(float(alpha) for alpha in np.logspace(0.5, -5.0, 12))
# A path of penalties ends after this many in a row that are worse than its best.
PATIENCE = 2
FOLDS = 3


@dataclass(frozen=True)
class Problem:
    """The taxonomy and what is learnt from; a method predicts closed label sets."""

    taxonomy: Taxonomy
    X: Any
    Y: Any

    def distance(self, y_pred: Any, y_true: Any) -> float:
        """The mean length of the edges on which two label sets differ."""
        return float((y_pred != y_true).sum(axis=1).mean())


# Trains on some rows with a penalty, and predicts the label sets of others.
Trained = Callable[[Problem, Any, Any, float], Any]
# Chooses by the training rows, and predicts the label sets of others; says what it chose.
Method = Callable[[Problem, Any], tuple[Any, str]]


def ours(problem: Problem, X_new: Any) -> tuple[Any, str]:
    """`SetClassifierCV` for tree distance: predictions, and what the folds chose."""
    model = SetClassifierCV(
        TreeDistance(problem.taxonomy), surrogates=SURROGATES, alphas=ALPHAS, scalings=[None],
        cv=StratifiedLabelSets(FOLDS),
    ).fit(problem.X, problem.Y)  # fmt: skip
    best = model.best_params_
    return model.predict(X_new), f"{best['surrogate']}, {best['space']}, {best['alpha']:.2g}"


def flat(problem: Problem, rows: Any, X_new: Any, alpha: float) -> Any:
    """A logistic regression for each label, cut at 1/2; then all above a label is added.

    The objective is that of scikit-learn's one-vs-rest with LogisticRegression.
    """
    model = SetClassifier("hamming", "binary_relevance", alpha=alpha)
    return problem.taxonomy.close(model.fit(problem.X[rows], problem.Y[rows]).predict(X_new))


def local(kind: str) -> Trained:
    """HiClass's local classifiers of logistic regressions; label sets are paths."""

    def fitted(problem: Problem, rows: Any, X_new: Any, alpha: float) -> Any:
        import hiclass

        regression = LogisticRegression(C=1.0 / (len(rows) * alpha), max_iter=300)
        model = getattr(hiclass, kind)(local_classifier=regression)
        levels, depth = problem.taxonomy.levels, problem.taxonomy.depth
        # The name of the label on each level, empty below the end of a path.
        named = np.full((len(rows), depth), "", dtype=object)
        row, label = np.nonzero(problem.Y[rows])
        named[row, levels[label]] = [f"label {number}" for number in label]
        model.fit(problem.X[rows], named)
        found = np.zeros((len(X_new), problem.taxonomy.n_labels), dtype=np.int64)
        for number, names in enumerate(model.predict(X_new)):
            found[number, [int(name.split()[-1]) for name in names if name]] = 1
        return found

    return fitted


def tuned(trained: Trained) -> Method:
    """With the penalty of least tree distance over the folds, from large to small."""

    def fitted(problem: Problem, X_new: Any) -> tuple[Any, str]:
        splits = list(StratifiedLabelSets(FOLDS).split(problem.X, problem.Y))
        losses: list[float] = []
        for alpha in ALPHAS:
            found = [
                problem.distance(trained(problem, train, problem.X[test], alpha), problem.Y[test])
                for train, test in splits
            ]
            losses.append(float(np.mean(found)))
            if sum(loss > min(losses) for loss in losses[int(np.argmin(losses)) :]) >= PATIENCE:
                break
        alpha = ALPHAS[int(np.argmin(losses))]
        return trained(problem, np.arange(len(problem.Y)), X_new, alpha), f"{alpha:.2g}"

    return fitted


# The first is what the others are compared with.
METHODS: dict[str, Method] = {"SetClassifierCV": ours, "one-vs-rest, closed": tuned(flat)}
ON_PATHS: dict[str, Method] = {
    "HiClass, per parent": tuned(local("LocalClassifierPerParentNode")),
    "HiClass, per node": tuned(local("LocalClassifierPerNode")),
}


def hierarchies(data: Path | None = None, sets: Sequence[str] = SETS) -> Iterator[dict[str, Any]]:
    """A row for each set and method."""
    for name in sets if data is not None else ():
        assert data is not None
        if not (data / name).exists():
            print(f"{name} is not in {data}: skipped")
            continue
        taxonomy = Taxonomy.from_meta(data / name / "meta.json").spanning_tree()
        X, Y, X_test, Y_test = load(data / name)
        dense = make_pipeline(SimpleImputer(), StandardScaler())
        scaling = (Normalizer() if sparse.issparse(X) else dense).fit(X)
        problem, X_test = Problem(taxonomy, scaling.transform(X), Y), scaling.transform(X_test)
        on_paths = bool(Paths(taxonomy).contains(Y).all())
        peers = ON_PATHS if on_paths and find_spec("hiclass") else {}
        first = None
        for method, predicted in (METHODS | peers).items():
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                y_pred, told = predicted(problem, X_test)
            seconds = time.perf_counter() - began
            first = y_pred if first is None else first
            yield {
                "set": name, "labels": taxonomy.n_labels, "paths": on_paths, "method": method,
                **judged(first, y_pred, Y_test, taxonomy),
                "seconds": seconds, "chosen": told, **machine(),
            }  # fmt: skip


def judged(first: Any, y_pred: Any, y_true: Any, taxonomy: Taxonomy) -> dict[str, float | None]:
    """Figures of a prediction on the test rows, and how far it is from the first one."""
    both = compare(first, y_pred, y_true, taxonomy=taxonomy)
    over, figures = both["tree distance"], both.b
    return {
        "tree distance": figures["tree distance"].value,
        "over ours": over.value, "low": over.low, "high": over.high,
        "hierarchical f1": figures["hierarchical f1"].value,
        "closed": figures["closed predictions"].value,
    }  # fmt: skip
