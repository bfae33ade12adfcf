"""Which model `setwise fit` trains: asked for, or the best of the time; files predict as before."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from setwise import SetBooster, load
from setwise.cli.models import LEAST_SECONDS
from setwise.estimators import boosting
from tests.support.command import LABELS, LISTED, found, rows, run, write_listed
from tests.support.small_models import few_trees

KINDS = np.array(["red", "blue", "green"])


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    few_trees(monkeypatch)


@pytest.fixture
def mixed(tmp_path):
    """A table of numbers and categories, with gaps in both."""
    X, Y = rows(80, missing=0.1)
    kinds = np.random.default_rng(2).choice([*KINDS, ""], 80)
    lines = ["a,b,c,d,kind,tags"]
    for x, kind, y in zip(X, kinds, Y, strict=True):
        cells = ["" if np.isnan(value) else repr(float(value)) for value in x]
        lines.append(",".join([*cells, kind, ";".join(LABELS[y])]))
    path = tmp_path / "mixed.csv"
    path.write_text("\n".join(lines) + "\n")
    return path, X, kinds, Y


def test_a_booster_sees_missing_values_and_categories_as_they_are(mixed, tmp_path, capfd):
    path, X, kinds, Y = mixed
    model = tmp_path / "model.skops"
    told = found(
        capfd, "fit", path, *LISTED, "--categorical", "kind", "--model", "booster", "-o", model
    )
    assert told["chosen"]["model"] == "booster"
    assert "left missing" in told["missing_rule"]
    known = load(model).schema.features.coded["kind"].values.tolist()
    codes = [known.index(kind) if kind else np.nan for kind in kinds]
    inputs = np.column_stack([X, codes])
    own = SetBooster("f1", categorical_features=[4], random_state=0).fit(inputs, Y.astype(int))
    # In the order of the names: as in the file of labels.
    order = [load(model).label_names.index(name) for name in LABELS]
    status, out, err = run(capfd, "predict", model, path, "--format", "columns")
    assert status == 0
    assert "missing feature values left missing, as in training" in err
    predicted = np.array([line.split(",") for line in out.splitlines()[1:]], int)
    np.testing.assert_array_equal(predicted[:, order], own.predict(inputs))


@pytest.mark.parametrize("model", ["linear", "booster", "ensemble"])
def test_every_model_is_saved_predicts_and_is_evaluated(model, tmp_path, capfd):
    X, Y = rows(60)
    data = write_listed(tmp_path / "books.csv", X, Y)
    file = tmp_path / "model.skops"
    told = found(capfd, "fit", data, *LISTED, "--model", model, "--test-share", 0.3, "-o", file)
    assert told["chosen"]["model"] == model
    assert told["test"]["rows"] == 18
    fitted = load(file)
    status, out, _ = run(capfd, "predict", file, data, "--format", "probabilities")
    assert status == 0
    written = np.array([line.split(",") for line in out.splitlines()[1:]], float)
    np.testing.assert_allclose(written, fitted.probability(X), atol=1e-12)
    tested = found(capfd, "evaluate", file, data, "--resamples", 0)["n_rows"]
    whole = found(capfd, "evaluate", file, data, "--part", "all", "--resamples", 0)["n_rows"]
    assert (tested, whole) == (18, 60)


def test_with_time_alone_it_is_the_best_model_of_that_time_and_it_is_said(tmp_path, capfd):
    data = write_listed(tmp_path / "books.csv", *rows(60))
    file = tmp_path / "model.skops"
    words = ("fit", data, *LISTED, "-o", file)
    status, out, err = run(capfd, *words, "--time", 60)
    assert status == 0
    chosen = load(file).about["chosen"]
    assert chosen["model"] == "ensemble"
    assert [own["member"] for own in chosen["members"]] == ["linear", "extra trees", "booster"]
    assert sum(own["weight"] for own in chosen["members"]) == pytest.approx(1.0)
    for own in chosen["members"]:
        assert f"  {own['member']} " in out
        assert f"{own['log_loss']:.4f}" in out
    assert "training a mixture of models: 60 s are enough for 60 rows and 3 labels" in err
    _, _, err = run(capfd, *words, "--time", LEAST_SECONDS / 2)
    assert load(file).about["chosen"]["model"] == "linear"
    assert "training a linear model: for 60 rows" in err
    _, _, err = run(capfd, *words, "--time", 60, "--alpha", 0.1)
    assert load(file).about["chosen"]["model"] == "linear"
    assert "training a linear model, because of --alpha" in err
    run(capfd, *words, "--alpha", 0.1)
    assert load(file).about["chosen"]["model"] == "linear"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "forest"), "not one of 'auto', 'linear', 'booster', 'ensemble'"),
        (("--model", "booster", "--alpha", 1), "--alpha is of --model linear, not of booster"),
        (("--model", "booster", "--no-cv"), "--no-cv is of --model linear, not of booster"),
        (("--model", "ensemble", "--space", "cube"), "--space is of --model linear and booster"),
        (
            ("--model", "booster", "--space", "cube,sized"),
            "--model booster takes one --space, but there are 2",
        ),
        (("--model", "booster", "--space", "joint"), "--space joint"),
    ],
)
def test_options_of_other_models_are_refused(options, message, tmp_path, capfd):
    data = write_listed(tmp_path / "books.csv", *rows(60))
    status, out, err = run(capfd, "fit", data, *LISTED, *options, "-o", tmp_path / "model.skops")
    assert (status, out) == (2, "")
    assert message in err
    assert not (tmp_path / "model.skops").exists()


@pytest.mark.parametrize(
    "words",
    [("fit", "--model", "booster"), ("compare", "--methods", "catalog,booster")],
    ids=lambda words: words[0],
)
def test_without_xgboost_one_sentence_says_what_to_install(words, tmp_path, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    data = write_listed(tmp_path / "books.csv", *rows(60))
    command, *options = words
    status, out, err = run(capfd, command, data, *LISTED, *options, "-o", tmp_path / "out")
    assert (status, out) == (2, "")
    assert err == f"setwise: {boosting.MISSING}\n"
    assert not (tmp_path / "out").exists()


def test_a_mixture_without_xgboost_says_what_is_missing(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(sys.modules["setwise.cli.fit"], "no_trees", lambda: boosting.MISSING)
    data = write_listed(tmp_path / "books.csv", *rows(60))
    file = tmp_path / "model.skops"
    status, _, err = run(capfd, "fit", data, *LISTED, "--model", "ensemble", "-o", file)
    assert status == 0
    assert f"the mixture has no boosted trees: {boosting.MISSING}" in err


def test_compare_takes_both(tmp_path, capfd):
    data = write_listed(tmp_path / "books.csv", *rows(60, missing=0.1))
    methods = ("--methods", "catalog,booster,ensemble", "--targets", "f1", "--folds", 2)
    told = found(capfd, "compare", data, *LISTED, *methods, "-o", tmp_path / "study")
    assert not told["failed"]
    assert {row["method"] for row in told["leaderboard"]["standings"]} == {
        "catalog", "booster", "ensemble"
    }  # fmt: skip


def test_a_mixture_decides_a_file_together_however_many_rows_are_read_at_once(
    tmp_path, capfd, monkeypatch
):
    data, file = write_listed(tmp_path / "books.csv", *rows(60)), tmp_path / "model.skops"
    words = ("--model", "ensemble", "--target", "macro_f1", "--decoder", "batch", "-o", file)
    assert run(capfd, "fit", data, *LISTED, *words)[0] == 0
    whole = run(capfd, "predict", file, data)[1]
    monkeypatch.setattr(sys.modules["setwise.cli.fit"], "MOST_ENTRIES", 1)
    monkeypatch.setattr(sys.modules["setwise.cli.fit"], "LEAST_ROWS", 7)
    assert run(capfd, "predict", file, data)[1] == whole


@pytest.mark.parametrize("time", ["0", "-3", "nan"])
def test_a_time_that_is_none_is_refused_before_a_model_is_chosen(time, tmp_path, capfd):
    data = write_listed(tmp_path / "books.csv", *rows(20))
    status, out, err = run(capfd, "fit", data, *LISTED, "--time", time, "-o", tmp_path / "m.skops")
    assert (status, out) == (2, "")
    assert err == f"setwise: --time must be a positive number, but it is {float(time)}\n"
