"""Who is best for which target: verdict, figures with intervals, guarantees, exact regret, time."""

from __future__ import annotations

import math
import re
from itertools import groupby
from typing import Any

from markupsafe import Markup

from setwise.evaluation import Figure
from setwise.evaluation.figure import GROUPS
from setwise.report import words
from setwise.report.drawing import INSET, Frame, Strip, line, linear, logarithmic, mark, picture
from setwise.report.material import ALONE, Material
from setwise.study import Outcome, Standing


def verdict(material: Material) -> dict[str, Any]:
    """The sentence, whether anything is missing, and facts about the data."""
    results, board = material.results, material.board
    clauses = [_clause(material, board.of(target)) for target in board.targets]
    shown = Markup(" ").join(map(Markup('<span class="clause">{}.</span>').format, clauses))
    n_asked = len(results.methods) * len(results.targets)
    facts = [
        _counted(board.n_rows, "held-out row" if material.trained else "row"),
        _counted(board.n_labels, "label"),
        (f"{material.support.sum() / board.n_rows:.2f}", "labels per row"),
        _counted(len(results.methods), "method" if material.trained else "prediction"),
        _counted(len(results.targets), "target"),
        _counted(len(results.n_train), "fold"),
    ]
    return {
        "sentence": shown or "No method has finished yet.",
        "n_missing": n_asked - len(results.outcomes),
        "n_asked": n_asked,
        "facts": facts if len(results.n_train) > 1 else facts[:-1],
    }


def _counted(number: int, what: str) -> tuple[str, str]:
    return words.count(number), f"{what}{'s' * (number != 1)}"


def _clause(material: Material, standings: tuple[Standing, ...]) -> Markup:
    """Who is best for one target, and who is as good for all one can tell."""
    best, measure = standings[0], material.measures[standings[0].target]
    ends = measure.ends(best.low, best.high)
    decimals = words.decimals_for(*ends)
    reached = Markup('<span class="figure">{} <span class="quiet">{}</span></span>').format(
        words.share(measure.shown(best.value), decimals), words.interval(ends, decimals)
    )
    if measure.scale is not None:
        reached += Markup(", {} per row").format(measure.scale.said(best.value))
    if best.method == ALONE:
        return Markup("For <bdi>{}</bdi>, {}").format(measure.spoken, reached)
    verb = "reaches" if len(standings) == 1 else "is best:"
    said = Markup("For <bdi>{}</bdi>, <strong>{}</strong> {} {}").format(
        measure.spoken, words.name(best.method), verb, reached
    )
    tied = [standing.method for standing in standings[1:] if standing.is_best_or_tied]
    if len(tied) > 1 and len(tied) == len(standings) - 1:
        said += ", but no other method is significantly worse"
    elif tied:
        said += Markup(", with {} not significantly worse").format(words.names(tied))
    return said


def leaderboards(material: Material) -> dict[str, Any] | None:
    """A table for each target."""
    board = material.board
    if not len(board):
        return None
    most = max(len(board.of(target)) for target in board.targets)
    least_p = most * (most - 1) / 2 / (board.n_bootstrap + 1)
    return {
        # (A study of one method says that there is no other; of a prediction none is expected.)
        "alone": most == 1 and not material.trained,
        "boards": [_board(material, target) for target in board.targets],
        "too_few": board.n_bootstrap > 0 and least_p > 1.0 - board.confidence,
    }


def _board(material: Material, target: str) -> dict[str, Any]:
    standings, measure = material.board.of(target), material.measures[target]
    ends = [measure.ends(standing.low, standing.high) for standing in standings]
    values = [measure.shown(standing.value) for standing in standings]
    known: list[Any] = [pair for pair in ends if None not in pair]
    widest = max((high - low for low, high in known), default=None)
    shown = [*values, *(end for pair in known for end in pair)]
    present = {standing.method for standing in standings}
    return {
        "measure": measure,
        "strip": Strip(linear(shown, INSET, 100.0 - INSET, most=4)),
        "decimals": words.decimals_for(0.0, widest, least=3),
        "standings": list(zip(standings, values, ends, strict=True)),
        "words": _words(standings),
        "missing": [method for method in material.results.methods if method not in present],
    }


def _words(standings: tuple[Standing, ...]) -> Markup:
    """Which differences are significant."""
    best, others = words.name(standings[0].method), standings[1:]
    if not others:
        return Markup("There is no other method to compare with.")
    if standings[0].low is None:
        return Markup("Without a bootstrap, the significance of differences is unknown.")
    tied = [standing.method for standing in others if standing.is_best_or_tied]
    worse = [standing.method for standing in others if not standing.is_best_or_tied]
    if not tied:
        beaten = {1: words.names(worse), 2: "both others"}.get(len(worse), "all others")
        return Markup("{} is significantly better than {}.").format(best, beaten)
    if not worse and len(tied) > 1:
        return Markup("No other method is significantly worse than {}.").format(best)
    said = Markup("{} {} not significantly worse than {}").format(*_are(tied), best)
    return said + (Markup("; {} {}.").format(*_are(worse)) if worse else ".")


