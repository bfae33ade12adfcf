"""Mixtures: weights at the optimum of their problem, members, temperatures, what is kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from setwise import CatalogClassifier, SetClassifier, SetEnsemble, load, trusted_types
from setwise.distributions import Independent, Listed, OfSpace
from setwise.estimators import set_ensemble
from setwise.estimators.members import seen_before
from setwise.estimators.mixing import mixture_weights, temperature
from setwise.spaces import Sized
from setwise.spaces.space import all_sets


def problem(n=120, seed=0, n_labels=3):
    """Inputs, and label sets that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    Y = (X @ rng.normal(size=(4, n_labels)) + rng.normal(size=(n, n_labels)) > 0.2).astype(int)
    return X, Y


def members():
    """Two quick ones of different kinds."""
    forest = RandomForestClassifier(15, min_samples_leaf=3, random_state=0)
    return {"linear": SetClassifier(alpha=0.01), "forest": CatalogClassifier(forest)}


# ------------------------------------------------------------------------------------- weights


@given(seed=st.integers(0, 10**6), n_members=st.integers(2, 5))
def test_weights_are_at_the_optimum(seed, n_members):
    rng = np.random.default_rng(seed)
    chance = rng.uniform(0.0, 1.0, (40, n_members)) ** rng.uniform(0.5, 4.0, n_members)
    chance[rng.uniform(size=chance.shape) < 0.1] = 0.0
    mass = rng.uniform(0.1, 2.0, 40)
    with np.errstate(divide="ignore"):
        weights = mixture_weights(np.log(chance), mass)
    rows = chance.any(axis=1)
    chance, share = chance[rows], mass[rows] / mass[rows].sum()
    # The conditions of Karush, Kuhn and Tucker: no member would gain by more weight.
    gain = (share / (chance @ weights)) @ chance
    assert weights.sum() == pytest.approx(1.0)
    assert (gain <= 1.0 + 1e-6).all()
    np.testing.assert_allclose(gain[weights > 0], 1.0, atol=1e-6)
    value = share @ np.log(chance @ weights)

    def softmax_loss(free):
        w = np.exp(free - free.max())
        return -share @ np.log(chance @ (w / w.sum()))

    other = minimize(softmax_loss, np.zeros(n_members), method="Nelder-Mead",
                     options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 20_000})  # fmt: skip
    assert value >= -other.fun - 1e-8


def test_permuting_members_permutes_weights():
    rng = np.random.default_rng(1)
    logs = np.log(rng.uniform(0.05, 1.0, (60, 4)))
    order = np.array([2, 0, 3, 1])
    weights = mixture_weights(logs, np.ones(60))
    np.testing.assert_allclose(
        mixture_weights(logs[:, order], np.ones(60)), weights[order], atol=1e-7
    )


def test_a_member_that_brings_nothing_has_weight_0():
    logs = np.log(np.c_[np.full(30, 0.5), np.full(30, 0.4)])
    np.testing.assert_array_equal(mixture_weights(logs, np.ones(30)), [1.0, 0.0])


# -------------------------------------------------------------------------------- temperatures


@pytest.mark.parametrize("kind", ["independent", "listed", "of a space"])
def test_a_tempered_law_is_its_power_scaled(kind):
    rng = np.random.default_rng(2)
    sets = all_sets(3)
    law = {
        "independent": Independent(rng.uniform(0.1, 0.9, (5, 3))),
        "listed": Listed(sets, rng.dirichlet(np.ones(8), 5)),
        "of a space": OfSpace(Sized(3, [0.1, 0.4, -0.3, 0.2]), rng.normal(size=(5, 3))),
    }[kind]

    def chances(one):
        logs = [one.log_probability(np.tile(y, (5, 1))) for y in sets]
        return np.exp(np.array(logs).T)

    raised = chances(law) ** 1.7
    np.testing.assert_allclose(
        chances(law.tempered(1.7)), raised / raised.sum(axis=1, keepdims=True), atol=1e-12
    )


def test_the_temperature_of_a_law_that_is_right_is_1_and_of_a_sharp_one_below():
    rng = np.random.default_rng(3)
    p = rng.uniform(0.05, 0.95, (4000, 3))
    y, mass = (rng.uniform(size=p.shape) < p).astype(np.uint8), np.ones(4000)
    assert temperature([Independent(p)], [y], [mass]) == pytest.approx(1.0, abs=0.1)
    sharp = Independent(p).tempered(3.0)
    assert temperature([sharp], [y], [mass]) == pytest.approx(1 / 3, abs=0.05)


# ------------------------------------------------------------------------------------ ensembles


