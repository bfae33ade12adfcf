"""Expected utility of predicting the first k labels of each row, for every k.

Of a quotient it is taken by quadrature, with an error of at most 1e-10: a row is sorted once, and
the sizes compared in one pass over it, O(l log l). That of any other function of the counts is
summed over the distribution of tp and of the labels missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from setwise.decoders.size_kernels import SizeTable, best_rows, scratch, size_rows
from setwise.kernels import exp, log_plus, view_kernel
from setwise.spaces.quadrature import (
    DOUBLE_ERROR,
    LAGUERRE_TABLE,
    MEANS,
    SINGLE_ERROR,
    Reciprocal,
    Rules,
    tabulated,
)
from setwise.targets.measure import Array, Fraction
from setwise.threads import for_rows

# Values of a function of the counts that are tabulated at a time, and that are kept.
MOST_VALUES, MOST_KEPT = 2**24, 2**20
# Sizes share nodes where D begins at no more than OCTAVE times the least of them; a new rule is
# made where it begins NEXT_RULE times as high as in the one before.
OCTAVE, NEXT_RULE = 2.0, 1.15
# The most Laguerre nodes.
N_FAR = LAGUERRE_TABLE[0].shape[1]
# Beyond this x, t = e^-x is nothing.
LARGEST_X = 700.0
# Rows that are sorted together: few enough to stay in the processor's cache.
BATCH = 256


@dataclass(frozen=True)
class ByQuadrature:
    """Expected utilities of a quotient over ``n_labels`` independent labels."""

    utility: Fraction
    n_labels: int

    @cached_property
    def _rules(self) -> Rules:
        """D, with the roles exchanged (fp for fn): the predicted set is the one that is known."""
        order, (above, below) = [0, 1, 3, 2, 4], (self.utility.numerator, self.utility.denominator)
        known = Fraction(above[order], below[order], self.utility.empty)
        return Rules(known, self.n_labels, DOUBLE_ERROR)

    @cached_property
    def _above(self) -> Array:
        """N by (1, number of predicted labels, tp, number of missed labels), (4,)."""
        one, tp, fp, fn, tn = self.utility.numerator / self._rules.unit
        return np.array([one + tn * self.n_labels, fp - tn, tp - fp, fn - tn])

    @cached_property
    def start(self) -> Array:
        """Where D begins, by the number of predicted labels, (l + 1,); at 0 where it can be 0."""
        return self._rules.ends(np.arange(self.n_labels + 1))[0]

    @cached_property
    def table(self) -> SizeTable:
        """What the passes need of the utility: rules exact to 1e-10 and, to prune, to 1e-7."""
        d, slope = self._rules, float(self._rules.start[1] - self._rules.start[2])
        is_multiple = not self._above[[0, 1, 3]].any()
        lift = float(d.step[0]) if is_multiple and not d.flip[0] else 0.0
        errors = (DOUBLE_ERROR, SINGLE_ERROR) if self.can_prune else (DOUBLE_ERROR,)
        rule, last, base, made = shared_rules(d.step, self.start, lift, slope, errors)
        row, count, x, weight = _rows_of_nodes(made, int(np.argmax(d.step)))
        flips, steps, above = d.flip.tolist(), d.step.tolist(), self._above.tolist()
        return SizeTable(
            head_flips=flips[0], tail_flips=flips[1], head_step=steps[0], tail_step=steps[1],
            constant=above[0], growth=above[1], hits=above[2], missed=above[3],
            empty=float(self.utility.empty), lift=lift, slope=slope, start=self.start,
            means=np.array(MEANS), rule=rule, last=last, base=base, row=row, n_far=N_FAR,
            count=count, x=x, weight=weight,
        )  # fmt: skip

    @cached_property
    def can_prune(self) -> bool:
        """Whether the bounds hold by which sizes are ruled out: F-beta, Jaccard and their like.

        Adding a label of probability 0 then never helps.
        """
        start, step = self.start, self._rules.step
        rising = start[-1] > start[0] and start[1] + step[0] >= 1.0
        return bool(self.only_hits and rising and step[1] == 1.0)

    @property
    def only_hits(self) -> bool:
        """Whether N is a multiple of tp, and D does not count false labels."""
        return not (self._above[[0, 1, 3]].any() or self._rules.flip.any())

    def best(self, values: Array, outside: Array | None = None) -> Array:
        """The best sets of probabilities, (n, l); only where `can_prune`."""
        sets = np.zeros(values.shape, np.uint8)
        outside = np.zeros((len(values), 2)) if outside is None else outside

        def run(start: int, stop: int) -> None:
            work = scratch(values.shape[1], self.table)
            for first in range(start, stop, BATCH):
                rows = slice(first, min(first + BATCH, stop))
                parts = values[rows], np.sort(values[rows], axis=1)
                own, ordered = (part.astype(np.float64, copy=False) for part in parts)
                best_rows(own, ordered, outside[rows], self.table, *work, sets[rows])

        for_rows(run, len(values))
        return sets

    def of_first(
        self, arranged: Array, low: Array, high: Array, outside: Array | None = None
    ) -> Array:
        """Expected utility of the first k labels of each row for k from low to high, (n, l + 1)."""
        n, width = arranged.shape
        outside = np.zeros((n, 2)) if outside is None else outside
        if not self._rules.step.any():
            return self._of_means(arranged, outside[:, :1])
        head, tail = (1.0 - arranged if flip else arranged for flip in self._rules.flip)
        utility, high = np.full((n, width + 1), -np.inf), np.minimum(high, width)

        def run(start: int, stop: int) -> None:
            rows, work = slice(start, stop), scratch(width, self.table)
            inputs = arranged[rows], head[rows], tail[rows], low[rows], high[rows], outside[rows]
            size_rows(*inputs, self.table, *work, utility[rows])

        for_rows(run, n)
        return utility

    def _of_means(self, arranged: Array, mass: Array) -> Array:
        """The same where D depends on k alone: the mean of N over it."""
        sizes, start = np.arange(arranged.shape[1] + 1), self.start[: arranged.shape[1] + 1]
        found = np.insert(np.cumsum(arranged, axis=1), 0, 0.0, axis=1)
        constant, growth, hits, missed = self._above
        mean = constant + growth * sizes + hits * found + missed * (found[:, -1:] + mass - found)
        return np.where(start == 0.0, self.utility.empty, mean / np.where(start == 0.0, 1.0, start))


def shared_rules(step: Array, start: Array, lift: float, slope: float, errors: Iterable[float]):
    """The rule of each size to each of these errors; of each rule its last size, D's start, nodes.

    By size, D begins at ``start`` and is lifted; its start grows by ``slope``. Where it begins
    lower for larger sizes, a rule is made for the last of the sizes it serves. Sizes where D can be
    0 share no rule with others.
    """
    zero, start, sizes = start == 0.0, start + lift, np.arange(len(start))
    largest = start + step[0] * sizes + step[1] * sizes[::-1]

    def reach(size: int, factor: float) -> int:
        """The last size from ``size`` on where D begins within a factor of where it does there."""
        apart = np.maximum(start[size:], start[size]) > factor * np.minimum(
            start[size:], start[size]
        )
        apart |= zero[size:] != zero[size]
        return size + int(np.argmax(apart)) - 1 if apart.any() else len(start) - 1

    rule, last, base, made = [], [], [], []
    for error in errors:
        size = 0
        while size < len(start):
            near = reach(size, NEXT_RULE)
            final = reach(size, OCTAVE) if slope >= 0.0 else near
            rule += [len(last)] * (near + 1 - size)
            last.append(final)
            base.append(float(start[size] if slope >= 0.0 else start[near]))
            reciprocal = Reciprocal(step, error, slope == round(slope) or size == final)
            high = float(largest[size : final + 1].max())
            made.append(reciprocal.rules(base[-1], high, base[-1] == 0.0))
            size = near + 1
    return np.array(rule).reshape(-1, len(start)), np.array(last), np.array(base), made


def _rows_of_nodes(
    made: list[list[tuple[int, Array]]], unit: int
) -> tuple[Array, Array, Array, Array]:
    """The row of each rule and bin, and of each row the number of nodes, x and weights.

    The Laguerre nodes come first, m of them in row m. ``unit`` says which of the steps is 1: t to
    that power is t itself.
    """
    far = np.stack(LAGUERRE_TABLE)
    counts, *powers, weight = tabulated(made)
    with np.errstate(divide="ignore"):
        x = np.minimum(-np.log(powers[unit]), LARGEST_X)
    own = np.stack([x, weight]).reshape(2, counts.size, x.shape[2])
    width, place = max(N_FAR, own.shape[2]), np.arange(counts.size).reshape(counts.shape)
    rows = np.where(counts < 0, -counts, N_FAR + 1 + place)
    every = np.append(np.arange(N_FAR + 1), np.maximum(counts, 0))
    wide = [np.pad(part, ((0, 0), (0, 0), (0, width - part.shape[2]))) for part in (far, own)]
    x, weight = np.concatenate(wide, axis=1)
    return rows, every, x, weight


@dataclass(frozen=True)
class ByCounts:
    """Expected utilities of any function of the counts over ``n_labels`` labels.

    From probabilities of independent labels, O(l^3) a row; or from scores, where a set weighs
    e^(2 · (their sum over it) + bias[its size]), with sizes up to K, O(l K^2).
    """

    utility: Any
    n_labels: int
    bias: Array | None

    can_prune = False

    def of_first(self, arranged: Array, low: Array, high: Array, outside: None = None) -> Array:
        """Expected utility of the first k labels of each row for k from low to high, (n, l + 1)."""
        if self.bias is None:
            bias = np.zeros(self.n_labels + 1)
            with np.errstate(divide="ignore"):
                log_on, log_off = np.log(arranged), np.log1p(-arranged)
        else:
            bias, log_on, log_off = self.bias, 2.0 * arranged, np.zeros_like(arranged)
        out = np.full((len(arranged), self.n_labels + 1), -np.inf)
        for first, values in self._tables(int(low.min(initial=0)), int(high.max(initial=-1))):
            ends = np.maximum(low, first), np.minimum(high, first + len(values) - 1), first
            inputs = log_on, log_off, bias, *ends, values
            for_rows(split_rows, len(arranged), *inputs, out, least=1, room=self._room)
        return out

    def _room(self) -> tuple[Array, Array]:
        """What `split_rows` works in."""
        return np.empty((self.n_labels + 1, self._width)), np.empty(self._width)

    def _tables(self, low: int, high: int) -> Iterator[tuple[int, Array]]:
        """Ranges that hold the sizes from low to high: the first size, and the values of each."""
        if self._width**2 * (self.n_labels + 1) <= MOST_KEPT:
            yield 0, self._every_size
            return
        block = max(1, MOST_VALUES // self._width**2)
        for first in range(low, high + 1, block):
            yield first, self._values(np.arange(first, min(first + block, self.n_labels + 1)))

    @property
    def _width(self) -> int:
        """The number of sizes that the true set may have."""
        return self.n_labels + 1 if self.bias is None else len(self.bias)

    @cached_property
    def _every_size(self) -> Array:
        return self._values(np.arange(self.n_labels + 1))

    def _values(self, sizes: Array) -> Array:
        """The utility at each size, tp and number of missed labels; 0 where impossible."""
        width = self._width
        size, tp, missed = np.meshgrid(sizes, np.arange(width), np.arange(width), indexing="ij")
        counts = (tp, size - tp, missed, self.n_labels - size - missed)
        possible = np.logical_and.reduce([count >= 0 for count in counts])
        values = np.zeros(size.shape)
        values[possible] = self.utility.of_counts(*(c[possible].astype(float) for c in counts))
        return values


@view_kernel
def split_rows(start, stop, log_on, log_off, bias, low, high, first, values, out, tails, head):
    """out[row, k] = sum over tp and missed of their probability times values[k - first].

    The distributions of tp among the first k labels and of the true ones among the others, by
    recursion from both ends, in logarithms. (The law of counts of `setwise.spaces.symmetric` splits
    the labels once, into true and false ones; here every k splits them anew.) A set weighs e^log_on
    for each label in it, e^log_off for each other one (n, l), and e^bias of its size (K + 1,).
    ``values`` (sizes, K + 1, K + 1), ``out`` (n, l + 1); ``tails`` (l + 1, K + 1) and ``head``
    (K + 1,) are room for both distributions.
    """
    n_labels, width = log_on.shape[1], len(bias)
    for row in range(start, stop):
        on, off = log_on[row], log_off[row]
        for s in range(width):
            tails[n_labels, s] = head[s] = -np.inf
        tails[n_labels, 0] = head[0] = 0.0
        for k in range(n_labels - 1, -1, -1):
            after, here = tails[k + 1], tails[k]
            here[0] = after[0] + off[k]
            for s in range(1, width):
                here[s] = log_plus(after[s] + off[k], after[s - 1] + on[k])
        total = -np.inf
        for s in range(width):
            total = log_plus(total, tails[0, s] + bias[s])
        for k in range(high[row] + 1):
            if k >= low[row]:
                value = 0.0
                for tp in range(min(k, width - 1) + 1):
                    level, utility = head[tp] - total, values[k - first, tp]
                    for s in range(min(n_labels - k, width - 1 - tp) + 1):
                        value += exp(level + tails[k, s] + bias[tp + s]) * utility[s]
                out[row, k] = value
            if k < n_labels:
                for s in range(width - 1, 0, -1):
                    head[s] = log_plus(head[s] + off[k], head[s - 1] + on[k])
                head[0] += off[k]
