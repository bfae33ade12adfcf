"""`setwise compare` is the study of Python: its leaderboard, its report, its failures."""

import json
from dataclasses import replace

import pytest

from setwise import get_target
from setwise.cli.compare import FOR_ALL_ROWS, USUAL, _methods
from setwise.datasets import read
from setwise.study import METHODS, Study, leaderboard, load
from tests.support.command import LISTED, found, rows, run, write_listed

ASKED = ("--methods", "binary_relevance,catalog", "--targets", "f1,subset", "--folds", 2)


@pytest.fixture
def books(tmp_path):
    return write_listed(tmp_path / "books.csv", *rows(60, missing=0.05))


def test_it_is_the_study_of_python(books, tmp_path, capfd):
    told = found(capfd, "compare", books, *LISTED, *ASKED, "--seed", 3, "-o", tmp_path / "here")
    data = read(books, label_column="tags", separator=";")
    study = Study(
        data.X,
        data.Y,
        methods=["binary_relevance", "catalog"],
        targets=["f1", "subset"],
        folds=2,
        seed=3,
        label_names=data.label_names.tolist(),
    )
    results = study.run(tmp_path / "there")
    expected = leaderboard(results).to_dict()["standings"]
    mine = told["leaderboard"]["standings"]
    assert [line["method"] for line in mine] == [line["method"] for line in expected]
    assert [line["value"] for line in mine] == [line["value"] for line in expected]
    assert (told["units"], told["finished"], told["failed"]) == (8, 8, {})
    kept = load(tmp_path / "here")
    assert kept.question["command"].startswith("setwise compare ")
    assert "--separator ';'" in kept.question["command"]


def test_a_second_run_finds_everything_done(books, tmp_path, capfd):
    words = ("compare", books, *LISTED, *ASKED, "-o", tmp_path / "study")
    first = found(capfd, *words)
    file = tmp_path / "study" / "results.jsonl"
    before = file.read_bytes()
    page = tmp_path / "elsewhere.html"
    assert found(capfd, *words, "--report", page) == {**first, "report": str(page)}
    stored = [json.loads(line)["record"] for line in file.read_bytes().splitlines() if line]
    assert file.read_bytes().startswith(before)
    assert len([record for record in stored if "unit" in record]) == 8
    assert page.exists()


def test_the_split_of_the_file_is_used_unless_folds_are_asked_for(books, tmp_path, capfd):
    words = ("compare", books, *LISTED, *ASKED[:4], "--test-share", 0.25)
    assert found(capfd, *words, "-o", tmp_path / "one")["leaderboard"]["n_rows"] == 15
    study = load(tmp_path / "one")
    assert study.n_train == (45,)
    told = found(capfd, *words, "--folds", 3, "-o", tmp_path / "three")
    assert told["leaderboard"]["n_rows"] == 60


def test_methods_that_are_for_the_targets_are_compared():
    of_rows, both = [get_target("f1")], [get_target("f1"), get_target("macro_f1")]
    assert tuple(_methods(None, of_rows)) == USUAL
    assert tuple(_methods(None, both)) == FOR_ALL_ROWS
    assert _methods("all", of_rows) == list(METHODS)
    assert set(METHODS) - set(_methods("all", both)) == {"logistic", "mean_absolute_error"}


def test_methods_that_were_not_tried_are_named(books, tmp_path, capfd):
    words = ("compare", books, *LISTED, "--targets", "macro_f1", "--folds", 2)
    words += ("--methods", "binary_relevance", "-o", tmp_path / "study")
    status, out, _ = run(capfd, *words)
    (said,) = [line for line in out.splitlines() if line.startswith("not tried: ")]
    others = _methods("all", [get_target("macro_f1")])
    others.remove("binary_relevance")
    assert status == 0
    assert said == f"not tried: {', '.join(others)} (--methods tries them)"


def test_a_method_of_rows_is_refused_for_measures_of_all_rows(books, tmp_path, capfd):
    words = ("compare", books, *LISTED, "--targets", "macro_f1", "--methods", "catalog,logistic")
    status, _, err = run(capfd, *words, "-o", tmp_path / "study")
    assert status == 2
    assert "logistic is trained on losses of rows, but macro_f1 judges all rows together" in err
    assert not (tmp_path / "study").exists()


def test_a_method_that_fails_is_named_and_the_others_are_reported(
    books, tmp_path, capfd, monkeypatch
):
    def fail(question):
        raise ArithmeticError("no luck today")

    monkeypatch.setitem(METHODS, "catalog", replace(METHODS["catalog"], make=fail))
    words = ("compare", books, *LISTED, *ASKED, "-o", tmp_path / "study")
    status, out, err = run(capfd, *words)
    assert status == 1
    assert "binary_relevance" in out
    assert err.startswith("setwise: warning: 4 of 8 units are finished, 4 failed")
    assert "- catalog for f1, folds 0, 1: ArithmeticError: no luck today" in err
    assert err.count("\n") == 1
    assert (tmp_path / "study" / "report.html").exists()
