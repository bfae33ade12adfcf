"""Studies: what is finished stays, what is resumed equals what was never interrupted."""

import hashlib
import io
import json
import os
import signal
import sys
import time
import warnings
from base64 import b64encode
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from setwise import SetBooster, SetClassifier, Taxonomy
from setwise.estimators.folds import StratifiedLabelSets
from setwise.evaluation import compare, evaluate
from setwise.evaluation.statistics import holm
from setwise.run_folder import locked
from setwise.study import (
    METHODS,
    Study,
    in_hierarchy,
    leaderboard,
    load,
    summary,
)
from setwise.study import methods as peers
from setwise.study.folder import RESULTS
from setwise.study.identity import described
from setwise.study.methods import Question
from setwise.targets import CountTarget, FBeta, TreeDistance, get_target
from tests.support import slow_study
from tests.support.forks import begin, forked_workers, read_study, wait_for
from tests.support.small_models import few_trees
from tests.support.turns import in_turn

QUICK = ["binary_relevance", "catalog", "one_vs_rest"]
TARGETS = ["f1", "hamming"]
TREE = Taxonomy.from_parents([-1, 0, 0])
NAMED = Taxonomy.from_parents([-1, 0, 0], ["a", "b", "c"])


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 4))
    Y = X @ generator.normal(size=(4, 3)) + generator.normal(size=(60, 3)) > 0.4
    return X, Y.astype(int)


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory):
    """A study run to its end."""
    folder = tmp_path_factory.mktemp("whole") / "study"
    return folder, make(data).run(folder)


def make(data, **changed):
    X, Y = data
    settings = {"methods": QUICK, "targets": TARGETS, "folds": 3, **changed}
    return Study(X, Y, **settings)


def assert_equal(a, b):
    """The same to the last bit, but for how long it took."""
    assert replace(a, y_true=None, fold=None, outcomes=(), taxonomy=None) == replace(
        b, y_true=None, fold=None, outcomes=(), taxonomy=None
    )
    np.testing.assert_array_equal(a.y_true.toarray(), b.y_true.toarray())
    np.testing.assert_array_equal(a.fold, b.fold)
    assert len(a.outcomes) == len(b.outcomes)
    for one, other in zip(a.outcomes, b.outcomes, strict=True):
        assert _told(one) == _told(other)


def _told(outcome):
    return (
        outcome.method,
        outcome.target,
        outcome.guarantee,
        outcome.settings,
        outcome.y_pred.toarray().tobytes(),
        outcome.losses.tobytes(),
        None if outcome.probability is None else outcome.probability.tobytes(),
    )


class Fails(ClassifierMixin, BaseEstimator):
    """Fails, in its own way, as long as a file is there; else predicts what is most frequent."""

    def __init__(self, file, error=ValueError, rows=None):
        self.file = file
        self.error = error
        self.rows = rows

    def fit(self, X, y):
        if os.path.exists(self.file) and self.rows in (None, len(X)):
            raise self.error("it does not converge")
        self.sets_ = (y.mean(axis=0) > 0.5).astype(int)
        return self

    def predict(self, X):
        return np.tile(self.sets_, (len(X), 1))


class Says(ClassifierMixin, BaseEstimator):
    """Predicts what it is told to, whatever it sees."""

    def __init__(self, y_pred, probability=None):
        self.y_pred = y_pred
        self.probability = probability

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.y_pred

    def predict_proba(self, X):
        return self.probability


# ---------------------------------------------------------------------------------- what is found


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_outcome_is_what_its_method_predicts_by_itself(form, data, tmp_path, monkeypatch):
    """Also where targets share a fit."""
    monkeypatch.setattr(peers, "N_TREES", 7)
    few_trees(monkeypatch)
    X, Y = form(data[0]), csr_array(data[1])
    train, test = np.arange(40), np.arange(40, 60)
    methods, targets = list(METHODS), ["f1", "precision@2"]
    if form is csr_array:
        methods = [name for name in methods if name not in ("auto", "ensemble")]
        targets = targets[:1]
    results = Study(X, Y, methods=methods, targets=targets, folds=(train, test)).run(tmp_path)
    assert [(o.method, o.target) for o in results.outcomes] == [
        (method, target) for method in methods for target in targets
    ]
    for outcome in results.outcomes:
        question = Question(get_target(outcome.target), 0, 40, form is csr_array)
        model = METHODS[outcome.method].make(question).fit(X[train], Y[train])
        expected = csr_array(model.predict(X[test])).toarray()
        np.testing.assert_array_equal(outcome.y_pred.toarray(), expected)
        losses = get_target(outcome.target).loss(expected, data[1][test])
        np.testing.assert_array_equal(outcome.losses, losses)
        # A guarantee is of the target that is decided for: not of one that is cut at 1/2 for.
        if hasattr(model, "guarantee_"):
            is_own = str(get_target(model.target)) == outcome.target
            assert (outcome.guarantee == model.guarantee_) == is_own
        if outcome.probability is not None:
            probability = model.predict_proba(X[test]).astype(np.float32)
            np.testing.assert_array_equal(outcome.probability, probability)


def test_every_outcome_says_what_is_guaranteed(whole):
    assert all(method.description.endswith(".") for method in METHODS.values())
    by_name = {(o.method, o.target): o.guarantee for o in whole[1].outcomes}
    assert by_name["binary_relevance", "hamming"].startswith("Consistent for hamming")
    assert by_name["binary_relevance", "f1"].startswith("No theorem")
    assert by_name["one_vs_rest", "f1"] == (
        "None claimed: one_vs_rest does not say what is proved of it for f1."
    )