def _are(methods: list[str]) -> tuple[Markup, str]:
    return words.names(methods), "is" if len(methods) == 1 else "are"


def figures(material: Material) -> list[dict[str, Any]]:
    """Every figure of every method, panel by panel, group by group."""
    panels = []
    for panel, evaluations in material.judged:
        groups: dict[str, dict[str, list[Figure | None]]] = {}
        for figure in (figure for own in evaluations.values() for figure in own.values()):
            cells = [own.figures.get(figure.name) for own in evaluations.values()]
            groups.setdefault(figure.group, {})[figure.name] = cells
        ordered = sorted(groups.items(), key=lambda pair: GROUPS.index(pair[0]))
        panels.append({"title": panel.title, "methods": list(evaluations), "groups": ordered})
    return panels


def methods(material: Material) -> list[dict[str, Any]] | None:
    """For each method what it does, and what is guaranteed of it; of what was trained.

    The first sentence of a guarantee is shown, what follows it on request.
    """
    outcomes, told = material.results.outcomes, material.results.descriptions
    rows = []
    for method in dict.fromkeys(outcome.method for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.method == method]
        found = _guarantees(material, own).items()
        texts = [(*words.first_sentence(text), of) for text, of in found]
        described = words.prose(told.get(method, ""))
        rows.append({"name": method, "description": described, "texts": texts})
    return rows if material.trained else None


def _guarantees(material: Material, outcomes: list[Outcome]) -> dict[str, list[str]]:
    """The guarantees of a method with the titles of their targets.

    Those that differ by the name of their target only are one, of "the target".
    """
    exact, unnamed = {}, {}
    for outcome in outcomes:
        titles = outcome.target, material.measures[outcome.target].title
        named = "|".join(rf"(?<!\w){re.escape(title)}(?!\w)" for title in titles)
        text = words.prose(outcome.guarantee)
        exact.setdefault(text, []).append(titles[1])
        unnamed.setdefault(re.sub(named, "the target", text), []).append(titles[1])
    return unnamed if len(unnamed) < len(exact) else exact


def timing(material: Material) -> dict[str, Any] | None:
    """The outcomes of each method: the mean time over folds, and predicting a thousand rows."""
    timed = [outcome for outcome in material.results.outcomes if outcome.fit_seconds]
    if not timed:
        return None
    means = [sum(outcome.fit_seconds) / len(outcome.fit_seconds) for outcome in timed]
    pairs = zip(timed, means, strict=True)
    return {
        "strip": Strip(logarithmic(means, INSET, 100.0 - INSET, most=4)),
        "methods": [(m, list(own)) for m, own in groupby(pairs, lambda pair: pair[0].method)],
    }


def regret(material: Material) -> list[dict[str, Any]]:
    """For each target where regret is known: the least first, with bounds and a picture."""
    truth = material.results.truth
    if truth is None:
        return []
    boards = []
    for target in (target for target in material.results.targets if target in truth.best):
        methods = [m for m in material.results.methods if (m, target) in truth.expected]
        regrets = {m: truth.expected[m, target] - truth.best[target] for m in methods}
        # What is 0 but for rounding is 0.
        regrets = {m: 0.0 if abs(value) < 1e-12 else value for m, value in regrets.items()}
        bounds = {m: truth.bound[m, target] for m in methods if (m, target) in truth.bound}
        strip = Strip(logarithmic([*regrets.values(), *bounds.values()], INSET, 100.0 - INSET))
        drawn = _regret_picture(material, target, regrets, bounds)
        ordered = sorted(regrets.items(), key=lambda pair: pair[1])
        board = {"target": target, "strip": strip, "regrets": ordered}
        boards += [board | {"bounds": bounds, "picture": drawn}] if methods else []
    return boards


def _regret_picture(
    material: Material, target: str, regrets: dict[str, float], bounds: dict[str, float]
) -> Any:
    """Regret over surrogate regret, both by factors, with the bound above; None without any."""
    truth: Any = material.results.truth
    known = {m: truth.surrogate_regret.get((m, target), 0.0) for m in regrets}
    known = {method: value for method, value in known.items() if 0.0 < value < math.inf}
    if not known:
        return None
    heights = [*(regrets[m] for m in known), *(bounds[m] for m in known if m in bounds)]
    frame = Frame(logarithmic(known.values(), 34.0, 242.0, 4), logarithmic(heights, 204.0, 24.0))
    parts = []
    for method, surrogate in known.items():
        style, value, bound = material.styles[method], regrets[method], bounds.get(method, math.inf)
        x, y = frame.at(surrogate, value)
        tip = f"{words.isolated(method)}: regret {words.small(value)}"
        if math.isfinite(bound):
            top = frame.up.at(bound)
            tip += f", at most {words.small(bound)}"
            parts.append(line(x, y, x, top, f"reach {style.colour}"))
            parts.append(line(x - 7, top, x + 7, top, f"limit {style.colour}"))
        parts.append(mark(style, x, y, tip))
    title = "Regret over surrogate regret, with bounds; the table has the numbers"
    grid = frame.grid("regret of the loss trained on", "regret")
    return picture(252, 244, title, grid, *parts)
