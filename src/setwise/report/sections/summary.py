"""What was asked and what came out, in words: verdict, question, guarantees, time, repetition."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from markupsafe import Markup

from setwise.report import numbers
from setwise.report.drawing import INSET, Strip, logarithmic
from setwise.report.material import ALONE, Material
from setwise.report.names import name, prose
from setwise.study import Standing


def verdict(material: Material) -> dict[str, Any]:
    """The sentence, whether anything is missing, and facts about the data."""
    results = material.results
    clauses = [_clause(material, material.board.of(target)) for target in material.board.targets]
    sentence = Markup("; ").join(clauses)
    if not clauses:
        sentence = Markup("no method has finished yet")
    n_rows, n_labels = material.board.n_rows, material.board.n_labels
    kind = "method" if material.trained else "prediction"
    facts = [
        (numbers.count(n_rows), "held-out rows" if material.trained else "rows"),
        (numbers.count(n_labels), "label" if n_labels == 1 else "labels"),
        (f"{material.support.sum() / n_rows:.2f}", "labels a row"),
        (str(len(results.methods)), f"{kind}{'s' * (len(results.methods) != 1)}"),
        (str(len(results.targets)), "target" if len(results.targets) == 1 else "targets"),
    ]
    if len(results.n_train) > 1:
        facts.append((str(len(results.n_train)), "folds"))
    return {
        "sentence": Markup("{}{}.").format(sentence[:1].upper(), sentence[1:]),
        "n_missing": material.n_missing,
        "n_asked": len(results.methods) * len(results.targets),
        "facts": facts,
    }


def _clause(material: Material, standings: tuple[Standing, ...]) -> Markup:
    best = standings[0]
    measure = material.measures[best.target]
    low, high = measure.ends(best.low, best.high)
    decimals = numbers.decimals_for(low, high)
    figure = numbers.share(measure.shown(best.value), decimals)
    reached = Markup('<span class="figure">{} <span class="quiet">{}</span></span>').format(
        figure, numbers.interval(low, high, decimals)
    )
    distance = measure.distance(best.value)
    if distance:
        reached += Markup(", {} a row").format(distance)
    if best.method == ALONE:
        return Markup("for <bdi>{}</bdi>, {}").format(measure.spoken, reached)
    words = Markup("for <bdi>{}</bdi>, <strong>{}</strong> {} {}").format(
        measure.spoken, name(best.method), "reaches" if len(standings) == 1 else "is best:", reached
    )
    tied = [standing for standing in standings[1:] if standing.is_best_or_tied]
    if tied and len(tied) == len(standings) - 1 and len(tied) > 1:
        return words + ", no other significantly worse"
    if tied:
        others = numbers.listed([str(name(standing.method)) for standing in tied])
        return words + Markup(", with {} not significantly worse").format(Markup(others))
    return words


# ----------------------------------------------------------------------------------------- question


def question(material: Material) -> dict[str, Any]:
    """Entries of the question, and the targets."""
    results = material.results
    trained = sorted(set(results.n_train))
    rows = " to ".join(numbers.count(n) for n in dict.fromkeys((trained[0], trained[-1]))) if (
        trained
    ) else ""  # fmt: skip
    return {
        "entries": [(key, value) for key, value in results.question.items() if key != "command"],
        "measures": list(material.measures.values()),
        "rows": rows,
        "n_folds": len(results.n_train),
        "n_rows": numbers.count(material.board.n_rows),
        "n_methods": len(results.methods),
    }


# --------------------------------------------------------------------------------------- guarantees


def guarantees(material: Material) -> dict[str, Any] | None:
    """For each method, the texts with the targets they are for; of what was trained."""
    if not material.trained:
        return None
    methods = []
    for method in material.results.methods:
        texts: dict[str, list[str]] = {}
        for outcome in material.results.outcomes:
            if outcome.method == method:
                title = material.measures[outcome.target].title
                texts.setdefault(prose(outcome.guarantee), []).append(title)
        if texts:
            methods.append({"method": method, "style": material.styles[method], "texts": texts})
    return {"methods": methods} if methods else None


# --------------------------------------------------------------------------------------------- time


def timing(material: Material) -> dict[str, Any] | None:
    """A row for each outcome: the mean over folds, and predicting a thousand rows."""
    timed = [outcome for outcome in material.results.outcomes if outcome.fit_seconds]
    if not timed:
        return None
    fits = [float(np.mean(outcome.fit_seconds)) for outcome in timed]
    strip = Strip(logarithmic(fits, INSET, 100.0 - INSET, most=4))
    spans = Counter(outcome.method for outcome in timed)
    rows = []
    for outcome, fit in zip(timed, fits, strict=True):
        predict = sum(outcome.predict_seconds) / material.board.n_rows * 1000
        rows.append(
            {
                "method": outcome.method,
                "style": material.styles[outcome.method],
                "span": spans.pop(outcome.method, 0),
                "target": material.measures[outcome.target].title,
                "fit": numbers.seconds(fit),
                "longest": numbers.seconds(max(outcome.fit_seconds)),
                "predict": numbers.seconds(predict) if outcome.predict_seconds else "–",
                "strip": strip.row(material.styles[outcome.method], fit),
            }
        )
    return {"head": strip.head(), "rows": rows, "several": len(material.results.n_train) > 1}


# ------------------------------------------------------------------------------------- reproduction


def reproduction(material: Material) -> dict[str, Any] | None:
    """The command, seeds, versions, and what was chosen in each fold; of what was trained."""
    results = material.results
    if not material.trained:
        return None
    chosen = [
        (outcome.method, material.measures[outcome.target].title, fold, list(settings.items()))
        for outcome in results.outcomes
        for fold, settings in enumerate(outcome.settings, 1)
        if settings
    ]
    return {
        "command": results.question.get("command"),
        "seeds": [(k, v) for k, v in results.question.items() if "seed" in str(k).lower()],
        "versions": list(results.versions.items()),
        "chosen": chosen,
        "n_bootstrap": material.board.n_bootstrap,
    }
