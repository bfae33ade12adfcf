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
from typing import Any, Protocol

import numpy as np

from setwise.decoders.decisions import TIE, Decisions
from setwise.decoders.simple import top_labels
from setwise.decoders.size_kernels import SizeTable, best_rows, fill_keys, scratch, size_rows
from setwise.kernels import exp, kernel
from setwise.semirings import log_plus
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
from setwise.targets.target import predicted_size, utility_quotient
from setwise.threads import for_rows

# Functions of the counts take the cube of the number of labels.
MOST_COUNTED = 1000
# Values of a function of the counts that are tabulated at a time.
MOST_VALUES = 2**24
# Steps of the loss that are only rounding.
ROUNDING = 1e-12
SIZES_AT_ONCE = 2**14
# Sizes share nodes where D begins at no more than OCTAVE times the least of them; a new rule is
# made where it begins NEXT_RULE times as high as in the one before.
OCTAVE, NEXT_RULE = 2.0, 1.15
# Rows whose keys are sorted together: few enough to stay in the processor's cache.
BATCH = 256

_FAR = laguerre_table()


class Counted(Protocol):
    """A function of the confusion counts."""

    def of_counts(self, tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
        """Its values."""
        ...


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
        utility: Any = utility_quotient(target)
        size = predicted_size(target)
        if size is not None:
            only = np.arange(n_labels + 1) == size
            return cls(ByQuadrature(utility, n_labels), only, only & False)
        if utility is None and n_labels > MOST_COUNTED:
            raise ValueError(
                f"{target} is decoded by the law of the counts, O(n_labels^3) a row, for at most "
                f"{MOST_COUNTED} labels, but there are {n_labels}; a linear-fractional target, or "
                f"decode_catalog with listed label sets, has no such limit"
            )
        sides = directions(target.measure(n_labels, "loss"), n_labels, str(target))
        if utility is not None:
            return cls(ByQuadrature(utility, n_labels), *sides)
        return cls(ByCounts(target.measure(n_labels, "utility"), n_labels, None), *sides)

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
        fixed = np.count_nonzero(self.top) == 1
        return fixed or (self.utilities.can_prune and bool(self.top.all()))

    def decide(self, values: Array, second: bool) -> Decisions:
        """The best set of each row, by probabilities or scores."""
        nothing = np.zeros(len(values))
        if not second and np.count_nonzero(self.top) == 1 and not self.bottom.any():
            return Decisions(top_labels(values, int(np.argmax(self.top))), nothing, nothing)
        if not second and self.utilities.can_prune and self.top.all():
            return Decisions(self.utilities.best(values), nothing, nothing)
        orders = ((-values, self.top), (values, self.bottom))
        found = [self._in_order(values, *order, second) for order in orders if order[1].any()]
        sets, best, other = found[0]
        for sets_too, best_too, other_too in found[1:]:
            smaller = sets_too.sum(axis=1) < sets.sum(axis=1)
            better = (best_too > best + TIE) | ((best_too >= best - TIE) & smaller)
            other = np.maximum(np.maximum(other, other_too), np.where(better, best, best_too))
            sets, best = np.where(better[:, None], sets_too, sets), np.where(better, best_too, best)
        return Decisions(sets, 1.0 - best, 1.0 - other)

    def of_sets(self, values: Array, sets: Array) -> Array:
        """The expected loss of given sets, (n,)."""
        order = np.argsort(1 - sets, axis=1, kind="stable")
        size = sets.sum(axis=1, dtype=np.int64)
        arranged = np.take_along_axis(values, order, axis=1).astype(np.float64)
        return 1.0 - self.utilities.of_first(arranged, size, size)[np.arange(len(size)), size]

    def _in_order(self, values: Array, rank: Array, allowed: Array, second: bool):
        """Sets, utilities and the next best ones among the first labels by ``rank``."""
        n, width = values.shape
        order, rows = np.argsort(rank, axis=1, kind="stable"), np.arange(n)
        arranged = np.take_along_axis(values, order, axis=1).astype(np.float64)
        # Of some labels only there are fewer sizes.
        allowed = allowed[: width + 1]
        ends = (np.full(n, end) for end in np.flatnonzero(allowed)[[0, -1]])
        utility = np.where(allowed, self.utilities.of_first(arranged, *ends), -np.inf)
        size = np.argmax(utility >= utility.max(axis=1, keepdims=True) - TIE, axis=1)
        best = utility[rows, size]
        utility[rows, size] = -np.inf
        other, chosen = utility.max(axis=1), (np.arange(width) < size[:, None]).astype(np.uint8)
        sets = np.zeros((n, width), np.uint8)
        np.put_along_axis(sets, order, chosen, axis=1)
        if second:
            # The next best set of that size has the first label left out in place of the last one
            # taken: every other one is dominated by it, label by label.
            inside = np.flatnonzero((size > 0) & (size < width))
            places, k = arranged[inside], size[inside]
            last = np.arange(len(k)), k - 1
            places[last], places[last[0], k] = places[last[0], k], places[last]
            swapped = self.utilities.of_first(places, k, k)[last[0], k]
            other[inside] = np.maximum(other[inside], swapped)
        return sets, best, other


def directions(measure: Any, n_labels: int, name: str) -> tuple[Array, Array]:
    """For each predicted size whether the most probable labels are best, else the least probable.

    Where tp does not matter, the most probable ones are taken. Raises where neither are best.
    """
    if isinstance(measure, Fraction) and _plainly_falls(measure):
        return np.ones(n_labels + 1, dtype=bool), np.zeros(n_labels + 1, dtype=bool)
    falls, rises = np.full((2, n_labels + 1), -1)
    for size, n_true, tp in _steps(measure, n_labels):
        least, most = np.maximum(0, size + n_true - n_labels), np.minimum(size, n_true)
        inside = (tp >= least) & (tp < most)
        size, n_true, tp = size[inside], n_true[inside], tp[inside].astype(np.float64)
        fp, fn, tn = size - tp, n_true - tp, n_labels - n_true - size + tp
        change = measure.of_counts(tp + 1, fp - 1, fn - 1, tn + 1) - measure.of_counts(
            tp, fp, fn, tn
        )
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


def _plainly_falls(loss: Fraction) -> bool:
    """Whether 1 - loss is c tp / D with c > 0 and a D that never rises with tp, as in F-beta.

    tp up and the sizes as they are means fp and fn down and tn up. D is 0 only where tp, fp and fn
    are, so that no convention stands in the way.
    """
    hits = loss.denominator - loss.numerator
    constant, tp, fp, fn, tn = loss.denominator
    only_hits = hits[1] > 0.0 and not hits[[0, 2, 3, 4]].any()
    return bool(only_hits and min(tp, fp, fn) > 0.0 <= min(constant, tn) and tp + tn <= fp + fn)


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


# ------------------------------------------------------------------------------------- quotients


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

    @property
    def can_prune(self) -> bool:
        """Whether the bounds hold by which sizes are ruled out: F-beta, Jaccard and their like.

        Adding a label of probability 0 then never helps.
        """
        table = self.table
        only_hits = not table.above[[0, 1, 3]].any()
        rising = table.slope > 0.0 and table.start[1] + table.step[0] >= 1.0
        return bool(only_hits and rising and not table.flips.any() and table.step[1] == 1.0)

    def best(self, values: Array) -> Array:
        """The best sets of probabilities, (n, l); only where `can_prune`."""
        n, width = values.shape
        sets = np.zeros((n, width), np.uint8)
        # The lowest bits that hold any label's index.
        mask = np.int64((1 << max(int(width - 1).bit_length(), 1)) - 1)

        def run(start: int, stop: int) -> None:
            keys = np.empty((min(BATCH, stop - start), width), np.int64)
            labels, work = np.empty(width, np.int64), scratch(width, self.table)
            for first in range(start, stop, BATCH):
                rows = slice(first, min(first + BATCH, stop))
                part = keys[: rows.stop - rows.start]
                fill_keys(values[rows], mask, part)
                part.sort(axis=1)
                tables = self.table, self._quick
                best_rows(values[rows], part, mask, labels, *tables, *work, sets[rows])

        for_rows(run, n)
        return sets

    def of_first(self, arranged: Array, low: Array, high: Array) -> Array:
        """Expected utility of the first k labels of each row for k from low to high, (n, l + 1)."""
        n, width = arranged.shape
        utility, high = np.full((n, width + 1), -np.inf), np.minimum(high, width)

        def run(start: int, stop: int) -> None:
            rows, work = slice(start, stop), scratch(width, self.table)
            size_rows(arranged[rows], low[rows], high[rows], self.table, *work, utility[rows])

        for_rows(run, n)
        return utility

    def _tabulated(self, error: float) -> SizeTable:
        # With the roles exchanged (fp for fn) the predicted set is the one that is known.
        order = [0, 1, 3, 2, 4]
        above, below = self.utility.numerator, self.utility.denominator
        unit, steps = whole_steps(Fraction(above[order], below[order], self.utility.empty))
        largest = np.abs(steps).max() or 1.0
        unit, steps = unit * largest, steps / largest
        above, below = above / unit, below / unit
        sizes = np.arange(self.n_labels + 1)
        # A label that counts when false (its step is below 0) begins with what it adds when true.
        least = np.minimum(below[[1, 3]], below[[2, 4]])
        start = below[0] + least[0] * sizes + least[1] * (self.n_labels - sizes)
        zero = start <= ZERO_DENOMINATOR * np.abs(below).max()
        start = np.where(zero, 0.0, start)
        constant = above[0] + above[4] * self.n_labels
        numerator = np.array(
            [constant, above[2] - above[4], above[1] - above[2], above[3] - above[4]]
        )
        lift = 0.0 if numerator[[0, 1, 3]].any() or steps[0] < 0 else float(steps[0])
        shape = Denominator(
            np.abs(steps), start + lift, zero & (lift == 0.0), float(least[0] - least[1])
        )
        rule, last, base = shape.share()
        return SizeTable(
            steps < 0, shape.step, numerator, start, zero, self.utility.empty, lift,
            rule, last, base, shape.slope, np.array(MEANS), *_FAR, np.zeros(len(last)),
            *shape.rules(rule, last, base, error),
        )  # fmt: skip


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

        Where D begins lower for larger sizes, a rule is made for the last of the sizes it serves.
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
        firsts, made = np.unique(rule, return_index=True)[1], []
        for first, final, start in zip(firsts, last, base, strict=True):
            whole = self.slope == round(self.slope) or first == final
            high = float(largest[first : final + 1].max())
            reciprocal = Reciprocal(self.step, error, whole)
            made.append(reciprocal.rules(float(start), high, bool(self.zero[first])))
        return tabulated(made)

    def _reach(self, size: int, factor: float) -> int:
        """The last size from ``size`` on where D begins within a factor of where it does there."""
        here, ahead = self.start[size], self.start[size:]
        apart = np.maximum(ahead, here) > factor * np.minimum(ahead, here)
        apart |= self.zero[size:] != self.zero[size]
        return size + int(np.argmax(apart)) - 1 if apart.any() else len(self.start) - 1


# ------------------------------------------------------------------------ functions of the counts


@dataclass(frozen=True)
class ByCounts:
    """Expected utilities of any function of the counts over ``n_labels`` labels.

    From probabilities of independent labels, O(l^3) a row; or from scores, where a set weighs
    e^(2 · (their sum over it) + bias[its size]), with sizes up to K, O(l K^2).
    """

    utility: Counted
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
        block = max(1, MOST_VALUES // len(bias) ** 2)
        for first in range(int(low.min(initial=0)), int(high.max(initial=-1)) + 1, block):
            last = min(first + block - 1, self.n_labels)
            values = self._values(np.arange(first, last + 1), len(bias))
            for_rows(
                count_rows, len(arranged), log_on, log_off, bias, self.bias is None,
                np.maximum(low, first), np.minimum(high, last), first, values, out, least=1,
            )  # fmt: skip
        return out

    def _values(self, sizes: Array, width: int) -> Array:
        """The utility at each size, tp and number of missed labels; 0 where impossible."""
        axis = np.arange(width)
        size, tp, missed = np.meshgrid(sizes, axis, axis, indexing="ij")
        counts = (tp, size - tp, missed, self.n_labels - size - missed)
        possible = np.logical_and.reduce([count >= 0 for count in counts])
        values = np.zeros(size.shape)
        values[possible] = self.utility.of_counts(*(c[possible].astype(float) for c in counts))
        return values


@kernel
def count_rows(start, stop, log_on, log_off, bias, unbiased, low, high, first, values, out):
    """out[row, k] = sum over tp and missed of their probability times values[k - first].

    The distributions of tp among the first k labels and of the true ones among the others, by
    recursion from both ends, in logarithms. A set weighs e^log_on for each label in it, e^log_off
    for each other one (n, l), and e^bias of its size (K + 1,); ``unbiased``: the weights are
    probabilities of independent labels. ``values`` (sizes, K + 1, K + 1), ``out`` (n, l + 1).
    """
    n_labels, width = log_on.shape[1], len(bias)
    tails = np.empty((n_labels + 1, width))
    head, chance = np.empty(width), np.empty(width)
    for row in range(start, stop):
        on, off = log_on[row], log_off[row]
        tails[n_labels] = -np.inf
        tails[n_labels, 0] = 0.0
        for k in range(n_labels - 1, -1, -1):
            after, here = tails[k + 1], tails[k]
            here[0] = after[0] + off[k]
            for s in range(1, width):
                here[s] = log_plus(after[s] + off[k], after[s - 1] + on[k])
        total = -np.inf
        for s in range(width):
            total = log_plus(total, tails[0, s] + bias[s])
        head[:] = -np.inf
        head[0] = 0.0
        for k in range(high[row] + 1):
            if k >= low[row]:
                tail, value = tails[k], 0.0
                if unbiased:
                    # Probabilities: what is too small for a float adds nothing.
                    for s in range(n_labels - k + 1):
                        chance[s] = np.exp(tail[s])
                for tp in range(min(k, width - 1) + 1):
                    most = min(n_labels - k, width - 1 - tp) + 1
                    here = values[k - first, tp]
                    if unbiased:
                        value += np.exp(head[tp]) * dot(chance[:most], here)
                    else:
                        value += inner(head[tp] - total, tail[:most], bias[tp:], here)
                out[row, k] = value
            if k < n_labels:
                for s in range(width - 1, 0, -1):
                    head[s] = log_plus(head[s] + off[k], head[s - 1] + on[k])
                head[0] += off[k]


@kernel
def inner(level, tail, bias, values):
    """Sum of e^(level + tail + bias) * values."""
    total = 0.0
    for s in range(len(tail)):
        total += exp(level + tail[s] + bias[s]) * values[s]
    return total


@kernel
def dot(chance, values):
    """Sum of chance * values."""
    total = 0.0
    for s in range(len(chance)):
        total += chance[s] * values[s]
    return total
