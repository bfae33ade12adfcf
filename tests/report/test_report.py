"""Laws of the report: well-formed, alone in the world, true to the figures; names are text."""

import csv
import json
import os
import pickle
import re
import subprocess
import sys
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from setwise.evaluation import by_level, evaluate, per_label, precision_recall, reliability
from setwise.report import words, write
from setwise.report.labels import DIGITS, RECALLS, bars_of, shares_of
from setwise.report.tables import TABLES
from setwise.report.words import clipped, plain
from setwise.study import Scale, leaderboard
from setwise.targets import Hamming, TreeDistance, get_target
from setwise.taxonomy import Taxonomy
from tests.support import studies
from tests.support.examples import FEWER

VOID = {"meta", "link", "br", "input", "img", "hr"}
EVIL = [
    "<script>alert(1)</script>", "</script><script>alert(1)</script>", "<!--", "--><b>", "]]>",
    "\" onmouseover=\"alert(1)", "' onfocus='alert(1)", "&lt;b&gt;&amp;", "{{ 7 * 7 }}",
    "{% raw %}", "a\u2028b\u2029c", "\u202eevil\u202c", "\u2066a\u2069\u2069b", "שלום עולם",
    "مرحبا", "日本語 🎈", "", "   ", "\x00\x01\x1f\x7f", "x" * 5000, "z" + "\u0301" * 400, "\ud800",
    "javascript:alert(1)", "</title></style></svg>", "${alert(1)}", "\\u003cb\\u003e",
    "__proto__", "constructor",
]  # fmt: skip


