"""The report in a browser: silent, alone, sortable, searchable, in both schemes and on paper."""

from dataclasses import replace

import numpy as np
import pytest

from setwise.evaluation import evaluate, per_label
from setwise.report import write
from tests.support import studies
from tests.support.browser import FOUND, Browser

pytestmark = pytest.mark.skipif(
    FOUND is None, reason="no chromium on this machine: the report is not tried in a browser"
)
SCRIPT = "<script>alert(1)</script>"
ROWS = "[...document.querySelectorAll('#label-table tbody tr')]"
COLUMNS = {"label": 0, "support": 1, "predicted": 2, "precision": 3, "recall": 4, "f1": 5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    write(studies.study(), folder / "study.html")
    names = [SCRIPT, "</script><img src=x onerror=alert(2)>", "<!--", *studies.LABELS[3:]]
    methods = ["<b>bold</b>", '"><script>alert(3)</script>', "'", "{{1}}", "&amp;"]
    evil = studies.renamed(studies.study(), names, methods)
    write(replace(evil, name="<script>alert(4)</script>"), folder / "evil.html")
    write(studies.wide(2000, 30, 2), folder / "wide.html")
    long = [f"{name} that goes on and on and on and on and on" for name in studies.LABELS]
    write(studies.renamed(studies.study(), long, methods), folder / "long.html")
    results = studies.study()
    evaluations = {
        outcome.method: evaluate(
            outcome.y_pred, results.y_true, probability=outcome.probability,
            taxonomy=results.taxonomy, n_bootstrap=50,
        )
        for outcome in results.outcomes if outcome.target == "f1"
    }  # fmt: skip
    write(evaluations, folder / "evaluated.html")
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def page(browser, folder):
    return browser.open(folder / "study.html")


@pytest.fixture(scope="module")
def visit(browser, folder):
    """One page after the other in the same tab: a new one takes longer than to load a page."""
    tabs = []

    def visit(name, *wishes):
        if tabs:
            tabs[0].load(folder / name, *wishes)
        else:
            tabs.append(browser.open(folder / name, *wishes))
        return tabs[0]

    return visit


def column(page, key):
    place = COLUMNS[key]
    return page.run(f"{ROWS}.map((row) => row.cells[{place}].textContent)")


def click(page, key):
    page.run(f"document.querySelector('#label-table [data-key={key}] button').click()")


def sorted_by(page):
    heads = "document.querySelectorAll('#label-table th[data-key]')"
    pairs = page.run(f"[...{heads}].map((head) => [head.dataset.key, head.ariaSort])")
    return [pair for pair in pairs if pair[1] != "none"]


def search(page, text):
    page.run(
        "(() => { const box = document.getElementById('label-search'); "
        f"box.value = {text!r}; box.dispatchEvent(new Event('input')); }})()"
    )


def choose(page, box, value):
    page.run(
        f"(() => {{ const box = document.getElementById('{box}'); box.value = '{value}'; "
        "box.dispatchEvent(new Event('change', { bubbles: true })); })()"
    )


@pytest.mark.parametrize("name", ["study", "evil", "wide", "long", "evaluated"])
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_the_page_is_silent_asks_for_nothing_and_fits(visit, folder, name, scheme, width):
    page = visit(f"{name}.html", width, 900, scheme)
    assert page.complaints() == []
    assert page.requests() == [f"file://{folder / f'{name}.html'}"]
    assert page.seen("Page.javascriptDialogOpening") == []
    assert page.run("document.documentElement.scrollWidth") <= width


def test_headings_sort_by_click_and_by_key(page):
    results = studies.study()
    best = next(o for o in results.outcomes if (o.method, o.target) == ("catalog", "f1"))
    figures = per_label(best.y_pred, results.y_true)
    choose(page, "label-target", 0)
    choose(page, "label-method", results.methods.index("catalog"))
    click(page, "f1")
    order = np.argsort(-figures.f1, kind="stable")
    assert sorted_by(page) == [["f1", "descending"]]
    assert column(page, "label") == [results.label_names[i] for i in order]
    assert column(page, "f1") == [f"{figures.f1[i]:.3f}".removeprefix("0") for i in order]
    page.run("document.querySelector('#label-table [data-key=f1] button').focus()")
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter",
                  text="\r" if kind == "keyDown" else "", windowsVirtualKeyCode=13)  # fmt: skip
    assert sorted_by(page) == [["f1", "ascending"]]
    assert column(page, "label") == [results.label_names[i] for i in order[::-1]]
    click(page, "label")
    assert column(page, "label") == sorted(results.label_names)


def test_search_leaves_the_labels_that_hold_the_text(page):
    search(page, " IC ")
    wanted = sorted(name for name in studies.LABELS if "ic" in name.lower())
    assert sorted(column(page, "label")) == wanted
    search(page, "no such label")
    assert column(page, "label") == []
    assert "No label" in page.run("document.getElementById('label-where').textContent")
    search(page, "")
    assert len(column(page, "label")) == len(studies.LABELS)


