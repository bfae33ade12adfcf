"""What is new, what is kept, and what a spreadsheet or a terminal may be shown."""

import csv
import io
import json
import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import setwise
from setwise.cli import main
from setwise.cli.fit import Fitted
from setwise.cli.predict import Lines
from setwise.evaluation import evaluate
from setwise.terminal import printable
from tests.support.command import LISTED, QUICK, found, run

NAMES = np.array(["=art", "law", "war"])
READ = ("--categorical", "cover", "--drop", "id", *LISTED)
HOSTILE = "a\x1b[31m\x07\x9b\u202e\u2066b"


def table(n_rows=60, seed=0, new=False):
    """Rows of id, numbers, a category and labels; with new ones every few rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3)).round(3)
    Y = X @ np.random.default_rng(1).normal(size=(3, 3)) + rng.normal(size=(n_rows, 3)) > 0.3
    rows = [["id", "a", "b", "c", "cover", "tags"]]
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        cover, tags = ("soft", "hard")[i % 2], NAMES[y].tolist()
        if new and i % 6 == 0:
            cover, tags = "tin", [*tags, "opera"]
        rows.append([f"{i:03d}", *map(str, x), cover, ";".join(tags)])
    return rows


def write(path, rows):
    if path.suffix == ".parquet":
        columns = dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True))
        numbers = {name: [float(cell) for cell in columns[name]] for name in "abc"}
        pyarrow.parquet.write_table(pa.table({**columns, **numbers}), path)
        return
    with open(path, "w", newline="") as file:
        csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",").writerows(rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("names")
    write(place / "books.csv", table())
    for suffix in ("csv", "tsv", "parquet"):
        write(place / f"new.{suffix}", table(30, 1, new=True))
    words = ("fit", place / "books.csv", *READ, *QUICK, "-o", place / "model.skops")
    assert main([str(word) for word in words]) == 0
    return place


every_table = pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])


@every_table
def test_new_categories_are_zeros_and_counted(suffix, folder, capfd):
    words = ("predict", folder / "model.skops", folder / f"new.{suffix}")
    if suffix == "tsv":  # (read as the training file was, which had commas; but by its own name)
        assert setwise.load(folder / "model.skops").schema.delimiter is None
    status, out, err = run(capfd, *words)
    assert (status, out) == (2, "")
    assert "new category 'tin'" in err
    assert "--unseen-categories zeros" in err
    status, out, err = run(capfd, *words, "--unseen-categories", "zeros")
    assert (status, len(out.splitlines())) == (0, 31)
    assert "new categories in 5 cells of column 'cover', 0 in all its features: 'tin' 5" in err


@every_table
def test_new_labels_are_labels_that_no_prediction_has(suffix, folder, capfd):
    """By hand: another column of the truth, of 0 in the predictions and the probabilities."""
    words = ("evaluate", folder / "model.skops", folder / f"new.{suffix}", "--resamples", "0")
    zeros = ("--unseen-categories", "zeros")
    status, _, err = run(capfd, *words, *zeros)
    assert status == 2
    assert "unknown label 'opera'" in err
    assert "--unseen-labels missed" in err
    told = found(capfd, *words, *zeros, "--unseen-labels", "missed")
    unseen = {"times": 5, "different": 1, "most_frequent": {"opera": 5}}
    assert told["unseen"]["labels"] == unseen
    assert told["unseen"]["categories"]["cover"]["most_frequent"] == {"tin": 5}
    fitted = setwise.load(folder / "model.skops")
    rows = fitted.schema.read(
        folder / f"new.{suffix}", unseen_categories="zeros", unseen_labels="missed"
    )
    nothing = np.zeros((30, 1))
    truth = rows.Y.toarray()
    assert truth[:, -1].sum() == 5
    expected = evaluate(
        np.hstack([fitted.model.predict(rows.X), nothing.astype(int)]),
        truth,
        probability=np.hstack([fitted.probability(rows.X), nothing]),
        targets=[fitted.target],
        n_bootstrap=0,
    )
    figures = expected.to_dict()
    assert {name: told[name] for name in figures} == figures
    assert told["n_labels"] == 4


def test_new_labels_are_said_on_the_error_stream(folder, capfd):
    words = ("evaluate", folder / "model.skops", folder / "new.csv", "--resamples", "0")
    options = ("--unseen-categories", "zeros", "--unseen-labels", "missed")
    status, out, err = run(capfd, *words, *options)
    assert (status, "1 new label, 5 times true, counted as missed: 'opera' 5" in err) == (0, True)
    assert "new label" not in out


def test_a_file_to_test_on_may_have_new_labels(folder, tmp_path, capfd):
    words = ("fit", folder / "books.csv", *READ, *QUICK, "--test", folder / "new.csv")
    out = ("-o", tmp_path / "m.skops")
    status, _, err = run(capfd, *words, *out, "--unseen-categories", "zeros")
    assert (status, "--unseen-labels missed" in err) == (2, True)
    options = ("--unseen-categories", "zeros", "--unseen-labels", "missed")
    told = found(capfd, *words, *out, *options)
    assert (told["labels"], told["test"]["rows"]) == (4, 30)
    status, _, err = run(capfd, *words[:-2], *out, *options)
    assert (status, "--unseen-labels is for" in err) == (2, True)


def test_in_a_hierarchy_new_labels_count_for_the_distance_too(tmp_path, capfd):
    lines = ["x,tags"]
    lines += [f"{i / 10},{'home/garden' if i % 2 else 'toys'}" for i in range(20)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "b.csv").write_text("x,tags\n0.1,home/garden\n0.2,toys;art/old\n")
    model = tmp_path / "m.skops"
    paths = ("--path-separator", "/", "--close", "--target", "tree")
    words = ("fit", tmp_path / "a.csv", *LISTED, *paths, *QUICK, "-o", model)
    assert run(capfd, *words)[0] == 0
    words = ("evaluate", model, tmp_path / "b.csv", "--unseen-labels", "missed")
    told = found(capfd, *words, "--resamples", "0")
    assert told["n_labels"] == 4
    status, _, err = run(capfd, "predict", model, tmp_path / "b.csv", "--most-specific")
    assert status == 0, err


def test_missing_features_are_said(folder, tmp_path, capfd):
    rows = table(5)
    for row in rows[1:3]:
        row[1] = ""
    write(tmp_path / "gaps.csv", rows)
    said = "2 missing feature values replaced by the column's mean"
    status, _, err = run(capfd, "predict", folder / "model.skops", tmp_path / "gaps.csv")
    assert (status, said in err) == (0, True)
    words = ("evaluate", folder / "model.skops", tmp_path / "gaps.csv", "--resamples", "0")
    assert found(capfd, *words)["missing_features"] == 2


def test_one_of_what_is_new_or_missing_is_said_as_one(folder, tmp_path, capfd):
    rows = table(5)
    rows[1][1], rows[2][4] = "", "tin"
    rows[3][5] = "opera"
    write(tmp_path / "one.csv", rows)
    words = ("--unseen-categories", "zeros", "--unseen-labels", "missed", "--resamples", "0")
    status, _, err = run(capfd, "evaluate", folder / "model.skops", tmp_path / "one.csv", *words)
    assert status == 0
    assert "new categories in 1 cell of column 'cover'" in err
    assert "1 new label, 1 time true, counted as missed: 'opera' 1" in err
    assert "1 missing feature value replaced by the column's mean" in err


# ------------------------------------------------------------------------------ columns to keep


@every_table
@pytest.mark.parametrize("format", ["labels", "columns", "json", "probabilities"])
def test_kept_columns_stand_before_the_same_predictions(format, suffix, folder, capfd):
    words = ("predict", folder / "model.skops", folder / f"new.{suffix}", "--format", format)
    words += ("--unseen-categories", "zeros")
    _, plain, _ = run(capfd, *words)
    status, kept, err = run(capfd, *words, "--keep", "id,cover")
    assert status == 0, err
    expected = [(row[0], row[4]) for row in table(30, 1, new=True)[1:]]
    if format == "json":
        rows = [json.loads(line) for line in kept.splitlines()]
        assert [(row.pop("id"), row.pop("cover")) for row in rows] == expected
        assert rows == [json.loads(line) for line in plain.splitlines()]
        return
    header, *rows = csv.reader(io.StringIO(kept))
    assert header[:2] == ["id", "cover"]
    assert [tuple(row[:2]) for row in rows] == expected
    assert [header[2:], *(row[2:] for row in rows)] == list(csv.reader(io.StringIO(plain)))


def test_kept_columns_follow_the_parts_of_a_file(folder, capfd, monkeypatch):
    monkeypatch.setattr(Fitted, "rows_at_once", 7)
    words = ("predict", folder / "model.skops", folder / "books.csv", "--keep", "id")
    status, out, _ = run(capfd, *words)
    rows = list(csv.reader(io.StringIO(out)))[1:]
    assert (status, [row[0] for row in rows]) == (0, [f"{i:03d}" for i in range(60)])


def test_probabilities_are_decoded_beside_what_is_kept(folder, tmp_path, capfd):
    words = ("predict", folder / "model.skops", folder / "books.csv", "--format", "probabilities")
    run(capfd, *words, "--keep", "id", "-o", tmp_path / "kept.csv")
    run(capfd, *words, "-o", tmp_path / "plain.csv")
    _, plain, _ = run(capfd, "decode", tmp_path / "plain.csv")
    status, kept, err = run(capfd, "decode", tmp_path / "kept.csv", "--keep", "id")
    assert status == 0, err
    rows = list(csv.reader(io.StringIO(kept)))
    assert [row[1:] for row in rows] == list(csv.reader(io.StringIO(plain)))
    assert [row[0] for row in rows[1:]] == [f"{i:03d}" for i in range(60)]


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        ("tags", "two columns of that name"),
        ("id,id", "two columns of that name"),
        ("idd", "no column 'idd'"),
    ],
)
def test_what_cannot_be_kept_is_refused(keep, said, folder, capfd):
    words = ("predict", folder / "model.skops", folder / "books.csv", "--keep", keep)
    status, _, err = run(capfd, *words)
    assert (status, said in err) == (2, True)


# ------------------------------------------------------------------------------ most specific


def test_most_specific_labels_close_to_the_predictions(tmp_path, capfd):
    lines = ["x,tags"]
    lines += [f"{i / 10},{'home/garden' if i < 10 else 'toys'}" for i in range(20)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    paths = ("--path-separator", "/", "--close", "--target", "tree")
    words = ("fit", tmp_path / "a.csv", *LISTED, *paths, *QUICK, "-o", tmp_path / "m.skops")
    assert run(capfd, *words)[0] == 0
    words = ("predict", tmp_path / "m.skops", tmp_path / "a.csv", "--json")
    _, out, _ = run(capfd, *words)
    _, short, _ = run(capfd, *words, "--most-specific")
    taxonomy = setwise.load(tmp_path / "m.skops").schema.taxonomy
    full, few = (
        [set(json.loads(line)["labels"]) for line in text.splitlines()] for text in (out, short)
    )
    assert (taxonomy.close(few) == taxonomy.close(full)).all()
    assert sum(map(len, few)) < sum(map(len, full))


def test_most_specific_needs_a_hierarchy(folder, capfd):
    words = ("predict", folder / "model.skops", folder / "books.csv", "--most-specific")
    status, _, err = run(capfd, *words)
    assert (status, "trained without a hierarchy" in err) == (2, True)


# ------------------------------------------------------------------------------ spreadsheets

STARTS = "=+-@\t\r\n＝＋－＠"


@pytest.mark.parametrize("start", STARTS)
def test_no_cell_of_text_is_a_formula(start):
    names, kept = [f"{start}1+1", "b"], [(f"{start}x",), ("-5",)]
    sets = np.array([[1, 1], [0, 1]])
    for format in ("labels", "columns", "probabilities"):
        for spreadsheet in (False, True):
            lines = Lines(
                [name.strip() for name in names] if format == "labels" else names,
                format,
                keep=(f"{start}id",),
                spreadsheet=spreadsheet,
            )
            text = b"".join(lines.of([sets], iter(kept))).decode()
            cells = [c for row in csv.reader(io.StringIO(text, newline="")) for c in row]
            risky = [cell for cell in cells if cell.startswith(tuple(STARTS)) and cell != "-5"]
            assert bool(risky) != spreadsheet
            # As it is, or with a quote before it; quoted, so that no other delimiter parts it.
            assert "-5" in cells
            assert (f"'{start}x" if spreadsheet else f"{start}x") in cells
            assert not spreadsheet or text.startswith('"')


def test_predictions_are_for_spreadsheets_only_where_asked(folder, capfd):
    words = ("predict", folder / "model.skops", folder / "books.csv")
    _, plain, _ = run(capfd, *words)
    _, safe, _ = run(capfd, *words, "--spreadsheet")
    assert "\n=art" in plain
    rows = zip(*(list(csv.reader(io.StringIO(text))) for text in (plain, safe)), strict=True)
    assert all(b in (a, [f"'{a[0]}"]) for a, b in rows)
    assert "=art" not in {row[0][:4] for row in csv.reader(io.StringIO(safe)) if row}
    status, _, err = run(capfd, *words, "--spreadsheet", "--json")
    assert (status, "--spreadsheet is for CSV" in err) == (2, True)


# ------------------------------------------------------------------------------ terminals


def on_a_terminal(words):
    """What a terminal is shown of a command."""
    pty = pytest.importorskip("pty")
    shown, slave = pty.openpty()
    os.set_blocking(shown, False)
    before = sys.stdout, sys.stderr
    with open(slave, "w", encoding="utf-8", newline="\n") as stream:
        sys.stdout = sys.stderr = stream
        try:
            main([str(word) for word in words])
        finally:
            sys.stdout, sys.stderr = before
        text = os.read(shown, 2**16).decode()
    os.close(shown)
    return text.replace("\r\n", "\n")


def test_control_characters_of_any_kind_are_escapes():
    for code in [*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x2066, 0x061C, 0x200F]:
        text = printable(chr(code))
        assert (text == chr(code)) == (chr(code) in "\t\n")
        assert json.loads(f'"{printable(chr(max(code, 0x7F)), json=True)}"') == chr(max(code, 0x7F))
    assert printable("naïve — 漢字 🙂\n\t") == "naïve — 漢字 🙂\n\t"


@pytest.fixture
def hostile(tmp_path):
    lines = [f"{i / 10},{HOSTILE if i % 2 else 'b'}" for i in range(20)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["x,tags", *lines]) + "\n")
    words = ("fit", path, *LISTED, *QUICK, "-o", tmp_path / "m.skops")
    assert main([str(word) for word in words]) == 0
    return tmp_path


SHOWN = {
    "info": ("datasets", "info", "a.csv", *LISTED),
    "info as JSON": ("datasets", "info", "a.csv", *LISTED, "--json"),
    "predict": ("predict", "m.skops", "a.csv"),
    "predict as JSON": ("predict", "m.skops", "a.csv", "--json"),
    "an error": ("fit", f"{HOSTILE}.csv", *LISTED, "-o", "n.skops"),
    "an option": ("datasets", f"{HOSTILE}"),
    "a warning": ("datasets", "info", "semi.csv", "--label-column", "tags"),
}


@pytest.mark.parametrize("words", SHOWN.values(), ids=SHOWN)
def test_nothing_from_the_data_controls_a_terminal(words, hostile, monkeypatch):
    monkeypatch.chdir(hostile)
    (hostile / "semi.csv").write_text(f"x,tags\n1,{HOSTILE};b\n2,b;{HOSTILE}\n")
    text = on_a_terminal(words)
    assert "202e" in text
    assert printable(text) == text


def test_a_file_gets_what_the_data_has(hostile, capfd):
    status, out, _ = run(capfd, "predict", hostile / "m.skops", hostile / "a.csv")
    assert (status, HOSTILE in out) == (0, True)
    run(capfd, "predict", hostile / "m.skops", hostile / "a.csv", "-o", hostile / "out.csv")
    assert (hostile / "out.csv").read_text() == out
    _, out, _ = run(capfd, "datasets", "info", hostile / "a.csv", *LISTED)
    assert HOSTILE in out
