"""Figures of pages are rendered from stored rows: none that was measured is typed by hand."""

import re

import pytest

from tests.support.pages import DOCS, ROOT

# Written by `python -m benchmarks` and `make evidence`, as a whole or between marks.
RENDERED = {"benchmarks", "evidence", "findings", "guarantees"}
MARKED = re.compile(r"<!-- begin: rows.*?<!-- end: rows[^>]*-->", re.DOTALL)
CODE = re.compile(r"^```.*?^```$|`[^`]*`", re.DOTALL | re.MULTILINE)
MEASURED = re.compile(
    r"(?<![\w.@])[\d.,]*\d ?(?:%|times|seconds|minutes|hours|ms|[Mm]icroseconds|[KMG]i?B)(?!\w)"
)
# Settings and limits of the library, which its tests hold.
SETTINGS = {
    "datasets": {"70 %", "64 MiB", "256 MiB", "200 times"},
    "evaluation": {"95 %"},
    "scaling": {"64 MB"},
}
PAGES = [ROOT / "README.md", *(p for p in sorted(DOCS.glob("*.md")) if p.stem not in RENDERED)]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_no_measured_figure_is_typed_by_hand(page):
    prose = CODE.sub("", MARKED.sub("", page.read_text()))
    assert set(MEASURED.findall(prose)) - SETTINGS.get(page.stem, set()) == set()


@pytest.mark.parametrize("said", ["takes 3.4 hours", "12 % more", "about 30 times", "0.5 GiB"])
def test_what_is_measured_is_recognised(said):
    assert MEASURED.search(said)
