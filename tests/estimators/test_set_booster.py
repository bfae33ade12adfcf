"""Boosted trees: derivatives by enumeration, the best constant, what scikit-learn expects."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.special import logsumexp
from sklearn.utils.estimator_checks import parametrize_with_checks

pytest.importorskip("xgboost")

from setwise import SetBooster, load
from setwise.estimators import boosting
from setwise.estimators.boosting import Boosting
from setwise.estimators.choice import choose_space, space_for
from setwise.estimators.training import Training
from setwise.spaces import Forest
from setwise.targets import get_target

ROUNDS = {"n_estimators": 15, "patience": None, "n_jobs": 1}


def problem(n=120, seed=0, n_labels=4):
    """Inputs, and label sets that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = (X @ rng.normal(size=(3, n_labels)) + 0.5 * rng.normal(size=(n, n_labels)) > 0.3).astype(
        int
    )
    return X, Y


def log_law(space, scores):
    """log P of every set of the space at some scores, (n, |Y|), and the sets."""
    sets = space.enumerate()
    weight = scores @ (2.0 * sets.T - 1.0) + np.array(
        [space.log_probability(np.zeros((1, space.n_scores)), one[None])[0] for one in sets]
    )
    return weight - logsumexp(weight, axis=1, keepdims=True), sets


@pytest.mark.parametrize("name", ["catalog", "sized", "cube", "closed", "backoff"])
def test_derivatives_of_the_likelihood_are_those_of_enumeration(name):
    rng = np.random.default_rng(3)
    _, Y = problem(20)
    sets = Y.astype(np.uint8)
    if name == "closed":
        sets[:, 1:] &= sets[:, :1]
        space = Forest([-1, 0, 0, 0], closed=True)
    else:
        space = choose_space(name, sets)
    weights = rng.uniform(0.5, 2.0, len(sets))
    objective = Training("likelihood", get_target("f1")).objective(None, space, sets, weights)
    scores = rng.normal(size=(len(sets), 4))
    _, by_score, _ = objective.sums(slice(0, 20), scores, objective.parameters)
    curvature = objective.curvature(slice(0, 20), scores, by_score, objective.parameters)
    law, listed = log_law(space, scores)
    likely = np.exp(law) @ listed
    # By logits, of which scores are half.
    np.testing.assert_allclose(by_score / 2, weights[:, None] * (likely - sets), atol=1e-10)
    np.testing.assert_allclose(curvature / 4, weights[:, None] * likely * (1 - likely), atol=1e-10)
    # All rows at once, in the precision of XGBoost.
    gradient, hessian, by_parameter = objective.derivatives(scores, objective.parameters)
    np.testing.assert_allclose(gradient, by_score, atol=2e-6)
    np.testing.assert_allclose(hessian, curvature, atol=2e-6)
    exact = objective.sums(slice(0, 20), scores, objective.parameters)[2]
    finite = np.isfinite(objective.parameters)
    np.testing.assert_allclose(by_parameter[finite], exact[finite], atol=2e-5)


@pytest.mark.parametrize("target", ["f1", "hamming", "subset"])
def test_second_derivatives_of_the_logistic_loss_are_those_of_differences(target):
    rng = np.random.default_rng(4)
    sets = problem(12)[1].astype(np.uint8)
    weights, rows = rng.uniform(0.5, 2.0, 12), slice(0, 12)
    training = Training("logistic", get_target(target))
    space = space_for("auto", training, False, sets, weights)
    objective = training.objective(training.stages()[-1], space, sets, weights)
    scores, step = rng.normal(size=(12, 4)), 1e-5
    _, by_score, _ = objective.sums(rows, scores, objective.parameters)
    found = objective.curvature(rows, scores, by_score, objective.parameters)
    for label in range(4):
        ahead, back = scores.copy(), scores.copy()
        ahead[:, label] += step
        back[:, label] -= step
        slopes = [objective.sums(rows, at, objective.parameters)[1] for at in (ahead, back)]
        expected = (slopes[0] - slopes[1])[:, label] / (2 * step)
        np.testing.assert_allclose(found[:, label], expected, rtol=1e-6, atol=1e-9)


