"""A linear-fractional measure with the true set known: N and D as sums over labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise.spaces.quadrature import whole_steps
from setwise.targets.measure import ZERO_DENOMINATOR, Array, Fraction


@dataclass(frozen=True)
class Reduced:
    """D = start + sum_i step_i b_i and N = constant + sum_i (on_i if b_i else off_i), row by row.

    ``values`` = (on, off), (n, l) each. ``smallest`` and ``largest`` are the bounds of D where it
    is not 0; ``has_zero`` says where it can be 0; ``whole`` if all values of D are whole numbers.
    """

    start: Array
    step: Array
    constant: Array
    values: tuple[Array, Array]
    smallest: Array
    largest: Array
    has_zero: Array
    whole: bool


def reduce(measure: Fraction, y_true: Array) -> Reduced:
    """Write a fraction for given true sets, in units that make its steps whole where possible."""
    unit, steps = whole_steps(measure)
    above, below = measure.numerator / unit, measure.denominator / unit
    n_true = y_true.sum(axis=1, dtype=np.float64)
    n_false = y_true.shape[1] - n_true
    start = below[0] + below[3] * n_true + below[4] * n_false
    low = start + n_true * min(steps[0], 0.0) + n_false * min(steps[1], 0.0)
    high = start + n_true * max(steps[0], 0.0) + n_false * max(steps[1], 0.0)
    has_zero = low <= ZERO_DENOMINATOR * np.abs(below).max()
    sizes = np.abs(steps)
    smallest_step = np.where(
        (n_true > 0) & (sizes[0] > 0),
        np.where((n_false > 0) & (sizes[1] > 0), min(sizes), sizes[0]),
        sizes[1],
    )
    smallest = np.where(has_zero, np.where(smallest_step > 0, smallest_step, 1.0), low)
    on = np.where(y_true == 1, above[1], above[2])
    off = np.where(y_true == 1, above[3], above[4])
    every = np.concatenate([[low, high], np.broadcast_to(sizes[:, None], (2, len(low)))])
    return Reduced(
        start=start,
        step=np.where(y_true == 1, steps[0], steps[1]),
        constant=np.full(len(y_true), above[0]),
        values=(on, off),
        smallest=smallest,
        largest=np.maximum(high, smallest),
        has_zero=has_zero,
        whole=bool(np.abs(every - np.round(every)).max(initial=0.0) < ZERO_DENOMINATOR),
    )
