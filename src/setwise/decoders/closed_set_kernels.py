"""The closed set of least expected loss: gains from the leaves to the roots, choices back."""

import numpy as np
from numba.extending import register_jitable

from setwise.kernels import kernel

# A sum of gains below this share of its terms is rounding: a tie.
ROUNDING = 1e-14


@register_jitable
def losses(probability, weight, agreement):
    """The expected loss of a label when left out and when predicted."""
    p, rest = np.float64(probability), 1.0 - np.float64(probability)
    absent = weight * (p * agreement[1, 0] + rest * agreement[0, 0])
    return absent, weight * (p * agreement[1, 1] + rest * agreement[0, 1])


@register_jitable
def gather_gains(line, labels, above, weights, agreement, gains, rounding):
    """What each node gains with its best descendants, and what of that may be rounding."""
    for k in range(1, len(labels)):
        absent, present = losses(line[labels[k]], weights[labels[k]], agreement)
        gains[k] = absent - present
        rounding[k] = ROUNDING * abs(gains[k])
    for k in range(len(labels) - 1, 0, -1):
        gains[above[k]] += max(gains[k], 0.0)
        rounding[above[k]] += rounding[k]


@kernel
def closed_set_rows(
    start, stop, probability, labels, above, weights, agreement, constant, sets, risk, second
):
    """The best closed set of each row, (n, l), its risk and that of the second best, (n,)."""
    gains, rounding = np.empty(len(labels)), np.empty(len(labels))
    chosen = np.empty(len(labels), dtype=np.bool_)
    for row in range(start, stop):
        line, out = probability[row], sets[row]
        # The virtual root is in every set, and what comes to it is not used.
        gains[0], rounding[0], chosen[0] = 0.0, 0.0, True
        gather_gains(line, labels, above, weights, agreement, gains, rounding)
        gap = np.inf
        for k in range(1, len(labels)):
            free = chosen[above[k]]
            chosen[k] = free and gains[k] > rounding[k]
            out[labels[k]] = chosen[k]
            # Any other closed set differs first in a label whose parent both have.
            gap = min(gap, abs(gains[k])) if free else gap
        total = constant
        for i in range(len(line)):
            absent, present = losses(line[i], weights[i], agreement)
            total += present if out[i] == 1 else absent
        risk[row], second[row] = total, total + gap
