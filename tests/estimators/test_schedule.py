"""How time is shared among the members of a mixture, by a clock that fits move on."""

import pickle
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import KFold

from setwise import SetClassifier, SetEnsemble
from setwise.decoders import PopulationRule
from setwise.distributions import Independent
from setwise.estimators.finished import Finished, finished_in
from setwise.estimators.members import Given
from setwise.estimators.running import OutOfTime, Watch
from setwise.estimators.schedule import Schedule
from setwise.targets.truth import read_truth

N_ROWS = 2000


@pytest.fixture
def clock(monkeypatch):
    """Seconds that go by only where a fit says so."""
    now = SimpleNamespace(seconds=0.0, fits=[])
    for module in ("schedule", "members", "running"):
        told = SimpleNamespace(monotonic=lambda: now.seconds)
        monkeypatch.setattr(f"setwise.estimators.{module}.time", told)
    Timed.clock = now
    return now


class Timed(ClassifierMixin, BaseEstimator):
    """Takes so many seconds for a thousand rows; with a budget a tenth of that, or what it has."""

    clock: SimpleNamespace

    def __init__(self, seconds=1.0, ends=True, time_budget=None):
        self.seconds, self.ends, self.time_budget = seconds, ends, time_budget

    def get_params(self, deep=True):
        """Those that do not end in time have no budget."""
        given = super().get_params(deep)
        return given if self.ends else {"seconds": self.seconds, "ends": False}

    def fit(self, X, y):
        """Let time go by."""
        whole = self.seconds * (len(X) / 1000.0) ** 1.1
        budget = np.inf if self.time_budget is None else self.time_budget
        took = max(min(whole, budget), 0.1 * whole)
        self.stopped_ = "time_budget" if took < whole else None
        self.clock.seconds += took
        self.clock.fits.append(X[:, 0].astype(int))
        self.n_features_in_ = X.shape[1]
        return self

    def predict_distribution(self, X):
        """The same for all rows."""
        return Independent(np.full((len(X), 2), 0.5))


def given_rows(n_rows=N_ROWS):
    """Rows whose first feature is their number."""
    X = np.arange(n_rows, dtype=float)[:, None]
    sets, names = read_truth("f1", np.random.default_rng(0).integers(0, 2, (n_rows, 2)))
    return Given(X, np.asarray(sets), names)


def run_within(budget, speeds, folds, finished=None, **how):
    rows = given_rows()
    splits = list(KFold(5, shuffle=True, random_state=0).split(rows.X))[:folds]
    watch, limit = Watch(budget, None), np.inf if budget is None else budget
    found = Schedule(rows, splits, watch, finished or Finished(), limit)
    members = {f"{k}": Timed(seconds, **how) for k, seconds in enumerate(speeds)}
    with suppress(OutOfTime):
        found.train(members)
    return found


SPEEDS = [(1.0, 1.0, 1.0), (0.1, 1.0, 8.0), (8.0, 1.0, 0.1), (30.0, 30.0, 30.0), (0.2, 20.0, 0.2)]


@pytest.mark.parametrize("speeds", SPEEDS)
@pytest.mark.parametrize("folds", [1, 5])
@pytest.mark.parametrize("budget", [5.0, 20.0, 60.0])
def test_time_is_used_and_not_exceeded(budget, speeds, folds, clock):
    found = run_within(budget, speeds, folds)
    assert clock.seconds <= 1.1 * budget
    if found.cut:
        assert clock.seconds >= 0.4 * budget
        assert len(found.judged) == 3 or clock.seconds >= 0.9 * budget
    else:
        assert len(found.judged) == 3
        assert all(one.n_rows == len(found.pool) for one in found.judged)


@pytest.mark.parametrize("speeds", SPEEDS)
def test_without_a_budget_nothing_is_cut(speeds, clock):
    found = run_within(None, speeds, 5)
    assert found.cut == []
    assert [len(rows) for rows in clock.fits].count(N_ROWS) == 3
    assert len(clock.fits) == 18
    assert [one.n_folds for one in found.found] == [5, 5, 5]


def test_a_member_that_ends_by_a_budget_of_its_own_is_fitted_once(clock):
    found = run_within(None, (1.0, 2.0), 5, time_budget=0.5)
    assert found.cut == ["0 ended early", "1 ended early"]
    assert len(clock.fits) == 12


def test_where_one_part_is_held_out_nobody_has_learnt_from_it(clock):
    found = run_within(60.0, (1.0, 2.0, 3.0), 1)
    held = found.splits[0][1]
    assert found.cut == []
    assert not np.isin(np.concatenate(clock.fits), held).any()
    # Without a limit each is fitted to all rows, and once more without these.
    clock.fits.clear()
    run_within(None, (1.0,), 1)
    assert [len(rows) for rows in clock.fits] == [N_ROWS, N_ROWS - len(held)]


