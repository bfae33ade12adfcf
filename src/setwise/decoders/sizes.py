"""The best number of labels to predict, for targets that are quotients of the counts.

A row is sorted once, and the l + 1 sizes are compared in one pass: the rules for 1/D are shared by
sizes whose D begins within a factor of two, O(l log l) a row. Expected utilities have an error of
at most 1e-10.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from setwise.decoders.arrangement import fill_keys, index_mask
from setwise.decoders.size_kernels import SizeTable, arranged_rows, sorted_rows, working_space
from setwise.spaces.quadrature import (
    DOUBLE_ERROR,
    MEANS,
    SINGLE_ERROR,
    Reciprocal,
    laguerre_table,
    tabulated,
    whole_steps,
)
from setwise.targets.measure import ZERO_DENOMINATOR, Array, Fraction
from setwise.threads import for_rows

_FAR = laguerre_table()
# Sizes that share nodes: where D begins at no more than this many times the least.
OCTAVE = 2.0
NEXT_RULE = 1.15
# Rows whose keys are sorted together: few enough to stay in the processor's cache.
BATCH = 256


def transposed(measure: Fraction) -> Fraction:
    """The measure with predicted and true sets exchanged: fp and fn change places."""
    order = [0, 1, 3, 2, 4]
    return Fraction(measure.numerator[order], measure.denominator[order], measure.empty)


@dataclass(frozen=True)
class Sizes:
    """A linear-fractional utility over ``n_labels`` labels, tabulated by predicted size."""

    measure: Fraction
    n_labels: int

    @cached_property
    def table(self) -> SizeTable:
        """What the passes need of the utility."""
        return self._tabulated(DOUBLE_ERROR)

    @cached_property
    def _quick(self) -> SizeTable:
        """The same with fewer nodes."""
        return self._tabulated(SINGLE_ERROR) if self.can_prune else self.table

    def _tabulated(self, error: float) -> SizeTable:
        # With the roles exchanged the predicted set is the one that is known.
        unit, steps = whole_steps(transposed(self.measure))
        largest = np.abs(steps).max() or 1.0
        unit, steps = unit * largest, steps / largest
        above, below = self.measure.numerator / unit, self.measure.denominator / unit
        sizes = np.arange(self.n_labels + 1)
        # A label that counts when false (its step is below 0) begins with what it adds when true.
        least = np.minimum(below[[1, 3]], below[[2, 4]])
        start = below[0] + least[0] * sizes + least[1] * (self.n_labels - sizes)
        zero = start <= ZERO_DENOMINATOR * np.abs(below).max()
        start = np.where(zero, 0.0, start)
        numerator = np.array(
            [
                above[0] + above[4] * self.n_labels,
                above[2] - above[4],
                above[1] - above[2],
                above[3] - above[4],
            ]
        )
        lift = 0.0 if numerator[[0, 1, 3]].any() or steps[0] < 0 else float(steps[0])
        shape = Denominator(
            np.abs(steps), start + lift, zero & (lift == 0.0), float(least[0] - least[1])
        )
        rule, last, base = shape.share()
        return SizeTable(
            steps < 0, shape.step, numerator, start, zero, self.measure.empty, lift,
            rule, last, base, shape.slope, np.array(MEANS), *_FAR, np.zeros(len(last)),
            *shape.rules(rule, last, base, error),
        )  # fmt: skip

    @property
    def can_prune(self) -> bool:
        """Whether the bounds hold by which sizes are ruled out: F-beta, Jaccard and their like."""
        table = self.table
        only_hits = not table.above[[0, 1, 3]].any()
        rising = table.slope > 0.0 and table.start[1] + table.step[0] >= 1.0
        return bool(only_hits and rising and not table.flips.any() and table.step[1] == 1.0)

    @property
    def never_adds_impossible(self) -> bool:
        """Whether adding a label of probability 0 never helps."""
        return self.can_prune

    def best(
        self, values: Array, descending: bool, allowed: Array, second: bool
    ) -> tuple[Array, Array, Array]:
        """Sets, utilities, and with ``second`` those of the next best size, from probabilities.

        ``allowed[k]`` says whether the first k labels of the order may be predicted.
        """
        n, width = values.shape
        sets = np.zeros((n, width), np.uint8)
        best, other = np.empty(n), np.empty(n)
        low, high = np.flatnonzero(allowed)[[0, -1]]
        mask, prune = index_mask(width), self.can_prune and not second

        def run(start: int, stop: int) -> None:
            keys = np.empty((min(BATCH, stop - start), width), np.int64)
            labels, space = np.empty(width, np.int64), working_space(width, self.table)
            for first in range(start, stop, BATCH):
                rows = slice(first, min(first + BATCH, stop))
                part = keys[: rows.stop - rows.start]
                fill_keys(values[rows], descending, mask, part)
                part.sort(axis=1)
                sorted_rows(
                    values[rows], part, descending, mask, low, min(high, width), prune, allowed,
                    self.table, self._quick, labels, *space, sets[rows], best[rows], other[rows],
                )  # fmt: skip

        for_rows(run, n)
        return sets, best, other

    def of_sets(self, values: Array, sets: Array) -> Array:
        """The expected utility of given sets, (n,)."""
        order = np.argsort(1 - sets, axis=1, kind="stable")
        arranged = np.take_along_axis(values, order, axis=1).astype(np.float64)
        return self.of_first(arranged, sets.sum(axis=1, dtype=np.int64))

    def of_first(self, arranged: Array, sizes: Array) -> Array:
        """The expected utility of predicting the first ``sizes`` labels of each row, (n,)."""
        value = np.empty(len(arranged))

        def run(start: int, stop: int) -> None:
            rows, space = slice(start, stop), working_space(arranged.shape[1], self.table)
            arranged_rows(arranged[rows], sizes[rows], self.table, *space, value[rows])

        for_rows(run, len(arranged))
        return value


@dataclass(frozen=True)
class Denominator:
    """D by predicted size: where it begins, whether it can be 0, and the growth of its start.

    ``step`` of a predicted and of another label that counts; all in units of the larger.
    """

    step: Array
    start: Array
    zero: Array
    slope: float

    def share(self) -> tuple[Array, Array, Array]:
        """The rule of each size, the last size each rule serves, and where its D begins.

        A new rule is made where D begins NEXT_RULE times as high as in the one before; it serves
        the sizes whose D begins at up to twice that. Where D begins lower for larger sizes, a rule
        is made for the last of the sizes that share it.
        """
        rule, last, base = np.zeros(len(self.start), np.int64), [], []
        size = 0
        while size < len(self.start):
            near = self._reach(size, NEXT_RULE)
            rule[size : near + 1] = len(last)
            last.append(self._reach(size, OCTAVE) if self.slope >= 0.0 else near)
            base.append(self.start[size] if self.slope >= 0.0 else self.start[near])
            size = near + 1
        return rule, np.array(last), np.array(base)

    def rules(self, rule: Array, last: Array, base: Array, error: float) -> tuple[Array, ...]:
        """Counts, powers and weights of the rules, by bin of the mean."""
        sizes = np.arange(len(self.start))
        largest = self.start + self.step[0] * sizes + self.step[1] * sizes[::-1]
        made = []
        for first, final, start in zip(
            np.unique(rule, return_index=True)[1], last, base, strict=True
        ):
            whole = self.slope == round(self.slope) or first == final
            reciprocal = Reciprocal(self.step, error, whole)
            high = float(largest[first : final + 1].max())
            made.append(reciprocal.rules(float(start), high, bool(self.zero[first])))
        return tabulated(made)

    def _reach(self, size: int, factor: float) -> int:
        """The last size from ``size`` on where D begins within a factor of where it does there."""
        here, ahead = self.start[size], self.start[size:]
        apart = np.maximum(ahead, here) > factor * np.minimum(ahead, here)
        apart |= self.zero[size:] != self.zero[size]
        return size + int(np.argmax(apart)) - 1 if apart.any() else len(self.start) - 1