class Parsed(HTMLParser):
    """Elements with their attributes and text; raises where an end does not match its start."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.text = [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(set(names)) == len(names), f"{tag} has an attribute twice"
        entry = {"tag": tag, "at": dict(attributes), "text": "", "inside": [*self.open]}
        self.elements.append(entry)
        if tag not in VOID:
            self.open.append(entry)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> ends nothing"
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        self.text.append(data)
        for entry in self.open:
            entry["text"] += data

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data[:80]}")

    def all(self, tag, **attributes):
        return [
            entry
            for entry in self.elements
            if entry["tag"] == tag
            and all(entry["at"].get(key.rstrip("_")) == value for key, value in attributes.items())
        ]

    def section(self, name):
        return [e for e in self.elements if any(i["at"].get("id") == name for i in e["inside"])]

    @property
    def data(self):
        return json.loads(self.all("script", id="data")[0]["text"])


def page_of(results, folder, **options):
    path = Path(folder) / "report.html"
    write(results, path, **options)
    return path.read_text(encoding="utf-8")


TREE_OF_PATHS = Taxonomy.from_parents([-1, 0, 0], ["a/b", "a/b/c d", "a/bc"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def page(folder):
    return page_of(studies.study(), folder)


@pytest.fixture(scope="module")
def parsed(page):
    return Parsed(page)


def small(label_names=("a", "b", "c"), methods=("m", "n")):
    """A tiny study of these names, with everything a page may show."""
    generator = np.random.default_rng(0)
    probability = generator.random((12, len(label_names))).astype(np.float32)
    y_true = sparse.csr_array((generator.random(probability.shape) < 0.5).astype(int))
    outcomes = tuple(
        studies.Outcome(method, target, sparse.csr_array((probability > 0.4).astype(int)),
                        probability, "Nothing.", ({"alpha": 1.0},), (0.1,), (0.1,))
        for method in methods for target in ("f1", "hamming")
    )  # fmt: skip
    taxonomy = Taxonomy.from_parents(np.arange(len(label_names)) - 1)
    pairs = [(method, target) for method in methods for target in ("f1", "hamming")]
    truth = studies.KnownTruth(
        {"f1": 0.1, "hamming": 0.1}, dict.fromkeys(pairs, 0.2), dict.fromkeys(pairs, 0.01),
        dict.fromkeys(pairs, 0.5),
    )  # fmt: skip
    return studies.Results("data", tuple(label_names), y_true, np.zeros(12, int), (12,),
                           ("f1", "hamming"), tuple(methods), outcomes, {"command": "c", "seed": 1},
                           {"python": "3"}, taxonomy, truth)  # fmt: skip


# ------------------------------------------------------------------------------- the file itself


def test_the_page_is_well_formed_and_its_sections_stand_in_order(parsed):
    order = [entry["at"]["id"] for entry in parsed.all("section")]
    assert order == [
        "question", "leaderboards", "methods", "figures", "examples", "labels", "cooccurrence",
        "sizes", "calibration", "precision_recall", "regret", "timing", "hierarchy", "reproduction",
    ]  # fmt: skip
    identities = [entry["at"]["id"] for entry in parsed.elements if "id" in entry["at"]]
    assert len(set(identities)) == len(identities)
    named = {e["at"]["aria-labelledby"] for e in parsed.all("section")}
    assert named <= set(identities)
    levels = [int(e["tag"][1]) for e in parsed.elements if re.fullmatch("h[1-6]", e["tag"])]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_picture_has_a_name_and_every_column_a_head(parsed):
    pictures = [e for e in parsed.all("svg") if "picture" in e["at"].get("class", "")]
    assert len(pictures) > 20
    for entry in parsed.all("svg"):
        nested = any(outer["tag"] == "svg" for outer in entry["inside"])
        assert (
            nested or entry["at"].get("role") == "img" or entry["at"].get("aria-hidden") == "true"
        )
    titles = [e for e in parsed.all("title") if e["inside"][-1] in pictures]
    assert len(titles) == len(pictures)
    assert all(entry["at"].get("scope") for entry in parsed.all("th"))


def test_nothing_is_loaded_and_nothing_else_may_run(page, parsed):
    assert "http:" not in page
    assert "https:" not in page
    for entry in parsed.elements:
        assert not {"src", "srcset", "style", "data", "poster", "action"} & set(entry["at"])
        assert not any(name.startswith("on") for name in entry["at"])
        address = entry["at"].get("href", "#")
        held = address == "data:," or address.startswith("data:text/csv;base64,")
        assert address.startswith("#") or held
    style = parsed.all("style")[0]["text"]
    assert "url(" not in style
    assert "@import" not in style
    (policy,) = parsed.all("meta", **{"http-equiv": "Content-Security-Policy"})
    allowed = policy["at"]["content"]
    assert allowed.startswith("default-src 'none';")
    assert "unsafe" not in allowed
    (script,) = [e for e in parsed.all("script") if "type" not in e["at"]]
    for kind, text in (("style", style), ("script", script["text"])):
        own = b64encode(sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{own}'" in allowed
    assert len(parsed.all("style")) == 1


def test_equal_results_give_equal_bytes(tmp_path):
    """Also in another process, where text has other hashes."""
    results, code = studies.study(40), "import pickle, sys; from setwise.report import write; "
    code += "write(pickle.load(sys.stdin.buffer), sys.argv[1])"
    call = [sys.executable, "-c", code, tmp_path / "again.html"]
    environment = os.environ | {"PYTHONHASHSEED": "5"}
    subprocess.run(call, env=environment, input=pickle.dumps(results), check=True)
    again = (tmp_path / "again.html").read_text(encoding="utf-8")
    assert again == page_of(results, tmp_path)


def test_a_file_that_cannot_be_finished_leaves_the_one_before(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("before")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write(small(), path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_contrast_is_enough_in_both_schemes(parsed):
    style = parsed.all("style")[0]["text"]
    for scheme in ("light", "dark"):
        rule = re.search(rf':root\[data-scheme="{scheme}"\] {{(.*?)}}', style)
        colours = dict(re.findall(r"--(\w+):(#\w{6})", rule[1]))
        marks = [key for key in colours if re.fullmatch(r"m\d", key)]
        for key in ("ink", "quiet", "strong", *marks):
            for ground in ("ground", "raised"):
                assert contrast(colours[key], colours[ground]) >= 4.5, (key, ground)
        assert contrast(colours["edge"], colours["ground"]) >= 3.0


def contrast(first, second):
    """The contrast ratio of WCAG 2."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        ]
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


# --------------------------------------------------------------------------------------- figures


def test_the_leaderboards_are_those_of_the_study(parsed):
    results = studies.study()
    board = leaderboard(results)
    rows = [
        e["text"].split("\n") for e in parsed.section("leaderboards")
        if e["tag"] == "tr" and any(o["tag"] == "tbody" for o in e["inside"])
    ]  # fmt: skip
    assert len(rows) == len(board)
    for row, standing in zip(rows, board, strict=True):
        text = " ".join(row)
        assert standing.method in text
        sign = 1 if standing.target == "hamming" else -1
        value = standing.value if sign > 0 else 1 - standing.value
        ends = sorted(e if sign > 0 else 1 - e for e in (standing.low, standing.high))
        assert f"{words.share(value)} [{words.share(ends[0])}, {words.share(ends[1])}]" in text
        if standing.p is None:
            assert "best" in text
        else:
            assert ("not significantly worse" in text) == standing.is_best_or_tied
            assert words.share(sign * standing.difference) in text
    verdict = parsed.all("p", class_="verdict")[0]["text"]
    for target in results.targets:
        assert board.of(target)[0].method in verdict