def test_rows_are_those_held_out_fold_by_fold(data, whole):
    study, results = make(data), whole[1]
    np.testing.assert_array_equal(results.y_true.toarray(), data[1][study.rows])
    splits = StratifiedLabelSets(3, random_state=0).split(None, data[1])
    for fold, (train, test) in enumerate(splits):
        np.testing.assert_array_equal(study.rows[results.fold == fold], test)
        assert results.n_train[fold] == len(train)


def test_results_are_read_back_as_they_were(whole):
    folder, results = whole
    assert_equal(load(folder), results)
    assert summary(folder).complete
    assert (folder / "summary.txt").read_text() == "18 of 18 units are finished\n"


def test_only_the_arrays_of_the_study_are_used_and_none_is_changed(data, tmp_path):
    X, Y = data[0].copy(), data[1].copy()
    study = Study(X, Y, methods=QUICK[:1], targets=["f1"], folds=2)
    X.flags.writeable = Y.flags.writeable = False
    study.run(tmp_path)
    np.testing.assert_array_equal(X, data[0])


def test_label_names_and_forms_of_y_give_one_study(data, tmp_path):
    X, Y = data
    names = ["<b>", "red & blue", "ünï"]
    lists = [[names[label] for label in np.flatnonzero(row)] for row in Y]
    order = np.argsort(names, kind="stable")
    results = make((X, lists)).run(tmp_path / "lists")
    assert results.label_names == tuple(sorted(names))
    np.testing.assert_array_equal(
        results.y_true.toarray(), Y[make((X, Y[:, order])).rows][:, order]
    )
    given = make(data, label_names=names).run(tmp_path / "given")
    for form in (pd.DataFrame(Y, columns=names), pd.DataFrame(Y == 1, columns=names)):
        assert_equal(make((pd.DataFrame(X), form)).run(tmp_path / "given"), given)


def test_one_label_is_a_label_set_too(data, tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "N_TREES", 3)
    few_trees(monkeypatch)
    X, Y = data
    methods = {**{name: name for name in METHODS}, "own": KNeighborsClassifier(3)}
    split = (range(40), range(40, 60))
    study = Study(X, Y[:, :1], methods=methods, targets=["hamming"], folds=split)
    results = study.run(tmp_path)
    assert [outcome.method for outcome in results.outcomes] == list(methods)
    own = KNeighborsClassifier(3).fit(X[:40], Y[:40, 0])
    np.testing.assert_array_equal(results.outcomes[-1].y_pred.toarray()[:, 0], own.predict(X[40:]))
    np.testing.assert_array_equal(
        results.outcomes[-1].probability[:, 0], own.predict_proba(X[40:])[:, 1].astype(np.float32)
    )


def test_a_label_that_never_varies_in_training_is_no_obstacle(data, tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "N_TREES", 3)
    few_trees(monkeypatch)
    X, Y = data
    fixed = np.column_stack([Y[:, 0], np.ones(60, int), np.zeros(60, int)])
    methods = [name for name in METHODS if name not in ("auto", "ensemble")]
    results = Study(X, fixed, methods=methods, targets=["f1"], folds=2).run(tmp_path)
    assert [outcome.method for outcome in results.outcomes] == methods
    # (Those that pick labels predict as many in every row.)
    others = "logistic", "mean_absolute_error", "one_vs_all_normalized"
    for outcome in results.outcomes:
        if outcome.method not in others and not outcome.method.startswith("pick"):
            assert outcome.y_pred.toarray()[:, 1].all()
            assert not outcome.y_pred.toarray()[:, 2].any()


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_missing_features_are_the_mean_of_the_training_rows(form, data, tmp_path):
    X = data[0].copy()
    X[::7, 1] = np.nan
    X[:, 3] = np.nan
    train, test = np.arange(40), np.arange(40, 60)
    own = make_pipeline(SimpleImputer(keep_empty_features=True), KNeighborsClassifier())
    methods = {"one_vs_rest": "one_vs_rest", "own": own, "naive": KNeighborsClassifier()}
    study = Study(form(X), data[1], methods=methods, targets=["f1"], folds=(train, test))
    with pytest.warns(UserWarning, match="naive for f1, fold 0: ValueError: Input X contains NaN"):
        results = study.run(tmp_path)
    assert "mean" in results.question["missing features"]
    imputer = SimpleImputer(keep_empty_features=True).fit(form(X)[train])
    question = Question(get_target("f1"), 0, 40, form is csr_array)
    model = METHODS["one_vs_rest"].make(question)
    model.fit(imputer.transform(form(X)[train]), data[1][train])
    expected = model.predict(imputer.transform(form(X)[test]))
    np.testing.assert_array_equal(results.outcomes[0].y_pred.toarray(), expected)
    np.testing.assert_array_equal(
        results.outcomes[1].y_pred.toarray(),
        own.fit(form(X)[train], data[1][train]).predict(form(X)[test]),
    )


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_boosted_trees_see_missing_features_as_they_are(form, data, tmp_path, monkeypatch):
    few_trees(monkeypatch)
    X = data[0].copy()
    X[::3, 1] = np.nan
    train, test = np.arange(40), np.arange(40, 60)
    study = Study(form(X), data[1], methods=["booster"], targets=["f1"], folds=(train, test))
    results = study.run(tmp_path)
    own = SetBooster("f1", random_state=0).fit(form(X)[train], data[1][train])
    np.testing.assert_array_equal(results.outcomes[0].y_pred.toarray(), own.predict(form(X)[test]))


