"""Measures of all rows together on the command line."""

import sys

import numpy as np

from setwise.cli import main
from setwise.decoders import PopulationRule


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
    assert "single row" in capsys.readouterr().err


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
