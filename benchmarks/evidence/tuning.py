"""The same chance for all: one grid of penalties and scalings, one set of folds, the measure asked.

Needs scikit-learn only, so that peers in environments of their own are tuned alike.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, hamming_loss, jaccard_score
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

# A row without true and predicted labels counts 1; a label that never occurs counts 0.
MEASURES: dict[str, Callable[[Any, Any], float]] = {
    "f1": partial(f1_score, average="samples", zero_division=1.0),
    "jaccard": partial(jaccard_score, average="samples", zero_division=1.0),
    "subset": accuracy_score,
    "hamming": lambda true, guess: 1.0 - hamming_loss(true, guess),
    "macro_f1": partial(f1_score, average="macro", zero_division=0.0),
    "micro_f1": partial(f1_score, average="micro", zero_division=0.0),
}
# The inverse penalties of dense features and of sparse ones, which are mostly 0.
DENSE, SPARSE = (tuple(10.0**power for power in range(low, low + 6)) for low in (-4, -1))
N_FOLDS = 3
# How often a grid is widened by the next penalty where the best is at its end.
N_WIDER = 2


class Question(NamedTuple):
    """What a model is made for; rows are those to train on."""

    target: str
    seed: int
    n_rows: int
    is_sparse: bool


class Recipe(NamedTuple):
    """Models for the settings of a grid, and how they decide.

    ``make(question, **settings)`` gives an estimator, ``decide(model, X, target)`` label sets.
    ``serves_all`` says that one model serves every target.
    """

    make: Callable[..., Any]
    grid: Callable[[bool], list[dict[str, Any]]] = lambda is_sparse: [{}]
    decide: Callable[[Any, Any, str], Any] = lambda model, X, target: model.predict(X)
    serves_all: bool = True
    targets: Sequence[str] = tuple(MEASURES)


class Answer(NamedTuple):
    """What a tuned model says of test rows, and what it took, in processor seconds."""

    target: str
    sets: sparse.csr_array
    probability: Any
    settings: dict[str, Any]
    at_edge: bool
    fit_seconds: float
    predict_seconds: float


def scalings(is_sparse: bool) -> list[dict[str, Any]]:
    """Features as they are, or scaled."""
    return [{"scaling": scaling} for scaling in (None, "rows" if is_sparse else "standard")]


def linear_grid(is_sparse: bool) -> list[dict[str, Any]]:
    """Penalties and scalings of linear models."""
    penalties = SPARSE if is_sparse else DENSE
    return [{"C": C, **scaling} for scaling in scalings(is_sparse) for C in penalties]


def few(is_sparse: bool) -> list[dict[str, Any]]:
    """Every other penalty, for what takes long."""
    return linear_grid(is_sparse)[1::2]


def scaled(model: Any, scaling: str | None) -> Any:
    """A model of scaled features."""
    steps = {None: (), "rows": (Normalizer(),), "standard": (StandardScaler(),)}
    return make_pipeline(*steps[scaling], model) if steps[scaling] else model


def logistic(C: float = 1.0) -> LogisticRegression:
    """Logistic regression that has time to converge."""
    return LogisticRegression(C=C, max_iter=300)


def one_vs_rest(asked: Question, C: float, scaling: str | None) -> Any:
    """A logistic regression for each label."""
    return scaled(OneVsRestClassifier(logistic(C)), scaling)


class Logistic(ClassifierMixin, BaseEstimator):
    """A logistic regression that takes a label which is always or never there, or more classes."""

    def __init__(self, C: float = 1.0):
        self.C = C

    def fit(self, X, y):
        several = len(np.unique(y)) > 1
        model = logistic(self.C) if several else DummyClassifier()
        self.model_, self.classes_ = model.fit(X, y), np.union1d([0, 1], y)
        return self

    def predict_proba(self, X):
        found = np.zeros((X.shape[0], len(self.classes_)))
        places = np.searchsorted(self.classes_, self.model_.classes_)
        found[:, places] = self.model_.predict_proba(X)
        return found

    def predict(self, X):
        return self.model_.predict(X)


def answers(recipe: Recipe, X: Any, Y: Any, X_test: Any, seed: int) -> Iterator[Answer]:
    """For each target the test rows' label sets, by settings chosen on folds of the training rows.

    What serves all targets is trained once for all; the time of choosing counts for each.
    """
    groups = [recipe.targets] if recipe.serves_all else [[one] for one in recipe.targets]
    for targets in groups:
        asked = Question(targets[0], seed, X.shape[0], sparse.issparse(X))
        begun = time.process_time()
        chosen = choose(recipe, X, Y, asked, targets)
        searched, fitted = time.process_time() - begun, {}
        for target in targets:
            settings, at_edge = chosen[target]
            key = json.dumps(settings)
            if key not in fitted:
                begun = time.process_time()
                model = recipe.make(asked._replace(target=target), **settings).fit(X, Y)
                fitted[key] = model, time.process_time() - begun
            model, seconds = fitted[key]
            begun = time.process_time()
            sets = sparse.csr_array(recipe.decide(model, X_test, target))
            spent = time.process_time() - begun
            yield Answer(
                target, sets, probability(model, X_test, Y.shape[1]), settings, at_edge,
                searched + seconds, spent,
            )  # fmt: skip


def choose(
    recipe: Recipe, X: Any, Y: Any, asked: Question, targets: Sequence[str]
) -> dict[str, tuple[dict[str, Any], bool]]:
    """For each target the settings best on the folds, and whether C is at an end of those tried.

    A grid is widened while the best of it is at an end.
    """
    new = recipe.grid(asked.is_sparse)
    if len(new) == 1:
        return {target: (new[0], False) for target in targets}
    folds = list(KFold(N_FOLDS, shuffle=True, random_state=asked.seed).split(X))
    tried, values, best = [], [], {}
    for _ in range(1 + N_WIDER):
        tried += new
        values += [_held_out(recipe, settings, X, Y, asked, targets, folds) for settings in new]
        best = {one: tried[int(np.argmax([v[one] for v in values]))] for one in targets}
        new = beyond(tried, best.values())
    return {one: (settings, bool(beyond(tried, [settings]))) for one, settings in best.items()}


def beyond(
    tried: Sequence[dict[str, Any]], chosen: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    """For each choice whose C is the least or the most tried with it, the next C, as far again."""
    found = []
    for settings in (one for one in chosen if "C" in one):
        C, others = settings["C"], {**settings, "C": None}
        along = sorted(one["C"] for one in tried if {**one, "C": None} == others)
        if len(along) > 1 and C in (along[0], along[-1]):
            inner = along[1] if along[0] == C else along[-2]
            found.append({**settings, "C": C * C / inner})
    return [one for place, one in enumerate(found) if one not in found[:place]]


def _held_out(
    recipe: Recipe, settings: dict[str, Any], X: Any, Y: Any, asked: Question,
    targets: Sequence[str], folds: Sequence[tuple[np.ndarray, np.ndarray]],
) -> dict[str, float]:  # fmt: skip
    """Each target's measure of all rows, predicted by models trained without them."""
    guesses = {target: np.zeros_like(Y) for target in targets}
    for train, test in folds:
        model = recipe.make(asked._replace(n_rows=len(train)), **settings)
        model = model.fit(X[train], Y[train])
        for target in targets:
            guess = recipe.decide(model, X[test], target)
            guesses[target][test] = guess.toarray() if sparse.issparse(guess) else guess
    return {target: MEASURES[target](Y, guesses[target]) for target in targets}


def probability(model: Any, X: Any, n_labels: int) -> np.ndarray | None:
    """The probability of each label (n, l), or None where a model has none of that shape."""
    try:
        found = model.predict_proba(X)
    except (AttributeError, NotImplementedError, ValueError):
        return None
    if isinstance(found, list):  # scikit-learn's forests: classes of each label
        if any(one.shape[1] != 2 for one in found):
            return None
        found = np.column_stack([one[:, 1] for one in found])
    found = found.toarray() if sparse.issparse(found) else np.asarray(found, float)
    return found if found.shape == (X.shape[0], n_labels) and np.isfinite(found).all() else None
