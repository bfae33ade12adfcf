"""Measures of all rows on known truth: the largest value, theorems, exact regrets."""

from itertools import product

import numpy as np
import pytest

from setwise import SetClassifier
from setwise.consistency import certify, chain, examine, excess_risk, from_dict, independent
from setwise.consistency.population import best_decisions, expected_counts
from setwise.spaces import Cube
from setwise.surrogates import BinaryRelevance, CompSum
from setwise.targets import CostSensitive, Hamming, get_target

COSTS = CostSensitive([2.0, 1.0, 0.5], [1.0, 3.0, 1.0])


@pytest.mark.parametrize(
    ("target", "surrogate", "key"),
    [
        ("macro_f1", "metro", "V"),
        ("micro_jaccard", "metro", "V"),
        ("f1_weighted", "likelihood", "T"),
        ("balanced_accuracy", "binary_relevance", "T"),
        ("g_mean", BinaryRelevance("exponential"), "T"),
        ("micro_f1", BinaryRelevance("logistic", CostSensitive(2.0, 1.0)), "T"),
    ],
)
def test_a_measure_of_all_rows_is_certified(target, surrogate, key):
    found = certify(target, surrogate, Cube(2))
    assert (found.verdict, found.theorem) == ("certificate", key)
    assert found.worst_regret < 1e-9
    assert f"Theorem {key}" in str(found)
    assert from_dict(found.to_dict()) == found


@pytest.mark.parametrize(
    ("target", "surrogate", "words"),
    [
        ("macro_f1", "logistic", "judges all rows together"),
        ("macro_f1", BinaryRelevance("hinge"), "judges all rows together"),
        ("macro_f1", BinaryRelevance("logistic", CostSensitive(1.0, 0.0)), "all rows together"),
        ("g_mean", "metro", "no quotient"),
        ("macro_precision", "metro", "where nothing is predicted"),
        ("f1", "metro", "trains for a measure of a whole population"),
    ],
)
def test_what_no_theorem_covers_is_said(target, surrogate, words):
    with pytest.raises(ValueError, match=words):
        certify(target, surrogate)


@pytest.mark.parametrize("target", ["macro_f1", "micro_f2", "macro_jaccard", "balanced_accuracy"])
def test_the_best_decisions_are_the_best_of_all(target):
    judge, rng = get_target(target), np.random.default_rng(0)
    every = np.array(list(product((0, 1), repeat=8)), float)
    for _ in range(20):
        chance, weight = rng.random((4, 2)), rng.dirichlet(np.ones(4))
        values = [
            judge.of_counts(expected_counts(chance, one.reshape(4, 2), weight)) for one in every
        ]
        own = judge.of_counts(
            expected_counts(chance, best_decisions(judge, chance, weight), weight)
        )
        assert own == pytest.approx(max(values), abs=1e-12)


def test_expected_counts_are_means_over_draws():
    problem = chain()
    X, Y = problem.sample(40_000, seed=3)
    predicted = (X[:, [0]] > 0).astype(float) * np.ones(problem.n_labels)
    found = expected_counts(problem.marginals(X), predicted)
    drawn = [predicted * Y, predicted * (1 - Y), (1 - predicted) * Y, (1 - predicted) * (1 - Y)]
    np.testing.assert_allclose(found, [part.mean(axis=0) for part in drawn], atol=0.02)


def test_the_regret_of_the_best_decisions_is_nothing_and_others_have_more():
    problem = independent()
    judge = get_target("macro_f1")
    best = excess_risk(
        lambda X: best_decisions(judge, problem.marginals(X)), problem, judge, n_rows=2000
    )
    assert best.value == pytest.approx(0.0, abs=1e-12)
    none = excess_risk(lambda X: np.zeros((len(X), 4), int), problem, judge, n_rows=2000)
    assert none.risk == pytest.approx(1.0)
    assert none.value == pytest.approx(1.0 - none.bayes_risk)


@pytest.mark.parametrize("surrogate", ["metro", "binary_relevance"])
def test_regret_falls_with_rows_where_the_model_holds_the_truth(surrogate):
    problem, regrets = independent(), []
    for n in (100, 3000):
        X, Y = problem.sample(n, seed=1)
        model = SetClassifier("macro_f1", surrogate, alpha=0.1 / n).fit(X, Y)
        regrets.append(excess_risk(model, problem, "macro_f1", n_rows=4000).value)
    assert regrets[1] < 0.5 * regrets[0]
    assert regrets[1] < 0.01


# ------------------------------------------------------------------- costs of misses, false alarms


@pytest.mark.parametrize(
    "surrogate",
    [
        "logistic",
        "mean_absolute_error",
        CompSum(COSTS, Cube(3), 0.5),
        "sum_exponential",
        "constrained_exponential",
        BinaryRelevance("logistic", COSTS),
        BinaryRelevance("hinge", CostSensitive([4.0, 2.0, 1.0], [2.0, 6.0, 2.0])),
    ],
    ids=str,
)
def test_losses_made_for_costs_are_consistent_for_them(surrogate):
    found = certify(COSTS, surrogate, Cube(3))
    assert found.verdict == "certificate"
    assert found.theorem in "HAB"


def test_binary_relevance_without_the_costs_is_not():
    found = certify(COSTS, "binary_relevance", Cube(3))
    assert found.verdict == "counterexample"
    other = examine(
        Hamming(), BinaryRelevance("logistic", COSTS), [0.7, 0.1, 0.1, 0.1, 0, 0, 0, 0], Cube(3)
    )
    assert other is None or other.regret > 0
    found = certify(Hamming(), BinaryRelevance("logistic", COSTS), Cube(3))
    assert found.verdict == "counterexample"
    assert "weighed by costs" in found.reason
