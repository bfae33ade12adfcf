"""How the search of `setwise fit` runs: in time, interrupted, told of, and within memory."""

from __future__ import annotations

import json

import pytest

from setwise import load
from setwise.cli import main
from setwise.estimators import cost, running
from tests.estimators.test_search import interrupted
from tests.support.command import LISTED, rows, write_listed


@pytest.fixture
def fit(tmp_path, capsys):
    """`setwise fit` of a small file with these options: status, printed, said on the way."""
    write_listed(tmp_path / "books.csv", *rows(60))

    def run(*options):
        words = ("fit", tmp_path / "books.csv", *LISTED, *options, "-o", tmp_path / "model.skops")
        status = main([str(word) for word in words])
        return status, *capsys.readouterr()

    run.model = tmp_path / "model.skops"
    return run


def test_a_fit_whose_time_is_up_writes_the_best_model_so_far_and_says_so(fit):
    status, printed, said = fit("--time", "1e-6", "--json")
    assert status == 0
    assert json.loads(printed)["stopped"] == "time_budget"
    assert (
        "setwise: warning: training ended before all was tried, since too little time was left"
        in said
    )
    assert load(fit.model).about["stopped"] == "time_budget"
    assert "the search stopped early because too little time was left" in fit("--time", "1e-6")[1]


def test_an_interrupted_fit_writes_the_best_model_so_far(fit, monkeypatch):
    interrupted(monkeypatch, {25})
    status, printed, said = fit("--folds", 3)
    assert status == 130
    assert "the search stopped early because it was interrupted" in printed
    assert "it was interrupted: the model is the best of" in said
    # At once, so that nobody presses it again for want of an answer.
    assert "s: interrupted: the best model so far is trained on all rows; a second" in said
    assert load(fit.model).about["stopped"] == "interrupt"


@pytest.mark.parametrize("steps", [{1}, {25, 26}])
def test_interrupted_twice_or_before_anything_was_tried_it_writes_nothing(fit, monkeypatch, steps):
    interrupted(monkeypatch, steps)
    status, printed, said = fit("--folds", 3)
    assert (status, printed) == (130, "")
    assert said.endswith("setwise: interrupted\n")
    assert not fit.model.exists()


def test_progress_is_told_off_a_terminal(fit, monkeypatch):
    monkeypatch.setattr(running, "BETWEEN_LINES", 0.0)
    status, _, said = fit("--folds", 3, "--alpha", "0.1")
    assert status == 0
    assert "s: fold 1 of 3, catalog, alpha 0.1\n" in said
    assert "s left\n" in said


def test_scalings_and_threads_are_those_asked_for(fit):
    status, printed, _ = fit("--scaling", "none,rows", "--alpha", "0.1", "--jobs", 1, "--json")
    assert status == 0
    assert json.loads(printed)["chosen"]["scaling"] in (None, "rows")
    classifier = load(fit.model).model[-1]
    assert classifier.n_jobs == 1
    assert {row["scaling"] for row in classifier.cv_results_} == {None, "rows"}
    for units, kept in (("none", None), ("rows", "rows"), ("auto", "standard")):
        status, printed, _ = fit("--no-cv", "--scaling", units, "--json")
        assert json.loads(printed)["chosen"]["scaling"] == kept


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--no-cv", "--time", 3), "--time is for cross-validation, which --no-cv switches off"),
        (("--time", -1), "--time must be a positive number"),
        (("--jobs", 0), "Invalid value for '--jobs': Input should be greater than"),
        (("--scaling", "max"), "--scaling must be of auto, none, standard, rows"),
        (("--no-cv", "--scaling", "none,rows"), "--no-cv takes one --scaling, but there are 2"),
    ],
)
def test_wrong_options_are_named(fit, options, message):
    status, printed, said = fit(*options)
    assert (status, printed) == (2, "")
    assert message in said


@pytest.mark.parametrize("how", [(), ("--no-cv",)])
def test_what_does_not_fit_into_memory_is_not_begun_and_it_is_said(fit, monkeypatch, how):
    monkeypatch.setattr(cost, "memory", lambda: 1000)
    status, printed, said = fit(*how)
    assert status == 0
    assert "binary_relevance on" in printed
    assert "note: a model of all 3 labels together, by" in printed
    assert "setwise: warning: a model of all 3 labels together, by" in said
