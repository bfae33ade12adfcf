"""Which rule for 1/D serves a row: by its number of true labels and the expected D.

On the cube D is a constant plus independent labels times their steps, so it is concentrated around
its mean c, and few nodes suffice. A step below 0 is turned round (count the labels left out
instead), so that D = start + step_true * A + step_false * B with steps >= 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from setwise.expectation.fraction import whole_steps
from setwise.expectation.quadrature import exponential_sum, jacobi, laguerre
from setwise.targets.measure import ZERO_DENOMINATOR, Array, Fraction

# (largest mean of D in steps, Gauss nodes); beyond the last, Laguerre nodes. Measured against the
# exact law, see benchmarks/accuracy.py: below 1e-9 in float64 and 1e-7 in float32.
FLOAT64_LEVELS, FLOAT64_LAGUERRE = ((9.0, 8), (20.0, 12), (40.0, 16)), 8
FLOAT32_LEVELS, FLOAT32_LAGUERRE = ((9.0, 6), (20.0, 8), (40.0, 11)), 6
EXACT_NODES = 16


@dataclass(frozen=True)
class RuleTable:
    """The rules of the numbers of true labels seen so far; ``slot[n_true]`` finds them (-1: none).

    For a slot: ``start`` of D, ``zero`` 1 where D can be 0, ``count`` of nodes at each level, and
    at each node t the powers t^step of a true and a false label and the node's weight.
    """

    slot: Array
    start: Array
    zero: Array
    count: Array
    power_true: Array
    power_false: Array
    weight: Array


@dataclass
class Rules:
    """Rules of one fraction over ``n_labels`` labels, made when first needed.

    ``flip`` says whether labels are counted when left out (true labels, false labels); ``step`` are
    the steps after that. ``constant``, ``on``, ``off`` give N in the unit of the steps: what a true
    and a false label add when counted and when not.
    """

    measure: Fraction
    n_labels: int
    single: bool
    unit: float = field(init=False)
    step: Array = field(init=False)
    flip: Array = field(init=False)
    bounds: Array = field(init=False)
    far: tuple[Array, Array] = field(init=False)
    _table: RuleTable | None = field(init=False, default=None)
    _lock: Lock = field(init=False, default_factory=Lock)

    def __post_init__(self):
        self.unit, steps = whole_steps(self.measure)
        self.flip, self.step = steps < 0, np.abs(steps)
        levels = FLOAT32_LEVELS if self.single else FLOAT64_LEVELS
        largest = self.step.max() if self.step.max() > 0 else 1.0
        if self._whole_steps() and largest == 1.0:
            self.bounds = np.array([bound for bound, _ in levels])
        else:
            # One rule for all laws up to the last bound.
            self.bounds = np.array([levels[-1][0] * largest])
        self.far = laguerre(FLOAT32_LAGUERRE if self.single else FLOAT64_LAGUERRE)

    @property
    def constant(self) -> float:
        """The constant of N in units."""
        return float(self.measure.numerator[0] / self.unit)

    @property
    def on(self) -> Array:
        """What a counted label adds to N in units, (true, false)."""
        above = self.measure.numerator / self.unit
        return np.where(self.flip, above[3:5], above[1:3])

    @property
    def off(self) -> Array:
        """What a label that is not counted adds to N in units, (true, false)."""
        above = self.measure.numerator / self.unit
        return np.where(self.flip, above[1:3], above[3:5])

    def table(self, n_true: Array) -> RuleTable:
        """The table, with all the given numbers of true labels in it."""
        with self._lock:
            known = self._table
            needed = np.unique(n_true) if len(n_true) else np.array([0])
            new = needed if known is None else needed[known.slot[needed] < 0]
            if len(new):
                known = self._extended(known, new)
                self._table = known
            assert known is not None
            return known

    def _extended(self, known: RuleTable | None, new: Array) -> RuleTable:
        rows = [self._rules(int(n_true)) for n_true in new]
        width = max(len(w) for _, _, levels in rows for _, _, w in levels)
        first = 0 if known is None else len(known.start)
        slot = np.full(self.n_labels + 1, -1) if known is None else known.slot.copy()
        slot[new] = first + np.arange(len(new))
        shape = (len(new), len(self.bounds), width)
        count = np.array([[len(w) for _, _, w in levels] for _, _, levels in rows])
        padded = [np.zeros(shape) for _ in range(3)]
        for row, (_, _, levels) in enumerate(rows):
            for level, rule in enumerate(levels):
                for target, values in zip(padded, rule, strict=True):
                    target[row, level, : len(values)] = values
        parts = (
            np.array([start for start, _, _ in rows]),
            np.array([float(zero) for _, zero, _ in rows]),
            count,
            *padded,
        )
        if known is None:
            return RuleTable(slot, *parts)
        old = (known.start, known.zero, known.count)
        old += (known.power_true, known.power_false, known.weight)
        return RuleTable(slot, *(_stack(a, b) for a, b in zip(old, parts, strict=True)))

    def _rules(self, n_true: int):
        """start, whether D can be 0, and for each level the powers and weights of its nodes."""
        below = self.measure.denominator / self.unit
        n_false = self.n_labels - n_true
        ends = np.array([n_true, n_false])
        start = below[0] + below[3] * n_true + below[4] * n_false
        start -= float((self.flip * self.step * ends).sum())
        zero = start <= ZERO_DENOMINATOR * np.abs(below).max()
        start = 0.0 if zero else float(start)
        high = start + float((self.step * ends).sum())
        return start, zero, [self._rule(level, start, high, zero) for level in range(len(self.bounds))]

    def _rule(self, level: int, start: float, high: float, zero: bool):
        nodes = int(np.ceil(high / 2.0)) if self._whole_steps() else np.inf
        if len(self.bounds) > 1:
            levels = FLOAT32_LEVELS if self.single else FLOAT64_LEVELS
            nodes = min(nodes, levels[level][1])
        if nodes <= EXACT_NODES:
            # t^(start - 1) = t^phi t^(whole power); with D = 0 possible the weight is w / t.
            phi = 0.0 if zero else start - 1.0 - np.floor(max(start - 1.0, 0.0))
            phi = 0.0 if abs(phi) < 1e-9 or abs(phi - 1.0) < 1e-9 else float(phi)
            t, w = jacobi(max(int(nodes), 1), phi)
            w = w * t ** (start - 1.0 - phi)
            return t ** self.step[0], t ** self.step[1], w
        positive = self.step[self.step > 0]
        low = float(positive.min()) if zero else start
        x, w = exponential_sum(low, max(high, low))
        return np.exp(-x * self.step[0]), np.exp(-x * self.step[1]), w * np.exp(-x * start)

    def _whole_steps(self) -> bool:
        return bool((self.step == np.round(self.step)).all())


def _stack(a: Array, b: Array) -> Array:
    """One array after the other, the narrower padded with zeros in its last axis."""
    if a.ndim == 3 and a.shape[2] != b.shape[2]:
        width = max(a.shape[2], b.shape[2])
        a, b = (np.pad(x, ((0, 0), (0, 0), (0, width - x.shape[2]))) for x in (a, b))
    return np.concatenate([a, b])
