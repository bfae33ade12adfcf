"""The tree of labels with the F1 of each node, and the figures of each level and of all."""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise.evaluation import PerLabel, by_level
from setwise.report import numbers
from setwise.report.drawing import element, mark, named, picture, room_for
from setwise.report.material import Material
from setwise.report.names import isolated, plain
from setwise.taxonomy import Taxonomy, forest_levels

# Of larger trees the most frequent labels are drawn, with all that lies above them.
MOST_NODES, DEEPEST = 40, 10
# Levels from this one on are taken together.
LAST_LEVEL = 15
ROW, INDENT, NAME_LETTERS, HEAD, WIDTH, NARROWEST = 25.0, 18.0, 26, 30.0, 800.0, 260.0


def hierarchy(material: Material) -> dict[str, Any] | None:
    """Tree and levels for each target; None without a hierarchy."""
    if material.results.parents is None or not material.results.outcomes:
        return None
    parents = np.asarray(material.results.parents)
    depth = forest_levels(parents)
    nodes = _drawn(parents, material.support)
    return {
        "n_shown": len(nodes),
        "n_labels": numbers.count(len(parents)),
        "panels": [_panel(material, target, parents, depth, nodes) for target in material.judged],
    }


def _drawn(parents: Any, support: Any) -> list[int]:
    """The labels to draw, each parent before its children, the most frequent first."""
    kept: set[int] = set()
    for label in np.argsort(-support, kind="stable").tolist():
        line: list[int] = []
        while label >= 0 and label not in kept and (not kept or len(line) <= MOST_NODES):
            line.append(label)
            label = int(parents[label])
        if kept and len(kept) + len(line) > MOST_NODES:
            continue
        kept.update(line[-MOST_NODES:])
    children: dict[int, list[int]] = {}
    for label in sorted(kept, key=lambda label: (-support[label], label)):
        children.setdefault(int(parents[label]), []).append(label)
    order: list[int] = []
    waiting = children.get(-1, [])[::-1]
    while waiting:
        label = waiting.pop()
        order.append(label)
        waiting += children.get(label, [])[::-1]
    return order


def _panel(
    material: Material, target: str, parents: Any, depth: Any, nodes: list[int]
) -> dict[str, Any]:
    outcomes = [(o.method, material.figures[i]) for i, o in material.of(target)]
    names = material.results.label_names
    return {
        "title": material.measures[target].title,
        "methods": [method for method, _ in outcomes],
        "picture": _picture(material, outcomes, parents, depth, nodes),
        "nodes": [
            {
                "name": names[label],
                "level": int(depth[label]),
                "support": numbers.count(int(material.support[label])),
                "f1": [_f1(figures, label) for _, figures in outcomes],
            }
            for label in nodes
        ],
        "levels": [
            *(
                _level(material, outcomes, np.minimum(depth, LAST_LEVEL), level)
                for level in range(min(depth.max(), LAST_LEVEL) + 1)
            ),
            _with_ancestors(material, target, parents),
        ],
    }


def _f1(figures: PerLabel, label: int) -> str:
    judged = figures.support[label] + figures.predicted[label]
    return numbers.share(float(figures.f1[label]) if judged else None)


def _level(material: Material, outcomes: list[Any], depth: Any, level: int) -> dict[str, Any]:
    """Precision, recall and F1 over the entries of all labels on a level."""
    here = depth == level
    rows = [
        _row(
            material, method,
            *(int(c[here].sum()) for c in (figures.both, figures.predicted, figures.support)),
        )
        for method, figures in outcomes
    ]  # fmt: skip
    return {
        "level": f"{level}{'+' * (level == LAST_LEVEL)}",
        "n_labels": numbers.count(int(here.sum())),
        "support": numbers.count(int(material.support[here].sum())),
        "rows": rows,
    }


def _with_ancestors(material: Material, target: str, parents: Any) -> dict[str, Any]:
    """Hierarchical precision, recall and F1: over all labels, with those above them added."""
    taxonomy = Taxonomy.from_parents(parents)
    found = [
        (outcome.method, by_level(outcome.y_pred, material.results.y_true, taxonomy))
        for _, outcome in material.of(target)
    ]
    return {
        "level": "all, with ancestors",
        "n_labels": numbers.count(len(parents)),
        "support": numbers.count(int(found[0][1].support.sum())),
        "rows": [
            _row(material, method, *(int(c.sum()) for c in (of.both, of.predicted, of.support)))
            for method, of in found
        ],
    }


def _row(
    material: Material, method: str, both: int, predicted: int, support: int
) -> dict[str, Any]:
    either = predicted + support
    return {
        "method": method,
        "style": material.styles[method],
        "precision": numbers.share(both / predicted if predicted else None),
        "recall": numbers.share(both / support if support else None),
        "f1": numbers.share(2 * both / either if either else None),
    }


def _picture(
    material: Material, outcomes: list[Any], parents: Any, depth: Any, nodes: list[int]
) -> Any:
    """Branches and names to the left, the F1 of all methods on one axis to the right."""
    deepest = min(int(depth[nodes].max()), DEEPEST)
    names = {label: plain(material.results.label_names[label]) for label in nodes}
    left = 20.0 + INDENT * deepest + room_for(names.values(), NAME_LETTERS)
    start = left + 56
    end = max(WIDTH - 14, start + NARROWEST)
    at = {label: i for i, label in enumerate(nodes)}
    x_of = {label: 10.0 + INDENT * min(int(depth[label]), DEEPEST) for label in nodes}
    middle = {label: HEAD + ROW * (i + 0.5) for label, i in at.items()}
    parts = [element("text", "rows", x=left + 40, y=HEAD - 10, class_="axis end")]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = start + (end - start) * tick
        label = "0" if tick == 0 else numbers.share(tick, 2)
        parts += [
            element("line", x1=x, x2=x, y1=HEAD, y2=HEAD + ROW * len(nodes), class_="grid"),
            element("text", label, x=x, y=HEAD - 10, class_="tick middle"),
        ]
    for label in nodes:
        x, y, parent = x_of[label], middle[label], int(parents[label])
        if parent >= 0:
            branch = f"M{x_of[parent]:.1f} {middle[parent] + 4:.1f}V{y:.1f}H{x - 4:.1f}"
            parts.append(element("path", d=branch, class_="branch"))
        parts += [
            element("circle", cx=x, cy=y, r=3.5, class_="node"),
            element("text", *named(names[label], NAME_LETTERS), x=x + 10, y=y + 4, class_="name"),
            element("text", numbers.count(int(material.support[label])), x=left + 40, y=y + 4,
                    class_="tick end"),
            element("line", x1=start, x2=end, y1=y, y2=y, class_="grid"),
        ]  # fmt: skip
        for method, figures in outcomes:
            if figures.support[label] + figures.predicted[label]:
                place = start + (end - start) * float(figures.f1[label])
                tip = f"{isolated(method)}: F1 {_f1(figures, label)}"
                parts.append(mark(material.styles[method], place, y, tip))
    title = "The hierarchy, with the F1 of each label; the table that follows has the numbers"
    return picture(end + 14, HEAD + ROW * len(nodes) + 8, title, *parts)
