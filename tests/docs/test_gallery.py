"""Every example of the gallery runs without a complaint and draws at least one picture."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "gallery").glob("plot_*.py"))
NEEDS = {"trees": "xgboost", "network": "torch"}


def test_there_are_twelve():
    assert len(EXAMPLES) == 12


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_draws(example, capsys):
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    for word, module in NEEDS.items():
        if word in example.stem:
            pytest.importorskip(module)
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.close("all")
    try:
        runpy.run_path(str(example))
        figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
        assert figures
        assert all(axis.has_data() or axis.texts for figure in figures for axis in figure.axes)
    finally:
        pyplot.close("all")