def test_another_method_and_target_show_their_own_figures(page):
    results = studies.study()
    click(page, "label")
    for outcome in results.outcomes[::4]:
        choose(page, "label-target", results.targets.index(outcome.target))
        choose(page, "label-method", results.methods.index(outcome.method))
        figures = per_label(outcome.y_pred, results.y_true)
        shown = dict(zip(column(page, "label"), column(page, "predicted"), strict=True))
        assert shown == dict(
            zip(results.label_names, map(str, figures.predicted.tolist()), strict=True)
        )


def test_names_that_look_like_markup_stay_text(visit):
    page = visit("evil.html")
    assert SCRIPT in column(page, "label")
    assert page.run("document.scripts.length") == 2
    assert page.run("document.images.length") == 0
    assert page.run("document.querySelectorAll('b').length") == 0
    assert page.run("document.querySelector('h1').textContent") == "<script>alert(4)</script>"
    assert page.run("document.title").startswith("\u2068<script>")
    assert page.seen("Page.javascriptDialogOpening") == []


def test_the_policy_refuses_other_scripts_and_all_requests(visit):
    page = visit("study.html")
    refused = page.run(
        "(async () => { const script = document.createElement('script'); "
        "script.textContent = 'window.intruder = 1'; document.body.append(script); "
        "try { await fetch('http://127.0.0.1:9/'); } "
        "catch { return window.intruder === undefined; } return false; })()"
    )
    assert refused
    blocked = [e["entry"]["text"] for e in page.complaints() if "entry" in e]
    assert any("Content Security Policy" in text for text in blocked)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_button_turns_the_colours_over(visit, scheme):
    page = visit("study.html", 1280, 900, scheme)
    page.run("localStorage.clear()")
    page.run("delete document.documentElement.dataset.scheme")
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.run(ground)
    assert (before == "rgb(255, 255, 255)") == (scheme == "light")
    page.run("document.getElementById('scheme').click()")
    assert (page.run(ground) == "rgb(255, 255, 255)") == (scheme == "dark")
    page.run("document.getElementById('scheme').click()")
    assert page.run(ground) == before
    page.run("localStorage.clear()")


def test_thousands_of_labels_are_sorted_at_once(visit):
    page = visit("wide.html")
    assert len(column(page, "label")) == 25
    took = page.run(
        "(() => { const start = performance.now(); "
        "document.querySelector('#label-table [data-key=precision] button').click(); "
        "return performance.now() - start; })()"
    )
    assert took < 1000
    page.run("document.getElementById('label-on').click()")
    where = page.run("document.getElementById('label-where').textContent")
    assert where == "26 to 50 of 2,000"


def test_the_curves_of_a_chosen_label_are_drawn(page):
    drawn = "document.querySelectorAll('#label-curves path').length"
    assert page.run(drawn) == 4
    before = page.run("document.querySelector('#label-curves path').getAttribute('d')")
    choose(page, "curve-label", 5)
    assert page.run("document.querySelector('#label-curves path').getAttribute('d')") != before
    assert "Average precision" in page.run("document.getElementById('curve-note').textContent")


@pytest.mark.parametrize("width", [1280, 390])
def test_long_names_leave_the_words_beside_them_on_one_line(visit, width):
    page = visit("long.html", width, 900)
    place = "document.getElementById('curve-label').parentElement"
    assert page.run(f"{place}.offsetHeight") <= 48
    caption = "document.querySelector('#label-figure figcaption')"
    assert page.run(f"{place}.getBoundingClientRect().right") <= page.run(
        f"{caption}.getBoundingClientRect().right"
    )


def test_targets_are_chosen_by_radio_buttons_and_all_are_printed(visit):
    shown = "[...document.querySelectorAll('#sizes .panel')].map((p) => p.offsetHeight > 0)"
    page = visit("study.html")
    assert page.run(shown) == [True, False, False]
    page.run("document.querySelectorAll('#sizes input')[2].click()")
    assert page.run(shown) == [False, False, True]
    page.call("Emulation.setEmulatedMedia", media="print")
    assert page.run(shown) == [True, True, True]
    assert page.run("document.querySelector('nav').offsetHeight") == 0
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_it_prints_in_light_colours_also_for_those_who_read_in_the_dark(visit):
    page = visit("study.html", 1280, 900, "dark")
    printed = page.printed()
    assert printed.startswith(b"%PDF")
    assert 4 <= printed.count(b"/Type /Page\n") <= 30


def test_without_scripts_all_but_the_table_of_labels_is_there(browser, visit):
    page = visit("study.html")
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.call("Page.reload")
    browser.wait_for("Page.loadEventFired", page._session)
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    assert page.run("document.querySelector('noscript').offsetHeight") > 0
    assert page.run("document.getElementById('label-table').offsetHeight") == 0
    shown = "[...document.querySelectorAll('#hierarchy .panel')].every((p) => p.offsetHeight > 0)"
    assert page.run(shown)