def test_the_table_of_labels_has_the_figures_of_evaluation(parsed):
    results, data = studies.study(), parsed.data
    order = [results.label_names.index(name) for name in data["labels"]]
    for outcome, own in zip(results.outcomes, data["outcomes"], strict=True):
        assert results.methods[own["method"]] == outcome.method
        assert results.targets[own["target"]] == outcome.target
        figures = per_label(outcome.y_pred, results.y_true, probability=outcome.probability)
        assert data["support"] == figures.support[order].tolist()
        assert own["predicted"] == figures.predicted[order].tolist()
        assert own["both"] == figures.both[order].tolist()
        if outcome.probability is None:
            assert own["belief"] is None
            continue
        belief = data["beliefs"][own["belief"]]
        np.testing.assert_allclose(
            np.array(belief["average"]) / 1e4, figures.average_precision[order], atol=5.1e-5
        )
        curves = precision_recall(outcome.probability, results.y_true, average=None)
        expected = curves.interpolated(RECALLS)[order]
        np.testing.assert_allclose(unpacked(belief["curves"]), expected, atol=1.3e-4)


def unpacked(curves):
    digits = [[DIGITS.index(letter) for letter in curve] for curve in curves]
    return (
        np.array([[64 * a + b for a, b in zip(c[::2], c[1::2], strict=True)] for c in digits])
        / 4095
    )


def test_calibration_and_precision_are_those_of_evaluation(page):
    results = studies.study()
    for outcome in results.outcomes:
        if outcome.probability is not None:
            error = reliability(outcome.probability, results.y_true).expected_error
            assert f"average gap {words.share(error)}" in page
            curve = precision_recall(outcome.probability, results.y_true)
            assert f'<td class="number">{words.share(curve.average_precision[0])}</td>' in page


def test_regret_is_the_expected_loss_less_the_best(parsed):
    truth = studies.study().truth
    text = " ".join(e["text"] for e in parsed.section("regret") if e["tag"] == "td")
    for (method, target), expected in truth.expected.items():
        assert words.small(expected - truth.best[target]) in text, (method, target)


def opened(results, taxonomy):
    """The same study where predictions lack every root, so that none but empty ones is closed."""
    outcomes = []
    for outcome in results.outcomes:
        y_pred = outcome.y_pred.toarray()
        y_pred[:, taxonomy.roots] = 0
        outcomes.append(replace(outcome, y_pred=sparse.csr_array(y_pred)))
    return replace(results, outcomes=tuple(outcomes), taxonomy=taxonomy)


@pytest.mark.parametrize("several", [False, True])
def test_every_row_of_the_hierarchy_is_that_of_evaluation(folder, several):
    tree = studies.study().taxonomy
    taxonomy = Taxonomy([*tree.edges, [4, 3]], tree.names) if several else tree
    results = opened(studies.study(), taxonomy)
    section = Parsed(page_of(results, folder)).section("hierarchy")
    rows = [entry["text"] for entry in section if entry["tag"] == "tr"]
    for outcome in results.outcomes:
        levels = by_level(outcome.y_pred, results.y_true, taxonomy)
        for of in zip(levels.precision, levels.recall, levels.f1, strict=True):
            assert any(f"{outcome.method}{''.join(map(words.share, of))}" in row for row in rows)
        predicted, true = (taxonomy.close(y).toarray() for y in (outcome.y_pred, results.y_true))
        f1 = 2 * (predicted & true).sum() / (predicted.sum() + true.sum())
        closed = f"{100 * taxonomy.is_closed(outcome.y_pred).mean():.1f} %"
        distance = words.small((predicted != true).sum(axis=1).mean())
        assert any(f"{words.share(f1)}{closed}{distance}" in row for row in rows)
    said = "".join(entry["text"] for entry in section)
    assert "in edges" in said
    assert ("'Genetics' under 'Arts'" in said) == several


def test_hierarchical_f1_is_that_of_label_sets_with_their_ancestors(parsed):
    results = studies.study()
    taxonomy = results.taxonomy
    outcome = next(o for o in results.outcomes if (o.method, o.target) == ("catalog", "f1"))
    predicted, true = (taxonomy.close(y).toarray() for y in (outcome.y_pred, results.y_true))
    f1 = 2 * (predicted & true).sum() / (predicted.sum() + true.sum())
    cells = [e["text"] for e in parsed.section("hierarchy") if e["tag"] == "td"]
    assert words.share(f1) in cells


# ----------------------------------------------------------------------------------------- names


names = st.one_of(st.sampled_from(EVIL), st.text(max_size=30))


@pytest.fixture(scope="module")
def harmless(folder):
    return shape_of(Parsed(page_of(small(), folder)))


def shape_of(parsed):
    """All pairs of elements and attributes, tooltips of clipped names left out."""
    return {
        (entry["tag"], key) for entry in parsed.elements for key in entry["at"]
    } - {("bdi", "title")}  # fmt: skip


