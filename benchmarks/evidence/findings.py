"""docs/findings.md: what the evidence says in plain words, every figure computed from its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.evidence.methods import COMP_SUM, MARGINS, SPACES
from benchmarks.evidence.tuning import MEASURES
from benchmarks.evidence.work import ROOT, stored

PAGE = ROOT / "docs" / "findings.md"
# Measures as a sentence calls them.
SPOKEN = {
    "f1": "F1", "jaccard": "Jaccard", "subset": "subset accuracy", "hamming": "1 − Hamming",
    "macro_f1": "macro-F1", "micro_f1": "micro-F1",
}  # fmt: skip
OF_ROWS = tuple(MEASURES)[:4]
# Kinds of methods that are not ours.
THEIRS = ("peer", "scikit-learn", "related")
# A difference below this is called none.
LEAST = 5e-4
Rows = Sequence[dict[str, Any]]
# What is compared, as it is called, and the names of both methods.
Pairs = Sequence[tuple[str, str, str]]


class Difference(NamedTuple):
    """What one method has over another in a measure: a mean for each data set."""

    by_set: dict[str, float]

    @property
    def mean(self) -> float:
        """Over data sets."""
        return float(np.mean(list(self.by_set.values())))

    def __str__(self) -> str:
        values = self.by_set.values()
        won = sum(value > LEAST for value in values)
        lost = sum(value < -LEAST for value in values)
        return f"{self.mean:+.3f} ({won}/{lost})"


def difference(rows: Rows, measure: str, one: str, other: str) -> Difference | None:
    """Of rows that both have: the same set, split and seed, each made for the measure."""
    found: dict[str, dict[tuple[str, int], dict[str, float]]] = {}
    for row in rows:
        if row["target"] == measure and row["method"] in (one, other):
            pair = found.setdefault(row["set"], {}).setdefault((row["split"], row["seed"]), {})
            pair[row["method"]] = row[measure]
    gains = {
        name: [pair[one] - pair[other] for pair in pairs.values() if len(pair) == 2]
        for name, pairs in found.items()
    }
    by_set = {name: float(np.mean(own)) for name, own in gains.items() if own}
    return Difference(by_set) if by_set else None


def compared(rows: Rows, pairs: Pairs, measures: Sequence[str] = tuple(MEASURES)) -> str:
    """What the most and the least differ by, in a sentence for each measure, and a table of all."""
    found = {
        words: [difference(rows, name, one, other) for name in measures]
        for words, one, other in pairs
    }
    found = {words: cells for words, cells in found.items() if any(cells)}
    if not found:
        return "No rows yet."
    sentences = []
    for place, name in enumerate(measures):
        known = {words: cells[place] for words, cells in found.items() if cells[place]}
        if known:
            first, last = (f(known.items(), key=lambda item: item[1].mean) for f in (max, min))
            most, least = (f"{gain.mean:+.3f} ({words})" for words, gain in (first, last))
            between = f" between {least} and" if last[0] != first[0] else ""
            sentences.append(f"- {SPOKEN[name]} differs by{between} {most}.")
    lines = ["| | " + " | ".join(SPOKEN[name] for name in measures) + " |"]
    lines.append("|---" * (len(measures) + 1) + "|")
    for words, cells in found.items():
        shown = ("–" if one is None else str(one) for one in cells)
        lines.append(f"| {words} | " + " | ".join(shown) + " |")
    return "\n".join([*sentences, "", *lines])


def decided() -> Pairs:
    """What minimum risk adds to any model."""
    return [
        ("one-vs-rest, decided for the measure", "TargetDecoder(one-vs-rest)", "one-vs-rest"),
        ("random forest, decided", "TargetDecoder(random forest)", "random forest"),
        ("extra trees as votes for seen sets", "CatalogClassifier(extra trees)", "extra trees"),
        ("network with cross-entropy, decided", "network: cross-entropy, decoded",
         "network: cross-entropy"),
        *((f"likelihood on {space}", f"likelihood, {space}, minimum risk",
           f"likelihood, {space}, most likely") for space in (*SPACES, "backoff")),
    ]  # fmt: skip


def spaces() -> Pairs:
    """What summing over seen sets brings."""
    made = "likelihood, {}, minimum risk".format
    return [
        (f"{space} instead of cube", made(space), made("cube"))
        for space in ("sized", "forest", "catalog", "joint", "backoff")
    ]


def losses() -> Pairs:
    """The losses of the paper against the likelihood with minimum risk, on the same space."""
    pairs = [
        (f"{name} on {space}", f"{name}, {space}", f"likelihood, {space}, minimum risk")
        for space in SPACES
        for name in COMP_SUM
    ]
    for margin in ("exponential", "squared_hinge"):
        pairs += [
            (f"constrained {margin} on {space}", f"constrained {margin}, {space}",
             f"likelihood, {space}, minimum risk") for space in ("cube", "joint")
        ]  # fmt: skip
    return pairs


def margins() -> Pairs:
    """Binary relevance with its margins against scikit-learn's one-vs-rest."""
    return [(f"{name} margin", f"binary relevance, {name}", "one-vs-rest") for name in MARGINS]


def best_of(
    rows: Rows, measure: str, keep: Callable[[str, str], bool]
) -> tuple[str, Difference] | None:
    """Of the methods kept, that with the best mean over sets which SetEnsemble has too."""
    names = dict.fromkeys((row["kind"], row["method"]) for row in rows)
    found = {
        method: gain
        for kind, method in names
        if keep(kind, method) and (gain := difference(rows, measure, "SetEnsemble", method))
    }
    most = max((len(gain.by_set) for gain in found.values()), default=0)
    full = {name: gain for name, gain in found.items() if len(gain.by_set) == most}
    return min(full.items(), key=lambda item: item[1].mean) if full else None


