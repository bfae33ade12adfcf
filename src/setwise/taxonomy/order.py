"""Labels of a hierarchy level by level, or the cycle that forbids it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Labels of a cycle in a message.
MOST_SHOWN = 10


def levels_of(edges: Array, names: Array) -> Array:
    """The number of labels on the longest way down to each label, less one, (l,).

    A label is reached when all its parents are; labels never reached are on a cycle or below one.
    """
    children: list[list[int]] = [[] for _ in names]
    waiting = np.zeros(len(names), dtype=np.int64)
    for above, child in edges.tolist():
        if above >= 0:
            children[above].append(child)
            waiting[child] += 1
    levels = np.zeros(len(names), dtype=np.int64)
    reached = np.flatnonzero(waiting == 0).tolist()
    for label in reached:
        for child in children[label]:
            levels[child] = max(levels[child], levels[label] + 1)
            waiting[child] -= 1
            if waiting[child] == 0:
                reached.append(child)
    if len(reached) < len(names):
        cycle = [repr(name) for name in names[_cycle(edges, waiting)].tolist()]
        if len(cycle) > MOST_SHOWN + 1:
            cycle[MOST_SHOWN:] = [f"... ({len(cycle) - 1} labels)"]
        raise ValueError(
            "a hierarchy must have no cycle, where parents lead back to where they began, "
            "but it has the cycle " + " -> ".join(cycle)
        )
    return levels


def forest_levels(parents: Array) -> Array:
    """The number of labels above each label of a forest, (l,); a cycle is refused."""
    labels = np.arange(len(parents))
    return levels_of(np.column_stack([parents, labels]), labels)


def _cycle(edges: Array, waiting: Array) -> list[int]:
    """One cycle among the labels that wait for a parent; each of them has a parent that waits."""
    waits = {child: above for above, child in edges.tolist() if above >= 0 and waiting[above] > 0}
    label = int(np.flatnonzero(waiting > 0)[0])
    seen: dict[int, int] = {}
    way: list[int] = []
    while label not in seen:
        seen[label] = len(way)
        way.append(label)
        label = waits[label]
    # From a parent down to its child, as edges are written.
    return [label, *way[: seen[label] : -1], label] if len(way) > seen[label] else [label]
