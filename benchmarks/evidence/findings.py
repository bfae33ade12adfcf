"""docs/findings.md: what the evidence says in plain words, every figure computed from its rows.

A sentence has the direction that its figures have: what rows change, the page says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.evidence.gains import LEAST, Gain, Rows, gain
from benchmarks.evidence.methods import COMP_SUM, MARGINS, SPACES
from benchmarks.evidence.ranks import ranking
from benchmarks.evidence.tuning import MEASURES
from benchmarks.evidence.work import ROOT, stored

PAGE = ROOT / "docs" / "findings.md"
# Measures as a sentence calls them.
SPOKEN = {
    "f1": "F1", "jaccard": "Jaccard", "subset": "subset accuracy", "hamming": "1 − Hamming",
    "macro_f1": "macro-F1", "micro_f1": "micro-F1",
}  # fmt: skip
OF_ROWS = tuple(MEASURES)[:4]
# Kinds of methods that are not ours, and those that are linear in the features.
THEIRS = ("peer", "scikit-learn", "related")
LINEAR = (
    "SetClassifierCV", "TargetDecoder(one-vs-rest)", "one-vs-rest", "tuned thresholds",
    "classifier chain", "ensemble of chains", "gfm: GFM", "multilearn: label powerset",
    "multilearn: RAkEL-d", "extreme: napkinXC BR", "extreme: napkinXC PLT", "extreme: xcolumns",
    "libmultilabel: 1vsrest", "libmultilabel: thresholding",
)  # fmt: skip
OURS = ("SetEnsemble", "SetBooster", "SetClassifierCV")
# What is compared, as it is called, and the names of both methods.
Pairs = Sequence[tuple[str, str, str]]
RISK = "likelihood, {}, minimum risk".format
DECIDED: Pairs = [
    ("one-vs-rest", "TargetDecoder(one-vs-rest)", "one-vs-rest"),
    ("random forest", "TargetDecoder(random forest)", "random forest"),
    ("extra trees, as votes for seen sets", "CatalogClassifier(extra trees)", "extra trees"),
    ("network", "network: cross-entropy, decoded", "network: cross-entropy"),
    *((f"likelihood on {one}", RISK(one), f"likelihood, {one}, most likely")
      for one in (*SPACES, "backoff")),
]  # fmt: skip
INSTEAD: Pairs = [
    (f"{space} instead of cube", RISK(space), RISK("cube"))
    for space in ("sized", "forest", "catalog", "joint", "backoff")
]
CONSTRAINED = ("constrained exponential", "constrained squared_hinge")
LOSSES: Pairs = [
    (f"{name} on {space}", f"{name}, {space}", RISK(space))
    for names, where in ((COMP_SUM, SPACES), (CONSTRAINED, ("cube", "joint")))
    for name in names
    for space in where
]
OF_MARGINS: Pairs = [(f"{name} margin", f"binary relevance, {name}", "one-vs-rest")
                     for name in MARGINS]  # fmt: skip
OF_NETWORKS: Pairs = [
    (name, f"network: {name}", "network: cross-entropy")
    for name in ("focal", "asymmetric", "ZLPR", "two-way", "sigmoidF1", "distribution-balanced",
                 "expected loss", "cross-entropy, decoded", "likelihood of seen sets, decoded")
]  # fmt: skip
Gains = dict[str, dict[str, Gain]]  # what is compared -> measure -> gain


def found(rows: Rows, pairs: Pairs, measures: Sequence[str] = tuple(MEASURES)) -> Gains:
    """The gains that there are rows of."""
    by = {
        words: {name: own for name in measures if (own := gain(rows, name, one, other))}
        for words, one, other in pairs
    }
    return {words: own for words, own in by.items() if own}


def table(gains: Gains, measures: Sequence[str] = tuple(MEASURES)) -> str:
    """Mean gains, in brackets on how many sets there is more and on how many less."""
    lines = _head("", measures)
    for words, own in gains.items():
        cells = (str(own[name]) if name in own else "–" for name in measures)
        lines.append(f"| {words} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _head(first: str, measures: Sequence[str]) -> list[str]:
    names = " | ".join(SPOKEN[name] for name in measures)
    return [f"| {first} | {names} |", "|---" * (len(measures) + 1) + "|"]


def sets_of(gains: Gains) -> str:
    """The data sets of some comparisons."""
    every = (name for own in gains.values() for one in own.values() for name in one.by_set)
    return ", ".join(dict.fromkeys(every))


def told(gains: Gains, measures: Sequence[str] = tuple(MEASURES)) -> str:
    """For each measure how many gain and lose, and by how much, in a sentence."""
    said = []
    for name in measures:
        means = {words: own[name].mean for words, own in gains.items() if name in own}
        if means:
            more, less = (sum(sign * one > LEAST for one in means.values()) for sign in (1, -1))
            ends = sorted(means, key=lambda words: means[words])[:: max(len(means) - 1, 1)]
            span = " to ".join(f"{means[words]:+.3f} ({words})" for words in ends)
            count = f"{more} of {len(means)} have more, {less} less"
            said.append(f"- {SPOKEN[name]}: {count}; {span}.")
    return "\n".join(said)


def short(rows: Rows) -> Iterator[str]:
    """The page in a few lines."""
    decided = found(rows, DECIDED, ("f1",))
    models = (f"{one} {decided[one]['f1']}" for one, *_ in DECIDED[:4] if one in decided)
    yield f"- *Deciding for the measure*, F1: {', '.join(models)}."
    seen = found(rows, INSTEAD).get("catalog instead of cube", {})
    listed = (f"{SPOKEN[name]} {own}" for name, own in seen.items())
    yield f"- *Seen label sets instead of all* (catalog instead of cube): {', '.join(listed)}."
    trained = found(rows, LOSSES, OF_ROWS)
    parts = []
    for name in OF_ROWS:
        means = {words: own[name].mean for words, own in trained.items() if name in own}
        if means:
            best = max(means, key=lambda words: means[words])
            mean = float(np.mean(list(means.values())))
            parts.append(f"{SPOKEN[name]} {mean:+.3f} ({best} {means[best]:+.3f})")
    yield f"- *The paper's losses instead of likelihood*, mean and best: {', '.join(parts)}."
    other = found(rows, OF_NETWORKS, ("f1",))
    listed = (f"{words} {own['f1']}" for words, own in other.items())
    yield f"- *A network's loss instead of cross-entropy*, F1: {', '.join(listed)}."
    own = {one: gain(rows, "f1", one, "one-vs-rest") for one in OURS}
    listed = (
        f"{one} {told} in {slower(rows, one, 'one-vs-rest'):.1f} times its time"
        for one, told in own.items()
        if told
    )
    yield f"- *Ours instead of tuned one-vs-rest*, F1: {', '.join(listed)}."


def deciding(rows: Rows) -> Iterator[str]:
    """What minimum risk adds to any model."""
    gains = found(rows, DECIDED)
    yield (
        "A model that tells probabilities, its label sets those of least expected loss, against "
        "the same kind of model cut at 1/2, or its most likely set. (`TargetDecoder` does it for "
        "any classifier, `CatalogClassifier` with votes for seen sets; macro- and micro-F1 have "
        f"cuts of their own.) Data: {sets_of(gains)}."
    )
    yield told(gains)
    yield (
        "By Hamming loss the cut at 1/2 is the best decision already, and by subset accuracy the "
        "most likely set: there theory expects no difference."
    )
    yield table(gains)


def spaces(rows: Rows) -> Iterator[str]:
    """What summing over other label sets brings, and what it costs."""
    gains = found(rows, INSTEAD)
    yield (
        "The same linear scores and likelihood, decided for the measure, over other label sets "
        "than all of them (cube): with a weight for each size (sized), pairs of labels on a tree "
        "(forest), only sets seen in training with a bias (catalog) or scores (joint) for each, "
        f"or seen sets on top of sized (backoff). Data: {sets_of(gains)}."
    )
    yield told(gains)
    yield table(gains)
    times = {one: slower(rows, RISK(one), RISK("cube")) for one in (*SPACES[1:], "backoff")}
    listed = ", ".join(f"{one} {ratio:.1f}" for one, ratio in times.items() if ratio)
    yield f"Processor seconds over those of cube: {listed}." if listed else ""


def losses(rows: Rows) -> Iterator[str]:
    """When the paper's losses help and when they hurt."""
    gains = found(rows, LOSSES, OF_ROWS)
    yield (
        "Trained for the measure itself and predicting the most likely set, against the likelihood "
        f"on the same space decided for the measure. Data: {sets_of(gains)}."
    )
    yield told(gains, OF_ROWS)
    lines = _head("mean over spaces", OF_ROWS)
    for loss in (*COMP_SUM, *CONSTRAINED):
        own = [by for words, by in gains.items() if words.startswith(f"{loss} on ")]
        means = ([by[name].mean for by in own if name in by] for name in OF_ROWS)
        cells = (f"{np.mean(one):+.3f}" if one else "–" for one in means)
        lines += [f"| {loss} | " + " | ".join(cells) + " |"] if own else []
    yield "\n".join(lines)
    yield (
        "The losses are summed exactly. With one score for each label, though, only the mean "
        "absolute error has a [guarantee](guarantees.md) for F1, Jaccard and subset accuracy on "
        "all label sets, and it is not convex. Each by itself:"
    )
    yield table(gains, OF_ROWS)
    margins = found(rows, OF_MARGINS)
    if margins:
        yield f"Binary relevance with other margins, against one-vs-rest: {sets_of(margins)}."
        yield table(margins)


