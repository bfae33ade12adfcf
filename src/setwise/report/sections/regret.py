"""Where the law of the data is known: exact regret, and what the theorems allow."""

from __future__ import annotations

import math
from typing import Any

from setwise.report import numbers
from setwise.report.drawing import Frame, element, logarithmic, mark, picture
from setwise.report.material import Material
from setwise.report.names import isolated
from setwise.report.strip import INSET, Strip


def regret(material: Material) -> dict[str, Any] | None:
    """A table for each target, the least regret first, and regret over surrogate regret."""
    truth = material.results.truth
    if truth is None:
        return None
    boards = [_board(material, target) for target in material.results.targets]
    if not any(boards):
        return None
    bounded = [
        m for m in material.results.methods if m in {pair[0] for pair in truth.surrogate_regret}
    ]
    return {"boards": [board for board in boards if board], "bounded": bounded}


def _board(material: Material, target: str) -> dict[str, Any] | None:
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
        "picture": _picture(material, target, regrets, bounds),
    }


def _exact(value: float) -> str:
    """A regret; what is 0 but for rounding is 0."""
    return numbers.small(0.0 if abs(value) < 1e-12 else value)


def _picture(
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
