"""docs/evidence.md and its pictures, from stored rows alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.evidence.pictures import (
    LEVEL,
    growth_picture,
    kinds_picture,
    ranks_picture,
    time_picture,
)
from benchmarks.evidence.ranks import Ranking, by_kind, means, ranking
from benchmarks.evidence.tuning import MEASURES, linear_grid
from benchmarks.evidence.unit import recipe
from benchmarks.evidence.work import ROOT, stored
from benchmarks.rows import load

PAGE, PICTURES = ROOT / "docs" / "evidence.md", ROOT / "docs" / "pictures"
# Kinds that are compared with one another; the paper's losses have a table of their own.
COMPARED = ("ours", "scikit-learn", "related", "peer")
Rows = Sequence[dict[str, Any]]


def write(path: Path = PAGE) -> None:
    """Render what the rows say."""
    rows = stored()
    if not rows:
        print("there are no rows yet: python -m benchmarks.evidence --data FOLDER")
        return
    good = [row for row in rows if "failed" not in row]
    kinds = {row["method"]: row["kind"] for row in rows}
    path.write_text("\n\n".join(_parts(rows, good, kinds)) + "\n")


def _parts(rows: Rows, good: Rows, kinds: dict[str, str]) -> list[str]:
    ours = {name for name, kind in kinds.items() if kind == "ours"}
    sets = list(dict.fromkeys(row["set"] for row in good))
    splits = list(dict.fromkeys(row["split"] for row in good))
    parts = [
        "# Evidence",
        f"Every method on the same rows: {len(good):,} answers of {len(kinds)} methods on "
        f"{', '.join(sets)} (splits: {', '.join(splits)}). Penalties and scalings of linear models "
        "are chosen on the same folds of the training rows, from the same grid, by the measure in "
        "question; what takes long has every other penalty of it, and tuned thresholds two. "
        "Networks choose the number of epochs in this way and ML-kNN that of neighbours. Forests, "
        "LightGBM, XGBoost and BOOMER have one setting; SetClassifierCV, SetBooster and "
        "SetEnsemble choose theirs by themselves, within the training rows. Figures are of test "
        "rows; a method that lacks a set is in no ranking, but named below it. In the pictures of "
        "ranks those that chance may explain, beside the first, have a full point, and others a "
        "hollow one (Wilcoxon's test with Holm's correction, at 0.05). This page is rendered from "
        "`benchmarks/results/evidence.jsonl`; `make evidence "
        "DATA=folder` makes what is missing.",
        _edges(good),
    ]
    compared = [name for name, kind in kinds.items() if kind in COMPARED]
    papers = [name for name, kind in kinds.items() if kind in ("paper", "network")]
    for measure in MEASURES:
        found = ranking(good, measure, compared)
        if found.methods:
            parts += [f"## {measure}", _draw(found, ours), _table(found)]
    points = _points(good, "f1", compared)
    if points:
        parts += ["## Quality and time", _picture(time_picture, "time", points, "f1", ours)]
    kinds_of_data = by_kind(good, tuple(MEASURES), compared)
    if len(kinds_of_data) > 1:
        parts += ["## By kind of data", _picture(kinds_picture, "kinds", kinds_of_data, ours)]
    growth = load("model_growth")
    if growth:
        parts += [
            "## How time grows",
            "Of drawn data one size is doubled while the others stay: rows of `model_growth` in "
            "[the measurements](benchmarks.md).",
        ]
        for size in dict.fromkeys(row["grows"] for row in growth):
            own = [row for row in growth if row["grows"] == size]
            parts.append(_picture(growth_picture, f"growth_{size.replace(' ', '_')}", own, size))
    parts += ["## The losses of the paper, and networks"]
    for measure in MEASURES:
        found = ranking(good, measure, papers)
        if found.methods:
            parts += [f"### {measure}, by these", _table(found)]
    return [*parts, "## What could not be run", _failures(rows)]


def _edges(rows: Rows) -> str:
    """How many choices a wider grid might have changed."""
    tuned = [row for row in rows if "C" in row["settings"]]
    if not tuned:
        return "No penalty was chosen from a grid."
    whole = [row for row in tuned if recipe(row["kind"], row["method"]).grid is linear_grid]
    parts = (
        (whole, "from the whole grid"),
        ([r for r in tuned if r not in whole], "from a part of it"),
    )
    told = (
        f"{np.mean([row['at_edge'] for row in own]):.0%} of {len(own):,} chosen {words}"
        for own, words in parts
        if own
    )
    return f"Penalties at an end of their grid: {', '.join(told)}."


def _table(found: Ranking) -> str:
    """Values by set, mean rank, and the p-value against the first."""
    head = ["method", *found.sets, "mean rank", "p against the first"]
    best = found.values.max(axis=1)
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for place, method in enumerate(found.methods):
        cells = [
            f"**{value:.3f}**" if value >= top - 5e-4 else f"{value:.3f}"
            for value, top in zip(found.values[:, place], best, strict=True)
        ]
        p = found.against[place]
        said = "" if p is None else f"{p:.3f}"
        lines.append("| " + " | ".join([method, *cells, f"{found.ranks[place]:.2f}", said]) + " |")
    if found.p is not None:
        lines += ["", f"Friedman's test that all are alike: p = {found.p:.2g}."]
    least = 2.0 * (len(found.methods) - 1) / 2.0 ** len(found.sets)
    if len(found.methods) > 1 and least > LEVEL:
        lines += [
            "",
            f"With {len(found.sets)} sets and so many methods no p against the first can be below "
            f"{min(least, 1.0):.2f}: a high one does not say that two are alike.",
        ]
    if found.left_out:
        listed = ", ".join(f"{method} ({n})" for method, n in found.left_out.items())
        lines += ["", f"Not ranked, since they lack one of the {len(found.sets)} sets: {listed}."]
    return "\n".join(lines)


def _points(rows: Rows, measure: str, among: Sequence[str]) -> dict[str, tuple[float, float]]:
    """For methods that have every set: processor seconds and the mean of a measure."""
    value = means(rows, measure, among)
    sets = {name for name, _ in value}
    seconds: dict[str, list[float]] = {}
    for row in rows:
        if row["target"] == measure:
            seconds.setdefault(row["method"], []).append(
                row["fit_seconds"] + row["predict_seconds"]
            )
    return {
        method: (
            float(np.exp(np.mean(np.log(np.maximum(seconds[method], 1e-3))))),
            float(np.mean([value[name, method] for name in sets])),
        )
        for method in among
        if all((name, method) in value for name in sets)
    }


def _draw(found: Ranking, ours: set[str]) -> str:
    return _picture(ranks_picture, f"rank_{found.measure}", found, ours)


def _picture(draw: Any, name: str, *given: Any) -> str:
    """The picture in both themes, as the page shows it."""
    from matplotlib import rc_context

    # (Text as text, and the same names in every run.)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "setwise"}):
        for theme in ("light", "dark"):
            file = PICTURES / f"evidence_{name}_{theme}.svg"
            draw(*given, theme).savefig(file, metadata={"Date": None})
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" '
        f'srcset="pictures/evidence_{name}_dark.svg"><img alt="{name.replace("_", " ")}" '
        f'src="pictures/evidence_{name}_light.svg"></picture>'
    )


def _failures(rows: Rows) -> str:
    failed = Counter((row["method"], row["failed"]) for row in rows if "failed" in row)
    if not failed:
        return "Every method ran on every set."
    where = {key: [] for key in failed}
    for row in rows:
        if "failed" in row:
            where[row["method"], row["failed"]].append(row["set"])
    return "\n".join(
        f"- {method}: {why} ({', '.join(dict.fromkeys(where[method, why]))})"
        for method, why in failed
    )
