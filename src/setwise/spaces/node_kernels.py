"""What every pass over the nodes of a forest is made of; the layout is that of `nodes`."""

import numpy as np
from numba.extending import register_jitable

from setwise.spaces.nodes import LANES


@register_jitable
def add_to_parents(part, first, stop, above, sums):
    """sums[parent of k] += part[k - first] for the nodes of a group."""
    for k in range(first, stop):
        mine, whole = (k - first) * LANES, above[k] * LANES
        for b in range(LANES):
            sums[whole + b] += part[mine + b]


@register_jitable
def of_parents(values, first, stop, above, part):
    """part[k - first] = values[parent of k] for the nodes of a group."""
    for k in range(first, stop):
        mine, whole = (k - first) * LANES, above[k] * LANES
        for b in range(LANES):
            part[mine + b] = values[whole + b]


@register_jitable
def read_rows(array, row, rows, labels, factor, at_root, out):
    """out[k] = factor times the entry of node k's label, ``at_root`` at the virtual root.

    Lanes beyond the last of the rows, ``rows`` in number, repeat it.
    """
    out[:LANES] = at_root
    for k in range(1, len(labels)):
        for b in range(LANES):
            entry = array[min(row + b, rows - 1), labels[k]]
            out[k * LANES + b] = factor * np.float64(entry)


@register_jitable
def add_up(part, sums):
    """sums[b] += the entries of lane b."""
    for k in range(len(part) // LANES):
        for b in range(LANES):
            sums[b] += part[k * LANES + b]


@register_jitable
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


@register_jitable
def fill_lanes(lanes, out):
    """Repeat the numbers of the lanes."""
    for k in range(len(out) // LANES):
        for b in range(LANES):
            out[k * LANES + b] = lanes[b]
