"""What features say: what raised and lowered the labels of rows, and what features are worth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from markupsafe import Markup

from setwise.report import drawing
from setwise.report.drawing import Style, line, linear, picture, rectangle, room_for, text
from setwise.report.material import Material
from setwise.report.words import clipped, isolated, plain, share

# So many features of a label, letters of their names, and labels of a row are drawn.
MOST_FEATURES, LETTERS, MOST_LABELS = 8, 34, 6
# So many features are in the table of what they are worth.
MOST_WORTH = 20
ROW, WIDTH, NUMBER = 19.0, 300.0, 52.0


def explained(material: Material) -> dict[str, Any] | None:
    """Pictures and numbers of the rows that were explained, and of what features are worth."""
    rows = [
        {"name": str(name), "picture": drawn(one), "labels": _labels(one), "apart": one.apart}
        for name, one in material.explained.items()
    ]
    worth = None if material.importance is None else _worth(material.importance)
    return {"rows": rows, "worth": worth} if rows or worth else None


def _labels(explanation: Any) -> list[dict[str, Any]]:
    """The numbers behind a picture."""
    return [
        {
            "name": str(explanation.labels[place]),
            "predicted": bool(explanation.predicted[place]),
            "probability": float(explanation.probability[place]),
            "base": float(explanation.base[place]),
            "log_odds": float(explanation.log_odds[place]),
            "features": _bars(explanation, place),
        }
        for place in range(min(len(explanation.labels), MOST_LABELS))
    ]


def _bars(explanation: Any, place: int) -> list[tuple[str, float]]:
    """The strongest features with their values, and what they add; then all others together."""
    chosen = explanation.strongest(place, MOST_FEATURES)
    bars = [
        (f"{explanation.feature_names[feature]} = {_value(explanation.values[feature])}", added)
        for feature, added in chosen
    ]
    own = explanation.contributions[place]
    n_others = int(np.count_nonzero(own)) - len(chosen)
    if n_others > 0:
        bars.append((f"{n_others} others", float(own.sum() - sum(added for _, added in chosen))))
    return bars


def _value(value: Any) -> str:
    if isinstance(value, float | np.floating | int | np.integer):
        return "missing" if math.isnan(value) else f"{value:.4g}"
    return str(value)


def drawn(explanation: Any) -> Markup:
    """Bars of what features add to the log-odds of each label, to the right if they raise them."""
    labels = _labels(explanation)
    bars = [bar for label in labels for bar in label["features"]]
    axis = linear([0.0, *(added for _, added in bars)], 0.0, WIDTH)
    left = room_for([name for name, _ in bars], LETTERS) + 14
    parts, y = [], 14.0
    for label in labels:
        sign = "predicted" if label["predicted"] else "not predicted"
        chance = f"{sign}, probability {share(label['probability'], 2)}"
        odds = f"log-odds {_signed(label['base'])} at the base, {_signed(label['log_odds'])} here"
        parts.append(text(plain(label["name"]), 0, y, "name heading", 40))
        parts.append(text(f"{chance}; {odds}", 0, y + 16, "tick"))
        y += 26.0
        top = y
        for name, added in label["features"]:
            parts += _bar(axis, left, y, plain(name), added)
            y += ROW
        zero = left + axis.at(0.0)
        parts.append(line(zero, top, zero, y, "base"))
        y += 18.0
    if bars:
        for at, tick in axis.marked():
            parts.append(text(tick, left + at, y, "tick middle"))
        parts.append(text("added to the log-odds", left + WIDTH / 2, y + 16, "axis middle"))
        y += 22.0
    title = (
        "What features add to the log-odds of the labels; the table that follows has the numbers"
    )
    return picture(left + WIDTH + NUMBER, y, title, *parts)


def _bar(axis: Any, left: float, y: float, name: str, added: float) -> list[Any]:
    """A name, a bar from 0 and its number."""
    zero, end = left + axis.at(0.0), left + axis.at(added)
    kind = "raises" if added >= 0 else "lowers"
    tip = f"{isolated(clipped(name, 60))} {kind} the log-odds by {share(abs(added))}"
    number = text(_signed(added), max(zero, end) + 5, y + 13, "tick")
    width = max(abs(end - zero), 0.75)
    return [
        text(name, left - 8, y + 13, "name end", LETTERS),
        rectangle(min(zero, end), y + 3, width, ROW - 6, kind, tip),
        number,
    ]


def _signed(value: float) -> str:
    return f"+{share(value, 2)}" if value > 0 else share(value, 2)


def _worth(importance: Any) -> dict[str, Any]:
    """The features that are worth most, each with a strip, and the label that loses most by it."""
    order = importance.order()[:MOST_WORTH]
    ends = [
        (float(importance.mean[i] - importance.deviation[i]),
         float(importance.mean[i] + importance.deviation[i]))
        for i in order
    ]  # fmt: skip
    axis = linear([0.0, *np.ravel(ends).tolist()], drawing.INSET, 100.0 - drawing.INSET)
    strip, style = drawing.Strip(axis), Style.of(0)
    rows = []
    for place, pair in zip(order, ends, strict=True):
        mean = float(importance.mean[place])
        label = int(np.argmax(importance.by_label[place]))
        rows.append({
            "name": importance.feature_names[place], "mean": mean,
            "deviation": float(importance.deviation[place]),
            "strip": strip.row(style, mean, pair),
            "label": importance.labels[label], "lost": float(importance.by_label[place, label]),
        })  # fmt: skip
    return {
        "target": importance.target, "of_label": importance.of_label, "rows": rows, "strip": strip,
        "n_features": len(importance.mean), "utility": importance.utility,
    }  # fmt: skip
