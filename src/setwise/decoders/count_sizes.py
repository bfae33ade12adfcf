"""The best number of labels to predict, for any function of the counts.

The law of tp among the first k labels and of the true labels among the others, by recursion from
both ends, in logarithms; the function is summed over it. On all label sets O(l^3) a row, with a
bias for each size up to K (`Sized`) O(l K^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from setwise.decoders.decisions import TIE
from setwise.kernels import exp, kernel
from setwise.semirings import log_plus
from setwise.targets.measure import Array
from setwise.threads import for_rows

# Values of the function that are tabulated at a time.
MOST_VALUES = 2**24


class Counted(Protocol):
    """A function of the confusion counts."""

    def of_counts(self, tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
        """Its values."""
        ...


@dataclass(frozen=True)
class CountSizes:
    """A utility of the counts over ``n_labels`` labels, under a law with a bias for each size.

    The values of labels are probabilities or, with ``scores``, scores on a `Sized` space.
    """

    measure: Counted
    n_labels: int
    bias: Array
    scores: bool = False

    never_adds_impossible = False

    def best(
        self, values: Array, descending: bool, allowed: Array, second: bool
    ) -> tuple[Array, Array, Array]:
        """Sets, utilities and those of the next best size."""
        order = np.argsort(-values if descending else values, axis=1, kind="stable")
        low, high = np.flatnonzero(allowed)[[0, -1]]
        ends = (np.full(len(values), end) for end in (low, high))
        utility = self.of_first(*self._logs(values, order), *ends)
        size, best, other = best_size(utility, allowed)
        sets = np.zeros(values.shape, np.uint8)
        chosen = np.arange(self.n_labels) < size[:, None]
        np.put_along_axis(sets, order, chosen.astype(np.uint8), axis=1)
        return sets, best, other

    def of_sets(self, values: Array, sets: Array) -> Array:
        """The expected utility of given sets, (n,)."""
        order = np.argsort(1 - sets, axis=1, kind="stable")
        size = sets.sum(axis=1, dtype=np.int64)
        utility = self.of_first(*self._logs(values, order), size, size)
        return utility[np.arange(len(size)), size]

    def _logs(self, values: Array, order: Array) -> tuple[Array, Array]:
        """The logarithms of a label's weight in the set and out of it, in the given order."""
        arranged = np.take_along_axis(values, order, axis=1).astype(np.float64)
        if self.scores:
            return 2.0 * arranged, np.zeros_like(arranged)
        with np.errstate(divide="ignore"):
            return np.log(arranged), np.log1p(-arranged)

    def of_first(self, log_on: Array, log_off: Array, low: Array, high: Array) -> Array:
        """Expected utility of predicting the first k labels of each row, (n, l + 1).

        A set weighs e^(log_on) for each label in it, e^(log_off) for each other one, and the bias
        of its size. Only sizes k from ``low`` to ``high`` of the row are computed, else -inf.
        """
        out = np.full((len(log_on), self.n_labels + 1), -np.inf)
        width = len(self.bias)
        block = max(1, MOST_VALUES // width**2)
        for first in range(int(low.min(initial=0)), int(high.max(initial=-1)) + 1, block):
            last = min(first + block - 1, self.n_labels)
            values = self._values(np.arange(first, last + 1))
            for_rows(
                law_rows, len(log_on), log_on, log_off, self.bias, not self.scores,
                np.maximum(low, first), np.minimum(high, last), first, values, out, least=1,
            )  # fmt: skip
        return out

    def _values(self, sizes: Array) -> Array:
        """The utility at each size, tp and number of missed labels; 0 where impossible."""
        axis = np.arange(len(self.bias))
        size, tp, missed = np.meshgrid(sizes, axis, axis, indexing="ij")
        counts = (tp, size - tp, missed, self.n_labels - size - missed)
        possible = np.logical_and.reduce([count >= 0 for count in counts])
        values = np.zeros(size.shape)
        values[possible] = self.measure.of_counts(*(c[possible].astype(float) for c in counts))
        return values


@kernel
def law_rows(start, stop, log_on, log_off, bias, unbiased, low, high, first, values, out):
    """out[row, k] = sum over tp and missed of their probability times values[k - first].

    ``unbiased``: the weights are probabilities of independent labels, and add up to 1.
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


def best_size(utility: Array, allowed: Array) -> tuple[Array, Array, Array]:
    """Size and utility of the best allowed size of each row, and the utility of the next best."""
    utility = np.where(allowed, utility, -np.inf)
    size = np.argmax(utility >= utility.max(axis=1, keepdims=True) - TIE, axis=1)
    rows = np.arange(len(utility))
    best = utility[rows, size]
    utility[rows, size] = -np.inf
    return size, best, utility.max(axis=1)
