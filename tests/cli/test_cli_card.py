"""`setwise card` says what the model says of itself, and `setwise doctor` what is installed."""

import json
import re
import sys
from importlib.metadata import version

import numpy as np
import pytest

import setwise
from setwise import SetClassifier
from setwise.cli.fit import load_fitted
from setwise.evaluation import evaluate, per_label
from setwise.report import card
from tests.support.command import LISTED, QUICK, found, rows, run, write_listed

HOSTILE = ["a|b", "<b>bold</b>", "`c`\n# d"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from setwise.cli import main

    place = tmp_path_factory.mktemp("card")
    write_listed(place / "books.csv", *rows())
    write_listed(place / "new.csv", *rows(40, 3))
    words = ["fit", place / "books.csv", *LISTED, *QUICK, "-o", place / "model.skops"]
    assert main([str(word) for word in words]) == 0
    return place


def cells(text, title):
    """The rows of the table below a heading, without its head."""
    part = text.split(f"## {title}")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def test_the_card_has_the_figures_that_evaluate_finds(folder, capfd):
    status, _, err = run(
        capfd, "card", folder / "model.skops", folder / "new.csv", "-o", folder / "card.md"
    )
    assert (status, err) == (0, "")
    text = (folder / "card.md").read_text()
    figures = found(capfd, "evaluate", folder / "model.skops", folder / "new.csv")["figures"]
    shown = cells(text, "Results on 40 rows not used for training")
    assert [row[0].replace("\\", "") for row in shown] == list(figures)
    for (name, figure), row in zip(figures.items(), shown, strict=True):
        assert float(row[1]) == pytest.approx(figure["value"], abs=6e-5, rel=6e-3), name
        if figure["low"] is not None:
            low, high = json.loads(row[2].replace("\\", ""))
            assert (low, high) == pytest.approx((figure["low"], figure["high"]), abs=6e-5, rel=6e-3)
    labels = cells(text, "Labels")
    assert [row[0] for row in labels] == ["art", "law", "war"]


def test_the_card_has_target_guarantee_data_and_settings(folder, capfd):
    told = found(capfd, "card", folder / "model.skops", "-o", folder / "plain.md")
    assert (told["target"], told["rows"]) == ("f1", 80)
    text = (folder / "plain.md").read_text()
    fitted = load_fitted(folder / "model.skops")
    assert text.startswith("# Model card")
    assert "judged by **F1**" in text
    proved = text.split("## What is guaranteed")[1].split("##")[0].replace("\\", "")
    first, folded = proved.split("<details>")
    rest = folded.split("</summary>")[1].split("</details>")[0]
    assert f"{first.strip()} {rest.strip()}" == fitted.guarantee
    assert ["books.csv" in cell for cell in cells(text, "Data")[0]] == [False, True]
    assert "## Figures" not in text
    assert "setwise predict model.skops" in text


def test_a_card_does_not_take_the_place_of_another_file(folder, capfd):
    status, _, err = run(capfd, "card", folder / "model.skops", "-o", folder / "books.csv")
    assert status == 2
    assert "is not a model card" in err


def test_names_from_data_stay_text():
    X, Y = rows(30)
    model = SetClassifier("f1").fit(X, Y.astype(int))
    figures = evaluate(model.predict(X), Y, n_bootstrap=20)
    text = card(model, figures, label_names=HOSTILE, data={"<i>": "x|y"}).render()
    assert "<b>" not in text
    assert "<i>" not in text
    assert "\n# d" not in text
    support = per_label(model.predict(X), Y).support
    assert [int(row[1]) for row in cells(text, "Labels")] == support.tolist()


def test_a_card_needs_no_evaluation_and_takes_a_pipeline():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, Y = rows(30)
    model = make_pipeline(StandardScaler(), SetClassifier("jaccard")).fit(X, Y.astype(int))
    assert "judged by **Jaccard**" in card(model).render()


def test_doctor_names_every_requirement_and_extra(capfd):
    told = found(capfd, "doctor")
    assert told["setwise"] == setwise.__version__
    assert told["needs"]["numpy"] == np.__version__
    assert told["needs"]["scikit-learn"] == version("scikit-learn")
    assert set(told["extras"]) >= {"dask", "torch"}
    assert not {"dev", "docs"} & set(told["extras"])
    status, out, _ = run(capfd, "doctor")
    assert status == 0
    for name in told:
        assert re.search(rf"^{name} ", out, flags=re.M), name


def test_doctor_says_what_is_missing_and_which_variables_are_set(capfd, monkeypatch):
    doctor = sys.modules["setwise.cli.doctor"]
    monkeypatch.setattr(doctor, "requirements", lambda: (["numpy"], {"odd": ["no-such-package"]}))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    told = found(capfd, "doctor")
    assert told["extras"] == {"odd": {"no-such-package": None}}
    assert (told["threads"], told["set by"]["OMP_NUM_THREADS"]) == (1, "1")
    assert "no-such-package missing" in run(capfd, "doctor")[1]
