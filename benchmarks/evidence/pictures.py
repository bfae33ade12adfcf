"""Pictures of the evidence: mean ranks with what chance cannot tell apart, quality against time."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.evidence.ranks import Ranking
from benchmarks.pictures import BLUE, COLOURS, FAINT, INK, MARKERS, Theme, _axes

# What is not told apart from the best at this level is drawn as one with it.
LEVEL = 0.05


def ranks_picture(found: Ranking, ours: set[str], theme: Theme = "light") -> Any:
    """Methods by mean rank; those not told apart from the first are joined by a bar."""
    figure, axes = _axes(theme, f"mean rank by {found.measure} over {len(found.sets)} sets")
    figure.set_size_inches(7.0, 1.0 + 0.24 * len(found.methods))
    places = np.arange(len(found.methods))
    for place, method, rank in zip(places, found.methods, found.ranks, strict=True):
        colour = BLUE[theme] if method in ours else INK[theme]
        axes.plot([1.0, rank], [place, place], color=FAINT[theme], linewidth=1.0)
        axes.plot([rank], [place], "o", markersize=5, color=colour)
        axes.annotate(
            f" {method}  {rank:.1f}", (rank, place), color=colour, fontsize=8, va="center"
        )
    alike = [i for i, p in enumerate(found.against) if p is None or p > LEVEL]
    if len(alike) > 1 and alike == list(range(len(alike))):
        axes.plot([0.7, 0.7], [alike[0], alike[-1]], color=COLOURS[0], linewidth=3)
    axes.set(xlabel="mean rank (1 is best)", yticks=[], xlim=(0.4, len(found.methods) * 1.35))
    axes.invert_yaxis()
    return figure


def time_picture(
    points: dict[str, tuple[float, float]], measure: str, ours: set[str], theme: Theme = "light"
) -> Any:
    """Mean of a measure against the geometric mean of processor seconds, a point a method."""
    figure, axes = _axes(theme, f"{measure} against the time of training and prediction")
    for number, (method, (seconds, value)) in enumerate(points.items()):
        colour = BLUE[theme] if method in ours else COLOURS[number % len(COLOURS)]
        marker = MARKERS[number % len(MARKERS)]
        axes.plot([seconds], [value], marker, color=colour, markersize=5)
        axes.annotate(f" {method}", (seconds, value), fontsize=7, color=colour, va="center")
    axes.set(xscale="log", xlabel="processor seconds, geometric mean", ylabel=f"mean {measure}")
    return figure
