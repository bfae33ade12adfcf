"""A first comparison on data whose truth is known: `setwise demo`.

Label sets are drawn from a known law p(y | x), so the best possible prediction for each target is
known too, and what is told is exact regret: expected loss less that of the best label set, the mean
over inputs that were not trained on. All models are linear in x.
"""

from __future__ import annotations

from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from setwise.consistency.known_truth import Problem, surrogate_excess
from setwise.consistency.theorems import bound
from setwise.spaces.space import all_sets
from setwise.study import METHODS as STUDY_METHODS
from setwise.study import KnownTruth, Results, Study
from setwise.study.methods import Question

TARGETS = ("hamming", "f1", "jaccard", "subset")
METHODS = {
    "binary_relevance": "binary relevance, cut at 0.5",
    "logistic": "the target's logistic loss (q = 0)",
    "mean_absolute_error": "the target's absolute error (q = 1)",
    "catalog": "likelihood of the sets seen, least risk",
}
LABELS = ("art", "film", "law", "music", "sport", "war")
N_SETS, N_FEATURES, N_TRAIN, N_TEST, SEED = 12, 5, 2_000, 2_000, 7


def known_problem() -> tuple[Problem, np.random.Generator]:
    """Twelve sets of six labels, log-linear in five features; and a generator to draw rows with."""
    generator = np.random.default_rng(SEED)
    every = all_sets(len(LABELS))
    sets = every[generator.choice(len(every), N_SETS, replace=False)]
    weights = 1.5 * generator.normal(size=(N_FEATURES + 1, N_SETS))
    return Problem("Known truth", sets, weights[:-1].T, weights[-1]), generator


def demonstrated(jobs: int = 1) -> Results:
    """The results of every method for every target, with what is exactly known of them."""
    problem, generator = known_problem()
    X, Y = problem.sample(N_TRAIN + N_TEST, generator)
    rows = np.arange(len(X))
    study = Study(
        X,
        Y,
        methods=list(METHODS),
        targets=list(TARGETS),
        folds=(rows[:N_TRAIN], rows[N_TRAIN:]),
        label_names=LABELS,
        name=problem.name,
        seed=SEED,
        question={"command": "setwise demo", "data": "drawn from a known law, log-linear in x"},
    )
    with TemporaryDirectory() as folder:
        results = study.run(folder, jobs=jobs)
    truth = _truth(problem, X[study.rows], results)
    return replace(results, truth=_with_bounds(truth, problem, X, Y))


def _truth(problem: Problem, X: Any, results: Results) -> KnownTruth:
    """Expected losses of all predictions and of the best ones, under the law of the data."""
    best = {target: float(problem.least_loss(target, X).mean()) for target in results.targets}
    expected: dict[tuple[str, str], float] = {}
    for outcome in results.outcomes:
        own = problem.expected_loss(outcome.target, X, outcome.y_pred.toarray())
        expected[outcome.method, outcome.target] = float(own.mean())
    return KnownTruth(best, expected)


def _with_bounds(truth: KnownTruth, problem: Problem, X: Any, Y: Any) -> KnownTruth:
    """With the regret of the loss trained on, and what it allows, where that says something.

    The likelihood bounds the regret of every target, binary relevance that of Hamming loss. The
    logistic loss of one score a label has no bound, and that of the absolute error is above 1.
    """
    regret: dict[tuple[str, str], float] = {}
    allowed: dict[tuple[str, str], float] = {}
    for method, surrogate, targets in (
        ("catalog", "likelihood", TARGETS),
        ("binary_relevance", "binary_relevance", TARGETS[:1]),
    ):
        # (The study keeps predictions, not models. The same rows and seed give the same model.)
        estimator = STUDY_METHODS[method].make(Question(TARGETS[0], SEED, N_TRAIN))
        model = estimator.fit(X[:N_TRAIN], Y[:N_TRAIN])
        held = X[N_TRAIN:]
        found = surrogate_excess(
            surrogate,
            model.decision_function(held),
            problem,
            held,
            target=TARGETS[0],
            space=model.space_,
        )
        gamma = bound(surrogate, model.space_)
        for target in targets:
            regret[method, target], allowed[method, target] = found, float(gamma(found))
    return replace(truth, surrogate_regret=regret, bound=allowed)


def regrets(results: Results) -> dict[str, dict[str, float]]:
    """Expected loss less the least possible, by method and target."""
    truth = results.truth
    assert truth is not None
    return {
        method: {
            target: truth.expected[method, target] - truth.best[target]
            for target in results.targets
        }
        for method in results.methods
    }


def table(results: Results) -> str:
    """The regrets in words."""
    assert results.truth is not None
    width = max(map(len, METHODS.values()))
    lines = [
        f"Exact regret: expected loss over that of the best label set, mean of {N_TEST} inputs.",
        f"{len(LABELS)} labels, {N_TRAIN} rows to train on; linear scores. Lower is better.",
        "",
        " ".join([" " * width, *(f"{target:>9}" for target in results.targets)]),
    ]
    for method, values in regrets(results).items():
        figures = [f"{values[target]:9.4f}" for target in results.targets]
        lines.append(" ".join([f"{METHODS[method]:<{width}}", *figures]))
    best = [f"{results.truth.best[target]:9.4f}" for target in results.targets]
    lines.append(" ".join([f"{'(loss of the best possible)':<{width}}", *best]))
    return "\n".join(lines)
