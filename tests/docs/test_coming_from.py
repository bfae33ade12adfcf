"""Old and new ways stand side by side, and both run."""

import importlib.util
import re
from functools import partial

import pytest
from sklearn import model_selection

from tests.support.pages import DOCS, blocks

ELSEWHERE = {"skmultilearn", "xcolumns", "hiclass", "torch"}
HEAD, *SECTIONS = (DOCS / "coming_from.md").read_text().split("\n## ")


def run(code, scope, name):
    exec(compile(code, name, "exec"), scope)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda text: text.splitlines()[0])
@pytest.mark.parametrize("side", ["old", "new"])
def test_old_and_new_ways_run(section, side, monkeypatch):
    # (Theirs tries a hundred thresholds for each label: what it finds is not looked at.)
    if side == "old":
        few = partial(model_selection.TunedThresholdClassifierCV, thresholds=5)
        monkeypatch.setattr(model_selection, "TunedThresholdClassifierCV", few)
    code = blocks(section)[["old", "new"].index(side)]
    needed = ELSEWHERE & set(re.findall(r"^(?:from|import) (\w+)", code, flags=re.M))
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {missing[0]}")
    scope = {}
    run(blocks(HEAD)[0], scope, "docs/coming_from.md")
    run(code, scope, "docs/coming_from.md")
    assert len(scope["y_pred"]) in (100, 300)


def test_each_section_is_a_pair_of_about_ten_lines():
    assert len(SECTIONS) == 5
    for section in SECTIONS:
        pair = blocks(section)
        assert len(pair) == 2, section.splitlines()[0]
        assert max(block.count("\n") for block in pair) <= 15
