"""Pictures as SVG within the page: marks and colours, elements, axes, frames and strips.

Elements are coloured by classes only, which the style sheet fills. The hues of methods are those of
Okabe and Ito, which people of any colour vision tell apart, made darker for the light scheme and
lighter for the dark one until each has a contrast of 4.5 to the ground. Shapes and dashes say the
same as the colours.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from setwise.report.words import clipped, power_of_ten, share

# How many hues of methods the style has.
N_HUES = 8
# Outlines about (0, 0), of about the same weight to the eye.
SHAPES = (
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z",
    "M-4-4h8v8h-8z",
    "M0-5.6L5.6 0L0 5.6L-5.6 0z",
    "M0-5.2L5.2 4.2H-5.2z",
    "M0 5.2L5.2-4.2H-5.2z",
    "M-1.7-5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z",
    "M-5.2-2.6L0-5.2L5.2-2.6V2.6L0 5.2L-5.2 2.6z",
)
DASHES = ("none", "7 3", "2 2.5", "9 3 2 3", "4 2", "12 3")
# The axis of a strip runs from INSET to 100 - INSET per cent of the cell: marks and ticks fit in.
INSET = 7.0


@dataclass(frozen=True)
class Style:
    """How a method is drawn in all pictures: class of its colour, path of its mark, its dashes."""

    colour: str
    shape: str
    dash: str

    @classmethod
    def of(cls, place: int) -> Style:
        """Of the method in that place: 56 before colour and shape repeat together."""
        shape, dash = SHAPES[place % len(SHAPES)], DASHES[place % len(DASHES)]
        return cls(f"m{place % N_HUES}", shape, dash)


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """An element; children and attributes are escaped, numbers are rounded to what can be seen.

    An underscore at the end of an attribute is dropped (``class_``), others become hyphens; None
    leaves an attribute or a child out.

    Examples
    --------
    >>> element("text", "<b>", x=1.25, class_="a")
    Markup('<text x="1.25" class="a">&lt;b&gt;</text>')
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_rounded(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(escape(child) for child in children if child is not None)
    return Markup(f"<{tag}{written}>{inside}</{tag}>" if inside else f"<{tag}{written}/>")


def _rounded(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.2f}".rstrip("0").rstrip(".") if math.isfinite(value) else "0"


def _tip(words: str | None) -> Markup | None:
    return None if words is None else element("title", words)


def picture(width: float, height: float, title: str, *children: Any) -> Markup:
    """A picture of its own, as wide as that or as there is room; ``title`` is read out."""
    box = f"0 0 {_rounded(width)} {_rounded(height)}"
    size: dict[str, Any] = {"viewBox": box, "width": width, "height": height}
    return element("svg", _tip(title), *children, class_="picture", **size, role="img")


def text(
    words: str, x: Any, y: Any, class_: str, letters: int = 300, whole: str = "", **other: Any
) -> Markup:
    """Words at a point, at most so many letters; what they are not the whole of is a tooltip."""
    short, whole = clipped(words, letters), whole or words
    tip = _tip(None if short == whole else whole)
    return element("text", short, tip, x=x, y=y, class_=class_, **other)


def line(x1: Any, y1: Any, x2: Any, y2: Any, class_: str, tip: str | None = None) -> Markup:
    """A straight line."""
    return element("line", _tip(tip), x1=x1, x2=x2, y1=y1, y2=y2, class_=class_)


def rectangle(
    x: float, y: float, width: float, height: float, class_: str, tip: str | None = None
) -> Markup:
    """A filled rectangle from its upper left corner."""
    return element("rect", _tip(tip), x=x, y=y, width=width, height=height, class_=class_)


def curve(points: Iterable[tuple[float, float]], class_: str, dash: str | None = None) -> Markup:
    """A line through points."""
    path = "L".join(f"{_rounded(float(x))} {_rounded(float(y))}" for x, y in points)
    return element("path", d=f"M{path}", class_=class_, stroke_dasharray=dash)


def mark(style: Style, x: float, y: float, tip: str) -> Markup:
    """The mark of a method at a point, with a tooltip."""
    place = f"translate({_rounded(float(x))} {_rounded(float(y))})"
    return element("path", _tip(tip), d=style.shape, class_=f"mark {style.colour}", transform=place)


def room_for(names: Iterable[str], letters: int) -> float:
    """About how wide the longest of some names is drawn, each clipped to so many letters."""
    widths = [
        sum(13.0 if unicodedata.east_asian_width(letter) in "WF" else 7.4 for letter in name)
        for name in (clipped(name, letters) for name in names)
    ]
    return max(widths, default=0.0)


@dataclass(frozen=True)
class Axis:
    """Values from ``low`` to ``high``, on a line from ``start`` to ``end``.

    ``ticks`` are values with a mark of their own, all within; with ``log``, equal steps are equal
    factors.
    """

    low: float
    high: float
    start: float
    end: float
    ticks: Sequence[float]
    log: bool = False

    def at(self, value: float) -> float:
        """The place of a value; what lies beyond an end, or nowhere, stands at one."""
        low, high = self.low, self.high
        value = low if math.isnan(value) else min(max(value, low), high)
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return self.start + (self.end - self.start) * (value - low) / (high - low)

    def marked(self) -> list[tuple[float, str]]:
        """The places of the ticks, and how they are written: all with the same decimals."""
        return [(self.at(tick), self._written(tick)) for tick in self.ticks]

    def _written(self, tick: float) -> str:
        if self.log:
            exponent = round(math.log10(tick))
            few = -3 <= exponent <= 3
            return share(10.0**exponent, max(0, -exponent)) if few else power_of_ten(exponent)
        step = self.ticks[1] - self.ticks[0]
        decimals = next((d for d in range(9) if abs(step * 10**d - round(step * 10**d)) < 1e-6), 9)
        return "0" if tick == 0 else share(tick, decimals)


def linear(values: Iterable[float], start: float, end: float, most: int = 5) -> Axis:
    """An axis with round ends about all finite values."""
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if high - low < 1e-9 * max(1.0, abs(high)):
        low, high = low - 0.05, high + 0.05
    # The next of 1, 2, 2.5, 5, 10 times a power of ten.
    least = (high - low) / (most - 1)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(m * power for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * power >= least * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [round(step * i, 12) for i in range(first, last + 1)]
    return Axis(ticks[0], ticks[-1], start, end, ticks)


def logarithmic(values: Iterable[float], start: float, end: float, most: int = 5) -> Axis:
    """An axis with powers of ten at its ends, about all positive finite values."""
    positive = [value for value in values if value > 0 and math.isfinite(value)] or [0.1, 1.0]
    first = max(math.floor(math.log10(min(positive)) + 1e-9), -300)
    last = min(math.ceil(math.log10(max(positive)) - 1e-9), 300)
    last = max(last, first + 1)
    ticks = [
        10.0**power for power in range(first, last + 1, math.ceil((last - first) / (most - 1)))
    ]
    return Axis(10.0**first, 10.0**last, start, end, ticks, log=True)


@dataclass(frozen=True)
class Frame:
    """A picture with an axis across and one upwards."""

    across: Axis
    up: Axis

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The place of a pair of values."""
        return self.across.at(x), self.up.at(y)

    def grid(self, across_name: str, up_name: str) -> Markup:
        """Lines at the ticks, their values, and the names of both axes."""
        left, right, bottom, top = self.across.start, self.across.end, self.up.start, self.up.end
        parts = []
        for x, label in self.across.marked():
            parts += [line(x, bottom, x, top, "grid"), text(label, x, bottom + 16, "tick middle")]
        for y, label in self.up.marked():
            parts += [line(left, y, right, y, "grid"), text(label, left - 7, y + 4, "tick end")]
        parts.append(text(across_name, (left + right) / 2, bottom + 34, "axis middle"))
        return Markup("").join([*parts, text(up_name, 0, top - 11, "axis")])


@dataclass(frozen=True)
class Strip:
    """A row of a table as a picture, on an axis in per cent of its cell.

    The numbers beside it say the same, so it is not read out.
    """

    axis: Axis

    def head(self) -> Markup:
        """The values of the axis, to stand above the rows."""
        ticks = self.axis.marked()
        return _cell([text(label, f"{at:.2f}%", 13, "tick middle") for at, label in ticks], 18)

    def row(
        self, style: Style, value: float, ends: Any = (None, None), limit: Any = None
    ) -> Markup:
        """A value with a bar between ends; ``limit`` is what it may reach, if it is finite."""
        parts = [line(at, 0, at, 26, "grid") for at in map(self._at, self.axis.ticks)]
        if None not in ends:
            parts.append(line(self._at(ends[0]), 13, self._at(ends[1]), 13, f"bar {style.colour}"))
        if limit is not None and math.isfinite(limit):
            end = self._at(limit)
            parts.append(line(self._at(value), 13, end, 13, f"reach {style.colour}"))
            parts.append(line(end, 6, end, 20, f"limit {style.colour}"))
        shape = element("path", d=style.shape, class_=f"mark {style.colour}")
        parts.append(element("svg", shape, x=self._at(value), y=13, overflow="visible"))
        return _cell(parts, 26)

    def _at(self, value: float) -> str:
        return f"{self.axis.at(value):.2f}%"


def _cell(parts: list[Markup], height: int) -> Markup:
    return element("svg", *parts, class_="strip", width="100%", height=height, aria_hidden="true")