@given(
    st.lists(names, min_size=3, max_size=3), st.lists(names, min_size=2, max_size=2, unique=True)
)
@example(EVIL[:3], EVIL[3:5])
@example(EVIL[5:8], EVIL[8:10])
@example(EVIL[10:13], EVIL[13:15])
@example(EVIL[16:19], EVIL[19:21])
@example(EVIL[21:24], EVIL[24:26])
@settings(max_examples=FEWER)
def test_names_are_text_wherever_they_stand(folder, harmless, label_names, methods):
    results = replace(
        small(label_names, methods),
        name=label_names[0],
        question={"command": label_names[1], label_names[2]: methods[0], "seed": methods[1]},
        versions={methods[0]: label_names[0]},
    )
    outcomes = tuple(
        replace(o, guarantee=label_names[1], settings=({label_names[0]: methods[1]},))
        for o in results.outcomes
    )
    found = Parsed(page_of(replace(results, outcomes=outcomes), folder))
    assert shape_of(found) == harmless
    assert len(found.all("script")) == 2
    assert sorted(found.data["labels"]) == sorted(map(plain, label_names))
    assert [method[0] for method in found.data["methods"]] == [plain(name) for name in methods]
    text = "".join(found.text)
    assert not re.search("[\x00-\x08\u2028\u2029\u202a-\u202e\u2066\u2067]", text)
    headings = {e["text"] for e in found.section("methods") if e["tag"] == "bdi"}
    assert headings == {clipped(plain(name), 60) for name in methods}


@given(st.text(max_size=80), st.integers(2, 40))
def test_clipped_names_are_short_and_begin_as_the_whole(text, width):
    short = clipped(text, width)
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))
    assert len(short) <= width


# ------------------------------------------------------------- methods, figures, rows and tables


def test_methods_that_share_probabilities_have_probabilities(folder):
    """One model decoded twice: no section says otherwise than the next."""
    results = small()
    bare = tuple(replace(o, probability=None) for o in results.outcomes if o.method == "m")
    shared = tuple(o for o in results.outcomes if o.method == "n")
    alike = tuple(replace(o, method="o") for o in shared)
    results = replace(results, methods=("m", "n", "o"), outcomes=bare + shared + alike, truth=None)
    parsed = Parsed(page_of(results, folder))
    (told,) = re.findall("Without probabilities: (.*?)\\.", "".join(parsed.text))
    assert told == "m"
    names = [e for e in parsed.section("calibration") if e["tag"] == "bdi"]
    drawn = [e["text"] for e in names if "figcaption" in [outer["tag"] for outer in e["inside"]]]
    assert drawn == ["n", "o"]
    curves = {e["text"] for e in parsed.section("precision_recall") if e["tag"] == "bdi"}
    assert curves == {"n", "o"}


def test_a_guarantee_is_said_once_for_targets_that_share_it(folder):
    results = small()
    said = "Best for {0} alone. The regret of {0} is small."
    outcomes = tuple(replace(o, guarantee=said.format(o.target)) for o in results.outcomes)
    told = {"m": "Trains this. Decides so."}
    page = page_of(replace(results, outcomes=outcomes, descriptions=told), folder)
    text = section_text(page, "methods")
    assert text.count("Best for the target alone.") == len(results.methods)
    assert text.count("The regret of the target is small.") == len(results.methods)
    assert text.count("Trains this. Decides so.") == 1
    assert page.count("is small") == len(results.methods)


