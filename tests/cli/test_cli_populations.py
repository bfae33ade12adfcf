"""Measures of all rows together on the command line."""

import sys

import numpy as np
import pytest

from setwise.cli import main
from setwise.decoders import PopulationRule
from setwise.persistence import load


def probabilities(path, values):
    np.savetxt(path, values, delimiter=",", header="a,b", comments="", fmt="%.17g")


def test_decode_sees_the_whole_file(tmp_path, monkeypatch):
    """However many rows are read at once."""
    values = np.random.default_rng(0).random((50, 2)) * [0.3, 0.9]
    probabilities(tmp_path / "p.csv", values)
    monkeypatch.setattr(sys.modules["setwise.cli.predict"], "rows_at_once", lambda width: 7)
    out = tmp_path / "sets.csv"
    words = ["decode", str(tmp_path / "p.csv"), "--target", "macro_f1", "--format", "columns"]
    assert main([*words, "-o", str(out)]) == 0
    expected = PopulationRule("macro_f1", "batch").fit(values).decode(values)
    np.testing.assert_array_equal(np.loadtxt(out, delimiter=",", skiprows=1), expected)


def test_one_row_alone_is_refused(tmp_path, capsys):
    probabilities(tmp_path / "p.csv", [[0.2, 0.7]])
    assert main(["decode", str(tmp_path / "p.csv"), "--target", "f1_macro"]) == 2
    said = capsys.readouterr().err
    assert "macro_f1 is decided here for all rows together" in said
    assert "a single row says nothing" in said
    assert "--decoder" not in said


def test_fit_tells_the_value_and_predict_is_the_same_in_parts(tmp_path, capsys, monkeypatch):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(80, 2))
    table = np.column_stack([x, x + rng.normal(size=(80, 2)) > 0.5])
    np.savetxt(tmp_path / "d.csv", table, delimiter=",", header="x,z,is_a,is_b", comments="")
    data, model = str(tmp_path / "d.csv"), str(tmp_path / "m.skops")
    words = ["--label-prefix", "is_", "--target", "macro_f1", "--no-cv", "-o", model]
    assert main(["fit", data, *words]) == 0
    assert "trained for macro_f1" in capsys.readouterr().out
    assert main(["predict", model, data]) == 0
    whole = capsys.readouterr().out
    monkeypatch.setattr(sys.modules["setwise.cli.fit"], "MOST_ENTRIES", 1)
    monkeypatch.setattr(sys.modules["setwise.cli.fit"], "LEAST_ROWS", 3)
    assert main(["predict", model, data]) == 0
    assert capsys.readouterr().out == whole


def table(path):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(90, 3))
    values = np.column_stack([x, x + rng.normal(size=x.shape) > 0.6])
    np.savetxt(path, values, delimiter=",", header="x,y,z,is_a,is_b,is_c", comments="", fmt="%.9g")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a table and a model for macro-F1 that was fitted to it."""
    place = tmp_path_factory.mktemp("population")
    table(place / "d.csv")
    words = ["--label-prefix", "is_", "--target", "macro_f1", "--no-cv", "--decoder", "thresholds"]
    assert main(["fit", str(place / "d.csv"), *words, "-o", str(place / "m.skops")]) == 0
    return place


def sets_of(text):
    return np.loadtxt(text.splitlines()[1:], delimiter=",", dtype=int)


def test_fit_takes_the_rule_by_name(model):
    stored = load(model / "m.skops")
    assert stored.classifier._risk.rule.rule == "thresholds"


@pytest.mark.parametrize("option", ["--budget", "--at-most"])
def test_fit_and_predict_take_a_budget(tmp_path, model, option, capsys):
    data, out = str(model / "d.csv"), str(tmp_path / "m.skops")
    words = ["--label-prefix", "is_", "--target", "macro_f1", "--no-cv", option, "1"]
    assert main(["fit", data, *words, "-o", out]) == 0
    found = []
    for words in ([out, data], [str(model / "m.skops"), data, option, "1"]):
        capsys.readouterr()
        assert main(["predict", *words, "--format", "columns"]) == 0
        found.append(sets_of(capsys.readouterr().out))
    # The same fit: what it is decided by may be said before or after.
    np.testing.assert_array_equal(*found)
    sizes = found[0].sum(axis=1)
    assert (sizes == 1).all() if option == "--budget" else 0 < sizes.max() <= 1


def test_predict_decides_by_another_rule(model, capsys):
    data, stored = str(model / "d.csv"), load(model / "m.skops")
    words = [str(model / "m.skops"), data, "--decoder", "batch", "--format", "columns"]
    assert main(["predict", *words]) == 0
    (part,) = stored.parts(data)
    marginals = stored.probability(part.data.X)
    expected = PopulationRule("macro_f1", "batch").fit(marginals).decode(marginals)
    np.testing.assert_array_equal(sets_of(capsys.readouterr().out), expected)


@pytest.mark.parametrize("mode", ["budget", "at_most"])
def test_decode_takes_a_budget(tmp_path, mode, capsys):
    values = np.random.default_rng(3).random((40, 2)) * [0.3, 0.9]
    probabilities(tmp_path / "p.csv", values)
    words = [str(tmp_path / "p.csv"), "--target", "macro_f1", f"--{mode.replace('_', '-')}", "1"]
    assert main(["decode", *words, "--format", "columns"]) == 0
    expected = PopulationRule("macro_f1", "batch", **{mode: 1}).fit(values).decode(values)
    np.testing.assert_array_equal(sets_of(capsys.readouterr().out), expected)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["decode", "p.csv", "--target", "f1", "--budget", "1"], "the target is f1"),
        (["decode", "p.csv", "--target", "macro_f1", "--budget", "3"], "number of labels"),
        (["decode", "p.csv", "--target", "macro_f1", "--at-most", "0"], "--at-most"),
        (
            ["decode", "p.csv", "--target", "macro_f1", "--at-most", "1", "--budget", "1"],
            "--budget 1 and --at-most 1 exclude each other",
        ),
        (
            ["decode", "p.csv", "--target", "macro_f1", "--decoder", "thresholds"],
            "known label sets",
        ),
        (["decode", "p.csv", "--target", "f1", "--decoder", "batch"], "minimum_risk"),
        (["decode", "p.csv", "--target", "macro_f1", "--decoder", "best"], "'calibrated'"),
        (["predict", "m.skops", "d.csv", "--budget", "4"], "number of labels, which is 3"),
        (
            ["predict", "m.skops", "d.csv", "--format", "probabilities", "--budget", "1"],
            "--budget 1: label sets are decided",
        ),
        (
            ["predict", "m.skops", "d.csv", "--decoder", "micro_macro", "--budget", "1"],
            "--decoder micro_macro finds a threshold",
        ),
        (["fit", "d.csv", "--label-prefix", "is_", "--at-most", "1", "-o", "o.skops"], "is f1"),
    ],
)
def test_what_cannot_be_decided_is_refused(model, words, said, capsys, monkeypatch):
    monkeypatch.chdir(model)
    probabilities("p.csv", [[0.2, 0.7], [0.4, 0.1]])
    assert main(words) == 2
    assert said in " ".join(capsys.readouterr().err.split())
