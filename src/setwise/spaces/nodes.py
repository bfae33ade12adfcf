"""The labels of a forest in the order in which compiled passes go through them.

Passes carry `LANES` rows of a batch side by side: what belongs to a node is a run of `LANES`
numbers, one for each of these rows, in a flat array. Nodes stand parents first, in *groups* in
which no node is the parent of another: within a group all arithmetic is one long loop that the
compiler vectorises, and only sums from children to parents, or values from parents to children, go
node by node. Node 0 is a virtual root above the forest, so that no node lacks a parent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise.spaces.space import Array

# Rows that go through together: few, so that what is held of ten thousand nodes stays in cache.
LANES = 4
# The most nodes of a group: what is held of a group alone stays in the nearest cache.
GROUP = 128


@dataclass(frozen=True, eq=False)
class Nodes:
    """The virtual root and the labels, parents first and level by level.

    ``labels[k]`` is the label of node k (-1 for the virtual root), ``above[k]`` the node of its
    parent, and ``ends`` where each group ends; the first
    group is the virtual root alone.
    """

    labels: Array
    above: Array
    ends: Array

    @classmethod
    def of(cls, parents: Array) -> Nodes:
        """The nodes of a forest given by the parent of each label, -1 for a root."""
        order = parents_first(parents)
        place = np.zeros(len(parents) + 1, dtype=np.int64)
        place[order] = np.arange(1, len(parents) + 1)
        # A root's parent is -1, the last place, where the virtual root stands.
        above = np.concatenate([[0], place[parents[order]]])
        ends = [1]
        for node in range(1, len(above)):
            first = ends[-1]
            if above[node] >= first or node - first == GROUP:
                ends.append(node)
        ends.append(len(above))
        return cls(np.concatenate([[-1], order]), above, np.array(ends))

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        """What kernels take: labels, above, ends."""
        return self.labels, self.above, self.ends

    def of_labels(self, values: Array, at_root: float = 0.0) -> Array:
        """A value for each label, and one for the virtual root, in the order of the nodes."""
        return np.concatenate([[at_root], np.asarray(values, dtype=np.float64)[self.labels[1:]]])


def parents_first(parents: Array) -> Array:
    """An order of the labels, level by level, so that parents stand before their children, (l,)."""
    children: list[list[int]] = [[] for _ in parents]
    order = [int(label) for label in np.flatnonzero(parents < 0)]
    for label in np.flatnonzero(parents >= 0):
        children[parents[label]].append(int(label))
    for label in order:
        order.extend(children[label])
    return np.array(order, dtype=np.int64)
