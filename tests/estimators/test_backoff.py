"""Laws of training on the space that backs off: which sets are favoured, and how far."""

import numpy as np
import pytest

from setwise import SetClassifier, SetClassifierCV, load
from setwise.estimators import choice
from setwise.estimators.choice import choose_space
from setwise.spaces import Backoff, Forest, Sized


def rows(n, n_labels=6, seed=0):
    """Inputs, and label sets of which some repeat and some do not."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    known = (rng.random((5, n_labels)) < 0.4).astype(np.uint8)
    own = (rng.random((n, n_labels)) < 0.3).astype(np.uint8)
    often = known[np.abs(X @ rng.normal(size=(3, 5))).argmax(axis=1)]
    return X, np.where(rng.random((n, 1)) < 0.7, often, own)


def test_sets_seen_often_are_favoured(monkeypatch):
    """At least twice, and in a share of the rows that bounds their number."""
    _, sets = rows(200)
    seen, count = np.unique(sets, axis=0, return_counts=True)
    space = choose_space("backoff", sets)
    np.testing.assert_array_equal(space.sets, seen[count >= 2])
    monkeypatch.setattr(choice, "LEAST_SHARE", 0.05)
    space = choose_space("backoff", sets)
    np.testing.assert_array_equal(space.sets, seen[count >= 10])
    assert len(space.sets) <= 20


def test_without_a_set_seen_twice_nothing_is_favoured():
    space = choose_space("backoff", np.eye(4, dtype=np.uint8))
    assert isinstance(space, Sized)


def test_training_begins_with_sets_as_frequent_as_they_are():
    """Weights count; a set that the base has more often begins without a bonus."""
    _, sets = rows(400)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(sets))
    space = choose_space("backoff", sets, weights)
    start = space.start_scores(sets, weights)
    chance = np.exp(space.log_probability(np.tile(start, (len(space.sets), 1)), space.sets))
    share = [weights @ (sets == own).all(axis=1) / weights.sum() for own in space.sets]
    raised = space.bonus > 0.0
    assert raised.any()
    # What is cut off at 0 makes all others a little less likely than they are.
    np.testing.assert_allclose(chance[raised], np.array(share)[raised], rtol=0.2)


def test_bonuses_are_learnt_and_stay_above_zero():
    """At the solution a bonus has no slope, or is 0 and would fall."""
    X, sets = rows(400)
    model = SetClassifier("f1", space="backoff", alpha=1e-2, tol=1e-6).fit(X, sets)
    space, scores = model.space_, X @ model.coef_.T + model.intercept_
    slope = space.negative_log_likelihood(scores, sets)[2].sum(axis=0)
    slope = (slope + space.penalties * space.parameters)[-len(space.sets) :] / len(sets)
    assert (space.bonus >= 0.0).all()
    assert (space.bonus > 1.0).any()
    assert (np.abs(slope[space.bonus > 0.0]) < 1e-5).all()
    assert (slope[space.bonus == 0.0] > -1e-5).all()


def test_every_set_seen_often_leaves_others_possible():
    """Without a penalty the bonuses would grow for ever; so new sets stay possible."""
    X, sets = rows(300)
    sets[:] = sets[:4][np.random.default_rng(2).integers(0, 4, len(sets))]
    model = SetClassifier("f1", space="backoff").fit(X, sets)
    new = np.array([[1, 1, 1, 1, 0, 0]], np.uint8)
    size = int(new.sum())
    assert not (sets == new).all(axis=1).any()
    if size in sets.sum(axis=1):
        assert np.isfinite(model.predict_distribution(X[:1]).log_probability(new)).all()
    assert model.space_.bonus.max() < 50.0
    assert model.n_iter_ < model.max_iter


@pytest.mark.parametrize("surrogate", ["likelihood", "logistic"])
def test_the_log_loss_that_is_told_is_that_of_the_rows(surrogate):
    """Without the penalties that stand beside it in the objective."""
    X, sets = rows(200)
    model = SetClassifier("subset", surrogate, "backoff", alpha=1e-2).fit(X, sets)
    value = -model.predict_distribution(X).log_probability(sets).mean()
    assert f"{value:.4f} nats" in model.guarantee_on(X, sets)


@pytest.mark.parametrize("target", ["f1", "hamming", "jaccard", "subset"])
def test_a_fitted_model_predicts_the_same_from_its_file(target, tmp_path):
    X, sets = rows(150)
    model = SetClassifier(target, space="backoff").fit(X, sets)
    model.save(tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.space_.parameters, model.space_.parameters)
    assert "Backoff of" in model.guarantee_


def test_cross_validation_takes_the_space():
    X, sets = rows(120)
    model = SetClassifierCV("f1", spaces=["backoff", "sized"], alphas=[0.1], cv=2).fit(X, sets)
    assert {row["space"] for row in model.cv_results_} == {"backoff", "sized"}


@pytest.mark.parametrize("closed", [True, False])
def test_a_given_space_with_any_base_is_trained(closed):
    """Bonuses say what no score says, on closed sets too."""
    X, sets = rows(200, n_labels=3)
    parents = [-1, 0, 0]
    # Labels that come together more often than a common parent makes them.
    sets[:150, 2] = sets[:150, 1]
    sets[:, 0] |= sets[:, 1] | sets[:, 2]
    space = Backoff(Forest(parents, closed=closed), [[1, 1, 1], [0, 0, 0]])
    model = SetClassifier("hamming", space=space).fit(X, sets)
    assert model.space_.bonus.any()
    plain = SetClassifier("hamming", space=space.base).fit(X, sets)
    assert model.objective_ < plain.objective_
