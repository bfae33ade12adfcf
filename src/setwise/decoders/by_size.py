"""Targets of the counts: the best set of each size is known, the best size is searched.

With independent labels (or any distribution where a label of higher score is more likely than
another, all else equal), exchanging a predicted label for a more probable one makes tp
stochastically larger, with the predicted and the true size as they were. So if the loss does not
rise with tp, whatever the true size, the k most probable labels are the best k; if it does not
fall, the k least probable ones. If it falls for one true size and rises for another, neither need
be.

Expected utilities of a quotient are taken by quadrature, with an error of at most 1e-10: a row is
sorted once, and the sizes compared in one pass over it, O(l log l). Those of any other function of
the counts are summed over the distribution of tp and of the labels missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from setwise.decoders.decisions import TIE, Decisions, top_labels
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
from setwise.targets.target import predicted_size, utility_quotient
from setwise.threads import for_rows

# Functions of the counts take the cube of the number of labels.
MOST_COUNTED = 1000
# Values of a function of the counts that are tabulated at a time, and that are kept.
MOST_VALUES, MOST_KEPT = 2**24, 2**20
# Steps of the loss that are only rounding.
ROUNDING = 1e-12
SIZES_AT_ONCE = 2**14
# Sizes share nodes where D begins at no more than OCTAVE times the least of them; a new rule is
# made where it begins NEXT_RULE times as high as in the one before.
OCTAVE, NEXT_RULE = 2.0, 1.15
# Rows that are sorted together: few enough to stay in the processor's cache.
BATCH = 256


@dataclass(frozen=True)
class BySize:
    """The top or the bottom k labels, k the size of least expected loss.

    ``top[k]`` and ``bottom[k]`` say which sets of k labels may be predicted. ``utilities`` gives
    the expected utility of the first k labels of each row. On ties the smaller set, then the lower
    labels.
    """

    utilities: Any
    top: Array
    bottom: Array

    @classmethod
    def of(cls, target: Any, n_labels: int) -> BySize:
        """For a function of the counts, or for predictions of one size."""
        utility, size = utility_quotient(target), predicted_size(target)
        if utility is None and n_labels > MOST_COUNTED:
            raise ValueError(
                f"{target} is decoded by the law of the counts, O(n_labels^3) a row, for at most "
                f"{MOST_COUNTED} labels, but there are {n_labels}; a linear-fractional target, or "
                f"decode_catalog with listed label sets, has no such limit"
            )
        if size is not None:
            top = np.arange(n_labels + 1) == size
            bottom = np.zeros_like(top)
        else:
            top, bottom = directions(target.measure(n_labels, "loss"), n_labels, str(target))
        if utility is not None:
            return cls(ByQuadrature(utility, n_labels), top, bottom)
        return cls(ByCounts(target.measure(n_labels, "utility"), n_labels, None), top, bottom)

    def with_bias(self, bias: Array) -> BySize:
        """The same from scores with a bias for each size."""
        kept = self.utilities
        return replace(self, utilities=ByCounts(kept.utility, kept.n_labels, bias))

    @property
    def is_by_marginals(self) -> bool:
        """Whether D is the same for all outcomes, as for precision@k."""
        quotient = isinstance(self.utilities, ByQuadrature)
        return quotient and not self.utilities.utility.denominator[1:].any()

    @property
    def leaves_out_impossible(self) -> bool:
        """Whether a label of probability 0 is never predicted, unless the size asks for it."""
        return np.count_nonzero(self.top) == 1 or self._can_prune

    @property
    def _can_prune(self) -> bool:
        return self.utilities.can_prune and bool(self.top.all())

    @property
    def takes_outside(self) -> bool:
        """Whether labels of which only a sum is known, all of them improbable, can be counted."""
        return self.leaves_out_impossible and getattr(self.utilities, "only_hits", False)

    def decide(self, values: Array, second: bool, outside: Array | None = None) -> Decisions:
        """The best set of each row, by probabilities or scores.

        ``outside`` (n, 2) are mass and chance of further labels: see `size_kernels`.
        """
        if not second and np.count_nonzero(self.top) == 1 and not self.bottom.any():
            return Decisions.of_sets(top_labels(values, int(np.argmax(self.top))))
        if not second and self._can_prune:
            return Decisions.of_sets(self.utilities.best(values, outside))
        orders = ((-values, self.top), (values, self.bottom))
        more = () if outside is None else (outside,)
        found = [self._in_order(values, *o, second, *more) for o in orders if o[1].any()]
        sets, best, other = found[0]
        for sets_too, best_too, other_too in found[1:]:
            smaller = sets_too.sum(axis=1) < sets.sum(axis=1)
            better = (best_too > best + TIE) | ((best_too >= best - TIE) & smaller)
            other = np.maximum(np.maximum(other, other_too), np.where(better, best, best_too))
            sets, best = np.where(better[:, None], sets_too, sets), np.where(better, best_too, best)
        return Decisions(sets, 1.0 - best, 1.0 - other)

    def of_sets(self, values: Array, sets: Array) -> Array:
        """The expected loss of given sets, (n,)."""
        order, size = np.argsort(1 - sets, axis=1, kind="stable"), sets.sum(axis=1, dtype=np.int64)
        arranged = np.take_along_axis(values, order, axis=1).astype(np.float64)
        return 1.0 - self.utilities.of_first(arranged, size, size)[np.arange(len(size)), size]

    def _in_order(self, values: Array, rank: Array, allowed: Array, second: bool, *outside: Array):
        """Sets, utilities and the next best ones among the first labels by ``rank``."""
        n, width = values.shape
        order, rows = np.argsort(rank, axis=1, kind="stable"), np.arange(n)
        arranged = np.take_along_axis(values, order, axis=1).astype(np.float64)
        # Of some labels only there are fewer sizes.
        allowed = allowed[: width + 1]
        ends = (np.full(n, end) for end in np.flatnonzero(allowed)[[0, -1]])
        utility = np.where(allowed, self.utilities.of_first(arranged, *ends, *outside), -np.inf)
        size = np.argmax(utility >= utility.max(axis=1, keepdims=True) - TIE, axis=1)
        best = utility[rows, size]
        utility[rows, size] = -np.inf
        other, sets = utility.max(axis=1), np.zeros((n, width), np.uint8)
        np.put_along_axis(sets, order, (np.arange(width) < size[:, None]).astype(np.uint8), axis=1)
        if second:
            # The next best set of that size has the first label left out in place of the last one
            # taken: every other one is dominated by it, label by label.
            inside = np.flatnonzero((size > 0) & (size < width))
            places, k, at = arranged[inside], size[inside], np.arange(len(inside))
            places[at, k - 1], places[at, k] = places[at, k], places[at, k - 1]
            rest = (part[inside] for part in outside)
            swapped = self.utilities.of_first(places, k, k, *rest)[at, k]
            other[inside] = np.maximum(other[inside], swapped)
        return sets, best, other


def directions(measure: Any, n_labels: int, name: str) -> tuple[Array, Array]:
    """For each predicted size whether the most probable labels are best, else the least probable.

    Where tp does not matter, the most probable ones are taken. Raises where neither are best.
    """
    falls, rises = np.full((2, n_labels + 1), -1)
    for size, n_true, tp in _steps(measure, n_labels):
        least, most = np.maximum(0, size + n_true - n_labels), np.minimum(size, n_true)
        inside = (tp >= least) & (tp < most)
        size, n_true, tp = size[inside], n_true[inside], tp[inside].astype(np.float64)
        counts = np.array([tp, size - tp, n_true - tp, n_labels - n_true - size + tp])
        up = np.array([[1], [-1], [-1], [1]])
        change = measure.of_counts(*(counts + up)) - measure.of_counts(*counts)
        for found, happens in ((falls, change < -ROUNDING), (rises, change > ROUNDING)):
            found[size[happens]] = n_true[happens]
    both = np.flatnonzero((falls >= 0) & (rises >= 0))
    if len(both):
        size = int(both[0])
        raise ValueError(
            f"{name} is not monotone in tp: with {size} predicted labels its loss falls as tp "
            f"grows if {falls[size]} are true, but rises if {rises[size]} are. The top (or bottom) "
            f"{size} labels by probability are then not the best {size}, and there is no exact "
            f"minimum-risk decoding from marginals; use decode_catalog with listed label sets"
        )
    return rises < 0, rises >= 0


def _steps(measure: Any, n_labels: int) -> Iterator[tuple[Array, Array, Array]]:
    """(size, n_true, tp) where the step from tp to tp + 1 has to be looked at, if it can occur.

    For a quotient the sign of the slope in tp is linear in n_true, so the ends of n_true decide. A
    value set by convention where the denominator is 0 stands at an end of the range of tp, for
    n_true in an interval over which its neighbours are linear: so again the ends decide.
    """
    sizes = np.arange(n_labels + 1)
    if not isinstance(measure, Fraction):
        for size in sizes:
            n_true, tp = np.meshgrid(sizes, np.arange(size), indexing="ij")
            yield np.full(tp.size, size), n_true.ravel(), tp.ravel()
        return
    for part in np.array_split(sizes, 1 + len(sizes) // SIZES_AT_ONCE):
        ends = np.stack([0 * part, part, n_labels - part, 0 * part + n_labels], axis=1)
        n_true = np.clip(ends[:, :, None] + np.arange(-2, 3), 0, n_labels).ravel()
        size = np.repeat(part, 20)
        least, most = np.maximum(0, size + n_true - n_labels), np.minimum(size, n_true)
        for tp in (least, least + 1, most - 2, most - 1):
            yield size, n_true, tp


@dataclass(frozen=True)
class ByQuadrature:
    """Expected utilities of a quotient over ``n_labels`` independent labels."""

    utility: Fraction
    n_labels: int

    @cached_property
    def table(self) -> SizeTable:
        """What the passes need of the utility, exact to 1e-10."""
        return self._tabulated(DOUBLE_ERROR)

    @cached_property
    def _quick(self) -> SizeTable:
        """The same with fewer nodes, exact to 1e-7."""
        return self._tabulated(SINGLE_ERROR)

    def _tabulated(self, error: float) -> SizeTable:
        # With the roles exchanged (fp for fn) the predicted set is the one that is known.
        above, below = self.utility.numerator, self.utility.denominator
        order = [0, 1, 3, 2, 4]
        known = Fraction(above[order], below[order], self.utility.empty)
        d = Rules(known, self.n_labels, error)
        start, _, zero, _ = d.ends(np.arange(self.n_labels + 1))
        growths = above[2] - above[4], above[1] - above[2], above[3] - above[4]
        numerator = np.array([above[0] + above[4] * self.n_labels, *growths]) / d.unit
        lift = 0.0 if numerator[[0, 1, 3]].any() or d.flip[0] else float(d.step[0])
        slope = float(d.start[1] - d.start[2])
        shape = d.step, start + lift, zero & (lift == 0.0), slope
        rule, last, base, rules = shared_rules(*shape, error)
        return SizeTable(
            d.flip, d.step, numerator, start, zero, self.utility.empty, lift, rule, last, base,
            slope, np.array(MEANS), *LAGUERRE_TABLE, np.zeros(len(last)), *rules,
        )  # fmt: skip

    @property
    def can_prune(self) -> bool:
        """Whether the bounds hold by which sizes are ruled out: F-beta, Jaccard and their like.

        Adding a label of probability 0 then never helps.
        """
        table = self.table
        rising = table.slope > 0.0 and table.start[1] + table.step[0] >= 1.0
        return bool(self.only_hits and rising and table.step[1] == 1.0)

    @property
    def only_hits(self) -> bool:
        """Whether N is a multiple of tp, and D does not count false labels."""
        return not (self.table.above[[0, 1, 3]].any() or self.table.flips.any())

    def best(self, values: Array, outside: Array | None = None) -> Array:
        """The best sets of probabilities, (n, l); only where `can_prune`."""
        sets = np.zeros(values.shape, np.uint8)
        outside = np.zeros((len(values), 2)) if outside is None else outside

        def run(start: int, stop: int) -> None:
            work = scratch(values.shape[1], self.table)
            for first in range(start, stop, BATCH):
                rows = slice(first, min(first + BATCH, stop))
                parts = values[rows], np.sort(values[rows], axis=1)
                inputs = *(part.astype(np.float64, copy=False) for part in parts), outside[rows]
                best_rows(*inputs, self.table, self._quick, *work, sets[rows])

        for_rows(run, len(values))
        return sets

    def of_first(
        self, arranged: Array, low: Array, high: Array, outside: Array | None = None
    ) -> Array:
        """Expected utility of the first k labels of each row for k from low to high, (n, l + 1)."""
        n, width = arranged.shape
        outside = np.zeros((n, 2)) if outside is None else outside
        utility, high = np.full((n, width + 1), -np.inf), np.minimum(high, width)

        def run(start: int, stop: int) -> None:
            rows, work = slice(start, stop), scratch(width, self.table)
            inputs = arranged[rows], low[rows], high[rows], outside[rows]
            size_rows(*inputs, self.table, *work, utility[rows])

        for_rows(run, n)
        return utility


def shared_rules(step: Array, start: Array, zero: Array, slope: float, error: float):
    """The rule of each size, the last size and the start of D of each rule, and their nodes.

    By size, D begins at ``start`` and can be 0 or not; its start grows by ``slope``. Where it
    begins lower for larger sizes, a rule is made for the last of the sizes it serves.
    """
    sizes = np.arange(len(start))
    largest = start + step[0] * sizes + step[1] * sizes[::-1]

    def reach(size: int, factor: float) -> int:
        """The last size from ``size`` on where D begins within a factor of where it does there."""
        apart = np.maximum(start[size:], start[size]) > factor * np.minimum(
            start[size:], start[size]
        )
        apart |= zero[size:] != zero[size]
        return size + int(np.argmax(apart)) - 1 if apart.any() else len(start) - 1

    rule, last, base, made = np.zeros(len(start), np.int64), [], [], []
    size = 0
    while size < len(start):
        near = reach(size, NEXT_RULE)
        final = reach(size, OCTAVE) if slope >= 0.0 else near
        rule[size : near + 1] = len(last)
        last.append(final)
        base.append(float(start[size] if slope >= 0.0 else start[near]))
        reciprocal = Reciprocal(step, error, slope == round(slope) or size == final)
        high = float(largest[size : final + 1].max())
        made.append(reciprocal.rules(base[-1], high, bool(zero[size])))
        size = near + 1
    return rule, np.array(last), np.array(base), tabulated(made)


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

    def of_first(self, arranged: Array, low: Array, high: Array) -> Array:
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
