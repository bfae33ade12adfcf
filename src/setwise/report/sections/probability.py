"""What probabilities are worth: reliability with counts, and precision against recall."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from setwise.evaluation import Reliability
from setwise.report import numbers
from setwise.report.drawing import Axis, Frame, Style, element, line, logarithmic, mark, picture
from setwise.report.material import Material

HALVES = (0.0, 0.5, 1.0)
LEFT, RIGHT, TOP, BOTTOM = 30.0, 178.0, 24.0, 172.0
COUNTS_TOP, COUNTS_BOTTOM = 232.0, 264.0


def calibration(material: Material) -> dict[str, Any] | None:
    """A picture for each distinct array of probabilities, or None where no method has any."""
    if not material.beliefs:
        return None
    panels = []
    for place, belief in enumerate(material.beliefs):
        outcomes = [
            outcome
            for outcome, believed in zip(material.results.outcomes, material.believed, strict=True)
            if believed == place
        ]
        method = outcomes[0].method
        curve = belief.reliability
        panels.append(
            {
                "method": method,
                "style": material.styles[method],
                "targets": _targets(material, outcomes),
                "error": numbers.share(curve.expected_error),
                "picture": _reliability_picture(curve, material.styles[method]),
                "bins": _bins(curve),
            }
        )
    without = {o.method for o in material.results.outcomes} - {p["method"] for p in panels}
    return {"panels": panels, "without": [m for m in material.results.methods if m in without]}


def _targets(material: Material, outcomes: list[Any]) -> str:
    """For which targets the probabilities are, where not for all of the method's."""
    method = outcomes[0].method
    own = [outcome for outcome in material.results.outcomes if outcome.method == method]
    mine = [outcome for outcome in outcomes if outcome.method == method]
    if len(mine) == len(own):
        return ""
    return numbers.listed([material.measures[outcome.target].title for outcome in mine])


def _bins(curve: Reliability) -> list[tuple[str, str, str, str]]:
    return [
        (
            f"{numbers.share(curve.edges[i], 2)} to {numbers.share(curve.edges[i + 1], 2)}",
            numbers.share(curve.mean_probability[i]),
            numbers.share(curve.frequency[i]),
            numbers.count(count),
        )
        for i, count in enumerate(curve.count.tolist())
        if count
    ]


def _reliability_picture(curve: Reliability, style: Style) -> Any:
    """Frequency over probability, and below it how many entries each bin holds."""
    frame = Frame(Axis(0.0, 1.0, LEFT, RIGHT, HALVES), Axis(0.0, 1.0, BOTTOM, TOP, HALVES))
    filled = [i for i, count in enumerate(curve.count.tolist()) if count]
    points = [
        (frame.across.at(curve.mean_probability[i]), frame.up.at(curve.frequency[i]))
        for i in filled
    ]
    counts = logarithmic([1.0, *curve.count[filled].tolist()], COUNTS_BOTTOM, COUNTS_TOP, most=3)
    bars = [
        element(
            "rect",
            element("title", f"{numbers.count(int(curve.count[i]))} entries"),
            x=frame.across.at(curve.edges[i]) + 1,
            width=frame.across.at(curve.edges[i + 1]) - frame.across.at(curve.edges[i]) - 2,
            y=counts.at(curve.count[i]) - 1,
            height=COUNTS_BOTTOM - counts.at(curve.count[i]) + 1,
            class_="true",
        )
        for i in filled
    ]
    top = numbers.count(round(counts.high))
    marks = [
        mark(style, x, y, f"probability {numbers.share(curve.mean_probability[i], 2)}, true in "
             f"{numbers.share(curve.frequency[i], 2)} of {numbers.count(int(curve.count[i]))}")
        for (x, y), i in zip(points, filled, strict=True)
    ]  # fmt: skip
    return picture(
        188,
        268,
        "Share of true entries over their probability; the table that follows has the numbers",
        frame.grid("probability", "share true"),
        line([(LEFT, BOTTOM), (RIGHT, TOP)], class_="ideal"),
        line(points, class_=f"curve {style.colour}") if len(points) > 1 else "",
        *marks,
        *bars,
        element("line", x1=LEFT, x2=RIGHT, y1=COUNTS_BOTTOM, y2=COUNTS_BOTTOM, class_="base"),
        element("text", f"entries, to {top} (log)", x=RIGHT, y=COUNTS_TOP - 5, class_="tick end"),
    )  # fmt: skip


# ----------------------------------------------------------------------------- precision and recall


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
                "picture": _curves_picture(material, curves),
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


def _curves_picture(material: Material, curves: list[Any]) -> Any:
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
