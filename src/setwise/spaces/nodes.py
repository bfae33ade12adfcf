"""The labels of a forest in the order in which compiled passes go through them.

Passes carry `LANES` rows of a batch side by side: what belongs to a node is a run of `LANES`
numbers, one for each of these rows, in a flat array. Nodes stand parents first, in *groups* in
which no node is the parent of another: within a group all arithmetic is one long loop that the
compiler vectorises, and only sums from children to parents, or values from parents to children, go
node by node. Node 0 is a virtual root above the forest, so that no node lacks a parent.

Below the layout stands what every such pass is made of. Arguments: ``row`` is the first row of the
lanes and ``rows`` where the rows end; lanes beyond repeat the last row and are not written.
``part`` has room for the nodes of one group, ``first`` to ``stop``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setwise.kernels import inner
from setwise.spaces.cube_kernels import times_exp

# Rows that go through together: few, so that what is held of ten thousand nodes stays in cache.
LANES = 4
# The most nodes of a group: what is held of a group alone stays in the nearest cache.
GROUP = 128
# Above this exponent a factor is taken last, so that an overflow does not meet a zero.
LARGE = 300.0


class Nodes(NamedTuple):
    """The virtual root and the labels, parents first and level by level; the root is a group."""

    labels: NDArray[np.int64]  # (m,): the label of each node, -1 for the virtual root
    above: NDArray[np.int64]  # (m,): the node of its parent
    ends: NDArray[np.int64]  # (groups,): where each group ends

    @classmethod
    def of(cls, parents: NDArray[np.int64]) -> Nodes:
        """The nodes of a forest given by the parent of each label, -1 for a root."""
        children: list[list[int]] = [[] for _ in parents]
        for label in np.flatnonzero(parents >= 0).tolist():
            children[parents[label]].append(label)
        # Level by level, the children of a node side by side: sums for it stay in near cache.
        order = np.flatnonzero(parents < 0).tolist()
        for label in order:
            order.extend(children[label])
        order = np.array(order, dtype=np.int64)
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
    def groups(self) -> NDArray[np.int64]:
        """Where each group begins and ends, the virtual root's left out, (groups - 1, 2)."""
        return np.column_stack([self.ends[:-1], self.ends[1:]])

    def of_labels(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """A value for each label, and 0 for the virtual root, in the order of the nodes.

        Labels are the last axis of the values.
        """
        return np.concatenate([np.zeros_like(values[..., :1]), values[..., self.labels[1:]]], -1)


class Power(NamedTuple):
    """What is wanted, times e^log_scale: F(q) or, with ``limit`` (and q = 0), -F'(0)."""

    q: float
    limit: bool
    log_scale: float
    log_size: float


@inner
def of_group(values, here, until, size):
    """The entries of a group in an array of all nodes, or of one that serves every group anew."""
    return values[here:until] if len(values) == size else values[: until - here]


@inner
def add_to_parents(part, first, stop, above, sums):
    """sums[parent of k] += part[k - first] for the nodes of a group."""
    for k in range(first, stop):
        mine, whole = (k - first) * LANES, above[k] * LANES
        for b in range(LANES):
            sums[whole + b] += part[mine + b]


@inner
def of_parents(values, first, stop, above, part):
    """part[k - first] = values[parent of k] for the nodes of a group."""
    for k in range(first, stop):
        mine, whole = (k - first) * LANES, above[k] * LANES
        for b in range(LANES):
            part[mine + b] = values[whole + b]


@inner
def read_rows(array, row, rows, labels, factor, at_root, out):
    """out[k] = factor times the entry of node k's label, ``at_root`` at the virtual root."""
    out[:LANES] = at_root
    for k in range(1, len(labels)):
        for b in range(LANES):
            entry = array[min(row + b, rows - 1), labels[k]]
            out[k * LANES + b] = factor * np.float64(entry)


@inner
def read_values(y_true, row, rows, labels, measure, on, off):
    """What the label of each node adds when present and when absent; 0 at the virtual root."""
    values, _, _ = measure
    false_off, false_on, true_off, true_on = values[0, 0], values[0, 1], values[1, 0], values[1, 1]
    on[:LANES], off[:LANES] = 0.0, 0.0
    for k in range(1, len(labels)):
        for b in range(LANES):
            is_true = y_true[min(row + b, rows - 1), labels[k]] == 1
            on[k * LANES + b] = true_on[k] if is_true else false_on[k]
            off[k * LANES + b] = true_off[k] if is_true else false_off[k]


@inner
def write_rows(part, row, rows, labels, first, stop, out):
    """out[row, label of k] = part[k - first] for the nodes of a group."""
    if row + LANES <= rows:
        for k in range(first, stop):
            for b in range(LANES):
                out[row + b, labels[k]] = part[(k - first) * LANES + b]
    else:
        for k in range(first, stop):
            for b in range(rows - row):
                out[row + b, labels[k]] = part[(k - first) * LANES + b]


@inner
def write_lanes(lanes, row, rows, out):
    """out[row + b] = lanes[b]."""
    for b in range(min(LANES, rows - row)):
        out[row + b] = lanes[b]


@inner
def plus(values, part):
    """values += part, entry by entry. (An expression of slices would make room each time.)"""
    for j in range(len(values)):
        values[j] += part[j]


@inner
def times_into(first, second, out):
    """out = first * second, entry by entry."""
    for j in range(len(out)):
        out[j] = first[j] * second[j]


@inner
def add_up(part, sums):
    """sums[b] += the entries of lane b."""
    for k in range(len(part) // LANES):
        for b in range(LANES):
            sums[b] += part[k * LANES + b]


@inner
def fill_lanes(lanes, out):
    """Repeat the numbers of the lanes."""
    for k in range(len(out) // LANES):
        for b in range(LANES):
            out[k * LANES + b] = lanes[b]


@inner
def slope_factors(power, log_sum, whole, exponent, factor):
    """The exponent of F(q), and what slopes by b = (y' + 1) / 2 are multiplied by, lane by lane.

    ``log_sum`` is A_q, ``whole`` A_1. A large exponent is left to `take_large_factors`.
    """
    for b in range(LANES):
        exponent[b] = power.log_scale
        if power.q != 1.0 and not power.limit:
            exponent[b] += (log_sum[b] - power.log_size) - power.q * (whole[b] - power.log_size)
        factor[b] = -2.0 if power.limit else 2.0
        if exponent[b] <= LARGE:
            factor[b] *= np.exp(exponent[b])


@inner
def take_large_factors(exponent, part):
    """Multiply the lanes whose exponent is large by its exponential."""
    for b in range(LANES):
        if exponent[b] > LARGE:
            for k in range(len(part) // LANES):
                part[k * LANES + b] = times_exp(part[k * LANES + b], exponent[b])


@inner
def write_values(power, row, rows, mean, whole, inner, exponent, value):
    """F(q) from E_q[u] = ``mean``, or -F'(0) = E_0[u] (A - log|Y|) - E_0[u z] = ``inner``."""
    for b in range(min(LANES, rows - row)):
        wanted = mean[b]
        if power.limit:
            wanted = mean[b] * (whole[b] - power.log_size) - inner[b]
        value[row + b] = times_exp(wanted, exponent[b])
