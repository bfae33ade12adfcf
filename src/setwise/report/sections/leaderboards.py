"""Who is best for which target: figures with intervals, and exact regret where it is known."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

from setwise.evaluation import Figure
from setwise.evaluation.figure import GROUPS
from setwise.report import numbers
from setwise.report.drawing import INSET, Frame, Strip, element, linear, logarithmic, mark, picture
from setwise.report.material import Material
from setwise.report.names import Measure, isolated, name
from setwise.study import Standing


def leaderboards(material: Material) -> dict[str, Any] | None:
    """A table for each target."""
    if not len(material.board):
        return None
    board = material.board
    most = max(len(board.of(target)) for target in board.targets)
    least_p = most * (most - 1) / 2 / (board.n_bootstrap + 1)
    return {
        # (A study of one method says that there is no other; of a prediction none is expected.)
        "alone": most == 1 and not material.trained,
        "boards": [_board(material, target) for target in board.targets],
        "confidence": f"{100 * board.confidence:g} %",
        "level": numbers.share(1.0 - board.confidence, 2),
        "n_bootstrap": numbers.count(board.n_bootstrap),
        "too_few": board.n_bootstrap > 0 and least_p > 1.0 - board.confidence,
    }


def _board(material: Material, target: str) -> dict[str, Any]:
    standings, measure = material.board.of(target), material.measures[target]
    ends = [measure.ends(standing.low, standing.high) for standing in standings]
    values = [measure.shown(standing.value) for standing in standings]
    shown = [*values, *(end for pair in ends for end in pair if end is not None)]
    strip = Strip(linear(shown, INSET, 100.0 - INSET, most=4))
    widest = max(((h - low) for low, h in ends if low is not None and h is not None), default=None)
    decimals = numbers.decimals_for(0.0, widest) if widest else 3
    decimals = max(decimals, 3)
    missing = [m for m in material.results.methods if m not in {s.method for s in standings}]
    return {
        "measure": measure,
        "head": strip.head(),
        "rows": [
            {
                "method": standing.method,
                "style": material.styles[standing.method],
                "value": numbers.share(value, decimals),
                "interval": numbers.interval(*pair, decimals),
                "distance": measure.distance(standing.value),
                "strip": strip.row(material.styles[standing.method], value, _bar(pair)),
                "apart": _apart(standing, measure, place, decimals),
                "leads": place == 0,
                "tied": standing.is_best_or_tied,
            }
            for place, (standing, value, pair) in enumerate(
                zip(standings, values, ends, strict=True)
            )
        ],
        "words": _words(standings),
        "missing": missing,
    }


def _bar(ends: tuple[float | None, float | None]) -> tuple[float, float] | None:
    low, high = ends
    return None if low is None or high is None else (low, high)


def _apart(standing: Standing, measure: Measure, place: int, decimals: int) -> dict[str, str]:
    """The difference to the best, as shown: a worse method has more loss, or less of the rest."""
    if place == 0:
        return {"verdict": "best", "difference": "", "interval": "", "p": ""}
    sign = 1.0 if measure.is_loss else -1.0
    low, high = standing.difference_low, standing.difference_high
    if low is not None and high is not None:
        low, high = sorted((sign * low, sign * high))
    p = standing.adjusted_p
    verdict = "not significantly worse" if standing.is_best_or_tied else "significantly worse"
    if p is None:
        verdict = "as good" if standing.is_best_or_tied else "worse"
    return {
        "verdict": verdict,
        "difference": numbers.share(sign * standing.difference, decimals),
        "interval": numbers.interval(low, high, decimals),
        "p": "" if p is None else ("p < .001" if p < 0.001 else f"p = {numbers.share(p)}"),
    }


def _words(standings: tuple[Standing, ...]) -> Markup:
    """Which differences are significant."""
    best, others = standings[0], standings[1:]
    if not others:
        return Markup("There is no other method to compare it with.")
    if best.low is None:
        return Markup("Without a bootstrap nothing can be said about the differences.")
    tied = [standing for standing in others if standing.is_best_or_tied]
    worse = [standing for standing in others if not standing.is_best_or_tied]
    if not tied:
        all_others = "both others" if len(others) == 2 else "all others"
        if len(others) == 1:
            return Markup("{} is significantly better than {}.").format(
                name(best.method), name(others[0].method)
            )
        return Markup("{} is significantly better than {}.").format(name(best.method), all_others)
    if not worse and len(tied) > 1:
        return Markup("No other method is significantly worse than {}.").format(name(best.method))
    words = Markup("{} {} not significantly worse than {}").format(
        _names(tied), "is" if len(tied) == 1 else "are", name(best.method)
    )
    if worse:
        words += Markup("; {} {}").format(_names(worse), "is" if len(worse) == 1 else "are")
    return words + "."


def _names(standings: list[Standing]) -> Markup:
    return Markup(numbers.listed([str(name(standing.method)) for standing in standings]))


# ------------------------------------------------------------------------------------------ figures


def figures(material: Material) -> dict[str, Any] | None:
    """Every figure of every evaluation with its interval, group by group; None of a study."""
    evaluations = material.evaluations
    if not evaluations:
        return None
    known = {figure.name: figure for own in evaluations.values() for figure in own.values()}
    groups: dict[str, list[dict[str, Any]]] = {group: [] for group in GROUPS}
    for name_, figure in known.items():
        cells = [_cell(own.figures.get(name_)) for own in evaluations.values()]
        groups[figure.group].append({"name": name_, "better": figure.better, "cells": cells})
    return {
        "methods": [(method, material.styles[method]) for method in evaluations],
        "groups": [(group, rows) for group, rows in groups.items() if rows],
        "confidence": f"{100 * material.board.confidence:g} %",
        "n_bootstrap": material.board.n_bootstrap,
    }


def _cell(figure: Figure | None) -> tuple[str, str]:
    """A value with its interval; nothing of a figure that an evaluation has not."""
    if figure is None:
        return "", ""
    decimals = max(3, numbers.decimals_for(figure.low, figure.high))
    value = numbers.share(figure.value, decimals)
    return value, numbers.interval(figure.low, figure.high, decimals)


# ------------------------------------------------------------------------------------------- regret


def regret(material: Material) -> dict[str, Any] | None:
    """A table for each target, the least regret first, and regret over surrogate regret."""
    truth = material.results.truth
    if truth is None:
        return None
    boards = [_regret_board(material, target) for target in material.results.targets]
    if not any(boards):
        return None
    bounded = [
        m for m in material.results.methods if m in {pair[0] for pair in truth.surrogate_regret}
    ]
    return {"boards": [board for board in boards if board], "bounded": bounded}


def _regret_board(material: Material, target: str) -> dict[str, Any] | None:
    truth: Any = material.results.truth
    if target not in truth.best:
        return None
    regrets = {
        method: truth.expected[method, target] - truth.best[target]
        for method in material.results.methods
        if (method, target) in truth.expected
    }
    if not regrets:
        return None
    bounds = {m: truth.bound[m, target] for m in regrets if (m, target) in truth.bound}
    shown = [*regrets.values(), *bounds.values()]
    strip = Strip(logarithmic(shown, INSET, 100.0 - INSET, most=5))
    measure = material.measures[target]
    rows = []
    for method in sorted(regrets, key=lambda method: regrets[method]):
        value, bound = regrets[method], bounds.get(method)
        rows.append(
            {
                "method": method,
                "style": material.styles[method],
                "expected": numbers.share(measure.shown(truth.expected[method, target]), 4),
                "regret": _exact(value),
                "surrogate": numbers.small(truth.surrogate_regret.get((method, target))),
                "bound": numbers.small(bound),
                "strip": strip.row(
                    material.styles[method],
                    value,
                    limit=bound if bound is not None and math.isfinite(bound) else None,
                ),
            }
        )
    return {
        "measure": measure,
        "best": numbers.share(measure.shown(truth.best[target]), 4),
        "head": strip.head(),
        "rows": rows,
        "bounded": bool(bounds),
        "picture": _regret_picture(material, target, regrets, bounds),
    }


def _exact(value: float) -> str:
    """A regret; what is 0 but for rounding is 0."""
    return numbers.small(0.0 if abs(value) < 1e-12 else value)


def _regret_picture(
    material: Material, target: str, regrets: dict[str, float], bounds: dict[str, float]
) -> Any:
    """Regret over surrogate regret, both by factors, with the bound above; None without any."""
    truth: Any = material.results.truth
    known = {
        method: truth.surrogate_regret[method, target]
        for method in regrets
        if truth.surrogate_regret.get((method, target), 0.0) > 0
        and math.isfinite(truth.surrogate_regret[method, target])
    }
    if not known:
        return None
    heights = [*(regrets[m] for m in known), *(bounds[m] for m in known if m in bounds)]
    frame = Frame(logarithmic(known.values(), 34.0, 242.0, 4), logarithmic(heights, 204.0, 24.0))
    parts = []
    for method, surrogate in known.items():
        style, x, y = (
            material.styles[method], frame.across.at(surrogate), frame.up.at(regrets[method]),
        )  # fmt: skip
        bound = bounds.get(method)
        tip = f"{isolated(method)}: regret {_exact(regrets[method])}"
        if bound is not None and math.isfinite(bound):
            top = frame.up.at(bound)
            tip += f", at most {numbers.small(bound)}"
            parts += [
                element("line", x1=x, x2=x, y1=y, y2=top, class_=f"reach {style.colour}"),
                element("line", x1=x - 7, x2=x + 7, y1=top, y2=top, class_=f"limit {style.colour}"),
            ]
        parts.append(mark(style, x, y, tip))
    title = "Regret over surrogate regret, with bounds; the table has the numbers"
    names = ("regret of the loss trained on", "regret")
    return picture(252, 244, title, frame.grid(*names), *parts)
