"""Pictures as SVG within the page: marks and colours, elements, axes, frames and strips.

Elements are coloured by classes only. The hues of methods are those of Okabe and Ito, which people
of any colour vision tell apart, made darker for the light scheme and lighter for the dark one until
each has a contrast of 4.5 to the ground. Shapes and dashes say the same as the colours.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from setwise.report import numbers
from setwise.report.names import clipped

# Blue, vermilion, green, purple, yellow, sky blue, grey, violet.
METHODS_LIGHT = (
    "#0067b0", "#bf4d00", "#007a5a", "#a8457f", "#7a6200", "#1d7791", "#5c6066", "#7a4fc0",
)  # fmt: skip
METHODS_DARK = (
    "#6cb6ff", "#ff9d5c", "#3fcf9f", "#f095c8", "#e3c34a", "#66cfe8", "#b9bfc7", "#bfa2ff",
)  # fmt: skip
LIGHT = {
    "ground": "#ffffff",
    "raised": "#f6f7f9",
    "ink": "#1b1d21",
    "quiet": "#5a6069",
    "rule": "#e2e5e9",
    "edge": "#8a919b",
    "strong": "#0067b0",
} | {f"m{i}": colour for i, colour in enumerate(METHODS_LIGHT)}
DARK = {
    "ground": "#14161a",
    "raised": "#1c1f25",
    "ink": "#e9ebee",
    "quiet": "#a5acb6",
    "rule": "#2d323a",
    "edge": "#6d7580",
    "strong": "#6cb6ff",
} | {f"m{i}": colour for i, colour in enumerate(METHODS_DARK)}
SCHEMES = {"light": LIGHT, "dark": DARK}

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
# The axis runs from INSET to 100 - INSET per cent of the cell, so that marks and ticks fit in.
INSET = 7.0


@dataclass(frozen=True)
class Style:
    """The same in all pictures.

    Attributes
    ----------
    colour : str
        A class that sets the colour.
    shape, dash : str
        Path of its mark, and dashes of its lines.
    """

    colour: str
    shape: str
    dash: str

    @property
    def key(self) -> Markup:
        """The mark by itself, to stand before the name."""
        return Markup(
            '<svg class="key {}" width="13" height="13" viewBox="-6.5 -6.5 13 13" '
            'aria-hidden="true"><path class="mark" d="{}"/></svg>'
        ).format(self.colour, self.shape)


def style_of(place: int) -> Style:
    """The style of the method in that place: 56 before colour and shape repeat together."""
    return Style(
        f"m{place % len(METHODS_LIGHT)}", SHAPES[place % len(SHAPES)], DASHES[place % len(DASHES)]
    )


# ----------------------------------------------------------------------------------------- elements


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """An element; children and attributes are escaped, numbers are rounded to what can be seen.

    An underscore at the end of an attribute is dropped (``class_``), others become hyphens, but
    ``view_box`` is ``viewBox``; None leaves an attribute out.

    Examples
    --------
    >>> element("text", "<b>", x=1.25, class_="a")
    Markup('<text x="1.25" class="a">&lt;b&gt;</text>')
    """
    written = "".join(
        f' {_attribute(key)}="{escape(_rounded(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(escape(child) for child in children)
    return Markup(f"<{tag}{written}>{inside}</{tag}>" if inside else f"<{tag}{written}/>")


def _attribute(key: str) -> str:
    return "viewBox" if key == "view_box" else key.rstrip("_").replace("_", "-")


def _rounded(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".") if math.isfinite(value) else "0"
    return str(value)


def picture(width: float, height: float, title: str, *children: Any, class_: str = "") -> Markup:
    """A picture of its own, as wide as that or as there is room; ``title`` is read out."""
    return element(
        "svg",
        element("title", title),
        *children,
        class_=f"picture {class_}".strip(),
        view_box=f"0 0 {_rounded(float(width))} {_rounded(float(height))}",
        width=width,
        height=height,
        role="img",
    )


def line(points: Iterable[tuple[float, float]], **attributes: Any) -> Markup:
    """A line through points."""
    path = "L".join(f"{_rounded(float(x))} {_rounded(float(y))}" for x, y in points)
    return element("path", d=f"M{path}", **attributes)


def mark(style: Style, x: float, y: float, tip: str | None = None, open_: bool = False) -> Markup:
    """The mark of a method at a point, with a tooltip."""
    return element(
        "path",
        *([element("title", tip)] if tip else []),
        d=style.shape,
        class_=f"mark {style.colour}{' open' if open_ else ''}",
        transform=f"translate({_rounded(float(x))} {_rounded(float(y))})",
    )


@dataclass(frozen=True)
class Axis:
    """Values from ``low`` to ``high``, on a line from ``start`` to ``end``.

    Attributes
    ----------
    ticks : sequence of float
        Values with a mark of their own, all within.
    log : bool
        Whether equal steps are equal factors.
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
        value = low if math.isnan(value) else value
        value = min(max(value, low), high)
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return self.start + (self.end - self.start) * (value - low) / (high - low)


def linear(values: Iterable[float], start: float, end: float, most: int = 5) -> Axis:
    """An axis with round ends about all finite values."""
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if high - low < 1e-9 * max(1.0, abs(high)):
        low, high = low - 0.05, high + 0.05
    step = _round_step((high - low) / (most - 1))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [round(step * i, 12) for i in range(first, last + 1)]
    return Axis(ticks[0], ticks[-1], start, end, ticks)


