"""What moments by passes over nodes have in common: values of labels, and factors that overflow."""

import numpy as np
from numba.extending import register_jitable

from setwise.spaces.nodes import LANES

# Above this exponent a factor is taken last, so that an overflow does not meet a zero.
LARGE = 300.0


@register_jitable
def read_values(y_true, row, rows, labels, weights, agreement, on, off):
    """What the label of each node adds when present and when absent; 0 at the virtual root."""
    (false_off, false_on), (true_off, true_on) = (
        (agreement[0, 0], agreement[0, 1]), (agreement[1, 0], agreement[1, 1])
    )  # fmt: skip
    on[:LANES], off[:LANES] = 0.0, 0.0
    for k in range(1, len(labels)):
        for b in range(LANES):
            is_true = y_true[min(row + b, rows - 1), labels[k]] == 1
            on[k * LANES + b] = weights[k] * (true_on if is_true else false_on)
            off[k * LANES + b] = weights[k] * (true_off if is_true else false_off)


@register_jitable
def times_exp(value, exponent):
    """value * e^exponent, where 0 times an overflow is 0."""
    return value * np.exp(exponent) if value != 0.0 else 0.0


@register_jitable
def take_large_factors(exponent, part):
    """Multiply the lanes whose exponent is large by its exponential."""
    for b in range(LANES):
        if exponent[b] > LARGE:
            for k in range(len(part) // LANES):
                part[k * LANES + b] = times_exp(part[k * LANES + b], exponent[b])
