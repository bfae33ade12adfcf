"""How many labels rows have, and how many each method predicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from setwise.report import numbers
from setwise.report.drawing import element, picture
from setwise.report.material import Material
from setwise.report.palette import Style

# No more bars than these: where sizes are many, several share one.
MOST_BARS = 13
# Sizes above this share of all, of rows or of a method's predictions, are taken together.
COMMON = 0.99
WIDTH, HEIGHT, TOP, BOTTOM, LEFT = 190.0, 128.0, 8.0, 106.0, 4.0


def sizes(material: Material) -> dict[str, Any] | None:
    """Pictures of all methods, target by target, and the same as a table."""
    if not material.results.outcomes:
        return None
    true = _sizes(material.results.y_true)
    predicted = [_sizes(outcome.y_pred) for outcome in material.results.outcomes]
    bars = Bars.of([true, *predicted])
    shares = [bars.shares(own) for own in (true, *predicted)]
    highest = max(float(share.max()) for share in shares)
    panels = []
    for target in material.judged:
        panels.append(
            {
                "title": material.measures[target].title,
                "methods": [
                    {
                        "method": outcome.method,
                        "style": material.styles[outcome.method],
                        "mean": f"{predicted[place].mean():.2f}",
                        "shares": [numbers.share(share, 2) for share in shares[place + 1]],
                        "picture": _picture(
                            shares[0],
                            shares[place + 1],
                            highest,
                            material.styles[outcome.method],
                            bars,
                        ),
                    }
                    for place, outcome in material.of(target)
                ],
            }
        )
    return {
        "panels": panels,
        "true_mean": f"{true.mean():.2f}",
        "true_shares": [numbers.share(share, 2) for share in shares[0]],
        "sizes": bars.names,
        "largest": bars.starts[-1] if bars.is_open else None,
    }


class Bars(NamedTuple):
    """So many bars of equally many sizes; the last one may hold all that are larger."""

    count: int
    width: int
    is_open: bool

    @classmethod
    def of(cls, samples: Sequence[Any]) -> Bars:
        """Wide enough that few bars hold nearly all sizes."""
        top = max(1, *(int(np.quantile(own, COMMON, method="higher")) for own in samples))
        width = top // MOST_BARS + 1
        count = top // width + 1
        return cls(count, width, any(own.max() >= count * width for own in samples))

    @property
    def starts(self) -> list[int]:
        """The smallest size of each bar."""
        return [self.width * bar for bar in range(self.count)]

    @property
    def names(self) -> list[str]:
        """The sizes of each bar, in words."""
        last = self.width - 1
        names = [str(start) if last == 0 else f"{start}–{start + last}" for start in self.starts]
        return [*names[:-1], f"{self.starts[-1]}+"] if self.is_open else names

    def shares(self, own: Any) -> Any:
        """The share of each bar."""
        bar = np.minimum(own // self.width, self.count - 1)
        return np.bincount(bar, minlength=self.count) / len(own)


def _sizes(sets: Any) -> Any:
    return np.asarray(sets.sum(axis=1)).ravel().astype(int)


def _picture(true: Any, predicted: Any, highest: float, style: Style, bars: Bars) -> Any:
    """Bars of the true sizes, and the method's marks upon them."""
    step = (WIDTH - 2 * LEFT) / len(true)
    high = BOTTOM - TOP
    parts = []
    every = max(1, -(-len(true) // 9))
    for size, (bar, dot) in enumerate(zip(true.tolist(), predicted.tolist(), strict=True)):
        x = LEFT + step * size
        tall = high * bar / highest
        parts.append(
            element(
                "rect",
                x=x + step * 0.14,
                width=step * 0.72,
                y=BOTTOM - tall,
                height=tall,
                class_="true",
            )
        )
        y = BOTTOM - high * dot / highest
        shares = f"true {numbers.share(bar, 2)}, predicted {numbers.share(dot, 2)}"
        tip = f"size {bars.names[size]}: {shares}"
        parts.append(
            element(
                "line",
                element("title", tip),
                x1=x + step * 0.04,
                x2=x + step * 0.96,
                y1=y,
                y2=y,
                class_=f"level {style.colour}",
            )
        )
        if size % every == 0:
            is_last = bars.is_open and size == len(true) - 1
            label = f"{bars.starts[size]}{'+' if is_last else ''}"
            parts.append(
                element("text", label, x=x + step / 2, y=BOTTOM + 16, class_="tick middle")
            )
    parts.append(element("line", x1=LEFT, x2=WIDTH - LEFT, y1=BOTTOM, y2=BOTTOM, class_="base"))
    return picture(WIDTH, HEIGHT, "Shares of label-set sizes, true and predicted", *parts)