def networks(rows: Rows) -> Iterator[str]:
    """Losses of one small network against cross-entropy."""
    gains = found(rows, OF_NETWORKS)
    yield (
        "One hidden layer and the same budget for every loss, cut at 1/2 unless decided for the "
        f"measure, against cross-entropy cut at 1/2. Data: {sets_of(gains)}."
    )
    yield told(gains)
    yield table(gains)


def choices(rows: Rows) -> Iterator[str]:
    """For each measure the space, the loss of a network and the model with the most."""
    yield "| for | linear scores on | a network with | of all methods | of the linear ones |"
    yield "|---|---|---|---|---|"
    tables = [found(rows, pairs) for pairs in (INSTEAD, OF_NETWORKS)]
    for name in MEASURES:
        cells = []
        for gains, base in zip(tables, ("cube", "cross-entropy"), strict=True):
            known = {words: own[name] for words, own in gains.items() if name in own}
            sets = max((len(own.by_set) for own in known.values()), default=0)
            means = {words.removesuffix(" instead of cube"): own.mean
                     for words, own in known.items() if len(own.by_set) == sets}  # fmt: skip
            best = max(means, key=lambda words: means[words], default=base)
            most = means.get(best, 0.0)
            cells.append(f"{best}, {most:+.3f}" if most > LEAST else base)
        for among in (_compared(rows), LINEAR):
            ranks = ranking(rows, name, among)
            cells.append(f"{ranks.methods[0]}, rank {ranks.ranks[0]:.1f}" if ranks.methods else "–")
        yield f"| {SPOKEN[name]} | " + " | ".join(cells) + " |"


