"""Measures of all rows together as targets of estimators: decided for, chosen by, judged, saved."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

from setwise import (
    CatalogClassifier,
    SetClassifier,
    SetClassifierCV,
    TargetDecoder,
    get_target,
    load,
    save,
)
from setwise.decoders import MinimumRisk, PopulationRule
from setwise.evaluation import evaluate
from setwise.spaces import Cube
from setwise.study import Study, leaderboard
from setwise.surrogates import CompSum

RNG = np.random.default_rng(0)
WEIGHTS = RNG.normal(size=(5, 4))
X, X_TEST = RNG.normal(size=(2, 160, 5))
Y, Y_TEST = (
    (x @ WEIGHTS + RNG.normal(size=(160, 4)) > [0.0, 0.5, 1.5, 2.5]).astype(int)
    for x in (X, X_TEST)
)
ESTIMATORS = {
    "SetClassifier": lambda target: SetClassifier(target, alpha=0.01),
    "SetClassifierCV": lambda target: SetClassifierCV(target, alphas=[0.1, 0.01], cv=3),
    "TargetDecoder": lambda target: TargetDecoder(
        MultiOutputClassifier(LogisticRegression()), target, cv=3
    ),
    "CatalogClassifier": lambda target: CatalogClassifier(LogisticRegression(), target, cv=3),
}


@pytest.mark.parametrize("target", ["macro_f1", "f1_micro", "weighted_jaccard", "g_mean"])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_score_is_the_measure_of_what_is_predicted(kind, target):
    model = ESTIMATORS[kind](target).fit(X, Y)
    weights = np.linspace(0.0, 2.0, len(X_TEST))
    predicted = model.predict(X_TEST)
    expected = get_target(target).utility(predicted, Y_TEST, weights)
    assert model.score(X_TEST, Y_TEST, weights) == pytest.approx(expected, abs=1e-12)
    # Each row is decided by itself: thresholds are fitted, not taken from the batch.
    np.testing.assert_array_equal(model.predict(X_TEST[:7]), predicted[:7])
    assert not model.depends_on_batch_


@pytest.mark.parametrize("target", ["precision_micro", "precision_macro", "precision_weighted"])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_precision_of_new_rows_is_no_less_than_that_of_a_plain_cut(kind, target):
    """Its best threshold on rows held out is one that new rows do not reach."""
    model, plain = (ESTIMATORS[kind](name).fit(X, Y) for name in (target, "hamming"))
    cut = get_target(target).utility(plain.predict(X_TEST), Y_TEST)
    assert model.score(X_TEST, Y_TEST) >= cut - 0.05


@pytest.mark.parametrize("n_rows", [2, 3, 4])
@pytest.mark.parametrize("kind", ["SetClassifier", "TargetDecoder", "CatalogClassifier"])
def test_fewer_rows_than_folds_are_held_out_one_by_one(kind, n_rows):
    model = ESTIMATORS[kind]("macro_f1")
    model = model if kind == "SetClassifier" else model.set_params(cv=None)
    sets = np.eye(4, dtype=int)[:n_rows, :2]
    fitted = model.fit(X[:n_rows], sets)
    np.testing.assert_array_equal(fitted._out_of_fold.sets, sets)
    assert not fitted.depends_on_batch_
    with pytest.raises(ValueError, match=r"at least 2 rows of positive weight.*n_samples = 1"):
        model.fit(X[:1], sets[:1])
    if kind != "SetClassifier":
        with pytest.raises(ValueError, match="5 folds need at least as many rows"):
            model.set_params(cv=5).fit(X[:n_rows], sets)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_decisions_are_thresholds_that_no_other_beats_on_rows_held_out(kind):
    """For the rule "thresholds" no other threshold of a label has a larger F1 out of fold."""
    model = ESTIMATORS[kind]("macro_f1").set_params(decoder="thresholds").fit(X, Y)
    inner = getattr(model, "best_estimator_", model)
    rule = getattr(inner, "_risk", None) or inner._decoder
    held = inner._out_of_fold
    assert held.sets.shape == Y.shape
    for label in range(4):
        score, true = held.probability[:, label], held.sets[:, label]
        cuts = np.append(rule.rule.thresholds_[label], np.unique(score))
        predicted = score >= cuts[:, None]
        own, *others = 2.0 * (predicted @ true) / (predicted.sum(axis=1) + true.sum())
        assert own == pytest.approx(max(others), abs=1e-12)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_model_file_keeps_the_thresholds(kind, tmp_path):
    model = ESTIMATORS[kind]("macro_f1").fit(X, Y)
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(X_TEST), model.predict(X_TEST))


def test_the_search_chooses_by_all_held_out_rows_together():
    model = SetClassifierCV("macro_f1", alphas=[1.0, 0.01], spaces=["catalog"], cv=3).fit(X, Y)
    inner = model.best_estimator_
    held = inner._out_of_fold
    decided = inner._risk.decode(held.probability)
    value = get_target("macro_f1").utility(decided, held.sets, held.weights)
    assert 1.0 - model.best_loss_ == pytest.approx(value, abs=1e-9)


def test_another_target_uses_the_rows_that_the_search_held_out():
    model = SetClassifierCV("f1", alphas=[0.01], cv=3).fit(X, Y)
    other = model.for_target("macro_f1")
    assert not other.depends_on_batch_
    same = model.best_estimator_.for_target("macro_f1")
    np.testing.assert_array_equal(other.predict(X_TEST), same.predict(X_TEST))
    with pytest.raises(NotFittedError):
        SetClassifierCV("f1").for_target("macro_f1")
    assert other.score(X_TEST, Y_TEST) >= get_target("macro_f1").utility(
        MinimumRisk("subset").decode(model.predict_proba(X_TEST)), Y_TEST
    )


@pytest.mark.parametrize("kind", ["SetClassifier", "TargetDecoder", "CatalogClassifier"])
def test_without_held_out_rows_the_batch_decides_and_one_row_is_refused(kind):
    model = ESTIMATORS[kind]("f1").fit(X, Y).for_target("macro_f1")
    assert model.depends_on_batch_
    marginals = model.predict_proba(X_TEST)
    rule = PopulationRule("macro_f1", "batch").fit(marginals)
    np.testing.assert_array_equal(model.predict(X_TEST), rule.decode(marginals))
    with pytest.raises(ValueError, match="single row"):
        model.predict(X_TEST[:1])


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_budget_above_the_number_of_labels_is_refused(kind):
    rule = PopulationRule("macro_f1", at_most=9)
    model = ESTIMATORS[kind]("macro_f1").set_params(decoder=rule)
    with pytest.raises(
        ValueError, match="at_most must be at most the number of labels, which is 4"
    ):
        model.fit(X, Y)


def test_a_rule_of_all_rows_is_refused_for_other_targets():
    for kind in ESTIMATORS:
        for rule in ("batch", PopulationRule("macro_f1")):
            with pytest.raises(ValueError, match=r"decoder|decides for measures"):
                ESTIMATORS[kind]("f1").set_params(decoder=rule).fit(X, Y)


def test_what_needs_a_loss_of_rows_refuses_with_a_sentence():
    for action in (
        lambda: CompSum("macro_f1", Cube(4)),
        lambda: MinimumRisk("macro_f1").decode([[0.5, 0.5]]),
        lambda: SetClassifier("macro_f1", "logistic").fit(X, Y),
    ):
        with pytest.raises(ValueError, match="judges all rows together"):
            action()


def test_the_guarantee_names_its_theorem_and_the_batch():
    fitted = SetClassifier("macro_f1").fit(X, Y)
    assert "Koyejo" in fitted.guarantee_
    assert "batch" in SetClassifier("macro_f1", decoder="batch").fit(X, Y).guarantee_


def test_evaluation_and_study_show_the_measure_itself(tmp_path):
    y_pred = SetClassifier("hamming").fit(X, Y).predict(X_TEST)
    figures = evaluate(y_pred, Y_TEST, targets=["macro_f1", "micro_f1"], n_bootstrap=100)
    for name in ("macro", "micro"):
        figure = figures[f"loss: {name}_f1"]
        assert figure.value == pytest.approx(1.0 - figures[f"{name} f1"].value, abs=1e-12)
        assert figure.low < figure.value < figure.high
    study = Study(X, Y, methods=["binary_relevance"], targets=["macro_f1"], folds=3)
    results = study.run(tmp_path, progress=False)
    (standing,) = leaderboard(results, n_bootstrap=50)
    pooled = get_target("macro_f1").utility(results.outcomes[0].y_pred, results.y_true)
    assert standing.value == pytest.approx(1.0 - pooled, abs=1e-12)


@pytest.mark.parametrize("target", ["macro_f1", "micro_jaccard", "weighted_f1", "g_mean"])
def test_the_losses_of_rows_are_first_order(target):
    """Their mean is the loss, and more weight on a row moves the measure as its loss says."""
    measure = get_target(target)
    y_pred = (RNG.random((2000, 4)) < 0.4).astype(int)
    y_true = ((y_pred + (RNG.random((2000, 4)) < 0.2)) % 2).astype(int)
    losses = measure.row_losses(y_pred, y_true)
    value = measure.utility(y_pred, y_true)
    assert losses.mean() == pytest.approx(1.0 - value, abs=1e-12)
    for row in range(3):
        weights = np.ones(2000)
        weights[row] += 0.5
        moved = measure.utility(y_pred, y_true, weights) - value
        assert moved * 2000.0 / 0.5 == pytest.approx(1.0 - value - losses[row], abs=5e-3)
    sparse = measure.row_losses(csr_array(y_pred), csr_array(y_true))
    np.testing.assert_allclose(sparse, losses, rtol=0, atol=1e-12)


def test_a_search_refuses_metro_and_says_who_takes_it():
    with pytest.raises(ValueError, match="SetClassifier takes it"):
        SetClassifierCV("macro_f1", surrogates=["likelihood", "metro"]).fit(X, Y)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_rule_of_another_measure_is_refused_and_taken_over_by_another_target(kind):
    rule = PopulationRule("micro_f1", at_most=2)
    with pytest.raises(ValueError, match="decides for micro_f1, but the target is macro_f1"):
        ESTIMATORS[kind]("macro_f1").set_params(decoder=rule).fit(X, Y)
    model = ESTIMATORS[kind]("micro_f1").set_params(decoder=rule).fit(X, Y)
    other = model.for_target("macro_f1")
    assert other.predict(X_TEST).sum(axis=1).max() <= 2
    assert str(get_target(other.decoder.target)) == "macro_f1"


def test_a_rule_of_label_sets_is_refused_where_there_are_none():
    model = SetClassifier("f1").fit(X, Y)
    with pytest.raises(ValueError, match="known label sets"):
        model.for_target("macro_f1", "thresholds")