def test_a_mixture_of_one_member_is_that_member():
    X, Y = problem()
    member = SetClassifier(alpha=0.01)
    one = SetEnsemble(members={"linear": member}, calibrate=False).fit(X, Y)
    alone = clone(member).set_params(random_state=one.members_["linear"].random_state).fit(X, Y)
    np.testing.assert_array_equal(one.weights_, [1.0])
    np.testing.assert_allclose(one.predict_proba(X), alone.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(one.predict(X), alone.predict(X))


def test_the_mixture_is_at_least_as_likely_as_its_best_member_on_held_out_rows():
    X, Y = problem(200, seed=4)
    model = SetEnsemble(members=members(), cv=3).fit(X, Y)
    alone = min(one["log_loss"] for one in model.contributions_)
    learnt = min(one["log_loss_without"] for one in model.contributions_)
    assert model.is_equal_ or model.log_loss_ <= min(alone, learnt) + 1e-9
    assert [one["member"] for one in model.contributions_] == ["linear", "forest"]
    assert model.weights_.sum() == pytest.approx(1.0)
    assert "held-out rows" in model.guarantee_
    # Thresholds on marginals are no set of least expected loss: another theorem speaks of them.
    assert "Pinsker" not in model.for_target("macro_f1").guarantee_
    assert "among the sets of" in model.for_target("jaccard").guarantee_
    assert "among the sets of" not in model.for_target("subset").guarantee_


def test_nothing_is_claimed_where_labels_are_decided_as_though_independent():
    X, Y = problem(60, seed=11, n_labels=20)
    kinds = [SetClassifier(space="sized", alpha=0.1), SetClassifier(space="catalog", alpha=0.1)]
    model = SetEnsemble("jaccard", members=kinds, cv=2).fit(X, Y)
    assert "No theorem" in model.guarantee_
    assert "Pinsker" in model.for_target("f1").guarantee_
    assert "Pinsker" in model.for_target("hamming").guarantee_


def test_without_xgboost_the_others_are_mixed(monkeypatch):
    monkeypatch.setattr(set_ensemble, "find_spec", lambda name: None)
    assert list(SetEnsemble()._members()) == ["linear", "extra trees"]


def test_the_same_mixture_serves_every_target():
    X, Y = problem(150, seed=5)
    model = SetEnsemble(members=members(), cv=3).fit(X, Y)
    for target in ("jaccard", "subset", "hamming", "precision@1", "macro_f1", "micro_f1"):
        other = model.for_target(target)
        assert 0.0 < other.score(X, Y) <= 1.0
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))


def test_members_may_be_any_classifiers_with_probabilities():
    X, Y = problem(100, seed=6)
    plain = OneVsRestClassifier(LogisticRegression())
    model = SetEnsemble("jaccard", members=[plain, SetClassifier(space="sized")], cv=3).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    with pytest.raises(ValueError, match="neither"):
        SetEnsemble(members=[object()]).fit(X, Y)


def test_rows_whose_label_set_was_not_trained_on_do_not_decide():
    sets = np.array([[1, 0], [1, 0], [0, 1], [1, 1]], np.uint8)
    np.testing.assert_array_equal(
        seen_before(sets, np.array([0, 2]), np.array([1, 3])), [True, False]
    )


def test_classes_are_predicted_by_the_mixture():
    X, Y = problem(120, seed=7)
    names = np.array(["a", "b", "c"])[Y.argmax(axis=1)]
    model = SetEnsemble(members=members(), cv=3).fit(X, names)
    assert set(model.predict(X)) <= {"a", "b", "c"}
    assert model.score(X, names) > 0.7


def test_a_file_holds_the_mixture(tmp_path):
    X, Y = problem(80, seed=8)
    model = SetEnsemble(members={"a": SetClassifier(), "b": SetClassifier(space="sized")}, cv=3)
    model.fit(X, Y).save(tmp_path / "mixture.skops")
    again = load(tmp_path / "mixture.skops", trusted=trusted_types())
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.contributions_ == model.contributions_


def test_an_interrupt_keeps_the_members_trained(monkeypatch):
    X, Y = problem(80, seed=9)
    fit, calls = CatalogClassifier.fit, []

    def interrupted(self, *args, **kwargs):
        calls.append(0)
        raise KeyboardInterrupt

    monkeypatch.setattr(CatalogClassifier, "fit", interrupted)
    with pytest.warns(UserWarning, match="interrupted: the mixture is of 1"):
        model = SetEnsemble(members=members(), cv=3, on_interrupt="finish").fit(X, Y)
    assert list(model.members_) == ["linear"]
    assert model.stopped_ == "interrupt"
    with pytest.raises(KeyboardInterrupt):
        SetEnsemble(members=members(), cv=3).fit(X, Y)
    monkeypatch.setattr(CatalogClassifier, "fit", fit)


def test_a_budget_that_is_too_small_leaves_the_first_member():
    X, Y = problem(80, seed=10)
    with pytest.warns(UserWarning, match="time was up: the mixture is of 1"):
        model = SetEnsemble("macro_f1", members=members(), cv=3, time_budget=1e-3).fit(X, Y)
    assert model.stopped_ == "time_budget"
    assert model.predict(X).shape == Y.shape
    assert model.contributions_[0]["weight"] == 1.0
    whole = SetEnsemble(members=members(), cv=3, time_budget=1e4).fit(X, Y)
    assert whole.stopped_ is None
    assert list(whole.members_) == ["linear", "forest"]


@parametrize_with_checks([SetEnsemble(members=[SetClassifier(alpha=0.1, tol=1e-5)], cv=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
