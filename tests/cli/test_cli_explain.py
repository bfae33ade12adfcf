"""`setwise explain` and the report of `setwise evaluate`: why a row has its labels."""

from importlib import import_module

import numpy as np
import pytest

from setwise import explain, load
from setwise.cli import main
from setwise.estimators.explaining import UnexplainableError
from tests.support.command import LISTED, found, rows, run, write_listed
from tests.support.small_models import few_trees


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A table, and models of it by kind, each trained once; numbers, categories and gaps."""
    folder = tmp_path_factory.mktemp("explained")
    X, Y = rows(60, missing=0.05)
    plain = write_listed(folder / "plain.csv", X, Y).read_text().splitlines()
    kinds = np.random.default_rng(0).choice(["red", "blue", "green"], 60)
    lines = [f"kind,{plain[0]}", *(f"{k},{line}" for k, line in zip(kinds, plain[1:], strict=True))]
    data = folder / "books.csv"
    data.write_text("\n".join(lines) + "\n")

    models = {kind: folder / f"{kind}.skops" for kind in ("linear", "booster", "ensemble")}
    with pytest.MonkeyPatch.context() as patch:
        few_trees(patch)
        for kind, model in models.items():
            options = (*LISTED, "--categorical", "kind", "--model", kind, "-o", model)
            assert main(["fit", str(data), *map(str, options)]) == 0
    return {kind: (data, model, kinds) for kind, model in models.items()}


@pytest.mark.parametrize("kind", ["linear", "booster", "ensemble"])
def test_what_is_printed_is_the_explanation_of_the_row(kind, fitted, capfd):
    data, file, kinds = fitted[kind]
    told = found(capfd, "explain", file, data, "--row", "3,0", "--labels", "law,art")["rows"]
    model = load(file)
    inputs = model.schema.read(data, labels=False).X[[3, 0]]
    labels = [model.label_names.index(name) for name in ("law", "art")]
    expected = explain(model.model, inputs, labels=labels, background=model.mean_row)
    assert [row["row"] for row in told] == [3, 0]
    for row, own in zip(told, expected, strict=True):
        assert [label["label"] for label in row["labels"]] == ["law", "art"]
        for place, label in enumerate(row["labels"]):
            added = [feature["added"] for feature in label["features"]]
            assert sum(added) == pytest.approx(own.contributions[place].sum(), abs=1e-9)
            assert label["log_odds"] - label["base"] == pytest.approx(sum(added), abs=1e-6)
            assert added == sorted(added, key=abs, reverse=True)
    names = {feature["feature"] for feature in told[0]["labels"][0]["features"]}
    values = {one["feature"]: one["value"] for one in told[0]["labels"][0]["features"]}
    if kind == "booster":
        assert names <= {"kind", "a", "b", "c", "d"}
        assert values.get("kind", kinds[3]) == kinds[3]
    else:
        assert names <= {"kind=red", "kind=blue", "kind=green", "a", "b", "c", "d"}


def test_a_picture_is_written_and_only_a_picture_is_replaced(fitted, tmp_path, capfd):
    data, file, _ = fitted["linear"]
    picture = tmp_path / "why.svg"
    for _ in range(2):
        status, out, err = run(capfd, "explain", file, data, "--row", "1", "-o", picture)
        assert status == 0
        assert "row 1\n" in out
        assert err == f"wrote {picture}\n"
    assert picture.read_text().startswith("<svg xmlns=")
    status, _, err = run(capfd, "explain", file, data, "-o", data)
    assert status == 2
    assert "is read, and would be lost" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--row", "x"), "--row must be numbers of rows from 0"),
        (("--row", "-1"), "--row must be numbers of rows from 0"),
        (("--row", "60"), "has 60 rows, of which the last is 59: there is no row 60"),
        (("--labels", "lav"), "there is no label 'lav'"),
        (("--row", "0,1", "-o", "why.svg"), "--output is a picture of one --row"),
        (("-o", "why.png"), "--output is a picture as SVG, so its name ends in .svg, not in .png"),
    ],
)
def test_what_cannot_be_explained_is_said(options, message, fitted, capfd, monkeypatch, tmp_path):
    data, file, _ = fitted["linear"]
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capfd, "explain", file, data, *options)
    assert (status, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("kind", ["linear", "ensemble"])
def test_evaluate_writes_a_page_of_all_of_it(kind, fitted, tmp_path, capfd):
    data, file, _ = fitted[kind]
    page = tmp_path / "page.html"
    options = ("--report", page, "--resamples", 20)
    assert found(capfd, "evaluate", file, data, *options)["report"] == str(page)
    text = page.read_text()
    assert '<section id="explained"' in text
    assert "Which features matter most" in text
    assert ('<section id="mixture"' in text) == (kind == "ensemble")
    run(capfd, "predict", file, data, "-o", tmp_path / "own.csv")
    words = ("--predictions", tmp_path / "own.csv", "--truth", data, *LISTED, "--report", page)
    assert run(capfd, "evaluate", *words, "--resamples", 20)[0] == 0
    assert '<section id="explained"' not in page.read_text()


def test_a_row_is_explained_with_those_that_are_predicted_together(fitted, tmp_path, capfd):
    data, _, _ = fitted["linear"]
    file = tmp_path / "batch.skops"
    words = (*LISTED, "--categorical", "kind", "--target", "macro_f1", "--decoder", "batch")
    assert run(capfd, "fit", data, *words, "--no-cv", "-o", file)[0] == 0
    model = load(file)
    sets = model.model.predict(model.schema.read(data, labels=False).X)
    (row,) = found(capfd, "explain", file, data, "--row", 5, "--labels", "art,law,war")["rows"]
    told = {label["label"]: label["predicted"] for label in row["labels"]}
    assert [told[name] for name in model.label_names] == (sets[5] == 1).tolist()
    assert run(capfd, "evaluate", file, data, "--report", tmp_path / "p.html")[0] == 0


def test_a_model_that_goes_by_no_feature_has_a_page_too(tmp_path, capfd):
    data = tmp_path / "books.csv"
    data.write_text("a,tags\n" + "1,art\n1,law\n1,art;law\n" * 8)
    file = tmp_path / "model.skops"
    assert run(capfd, "fit", data, *LISTED, "--no-cv", "-o", file)[0] == 0
    words = ("--resamples", 0, "--report", tmp_path / "page.html")
    status, _, err = run(capfd, "evaluate", file, data, *words)
    assert status == 0
    assert err.startswith("setwise: warning: model.skops was trained on books.csv")
    assert len(err.splitlines()) == 1


def test_a_report_leaves_out_only_what_cannot_be_explained(fitted, tmp_path, capfd, monkeypatch):
    data, file, _ = fitted["linear"]
    page = tmp_path / "page.html"

    def failing(error):
        def explained(*_, **__):
            raise error

        return explained

    command = import_module("setwise.cli.explain")
    monkeypatch.setattr(command, "explained", failing(UnexplainableError("no parts")))
    assert run(capfd, "evaluate", file, data, "--report", page)[0] == 0
    monkeypatch.setattr(command, "explained", failing(ValueError("something else")))
    status, _, err = run(capfd, "evaluate", file, data, "--report", page)
    assert status == 2
    assert "something else" in err
