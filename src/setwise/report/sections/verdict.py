"""The answer in one sentence, and the size of what it rests on."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from setwise.report import numbers
from setwise.report.material import Material
from setwise.report.names import name
from setwise.study import Standing


def verdict(material: Material) -> dict[str, Any]:
    """The sentence, whether anything is missing, and facts about the data."""
    results = material.results
    clauses = [_clause(material, material.board.of(target)) for target in material.board.targets]
    sentence = Markup("; ").join(clauses)
    if not clauses:
        sentence = Markup("no method has finished yet")
    n_rows, n_labels = material.board.n_rows, material.board.n_labels
    facts = [
        (numbers.count(n_rows), "held-out rows"),
        (numbers.count(n_labels), "label" if n_labels == 1 else "labels"),
        (f"{material.support.sum() / n_rows:.2f}", "labels a row"),
        (str(len(results.methods)), "method" if len(results.methods) == 1 else "methods"),
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