def test_trees_of_one_leaf_reach_the_frequencies_of_the_sets():
    X, Y = problem(200)
    model = SetBooster(
        space="catalog", n_estimators=400, learning_rate=0.3, patience=None, subsample=1.0,
        min_child_weight=1e9, n_jobs=1,
    ).fit(X, Y)  # fmt: skip
    # (No split is allowed, and a single leaf is held back by its penalty alone.)
    sets, count = np.unique(Y, axis=0, return_counts=True)
    law = model.predict_distribution(X[: len(sets)]).log_probability(sets)
    np.testing.assert_allclose(np.exp(law), count / len(Y), atol=2e-3)


def test_the_training_loss_falls_with_rounds():
    X, Y = problem(150, seed=1)
    losses = []
    for rounds in (2, 8, 30):
        model = SetBooster(n_estimators=rounds, patience=None, subsample=1.0, n_jobs=1).fit(X, Y)
        losses.append(-model.predict_distribution(X).log_probability(Y).mean())
    assert losses[0] > losses[1] > losses[2]


@pytest.mark.parametrize("surrogate", ["binary_relevance", "logistic", "mean_absolute_error"])
def test_other_losses_fall_too(surrogate):
    X, Y = problem(150, seed=2)
    model = SetBooster(
        "f1", surrogate, n_estimators=80, learning_rate=0.5, patience=None, n_jobs=1
    ).fit(X, Y)
    assert model.score(X, Y) > 0.85
    assert "f1" in model.guarantee_


def test_early_stopping_takes_the_best_round_of_the_held_out_rows():
    X, Y = problem(300, seed=4)
    for stopping in ("log_loss", "target"):
        model = SetBooster(stopping=stopping, patience=5, n_estimators=200, n_jobs=1).fit(X, Y)
        assert model.n_iter_ == int(np.argmin(model.held_out_)) + 1
        assert len(model.held_out_) == model.n_iter_ + 5
    assert "held-out rows" in SetBooster(n_jobs=1).fit(X, Y).guarantee_


def test_missing_values_sparse_matrices_and_categories_are_xgboosts():
    X, Y = problem(200, seed=5)
    holes = X.copy()
    holes[::7, 1] = np.nan
    model = SetBooster(**ROUNDS).fit(holes, Y)
    assert np.isfinite(model.predict_proba(holes)).all()
    sparse = csr_array(np.where(X > 0, X, 0.0))
    assert SetBooster(**ROUNDS).fit(sparse, Y).predict(sparse).shape == Y.shape
    colour = np.random.default_rng(0).choice(["red", "green", "blue"], 200)
    frame = pd.DataFrame({"size": X[:, 0], "colour": pd.Categorical(colour)})
    truth = np.c_[colour == "red", colour != "blue", X[:, 0] > 0].astype(int)
    model = SetBooster(n_estimators=60, patience=None, n_jobs=1).fit(frame, truth)
    assert model.score(frame, truth) > 0.95
    assert list(model.feature_names_in_) == ["size", "colour"]


def test_weights_of_two_are_rows_that_are_there_twice():
    X, Y = problem(60, seed=6)
    X = X.round(0)
    plain = {**ROUNDS, "subsample": 1.0, "colsample": 1.0}
    twice = np.r_[np.arange(60), np.arange(30)]
    doubled = SetBooster(**plain).fit(X[twice], Y[twice])
    weighted = SetBooster(**plain).fit(X, Y, np.r_[np.full(30, 2.0), np.ones(30)])
    np.testing.assert_allclose(
        doubled.predict_proba(X), weighted.predict_proba(X), rtol=0, atol=1e-6
    )


def test_a_file_holds_the_trees_as_data(tmp_path):
    X, Y = problem(80, seed=7)
    model = SetBooster(**ROUNDS).fit(X, Y)
    model.save(tmp_path / "trees.skops")
    again = load(tmp_path / "trees.skops")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="no trees of XGBoost"):
        boosting.Trees(b"{}", np.zeros(4)).scores(X)