def _round_step(step: float) -> float:
    """The next of 1, 2, 2.5, 5, 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * power >= step * (1 - 1e-9))


def logarithmic(values: Iterable[float], start: float, end: float, most: int = 5) -> Axis:
    """An axis with powers of ten at its ends, about all positive finite values."""
    positive = [value for value in values if value > 0 and math.isfinite(value)] or [0.1, 1.0]
    first = max(math.floor(math.log10(min(positive)) + 1e-9), -300)
    last = min(math.ceil(math.log10(max(positive)) - 1e-9), 300)
    last = max(last, first + 1)
    step = math.ceil((last - first) / (most - 1))
    ticks = [10.0**power for power in range(first, last + 1, step)]
    return Axis(10.0**first, 10.0**last, start, end, ticks, log=True)


def tick_label(axis: Axis) -> Callable[[float], str]:
    """How the values of an axis are written, all with the same decimals."""
    if axis.log:
        return _power
    step = axis.ticks[1] - axis.ticks[0]
    decimals = next((d for d in range(9) if abs(step * 10**d - round(step * 10**d)) < 1e-6), 9)
    return lambda value: "0" if value == 0 else numbers.share(value, decimals)


def _power(value: float) -> str:
    """A power of ten: ``.01``, ``100``, ``10⁻⁶``."""
    exponent = round(math.log10(value))
    if -3 <= exponent <= 3:
        return numbers.share(10.0**exponent, max(0, -exponent))
    return f"10{str(exponent).translate(numbers.RAISED)}"


def room_for(names: Iterable[str], letters: int) -> float:
    """About how wide the longest of some names is drawn, each clipped to so many letters."""
    widths = [
        sum(13.0 if unicodedata.east_asian_width(letter) in "WF" else 7.4 for letter in name)
        for name in (clipped(name, letters) for name in names)
    ]
    return max(widths, default=0.0)


def named(label: str, letters: int) -> list[Any]:
    """What a text element of a name holds: the name clipped, and then whole as a tooltip."""
    short = clipped(label, letters)
    return [short] if short == label else [short, element("title", label)]


@dataclass(frozen=True)
class Frame:
    """A picture with an axis across and one upwards."""

    across: Axis
    up: Axis

    def grid(self, across_name: str, up_name: str) -> Markup:
        """Lines at the ticks, their values, and the names of both axes."""
        left, right, bottom, top = self.across.start, self.across.end, self.up.start, self.up.end
        parts = []
        write = tick_label(self.across)
        for value in self.across.ticks:
            x = self.across.at(value)
            parts += [
                element("line", x1=x, x2=x, y1=bottom, y2=top, class_="grid"),
                element("text", write(value), x=x, y=bottom + 16, class_="tick middle"),
            ]
        write = tick_label(self.up)
        for value in self.up.ticks:
            y = self.up.at(value)
            parts += [
                element("line", x1=left, x2=right, y1=y, y2=y, class_="grid"),
                element("text", write(value), x=left - 7, y=y + 4, class_="tick end"),
            ]
        middle = (left + right) / 2
        return Markup("").join(
            [
                *parts,
                element("text", across_name, x=middle, y=bottom + 34, class_="axis middle"),
                element("text", up_name, x=0, y=top - 11, class_="axis"),
            ]
        )


@dataclass(frozen=True)
class Strip:
    """An axis in per cent of a cell."""

    axis: Axis

    def head(self) -> Markup:
        """The values of the axis, to stand above the rows."""
        write = tick_label(self.axis)
        labels = [
            element(
                "text", write(value), x=f"{self.axis.at(value):.2f}%", y=13, class_="tick middle"
            )
            for value in self.axis.ticks
        ]
        return _cell(labels, 18)

    def row(
        self,
        style: Style,
        value: float | None,
        bar: tuple[float, float] | None = None,
        limit: float | None = None,
    ) -> Markup:
        """A value with its bar; ``limit`` is an open mark of what it may reach."""
        parts = [
            element("line", x1=at, x2=at, y1=0, y2=26, class_="grid")
            for at in (f"{self.axis.at(tick):.2f}%" for tick in self.axis.ticks)
        ]
        if bar is not None:
            parts.append(self._line(bar, f"bar {style.colour}"))
        if limit is not None and value is not None:
            parts.append(self._line((value, limit), f"reach {style.colour}"))
            at = f"{self.axis.at(limit):.2f}%"
            parts.append(element("line", x1=at, x2=at, y1=6, y2=20, class_=f"limit {style.colour}"))
        if value is not None:
            shape = element("path", d=style.shape, class_=f"mark {style.colour}")
            at = f"{self.axis.at(value):.2f}%"
            parts.append(element("svg", shape, x=at, y=13, overflow="visible"))
        return _cell(parts, 26)

    def _line(self, ends: tuple[float, float], class_: str) -> Markup:
        first, second = (f"{self.axis.at(end):.2f}%" for end in ends)
        return element("line", x1=first, x2=second, y1=13, y2=13, class_=class_)


def _cell(parts: list[Markup], height: int) -> Markup:
    """What a cell holds; the numbers beside it say the same, so it is not read out."""
    return element("svg", *parts, class_="strip", width="100%", height=height, aria_hidden="true")
