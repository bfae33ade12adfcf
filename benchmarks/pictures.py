"""Pictures of guarantees: regret against surrogate regret, excess risk against sample size.

matplotlib (the extra ``plots``) is imported when a picture is drawn. Each comes light or dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

import numpy as np

from setwise.consistency.setting import WRONG, Setting, draw, sampled_regrets
from setwise.consistency.verdicts import Gamma

Theme = Literal["light", "dark"]
INK = {"light": "#1f2328", "dark": "#e6edf3"}
PAPER = {"light": "#ffffff", "dark": "#0d1117"}
FAINT = {"light": "#d0d7de", "dark": "#30363d"}
# Told apart by hue and lightness, also without colour vision (Okabe and Ito).
COLOURS = ("#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999")
BLUE = {"light": "#0072b2", "dark": "#58a6ff"}
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Every other line is dashed, so that two that coincide are both seen.
LINES = ("-", "--")


def regret_picture(
    setting: Setting,
    gammas: Sequence[Gamma],
    theme: Theme = "light",
    n_rows: int = 3000,
    seed: int = 0,
) -> Any:
    """Regret against surrogate regret of random distributions and scores, with bounds as curves.

    Points above a curve are counterexamples to its bound; minimisers that predict a wrong set, of
    surrogate regret 0, are marked at the left side. Both axes are logarithmic, surrogate regrets on
    the paper's scale. Returns a matplotlib Figure.
    """
    paid, regret = sampled_regrets(setting, n_rows, seed)
    shown = (regret > 1e-4) & (paid > 1e-8)
    each = "label" if setting.kind == "labelwise" else "label set"
    title = f"{setting.choice} for {setting.target} on {setting.space}, one score a {each}"
    figure, axes = _axes(theme, title)
    blue, red = _colours(theme)[:2]
    axes.scatter(paid[shown], regret[shown], s=5, color=blue, alpha=0.5, linewidths=0)
    along = np.geomspace(paid[shown].min(), paid[shown].max(), 200)
    laws = draw(n_rows // 10, len(setting.truths), np.random.default_rng(seed))
    _, wrong = setting.worst_predictions(laws, setting.minimisers(laws)[0])
    if (wrong > WRONG).any():
        edge = np.full((wrong > WRONG).sum(), along[0])
        label = "minimisers: surrogate regret 0"
        axes.scatter(edge, wrong[wrong > WRONG], s=12, marker="<", color=red, label=label)
    for gamma, style in zip(gammas, ("-", "--", ":", "-."), strict=False):
        label = f"{gamma.formula}: {gamma.theorem}"
        axes.plot(along, gamma(along), style, color=INK[theme], label=label)
    axes.set(xscale="log", yscale="log", xlabel="surrogate regret t", ylabel="regret of the target")
    axes.set_ylim(top=3.0, bottom=1e-4)
    _legend(axes, theme, "lower right")
    return figure


def excess_picture(
    rows: Sequence[dict[str, Any]], title: str, theme: Theme = "light", floor: float = 1e-6
) -> Any:
    """Excess risk against sample size, a line for each method, both axes logarithmic.

    Rows have ``method``, ``n`` and ``excess`` (a mean over repetitions, with ``least`` and
    ``largest``). What is below the floor is drawn at it. Returns a matplotlib Figure.
    """
    figure, axes = _axes(theme, title)
    methods = list(dict.fromkeys(row["method"] for row in rows))
    looks = zip(_colours(theme), MARKERS, cycle(LINES), strict=False)
    for method, (colour, marker, line) in zip(methods, looks, strict=False):
        own = sorted((row for row in rows if row["method"] == method), key=lambda row: row["n"])
        sizes = [row["n"] for row in own]
        values = [[max(row[name], floor) for row in own] for name in ("excess", "least", "largest")]
        axes.plot(sizes, values[0], line, marker=marker, markersize=4, color=colour, label=method)
        axes.fill_between(sizes, values[1], values[2], color=colour, alpha=0.15, linewidth=0)
    axes.set(xscale="log", yscale="log", xlabel="rows to train on", ylabel="excess risk")
    _legend(axes, theme, "lower left")
    return figure


def growth_picture(
    rows: Sequence[dict[str, Any]], title: str, by: str, stages: Sequence[str],
    theme: Theme = "light",
) -> Any:  # fmt: skip
    """Time and memory of two stages against the number of rows or labels (``by``), logarithmic.

    Rows have, of both stages, ``..._seconds`` and ``..._mib``. Returns a Figure.
    """
    figure, axes = _axes(theme, f"{rows[0]['set']}: {title}")
    lines = [
        (f"{stage}, {unit}", f"{stage}_{unit}") for unit in ("seconds", "mib") for stage in stages
    ]
    looks = zip(_colours(theme), MARKERS, ("-", "-", "--", "--"), strict=False)
    for (told, name), (colour, marker, line) in zip(lines, looks, strict=True):
        values, sizes = [row[name] for row in rows], [row[by] for row in rows]
        told = told.replace("mib", "MiB")
        axes.plot(sizes, values, line, marker=marker, markersize=4, color=colour, label=told)
    axes.set(xscale="log", yscale="log", xlabel=by, ylabel="seconds, or MiB at most")
    _legend(axes, theme, "best")
    return figure


def draw_growth(
    rows: Sequence[dict[str, Any]], title: str, by: str, stages: Sequence[str], folder: Path
) -> None:
    """The picture of growth by rows or labels, for light pages and for dark ones."""
    themes: tuple[Theme, ...] = ("light", "dark")
    for theme in themes:
        path = folder / f"{by.removesuffix('s')}_growth_{theme}.svg"
        growth_picture(rows, title, by, stages, theme).savefig(path, metadata={"Date": None})


def _colours(theme: Theme) -> tuple[str, ...]:
    return BLUE[theme], *COLOURS


def _axes(theme: Theme, title: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    if theme not in INK:
        raise ValueError(f"theme must be 'light' or 'dark', but it is {theme!r}")
    figure = Figure(figsize=(7.0, 4.6), dpi=110, facecolor=PAPER[theme], layout="constrained")
    axes = figure.add_subplot(facecolor=PAPER[theme])
    axes.set_title(title, color=INK[theme], fontsize=10)
    axes.tick_params(colors=INK[theme], which="both", labelsize=9)
    axes.xaxis.label.set_color(INK[theme])
    axes.yaxis.label.set_color(INK[theme])
    axes.grid(color=FAINT[theme], linewidth=0.5)
    for side in axes.spines.values():
        side.set_color(FAINT[theme])
    return figure, axes


def _legend(axes: Any, theme: Theme, place: str) -> None:
    axes.legend(
        loc=place, fontsize=8, facecolor=PAPER[theme], edgecolor=FAINT[theme],
        labelcolor=INK[theme],
    )  # fmt: skip
