"""Budgets of labels a row, for measures of all rows together.

- `python -m benchmarks budgets`: macro-F1 of expected counts within a budget of 3 labels a row, by
  our two ways and by those of xcolumns, block coordinate ascent and Frank and Wolfe's method. A
  random mixture of decisions, which the latter returns, is drawn once; it searches its steps by
  hundredths. Skipped where xcolumns is not installed.
- `python -m benchmarks many_labels`: deciding 10,000 x 30,000 sparse probabilities with 100 a row.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit

from benchmarks.rows import machine
from setwise.decoders import PopulationRule
from setwise.targets import get_target

BUDGET, PROBLEMS, ROUNDS = 3, 3, 5


def even(rng: np.random.Generator) -> np.ndarray:
    """Labels as frequent as each other."""
    return rng.beta(0.4, 2.0, (400, 40))


def rare(rng: np.random.Generator) -> np.ndarray:
    """Labels of very different frequency."""
    return expit(2.0 * rng.normal(size=(400, 40)) - 6.0 * rng.random(40))


def alike(rng: np.random.Generator) -> np.ndarray:
    """Rows of a few kinds, each with labels of its own."""
    return np.clip(
        rng.beta(0.3, 1.5, (6, 40))[rng.integers(0, 6, 400)] + rng.random((400, 40)) / 9, 0, 1
    )


def crowded(rng: np.random.Generator) -> np.ndarray:
    """Rows that have many labels, so that the budget leaves most of them out."""
    return rng.beta(2.0, 2.0, (400, 40))


def sure(rng: np.random.Generator) -> np.ndarray:
    """Probabilities near 0 and 1."""
    return rng.beta(0.05, 0.3, (400, 40))


KINDS = (even, rare, alike, crowded, sure)


def budgets() -> Iterator[dict[str, Any]]:
    """A row for each kind of problem."""
    if importlib.util.find_spec("xcolumns") is None:
        print("xcolumns is not installed: skipped")
        return
    ways: dict[str, Callable[[np.ndarray, int], Any]] = {
        "expected": lambda p, seed: _ours(p, "expected"),
        "batch": lambda p, seed: _ours(p, "batch"),
        "xcolumns, coordinate ascent": _ascent,
        "xcolumns, Frank-Wolfe": _frank_wolfe,
    }
    for kind in KINDS:
        values = {name: [] for name in ways}
        gaps = []
        for seed in range(PROBLEMS):
            probability = kind(np.random.default_rng(seed))
            for name, decide in ways.items():
                values[name].append(
                    expected_value(np.asarray(decide(probability, seed)), probability)
                )
            rule = PopulationRule("macro_f1", "batch", budget=BUDGET).fit(probability)
            gaps.append(rule.gap(probability))
        theirs = np.maximum(*(values[name] for name in ways if name.startswith("xcolumns")))
        yield {
            "kind": kind.__name__, "problems": PROBLEMS,
            **{name: float(np.mean(found)) for name, found in values.items()},
            "least_lead": float((np.array(values["batch"]) - theirs).min()),
            "largest_gap": max(gaps), **machine(),
        }  # fmt: skip


def expected_value(sets: np.ndarray, probability: np.ndarray) -> float:
    """Macro-F1 of the expected counts of decisions, which must be within the budget."""
    assert (sets.sum(axis=1) == BUDGET).all()
    sums = (part.sum(axis=0) for part in (sets * probability, sets, probability))
    target: Any = get_target("macro_f1")
    return float(target.utility_of(len(sets), *sums))


def _ours(probability: np.ndarray, rule: Any) -> Any:
    return PopulationRule("macro_f1", rule, budget=BUDGET).fit(probability).decode(probability)


def _ascent(probability: np.ndarray, seed: int) -> Any:
    from xcolumns.block_coordinate import predict_optimizing_macro_f1_score_using_bc

    return predict_optimizing_macro_f1_score_using_bc(probability, k=BUDGET, seed=seed)


def _frank_wolfe(probability: np.ndarray, seed: int) -> Any:
    from xcolumns.frank_wolfe import find_classifier_using_fw
    from xcolumns.metrics import macro_f1_score_on_conf_matrix

    # (What is true are the probabilities themselves: its value is that of the expected counts.)
    found: Any = find_classifier_using_fw(
        probability, probability, macro_f1_score_on_conf_matrix, k=BUDGET, seed=seed,
        alpha_uniform_search_step=0.01,
    )  # fmt: skip
    return found.predict(probability, seed=seed)


def many_labels(n_rows: int = 10_000, n_labels: int = 30_000) -> Iterator[dict[str, Any]]:
    """A row for each law of the labels, rule and budget."""
    for law, power in (("even", 1.0), ("rare", 3.0)):
        rng, stored = np.random.default_rng(0), 100
        label = (n_labels * rng.random((n_rows, stored)) ** power).astype(np.int32)
        matrix = sparse.coo_array(
            (rng.beta(0.3, 2.0, label.size), (np.repeat(np.arange(n_rows), stored), label.ravel())),
            shape=(n_rows, n_labels),
        ).tocsr()
        matrix.data = np.minimum(matrix.data, 1.0)
        asked = [
            PopulationRule("macro_f1", rule, **budget)
            for rule in ("expected", "batch")
            for budget in ({}, {"budget": 5}, {"at_most": 5})
        ]
        least, sort = [np.inf] * len(asked), np.inf
        for _ in range(ROUNDS):
            sort = min(sort, seconds(np.sort, matrix.data))
            for place, rule in enumerate(asked):
                least[place] = min(least[place], seconds(decided, rule, matrix))
        for rule, spent in zip(asked, least, strict=True):
            found = decided(rule, matrix)
            sums = (np.asarray(p.sum(axis=0)) for p in (matrix * found, found, matrix))
            target: Any = get_target("macro_f1")
            yield {
                "law": law, "entries": matrix.nnz, "rule": rule.rule, "exactly": rule.budget,
                "at most": rule.at_most, "ratio": spent / sort,
                "value": float(target.utility_of(n_rows, *sums)), "mean_size": found.nnz / n_rows,
                **machine(),
            }  # fmt: skip


def decided(rule: PopulationRule, matrix: Any) -> Any:
    """The label sets of the rows that the rule is fitted to."""
    return rule.fit(matrix).decode(matrix)


def seconds(work: Callable[..., Any], *given: Any) -> float:
    """How long it takes."""
    began = time.perf_counter()
    work(*given)
    return time.perf_counter() - began