def test_an_interrupt_keeps_what_is_trained(monkeypatch):
    X, Y = problem(100, seed=8)
    step, rounds = Boosting._step, []

    def interrupted(self):
        rounds.append(0)
        if len(rounds) == 6:
            raise KeyboardInterrupt
        step(self)

    monkeypatch.setattr(Boosting, "_step", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        model = SetBooster(n_jobs=1, on_interrupt="finish").fit(X, Y)
    assert model.stopped_ == "interrupt"
    assert 1 <= model.n_iter_ <= 5
    rounds.clear()
    with pytest.raises(KeyboardInterrupt):
        SetBooster(n_jobs=1).fit(X, Y)


def test_the_same_fit_serves_every_target():
    X, Y = problem(150, seed=9)
    model = SetBooster("f1", **ROUNDS).fit(X, Y)
    for target in ("subset", "jaccard", "hamming", "precision@2"):
        other = model.for_target(target)
        np.testing.assert_array_equal(
            other.predict(X), SetBooster(target, **ROUNDS).fit(X, Y).predict(X)
        )


def test_without_xgboost_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(ImportError, match=r"pip install 'setwise\[boost\]'"):
        SetBooster().fit([[0.0], [1.0]], [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"surrogate": "constrained_hinge"}, "trees are grown on"),
        ({"space": "joint"}, "score for each label"),
        ({"subsample": 1.5}, "subsample must be a share"),
        ({"stopping": "accuracy"}, "stopping"),
        ({"n_estimators": 0}, "n_estimators"),
        ({"patience": 0}, "patience"),
        ({"reg_lambda": float("nan")}, "reg_lambda must be a number in"),
        ({"min_child_weight": -1.0}, "min_child_weight must be a number in"),
        ({"xgboost_params": "gamma"}, "xgboost_params must be a mapping"),
        ({"xgboost_params": {"eta": 0.5}}, "xgboost_params must leave 'eta' alone"),
        ({"xgboost_params": {"max_depth": 2}}, "must leave 'max_depth' alone"),
        ({"xgboost_params": {"objective": "binary:logistic"}}, "must leave 'objective' alone"),
    ],
)
def test_settings_are_refused_by_name(settings, message):
    X, Y = problem(30)
    with pytest.raises(ValueError, match=message):
        SetBooster(**settings).fit(X, Y)