def _kinds(rows: Rows) -> dict[str, str]:
    return {row["method"]: row["kind"] for row in rows}


def _compared(rows: Rows) -> list[str]:
    return [name for name, kind in _kinds(rows).items() if kind in (*THEIRS, "ours")]


def models(rows: Rows) -> Iterator[str]:
    """Ours against the strongest of the others."""
    theirs = [name for name, kind in _kinds(rows).items() if kind in THEIRS]
    for measure in MEASURES:
        name = next(iter(ranking(rows, measure, theirs).methods), None)
        own = {} if name is None else {ours: gain(rows, measure, ours, name) for ours in OURS}
        said = (
            f"{ours} {one}"
            + ("" if one.p is None else f", p = {one.p:.2g} on {one.n_tested} set(s)")
            for ours, one in own.items()
            if one
        )
        if any(own.values()):
            yield f"- {SPOKEN[measure]}, against {name}: {'; '.join(said)}."


def goals(rows: Rows) -> Iterator[str]:
    """Whether SetEnsemble is first of all, and SetClassifierCV of the linear ones."""
    for ours, among, words in (
        ("SetEnsemble", _compared(rows), "all"), ("SetClassifierCV", LINEAR, "the linear"),
    ):  # fmt: skip
        first, later = [], []
        for measure in MEASURES:
            ranks = ranking(rows, measure, among)
            place = ranks.methods.index(ours) if ours in ranks.methods else 0
            p = ranks.against[place] if place else None
            if place:
                apart = "" if p is None else f", p = {p:.2g}"
                later.append(f"{SPOKEN[measure]} (rank {ranks.ranks[place]:.1f}; "
                             f"{ranks.methods[0]} {ranks.ranks[0]:.1f}{apart})")  # fmt: skip
            elif ours in ranks.methods:
                first.append(SPOKEN[measure])
        not_by = f", but not by {', '.join(later)}" if later else ""
        yield (
            f"- Of {words} methods {ours} has the best mean rank by "
            f"{', '.join(first) or 'no measure'}{not_by}."
        )


def behind(rows: Rows) -> Iterator[str]:
    """Where a method of others has more than SetEnsemble, and whether chance explains it."""
    kinds = _kinds(rows)
    official = [row for row in rows if row["split"] == "official" and row["seed"] == 0]
    by = {(row["target"], row["set"], row["method"]): row for row in official}
    for (measure, name, method), mixed in by.items():
        if method == "SetEnsemble":
            better = [row for row in official if row["set"] == name and row["target"] == measure
                      and kinds[row["method"]] in THEIRS
                      and row[measure] > mixed[measure] + LEAST]  # fmt: skip
            if better:
                yield _behind(rows, mixed, sorted(better, key=lambda row: -row[measure]))


