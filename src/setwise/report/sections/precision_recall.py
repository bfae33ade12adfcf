"""Precision against recall, over all labels together; the page's script draws single labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from setwise.report import numbers
from setwise.report.drawing import Axis, Frame, line, picture
from setwise.report.material import Material

TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
FRAME = Frame(Axis(0.0, 1.0, 34.0, 330.0, TICKS), Axis(0.0, 1.0, 244.0, 24.0, TICKS))
WIDTH, HEIGHT = 344, 284
RECALLS = np.linspace(0.0, 1.0, 101)
SHOWN_RECALLS = np.array([0.1, 0.25, 0.5, 0.75, 0.9])


def precision_recall(material: Material) -> dict[str, Any] | None:
    """A picture for each target, one for all where each method has the same probabilities."""
    if not material.beliefs:
        return None
    targets = [t for t in material.judged if set(_believed(material, t).values()) != {None}]
    alike = all(_believed(material, t) == _believed(material, targets[0]) for t in targets)
    panels = []
    for target in targets[:1] if alike else targets:
        curves = [
            (outcome.method, material.beliefs[place])
            for i, outcome in material.of(target)
            if (place := material.believed[i]) is not None
        ]
        panels.append(
            {
                "title": "all targets" if alike else material.measures[target].title,
                "picture": _picture(material, curves),
                "rows": [
                    {
                        "method": method,
                        "style": material.styles[method],
                        "average": numbers.share(belief.micro.average_precision[0]),
                        "at": [
                            numbers.share(value, 2)
                            for value in belief.micro.interpolated(SHOWN_RECALLS)[0]
                        ],
                    }
                    for method, belief in curves
                ],
            }
        )
    return {
        "panels": panels,
        "recalls": [numbers.share(value, 2) for value in SHOWN_RECALLS],
        "empty": picture(
            WIDTH, HEIGHT, "Precision over recall of one label",
            FRAME.grid("recall", "precision"), Markup('<g id="label-curves"></g>'),
        ),
    }  # fmt: skip


def _believed(material: Material, target: str) -> dict[str, int | None]:
    return {outcome.method: material.believed[i] for i, outcome in material.of(target)}


def _picture(material: Material, curves: list[Any]) -> Any:
    lines = []
    for method, belief in curves:
        style = material.styles[method]
        precision = belief.micro.interpolated(RECALLS)[0]
        points = [
            (FRAME.across.at(recall), FRAME.up.at(value))
            for recall, value in zip(RECALLS.tolist(), precision.tolist(), strict=True)
        ]
        lines.append(line(points, class_=f"curve {style.colour}", stroke_dasharray=style.dash))
    title = "Precision over recall, all labels together; the table that follows has the numbers"
    return picture(WIDTH, HEIGHT, title, FRAME.grid("recall", "precision"), *lines)