def test_an_own_estimator_is_cloned_seeded_and_told_its_target(data, tmp_path):
    inner = make_pipeline(SimpleImputer(), SetClassifier("subset"))
    methods = {"random": RandomForestClassifier(5), "mine": inner}
    first = make(data, methods=methods).run(tmp_path / "a")
    again = make(data, methods=methods).run(tmp_path / "b")
    assert_equal(first, again)
    assert not hasattr(inner[-1], "coef_")
    assert inner[-1].target == "subset"
    for outcome in first.outcomes[2:]:
        assert (
            repr(outcome.target) in repr(outcome.guarantee) or outcome.target in outcome.guarantee
        )


def test_what_was_warned_of_is_told_for_every_target_that_shares_the_fit(data, tmp_path):
    class Warns(Fails):
        def fit(self, X, y):
            warnings.warn("slow", stacklevel=2)
            warnings.warn("slow", stacklevel=2)
            return super().fit(X, y)

    results = make(data, methods={"warns": Warns("")}).run(tmp_path)
    for outcome in results.outcomes:
        assert [fold["warnings"] for fold in outcome.settings] == [["UserWarning: slow"]] * 3


def test_targets_without_a_name_are_judged_as_they_are(data, tmp_path):
    wrong = CountTarget(lambda tp, fp, fn, tn: (fp + fn > 1) * 1.0)
    targets = {"two wrong": wrong, "f2": FBeta(2.0)}
    results = make(data, targets=targets, methods=QUICK[:1]).run(tmp_path)
    board = leaderboard(load(tmp_path), n_bootstrap=0)
    assert board.targets == ("two wrong", "f2")
    for standing, (name, target) in zip(board, targets.items(), strict=True):
        (outcome,) = [o for o in results.outcomes if o.target == name]
        losses = target.loss(outcome.y_pred.toarray(), results.y_true.toarray())
        assert standing.value == pytest.approx(losses.mean(), abs=1e-15)


# --------------------------------------------------------------------------- interrupted, resumed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
def test_ten_kills_at_random_moments_change_nothing(tmp_path):
    """Each kill comes at a chosen number of new units and a chosen moment after it."""
    folder, chance = tmp_path / "killed", np.random.default_rng(7)

    def stored():
        file = folder / RESULTS
        lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
        return [line for line in lines if b'"finished"' in line]

    for _ in range(10):
        before = stored()
        wanted, delay = len(before) + int(chance.integers(4)), chance.uniform(0.0, 0.03)
        process = begin(slow_study.run, folder)
        wait_for(lambda wanted=wanted: len(stored()) >= wanted, process)
        time.sleep(delay)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert set(before) <= set(stored())
    assert len(stored()) < 60
    assert_equal(slow_study.run(folder), slow_study.run(tmp_path / "whole"))
    assert len(stored()) == 60
    assert [path for path in folder.rglob(".*") if path.name != ".lock"] == []
    assert_equal(load(folder), load(tmp_path / "whole"))


def test_an_interrupt_leaves_a_folder_that_goes_on(data, whole, tmp_path):
    flag = tmp_path / "flag"
    flag.touch()
    methods = {name: name for name in QUICK[:1]} | {"own": Fails(str(flag), KeyboardInterrupt)}
    with pytest.raises(KeyboardInterrupt) as caught:
        make(data, methods=methods).run(tmp_path / "study")
    assert "6 of 12 units are finished" in caught.value.__notes__[0]
    assert "run the same study" in caught.value.__notes__[0]
    partly = load(tmp_path / "study")
    assert [outcome.method for outcome in partly.outcomes] == QUICK[:1] * 2
    flag.unlink()
    rest = make(data, methods=methods).run(tmp_path / "study")
    assert_equal(rest, make(data, methods=methods).run(tmp_path / "other"))


def test_a_method_may_fail_with_any_error_and_change_the_working_directory(
    data, tmp_path, monkeypatch
):
    class Speechless(Exception):  # noqa: N818
        def __str__(self):
            raise RuntimeError

    class Moves(Fails):
        def fit(self, X, y):
            os.chdir("/")
            return super().fit(X, y)

    def colours(_):
        return ValueError("\x1b[31mred\x00\ud800\nlines" + "." * 10**6)

    monkeypatch.chdir(tmp_path)
    methods = {"speechless": Fails(__file__, lambda _: Speechless())}
    methods |= {"colours": Fails(__file__, colours), "moves": Moves("")}
    study = make(data, methods=methods, targets=["f1"], folds=(range(40), range(40, 60)))
    with pytest.warns(UserWarning, match="2 failed"):
        results = study.run("study")
    assert [outcome.method for outcome in results.outcomes] == ["moves"]
    lines = (tmp_path / "study" / "summary.txt").read_text().splitlines()
    assert lines[1].startswith("- speechless for f1, fold 0: ")
    assert lines[2].startswith("- colours for f1, fold 0: ValueError: [31mred lines...")
    assert all(line.isprintable() for line in lines)


def test_units_of_an_unfinished_outcome_are_not_in_the_results(data, whole, tmp_path):
    flag = tmp_path / "flag"
    flag.touch()
    methods = {"own": Fails(str(flag), rows=40)}
    folds = [(range(30), range(30, 40)), (range(40), range(40, 60))]
    with pytest.warns(UserWarning, match="2 of 4 units are finished, 2 failed"):
        results = make(data, methods=methods, folds=folds).run(tmp_path / "study")
    assert results.outcomes == ()
    assert "no method has finished" in str(leaderboard(results))


