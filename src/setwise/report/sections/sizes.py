"""How many labels rows have, and how many each method predicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise.report import numbers
from setwise.report.drawing import element, picture
from setwise.report.material import Material
from setwise.report.palette import Style

# Sizes from this one on share a bar.
LARGEST = 12
WIDTH, HEIGHT, TOP, BOTTOM, LEFT = 190.0, 128.0, 8.0, 106.0, 4.0


def sizes(material: Material) -> dict[str, Any] | None:
    """Pictures of all methods, target by target, and the same as a table."""
    if not material.results.outcomes:
        return None
    true = _sizes(material.results.y_true)
    predicted = [_sizes(outcome.y_pred) for outcome in material.results.outcomes]
    last = int(min(max(true.max(), *(p.max() for p in predicted), 1), LARGEST))
    shares = [_shares(own, last) for own in (true, *predicted)]
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
                            largest=last == LARGEST,
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
        "sizes": _labels(last),
        "largest": LARGEST if last == LARGEST else None,
    }


def _sizes(sets: Any) -> Any:
    return np.asarray(sets.sum(axis=1)).ravel().astype(int)


def _shares(own: Any, last: int) -> Any:
    return np.bincount(np.minimum(own, last), minlength=last + 1) / len(own)


def _labels(last: int) -> list[str]:
    return [*map(str, range(last)), f"{last}+" if last == LARGEST else str(last)]


def _picture(true: Any, predicted: Any, highest: float, style: Style, largest: bool) -> Any:
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
        tip = f"size {size}: true {numbers.share(bar, 2)}, predicted {numbers.share(dot, 2)}"
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
            label = f"{size}+" if largest and size == len(true) - 1 else str(size)
            parts.append(
                element("text", label, x=x + step / 2, y=BOTTOM + 16, class_="tick middle")
            )
    parts.append(element("line", x1=LEFT, x2=WIDTH - LEFT, y1=BOTTOM, y2=BOTTOM, class_="base"))
    return picture(WIDTH, HEIGHT, "Shares of label-set sizes, true and predicted", *parts)