def _behind(rows: Rows, mixed: dict[str, Any], better: Rows) -> str:
    """One such case: by how much, whether within the interval, and on other splits."""
    measure, name, first = mixed["target"], mixed["set"], better[0]
    low, high = mixed[f"{measure} interval"]
    whose = ", ".join(f"{row['method']} {row[measure]:.3f}" for row in better[:3])
    more = f" and {len(better) - 3} more" if len(better) > 3 else ""
    inside = "within" if first[measure] <= high else "beyond"
    other = [row for row in rows if row["set"] == name and row["split"] != "official"]
    own = gain(other, measure, "SetEnsemble", first["method"])
    (n_splits,) = (len(one) for one in own.by_set.values()) if own else (0,)
    elsewhere = f"; on {n_splits} other splits it has {own.mean:+.3f}" if own else ""
    return (
        f"- {SPOKEN[measure]} on {name}: {whose}{more}; SetEnsemble {mixed[measure]:.3f}. That is "
        f"{inside} the interval of its {mixed['test_rows']} test rows, {low:.3f} to "
        f"{high:.3f}{elsewhere}."
    )


def slower(rows: Rows, one: str, other: str) -> float | None:
    """Geometric mean of processor seconds over those of another method, for F1."""
    ratios = _ratios(rows, one, other)
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else None


def _ratios(rows: Rows, one: str, other: str) -> list[float]:
    taken: dict[str, dict[tuple[str, str], float]] = {one: {}, other: {}}
    for row in rows:
        if (row["target"], row["split"]) == ("f1", "official") and row["method"] in taken:
            spent = row["fit_seconds"] + row["predict_seconds"]
            taken[row["method"]][row["set"], row["split"]] = spent
    return [spent / taken[other][key] for key, spent in taken[one].items() if key in taken[other]]


def costs(rows: Rows) -> Iterator[str]:
    """Processor seconds of fitting and predicting over those of tuned one-vs-rest, and memory."""
    yield "| method | time over tuned one-vs-rest | least to most | peak memory, MiB |"
    yield "|---|---|---|---|"
    ratios = {name: _ratios(rows, name, "one-vs-rest")
              for name in _compared(rows)}  # fmt: skip
    known = {name: own for name, own in ratios.items() if own}
    for name, own in sorted(known.items(), key=lambda item: float(np.mean(np.log(item[1])))):
        held = [row["peak_mib"] for row in rows if row["method"] == name and row["peak_mib"]]
        most = f"{max(held):,.0f}" if held else "–"
        middle = float(np.exp(np.mean(np.log(own))))
        yield f"| {name} | {middle:.2f} | {min(own):.2f} to {max(own):.2f} | {most} |"


def parts(rows: Rows) -> list[str]:
    """The page."""
    sets = ", ".join(dict.fromkeys(row["set"] for row in rows))
    splits = ", ".join(dict.fromkeys(row["split"] for row in rows))
    spent = {one: slower(rows, one, "one-vs-rest") for one in OURS}
    return [
        "# Findings",
        f"What the [evidence](evidence.md) says: {len(rows):,} answers of {len(_kinds(rows))} "
        f"methods on {sets} (splits {splits}). Every figure is computed from these rows when the "
        "page is written. A difference is a mean over the data sets that both methods have; in "
        "brackets on how many of them there is more, and on how many less. Few sets say little of "
        "others.",
        "\n".join(short(rows)),
        "## What to use",
        "What has the most of those compared on most sets: by mean gain over cube, by mean gain "
        "over cross-entropy, by mean rank.",
        "\n".join(choices(rows)),
        "## What does deciding for the measure add to a model?",
        *deciding(rows),
        "## What does summing over other label sets bring?",
        *spaces(rows),
        "## When do the losses of the paper help, and when do they hurt?",
        *losses(rows),
        "## Which loss for a network?",
        *networks(rows),
        "## Which model?",
        "Ours against the method of others with the best mean rank. p, where both have other "
        "splits too: how likely such a difference is if on all splits of these sets together there "
        "were none. It says nothing of other sets.",
        "\n".join(models(rows)),
        "## Where are we behind?",
        "\n".join(goals(rows)),
        "On official splits, methods of others with more than SetEnsemble:\n\n"
        + ("\n".join(behind(rows)) or "None."),
        "## What does it cost?",
        "Over tuned one-vs-rest, in processor seconds for F1: "
        + ", ".join(f"{one} {ratio:.1f} times" for one, ratio in spent.items() if ratio)
        + ". Choosing settings, training and prediction on one thread. Forests, LightGBM, XGBoost "
        "and BOOMER choose nothing, and what one model serves is chosen for every measure at once. "
        "Geometric means over the official splits that a method has; memory is the most of any.",
        "\n".join(costs(rows)),
    ]


def write(path: Path = PAGE) -> None:
    """Render what the rows say."""
    good = [row for row in stored() if "failed" not in row]
    if good:
        path.write_text("\n\n".join(part for part in parts(good) if part) + "\n")
