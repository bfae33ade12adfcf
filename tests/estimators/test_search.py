"""The search of `SetClassifierCV`: turned inputs, the race, and how it is cut."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import norm
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import KFold

from setwise.estimators import (
    SetClassifier,
    SetClassifierCV,
    held_out,
    running,
    search,
)
from setwise.estimators.design import Design, Rows
from setwise.estimators.turned import Turned
from tests.estimators.test_set_classifier_cv import drawn


def raced(monkeypatch, least_gain, seed=0, spaces=("catalog",)):
    monkeypatch.setattr(held_out, "LEAST_GAIN", least_gain)
    monkeypatch.setattr(search, "LEAST_JUDGED", 50)
    X, Y = drawn(seed, 300)
    alphas = np.logspace(2, -3, 6)
    return SetClassifierCV("f1", alphas=alphas, spaces=spaces, cv=5).fit(X, Y)


@pytest.mark.parametrize("seed", range(2))
def test_who_leaves_the_race_early_would_have_gained_little(monkeypatch, seed):
    """When all run to the end, no one that left is better than who was chosen by much."""
    race, whole = raced(monkeypatch, 1e-4, seed), raced(monkeypatch, -1.0, seed)
    assert all(len(row["fold_losses"]) == 5 for row in whole.cv_results_)
    losses = {row["alpha"]: row["loss"] for row in whole.cv_results_}
    early = [row for row in race.cv_results_ if len(row["fold_losses"]) < 5]
    assert early
    assert len(early) < len(race.cv_results_)
    chosen = min((row for row in race.cv_results_ if row not in early), key=loss_of)
    assert losses[chosen["alpha"]] <= whole.best_loss_ + 2e-3


def test_the_loss_of_one_that_left_is_that_of_the_best_and_what_it_lost_to_it(monkeypatch):
    model = raced(monkeypatch, 1e-4)
    most = max(len(row["fold_losses"]) for row in model.cv_results_)
    best = min((row for row in model.cv_results_ if len(row["fold_losses"]) == most), key=loss_of)
    for row in model.cv_results_:
        seen = len(row["fold_losses"])
        lost = np.mean(row["fold_losses"]) - np.mean(best["fold_losses"][:seen])
        assert row["loss"] == pytest.approx(best["loss"] + lost, abs=1e-12)
    assert model.best_loss_ == best["loss"]


@pytest.mark.parametrize("excess", [-0.3, 0.0, 0.1, 2.0])
@pytest.mark.parametrize("spread", [1e-3, 0.2, 1.0])
def test_the_expected_gain_is_the_mean_over_draws(excess, spread):
    """By a midpoint rule over the quantiles of the normal law."""
    quantiles = norm.ppf((np.arange(200_000) + 0.5) / 200_000, -excess, spread)
    expected = np.maximum(quantiles, 0.0).mean()
    assert search.expected_gain(excess, spread) == pytest.approx(expected, rel=1e-3, abs=1e-9)


def test_nobody_leaves_while_few_rows_were_judged(monkeypatch):
    monkeypatch.setattr(search, "LEAST_JUDGED", 10_000)
    X, Y = drawn(2)
    model = SetClassifierCV("f1", alphas=[1e3, 0.1], spaces=["cube"], cv=3).fit(X, Y)
    assert [len(row["fold_losses"]) for row in model.cv_results_] == [3, 3]


def test_other_spaces_are_tried_around_the_best_penalty():
    X, Y = drawn(3, 200)
    alphas = np.logspace(3, -3, 7)
    model = SetClassifierCV("f1", alphas=alphas, spaces=["catalog", "cube"], cv=3).fit(X, Y)
    by_space = {
        space: [row for row in model.cv_results_ if row["space"] == space]
        for space in ("catalog", "cube")
    }
    best = min(by_space["catalog"], key=loss_of)["alpha"]
    tried = [row["alpha"] for row in by_space["cube"]]
    assert tried == [alpha for alpha in alphas if best / 10.1 < alpha < best * 10.1]


def test_a_further_space_that_is_behind_leaves_at_once(monkeypatch):
    """Unlike a penalty, from which something may still be gained."""
    model = raced(monkeypatch, 0.0, spaces=("catalog", "cube"))
    first = [row for row in model.cv_results_ if row["space"] == "catalog"]
    best = min(first, key=loss_of)
    for row in model.cv_results_:
        seen = len(row["fold_losses"])
        behind = np.mean(row["fold_losses"]) > np.mean(best["fold_losses"][:seen])
        if row["space"] == "cube" and seen > 1 and behind:
            before = np.mean(row["fold_losses"][:-1]) - np.mean(best["fold_losses"][: seen - 1])
            assert before < 0.0


def loss_of(row):
    return row["loss"]


def slow_steps(monkeypatch, seconds):
    """Every step of a solver takes so long; what is returned has an entry for each step."""
    step, taken = running.Watch.step, []

    def slow(self, **changes):
        time.sleep(seconds)
        taken.append(changes)
        step(self, **changes)

    monkeypatch.setattr(running.Watch, "step", slow)
    return taken


def test_a_search_whose_time_is_up_gives_the_best_model_so_far_and_says_so(monkeypatch):
    X, Y = drawn(3)
    steps = slow_steps(monkeypatch, 0.002)
    settings = {"alphas": [1.0, 0.3, 0.1], "cv": 5}
    model = SetClassifierCV("f1", **settings, time_budget=0.2)
    with pytest.warns(UserWarning, match="too little time was left: the model is the best of"):
        model.fit(X, Y)
    cut = len(steps)
    assert model.stopped_ == "time_budget"
    tried = sum(len(row["fold_losses"]) for row in model.cv_results_)
    assert model.best_estimator_.alpha == model.best_params_["alpha"]
    assert model.predict(X).shape == Y.shape
    whole = SetClassifierCV("f1", **settings).fit(X, Y)
    assert whole.stopped_ is None
    assert cut < len(steps) - cut
    assert tried < sum(len(row["fold_losses"]) for row in whole.cv_results_)


def test_even_no_time_at_all_gives_a_model():
    X, Y = drawn(4)
    with pytest.warns(UserWarning, match="too little time was left"):
        model = SetClassifierCV("f1", time_budget=1e-9).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert model.best_params_["alpha"] == model.cv_results_[0]["alpha"]


@pytest.mark.parametrize("target", ["f1", "macro_f1"])
def test_a_path_that_is_cut_while_penalties_gain_goes_on_to_its_middle(target, monkeypatch):
    X, Y = make_multilabel_classification(200, n_labels=2, random_state=0)
    alphas, step = [30.0, 3.0, 0.3, 0.1, 0.03], running.Watch.step

    def cut(self, **changes):
        step(self, **changes)
        if "alpha 3" in self.words and "alpha 30" not in self.words:
            raise running.OutOfTime

    monkeypatch.setattr(running.Watch, "step", cut)
    settings = {"spaces": "catalog", "scalings": "standard", "cv": 2, "tol": 1e-6}
    with pytest.warns(UserWarning, match="too little time was left: the model is the best of 1 "):
        model = SetClassifierCV(target, alphas=alphas, time_budget=1e6, **settings).fit(X, Y)
    # Rules for all rows together are fitted to what the one that was tried has said.
    expected = 0.3 if target == "f1" else 30.0
    assert model.best_params_["alpha"] == expected
    plain = SetClassifier(target, space="catalog", scaling="standard", alpha=expected, tol=1e-6)
    np.testing.assert_allclose(
        model.predict_proba(X), plain.fit(X, Y).predict_proba(X), rtol=0, atol=1e-4
    )


def interrupted(monkeypatch, after):
    """A Ctrl-C at that step of the search."""
    step, steps = running.Watch.step, []

    def interrupting(self, **changes):
        steps.append(1)
        if len(steps) in after:
            signal.raise_signal(signal.SIGINT)
        step(self, **changes)

    monkeypatch.setattr(running.Watch, "step", interrupting)


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals need the main thread"
)
def test_an_interrupt_raises_or_keeps_the_best_model_so_far(monkeypatch):
    X, Y = drawn(5)
    model = SetClassifierCV("f1", alphas=[1.0, 0.1], cv=2).fit(X, Y)
    before = dict(vars(model))
    interrupted(monkeypatch, {20})
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert vars(model) == before
    interrupted(monkeypatch, {20})
    with pytest.warns(UserWarning, match="it was interrupted: the model is the best of"):
        kept = SetClassifierCV("f1", cv=2, on_interrupt="finish").fit(X, Y)
    assert kept.stopped_ == "interrupt"
    assert kept.predict(X).shape == Y.shape
    interrupted(monkeypatch, {20, 21})
    with pytest.raises(KeyboardInterrupt):
        SetClassifierCV("f1", cv=2, on_interrupt="finish").fit(X, Y)


def test_an_interrupt_before_anything_was_tried_raises(monkeypatch):
    X, Y = drawn(5)
    interrupted(monkeypatch, {1})
    model = SetClassifierCV("f1", cv=2, on_interrupt="finish")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not hasattr(model, "cv_results_")


def test_progress_is_told_in_lines_where_there_is_no_terminal(monkeypatch, capsys):
    """With the time left, after the first fold; and not more often than asked."""
    X, Y = drawn(6)
    monkeypatch.setattr(running, "BETWEEN_LINES", 0.0)
    SetClassifierCV("f1", alphas=[0.1], cv=3, verbose=True).fit(X, Y)
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith("setwise: ") for line in lines)
    assert any("fold 1 of 3, catalog, alpha 0.1" in line for line in lines)
    for line in lines:
        assert ("s left" in line) == ("fold 2 of" in line or "fold 3 of" in line)
    monkeypatch.setattr(running, "BETWEEN_LINES", 1e9)
    SetClassifierCV("f1", alphas=[0.1], cv=3, verbose=True).fit(X, Y)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kind", [SetClassifier, SetClassifierCV])
def test_threads_change_nothing_and_a_wrong_number_is_named(kind):
    X, Y = drawn(7)
    settings = {"alpha": 0.1} if kind is SetClassifier else {"alphas": [0.1], "cv": 2}
    one, two = (kind("f1", n_jobs=n_jobs, **settings).fit(X, Y) for n_jobs in (1, 2))
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-8)
    for wrong in (0, -2, 1.5, True, "two"):
        with pytest.raises(ValueError, match="n_jobs must be None, -1 or a number of threads"):
            kind("f1", n_jobs=wrong).fit(X, Y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"time_budget": 0}, "time_budget must be a positive number"),
        ({"on_interrupt": "ignore"}, "on_interrupt must be one of 'raise', 'finish'"),
    ],
)
def test_bad_settings_of_the_search_are_named(settings, message):
    X, Y = drawn(0)
    with pytest.raises(ValueError, match=message):
        SetClassifierCV("f1", **settings).fit(X, Y)


def test_a_measure_of_all_rows_is_decided_from_the_rows_of_all_folds():
    X, Y = drawn(2, 300)
    model = SetClassifierCV("macro_f1", alphas=[1e3, 0.1], spaces=["cube"], cv=5).fit(X, Y)
    seen = {row["alpha"]: len(row["fold_losses"]) for row in model.cv_results_}
    assert seen[1e3] < 5
    assert seen[0.1] == 5
    assert len(model.best_estimator_._out_of_fold.sets) == len(X)


def test_penalties_that_all_rows_do_not_tell_apart_are_chosen_by_likelihood():
    """Labels that no feature tells: macro-F1 is luck, and the likelihood prefers the penalty."""
    chosen = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(150, 8)), (rng.random((150, 4)) < 0.1).astype(int)
        model = SetClassifierCV("macro_f1", alphas=[10.0, 0.1, 1e-3], spaces=["catalog"], cv=3)
        chosen.append(model.fit(X, Y).best_params_["alpha"])
    assert sum(alpha == 10.0 for alpha in chosen) >= 7


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_measure_that_rare_labels_do_not_decide_is_chosen_by_alone(seed):
    X, Y = make_multilabel_classification(120, 12, n_classes=4, random_state=seed)
    alphas = np.logspace(1, -3, 9)
    model = SetClassifierCV("micro_f1", alphas=alphas, spaces=["catalog"], cv=3).fit(X, Y)
    tried = [row["loss"] for row in model.cv_results_ if len(row["fold_losses"]) == 3]
    assert len(tried) > 1
    assert model.best_loss_ == min(tried)


def test_a_choice_by_likelihood_is_of_the_least_log_loss_and_the_same_for_every_target():
    """The log-loss of the marginals on the folds; losses of the target are told as ever."""
    X, Y = drawn(7, 120)
    settings = {"alphas": [10.0, 1.0, 0.1, 0.01], "spaces": ["cube"], "scalings": [None]}
    folds = [(train, test) for train, test in KFold(3).split(X)]
    models = [
        SetClassifierCV(target, **settings, cv=folds, tol=1e-6, choose_by="likelihood").fit(X, Y)
        for target in ("f1", "subset")
    ]
    assert models[0].best_params_ == models[1].best_params_
    best = min(models[1].cv_results_, key=lambda row: row["log_loss"])
    surprise, loss = [], []
    for train, test in folds[: len(best["fold_losses"])]:
        alone = SetClassifier("subset", space="cube", alpha=best["alpha"], tol=1e-6)
        likely = alone.fit(X[train], Y[train]).predict_proba(X[test])
        surprise.append(-np.log(np.where(Y[test] == 1, likely, 1 - likely)).sum(axis=1).mean())
        loss.append((alone.predict(X[test]) != Y[test]).any(axis=1).mean())
    assert best["log_loss"] == pytest.approx(np.mean(surprise), rel=1e-4)
    np.testing.assert_allclose(best["fold_losses"], loss)
    assert models[1].best_loss_ == best["loss"] == pytest.approx(np.mean(loss))


def test_a_choice_by_likelihood_needs_probabilities():
    X, Y = drawn(7)
    model = SetClassifierCV("f1", surrogates=["mean_absolute_error"], choose_by="likelihood")
    with pytest.raises(ValueError, match="which the surrogates 'likelihood' and 'binary_rel"):
        model.fit(X, Y)
    with pytest.raises(ValueError, match="choose_by must be one of"):
        SetClassifierCV("f1", choose_by="f1").fit(X, Y)


def test_sparse_rows_of_few_entries_are_learnt_from_as_they_are():
    """Dense products with turned ones would take longer; the solution is the same."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((400, 60), density=0.05, random_state=rng, format="csr")
    Y = (X @ rng.normal(size=(60, 3)) + 0.1 * rng.normal(size=(400, 3)) > 0.1).astype(int)
    assert Turned.of(Design.of(Rows(X, Y, np.ones(400)), None, True)) is None
    assert Turned.of(Design.of(Rows(X.toarray(), Y, np.ones(400)), None, True)) is not None
    settings = {"alphas": [0.01], "spaces": ["cube"], "scalings": [None], "cv": 2, "tol": 1e-7}
    models = [SetClassifierCV("f1", **settings).fit(one, Y) for one in (X, X.toarray())]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-5)
    assert models[0].best_loss_ == models[1].best_loss_


def test_a_penalty_that_changes_nothing_is_not_tried_on_further_folds():
    """Its fit takes no step: it is the model of the penalty before."""
    X, Y = drawn(8, 150)
    alphas = [0.1, 0.1 - 1e-7, 0.01]
    model = SetClassifierCV("f1", alphas=alphas, spaces=["cube"], cv=3).fit(X, Y)
    assert [row["alpha"] for row in model.cv_results_] == [0.1, 0.01]