# ---------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize("error", [ValueError, MemoryError])
def test_a_failing_method_is_named_left_out_and_tried_again(error, data, whole, tmp_path):
    flag, folder = tmp_path / "flag", tmp_path / "study"
    flag.touch()
    methods = {"own": Fails(str(flag), error), **{name: name for name in QUICK}}
    message = f"own for f1, folds 0, 1, 2: {error.__name__}: it does not converge"
    with pytest.warns(UserWarning, match=message):
        results = make(data, methods=methods).run(folder)
    assert [_told(outcome) for outcome in results.outcomes] == [_told(o) for o in whole[1].outcomes]
    assert results.methods == ("own", *QUICK)
    assert message in (folder / "summary.txt").read_text()
    assert [unit.method for unit in summary(folder).failed] == ["own"] * 6
    flag.unlink()
    assert len(make(data, methods=methods).run(folder).outcomes) == 8
    assert summary(folder).complete
    assert not summary(folder).failed


@pytest.mark.parametrize(
    ("y_pred", "message"),
    [
        (np.full((20, 3), 2), "the predictions must hold only 0 and 1"),
        (np.zeros((20, 2), int), r"the predictions must have shape \(20, 3\), not \(20, 2\)"),
        (np.zeros(20, int), "the predictions must have shape"),
        (np.full((20, 3), np.nan), "the predictions must hold only 0 and 1"),
        (None, "the predictions must be"),
    ],
)
def test_predictions_that_are_no_label_sets_are_a_failure_that_says_so(
    y_pred, message, data, tmp_path
):
    study = make(data, methods={"says": Says(y_pred)}, targets=["f1"])
    with pytest.warns(UserWarning, match=message):
        assert study.run(tmp_path).outcomes == ()


@pytest.mark.parametrize("wrong", [np.full((20, 3), 1.5), np.full((20, 3), np.nan), np.ones(20)])
def test_probabilities_that_are_none_are_not_kept_and_told_of(wrong, data, tmp_path):
    methods = {"says": Says(np.ones((20, 3), int), wrong)}
    (outcome,) = make(data, methods=methods, targets=["f1"]).run(tmp_path).outcomes
    assert outcome.probability is None
    assert "no probabilities are kept" in outcome.settings[0]["warnings"][0]


@pytest.mark.parametrize("surrogate", ["likelihood", "logistic"])
def test_scores_that_are_no_log_probabilities_are_not_kept_as_such(surrogate, data, tmp_path):
    model = make_pipeline(SimpleImputer(), SetClassifier(surrogate=surrogate, max_iter=3))
    (outcome,) = make(data, methods={"own": model}, targets=["f1"]).run(tmp_path).outcomes
    assert (outcome.probability is None) == (surrogate == "logistic")


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed by a signal")
def test_jobs_change_nothing_and_a_killed_worker_fails_its_own_unit_only(data, whole, tmp_path):
    class Kills(Fails):
        def fit(self, X, y):
            if os.path.exists(self.file):
                os.kill(os.getpid(), signal.SIGKILL)
            return super().fit(X, y)

    flag, folder = tmp_path / "flag", tmp_path / "study"
    flag.touch()
    methods = {"kills": Kills(str(flag)), "binary_relevance": "binary_relevance"}
    split = (range(40), range(40, 60))
    study = make(data, methods=methods, targets=["f1"], folds=split)
    killed = "kills for f1, fold 0: the process .* memory runs out"
    with forked_workers(), pytest.warns(UserWarning, match=killed):
        results = study.run(folder, jobs=2)
    assert [outcome.method for outcome in results.outcomes] == ["binary_relevance"]
    flag.unlink()
    assert_equal(study.run(folder), study.run(tmp_path / "other"))


def test_what_cannot_be_sent_to_other_processes_is_refused_and_runs_in_this_one(data, tmp_path):
    from threading import Lock

    class Holds(Fails):
        def __sklearn_clone__(self):
            return self

    study = make(data, methods={"holds": Holds("", Lock())}, targets=["f1"])
    with pytest.raises(ValueError, match=r"cannot be handed to other processes .*; use jobs=1"):
        study.run(tmp_path, jobs=2)
    assert len(study.run(tmp_path).outcomes) == 1


# ---------------------------------------------------------------------------------- what is stored


@pytest.fixture(scope="module")
def small(data, tmp_path_factory):
    """A study of six units, and the lines of its file: what it is, then a unit each."""
    folder = tmp_path_factory.mktemp("small") / "study"
    results = make(data, methods=QUICK[1:2]).run(folder)
    lines = [line for line in (folder / RESULTS).read_bytes().splitlines(True) if line.strip()]
    assert len(lines) == 7
    return lines, results


def written(folder, lines):
    """A folder with these lines."""
    folder.mkdir(exist_ok=True)
    (folder / RESULTS).write_bytes(b"".join(lines))
    return folder


