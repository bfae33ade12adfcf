"""Labels: each by itself, which come together, and how many a row has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.sparse import triu

from setwise.report import numbers
from setwise.report.drawing import Style, element, named, picture, room_for
from setwise.report.material import Material
from setwise.report.names import clipped, isolated, plain
from setwise.report.sections.probability import FRAME

# The table holds all labels up to this many numbers in the page, else the most frequent ones.
MOST_ROWS, LEAST_LABELS = 100_000, 500
# Curves of labels take this many characters of the page at most: each point two, on a grid.
CURVE_CHARACTERS = 300_000
RECALLS = np.linspace(0.0, 1.0, 26)
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def labels(material: Material) -> dict[str, Any] | None:
    """The choices of the table; its numbers are in `label_data`."""
    if not material.results.outcomes:
        return None
    shown = len(shown_labels(material))
    n_labels = len(material.results.label_names)
    return {
        "n_shown": numbers.count(shown),
        "n_labels": numbers.count(n_labels),
        "all_shown": shown == n_labels,
    }


def shown_labels(material: Material) -> Any:
    """The labels of the table, most frequent first."""
    most = max(MOST_ROWS // max(1, len(material.shown)), LEAST_LABELS)
    return np.argsort(-material.support, kind="stable")[:most]


def label_data(material: Material) -> dict[str, Any]:
    """Numbers for the page's script: counts of each label and outcome, and curves.

    Precision, recall and F1 follow from the counts; average precision is in ten-thousandths, and -1
    for a label that is never true.
    """
    results = material.results
    shown = shown_labels(material)
    support = material.support[shown]
    titles = {target: measure.title for target, measure in material.measures.items()}
    titles |= {panel.target: panel.title for panel in material.panels}
    budget = max(1, CURVE_CHARACTERS // (2 * len(RECALLS) * max(1, len(material.beliefs))))
    return {
        "methods": [
            [plain(method), style.colour, style.shape, style.dash]
            for method, style in material.styles.items()
        ],
        "targets": [titles[target] for target in results.targets],
        "labels": [plain(results.label_names[label]) for label in shown],
        "support": support.tolist(),
        "outcomes": [
            {
                "method": results.methods.index(outcome.method),
                "target": results.targets.index(outcome.target),
                "predicted": figures.predicted[shown].tolist(),
                "both": figures.both[shown].tolist(),
                "belief": material.believed[place],
            }
            for (place, outcome), figures in zip(material.shown, material.figures, strict=True)
        ],
        "beliefs": [
            {
                "average": _ten_thousandths(belief.by_label.average_precision[shown], support),
                "curves": _packed(belief.by_label.interpolated(RECALLS)[shown[:budget]]),
            }
            for belief in material.beliefs
        ],
        "frame": [FRAME.across.start, FRAME.across.end, FRAME.up.start, FRAME.up.end],
        "first": _first(material),
    }


def _ten_thousandths(average: Any, support: Any) -> list[int]:
    return np.where(support > 0, np.rint(1e4 * average), -1).astype(int).tolist()


def _packed(precision: Any) -> list[str]:
    """Each row of precisions as text: 4095ths in two digits of base 64."""
    levels = np.rint(4095 * precision).astype(int)
    digits = np.array(list(DIGITS))
    pairs = np.stack([digits[levels // 64], digits[levels % 64]], axis=-1)
    return ["".join(row) for row in pairs.reshape(len(levels), -1).tolist()]


def _first(material: Material) -> int:
    """The outcome shown first: the best method of the first target."""
    best = material.board.of(material.board.targets[0])[0]
    pairs = [(outcome.method, outcome.target) for _, outcome in material.shown]
    return pairs.index((best.method, best.target))


# ------------------------------------------------------------------------------------- cooccurrence


MOST_LABELS, MOST_PAIRS = 30, 12
# Pairs are looked for among so many labels, the most frequent.
MOST_PAIRED = 1_000
PAIR_LETTERS = 24


def cooccurrence(material: Material) -> dict[str, Any] | None:
    """The picture and the pairs; nothing for a single label."""
    support = material.support
    frequent = np.argsort(-support, kind="stable")[:MOST_LABELS]
    frequent = frequent[support[frequent] > 0]
    if len(frequent) < 2:
        return None
    y_true = material.results.y_true[:, frequent].astype(np.int64)
    together = (y_true.T @ y_true).toarray()
    order = _side_by_side(together)
    names = [plain(material.results.label_names[label]) for label in frequent[order]]
    return {
        "picture": _pairs_picture(together[np.ix_(order, order)], names),
        "pairs": _pairs(material),
        "n_shown": len(frequent),
        "n_labels": numbers.count(len(support)),
    }


def _side_by_side(together: Any) -> Any:
    """An order in which labels that come together are neighbours."""
    support = together.diagonal()
    either = support[:, None] + support[None, :] - together
    apart = 1.0 - together / either
    tree = linkage(apart[np.triu_indices(len(support), 1)], "average", optimal_ordering=True)
    return leaves_list(tree)


def _pairs_picture(together: Any, names: list[str]) -> Any:
    """A square for each pair, the larger the more often the row's label brings the column's."""
    n = len(names)
    cell = 19.0 if n > 16 else 26.0
    room = room_for(names, PAIR_LETTERS) + 10
    top, left, side = 14.0, room, cell * n
    parts = []
    for i, row in enumerate(together.tolist()):
        y = top + cell * i
        parts.append(
            element(
                "text",
                *named(names[i], PAIR_LETTERS),
                x=left - 8,
                y=y + cell / 2 + 4,
                class_="name end",
            )
        )
        parts.append(element("text", numbers.count(row[i]), x=left + side + 8, y=y + cell / 2 + 4,
                             class_="tick"))  # fmt: skip
        for j, both in enumerate(row):
            x = left + cell * j
            if i == j:
                parts.append(element("rect", x=x + cell / 2 - 1.5, y=y + cell / 2 - 1.5, width=3,
                                     height=3, class_="self"))  # fmt: skip
            elif both:
                share = both / row[i]
                size = max((cell - 2) * share**0.5, 1.5)
                tip = (
                    f"{numbers.share(share, 2)} of the {numbers.count(row[i])} rows with "
                    f"{isolated(clipped(names[i], 40))} have {isolated(clipped(names[j], 40))}"
                )
                parts.append(
                    element(
                        "rect",
                        element("title", tip),
                        x=x + (cell - size) / 2,
                        y=y + (cell - size) / 2,
                        width=size,
                        height=size,
                        class_="pair",
                    )
                )
    bottom = top + side
    for j, label in enumerate(names):
        x = left + cell * (j + 0.5) + 4
        parts.append(
            element(
                "text",
                *named(label, PAIR_LETTERS),
                class_="name end",
                transform=f"translate({x:.1f} {bottom + 8:.1f}) rotate(-90)",
            )
        )
    frame = element("rect", x=left, y=top, width=side, height=side, class_="frame")
    head = element("text", "rows", x=left + side + 8, y=top - 3, class_="tick")
    title = f"How often each of {n} labels comes with each other one; the closest pairs follow"
    return picture(left + side + 60, bottom + room, title, frame, head, *parts)


def _pairs(material: Material) -> list[dict[str, Any]]:
    """The pairs of labels most often in one row."""
    paired = np.sort(np.argsort(-material.support, kind="stable")[:MOST_PAIRED])
    y_true = material.results.y_true[:, paired].astype(np.int64)
    pairs: Any = triu(y_true.T @ y_true, 1).tocoo()
    first = np.lexsort((pairs.col, pairs.row, -pairs.data))[:MOST_PAIRS]
    support, n_rows = material.support[paired], material.board.n_rows
    names = [material.results.label_names[label] for label in paired]
    return [
        {
            "a": names[a],
            "b": names[b],
            "both": numbers.count(both),
            "b_given_a": numbers.share(both / support[a], 2),
            "a_given_b": numbers.share(both / support[b], 2),
            "lift": f"{both * n_rows / (support[a] * support[b]):.1f}",
        }
        for a, b, both in zip(
            pairs.row[first].tolist(),
            pairs.col[first].tolist(),
            pairs.data[first].tolist(),
            strict=True,
        )
    ]


# -------------------------------------------------------------------------------------------- sizes


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
    for title, target in material.panels:
        panels.append(
            {
                "title": title,
                "methods": [
                    {
                        "method": outcome.method,
                        "style": material.styles[outcome.method],
                        "mean": f"{predicted[place].mean():.2f}",
                        "shares": [numbers.share(share, 2) for share in shares[place + 1]],
                        "picture": _sizes_picture(
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


def _sizes_picture(true: Any, predicted: Any, highest: float, style: Style, bars: Bars) -> Any:
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
