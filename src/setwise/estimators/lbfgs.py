"""L-BFGS without bounds: a step is a few passes over the vectors it remembers, and no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Armijo: the value falls by this fraction of what the slope promises. Wolfe: the slope behind the
# step is at most this fraction as steep. Where values differ by no more than this part of them,
# the slope alone tells.
ARMIJO, WOLFE, NOISE = 1e-4, 0.9, 1e-13
MAX_TRIALS = 20
# A trial between two ends stays this part of their distance away from them.
MARGIN = 0.1


def lbfgs(
    evaluate: Callable[[Array], tuple[float, Array]],
    start: Array,
    memory: int,
    max_iter: int,
    after_step: Callable[[], bool],
    known: tuple[float, Array] | None = None,
    precision: Any = np.float64,
) -> Array:
    """The point after the last step down from ``start``.

    ``evaluate`` gives value and gradient; those at the start may be ``known``. ``after_step`` says
    whether to end; so does a line search that finds nothing lower. Steps keep the weak conditions
    of Wolfe, by bisection (Lewis and Overton, 2013), so that the objective may have kinks. Steps
    are remembered in that ``precision``: where gradients are in float32, half the memory will do.

    Examples
    --------
    >>> found = lbfgs(lambda x: (float(x @ x), 2 * x), np.array([3.0, -4.0]), 5, 20, lambda: False)
    >>> bool(np.abs(found).max() < 1e-8)
    True
    """
    point, (value, gradient) = start, evaluate(start) if known is None else known
    pairs = Pairs(memory, len(start), precision)
    for _ in range(max_iter):
        direction = pairs.direction(gradient)
        slope = float(gradient @ direction)
        if not slope < 0.0:
            pairs.clear()
            direction, slope = -gradient, -float(gradient @ gradient)
        found = _search(evaluate, point, direction, value, slope)
        if found is None:
            return point
        length, value, ahead = found
        direction *= length
        point = point + direction
        pairs.add(direction, gradient, ahead)
        gradient = ahead
        # They are large, and there is a copy among the pairs.
        del direction, found, ahead
        if after_step():
            return point
    return point


class Pairs:
    """The last so many steps and the changes of the gradient along them.

    All products between them are kept, so that a direction takes two products of a matrix of them
    with the gradient and two with numbers, whatever their number (Byrd, Nocedal and Schnabel,
    1994): products with a change are those with the gradient after it less those before.
    """

    def __init__(self, memory: int, size: int, precision: Any = np.float64):
        self.steps, self.changes = np.empty((2, memory, size), precision)
        # Of steps by changes that are no older, and of changes by changes.
        self.across, self.among = np.zeros((memory, memory)), np.zeros((memory, memory))
        # Of steps and of changes by the last gradient.
        self.by_step, self.by_change = np.zeros(memory), np.zeros(memory)
        # The places of those there are, the oldest first.
        self.order: list[int] = []

    def clear(self) -> None:
        """Forget all."""
        self.order.clear()

    def add(self, step: Array, gradient: Array, ahead: Array) -> None:
        """Remember a step from one gradient to the next, if it bends, in place of the oldest."""
        change = ahead - gradient
        bend, size = float(step @ change), float(change @ change)
        place = None
        if bend > NOISE * size:
            there = len(self.order)
            place = there if there < len(self.steps) else self.order.pop(0)
            self.order.append(place)
            self.steps[place], self.changes[place] = step, change
        used = slice(0, len(self.order))
        lean = ahead.astype(self.steps.dtype, copy=False)
        by_step, by_change = self.steps[used] @ lean, self.changes[used] @ lean
        if place is not None:
            self.across[used, place] = by_step - self.by_step[used]
            self.among[used, place] = self.among[place, used] = by_change - self.by_change[used]
            self.across[place, place], self.among[place, place] = bend, size
        self.by_step[used], self.by_change[used] = by_step, by_change

    def direction(self, gradient: Array) -> Array:
        """-H gradient, for the inverse Hessian H that the pairs tell of; of the last gradient."""
        if not self.order:
            return -gradient
        used, order = slice(0, len(self.order)), self.order
        # From the newest pair to the oldest, the way is -gradient - shares · changes; then, from
        # the oldest to the newest, that times ``scale`` plus gains · steps.
        square = np.ix_(order, order)
        later, among = np.triu(self.across[square]), self.among[square]
        bends, scale = later.diagonal(), later[-1, -1] / among[-1, -1]
        shares = -np.linalg.solve(later, self.by_step[order])
        gains = np.linalg.solve(
            later.T, bends * shares + scale * (self.by_change[order] + among @ shares)
        )
        back = np.argsort(order)
        gains, shares = (part[back].astype(self.steps.dtype) for part in (gains, scale * shares))
        way = gains @ self.steps[used]
        way -= shares @ self.changes[used]
        return way - scale * gradient


def _search(
    evaluate: Callable[[Array], tuple[float, Array]],
    point: Array,
    direction: Array,
    value: float,
    slope: float,
) -> tuple[float, float, Array] | None:
    """Length of a step, with value and gradient behind it, or None where nothing is lower."""
    low, high, length = 0.0, np.inf, 1.0
    if not slope < 0.0:
        return None
    for _ in range(MAX_TRIALS):
        there, gradient = evaluate(point + length * direction)
        behind = float(gradient @ direction)
        alike = abs(there - value) <= NOISE * abs(value) and behind <= (2 * ARMIJO - 1) * slope
        if there <= value + ARMIJO * length * slope or alike:
            if behind >= WOLFE * slope:
                return length, there, gradient
            low = length
        else:
            high = length
        if high == np.inf:
            length *= 2.0
            continue
        # Where a parabola through the value and slope here, and the value there, is least.
        rise = there - value - length * slope
        best = -slope * length**2 / (2.0 * rise) if high == length and rise > 0.0 else np.nan
        margin = MARGIN * (high - low)
        length = min(max(best, low + margin), high - margin) if best > low else (low + high) / 2.0
    return None
