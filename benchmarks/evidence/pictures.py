"""Pictures of the evidence: ranks with what chance cannot tell apart, quality, time and growth."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

from benchmarks.evidence.ranks import LEVEL, Ranking
from benchmarks.pictures import (
    BLUE,
    COLOURS,
    FAINT,
    INK,
    LINES,
    MARKERS,
    Theme,
    _axes,
    _colours,
    _legend,
)


def ranks_picture(found: Ranking, ours: set[str], theme: Theme = "light") -> Any:
    """Methods by mean rank; those told apart from the first on other splits have a hollow point.

    The line at the top is as long as mean ranks must differ for the sets to tell methods apart.
    """
    figure, axes = _axes(theme, f"mean rank by {found.measure} over {len(found.sets)} sets")
    figure.set_size_inches(7.0, 1.0 + 0.24 * len(found.methods))
    for place, (method, rank, p) in enumerate(
        zip(found.methods, found.ranks, found.against, strict=True)
    ):
        colour = BLUE[theme] if method in ours else INK[theme]
        axes.plot([1.0, rank], [place, place], color=FAINT[theme], linewidth=1.0)
        alike = p is None or p > LEVEL
        fill = colour if alike else "none"
        axes.plot([rank], [place], "o", markersize=5, color=colour, markerfacecolor=fill)
        axes.annotate(
            f"{method}  {rank:.1f}", (rank, place), (6, 0), textcoords="offset points",
            color=colour, fontsize=8, va="center",
        )  # fmt: skip
    axes.plot([1.0, 1.0 + found.critical], [-1, -1], "|-", color=INK[theme], linewidth=1.5)
    axes.annotate(
        "critical difference over sets", (1.0, -1), (0, 4), textcoords="offset points",
        color=INK[theme], fontsize=7,
    )  # fmt: skip
    axes.set(xlabel="mean rank (1 is best)", yticks=[], xlim=(0.4, len(found.methods) * 1.35))
    axes.invert_yaxis()
    return figure


def kinds_picture(
    ranks: dict[str, dict[str, float]], ours: set[str], theme: Theme = "light"
) -> Any:
    """Mean ranks on dense and on sparse sets, a line a method, those of both kinds only."""
    figure, axes = _axes(theme, "mean rank over all measures, by kind of features")
    both = set.intersection(*(set(by) for by in ranks.values()))
    methods = sorted(both, key=lambda name: sum(by[name] for by in ranks.values()))
    figure.set_size_inches(7.0, 1.2 + 0.24 * len(methods))
    for place, name in enumerate(methods):
        values = [by[name] for by in ranks.values()]
        axes.plot(values, [place] * len(values), color=FAINT[theme], linewidth=2.0, zorder=1)
    for number, (kind, by) in enumerate(ranks.items()):
        axes.plot(
            [by[name] for name in methods], range(len(methods)), MARKERS[number], markersize=5,
            color=COLOURS[number], label=kind, linestyle="none",
        )  # fmt: skip
    axes.set(xlabel="mean rank (1 is best)", yticks=range(len(methods)), yticklabels=methods)
    for text, name in zip(axes.get_yticklabels(), methods, strict=True):
        text.set_color(BLUE[theme] if name in ours else INK[theme])
        text.set_fontsize(8)
    axes.invert_yaxis()
    _legend(axes, theme, "best")
    return figure


def growth_picture(rows: Sequence[dict[str, Any]], size: str, theme: Theme = "light") -> Any:
    """Processor seconds of training against a size that doubles, a line a method."""
    figure, axes = _axes(theme, f"time of training by the number of {size}")
    methods = list(dict.fromkeys(row["method"] for row in rows))
    looks = zip(cycle(_colours(theme)), cycle(MARKERS), cycle(LINES), strict=False)
    for method, (colour, marker, line) in zip(methods, looks, strict=False):
        own = [row for row in rows if row["method"] == method]
        along, values = [row[size] for row in own], [row["fit_seconds"] for row in own]
        axes.plot(along, values, line, marker=marker, markersize=4, color=colour, label=method)
    axes.set(xscale="log", yscale="log", xlabel=size, ylabel="processor seconds")
    _legend(axes, theme, "best")
    return figure


def time_picture(
    points: dict[str, tuple[float, float]], measure: str, ours: set[str], theme: Theme = "light"
) -> Any:
    """Mean of a measure against the geometric mean of processor seconds, a point a method."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    figure, axes = _axes(theme, f"{measure} against the time of training and prediction")
    for number, (method, (seconds, value)) in enumerate(points.items()):
        colour = BLUE[theme] if method in ours else COLOURS[number % len(COLOURS)]
        marker = MARKERS[number % len(MARKERS)]
        axes.plot([seconds], [value], marker, color=colour, markersize=5)
        axes.annotate(
            method, (seconds, value), (5, 0), textcoords="offset points", fontsize=7, color=colour,
            va="center",
        )  # fmt: skip
    axes.set(xscale="log", xlabel="processor seconds, geometric mean", ylabel=f"mean {measure}")
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * (high / low) ** 0.4)  # room for the last names
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    return figure
