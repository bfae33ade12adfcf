"""The site in a browser, where `make docs` has built it: alone, searchable, in both schemes."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import setwise
from setwise.estimators import named_sets
from tests.estimators.test_shown import KINDS
from tests.support.browser import FOUND, Browser

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
PAGES = (
    "index", "start", "which_measure", "coming_from", "theory", "guarantees", "gallery/index",
    "gallery/plot_01_table", "api/index", "api/setwise.SetClassifier", "command_line", "scaling",
)  # fmt: skip
# What is asked, and a page that must be among the first answers.
ASKED = {
    "macro f1": "populations|macro_micro|which_measure|Macro|start",
    "hierarchy": "hierarch",
    "BCEWithLogitsLoss": "coming_from|pytorch|network",
}
built = pytest.mark.skipif(
    not (SITE / "search.html").exists(), reason="the site is not built here: make docs"
)
browsing = pytest.mark.skipif(FOUND is None, reason="no chromium on this machine")
pytestmark = built


class Parts(HTMLParser):
    """Links, anchors and the title of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        self.links += [given[key] for key in ("href", "src") if given.get(key)]


@pytest.fixture(scope="module")
def pages():
    found = [path for path in sorted(SITE.rglob("*.html")) if "_static" not in path.parts]
    return {path: Parts(path.read_text()) for path in found}


def test_every_page_has_a_title_of_its_own_and_one_heading(pages):
    for path in pages:
        text = path.read_text()
        title = re.search(r"<title>(.*?)</title>", text, flags=re.S)
        assert title is not None, path
        assert title[1].strip(), path
        assert "<h1" in text or path.name in ("search.html", "genindex.html"), path


def test_no_link_within_the_site_is_broken(pages):
    broken = []
    for path, parts in pages.items():
        for link in parts.links:
            place, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:|//", place):
                continue
            target = (path.parent / unquote(place.partition("?")[0])).resolve() if place else path
            if not target.exists() or (
                anchor and target in pages and unquote(anchor) not in pages[target].anchors
            ):
                broken.append((path.name, link))
    assert broken == []


def test_every_public_name_has_a_page(pages):
    from tests.docs.test_reference import public

    anchors = set().union(*(parts.anchors for parts in pages.values()))
    assert [name for name, _ in public() if name not in anchors] == []


@pytest.mark.parametrize("name", KINDS)
def test_the_html_representation_of_an_estimator_leads_to_a_page(name, monkeypatch):
    monkeypatch.setattr(named_sets, "documentation", lambda: "home")
    link = getattr(setwise, name)._doc_link_template.fget(None).format(estimator_name=name)
    assert (SITE / link.removeprefix("home/")).exists()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if FOUND is None:
        pytest.skip("no chromium on this machine")
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@browsing
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_silent_asks_no_other_host_and_fits(browser, name, scheme, width):
    page = browser.open(SITE / f"{name}.html", width, 900, scheme)
    # (The theme tells on the console which scheme it took.)
    assert [said for said in page.complaints() if said.get("type") != "log"] == []
    assert [url for url in page.requests() if not url.startswith(("file:", "data:"))] == []
    assert page.run("document.documentElement.scrollWidth") <= width
    shown = page.run("document.documentElement.dataset.theme")
    assert shown == scheme


@browsing
@pytest.mark.parametrize("words", ASKED)
def test_the_search_finds(browser, words):
    page = browser.open(f"{SITE / 'search.html'}?q={words.replace(' ', '+')}")
    links = "[...document.querySelectorAll('#search-results li a')].map((link) => link.href)"
    found = page.run(
        "new Promise((done) => { const look = () => { "
        "const said = document.querySelector('.search-summary')?.innerText ?? ''; "
        f"/found/.test(said) ? done({links}) : setTimeout(look, 50); }}; look(); }})"
    )
    assert re.search(ASKED[words], " ".join(found[:8])), found[:8]


@browsing
def test_formulas_are_drawn(browser):
    page = browser.open(SITE / "theory.html")
    heights = page.run(
        "[...document.querySelectorAll('math')].map((m) => m.getBoundingClientRect().height)"
    )
    assert len(heights) >= 10
    assert min(heights) > 5
