"""A model knows the rows it was trained on again, and those that were held out for it."""

import json
import shlex

import numpy as np
import pytest
from scipy.sparse import csr_array

from setwise import get_target, load
from setwise.cli import seen_rows
from setwise.cli.seen_rows import digests, n_known, remembered
from setwise.datasets import read
from setwise.study import METHODS
from setwise.study.methods import Question
from tests.support.command import LISTED, QUICK, found, rows, run, write_listed

SHARE = ("--test-share", 0.25)
FILES = {
    "listed": ("listed.csv", LISTED),
    "text": ("text.csv", ("--label-column", "tags", "--text-columns", "words")),
    "categories": ("kinds.csv", ("--label-column", "tags", "--categorical", "kind")),
    "libsvm": ("sparse.libsvm", ()),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("seen")
    X, Y = rows(80, missing=0.05)
    write_listed(place / "listed.csv", X, Y)
    write_listed(place / "new.csv", *rows(40, 3))
    tags = ["art" if y[0] else "law" for y in Y]
    words = [" ".join(f"word{int(abs(v) * 9)}" for v in np.nan_to_num(x)) for x in X]
    lines = [f"{row},{text},{tag}" for row, (text, tag) in enumerate(zip(words, tags, strict=True))]
    (place / "text.csv").write_text("\n".join(["a,words,tags", *lines]))
    lines = [f"{row / 7},k{row % 3},{tag}" for row, tag in enumerate(tags)]
    (place / "kinds.csv").write_text("\n".join(["a,kind,tags", *lines]))
    lines = [f"{row % 2} 1:{row + 1} {row % 5 + 2}:0.5" for row in range(80)]
    (place / "sparse.libsvm").write_text("\n".join(lines))
    return place


def trained(capfd, folder, name, *words):
    """A file and a model of it."""
    file, reading = FILES[name]
    model = folder / f"{name}{len(words)}.skops"
    if not model.exists():
        command = ("fit", folder / file, *reading, *QUICK, *words, "-o", model)
        assert run(capfd, *command)[0] == 0
    return folder / file, model


@pytest.mark.filterwarnings("ignore:.*only rise:UserWarning")
@pytest.mark.parametrize("name", FILES)
def test_every_row_that_was_trained_on_is_known_again(name, folder, capfd):
    file, model = trained(capfd, folder, name)
    status, out, err = run(capfd, "evaluate", model, file, "--resamples", 0, "--json")
    assert status == 0
    assert json.loads(out)["rows_trained_on"] == 80
    assert "80 of 80 rows" in err
    assert "--test-share" in err


@pytest.mark.filterwarnings("ignore:.*only rise:UserWarning")
@pytest.mark.parametrize("name", FILES)
def test_the_rows_held_out_are_judged_again(name, folder, capfd):
    file, model = trained(capfd, folder, name, *SHARE)
    tested = load(model).about["test"]
    status, out, err = run(capfd, "evaluate", model, file, "--resamples", 0, "--json")
    told = json.loads(out)
    assert (status, told["n_rows"], told["rows_trained_on"]) == (0, tested["rows"], 0)
    assert told["figures"]["loss: f1"]["value"] == pytest.approx(tested["loss"])
    assert f"the {tested['rows']} rows that were held out" in err
    for part, n_rows, n_seen in (("test", 20, 0), ("train", 60, 60), ("all", 80, 60)):
        told = found(capfd, "evaluate", model, file, "--part", part, "--resamples", 0)
        assert (told["n_rows"], told["rows_trained_on"]) == (n_rows, n_seen)


def test_a_comparison_with_the_same_share_is_on_the_rows_held_out(folder, tmp_path, capfd):
    file, model = trained(capfd, folder, "listed", *SHARE)
    words = ("--methods", "catalog", "--targets", "f1", *SHARE)
    board = found(capfd, "compare", file, *LISTED, *words, "-o", tmp_path / "study")["leaderboard"]
    data = read(file, label_column="tags", separator=";").split_off(seed=0, train=0.75)
    assert load(model).n_seen(data.test().X) == 0
    assert load(model).n_seen(data.train().X) == 60
    assert board["n_rows"] == 20


def test_new_rows_are_new_and_some_old_ones_are_counted(folder, tmp_path, capfd):
    file, model = trained(capfd, folder, "listed")
    new, old = (folder / "new.csv").read_text(), file.read_text().splitlines()
    status, _, err = run(capfd, "evaluate", model, folder / "new.csv", "--resamples", 0)
    assert (status, err) == (0, "")
    mixed = tmp_path / "mixed.csv"
    mixed.write_text(new + "\n".join(old[5:17]))
    page, card = tmp_path / "page.html", tmp_path / "card.md"
    told = found(capfd, "evaluate", model, mixed, "--resamples", 0, "--report", page)
    assert told["rows_trained_on"] == 12
    assert "12 of its rows used for training" in page.read_text()
    assert run(capfd, "card", model, mixed, "-o", card)[0] == 0
    assert "Results on 52 rows, 12 of them used for training" in card.read_text()


def test_blocks_are_known_again_in_the_file_they_come_from(folder, tmp_path, capfd):
    file, blocks, model = folder / "listed.csv", tmp_path / "blocks", tmp_path / "model.skops"
    assert run(capfd, "convert", file, *LISTED, "--rows", 30, "-o", blocks)[0] == 0
    assert run(capfd, "fit", blocks, *QUICK, "-o", model)[0] == 0
    assert found(capfd, "evaluate", model, file, "--resamples", 0)["rows_trained_on"] == 80


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_few_digests_stand_for_many_rows(form, monkeypatch):
    X = np.random.default_rng(0).integers(5, size=(4000, 6)).astype(np.float64)
    X[:, 0] = np.arange(4000)
    old, new, half = form(X[:2000]), form(X[2000:]), form(X[1000:3000])
    assert len(set(digests(form(X)).tolist())) == 4000
    parts = [form(X[first : first + 400]) for first in range(0, 2000, 400)]
    monkeypatch.setattr(seen_rows, "MOST_DIGESTS", 500)
    kept = remembered([form(X[:1700]), form(X[1500:2000])])
    np.testing.assert_array_equal(kept, remembered(parts))
    assert len(kept) == 500
    assert (n_known(old, kept), n_known(new, kept)) == (2000, 0)
    assert n_known(half, kept) == pytest.approx(1000, abs=150)


# --------------------------------------------------------------- what a comparison leads to


@pytest.mark.parametrize("target", ["f1", "precision@1", "macro_f1"])
def test_the_command_that_compare_prints_trains_that_method(target, folder, tmp_path, capfd):
    file, reading = folder / "listed.csv", ("--label-column", "tags", "--separator", ";")
    judge, data = get_target(target), read(file, label_column="tags", separator=";")
    X = np.where(np.isnan(data.X), np.nanmean(data.X, axis=0), data.X)
    for method in ("binary_relevance", "logistic", "mean_absolute_error", "catalog", "metro"):
        if not METHODS[method].serves(judge):
            continue
        words = ("--methods", method, "--targets", target, *SHARE)
        told = found(capfd, "compare", file, *reading, *words, "-o", tmp_path / method)
        if (target, method) == ("macro_f1", "binary_relevance"):
            assert told["train"] == {}
            continue
        command, *path = shlex.split(told["train"][target])[:-1]
        model = tmp_path / f"{method}.skops"
        assert command == "setwise"
        assert run(capfd, *path, model)[0] == 0
        own = METHODS[method].make(Question(judge, n_rows=80)).fit(X, data.Y)
        np.testing.assert_array_equal(load(model).model.predict(data.X), own.predict(X))


def test_what_fit_cannot_train_is_said(folder, tmp_path, capfd):
    file = folder / "listed.csv"
    words = ("--methods", "one_vs_rest_decoded,binary_relevance", "--targets", "f1", "--folds", 2)
    status, out, _ = run(capfd, "compare", file, *LISTED, *words, "-o", tmp_path / "study")
    assert status == 0
    assert "to train the best on all rows:" in out
    assert "# binary_relevance; one_vs_rest_decoded, the best, is for Python" in out
    assert "setwise fit" in (tmp_path / "study" / "report.html").read_text()


# ------------------------------------------------------------------- predictions and truth


@pytest.mark.parametrize(
    ("truth", "reading", "complaint"),
    [
        ("1.5,art\n2.5,law\n", LISTED, "does the file begin with data?"),
        ("0,0,1\n1,0,1\n", ("--labels", "art,law,war"), "does the file begin with data?"),
        ("art,law\n1,0\n0,1\n", LISTED, "`setwise predict` writes one column that lists"),
        ("a,topics\n1.5,art\n", LISTED, "both files must have the label columns"),
    ],
)
def test_a_truth_without_the_labels_is_told_what_it_lacks(
    truth, reading, complaint, tmp_path, capfd
):
    (tmp_path / "truth.csv").write_text(truth)
    (tmp_path / "own.csv").write_text("tags,art,law,war\nart,1,0,0\nlaw,0,1,0\n")
    files = ("--predictions", tmp_path / "own.csv", "--truth", tmp_path / "truth.csv")
    status, _, err = run(capfd, "evaluate", *files, *reading)
    assert status == 2
    assert err.startswith("setwise: truth.csv, line 1: ")
    assert complaint in err
    status, _, err = run(capfd, "evaluate", *files[2:])
    assert (status, err.strip()[-11:]) == (2, "has --truth")
