"""True excess risk against sample size, on data whose p(y | x) is known.

`python -m benchmarks excess_risk`. The expectation over y is exact, that over x a mean over 20,000
fresh inputs. Where a theorem has a bound it stands beside the excess risk: the surrogate's own
regret is computed on the known truth too, misspecification included.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.rows import machine
from setwise import SetClassifier
from setwise.consistency.known_truth import (
    PROBLEMS,
    Problem,
    excess_risk,
    rare_but_joint,
    surrogate_excess,
)

TARGETS = ("f1", "jaccard")
METHODS: dict[str, dict[str, Any]] = {
    "binary relevance, cut at 1/2": {"surrogate": "binary_relevance", "decoder": "most_likely"},
    "binary relevance, minimum risk": {"surrogate": "binary_relevance"},
    "logistic for the target, cube": {"surrogate": "logistic", "space": "cube"},
    "mean absolute error, cube": {"surrogate": "mean_absolute_error", "space": "cube"},
    "likelihood, listed sets, minimum risk": {"surrogate": "likelihood", "space": "catalog"},
    "likelihood, joint scores, minimum risk": {"surrogate": "likelihood", "space": "joint"},
}
# Of measures of all rows together: decided by thresholds on rows held out, or by signs.
POPULATION_TARGETS, POPULATION_PROBLEMS = ("macro_f1",), ("independent", "chain")
POPULATION_METHODS: dict[str, dict[str, Any]] = {
    "binary relevance, cut at 1/2": {"target": "hamming", "surrogate": "binary_relevance"},
    "binary relevance, thresholds": {"surrogate": "binary_relevance"},
    "likelihood, listed sets, thresholds": {"surrogate": "likelihood", "space": "catalog"},
    "metro": {"surrogate": "metro"},
}
POPULATION_SIZES = (100, 316, 1000, 3162, 10_000)
SIZES = (100, 316, 1000, 3162, 10_000, 31_623, 100_000)
OTHER_SIZES = (100, 1000, 10_000)
FRESH = 20_000
# The penalty vanishes with the sample: PENALTY / n.
PENALTY = 0.1


def excess_rows() -> Iterator[dict[str, Any]]:
    """A row for each problem, target, method and sample size."""
    main = rare_but_joint()
    for n in SIZES:
        yield from _rows(main, n, repetitions=5 if n <= 10_000 else 2)
    for name, make in PROBLEMS.items():
        if name != main.name:
            for n in OTHER_SIZES:
                yield from _rows(make(), n, repetitions=2)


def population_rows() -> Iterator[dict[str, Any]]:
    """The same for measures of all rows together, whose best value is computed too."""
    for name in POPULATION_PROBLEMS:
        for n in POPULATION_SIZES:
            yield from _rows(PROBLEMS[name](), n, 3, POPULATION_TARGETS, POPULATION_METHODS)


def _rows(
    problem: Problem, n: int, repetitions: int, targets: Any = TARGETS, methods: Any = None
) -> Iterator[dict[str, Any]]:
    for target in targets:
        for method, settings in (methods or METHODS).items():
            began = time.perf_counter()
            found = [_one(problem, target, settings, n, seed) for seed in range(repetitions)]
            excess = [one[0].value for one in found]
            bounds = [one[1] for one in found if one[1] is not None]
            yield {
                "problem": problem.name, "target": target, "method": method, "n": n,
                "excess": float(np.mean(excess)), "least": min(excess), "largest": max(excess),
                "standard error": max(one[0].standard_error for one in found),
                "best possible": found[0][0].bayes_risk,
                "bound": float(np.mean(bounds)) if len(bounds) == len(found) else None,
                "repetitions": repetitions,
                "seconds": (time.perf_counter() - began) / repetitions, **machine(),
            }  # fmt: skip


def _one(problem: Problem, target: str, settings: dict[str, Any], n: int, seed: int):
    """The excess risk of one fit and its bound, if a theorem has one."""
    X, Y = problem.sample(n, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        settings = {"target": target, **settings}
        model = SetClassifier(alpha=PENALTY / n, tol=1e-5, **settings).fit(X, Y)
    if target in POPULATION_TARGETS:
        return excess_risk(model, problem, target, n_rows=FRESH), None
    return excess_risk(model, problem, target, n_rows=FRESH), _bound(model, problem, target)


def _bound(model: SetClassifier, problem: Problem, target: str) -> float | None:
    """sqrt(2 KL) of a likelihood, n t of mean absolute error, on 2,000 fresh inputs."""
    X = problem.inputs(2000, seed=54321)
    scores = X @ model.coef_.T + model.intercept_
    if model.surrogate == "mean_absolute_error":
        paid = surrogate_excess(model.surrogate, scores, problem, X, target=target)
        return float(np.exp(model.space_.log_size)) * paid
    if model.surrogate != "likelihood" or not model.space_.contains(problem.sets).all():
        return None
    kind = "joint" if model.space == "joint" else "labelwise"
    paid = surrogate_excess(
        "likelihood", scores, problem, X, target=target, space=model.space_, kind=kind
    )
    return sqrt(2.0 * max(paid, 0.0))


def by_size(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each problem, target and method, a column for each sample size."""
    wide: dict[tuple, dict[str, Any]] = {}
    for row in rows:
        key = (row["problem"], row["target"], row["method"])
        blank = {f"n = {n}": None for n in SIZES}
        own = wide.setdefault(key, {name: row[name] for name in row} | blank)
        own[f"n = {row['n']}"] = row["excess"]
        own["last bound"] = row["bound"]
    return list(wide.values())
