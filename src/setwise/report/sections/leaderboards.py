"""Who is best for which target, how sure that is, and which differences are significant."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from setwise.report import numbers
from setwise.report.drawing import linear
from setwise.report.material import Material
from setwise.report.measure import Measure
from setwise.report.names import name
from setwise.report.strip import INSET, Strip
from setwise.study import Standing


def leaderboards(material: Material) -> dict[str, Any] | None:
    """A table for each target."""
    if not len(material.board):
        return None
    board = material.board
    most = max(len(board.of(target)) for target in board.targets)
    least_p = most * (most - 1) / 2 / (board.n_bootstrap + 1)
    return {
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