@pytest.mark.filterwarnings("ignore:damaged, and does not count")
def test_a_damaged_line_is_detected_or_reads_the_same(small, tmp_path):
    """A byte changed anywhere, and a file cut off anywhere; what is left is as it was."""
    lines, results = small
    generator = np.random.default_rng(0)
    for place in generator.choice(len(lines[-1]) - 1, 120, replace=False):
        changed = bytearray(lines[-1])
        changed[place] ^= int(generator.integers(1, 256))
        for last in (bytes(changed), lines[-1][:place]):
            found = load(written(tmp_path, [*lines[:-1], last])).outcomes
            assert [_told(o) for o in found] == [_told(o) for o in results.outcomes[: len(found)]]
            assert found


@pytest.mark.parametrize("how", ["empty", "cut", "text", "no unit", "pickle"])
def test_a_line_that_is_no_unit_is_named_and_done_again(how, data, small, tmp_path):
    lines, results = small
    wrong = {
        "empty": [b"{}\n"],
        "cut": [lines[1][:300] + b"\n"],
        "text": [b"PK\x03\x04 nonsense\n"],
        "no unit": [line_of({"unit": ["catalog"], "failed": ""})],
        "pickle": [
            line_of({"unit": ["catalog", "f1", 0], "finished": sprung(tmp_path / "sprung")})
        ],
    }[how]
    folder = written(tmp_path / "study", [lines[0], *wrong, *lines[2:]])
    with pytest.warns(UserWarning, match="does not count as finished: line 2 of "):
        assert len(load(folder).outcomes) == 1
    assert summary(folder).n_finished == 5
    with pytest.warns(UserWarning, match="Running the study again repeats"):
        assert_equal(make(data, methods=QUICK[1:2]).run(folder), results)
    assert_equal(load(folder), results)
    assert not (tmp_path / "sprung").exists()


def test_a_last_line_that_is_cut_is_ignored_and_its_unit_done_again(data, small, tmp_path):
    lines, results = small
    folder = written(tmp_path, [*lines[:-1], lines[-1][:-20]])
    assert (len(load(folder).outcomes), summary(folder).n_finished) == (1, 5)
    assert_equal(make(data, methods=QUICK[1:2]).run(folder), results)
    assert (folder / RESULTS).read_bytes().startswith(b"".join([*lines[:-1], b"{"]))
    assert_equal(load(folder), results)


def line_of(record):
    """A line with a checksum that is right."""
    body = json.dumps(record)
    checksum = hashlib.sha256(body.encode()).hexdigest()
    return f'{{"sha256": "{checksum}", "record": {body}}}\n'.encode()


def sprung(path):
    """An archive with a pickle in it that leaves a mark when it is read."""
    buffer = io.BytesIO()
    np.savez(buffer, np.array([Trap(str(path))], dtype=object))
    return {"$array": b64encode(buffer.getvalue()).decode()}