def models(rows: Rows) -> Iterator[str]:
    """For each measure the strongest method that is not ours, and ours against it."""
    for measure in MEASURES:
        best = best_of(rows, measure, lambda kind, _: kind in THEIRS)
        if best is None:
            continue
        name, gain = best
        said = [f"SetEnsemble {gain}"]
        for ours in ("SetClassifierCV", "SetBooster"):
            own = difference(rows, measure, ours, name)
            said += [f"{ours} {own}"] if own else []
        yield f"- {SPOKEN[measure]}: the strongest of the others is {name}. " + "; ".join(said)


def behind(rows: Rows) -> Iterator[str]:
    """Where a method of others has more than SetEnsemble, and what the best of ours has."""
    official = [row for row in rows if row["split"] == "official"]
    for measure in MEASURES:
        by_set: dict[str, list[dict[str, Any]]] = {}
        for row in official:
            if row["target"] == measure:
                by_set.setdefault(row["set"], []).append(row)
        for name, found in by_set.items():
            ours = [row for row in found if row["kind"] == "ours"]
            mixed = [row[measure] for row in ours if row["method"] == "SetEnsemble"]
            if not mixed:
                continue
            top = max(ours, key=lambda row: row[measure])
            better = sorted(
                (row for row in found if row["kind"] in THEIRS
                 and row[measure] > max(mixed) + LEAST),
                key=lambda row: -row[measure],
            )  # fmt: skip
            if better:
                whose = ", ".join(f"{row['method']} {row[measure]:.3f}" for row in better[:3])
                more = f" and {len(better) - 3} more" if len(better) > 3 else ""
                best = f", best of ours {top['method']} {top[measure]:.3f}"
                yield (
                    f"- {SPOKEN[measure]} on {name}: {whose}{more}; SetEnsemble {max(mixed):.3f}"
                    + (best if top["method"] != "SetEnsemble" else "")
                )


def costs(rows: Rows) -> Iterator[str]:
    """Processor seconds of fitting and predicting over those of tuned one-vs-rest, and memory."""
    yield "| method | time over tuned one-vs-rest | least to most | peak memory, MiB |"
    yield "|---|---|---|---|"
    taken: dict[str, dict[tuple[str, str], float]] = {}
    peak: dict[str, list[float | None]] = {}
    kinds = {row["method"]: row["kind"] for row in rows}
    for row in rows:
        if row["target"] == "f1":
            spent = row["fit_seconds"] + row["predict_seconds"]
            taken.setdefault(row["method"], {})[row["set"], row["split"]] = spent
            peak.setdefault(row["method"], []).append(row["peak_mib"])
    base = taken.get("one-vs-rest", {})
    ratios = {}
    for method, by in taken.items():
        own = [spent / base[key] for key, spent in by.items() if key in base]
        if own and kinds[method] != "paper":
            ratios[method] = own
    for method, own in sorted(ratios.items(), key=lambda item: float(np.mean(np.log(item[1])))):
        middle = float(np.exp(np.mean(np.log(own))))
        held = [one for one in peak[method] if one is not None]
        most = f"{max(held):,.0f}" if held else "–"
        yield f"| {method} | {middle:.2f} | {min(own):.2f} to {max(own):.2f} | {most} |"


def parts(rows: Rows) -> list[str]:
    """The page."""
    sets = ", ".join(dict.fromkeys(row["set"] for row in rows))
    return [
        "# Findings",
        "What the [evidence](evidence.md) says, in plain words. Every figure is computed from the "
        f"stored rows ({len(rows):,} answers on {sets}) when the page is written. A difference is "
        "a mean over the data sets that both methods have; in brackets on how many of them it is "
        "above 0 and on how many below. How settings were chosen is told there. What few sets show "
        "may be chance.",
        "## What deciding for the measure adds to a model",
        "What the label set of least expected loss under a model's probabilities has over a cut at "
        "0.5, or over the most likely set, of the same kind of model; settings were chosen for "
        "each. (For macro-F1 it is a cut of its own for each label, for micro-F1 one for all.)",
        compared(rows, decided()),
        "## What the space of label sets brings",
        "The same linear scores and likelihood, summed over other label sets: those of a size "
        "(sized), a tree of labels (forest), the sets seen in training (catalog, with a bias for "
        "each; joint, with scores for each), and seen sets on top of sized (backoff). All decided "
        "for the measure.",
        compared(rows, spaces()),
        "## When the losses of the paper help, and when they hurt",
        "Trained for the measure itself and predicting the most likely set, against the likelihood "
        "of the same space decided for the measure.",
        compared(rows, losses(), OF_ROWS),
        "Binary relevance with each margin, against one-vs-rest logistic regression:",
        compared(rows, margins()),
        "## Which model",
        "\n".join(models(rows)),
        "## Where we are behind",
        "On official splits, methods of others with more than SetEnsemble. The best of ours is "
        "named too; that it is the best was seen on these test rows.\n\n"
        + ("\n".join(behind(rows)) or "None."),
        "## What it costs",
        "Choosing settings, training and prediction for F1, in processor seconds of one thread. "
        "Forests, LightGBM, XGBoost and BOOMER choose nothing, and what one model serves is chosen "
        "for every measure at once. Geometric means over the sets that a method has; memory is the "
        "most of any of them.",
        "\n".join(costs(rows)),
    ]  # fmt: skip


def write(path: Path = PAGE) -> None:
    """Render what the rows say."""
    good = [row for row in stored() if "failed" not in row]
    if good:
        path.write_text("\n\n".join(part for part in parts(good) if part) + "\n")
