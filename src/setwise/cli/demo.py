"""A first comparison on data whose truth is known: `setwise demo`.

Label sets are drawn from a known distribution p(y | x), so the best prediction for each target is
known too, and what is told is exact regret: expected loss less that of the best label set, the mean
over inputs that were not trained on. Models are linear in x, but for boosted trees, and a mixture
of both and of extra trees; without XGBoost there are no boosted trees.
"""

from __future__ import annotations

import time
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from setwise.consistency import Problem, bound
from setwise.consistency.known_truth import surrogate_excess
from setwise.estimators import SetEnsemble
from setwise.estimators.boosting import MISSING
from setwise.spaces.space import all_sets
from setwise.study import METHODS as STUDY_METHODS
from setwise.study import KnownTruth, Outcome, Results, Study, members_of
from setwise.study.methods import Question
from setwise.targets import get_target

TARGETS = ("hamming", "f1", "jaccard", "subset")
BOOSTER, MIXTURE = "booster", "ensemble"
METHODS = {
    "binary_relevance": "binary relevance, cut at 0.5",
    "logistic": "the target's logistic loss (q = 0)",
    "mean_absolute_error": "the target's absolute error (q = 1)",
    "catalog": "likelihood of the sets seen, least risk",
    BOOSTER: "boosted trees, likelihood, least risk",
    MIXTURE: "a mixture of linear and trees, least risk",
}
LABELS = ("art", "film", "law", "music", "sport", "war")
N_SETS, N_FEATURES, N_TRAIN, N_TEST, SEED = 12, 5, 2_000, 2_000, 7


def demonstrated(jobs: int = 1) -> Results:
    """The results of every method for every target, with what is exactly known of them.

    The law is over twelve sets of six labels, log-linear in five features.
    """
    generator = np.random.default_rng(SEED)
    every = all_sets(len(LABELS))
    sets = every[generator.choice(len(every), N_SETS, replace=False)]
    weights = 1.5 * generator.normal(size=(N_FEATURES + 1, N_SETS))
    problem = Problem("Known truth", sets, weights[:-1].T, weights[-1])
    X, Y = problem.sample(N_TRAIN + N_TEST, generator)
    rows = np.arange(len(X))
    # The mixture is trained once, for all targets.
    left_out = {MIXTURE} if find_spec("xgboost") else {MIXTURE, BOOSTER}
    study = Study(
        X,
        Y,
        methods=[method for method in METHODS if method not in left_out],
        targets=list(TARGETS),
        folds=(rows[:N_TRAIN], rows[N_TRAIN:]),
        label_names=LABELS,
        name=problem.name,
        seed=SEED,
        question={"command": "setwise demo", "data": "simulated from a known distribution"},
    )
    results = _with_mixture(study.run(jobs=jobs), X, Y)
    return replace(results, truth=_truth(problem, X, Y, results))


def _with_mixture(results: Results, X: Any, Y: Any) -> Results:
    """The results with those of a mixture, trained for F1 once and decoded for every target."""
    start = time.perf_counter()
    model = SetEnsemble("f1", random_state=SEED).fit(X[:N_TRAIN], Y[:N_TRAIN])
    seconds, held, true = time.perf_counter() - start, X[N_TRAIN:], Y[N_TRAIN:]
    probability = model.predict_proba(held).astype(np.float32)
    members, outcomes = members_of(model, held, true), []
    for target in TARGETS:
        begun, decoded = time.perf_counter(), model.for_target(target)
        sets = decoded.predict(held)
        outcomes.append(
            Outcome(
                MIXTURE, target, csr_array(sets.astype(np.uint8)), probability, decoded.guarantee_,
                ({"trained for": "f1", "weights": model.weights_.round(3).tolist()},), (seconds,),
                (time.perf_counter() - begun,), get_target(target).loss(sets, true), members,
            )
        )  # fmt: skip
    return replace(
        results,
        methods=(*results.methods, MIXTURE),
        outcomes=(*results.outcomes, *outcomes),
        descriptions={**results.descriptions, MIXTURE: STUDY_METHODS[MIXTURE].description},
    )


def _truth(problem: Problem, X: Any, Y: Any, results: Results) -> KnownTruth:
    """Expected losses of all predictions and of the best ones; what bounds say, where they do.

    The likelihood bounds the regret of every target, binary relevance that of Hamming loss. The
    logistic loss of one score a label has no bound, and that of the absolute error is above 1.
    """
    held = X[N_TRAIN:]
    best = {target: float(problem.least_loss(target, held).mean()) for target in TARGETS}
    expected, regret, allowed = {}, {}, {}
    for outcome in results.outcomes:
        losses = problem.expected_loss(outcome.target, held, outcome.y_pred.toarray())
        expected[outcome.method, outcome.target] = float(losses.mean())
    for method, surrogate, targets in (
        ("catalog", "likelihood", TARGETS),
        ("binary_relevance", "binary_relevance", TARGETS[:1]),
    ):
        # (The study keeps predictions, not models. The same rows and seed give the same model.)
        estimator = STUDY_METHODS[method].make(Question(TARGETS[0], SEED, N_TRAIN))
        model = estimator.fit(X[:N_TRAIN], Y[:N_TRAIN])
        scores, space = model.decision_function(held), model.space_
        found = surrogate_excess(surrogate, scores, problem, held, target=TARGETS[0], space=space)
        for target in targets:
            regret[method, target] = found
            allowed[method, target] = float(bound(surrogate, space)(found))
    return KnownTruth(best, expected, regret, allowed)


def regrets(results: Results) -> dict[str, dict[str, float]]:
    """Expected loss less the least possible, by method and target."""
    truth: Any = results.truth
    return {
        method: {name: truth.expected[method, name] - truth.best[name] for name in results.targets}
        for method in results.methods
    }


def table(results: Results) -> str:
    """The regrets in words."""
    truth: Any = results.truth
    rows = {METHODS[method]: own for method, own in regrets(results).items()}
    rows["(loss of the best possible)"] = truth.best
    width = max(map(len, rows))
    lines = [
        f"Exact regret: expected loss over that of the best label set, mean of {N_TEST} inputs.",
        f"{len(LABELS)} labels, {N_TRAIN} rows to train on. Lower is better.",
        "",
        " ".join([" " * width, *(f"{target:>9}" for target in results.targets)]),
    ]
    for name, values in rows.items():
        figures = [f"{values[target]:9.4f}" for target in results.targets]
        lines.append(" ".join([f"{name:<{width}}", *figures]))
    if BOOSTER not in results.methods:
        lines += ["", f"No boosted trees: {MISSING}"]
    return "\n".join(lines)
