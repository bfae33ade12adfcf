"""What probabilities are worth: reliability, of members of mixtures too, precision and recall."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from setwise.evaluation import Reliability
from setwise.report import drawing
from setwise.report.drawing import Axis, Frame, Style
from setwise.report.material import Belief, Material
from setwise.report.words import count, listed, share
from setwise.study.members import WHOLE

LEFT, RIGHT, TOP, BOTTOM = 30.0, 178.0, 24.0, 172.0
COUNTS_TOP, COUNTS_BOTTOM = 232.0, 264.0
HALVES, QUARTERS = (0.0, 0.5, 1.0), (0.0, 0.25, 0.5, 0.75, 1.0)
SMALL = Frame(Axis(0.0, 1.0, LEFT, RIGHT, HALVES), Axis(0.0, 1.0, BOTTOM, TOP, HALVES))
FRAME = Frame(Axis(0.0, 1.0, 34.0, 330.0, QUARTERS), Axis(0.0, 1.0, 244.0, 24.0, QUARTERS))
WIDTH, HEIGHT = 344, 284
RECALLS = np.linspace(0.0, 1.0, 101)
SHOWN_RECALLS = (0.1, 0.25, 0.5, 0.75, 0.9)


def calibration(material: Material) -> dict[str, Any] | None:
    """A picture for each distinct array of probabilities, or None where no method has any."""
    if not material.beliefs:
        return None
    panels = []
    for belief in material.beliefs:
        holders = {m: _some_targets(material, belief, m) for m in belief.methods}
        drawn = reliability_picture(belief.reliability, material.styles[belief.methods[0]])
        panels.append((holders, belief.reliability, drawn))
    judged = {outcome.method for outcome in material.results.outcomes}
    without = judged - {method for belief in material.beliefs for method in belief.methods}
    return {"panels": panels, "without": [m for m in material.results.methods if m in without]}


def _some_targets(material: Material, belief: Belief, method: str) -> str:
    """For which targets a method has these probabilities, where not for all it was trained for."""
    own, mine = (
        [outcome.target for outcome in outcomes if outcome.method == method]
        for outcomes in (material.results.outcomes, belief.outcomes)
    )
    return "" if len(mine) == len(own) else listed([material.measures[t].title for t in mine])


def reliability_picture(reliability: Reliability, style: Style) -> Any:
    """Frequency over probability, and below it how many entries each bin holds."""
    filled = np.flatnonzero(reliability.count)
    counts = reliability.count[filled].tolist()
    means, shares = reliability.mean_probability[filled], reliability.frequency[filled]
    points = [SMALL.at(mean, true) for mean, true in zip(means, shares, strict=True)]
    axis = drawing.logarithmic([1.0, *counts], COUNTS_BOTTOM, COUNTS_TOP, most=3)
    bars, marks = [], []
    for place, n, mean, true, point in zip(filled, counts, means, shares, points, strict=True):
        left, right = (SMALL.across.at(edge) for edge in reliability.edges[place : place + 2])
        top = axis.at(n) - 1
        bars.append(
            drawing.rectangle(
                left + 1, top, right - left - 2, COUNTS_BOTTOM - top, "true", f"{count(n)} entries"
            )
        )
        tip = f"probability {share(mean, 2)}, true in {share(true, 2)} of {count(n)}"
        marks.append(drawing.mark(style, *point, tip))
    return drawing.picture(
        188,
        268,
        "Share of true entries over their probability; the table that follows has the numbers",
        SMALL.grid("probability", "share true"),
        drawing.curve([(LEFT, BOTTOM), (RIGHT, TOP)], "ideal"),
        drawing.curve(points, f"curve {style.colour}") if len(points) > 1 else None,
        *marks,
        *bars,
        drawing.line(LEFT, COUNTS_BOTTOM, RIGHT, COUNTS_BOTTOM, "base"),
        drawing.text(
            f"entries, to {count(round(axis.high))} (log)", RIGHT, COUNTS_TOP - 5, "tick end"
        ),
    )


def precision_recall(material: Material) -> dict[str, Any] | None:
    """A picture for each target, one for all where each method has the same probabilities."""
    if not material.beliefs:
        return None
    places = {
        target: {outcome.method: material.belief_of(outcome) for outcome in outcomes}
        for target, outcomes in material.by_target.items()
    }
    places = {target: own for target, own in places.items() if set(own.values()) != {None}}
    first = next(iter(places))
    alike = all(own == places[first] for own in places.values())
    panels = []
    for target in [first] if alike else places:
        title = "all targets" if alike else material.measures[target].title
        curves = {m: material.beliefs[i] for m, i in places[target].items() if i is not None}
        drawn = _curves_picture(material, curves)
        panels.append({"title": title, "picture": drawn, "curves": curves})
    title = "Precision over recall of one label"
    grid, empty = FRAME.grid("recall", "precision"), Markup('<g id="label-curves"></g>')
    return {
        "panels": panels,
        "recalls": SHOWN_RECALLS,
        "empty": drawing.picture(WIDTH, HEIGHT, title, grid, empty),
    }


def _curves_picture(material: Material, curves: dict[str, Belief]) -> Any:
    lines = []
    for method, belief in curves.items():
        style = material.styles[method]
        precision = belief.micro.interpolated(RECALLS)[0]
        points = [FRAME.at(*pair) for pair in zip(RECALLS, precision, strict=True)]
        lines.append(drawing.curve(points, f"curve {style.colour}", style.dash))
    title = "Precision over recall, all labels together; the table that follows has the numbers"
    return drawing.picture(WIDTH, HEIGHT, title, FRAME.grid("recall", "precision"), *lines)


def mixture(material: Material) -> list[dict[str, Any]] | None:
    """The members of each mixture, once where all targets share them; None where there is none."""
    groups = []
    for method, by_target in material.mixtures.items():
        shared: dict[int, list[str]] = {}
        for target, members in by_target.items():
            shared.setdefault(id(members), []).append(target)
        for targets in shared.values():
            titles = [material.measures[target].title for target in targets if target]
            rows = [
                {
                    "figures": own,
                    "is_whole": own.name == WHOLE,
                    "picture": reliability_picture(own.reliability, Style.of(place)),
                }
                for place, own in enumerate(by_target[targets[0]])
            ]
            shown = listed(titles) if len(shared) > 1 else ""
            groups.append({"method": method, "target": shown, "members": rows})
    return groups or None