def test_all_figures_of_a_study_are_those_of_evaluate(folder):
    results = replace(studies.study(), zero_division=1.0)
    found = Parsed(page_of(results, folder)).section("figures")
    cells = [e["text"] for e in found if e["tag"] == "td" and e["at"]["class"] == "number"]
    names = [e["text"] for e in found if e["tag"] == "th" and e["at"].get("scope") == "row"]
    shown = {name: cells[5 * i : 5 * i + 5] for i, name in enumerate(names[: len(names) // 3])}
    for place, outcome in enumerate(o for o in results.outcomes if o.target == "f1"):
        chosen = {"probability": outcome.probability, "ks": (), "zero_division": 1.0}
        figures = evaluate(outcome.y_pred, results.y_true, **chosen)
        assert {"micro f1", "macro f1"} < set(figures)
        for name, figure in figures.items():
            value, low, high = (float(part.strip("[],")) for part in shown[name][place].split())
            expected = figure.value, figure.low, figure.high
            assert (value, low, high) == pytest.approx(expected, abs=6e-4), name


def test_example_rows_are_the_worst_and_typical_ones_of_the_best_method(folder):
    results = replace(studies.study(), row_names=tuple(f"row {i}" for i in range(360)))
    page = page_of(results, folder, tables=folder / "tables")
    with (folder / "tables" / "examples.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for target, title in (("f1", "F1"), ("hamming", "Hamming loss")):
        best = leaderboard(results).of(target)[0].method
        (outcome,) = (o for o in results.outcomes if (o.method, o.target) == (best, target))
        losses = get_target(target).loss(outcome.y_pred, results.y_true)
        own = [row for row in rows if row["trained for"] == title]
        assert {row["method"] for row in own} == {best}
        for row in own:
            place = int(row["row"].removeprefix("row "))
            assert float(row["loss"]) == pytest.approx(losses[place])
            for name, sets in (("true", results.y_true), ("predicted", outcome.y_pred)):
                labels = {results.label_names[i] for i in sets[[place]].nonzero()[1]}
                assert set(filter(None, row[name].split("; "))) == labels
            assert row["row"] in page
        worst = [float(row["loss"]) for row in own if row["kind"] == "The worst"]
        assert worst == pytest.approx(np.sort(losses)[::-1][: len(worst)])
        typical = [float(row["loss"]) for row in own if row["kind"] == "Typical"]
        nearest = np.sort(abs(losses - np.median(losses)))[: len(typical)]
        assert np.sort(abs(np.array(typical) - np.median(losses))) == pytest.approx(nearest)


def test_every_table_of_the_page_is_a_link_and_a_file(folder):
    page = page_of(studies.study(), folder, tables=folder / "files")
    parsed = Parsed(page)
    links = {e["at"]["download"]: e["at"]["href"] for e in parsed.all("a") if "download" in e["at"]}
    files = {path.name: path.read_bytes() for path in (folder / "files").iterdir()}
    assert set(links) == set(files) - {"labels.csv"}
    # (Those of the inside of models are where a model is looked into.)
    inside = {"mixture", "explained"}
    assert {path.removesuffix(".csv") for path in files} == set(TABLES) - inside
    for name, address in links.items():
        assert b64decode(address.partition("base64,")[2]) == files[name]
    board = list(csv.DictReader(files["leaderboards.csv"].decode().splitlines()))
    for row, standing in zip(board, leaderboard(studies.study()), strict=True):
        assert (row["target"], row["method"]) == (standing.target, standing.method)
        assert float(row["value"]) == standing.value
        assert float(row["high"]) == standing.high
    labels = list(csv.DictReader(files["labels.csv"].decode().splitlines()))
    assert len(labels) == 15 * len(studies.LABELS)


def test_the_table_of_labels_counts_nothing_as_the_page_says(folder):
    evaluated = evaluate([[1, 0], [1, 0]], [[1, 0], [0, 0]], zero_division=1.0, n_bootstrap=0)
    write(evaluated, folder / "zero.html", label_names=("a", "never"), tables=folder / "zero")
    with (folder / "zero" / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["label"] == "never"]
    assert {float(row[name]) for row in rows for name in ("precision", "recall", "f1")} == {1.0}


@pytest.mark.parametrize("zero_division", [0.0, 1.0, float("nan")])
def test_where_the_leaderboard_counts_empty_rows_otherwise_it_is_said(zero_division, folder):
    y_true = [[1, 0], [0, 0], [0, 1]]
    for y_pred, is_said in ((y_true, zero_division != 1.0), ([[1, 0], [1, 0], [0, 1]], False)):
        judged = evaluate(y_pred, y_true, targets=["f1"], zero_division=zero_division)
        page = page_of(judged, folder)
        assert ("as the target defines it" in section_text(page, "figures")) == is_said
        assert ("labels: 1. In instance figures they are 0/0" in str(judged)) == is_said


def test_cells_that_a_spreadsheet_would_run_are_text(folder):
    names = ("=1+1", "+a", '@"b",c')
    page_of(small(names, ("-m", "n")), folder, tables=folder / "evil")
    with (folder / "evil" / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["label"] for row in rows} == {f"'{name}" for name in names}
    assert {row["method"] for row in rows} == {"'-m", "n"}


# --------------------------------------------------------------------------- all kinds of studies


def test_an_unfinished_study_says_what_is_missing(folder):
    results = studies.study()
    found = Parsed(page_of(replace(results, outcomes=results.outcomes[:7]), folder))
    assert "8 of 15 pairs of method and target are missing" in "".join(found.text)
    assert "Not finished" in "".join(found.text)


def test_a_study_without_outcomes_is_a_page_too(folder):
    found = Parsed(page_of(replace(studies.study(), outcomes=(), truth=None), folder))
    assert "No method has finished yet." in "".join(found.text)
    shown = {entry["at"]["id"] for entry in found.all("section")}
    assert {"question", "cooccurrence", "reproduction"} == shown


def test_without_probabilities_there_is_nothing_to_calibrate(folder):
    results = studies.study()
    bare = tuple(replace(outcome, probability=None) for outcome in results.outcomes)
    found = Parsed(page_of(replace(results, outcomes=bare), folder))
    shown = {entry["at"]["id"] for entry in found.all("section")}
    assert not shown & {"calibration", "precision_recall"}


def test_without_resamples_there_are_values_only(folder):
    results = studies.study()
    found = Parsed(page_of(results, folder, board=leaderboard(results, n_bootstrap=0)))
    assert "[" not in found.all("p", class_="verdict")[0]["text"]


def test_one_label_and_one_method_are_enough(folder):
    found = Parsed(page_of(small(("only",), ("alone",)), folder))
    assert found.all("h1")[0]["text"] == "data"
    assert "alone reaches" in found.all("p", class_="verdict")[0]["text"]
    assert not found.all("section", id="cooccurrence")


def test_labels_never_true_or_never_predicted_show_a_dash(folder):
    results = small()
    nothing = sparse.csr_array(results.y_true.shape, dtype=int)
    outcomes = tuple(replace(outcome, y_pred=nothing) for outcome in results.outcomes)
    found = Parsed(page_of(replace(results, y_true=nothing, outcomes=outcomes), folder))
    assert found.data["beliefs"][0]["average"] == [-1, -1, -1]


def test_labels_that_are_never_true_come_last(folder):
    """Also where the label sets are unsigned bytes, whose negative is a large number."""
    results = studies.wide(40, 60, 1)
    y_true = results.y_true.toarray().astype(np.uint8)
    y_true[:, :36] = 0
    y_true[:30, 36:] = 1
    results = replace(results, y_true=sparse.csr_array(y_true))
    found = Parsed(page_of(results, folder))
    assert found.data["support"][:4] == sorted(y_true[:, 36:].sum(axis=0), reverse=True)
    assert found.data["support"][4:] == [0] * 36
    assert found.all("section", id="cooccurrence")


@pytest.mark.parametrize("largest", [0, 1, 12, 13, 30, 400])
def test_bars_hold_every_size_once(largest):
    """Few bars, none for sizes that do not occur, each size in the bar that names it."""
    sizes = np.random.default_rng(largest).integers(0, largest + 1, size=500)
    sizes[0] = largest
    starts, names = bars_of([sizes])
    shares = shares_of(sizes, starts)
    assert len(shares) == len(names) <= 14
    assert shares.sum() == pytest.approx(1.0)
    for start, end, share in zip(starts, [*starts[1:], np.inf], shares, strict=True):
        assert share == pytest.approx(((sizes >= start) & (sizes < end)).mean())
    last = names[-1].split("–")[-1]
    assert names[-1].startswith(str(starts[-1]))
    assert last.endswith("+") or sizes.max() <= int(last)


def test_a_thousand_labels_fit_into_a_megabyte(folder):
    page = page_of(studies.wide(1000, 60, 6, ("f1", "hamming")), folder)
    assert len(page.encode()) < 1_000_000
    found = Parsed(page)
    assert len(found.data["labels"]) == 1000
    assert "the 30 most frequent of 1,000 labels" in "".join(found.text)


@pytest.mark.parametrize(
    "parents",
    [np.arange(400) - 1, np.append(np.arange(1, 400), -1), np.where(np.arange(400) > 0, 0, -1)],
    ids=["chain", "chain from below", "star"],
)
def test_deep_and_wide_hierarchies_are_drawn_in_part(folder, parents):
    taxonomy = Taxonomy.from_parents(parents)
    found = Parsed(page_of(replace(studies.wide(400, 60, 2), taxonomy=taxonomy), folder))
    assert "of 400 labels" in "".join(e["text"] for e in found.section("hierarchy"))


def test_every_level_of_a_deep_tree_has_a_place_of_its_own(folder):
    taxonomy = Taxonomy.from_parents(np.arange(31) - 1)
    found = Parsed(page_of(replace(studies.wide(31, 60, 2), taxonomy=taxonomy), folder))
    circles = [e["at"] for e in found.section("hierarchy") if e["at"].get("class") == "node"]
    places = [float(at["cx"]) for at in circles]
    assert len(set(places)) == 31
    assert (np.diff(places) > 4).all()


def test_path_names_are_drawn_by_what_their_parents_have_not(folder):
    results = replace(small(("a/b", "a/b/c d", "a/bc")), taxonomy=TREE_OF_PATHS)
    found = Parsed(page_of(results, folder))
    drawn = [e for e in found.section("hierarchy") if e["at"].get("class") == "name"]
    assert {entry["text"] for entry in drawn} == {"a/b", "c da/b/c d", "a/bc"}


def test_a_tree_distance_is_explained_and_has_its_units(folder):
    results = studies.study()
    tree = TreeDistance(results.taxonomy)
    outcomes = [
        replace(outcome, target="tree", losses=tree.loss(outcome.y_pred, results.y_true))
        for outcome in results.outcomes if outcome.target == "f1"
    ]  # fmt: skip
    changed = replace(results, targets=("tree",), outcomes=tuple(outcomes), truth=None,
                      scales={"tree": Scale.of(tree)})  # fmt: skip
    page = Parsed(page_of(changed, folder))
    asked = "".join(entry["text"] for entry in page.section("question"))
    assert "the length of the edges on which prediction and truth differ" in asked
    assert "as a share of all 12 edges" in asked
    boards = "".join(entry["text"] for entry in page.section("leaderboards"))
    for outcome in outcomes:
        assert f"{12 * outcome.losses.mean():.4g} edges" in boards


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label_names": ("a",)}, "y_true has 3 labels, but there are 1 label_names"),
        ({"fold": np.zeros(3, int)}, "12 rows, but fold has 3"),
        ({"methods": ("m",)}, "method 'n' is not in methods"),
        ({"targets": ("f1",)}, "target 'hamming' is not in targets"),
        ({"methods": ("m", "n", "n")}, "methods has a name twice"),
        ({"taxonomy": Taxonomy.from_parents([-1])}, "y_true has 3 labels, taxonomy 1"),
        ({"y_true": sparse.csr_array((12, 2), dtype=int)}, "y_true has 2 labels"),
    ],
)
def test_results_that_do_not_fit_together_are_refused(change, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        write(replace(small(), **change), tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_errors_name_the_outcome_and_the_place(tmp_path):
    results = small()
    first = replace(results.outcomes[0], probability=results.outcomes[0].probability * np.nan)
    with pytest.raises(ValueError, match=r"'m' for 'f1': .*probability\[0, 0\] is nan"):
        write(replace(results, outcomes=(first, *results.outcomes[1:])), tmp_path / "report.html")
    with pytest.raises(ValueError, match="leaderboard is not of these outcomes"):
        write(results, tmp_path / "report.html", board=leaderboard(studies.study()))
    with pytest.raises(ValueError, match="is a folder"):
        write(results, tmp_path)


def test_what_is_not_a_number_is_a_dash(folder):
    """Times, regrets and bounds may be anything."""
    results = small()
    odd = [np.nan, np.inf, 0.0, -1.0]
    outcomes = tuple(
        replace(outcome, fit_seconds=(value,), predict_seconds=())
        for outcome, value in zip(results.outcomes, odd, strict=True)
    )
    pairs = [(outcome.method, outcome.target) for outcome in outcomes]
    one, other, third = (dict(zip(pairs, odd[i:] + odd[:i], strict=True)) for i in range(3))
    truth = studies.KnownTruth({"f1": 0.1, "hamming": 0.1}, one, other, third)
    page = page_of(replace(results, outcomes=outcomes, truth=truth), folder)
    Parsed(page)
    assert "nan" not in page[: page.index("<script")]


def test_sparse_probabilities_are_their_dense_values(folder):
    results = small()
    outcomes = tuple(
        replace(outcome, probability=sparse.csr_array(outcome.probability))
        for outcome in results.outcomes
    )
    assert page_of(replace(results, outcomes=outcomes), folder) == page_of(results, folder)


def test_a_study_without_a_name_has_a_heading(folder):
    found = Parsed(page_of(replace(small(), name=" "), folder))
    assert found.all("h1")[0]["text"] == "Which method is best?"


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match="there is no folder"):
        write(small(), tmp_path / "nowhere" / "report.html")


# ------------------------------------------------------------------------------------- evaluations


def evaluations_of(results, target="f1", **options):
    """The predictions of a study for one target, evaluated."""
    return {
        outcome.method: evaluate(
            outcome.y_pred, results.y_true, probability=outcome.probability,
            taxonomy=results.taxonomy, **options,
        )
        for outcome in results.outcomes if outcome.target == target
    }  # fmt: skip


def one_target(results, target="f1"):
    """The part of a study that is about one target."""
    outcomes = tuple(outcome for outcome in results.outcomes if outcome.target == target)
    return replace(results, targets=(target,), outcomes=outcomes, truth=None)


def section_text(page, name):
    return re.search(f'<section id="{name}".*?</section>', page, re.DOTALL)[0]


def test_evaluations_have_the_sections_that_a_study_of_them_has(folder):
    """The same words and pictures, where they are about predictions and not about training."""
    results = studies.study()
    evaluations = evaluations_of(results, targets=["f1"], n_bootstrap=200)
    board = leaderboard(one_target(results), n_bootstrap=200)
    study = page_of(one_target(results), folder, board=board)
    page = page_of(evaluations, folder, name=results.name, label_names=results.label_names)
    order = [entry["at"]["id"] for entry in Parsed(page).all("section")]
    assert order == [
        "question", "leaderboards", "figures", "examples", "labels", "cooccurrence", "sizes",
        "calibration", "precision_recall", "hierarchy",
    ]  # fmt: skip
    for name in ("examples", "labels", "cooccurrence", "sizes", "calibration", "hierarchy"):
        assert section_text(page, name) == section_text(study, name)
    assert section_text(page, "leaderboards").replace("of the rows", "of the held-out rows") == (
        section_text(study, "leaderboards")
    )
    assert Parsed(page).data == Parsed(study).data


def test_all_figures_of_evaluations_are_on_the_page(folder):
    evaluations = evaluations_of(studies.study(), n_bootstrap=50)
    del evaluations["mean absolute error"]  # (It has no probabilities, so it has fewer figures.)
    figures = Parsed(page_of(evaluations, folder)).section("figures")
    rows = [e for e in figures if e["tag"] == "th" and e["at"].get("scope") == "row"]
    first = next(iter(evaluations.values()))
    assert [row["text"] for row in rows] == list(first)
    cells = [e["text"] for e in figures if e["tag"] == "td" and e["at"]["class"] == "number"]
    expected = [own[name] for name in first for own in evaluations.values()]
    for cell, figure in zip(cells, expected, strict=True):
        value, low, high = (float(part.strip("[],").replace("−", "-")) for part in cell.split())
        assert value == pytest.approx(figure.value, abs=6e-4)
        assert (low, high) == pytest.approx((figure.low, figure.high), abs=6e-4)


def test_predictions_for_several_targets_are_drawn_once(folder):
    """Without targets of their own they are judged by the usual ones; without a bootstrap too."""
    results = studies.study()
    evaluation = evaluations_of(results, n_bootstrap=0)["forest"]
    parsed = Parsed(page_of(evaluation, folder))
    boards = [e["text"] for e in parsed.section("leaderboards") if e["tag"] == "h3"]
    assert [board.split("  ")[0].rsplit(" ", 3)[0] for board in boards] == [
        "F1", "Jaccard", "Hamming loss", "Subset accuracy",
    ]  # fmt: skip
    for name in ("sizes", "hierarchy"):
        pictures = [e for e in parsed.section(name) if "picture" in e["at"].get("class", "")]
        assert len(pictures) == 1
    assert len(parsed.data["outcomes"]) == 1
    assert "None" not in "".join(parsed.text)


def test_labels_of_evaluations_have_the_names_of_columns_taxonomy_or_numbers(folder):
    pandas = pytest.importorskip("pandas")
    sets = np.eye(3, dtype=int)
    frame = pandas.DataFrame(sets, columns=["x", "y", "z"])
    taxonomy = Taxonomy.from_parents([-1, 0, 0], ["r", "s", "t"])
    for evaluation, expected in (
        (evaluate(frame, frame, n_bootstrap=0), ["x", "y", "z"]),
        (evaluate(sets, sets, taxonomy=taxonomy, n_bootstrap=0), ["r", "s", "t"]),
        (evaluate(sets, sets, n_bootstrap=0), ["0", "1", "2"]),
    ):
        assert Parsed(page_of(evaluation, folder)).data["labels"] == expected


EVALUATED = evaluate([[1, 0]], [[1, 1]], n_bootstrap=0)
APART = {
    "nothing": ({}, {}, "mapping from names to Evaluations"),
    "something else": ([EVALUATED], {}, "not list"),
    "figures alone": ({"a": replace(EVALUATED, sample=None)}, {}, "'a' must be what `evaluate`"),
    "other rows": (
        {"a": EVALUATED, "b": evaluate([[1, 0]], [[1, 0]], n_bootstrap=0)},
        {},
        "'a' and 'b' must be of the same y_true",
    ),
    "one name twice": ({1: EVALUATED, "1": EVALUATED}, {}, "a name is there twice"),
    "the name of a study": (small(), {"name": "mine"}, "a study has its own"),
    "too few names": (EVALUATED, {"label_names": ["x"]}, "2 labels, but there are 1 label_names"),
}


@pytest.mark.parametrize(("judged", "options", "message"), APART.values(), ids=APART)
def test_what_was_not_evaluated_together_has_no_page(judged, options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        write(judged, tmp_path / "page.html", **options)
    assert not (tmp_path / "page.html").exists()


def test_evaluations_by_targets_of_one_name_and_other_parameters_are_refused(tmp_path):
    """One would be judged by the other's."""
    generator = np.random.default_rng(0)
    y_true, y_pred = generator.integers(0, 2, (2, 20, 3))
    one, other = (
        evaluate(y_pred, y_true, targets=[Hamming(weights)], n_bootstrap=20)
        for weights in ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0])
    )
    with pytest.raises(ValueError, match="other parameters"):
        write({"one": one, "other": other}, tmp_path / "page.html")
