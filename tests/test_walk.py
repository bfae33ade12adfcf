"""A new user's walk: every command and every block of the README and the guide, word for word."""

import csv
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
from contextlib import chdir, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification

from benchmarks.evidence.work import stored
from benchmarks.readme import REGRETS, RIVALS, SHOWN, rivals
from setwise import get_target, load
from setwise.cli import app, main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
COMMANDS = ROOT / "docs" / "command_line.md"
BLOCKS = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def shell(text, folder):
    """What a shell block prints; every line of it has to succeed."""
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_process(text, folder):
    """What a block prints, line by line here, so that the interpreter need not start for each."""
    printed = []
    for line in text.splitlines():
        program, *words = shlex.split(line)
        if program != "setwise" or "|" in words:
            printed.append(shell(line, folder))
            continue
        output = TextIOWrapper(BytesIO(), write_through=True)
        with chdir(folder), redirect_stdout(output):
            assert main(words) == 0, line
        printed.append(output.buffer.getvalue().decode())
    return "".join(printed)


def walk(text, folder):
    """Every block of Python and shell, one after the other: what they leave and what they print."""
    scope, printed = {}, []
    for language, block in BLOCKS.findall(text):
        if language == "python":
            with chdir(folder):
                exec(compile(block, "README.md", "exec"), scope)
        elif language == "sh":
            printed.append(in_process(block, folder))
        else:
            assert language in ("", "text"), language
    return scope, printed


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("walk")
    return folder, *walk(README, folder)


def test_the_file_becomes_a_model_predictions_and_a_report(walked):
    folder, scope, printed = walked
    (told,) = printed
    assert "songs: 300 rows, 5 features, 4 labels" in told
    assert "trained for f1 on 225 rows" in told
    assert "on 75 test rows: mean loss" in told
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
    printed = shell("make demo", tmp_path)
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


@pytest.mark.parametrize("path", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])
def test_links_lead_somewhere(path):
    """Pages that the site makes, of examples and of names, are checked where it is made."""
    for link in re.findall(r"\]\(([^)#\s]+)", path.read_text()):
        made = link.startswith(("http", "api/", "gallery/"))
        assert made or (path.parent / link).exists(), link


def test_every_block_of_the_guide_to_the_command_line_runs(tmp_path):
    scope, printed = walk(COMMANDS.read_text(), tmp_path)
    assert len(printed) == 11
    assert "hierarchical f1" in printed[-3]
    assert re.search(r"mean tree distance [\d.]+ edges", printed[-3])
    assert "--close: 200 of 200 predictions lacked labels above theirs" in printed[-2]
    assert scope["fitted"].label_names == ["art", "law", "war"]
    assert "Counterexample: logistic for f1" in printed[-1]
    with (tmp_path / "predictions.csv").open(newline="") as file:
        assert len(list(csv.reader(file))) == 51


def test_the_building_blocks_do_what_they_say(tmp_path):
    scope, _ = walk((ROOT / "docs" / "building_blocks.md").read_text(), tmp_path)
    assert scope["value"].shape == (2,)
    assert scope["gradient"].shape == (2, 3)
    assert np.isfinite(scope["gradient"]).all()
    assert scope["y_pred"].tolist() == scope["sets"].tolist() == [[1, 1, 0], [1, 1, 1]]


def test_every_command_has_its_place_in_the_guide():
    text = COMMANDS.read_text()
    names = [command.callback.__name__ for command in app.registered_commands]
    for name in [*names, "datasets"]:
        assert f"| `setwise {name}" in text
