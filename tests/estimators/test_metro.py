"""surrogate="metro": trained for the costs of a measure of all rows, decided by signs."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import expit

import setwise
from setwise import SetClassifier
from setwise.surrogates import BinaryRelevance
from setwise.targets import CostSensitive


def drawn(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    scores = X @ rng.normal(size=(5, 4)) - [0.5, 1.5, 2.5, 1.0] + rng.logistic(size=(n, 4))
    return X, (scores > 0).astype(np.uint8)


@pytest.mark.parametrize("target", ["macro_f1", "micro_f1", "weighted_jaccard", "g_mean"])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_signs_of_scores_decide(target, form, tmp_path):
    X, Y = drawn()
    model = SetClassifier(target, "metro", alpha=1e-3).fit(form(X), Y)
    predicted = model.predict(form(X))
    np.testing.assert_array_equal(predicted, model.decision_function(form(X)) >= 0)
    assert model.score(form(X), Y) == pytest.approx(
        setwise.get_target(target).utility(predicted, Y)
    )
    model.save(tmp_path / "model.skops")
    again = setwise.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(form(X)), predicted)


def test_rare_labels_are_found_that_a_cut_at_a_half_misses():
    X, Y = drawn(600, 1)
    new_X, new_Y = drawn(4000, 1)
    plain = SetClassifier("hamming", "binary_relevance", alpha=1e-2).fit(X, Y)
    model = SetClassifier("macro_f1", "metro", alpha=1e-2).fit(X, Y)
    macro = setwise.get_target("macro_f1")
    assert model.score(new_X, new_Y) > macro.utility(plain.predict(new_X), new_Y) + 0.02


def test_a_row_of_weight_two_counts_as_two_rows_in_the_costs():
    X, Y = drawn(200)
    weights = np.where(np.arange(200) < 50, 2.0, 1.0)
    model = SetClassifier("micro_f1", "metro").fit(X, Y, sample_weight=weights)
    assert 0 < model.predict(X).mean() < 1


def test_what_is_guaranteed_is_said():
    X, Y = drawn()
    said = SetClassifier("macro_f1", "metro").fit(X, Y).guarantee_
    assert said.startswith("Consistent for macro_f1: with enough data")
    assert "theorem V" in said
    assert "No theorem covers 'metro'" in SetClassifier("g_mean", "metro").fit(X, Y).guarantee_


def test_costs_of_binary_relevance_are_consistent_for_these_costs_only():
    X, Y = drawn()
    costs = CostSensitive([2.0, 1.0, 3.0, 1.0], 1.0)
    surrogate = BinaryRelevance("logistic", costs)
    own = SetClassifier(costs, surrogate).fit(X, Y)
    np.testing.assert_array_equal(own.predict(X), own.decision_function(X) >= 0)
    assert own.guarantee_.startswith("Consistent for cost of a miss")
    other = SetClassifier("hamming", surrogate).fit(X, Y)
    assert "best for hamming if the learnt probabilities are right" in other.guarantee_


def test_what_cannot_be_is_refused():
    X, Y = drawn(40)
    for target, y, settings, words in (
        ("f1", Y, {}, "whole population"),
        ("macro_f1", Y[:, 0], {}, "one class for each row"),
        ("macro_f1", Y, {"decoder": "thresholds"}, "sign of the scores"),
        ("macro_f1", Y, {"space": "catalog"}, "binary relevance"),
        ("macro_f1", Y, {"alpha": -1.0}, "alpha"),
    ):
        with pytest.raises(ValueError, match=words):
            SetClassifier(target, "metro", **settings).fit(X, y)
    with pytest.raises(ValueError, match="fit it again"):
        SetClassifier("macro_f1", "metro").fit(X, Y).for_target("f1")


def two_corners(X):
    """Labels true where two features have one sign: no line tells."""
    return expit(2.5 * np.sign(X[:, :1] * X[:, 1:2]) + X @ SLOPES - [1.2, 1.6, 2.0])


def of_steps(X):
    """Probabilities that rise with a linear score, but in two steps."""
    score = X @ SLOPES
    return 0.03 + 0.6 * (score > 1.2) + 0.3 * (score > 2.5)


SLOPES = np.random.default_rng(0).normal(size=(4, 3))


@pytest.mark.parametrize(("truth", "gains"), [(two_corners, True), (of_steps, False)])
def test_where_scores_cannot_hold_the_truth_it_may_gain_or_lose(truth, gains):
    """The value of the expected counts of fresh rows, beside thresholds on plain regressions."""
    rng, target, found = np.random.default_rng(1), setwise.get_target("micro_f1"), []
    X, fresh = rng.normal(size=(2000, 4)), rng.normal(size=(20_000, 4))
    Y, chance = (rng.random((2000, 3)) < truth(X)).astype(int), truth(fresh)
    for surrogate in ("metro", "binary_relevance"):
        taken = SetClassifier("micro_f1", surrogate, alpha=1e-4).fit(X, Y).predict(fresh)
        sums = (part.sum(axis=0) for part in (chance * taken, taken, chance))
        found.append(float(target.utility_of(len(fresh), *sums)))
    assert (found[0] > found[1]) == gains
