"""Labels of each row in the order of their probability.

A row is sorted as whole numbers: the bits of a probability (whose order is that of the numbers)
above, the label's index below, so that equal probabilities keep the order of the labels. Sorting
such keys is several times as fast as sorting indices. Where the index takes bits of the number, a
last pass by insertion puts the few numbers right that differ in those bits only.
"""

# pyright: reportCallIssue=false
# (An intrinsic is called without the context its definition names first.)

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from setwise.kernels import bits, kernel

# The bits of probabilities are below 2^62, so that keys have two bits to spare.
_ONE = np.int64(np.float64(1.0).view(np.int64))


@kernel
def fill_keys(probability, descending, mask, keys):
    """Keys of a block of rows."""
    for row in range(len(probability)):
        line, out = probability[row], keys[row]
        for j in range(len(line)):
            # Adding 0 makes a negative zero a zero.
            place = bits(np.float64(line[j]) + 0.0)
            place = _ONE - place if descending else place
            out[j] = ((place << 2) & ~mask) | j


@register_jitable
def take_sorted(line, keys, descending, mask, labels, sorted_line):
    """Labels and numbers of a row in the order of its sorted keys."""
    for j in range(len(keys)):
        labels[j] = keys[j] & mask
    for j in range(len(keys)):
        sorted_line[j] = line[labels[j]]
    for j in range(1, len(keys)):
        if before(sorted_line[j], labels[j], sorted_line[j - 1], labels[j - 1], descending):
            p, label, place = sorted_line[j], labels[j], j
            while place > 0 and before(
                p, label, sorted_line[place - 1], labels[place - 1], descending
            ):
                sorted_line[place], labels[place] = sorted_line[place - 1], labels[place - 1]
                place -= 1
            sorted_line[place], labels[place] = p, label


@register_jitable
def before(p, label, other_p, other_label, descending):
    """Whether a label comes before another: by probability, then by index."""
    if p == other_p:
        return label < other_label
    return (p > other_p) == descending


def index_mask(n_labels: int) -> np.int64:
    """The lowest bits that hold any label's index."""
    return np.int64((1 << max(int(n_labels - 1).bit_length(), 1)) - 1)
