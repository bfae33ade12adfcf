"""docs/evidence.md and its pictures, from stored rows alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.evidence.pictures import (
    growth_picture,
    kinds_picture,
    ranks_picture,
    time_picture,
)
from benchmarks.evidence.ranks import LEVEL, Ranking, by_kind, means, ranking
from benchmarks.evidence.tuning import MEASURES
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
    resplit = dict.fromkeys(row["set"] for row in good if row["split"] != "official")
    parts = [
        "# Evidence",
        f"Every method on the same rows: {len(good):,} answers of {len(kinds)} methods on "
        f"{', '.join(sets)} (splits: {', '.join(splits)}). Penalties and scalings of linear models "
        "are chosen on the same folds of the training rows, from the same grid, by the measure in "
        "question; what takes long has every other penalty of it, and tuned thresholds two. Where "
        "the best is at an end, the next penalties beyond are tried too. Networks choose the "
        "number of epochs in this way, ML-kNN that of neighbours, MLP the scaling. Forests, "
        "LightGBM, XGBoost and BOOMER have one setting; SetClassifierCV, SetBooster and "
        "SetEnsemble choose theirs by themselves, within the training rows. Figures are means over "
        "the splits of a set that all ranked methods have; a method that lacks a set, or splits "
        "that most have, is in no ranking, but named below it.",
        "Two questions are asked. Would *other splits* of these sets put a method behind the "
        "first? That is *p against the first*: a t-test on the splits that both have, its variance "
        "corrected for the rows which splits share (Nadeau and Bengio, 2003), summed over sets, "
        "with Holm's correction; in the pictures, those told apart have a hollow point. Would "
        "*other sets*? That takes more sets than there are: Nemenyi's critical difference, the "
        "line at the top, says by how much mean ranks would have to differ; *Wilcoxon* is the p of "
        "signed ranks over the sets, with Holm's correction. Other splits than the "
        f"official one are there for {', '.join(resplit) or 'no set'}; "
        "the first test rests on these sets only, and needs three splits of a set. This page is "
        "rendered "
        "from `benchmarks/results/evidence.jsonl`; `make evidence DATA=folder` makes what is "
        "missing; with `python -m benchmarks.evidence --check` rows are run again and compared.",
        _edges(good) + _short_training(good),
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
    """How many choices a wider grid might have changed, and whose they are."""
    tuned = [row for row in rows if "C" in row["settings"]]
    if not tuned:
        return "No penalty was chosen from a grid."
    ends = Counter(row["method"] for row in tuned if row["at_edge"])
    whose = ", ".join(f"{method} ({n})" for method, n in ends.most_common(5))
    share = f"{ends.total() / len(tuned):.0%} of {len(tuned):,} penalties"
    return f"At an end of those tried are {share}" + (f", most of {whose}." if whose else ".")


def _short_training(rows: Rows) -> str:
    """Where MLP has rows of an earlier recipe, which had a penalty."""
    sets = [row["set"] for row in rows if row["method"] == "MLP" and "C" in row["settings"]]
    where = ", ".join(dict.fromkeys(sets))
    return f" On {where} MLP was trained for 60 epochs only, and chose a penalty." if sets else ""


def _table(found: Ranking) -> str:
    """Values by set, mean rank, and the p-values against the first."""
    head = ["method", *found.sets, "mean rank", "p against the first", "Wilcoxon"]
    best = found.values.max(axis=1)
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for place, method in enumerate(found.methods):
        cells = [
            f"**{value:.3f}**" if value >= top - 5e-4 else f"{value:.3f}"
            for value, top in zip(found.values[:, place], best, strict=True)
        ]
        tests = found.against[place], found.over_sets[place]
        said = ["" if p is None else f"{p:.2g}" for p in tests]
        lines.append("| " + " | ".join([method, *cells, f"{found.ranks[place]:.2f}", *said]) + " |")
    if found.p is not None:
        lines += [
            "",
            f"Over sets: Friedman's test that all are alike has p = {found.p:.2g}. By these "
            f"{len(found.sets)} sets alone two of so many methods are told apart, at {LEVEL}, if "
            f"their mean ranks differ by {found.critical:.1f} (Nemenyi).",
        ]
    if found.left_out:
        listed = ", ".join(f"{method} ({n})" for method, n in found.left_out.items())
        lacking = f"Not ranked, since they lack one of the {len(found.sets)} sets, or splits of it"
        lines += ["", f"{lacking}: {listed}."]
    return "\n".join(lines)


def _points(rows: Rows, measure: str, among: Sequence[str]) -> dict[str, tuple[float, float]]:
    """For methods that have every set: processor seconds and the mean of a measure."""
    value = means(rows, measure, among)
    sets = {name for name, _ in value}
    seconds: dict[str, list[float]] = {}
    for row in rows:
        if (row["target"], row["split"]) == (measure, "official"):
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
