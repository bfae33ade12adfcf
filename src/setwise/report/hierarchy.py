"""The tree of labels with the F1 of each node, and the figures of each level and of all.

Both label sets of a row are taken with all labels above theirs, in every figure here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from setwise.evaluation import ByLevel, PerLabel
from setwise.report.drawing import Axis, element, line, mark, picture, room_for, text
from setwise.report.material import Material, Panel
from setwise.report.words import count, isolated, plain, share
from setwise.study import InHierarchy
from setwise.taxonomy import Taxonomy

# Of larger trees the most frequent labels are drawn, with all that lies above them.
MOST_NODES = 40
# Levels from this one on are taken together.
LAST_LEVEL = 15
ROW, NAME_LETTERS, HEAD, WIDTH, NARROWEST = 25.0, 26, 30.0, 800.0, 260.0
# A level is so far to the right of the one above it, and all levels have so much room at most.
INDENT, MOST_INDENT = 18.0, 180.0
QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


def hierarchy(material: Material) -> dict[str, Any] | None:
    """Tree and levels for each target; None without a hierarchy."""
    taxonomy = material.results.taxonomy
    if taxonomy is None or not material.placed:
        return None
    tree = taxonomy.spanning_tree()
    nodes = _drawn(tree, material.placed[0].labels.support)
    return {
        "tree": tree,
        "nodes": nodes,
        "last_level": LAST_LEVEL,
        "n_entries": material.placed[0].labels.support.sum(),
        "panels": [_panel(material, panel, tree, nodes) for panel in material.panels],
        "f1": f1,
    }


def _drawn(tree: Taxonomy, support: Any) -> list[int]:
    """The labels to draw, each parent before its children, the most frequent first."""
    parents = tree.parents.tolist()
    kept: set[int] = set()
    for label in (-support).argsort(kind="stable").tolist():
        path: list[int] = []
        while label >= 0 and label not in kept and (not kept or len(path) <= MOST_NODES):
            path.append(label)
            label = parents[label]
        if not kept or len(kept) + len(path) <= MOST_NODES:
            kept.update(path[-MOST_NODES:])
    children: dict[int, list[int]] = {}
    for label in sorted(kept, key=lambda label: (-support[label], label)):
        children.setdefault(parents[label], []).append(label)

    def below(parent: int) -> list[int]:
        return [own for label in children.get(parent, []) for own in (label, *below(label))]

    return below(-1)


def _panel(material: Material, panel: Panel, tree: Taxonomy, nodes: list[int]) -> dict[str, Any]:
    here = [figures for figures in material.placed if figures.target == panel.target]
    return {
        "title": panel.title,
        "is_distance": material.measures[panel.target].scale is not None,
        "picture": _picture(material, here, tree, nodes),
        "figures": here,
        "levels": [
            [_on_level(figures, level) for figures in here]
            for level in range(min(tree.depth, LAST_LEVEL + 1))
        ],
    }


def _on_level(figures: InHierarchy, level: int) -> InHierarchy:
    """The figures over the entries of all labels on a level, the last one with all below it."""
    of = slice(level, None if level == LAST_LEVEL else level + 1)
    return replace(figures, levels=ByLevel(*(own[of] for own in vars(figures.levels).values())))


def f1(figures: PerLabel, label: int) -> float | None:
    """Of a label; None where it is never true and never predicted."""
    judged = figures.support[label] + figures.predicted[label]
    return float(figures.f1[label]) if judged else None


def _picture(material: Material, here: list[InHierarchy], tree: Taxonomy, nodes: list[int]) -> Any:
    """Branches and names to the left, the F1 of all methods on one axis to the right."""
    parents, depth = tree.parents.tolist(), tree.levels
    deepest = int(depth[nodes].max())
    indent = min(INDENT, MOST_INDENT / max(deepest, 1))
    names = {label: plain(material.results.label_names[label]) for label in nodes}
    ends = {label: _end(names[label], names.get(parents[label], "")) for label in nodes}
    left = 20.0 + indent * deepest + room_for(ends.values(), NAME_LETTERS)
    axis = Axis(0.0, 1.0, left + 56, max(WIDTH - 14, left + 56 + NARROWEST), QUARTERS)
    bottom = HEAD + ROW * len(nodes)
    places = {
        label: (10.0 + indent * int(depth[label]), HEAD + ROW * (i + 0.5))
        for i, label in enumerate(nodes)
    }
    parts = [text("rows", left + 40, HEAD - 10, "axis end")]
    for x, label in axis.marked():
        parts += [line(x, HEAD, x, bottom, "grid"), text(label, x, HEAD - 10, "tick middle")]
    for label, (x, y) in places.items():
        if parents[label] >= 0:
            above_x, above_y = places[parents[label]]
            branch = f"M{above_x:.1f} {above_y + 4:.1f}V{y:.1f}H{x - 4:.1f}"
            parts.append(element("path", d=branch, class_="branch"))
        n_rows = count(int(here[0].labels.support[label]))
        parts += [
            element("circle", cx=x, cy=y, r=3.5, class_="node"),
            text(ends[label], x + 10, y + 4, "name", NAME_LETTERS, names[label]),
            text(n_rows, left + 40, y + 4, "tick end"),
            line(axis.start, y, axis.end, y, "grid"),
        ]
        for figures in here:
            value = f1(figures.labels, label)
            if value is not None:
                tip = f"{isolated(figures.method)}: F1 {share(value)}"
                parts.append(mark(material.styles[figures.method], axis.at(value), y, tip))
    title = "The hierarchy, with the F1 of each label; the table that follows has the numbers"
    return picture(axis.end + 14, bottom + 8, title, *parts)


def _end(name: str, above: str) -> str:
    """Of a path name what its parent's has not; the branches show the rest."""
    rest = name.removeprefix(above)
    if rest == name or not rest or rest[0].isalnum():
        return name
    return rest.lstrip("".join(letter for letter in rest if not letter.isalnum())) or name
