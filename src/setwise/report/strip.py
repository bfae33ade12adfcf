"""Marks and bars on one axis for the rows of a table, each as wide as its cell."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from setwise.report.drawing import Axis, element, tick_label
from setwise.report.palette import Style

# The axis runs from INSET to 100 - INSET per cent of the cell, so that marks and ticks fit in.
INSET = 7.0


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
