"""A model knows the file it was trained on again, and the rows of it that were held out."""

import json
import shlex

import numpy as np
import pytest

from setwise import get_target, load
from setwise.datasets import read
from setwise.sparse import dense_rows
from setwise.study import METHODS
from setwise.study import load as load_study
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
    X, Y = rows(84, missing=0.05)
    write_listed(place / "listed.csv", X, Y)
    write_listed(place / "new.csv", *rows(40, 3))
    tags = ["art" if y[0] else "law" for y in Y]
    words = [" ".join(f"word{int(abs(v) * 9)}" for v in np.nan_to_num(x)) for x in X]
    lines = [f"{row},{text},{tag}" for row, (text, tag) in enumerate(zip(words, tags, strict=True))]
    (place / "text.csv").write_text("\n".join(["a,words,tags", *lines]))
    lines = [f"{row / 7},k{row % 3},{tag}" for row, tag in enumerate(tags)]
    (place / "kinds.csv").write_text("\n".join(["a,kind,tags", *lines]))
    lines = [f"{row % 2} 1:{row + 1} {row % 5 + 2}:0.5" for row in range(84)]
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
def test_the_file_that_was_trained_on_is_known_again(name, folder, tmp_path, capfd):
    file, model = trained(capfd, folder, name)
    renamed = tmp_path / f"renamed{file.suffix}"
    renamed.write_bytes(file.read_bytes())
    status, out, err = run(capfd, "evaluate", model, renamed, "--resamples", 0, "--json")
    told = json.loads(out)
    assert (status, told["part"], told["trained_on"], told["n_rows"]) == (0, "all", True, 84)
    assert f"{model.name} was trained on {renamed.name}" in err
    assert "--test-share" in err
    # Who asks for these rows knows what they are.
    status, out, err = run(capfd, "evaluate", model, file, "--part", "all", "--resamples", 0)
    assert (status, "--test-share" in err) == (0, False)


@pytest.mark.filterwarnings("ignore:.*only rise:UserWarning")
@pytest.mark.parametrize("name", FILES)
def test_the_rows_held_out_are_judged_again(name, folder, capfd):
    file, model = trained(capfd, folder, name, *SHARE)
    tested = load(model).about["test"]
    status, out, err = run(capfd, "evaluate", model, file, "--resamples", 0, "--json")
    told = json.loads(out)
    assert (status, told["n_rows"], told["trained_on"]) == (0, tested["rows"], False)
    assert told["figures"]["loss: f1"]["value"] == pytest.approx(tested["loss"])
    assert f"only the {tested['rows']} held-out rows of {file.name}" in err
    for part, n_rows, is_seen in (("test", 21, False), ("train", 63, True), ("all", 84, True)):
        told = found(capfd, "evaluate", model, file, "--part", part, "--resamples", 0)
        assert (told["part"], told["n_rows"], told["trained_on"]) == (part, n_rows, is_seen)


def test_a_comparison_with_the_same_share_is_on_the_rows_held_out(folder, tmp_path, capfd):
    file, model = trained(capfd, folder, "listed", *SHARE)
    words = ("--methods", "catalog", "--targets", "f1", *SHARE, "-o", tmp_path / "study")
    assert run(capfd, "compare", file, *LISTED, *words)[0] == 0
    data = read(file, label_column="tags", separator=";").split_off(seed=0, train=0.75)
    again = load(model).split_again(read(file, label_column="tags", separator=";"))
    np.testing.assert_array_equal(again.test().X, data.test().X)
    np.testing.assert_array_equal(
        load_study(tmp_path / "study").y_true.toarray(), dense_rows(data.test().Y)
    )


def test_nothing_is_said_of_other_files(folder, tmp_path, capfd):
    _, model = trained(capfd, folder, "listed")
    status, _, err = run(capfd, "evaluate", model, folder / "new.csv", "--resamples", 0)
    assert (status, err) == (0, "")
    for file, which in (("new", "rows not used"), ("listed", "rows, some or all used")):
        card = tmp_path / f"{file}.md"
        assert run(capfd, "card", model, folder / f"{file}.csv", "-o", card)[0] == 0
        assert f"{which} for training" in card.read_text()


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
        assert told["train"][target]["method"] == method
        command, *path = shlex.split(told["train"][target]["command"])[:-1]
        model = tmp_path / f"{method}.skops"
        assert command == "setwise"
        assert run(capfd, *path, model)[0] == 0
        own = METHODS[method].make(Question(judge, n_rows=84)).fit(X, data.Y)
        np.testing.assert_array_equal(load(model).model.predict(data.X), own.predict(X))


def test_what_fit_cannot_train_is_said(folder, tmp_path, capfd):
    file = folder / "listed.csv"
    words = ("--methods", "one_vs_rest_decoded,binary_relevance", "--targets", "f1", "--folds", 2)
    status, out, _ = run(capfd, "compare", file, *LISTED, *words, "-o", tmp_path / "study")
    assert status == 0
    assert "to train binary_relevance for f1 on all rows:\n  setwise fit " in out


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
    assert (status, err.strip()[-9:]) == (2, "ruth only")
