"""A new user's walk: every command and every block of the README, word for word."""

import csv
import re
import shutil
import sysconfig

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification

from benchmarks.evidence.work import stored
from benchmarks.readme import REGRETS, RIVALS, SHOWN, rivals
from setwise import get_target, load
from tests.support.pages import BLOCKS, ROOT, in_process, shell, walk

README = (ROOT / "README.md").read_text()


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("walk")
    return folder, *walk(README, folder)


def test_the_file_becomes_a_model_predictions_and_a_report(walked):
    folder, scope, printed = walked
    (told,) = printed
    assert "songs: 300 rows, 5 features, 4 labels" in told
    assert "trained for f1 on 225 rows" in told
    assert "on 75 test rows: F1 0." in told
    assert "guarantee: Predictions are best for f1 if the learnt probabilities are right" in told
    with (folder / "predictions.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert (header, len(rows)) == (["moods"], 100)
    model = load(folder / "model.skops").model
    X = np.loadtxt(folder / "new.csv", delimiter=",", skiprows=1)
    expected = [";".join(scope["moods"][row == 1]) for row in model.predict(X)]
    assert [row[0] for row in rows] == expected
    assert (folder / "study" / "report.html").read_text().startswith("<!")


def test_the_examples_in_python_learn_something(walked):
    scope = walked[1]
    X, Y = make_multilabel_classification(500, random_state=0)
    plain = scope["RandomForestClassifier"](random_state=0).fit(X[:400], Y[:400])
    cut = 1.0 - get_target("f1").loss(plain.predict(X[400:]), Y[400:]).mean()
    for name in ("model", "forest"):
        assert scope[name].score(X[400:], Y[400:]) > cut


def test_the_readme_begins_with_what_a_user_gets_then_how():
    language, block = BLOCKS.findall(README)[0]
    assert (language, block) == ("", "pip install .\nmake demo\nmake test\n")
    parts = ["| F1 |", "mean over rows", "pip install", "```python", "setwise fit", "egret"]
    places = [README.index(part) for part in parts]
    assert places == sorted(places)


def test_names_of_targets_in_the_readme_are_known():
    rows = re.findall(r"^\| [^|]* \| (.*`\".*) \|$", README, re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`\"(.*?)\"`", row)]
    assert len(names) > 5
    for name in names:
        assert get_target(name) is not None


def test_make_demo_prints_the_table_of_the_readme_and_writes_the_report(tmp_path):
    """In a copy of the Makefile whose environment is this one, installed already."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(sysconfig.get_path("scripts"))
    (tmp_path / ".venv" / ".runtime").touch()
    assert shell("make --dry-run demo", tmp_path) == ".venv/bin/setwise demo\n"
    printed = in_process("setwise demo", tmp_path)
    assert (tmp_path / "report.html").read_text().startswith("<!")
    assert "report: report.html" in printed
    said = REGRETS.search(README)[0]
    number = re.compile(r"\d\.\d{4}")
    assert number.sub("", said) in number.sub("", printed)
    mine, theirs = ([float(x) for x in number.findall(text)] for text in (said, printed))
    assert len(theirs) == 28
    # (Other processors sum in another order, and solvers end a little apart.)
    np.testing.assert_allclose(mine, theirs, atol=2e-3)


def test_the_comparison_in_the_readme_is_that_of_the_stored_rows():
    assert RIVALS.search(README)[0] == rivals()
    methods = {row["method"] for row in stored()}
    assert set(SHOWN) <= methods
