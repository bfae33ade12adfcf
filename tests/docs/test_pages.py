"""Every block of code of every page runs, in its order, and leaves what the page says."""

import csv
import re
from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks.extreme import section
from setwise.cli import app
from setwise.evaluation.figure import GROUPS
from setwise.study import METHODS, methods
from tests.support.pages import BLOCKS, DOCS, ROOT, blocks, walk
from tests.support.small_models import few_trees
from tests.support.turns import in_turn

# Pages with tests of their own.
APART = {"coming_from", "estimators"}
TEXTS = {path.stem: path.read_text() for path in sorted(DOCS.glob("*.md"))}
WALKED = [
    name
    for name, text in TEXTS.items()
    if name not in APART and {"python", "sh"} & {language for language, _ in BLOCKS.findall(text)}
]


def datasets(scope, printed, folder):
    assert str(scope["genes"]) == (
        "genes: 2 rows, 1 feature, 4 labels, 3.00 labels per row, 2 distinct sets; a hierarchy; "
        "missing values"
    )


def hierarchies(scope, printed, folder):
    assert str(scope["life"]) == "Taxonomy of 7 labels on 3 levels, a tree with 2 roots"


def report(scope, printed, folder):
    for name in ("report", "predictions"):
        assert (folder / f"{name}.html").read_text().startswith("<!")


def start(scope, printed, folder):
    assert "trained for macro_f1 on 225 rows" in printed[1]
    assert (folder / "study" / "report.html").exists()
    assert "Counterexample: binary relevance for f1" in printed[2]


def pytorch(scope, printed, folder):
    assert bool(np.isfinite(scope["logits"].grad.numpy()).all())
    assert len(scope["y_pred"]) == len(scope["logits"])


def command_line(scope, printed, folder):
    assert len(printed) == 13
    assert printed[-4].count("\n  loss: jaccard ") == 2
    assert "hierarchical f1" in printed[-3]
    assert re.search(r"mean tree distance [\d.]+ edges", printed[-3])
    assert "--close: 200 of 200 predictions lacked labels above theirs" in printed[-2]
    assert scope["fitted"].label_names == ["art", "law", "war"]
    assert "Counterexample: logistic for f1" in printed[-1]
    with (folder / "predictions.csv").open(newline="") as file:
        assert len(list(csv.reader(file))) == 51


def building_blocks(scope, printed, folder):
    assert scope["value"].shape == (2,)
    assert scope["gradient"].shape == (2, 3)
    assert np.isfinite(scope["gradient"]).all()
    assert scope["y_pred"].tolist() == scope["sets"].tolist() == [[1, 1, 0], [1, 1, 1]]


# What is to be seen where a page has been walked, where its own assertions say less.
LEFT = {
    check.__name__: check
    for check in (datasets, hierarchies, report, start, pytorch, command_line, building_blocks)
}


@pytest.mark.parametrize("name", WALKED)
def test_every_block_of_a_page_runs(name, tmp_path, monkeypatch):
    if name == "pytorch" and find_spec("torch") is None:
        pytest.skip("needs torch")
    few_trees(monkeypatch)
    monkeypatch.setattr(methods, "N_TREES", 10)
    if name == "start":  # "this CSV" is that of the README
        (songs,) = (own for own in blocks((ROOT / "README.md").read_text()) if "songs.csv" in own)
        walk(f"```python\n{songs}```", tmp_path)
    found = walk(TEXTS[name], tmp_path, f"docs/{name}.md")
    LEFT.get(name, lambda *_: None)(*found, tmp_path)


def test_the_checks_are_of_pages():
    assert set(LEFT) <= set(WALKED)


# Pages that are another file as it is.
INCLUDED = {"changelog", "contributing", "security"}


@in_turn("name", sorted(TEXTS.keys() - INCLUDED))
def test_a_page_has_one_title_which_comes_first(name):
    text = re.sub(r"\A---\n.*?\n---\n+", "", TEXTS[name], flags=re.DOTALL)
    headings = re.findall(r"^# .+$", BLOCKS.sub("", text), flags=re.MULTILINE)
    assert len(headings) == 1
    assert text.startswith(headings[0])


@in_turn("path", [ROOT / "README.md", *sorted(DOCS.glob("*.md"))])
def test_links_lead_somewhere(path):
    """Pages that the site makes, of examples and of names, are checked where it is made."""
    for link in re.findall(r"\]\(([^)#\s]+)", path.read_text()):
        made = link.startswith(("http", "api/", "gallery/"))
        assert made or (path.parent / link).exists(), link


def test_guides_name_every_command_method_and_group_of_figures():
    names = [*(command.callback.__name__ for command in app.registered_commands), "datasets"]
    assert [name for name in names if f"| `setwise {name}" not in TEXTS["command_line"]] == []
    assert [name for name in METHODS if f"| `{name}` |" not in TEXTS["study"]] == []
    assert [group for group in GROUPS if f"| {group} |" not in TEXTS["evaluation"]] == []


def test_the_guide_to_scaling_shows_the_stored_rows():
    assert section() in TEXTS["scaling"]
