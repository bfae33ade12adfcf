"""Which labels come together: a picture of the most frequent ones, and the closest pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.sparse import triu

from setwise.report import numbers
from setwise.report.drawing import element, named, picture, room_for
from setwise.report.material import Material
from setwise.report.names import clipped, isolated, plain

MOST_LABELS, MOST_PAIRS = 30, 12
# Pairs are looked for among so many labels, the most frequent.
MOST_PAIRED = 1_000
NAME_LETTERS = 24


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
        "picture": _picture(together[np.ix_(order, order)], names),
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


def _picture(together: Any, names: list[str]) -> Any:
    """A square for each pair, the larger the more often the row's label brings the column's."""
    n = len(names)
    cell = 19.0 if n > 16 else 26.0
    room = room_for(names, NAME_LETTERS) + 10
    top, left, side = 14.0, room, cell * n
    parts = []
    for i, row in enumerate(together.tolist()):
        y = top + cell * i
        parts.append(
            element(
                "text",
                *named(names[i], NAME_LETTERS),
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
                *named(label, NAME_LETTERS),
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