def test_members_that_do_not_end_in_time_learn_from_fewer_rows(clock):
    found = run_within(10.0, (20.0, 20.0), 5, ends=False)
    assert clock.seconds <= 11.0
    assert all(one.n_rows < N_ROWS for one in found.judged)
    assert any("learnt from" in words for words in found.cut)


def test_what_was_cut_is_said(clock):
    found = run_within(3.0, (1.0, 300.0), 5)
    words = "; ".join(found.cut)
    assert "left out: 1" in words or "1 learnt from" in words


# -------------------------------------------------------------------------------------- folders


@pytest.fixture
def pickled(monkeypatch):
    """Files that hold the classes of tests."""
    place = "setwise.estimators.finished"
    monkeypatch.setattr(f"{place}.load", lambda file: pickle.loads(file.read_bytes()))
    monkeypatch.setattr(f"{place}.save", lambda found, file: file.write_bytes(pickle.dumps(found)))


def stored(folder, budget, speeds):
    with finished_in(folder, {"a": "b"}) as finished:
        return run_within(budget, speeds, 5, finished)


def test_a_longer_budget_makes_anew_only_what_was_cut(clock, tmp_path, pickled):
    speeds = (0.1, 20.0)
    short = stored(tmp_path, 12.0, speeds)
    assert [one.is_cut for one in short.judged] == [False, True]
    clock.fits.clear()
    longer = stored(tmp_path, 1e4, speeds)
    assert longer.cut == []
    # The second member, and its five folds; of the first what was not finished.
    assert [len(rows) for rows in clock.fits].count(N_ROWS) == 1
    clock.fits.clear()
    whole = stored(tmp_path, None, speeds)
    assert whole.cut == []
    assert clock.fits == []


def test_what_folds_said_goes_with_the_fit_they_belong_to(clock, tmp_path, pickled):
    stored(tmp_path, 12.0, (20.0,))
    before = {file.name for file in tmp_path.glob("0-*.skops")}
    assert {"0-all.skops", "0-0.skops"} <= before
    with finished_in(tmp_path, {"a": "b"}) as finished:
        finished.fit(0, lambda: (Timed(), 3, False, False, 1.0), np.inf, False)
    assert [file.name for file in tmp_path.glob("0-*.skops")] == ["0-all.skops"]


def test_a_fit_stays_until_the_one_that_takes_its_place_is_written(tmp_path, pickled, monkeypatch):
    with finished_in(tmp_path, {"a": "b"}) as finished:
        finished.fit(0, lambda: ("first", 3, True, False, 1.0), 5.0, False)

        def interrupted(found, file):
            raise KeyboardInterrupt

        monkeypatch.setattr("setwise.estimators.finished.save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            finished.fit(0, lambda: ("second", 3, True, False, 1.0), 9.0, False)
        assert finished.fit(0, tuple, 5.0, False)[0] == "first"


def test_a_folder_that_is_a_file_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "run").write_text("x")
    X, Y = np.random.default_rng(0).normal(size=(30, 2)), [[0, 1], [1, 0], [1, 1]] * 10
    for folder in (tmp_path / "run", tmp_path / "run" / "below"):
        model = SetEnsemble(members=[SetClassifier()], cv=2, folder=folder)
        with pytest.raises(ValueError, match=r"folder must be a folder, but '.*run' is a file"):
            model.fit(X, Y)


# -------------------------------------------------------------------------------- cut at once


@pytest.mark.parametrize("decoder", ["auto", "thresholds", "batch"])
def test_without_a_fold_rules_for_all_rows_go_by_the_batch_and_say_so(decoder):
    X = np.random.default_rng(0).normal(size=(60, 2))
    Y = (X + np.random.default_rng(1).normal(size=X.shape) > 0).astype(int)
    model = SetEnsemble("macro_f1", [SetClassifier(alpha=0.1)], decoder=decoder, time_budget=1e-6)
    with pytest.warns(UserWarning, match="0 of 5 folds"):
        model.fit(X, Y)
    assert model.depends_on_batch_
    told = "labels are decided by each batch, as decoder='batch' does"
    assert (told in model.cut_) == (decoder != "batch")
    again = model.for_target("macro_f1", PopulationRule("macro_f1", "batch"))
    np.testing.assert_array_equal(model.predict(X), again.predict(X))


def test_without_a_fold_a_rule_is_fitted_to_what_the_member_held_out():
    from setwise import SetClassifierCV

    X = np.random.default_rng(0).normal(size=(60, 2))
    Y = (X + np.random.default_rng(1).normal(size=X.shape) > 0).astype(int)
    member = SetClassifierCV("macro_f1", alphas=[0.1, 0.01])
    model = SetEnsemble("macro_f1", [member], decoder="thresholds", time_budget=1e-6)
    with pytest.warns(UserWarning, match="0 of 5 folds"):
        model.fit(X, Y)
    assert not model.depends_on_batch_
    assert model._out_of_fold is not None
