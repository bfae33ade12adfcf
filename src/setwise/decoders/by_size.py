"""Targets of the counts: the best set of each size is known, the best size is searched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from setwise.decoders.count_sizes import CountSizes
from setwise.decoders.decisions import TIE, Decisions
from setwise.decoders.direction import directions
from setwise.decoders.sizes import Sizes
from setwise.targets.measure import Array
from setwise.targets.target import predicted_size, utility_quotient

# Functions of the counts take the cube of the number of labels.
MOST_COUNTED = 1000


class SizeSearch(Protocol):
    """Expected utilities of the first labels of a row in the order of their values."""

    @property
    def never_adds_impossible(self) -> bool:
        """Whether adding a label of probability 0 never helps."""
        ...

    def best(
        self, values: Array, descending: bool, allowed: Array, second: bool
    ) -> tuple[Array, Array, Array]:
        """Sets, utilities, and with ``second`` those of the next best size (else -inf)."""
        ...

    def of_sets(self, values: Array, sets: Array) -> Array:
        """The expected utility of given sets, (n,)."""
        ...


@dataclass(frozen=True)
class BySize:
    """The top or the bottom k labels, k the size of least expected loss.

    ``top[k]`` and ``bottom[k]`` say which sets of k labels may be predicted; values are the
    probabilities or scores by which labels are ordered. On ties the smaller set, then the lower
    labels.
    """

    search: SizeSearch
    top: Array
    bottom: Array

    @classmethod
    def of(cls, target: Any, n_labels: int) -> BySize:
        """For a function of the counts, or for predictions of one size."""
        utility: Any = utility_quotient(target)
        size = predicted_size(target)
        if size is not None:
            only = np.arange(n_labels + 1) == size
            return cls(Sizes(utility, n_labels), only, only & False)
        if utility is None and n_labels > MOST_COUNTED:
            raise ValueError(
                f"{target} is decoded by the law of the counts, O(n_labels^3) a row, for at most "
                f"{MOST_COUNTED} labels, but there are {n_labels}; a linear-fractional target, or "
                f"decode_catalog with listed label sets, has no such limit"
            )
        sides = directions(target.measure(n_labels, "loss"), n_labels, str(target))
        if utility is not None:
            return cls(Sizes(utility, n_labels), *sides)
        utility = target.measure(n_labels, "utility")
        return cls(CountSizes(utility, n_labels, np.zeros(n_labels + 1)), *sides)

    def with_bias(self, bias: Array) -> BySize:
        """The same from scores with a bias for each size."""
        search: Any = self.search
        return replace(self, search=CountSizes(search.measure, search.n_labels, bias, scores=True))

    @property
    def leaves_out_impossible(self) -> bool:
        """Whether a label of probability 0 is never predicted, unless the size asks for it."""
        fixed = np.count_nonzero(self.top) == 1
        return fixed or (self.search.never_adds_impossible and bool(self.top.all()))

    def decide(self, values: Array, second: bool) -> Decisions:
        """The best set of each row."""
        orders = ((True, self.top), (False, self.bottom))
        found = [
            self._in_order(values, descending, allowed, second)
            for descending, allowed in orders
            if allowed.any()
        ]
        sets, best, other = found[0]
        for sets_too, best_too, other_too in found[1:]:
            smaller = sets_too.sum(axis=1) < sets.sum(axis=1)
            better = (best_too > best + TIE) | ((best_too >= best - TIE) & smaller)
            other = np.maximum(np.maximum(other, other_too), np.where(better, best, best_too))
            sets, best = np.where(better[:, None], sets_too, sets), np.where(better, best_too, best)
        return Decisions(sets, 1.0 - best, 1.0 - other)

    def of_sets(self, values: Array, sets: Array) -> Array:
        """The expected loss of given sets, (n,)."""
        return 1.0 - self.search.of_sets(values, sets)

    def _in_order(self, values: Array, descending: bool, allowed: Array, second: bool):
        sets, best, other = self.search.best(values, descending, allowed, second)
        if second:
            other = np.maximum(other, self._exchanged(values, sets, descending))
        return sets, best, other

    def _exchanged(self, values: Array, sets: Array, descending: bool) -> Array:
        """The utility of the next best set of the same size, -inf where there is none.

        It has the first label left out in place of the last one taken: every other set of that
        size is dominated by it, label by label.
        """
        rows = np.arange(len(sets))
        rank = -values if descending else values
        last = sets.shape[1] - 1 - np.argmax(np.where(sets == 1, rank, -np.inf)[:, ::-1], axis=1)
        first = np.argmin(np.where(sets == 0, rank, np.inf), axis=1)
        size = sets.sum(axis=1, dtype=np.int64)
        possible = (size > 0) & (size < sets.shape[1])
        changed = sets.copy()
        changed[rows[possible], last[possible]] = 0
        changed[rows[possible], first[possible]] = 1
        return np.where(possible, self.search.of_sets(values, changed), -np.inf)