class Trap:
    """Unpickled, it leaves a mark."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("text", [b"", b"{", b"[1]\n", b"{}\n", b"\xff\n"])
def test_a_study_that_cannot_be_read_is_a_value_error(text, data, small, tmp_path):
    folder = written(tmp_path, [text, *small[0][1:]])
    for act in (load, summary, make(data).run):
        with pytest.raises(ValueError, match=r"cannot be read: .*damaged"):
            act(folder)


def test_no_study_is_a_value_error(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(ValueError, match=r"no study in .*: it has no results\.jsonl"):
            load(folder)


CHANGES = {
    "features": ({"X": 0.5}, r"features \(X\): another"),
    "label sets": ({"Y": 1}, r"label sets \(Y\): another"),
    "a method more": ({"methods": [*QUICK, "chain"]}, "methods: "),
    "order of methods": ({"methods": QUICK[::-1]}, "methods: "),
    "targets": ({"targets": ["f1", "subset"]}, 'targets: .*"subset"'),
    "another target of the name": (
        {"targets": {"f1": FBeta(1.0, empty=0.0), "hamming": "hamming"}}, "target 'f1': ",
    ),
    "folds": ({"folds": 4}, "folds: "),
    "seed": ({"seed": 1}, "seed: 0, now 1"),
    "label names": ({"label_names": ["a", "b", "c"]}, 'label names: .*, now \\["a", "b", "c"\\]'),
    "hierarchy": ({"taxonomy": TREE}, "hierarchy: another"),
}  # fmt: skip


@pytest.mark.parametrize(("changed", "message"), CHANGES.values(), ids=CHANGES)
def test_the_folder_of_another_study_is_refused_and_left_alone(changed, message, data, whole):
    folder = whole[0]
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    X, Y = data[0].copy(), data[1].copy()
    X[3, 1] += changed.get("X", 0)
    Y[5, 2] ^= changed.get("Y", 0)
    others = {name: value for name, value in changed.items() if name not in "XY"}
    study = make((X, Y), **others)
    with pytest.raises(ValueError, match=f"holds another study.*{message}"):
        study.run(folder)
    after = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    assert after == before


def test_another_setting_of_an_own_estimator_and_another_version_are_other_studies(
    data, tmp_path, monkeypatch
):
    def study(k, weights="uniform"):
        return make(data, methods={"own": KNeighborsClassifier(k, weights=weights)})

    study(3).run(tmp_path)
    with pytest.raises(ValueError, match="method 'own': another"):
        study(4).run(tmp_path)
    with pytest.raises(ValueError, match="method 'own': another"):
        study(3, lambda distance: distance).run(tmp_path)
    monkeypatch.setattr("setwise.__version__", "99.0")
    with pytest.raises(ValueError, match=r'setwise: ".*", now "99\.0"'):
        study(3).run(tmp_path)


def test_a_description_tells_settings_apart_and_not_objects():
    def function(cut):
        return lambda x: x > cut

    same = [(SetClassifier(space=None), SetClassifier(space=None)), (np.ones(3), np.ones(3))]
    same += [(object(), object()), (SimpleImputer(), SimpleImputer()), (function, function)]
    same += [(np.random.RandomState(1), np.random.RandomState(1)), ({1, "a"}, {"a", 1})]
    for one, other in same:
        assert json.dumps(described(one)) == json.dumps(described(other))
        assert described(json.loads(json.dumps(described(one)))) == described(one)
    different = [(np.ones(3), np.ones(4)), (1, True), (1.0, "1.0"), (lambda x: 1, lambda x: 2)]
    different += [(np.random.RandomState(1), np.random.RandomState(2)), ([1, 2], [2, 1])]
    different += [(csr_array(np.eye(2)), csr_array(np.eye(3))), (FBeta(1.0), FBeta(2.0))]
    different += [(TreeDistance([-1, 0]), TreeDistance([-1, -1])), (float("nan"), 0.0)]
    for one, other in different:
        assert json.dumps(described(one)) != json.dumps(described(other))


def test_what_killed_runs_left_is_removed_and_other_files_are_not(data, tmp_path):
    study = make(data, methods=QUICK[:1], targets=["f1"])
    study.run(tmp_path)
    leftover = tmp_path / ".results.jsonl.0.partial"
    for file in (leftover, tmp_path / "notes.txt"):
        file.write_text("half")
    study.run(tmp_path)
    assert not leftover.exists()
    assert (tmp_path / "notes.txt").read_text() == "half"


def test_a_folder_with_other_files_and_a_file_are_refused(data, tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    study = make(data)
    with pytest.raises(ValueError, match=r"not empty \(there is 'thesis.tex'\)"):
        study.run(tmp_path)
    with pytest.raises(ValueError, match="is a file"):
        study.run(tmp_path / "thesis.tex")


def test_one_run_at_a_time(data, whole):
    folder = whole[0]
    with locked(folder), pytest.raises(ValueError, match=f"process {os.getpid()}"):
        make(data).run(folder)
    assert_equal(make(data).run(folder), whole[1])


def test_names_may_be_any_that_can_be_shown(data, tmp_path):
    names = ["../up", "a/b", "a_b", "a b", "A B", "ü" * 300, ".hidden", "con"]
    methods = {name: Fails("") for name in names}
    results = make(data, methods=methods, targets=["f1"], folds=2).run(tmp_path / "study")
    assert [outcome.method for outcome in results.outcomes] == names
    assert [entry.name for entry in tmp_path.iterdir()] == ["study"]
    kept = {entry.name for entry in (tmp_path / "study").iterdir()}
    assert kept == {"results.jsonl", "summary.txt"}


# ------------------------------------------------------------------------------------ leaderboard


def test_the_leaderboard_has_the_values_of_evaluate_and_the_p_values_of_compare(whole):
    results = whole[1]
    board = leaderboard(results, n_bootstrap=300, seed=5)
    assert board.targets == tuple(TARGETS)
    settings = {"n_bootstrap": 300, "random_state": 5}
    for target in TARGETS:
        figure = f"loss: {target}"
        outcomes = {o.method: o.y_pred for o in results.outcomes if o.target == target}
        standings = {standing.method: standing for standing in board.of(target)}
        values = [standing.value for standing in standings.values()]
        assert values == sorted(values)
        best = board.of(target)[0]
        pairs = list(combinations(outcomes, 2))
        plain = [
            compare(outcomes[a], outcomes[b], results.y_true, targets=[target], **settings)[
                figure
            ].p
            for a, b in pairs
        ]
        adjusted = dict(zip(map(frozenset, pairs), holm(np.array(plain)), strict=True))
        for method, standing in standings.items():
            told = evaluate(outcomes[method], results.y_true, targets=[target], **settings)[figure]
            assert (standing.value, standing.low, standing.high) == (
                told.value, told.low, told.high,
            )  # fmt: skip
            against = compare(
                outcomes[best.method],
                outcomes[method],
                results.y_true,
                targets=[target],
                **settings,
            )[figure]
            assert standing.difference == against.value
            assert standing.difference_low == against.low
            if method == best.method:
                assert standing.p is standing.adjusted_p is None
                assert standing.is_best_or_tied
            else:
                assert standing.p == against.p
                assert standing.adjusted_p == adjusted[frozenset((best.method, method))]
                assert standing.is_best_or_tied == (standing.adjusted_p > 1.0 - 0.95)


def test_losses_are_taken_from_the_name_of_the_target_where_there_are_none(whole):
    results = whole[1]
    without = tuple(replace(outcome, losses=None) for outcome in results.outcomes)
    assert leaderboard(replace(results, outcomes=without)) == leaderboard(results)


def test_the_leaderboard_is_a_table_and_plain_data(whole):
    board = leaderboard(whole[1])
    assert json.loads(json.dumps(board.to_dict()))["standings"][0]["method"] == board[0].method
    lines = str(board).splitlines()
    assert lines[0] == "60 rows, 3 labels; 95 % intervals from 5000 resamples"
    assert len({line.index("0.") for line in lines if line[:3].strip() and line[:2] == "  "}) == 1
    assert "increase n_bootstrap" not in str(board)
    assert "increase n_bootstrap" in str(leaderboard(whole[1], n_bootstrap=20))


def test_equal_predictions_are_tied_with_and_without_resamples(whole):
    results = whole[1]
    twins = tuple(
        replace(outcome, method=name)
        for name in ("a", "b")
        for outcome in results.outcomes
        if outcome.method == "catalog"
    )
    for n_bootstrap in (0, 100):
        board = leaderboard(replace(results, outcomes=twins), n_bootstrap=n_bootstrap)
        assert all(standing.is_best_or_tied for standing in board)
        assert [standing.method for standing in board] == ["a", "b"] * 2


# --------------------------------------------------------------------------------- what is shown


def test_nothing_is_shown_where_there_is_no_terminal(data, tmp_path, capfd):
    make(data).run(tmp_path, progress=True)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_shows_units_failures_and_the_time_left(data, tmp_path, monkeypatch):
    from rich import console

    screen, plain = io.StringIO(), console.Console
    monkeypatch.setattr(
        console, "Console", lambda **_: plain(file=screen, force_terminal=True, width=300)
    )
    methods = {"[red]own": Fails(__file__), "binary_relevance": "binary_relevance"}
    with pytest.warns(UserWarning, match="6 failed"):
        make(data, methods=methods).run(tmp_path)
    shown = screen.getvalue()
    assert "failed: [red]own for f1, fold 0: ValueError: it does not converge" in shown
    assert "12/12" in shown
    assert "left: " in shown
    screen.truncate(0)
    make(data, methods=QUICK[:1]).run(tmp_path / "silent", progress=False)
    assert screen.getvalue().strip("\0") == ""


# ----------------------------------------------------------------------------------------- errors

ERRORS = {
    "X of one dimension": ({"X": np.ones(60)}, "Expected 2D array, got 1D array"),
    "X without columns": ({"X": np.ones((60, 0))}, r"Found array with 0 feature\(s\)"),
    "X of text": ({"X": np.array([["a"]] * 60)}, "could not convert string to float"),
    "X infinite": ({"X": np.full((60, 2), np.inf)}, "Input X contains infinity"),
    "X of other rows": ({"X": np.ones((59, 2))}, r"inconsistent numbers of samples: \[59, 60\]"),
    "X complex": ({"X": np.ones((60, 2)) * 1j}, "Complex data not supported"),
    "Y of classes": ({"Y": np.arange(60) % 3}, "one class for each row"),
    "Y of twos": ({"Y": np.full((60, 2), 2)}, "y must hold only 0 and 1"),
    "Y with NaN": ({"Y": np.full((60, 2), np.nan)}, "y must hold only 0 and 1"),
    "Y without labels": ({"Y": np.ones((60, 0), int)}, "at least one row and one label"),
    "two names": ({"label_names": ["a", "b"]}, "label_names must be 3 different names"),
    "equal names": ({"label_names": ["a", "b", "a"]}, "label_names must be 3 different names"),
    "no methods": ({"methods": []}, "methods must be a list of names"),
    "methods as text": ({"methods": "auto"}, "methods must be a list of names"),
    "an unknown method": ({"methods": ["magic"]}, "no method named 'magic'; known, .* are bin"),
    "a method twice": ({"methods": ["auto", "auto"]}, "each method may be there once"),
    "a known name for one's own": ({"methods": {"auto": KNeighborsClassifier()}}, "by these names"),
    "a known method renamed": ({"methods": {"mine": "auto"}}, "'auto' to be known as 'mine'"),
    "a class": ({"methods": {"mine": KNeighborsClassifier}}, "scikit-learn estimator"),
    "no estimator": ({"methods": {"mine": 3}}, "scikit-learn estimator with fit and predict"),
    "an empty name": ({"methods": {"": KNeighborsClassifier()}}, "printable text"),
    "a name of two lines": ({"methods": {"a\nb": KNeighborsClassifier()}}, "printable text"),
    "a list of estimators": ({"methods": [KNeighborsClassifier()]}, "mapping from names"),
    "no targets": ({"targets": []}, "targets must be a list"),
    "targets as text": ({"targets": "f1"}, "targets must be a list"),
    "an unknown target": ({"targets": ["f"]}, "no target named 'f'"),
    "a target twice": ({"targets": ["f1", FBeta(1.0)]}, "but of 2 there are only f1"),
    "a target of other labels": ({"targets": [TreeDistance([-1, 0])]}, "defined for 2 labels"),
    "k beyond the labels": ({"targets": ["precision@4"]}, "4"),
    "one fold": ({"folds": 1}, "folds must be a whole number of at least 2"),
    "folds as a bool": ({"folds": True}, "folds must be a whole number"),
    "more folds than rows": ({"folds": 61}, "61 folds need at least as many rows"),
    "folds as text": ({"folds": "five"}, "folds must be a number of folds, a splitter"),
    "an empty part": ({"folds": (range(0), range(60))}, "fold 0 has no row to train on"),
    "a row beyond": ({"folds": (range(50), [60])}, "out of bounds"),
    "a row twice": ({"folds": ([1, 1], [2])}, "row 1 is in fold 0 twice"),
    "a row in both": ({"folds": (range(31), range(30, 60))}, "row 30 is in fold 0 twice"),
    "a row held out twice": (
        {"folds": [([1], [2]), ([3], [2])]}, "row 2 is held out in fold 0 and in fold 1",
    ),
    "a short mask": ({"folds": (np.ones(5, bool), np.ones(60, bool))}, "boolean"),
    "a seed beyond 32 bits": ({"seed": 2**32}, "seed must be below"),
    "a seed below 0": ({"seed": -1}, "seed must be a whole number"),
    "a taxonomy of other labels": (
        {"taxonomy": Taxonomy.from_parents([-1])}, "as many labels as y_true, 3, but it has 1",
    ),
    "parents as a taxonomy": ({"taxonomy": [-1, 0, 0]}, "must be a Taxonomy, not"),
    "a taxonomy in another order": (
        {"taxonomy": NAMED, "label_names": ["b", "a", "c"]},
        "column 0 of y_true is 'b' and of taxonomy 'a'",
    ),
    "a target in another order": (
        {"targets": [TreeDistance(NAMED)], "label_names": ["b", "a", "c"]},
        "column 0 of y_true is 'b' and of taxonomy 'a'",
    ),
    "open label sets": ({"targets": [TreeDistance(NAMED)]}, "row 1 of Y has 'b' without 'a'"),
    "a question of objects": ({"question": {"data": object()}}, "question must be plain"),
    "a question of NaN": ({"question": {"share": float("nan")}}, "question must be plain"),
}  # fmt: skip


@in_turn(("changed", "message"), ERRORS.values(), ids=ERRORS)
def test_what_cannot_be_studied_is_refused_with_the_reason(changed, message, data):
    X, Y = changed.get("X", data[0]), changed.get("Y", data[1])
    others = {name: value for name, value in changed.items() if name not in "XY"}
    with pytest.raises(ValueError, match=message):
        make((X, Y), **others)


@pytest.mark.parametrize("jobs", [0, -1, 1.5, True, "2"])
def test_jobs_are_a_whole_number(jobs, data, tmp_path):
    with pytest.raises(ValueError, match="jobs must be a whole number"):
        make(data).run(tmp_path, jobs=jobs)


def test_the_question_is_kept_in_its_order(data, tmp_path):
    study = make(data, question={"command": "setwise compare x", "a": [1]}, name="x <&>")
    results = study.run(tmp_path)
    assert list(results.question)[:2] == ["command", "a"]
    assert results.question["seed"] == 0
    assert results.name == "x <&>"
    told = json.loads((tmp_path / RESULTS).read_text().splitlines()[0])["record"]
    assert results.versions["setwise"] == told["identity"]["setwise"]


def test_reading_a_folder_needs_no_more_than_the_folder(whole, tmp_path):
    """From another process, which has neither the data nor the estimators."""
    process = begin(read_study, whole[0], tmp_path / "told")
    process.join()
    assert (tmp_path / "told").read_text() == "6"


def test_a_refused_run_leaves_nothing_behind(data, whole, tmp_path, monkeypatch):
    study = make(data, methods=QUICK[:1], targets=["f1"])
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    for name in ("notes.txt", ".download.partial"):
        (foreign / name).write_text("mine")
    with pytest.raises(ValueError, match="holds no study but is not empty"):
        study.run(foreign)
    assert sorted(os.listdir(foreign)) == [".download.partial", "notes.txt"]
    other = tmp_path / "other"
    other.mkdir()
    (other / "results.jsonl").write_bytes((whole[0] / "results.jsonl").read_bytes())
    with pytest.raises(ValueError, match="holds another study"):
        study.run(other)
    assert os.listdir(other) == ["results.jsonl"]

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("setwise.study.folder.write_whole", full)
    with pytest.raises(OSError, match="No space left"):
        study.run(tmp_path / "new" / "folder")
    assert sorted(os.listdir(tmp_path)) == ["foreign", "other"]


def test_a_finished_run_leaves_no_lock_and_a_stale_one_is_no_obstacle(data, tmp_path):
    (tmp_path / ".lock").write_text("4242\n")
    make(data, methods=QUICK[:1], targets=["f1"]).run(tmp_path)
    assert not (tmp_path / ".lock").exists()


def test_the_lock_of_a_folder_is_held_by_one(tmp_path):
    """Also by a run that opened the file before another removed it."""
    from setwise.run_folder import locked

    with locked(tmp_path / "a"):
        with pytest.raises(ValueError, match="another run is at work"), locked(tmp_path / "a"):
            pass
        assert (tmp_path / "a" / ".lock").exists()
    assert not os.listdir(tmp_path)


def test_zero_division_and_row_names_are_what_the_study_is_shown_with(tmp_path):
    """A label above that is never true and never predicted; shown anew without another fit."""
    X, Y = np.arange(12.0)[:, None], np.zeros((12, 2), int)
    Y[6:, 0] = 1
    taxonomy = Taxonomy.from_parents([-1, 0])
    for zero_division in (0.0, 1.0, float("nan")):
        study = Study(
            X, Y, methods=["binary_relevance"], targets=["f1"], folds=2, taxonomy=taxonomy,
            row_names=[f"r{i}" for i in range(12)], zero_division=zero_division,
        )  # fmt: skip
        results = study.run(tmp_path, progress=False)
        np.testing.assert_array_equal(results.zero_division, zero_division)
        assert results.row_names == tuple(f"r{i}" for i in study.rows)
        (placed,) = in_hierarchy(results)
        np.testing.assert_array_equal(placed.labels.f1[1], zero_division)
        assert "Trains" in results.descriptions["binary_relevance"]
    assert load(tmp_path).row_names == results.row_names
    with pytest.raises(ValueError, match="zero_division must be 0"):
        Study(X, Y, methods=["auto"], targets=["f1"], zero_division=0.5)
    with pytest.raises(ValueError, match="row_names must be 12 names"):
        Study(X, Y, methods=["auto"], targets=["f1"], row_names=["a"])