# XGBoost sums in float32.
ROUNDED = {
    f"check_sample_weight_equivalence_on_{kind}_data": "equal to 1e-6, not 1e-7"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [SetBooster(n_estimators=30, patience=None, subsample=1.0, colsample=1.0, n_jobs=1)],
    expected_failed_checks=lambda _: ROUNDED,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_inputs_of_a_single_label():
    X, Y = problem(60, n_labels=2)
    named = [["only"] if one else [] for one in Y[:, 0]]
    assert SetBooster(**ROUNDS).fit(X, named).predict(X).shape == (60, 1)


@pytest.mark.parametrize("fraction", [0.1, 0.2, 0.4, 0.75, 0.9])
def test_so_large_a_share_is_held_out(fraction):
    X, Y = problem(120)
    model = SetBooster(n_estimators=2, validation_fraction=fraction, n_jobs=1).fit(X, Y)
    assert len(model._out_of_fold.sets) == pytest.approx(120 * fraction, abs=1)


def test_rounds_are_counted_where_no_set_held_out_was_seen():
    X, _ = problem(60)
    Y = np.array([[int(digit) for digit in f"{row:06b}"] for row in range(60)])
    Y[:, 0] = X[:, 0] > 0
    Y = np.unique(Y, axis=0)
    model = SetBooster(space="catalog", n_estimators=20, n_jobs=1).fit(X[: len(Y)], Y)
    assert len(set(model.held_out_)) > 1


def frame(kinds, categories=None):
    """Inputs with a column of categories."""
    values = np.random.default_rng(5).normal(size=len(kinds))
    return pd.DataFrame({"x": values, "kind": pd.Categorical(kinds, categories=categories)})


def test_categories_go_by_their_values_in_any_order(tmp_path):
    kinds = np.random.default_rng(6).choice(["red", "blue", "green"], 90)
    Y = np.column_stack([kinds == "red", kinds != "blue"]).astype(int)
    model = SetBooster(**ROUNDS).fit(frame(kinds), Y)
    model.save(tmp_path / "trees.skops")
    expected = model.predict_proba(frame(kinds))
    for other in (model, load(tmp_path / "trees.skops")):
        turned = frame(kinds, ["red", "green", "blue"])
        np.testing.assert_array_equal(other.predict_proba(turned), expected)
        np.testing.assert_array_equal(other.predict_proba(turned[:4]), expected[:4])
        few = frame(kinds)[kinds == "red"]
        few["kind"] = few["kind"].cat.remove_unused_categories()
        np.testing.assert_array_equal(other.predict_proba(few), expected[kinds == "red"])
        with pytest.raises(ValueError, match="'kind' has the category 'grey', which it had not"):
            other.predict(frame(["grey", "red"]))


def test_rows_of_weight_0_in_a_data_frame_are_not_there():
    kinds = np.random.default_rng(7).choice(["red", "blue"], 60)
    Y, mass = np.column_stack([kinds == "red", kinds != "red"]).astype(int), np.ones(60)
    mass[:20] = 0.0
    model = SetBooster(**ROUNDS).fit(frame(kinds), Y, mass)
    other = SetBooster(**ROUNDS).fit(frame(kinds)[20:], Y[20:])
    np.testing.assert_array_equal(*(m.predict_proba(frame(kinds)) for m in (model, other)))


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_categories_that_are_no_codes_are_refused(form):
    X, Y = problem(60)
    codes = X.copy()
    codes[:, 1] = np.arange(60) % 3
    model = SetBooster(categorical_features=[1], **ROUNDS)
    with pytest.raises(ValueError, match="must hold codes 0, 1, "):
        model.fit(form(X), Y)
    model.fit(form(codes), Y)
    with pytest.raises(ValueError, match="must hold codes 0, 1, "):
        model.predict(form(X))


def test_categories_of_a_frame_are_the_codes_of_an_array():
    kinds = np.random.default_rng(8).choice(["red", "blue", "green"], 90)
    Y, data = np.column_stack([kinds == "red", kinds != "blue"]).astype(int), frame(kinds)
    data.iloc[3, 1] = np.nan
    codes = np.column_stack([data["x"], data["kind"].cat.codes]).astype(float)
    codes[3, 1] = np.nan
    by_name = SetBooster(**ROUNDS).fit(data, Y)
    by_code = SetBooster(categorical_features=[1], **ROUNDS).fit(codes, Y)
    np.testing.assert_array_equal(by_name.predict_proba(data), by_code.predict_proba(codes))
    by_name = SetBooster(**ROUNDS).fit(data.set_axis([0, 1], axis=1), Y)
    np.testing.assert_array_equal(by_name.predict_proba(codes), by_code.predict_proba(codes))
    for wrong in (-5.5, 3.0):
        codes[4, 1] = wrong
        with pytest.raises(ValueError, match=f"must hold codes from 0 to 2, but there is {wrong}"):
            by_name.predict(codes)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_numbers_beyond_single_precision_are_refused(form):
    X, Y = problem(60)
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"X must not exceed 3.4.*single precision"):
        SetBooster(**ROUNDS).fit(form(1e39 * X), Y)
    with pytest.raises(ValueError, match=r"X must not exceed 3.4.*single precision"):
        SetBooster(**ROUNDS).fit(form(X), Y).predict(form(1e39 * X))


def test_names_of_columns_are_any_names():
    kinds = np.random.default_rng(9).choice(["red", "blue"], 60)
    Y, data = np.column_stack([kinds == "red", kinds != "red"]).astype(int), frame(kinds)
    expected = SetBooster(**ROUNDS).fit(data, Y).predict_proba(data)
    other = data.set_axis(["x[1]", "kind<2"], axis=1)
    model = SetBooster(**ROUNDS).fit(other, Y)
    np.testing.assert_array_equal(model.predict_proba(other), expected)
    assert model.feature_importances_.shape == (2,)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["a", "b"], "column 'new' has the type (object|str).*give it the type category"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), "column 'new' has the type datetime64"),
        ([1.0, np.inf], "contains infinity"),
    ],
)
@pytest.mark.parametrize("has_categories", [False, True])
def test_columns_that_trees_cannot_split_are_named(column, message, has_categories):
    data = frame(np.array(["red", "blue"] * 20)).assign(new=list(column) * 20)
    data = data if has_categories else data.drop(columns="kind")
    with pytest.raises(ValueError, match=message):
        SetBooster(**ROUNDS).fit(data, [[0, 1], [1, 0]] * 20)
