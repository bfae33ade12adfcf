"""Quality on hierarchical data: `python -m benchmarks hierarchies --data FOLDER`.

The folder is as of `benchmarks.quality`, with the hierarchy in meta.json. For every method alike,
dense features are standardised, with missing ones at their mean, and sparse rows have length 1.
Every method chooses its penalty by the tree distance of the same folds of the training rows (five;
of more than 20,000 rows one fifth, held out), `SetClassifierCV` its surrogate and space too. Rows
are stored as they are made.

HiClass's local classifiers are compared where it is installed and every label set is one path.

A split of the file's own may be one of time; ``resplits`` are random splits of all rows into parts
of the same sizes, and say how far a difference is that split's.
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
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from benchmarks.data import load
from benchmarks.rows import machine
from setwise import SetClassifier, SetClassifierCV, Taxonomy
from setwise.estimators.folds import StratifiedLabelSets
from setwise.evaluation import compare
from setwise.spaces import Paths
from setwise.targets import TreeDistance

SETS = ("enron_hmc", "cellcycle_fun", "diatoms", "imclef07a", "debtags")
RESPLIT = ("enron_hmc",)
# Penalties alpha of mean loss + alpha / 2 ||W||²; scikit-learn's C is 1 / (n alpha).
ALPHAS = tuple(float(alpha) for alpha in np.logspace(0.5, -5.5, 13))
# A path of penalties ends after this many in a row that are worse than its best.
PATIENCE = 2
FOLDS = 5
# Of more rows, one part is held out, and the likelihood is trained on seen sets with few penalties.
MANY_ROWS, HELD_OUT, FEW_ALPHAS = 20_000, 0.2, (1e-3, 10**-3.5, 1e-4)
RESPLITS = 3


@dataclass(frozen=True)
class Problem:
    """The taxonomy and what is learnt from; a method predicts closed label sets."""

    taxonomy: Taxonomy
    X: Any
    Y: Any

    @property
    def is_large(self) -> bool:
        """Whether there are many rows."""
        return len(self.Y) > MANY_ROWS

    @property
    def cv(self) -> Any:
        """The folds that penalties are chosen by."""
        if self.is_large:
            return ShuffleSplit(1, test_size=HELD_OUT, random_state=0)
        return StratifiedLabelSets(FOLDS)

    def distance(self, y_pred: Any, y_true: Any) -> float:
        """The mean length of the edges on which two label sets differ."""
        return float((y_pred != y_true).sum(axis=1).mean())


# Trains on some rows with a penalty, and predicts the label sets of others.
Trained = Callable[[Problem, Any, Any, float], Any]
# Chooses by the training rows, and predicts the label sets of others; says what it chose.
Method = Callable[[Problem, Any], tuple[Any, str]]


def candidates(problem: Problem) -> list[SetClassifierCV]:
    """A likelihood on each space of labels or label sets, and binary relevance.

    The one of least loss is what `SetClassifierCV` chooses when it is given all of them.
    """
    hierarchical = "paths" if Paths(problem.taxonomy).contains(problem.Y).all() else "closed"
    pairs = [("likelihood", space) for space in (hierarchical, "catalog")]
    if problem.is_large:
        pairs = pairs[1:]
    models = []
    for surrogate, space in [*pairs, ("binary_relevance", "auto")]:
        few = problem.is_large and surrogate == "likelihood"
        # Entries of rows of length 1 are small, and so are gradients.
        fine = sparse.issparse(problem.X) and not few
        model = SetClassifierCV(
            TreeDistance(problem.taxonomy), surrogates=[surrogate], spaces=[space],
            alphas=FEW_ALPHAS if few else ALPHAS, scalings=[None], cv=problem.cv,
            tol=1e-4 if fine else 1e-3,
        )  # fmt: skip
        models.append(model.fit(problem.X, problem.Y))
    return models


def ours(problem: Problem, X_new: Any) -> tuple[Any, str]:
    """Of the candidates that of least loss on the folds: predictions, and which it was."""
    model = min(candidates(problem), key=lambda one: one.best_loss_)
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
        splits = list(problem.cv.split(problem.X, problem.Y))
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


PEERS: dict[str, Method] = {"one-vs-rest, closed": tuned(flat)}
ON_PATHS: dict[str, Method] = {
    "HiClass, per parent": tuned(local("LocalClassifierPerParentNode")),
    "HiClass, per node": tuned(local("LocalClassifierPerNode")),
}


def predictions(problem: Problem, X_new: Any, peers: dict[str, Method]) -> Iterator[Any]:
    """Name, predictions, what was chosen and seconds of each method; ours first."""
    for method, predicted in ({"SetClassifierCV": ours} | peers).items():
        began = time.perf_counter()
        yield method, *predicted(problem, X_new), time.perf_counter() - began


def hierarchies(data: Path | None = None, sets: Sequence[str] = SETS) -> Iterator[dict[str, Any]]:
    """A row for each set and method."""
    for name, taxonomy, (X, Y, X_test, Y_test) in _stored(data, sets):
        problem, X_test = prepared(taxonomy, X, Y, X_test)
        on_paths = bool(Paths(taxonomy).contains(Y).all())
        peers = PEERS | (ON_PATHS if on_paths and find_spec("hiclass") else {})
        first = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for method, y_pred, told, seconds in predictions(problem, X_test, peers):
                first = y_pred if first is None else first
                yield {
                    "set": name, "labels": taxonomy.n_labels, "paths": on_paths, "method": method,
                    **judged(first, y_pred, Y_test, taxonomy),
                    "seconds": seconds, "chosen": told, **machine(),
                }  # fmt: skip


def resplits(data: Path | None = None, sets: Sequence[str] = RESPLIT) -> Iterator[dict[str, Any]]:
    """A row for each set and random split of all its rows, with all methods' tree distances."""
    for name, taxonomy, (X, Y, X_test, Y_test) in _stored(data, sets):
        stack = sparse.vstack if sparse.issparse(X) else np.concatenate
        every, truth = stack([X, X_test]), np.concatenate([Y, Y_test])
        every = every.tocsr() if sparse.issparse(every) else every
        for seed in range(RESPLITS):
            order = np.random.default_rng(seed).permutation(len(truth))
            train, test = np.split(order, [len(Y)])
            problem, X_new = prepared(taxonomy, every[train], truth[train], every[test])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                found = {
                    method: problem.distance(y_pred, truth[test])
                    for method, y_pred, *_ in predictions(problem, X_new, PEERS)
                }
            yield {"set": name, "seed": seed, **found, **machine()}


def _stored(data: Path | None, sets: Sequence[str]) -> Iterator[tuple[str, Taxonomy, Any]]:
    """Name, tree and parts of the data sets that are there."""
    for name in sets if data is not None else ():
        assert data is not None
        if not (data / name).exists():
            print(f"{name} is not in {data}: skipped")
            continue
        taxonomy = Taxonomy.from_meta(data / name / "meta.json").spanning_tree()
        yield name, taxonomy, load(data / name)


def prepared(taxonomy: Taxonomy, X: Any, Y: Any, X_new: Any) -> tuple[Problem, Any]:
    """Standardised dense features, missing ones at their mean; sparse rows of length 1."""
    dense = make_pipeline(SimpleImputer(), StandardScaler())
    scaling = (Normalizer() if sparse.issparse(X) else dense).fit(X)
    return Problem(taxonomy, scaling.transform(X), Y), scaling.transform(X_new)


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
