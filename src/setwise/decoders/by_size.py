"""Targets of the counts: the best set of each size is known, the best size is searched.

With independent labels (or any distribution where a label of higher score is more likely than
another, all else equal), exchanging a predicted label for a more probable one makes tp
stochastically larger, with the predicted and the true size as they were. So if the loss does not
rise with tp, whatever the true size, the k most probable labels are the best k; if it does not
fall, the k least probable ones. If it falls for one true size and rises for another, neither need
be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setwise.decoders.decisions import TIE, Decisions, top_labels
from setwise.decoders.size_utilities import ByCounts, ByQuadrature
from setwise.targets.measure import Array, Fraction
from setwise.targets.target import predicted_size, utility_quotient

# Functions of the counts take the cube of the number of labels.
MOST_COUNTED = 1000
# Steps of the loss that are only rounding.
ROUNDING = 1e-12
SIZES_AT_ONCE = 2**14


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
        found = [self._in_order(values, *o, second, outside) for o in orders if o[1].any()]
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

    def _in_order(
        self, values: Array, rank: Array, allowed: Array, second: bool, outside: Array | None
    ) -> tuple[Array, Array, Array]:
        """Sets, utilities and the next best ones among the first labels by ``rank``."""
        n, width = values.shape
        order, rows = np.argsort(rank, axis=1, kind="stable"), np.arange(n)
        arranged = np.take_along_axis(values, order, axis=1).astype(np.float64)
        # Of some labels only there are fewer sizes.
        allowed = allowed[: width + 1]
        ends = (np.full(n, end) for end in np.flatnonzero(allowed)[[0, -1]])
        utility = np.where(allowed, self.utilities.of_first(arranged, *ends, outside), -np.inf)
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
            rest = None if outside is None else outside[inside]
            swapped = self.utilities.of_first(places, k, k, rest)[at, k]
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
