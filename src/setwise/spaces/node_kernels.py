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
def add_scores(scores, row, rows, labels, first, stop, factor, shift, out):
    """out[k] += factor * (2 score + shift_k) for the nodes of a group.

    Lanes beyond the last of the rows, ``rows`` in number, repeat it.
    """
    for b in range(LANES):
        line = scores[min(row + b, rows - 1)]
        for k in range(first, stop):
            out[k * LANES + b] += factor * (2.0 * np.float64(line[labels[k]]) + shift[k])


@register_jitable
def read_truth(y_true, row, rows, labels, first, stop, out):
    """out[k] = 1 where the label is true, else 0, for the nodes of a group."""
    for b in range(LANES):
        line = y_true[min(row + b, rows - 1)]
        for k in range(first, stop):
            out[k * LANES + b] = np.float64(line[labels[k]])


@register_jitable
def add_up(part, sums):
    """sums[b] += the entries of lane b."""
    for k in range(len(part) // LANES):
        for b in range(LANES):
            sums[b] += part[k * LANES + b]


@register_jitable
def write_rows(part, row, rows, labels, first, stop, out):
    """out[row, label of k] = part[k - first] for the nodes of a group."""
    for b in range(min(LANES, rows - row)):
        line = out[row + b]
        for k in range(first, stop):
            line[labels[k]] = part[(k - first) * LANES + b]
