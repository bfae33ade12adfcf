"""The tree of labels with the F1 of each node, and the figures of each level and of all.

Both label sets of a row are taken with all labels above theirs, in every figure here.
"""

from __future__ import annotations

from typing import Any

from setwise.evaluation import PerLabel
from setwise.report import numbers
from setwise.report.drawing import element, mark, picture, room_for
from setwise.report.material import Material, Panel
from setwise.report.names import clipped, isolated, plain
from setwise.study import InHierarchy
from setwise.taxonomy import Taxonomy

# Of larger trees the most frequent labels are drawn, with all that lies above them.
MOST_NODES = 40
# Levels from this one on are taken together.
LAST_LEVEL = 15
ROW, NAME_LETTERS, HEAD, WIDTH, NARROWEST = 25.0, 26, 30.0, 800.0, 260.0
# A level is so far to the right of the one above it, and all levels have so much room at most.
INDENT, MOST_INDENT = 18.0, 180.0


def hierarchy(material: Material) -> dict[str, Any] | None:
    """Tree and levels for each target; None without a hierarchy."""
    taxonomy = material.results.taxonomy
    if taxonomy is None or not material.results.outcomes:
        return None
    tree = taxonomy.spanning_tree()
    support = material.placed[0].labels.support
    nodes = _drawn(tree, support)
    return {
        "n_shown": len(nodes),
        "n_labels": numbers.count(tree.n_labels),
        "n_entries": numbers.count(int(support.sum())),
        "note": tree.note,
        "panels": [_panel(material, panel, tree, nodes) for panel in material.panels],
    }


def _drawn(tree: Taxonomy, support: Any) -> list[int]:
    """The labels to draw, each parent before its children, the most frequent first."""
    parents = tree.parents
    kept: set[int] = set()
    for label in (-support).argsort(kind="stable").tolist():
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


def _panel(material: Material, panel: Panel, tree: Taxonomy, nodes: list[int]) -> dict[str, Any]:
    title, target = panel
    here = [figures for figures in material.placed if figures.target == target]
    outcomes = [(figures.method, figures.labels) for figures in here]
    names = material.results.label_names
    return {
        "title": title,
        "unit": here[0].unit,
        "is_distance": material.measures[target].scale is not None,
        "methods": [method for method, _ in outcomes],
        "picture": _picture(material, outcomes, tree, nodes),
        "nodes": [
            {
                "name": names[label],
                "level": int(tree.levels[label]),
                "support": numbers.count(int(outcomes[0][1].support[label])),
                "f1": [_f1(figures, label) for _, figures in outcomes],
            }
            for label in nodes
        ],
        "all": [
            {
                **_row(material, figures.method, slice(None), figures),
                "closed": _percent(figures.closed),
                "distance": numbers.small(figures.distance),
            }
            for figures in here
        ],
        "levels": [
            _level(material, here, level) for level in range(min(tree.depth, LAST_LEVEL + 1))
        ],
    }


def _f1(figures: PerLabel, label: int) -> str:
    judged = figures.support[label] + figures.predicted[label]
    return numbers.share(float(figures.f1[label]) if judged else None)


def _percent(share: float) -> str:
    """A share in percent; 100 % is all of it, and 0 % nothing."""
    words = f"{100 * share:.1f} %"
    return {"100.0 %": "100 %" if share == 1.0 else "99.9 %",
            "0.0 %": "0 %" if share == 0.0 else "0.1 %"}.get(words, words)  # fmt: skip


def _level(material: Material, here: list[InHierarchy], level: int) -> dict[str, Any]:
    """Precision, recall and F1 over the entries of all labels on a level."""
    of = slice(level, None if level == LAST_LEVEL else level + 1)
    levels = here[0].levels
    return {
        "level": f"{level}{'+' * (level == LAST_LEVEL)}",
        "n_labels": numbers.count(int(levels.n_labels[of].sum())),
        "support": numbers.count(int(levels.support[of].sum())),
        "rows": [_row(material, figures.method, of, figures) for figures in here],
    }


def _row(material: Material, method: str, of: slice, figures: InHierarchy) -> dict[str, Any]:
    """The figures of some levels together."""
    levels = figures.levels
    both, predicted, support = (
        int(counts[of].sum()) for counts in (levels.both, levels.predicted, levels.support)
    )
    either = predicted + support
    return {
        "method": method,
        "style": material.styles[method],
        "precision": numbers.share(both / predicted if predicted else None),
        "recall": numbers.share(both / support if support else None),
        "f1": numbers.share(2 * both / either if either else None),
    }


def _picture(material: Material, outcomes: list[Any], tree: Taxonomy, nodes: list[int]) -> Any:
    """Branches and names to the left, the F1 of all methods on one axis to the right."""
    parents, depth = tree.parents, tree.levels
    deepest = int(depth[nodes].max())
    indent = min(INDENT, MOST_INDENT / max(deepest, 1))
    names = {label: plain(material.results.label_names[label]) for label in nodes}
    ends = {label: _end(names[label], names.get(int(parents[label]), "")) for label in nodes}
    left = 20.0 + indent * deepest + room_for(ends.values(), NAME_LETTERS)
    start = left + 56
    end = max(WIDTH - 14, start + NARROWEST)
    at = {label: i for i, label in enumerate(nodes)}
    x_of = {label: 10.0 + indent * int(depth[label]) for label in nodes}
    middle = {label: HEAD + ROW * (i + 0.5) for label, i in at.items()}
    parts = [element("text", "rows", x=left + 40, y=HEAD - 10, class_="axis end")]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = start + (end - start) * tick
        label = "0" if tick == 0 else numbers.share(tick, 2)
        parts += [
            element("line", x1=x, x2=x, y1=HEAD, y2=HEAD + ROW * len(nodes), class_="grid"),
            element("text", label, x=x, y=HEAD - 10, class_="tick middle"),
        ]
    support = outcomes[0][1].support
    for label in nodes:
        x, y, parent = x_of[label], middle[label], int(parents[label])
        if parent >= 0:
            branch = f"M{x_of[parent]:.1f} {middle[parent] + 4:.1f}V{y:.1f}H{x - 4:.1f}"
            parts.append(element("path", d=branch, class_="branch"))
        parts += [
            element("circle", cx=x, cy=y, r=3.5, class_="node"),
            element("text", *_text(ends[label], names[label]), x=x + 10, y=y + 4, class_="name"),
            element("text", numbers.count(int(support[label])), x=left + 40, y=y + 4,
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


def _end(name: str, above: str) -> str:
    """Of a path name what its parent's has not; the branches show the rest."""
    rest = name.removeprefix(above)
    if rest == name or not rest or rest[0].isalnum():
        return name
    return rest.lstrip("".join(letter for letter in rest if not letter.isalnum())) or name


def _text(end: str, whole: str) -> list[Any]:
    """What a text element of a name holds: what there is room for, and the whole as a tooltip."""
    short = clipped(end, NAME_LETTERS)
    return [short] if short == whole else [short, element("title", whole)]
