"""Costs that stand for a measure of a population: rounds of costs and decisions reach its best."""

from itertools import product

import numpy as np
import pytest

from setwise.estimators.design import Design, Rows
from setwise.estimators.metro import Metro
from setwise.estimators.solver import Fitting
from setwise.estimators.training import Training
from setwise.spaces import Cube
from setwise.surrogates import BinaryRelevance
from setwise.surrogates.metro import costs_at
from setwise.targets import Macro, Micro, Weighted, get_target
from tests.support.profile import THOROUGH

N_INPUTS, N_LABELS = 4, 2
# (Not precision: its best is as good as predicting nothing, where it is 0/0.)
OF = ("f1", "f2", "f0.5", "jaccard", "hamming", "recall", "balanced_accuracy")


def finite_problem(seed):
    """Inputs with their probabilities (m,), and P(label | input), (m, l)."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(N_INPUTS)), rng.beta(0.7, 1.2, (N_INPUTS, N_LABELS))


def expected_counts(weight, chance, decisions):
    """tp, fp, fn, tn of each label, (4, l)."""
    hits, alarms = decisions * chance, decisions * (1 - chance)
    misses, rest = (1 - decisions) * chance, (1 - decisions) * (1 - chance)
    return np.stack([weight @ part for part in (hits, alarms, misses, rest)])


def best_value(target, weight, chance):
    """The largest value of any decisions, all of which are compared."""
    every = np.array(list(product((0, 1), repeat=chance.size))).reshape(-1, *chance.shape)
    counts = np.stack([expected_counts(weight, chance, one) for one in every], axis=-1)
    return target.of_counts(counts).max()


@pytest.mark.parametrize("average", [Macro, Micro, Weighted])
@pytest.mark.parametrize("of", OF)
def test_rounds_of_costs_and_best_decisions_reach_the_best_value(of, average):
    """From any decisions; the value never falls on the way."""
    target = average(of)
    for seed in range(15 if THOROUGH else 5):
        weight, chance = finite_problem(seed)
        decisions = np.random.default_rng(seed).integers(0, 2, chance.shape)
        counts, value = expected_counts(weight, chance, decisions), -1.0
        for _ in range(12):
            costs = costs_at(target, counts)
            decisions = chance * costs.miss > (1 - chance) * costs.false_alarm
            counts, last = expected_counts(weight, chance, decisions), value
            value = float(target.of_counts(counts))
            assert value >= last - 1e-12
        assert value == pytest.approx(best_value(target, weight, chance), abs=1e-12)


@pytest.mark.parametrize("name", ["macro_f1", "micro_f1", "macro_jaccard", "balanced_accuracy"])
def test_the_minimiser_of_the_rounds_reaches_the_best_value_on_finite_inputs(name):
    """Every input has a feature of its own: scores are any functions of them."""
    target = get_target(name)
    sets = np.array(list(product((0, 1), repeat=N_LABELS)), np.uint8)
    for seed in range(4):
        weight, chance = finite_problem(seed)
        # Labels are independent given the input, and every pair of both is a row.
        law = np.prod(np.where(sets[None] == 1, chance[:, None], 1 - chance[:, None]), axis=2)
        inputs = np.repeat(np.eye(N_INPUTS), len(sets), axis=0)
        rows = Rows(inputs, np.tile(sets, (N_INPUTS, 1)), (weight[:, None] * law).ravel())
        design = Design.of(rows, None, True)
        settings = 1e-7, 1e-9, 1000
        surrogate = Metro(target, design, rows.sets, *settings, n_folds=1).surrogate()
        fitting = Fitting(
            Training(surrogate, target), Cube(N_LABELS), design, rows.sets, rows.weights, *settings
        )
        found = fitting.solve(None)
        decisions = found.weights + found.intercept >= 0
        value = float(target.of_counts(expected_counts(weight, chance, decisions)))
        assert value == pytest.approx(best_value(target, weight, chance), abs=1e-9)


def test_costs_are_the_formulas():
    """MATH: misses 1 + beta² - U, false alarms U; Jaccard 1 and U; divided by their mean."""
    counts = np.array([[6.0], [2.0], [1.0], [20.0]])
    for name, miss, false_alarm in (
        ("macro_f1", 2.0 - 12 / 15, 12 / 15),
        ("macro_f2", 5.0 - 30 / 36, 30 / 36),
        ("macro_jaccard", 1.0, 6 / 9),
        ("balanced_accuracy", 1 / 7, 1 / 22),
        ("g_mean", (20 / 22) / 7, (6 / 7) / 22),
    ):
        found = costs_at(name, counts)
        mean = (miss + false_alarm) / 2
        np.testing.assert_allclose(found.miss, miss / mean, rtol=1e-12)
        np.testing.assert_allclose(found.false_alarm, false_alarm / mean, rtol=1e-12)


def test_one_value_for_all_labels_or_one_for_each():
    counts = np.array([[6.0, 1.0], [2.0, 3.0], [1.0, 4.0], [20.0, 21.0]])
    assert np.ptp(costs_at("micro_f1", counts).miss) == 0.0
    assert np.ptp(costs_at("macro_f1", counts).miss) > 0.1


def test_a_label_without_a_positive_has_equal_costs():
    found = costs_at("macro_f1", [[0.0, 3.0], [2.0, 1.0], [0.0, 1.0], [8.0, 5.0]])
    assert (found.miss[0], found.false_alarm[0]) == (1.0, 1.0)


def test_other_targets_are_refused():
    with pytest.raises(ValueError, match="'metro' trains for a measure of a whole population"):
        costs_at("f1", np.ones((4, 2)))
    design = Design.of(Rows(np.eye(2), np.eye(2, dtype=np.uint8), np.ones(2)), None, True)
    with pytest.raises(ValueError, match="whole population"):
        Metro(get_target("f1"), design, np.eye(2, dtype=np.uint8), 0.1, 1e-4, 10).surrogate()


def test_the_costs_of_plain_binary_relevance_are_none():
    assert BinaryRelevance("logistic").by_truth(3) is None
