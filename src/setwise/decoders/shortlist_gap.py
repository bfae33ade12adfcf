"""By how much at most decisions from shortlists can be wrong, whatever is outside them.

Of the labels outside the shortlist of a row two numbers are certain: between which bounds the sum R
of their probabilities lies, and a probability eps that none exceeds. For a utility n1 tp / D whose
D grows with every missed label, given all other labels, the utility is a convex falling function of
the number of true labels outside. Among all sums of independent labels of mean R, none above eps,
its mean is the largest for a Poisson number, and the smallest for labels of probability eps each
(it is Schur-concave in the probabilities). So with R between a and b a utility lies between its
values for b / eps labels (rounded up) of probability eps, and for a Poisson number of mean a. What
is certain of R is cut into pieces, and the largest regret of any of them taken.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from setwise.decoders.by_size import BySize
from setwise.decoders.decisions import Decisions, decide_sparse
from setwise.distributions.shortlist import Shortlist
from setwise.targets.measure import Array

PIECES = 8


def gaps(search: Any, given: Shortlist, spare: int) -> Array:
    """The most that decisions of a search can be below the best, (n,)."""
    if not isinstance(search, BySize):
        # Labels decided by themselves: one outside would have to be above its own threshold.
        least, most = search.least_gainful
        return np.where(given.floor > least, most * given.most_tail, 0.0)
    if np.count_nonzero(search.top) == 1:
        return _of_one_size(search, given)
    outside: Any = given.ranked().outside

    def decide(values: Array, rows: Array) -> Decisions:
        sets = search.decide(values, False, outside[rows]).sets
        found = _of_sizes(search, values, sets.sum(axis=1, dtype=np.int64), given[rows])
        return Decisions(sets, found, found)

    return decide_sparse(given.probability, decide, spare).risk


def _of_one_size(search: BySize, given: Shortlist) -> Array:
    """Of predictions of k labels: those that the shortlist is short of."""
    table, size = search.utilities.table, int(np.argmax(search.top))
    short = np.maximum(size - np.diff(given.probability.indptr), 0)
    hits = np.minimum(short * given.floor, np.where(short > 0, given.most_tail, 0.0))
    return np.minimum(hits * table.above[2] / (table.start[size] + table.step[0]), 1.0)


def _of_sizes(search: BySize, values: Array, size: Array, given: Shortlist) -> Array:
    """The largest regret of the top ``size`` labels of each row, (n,)."""
    arranged, rows = -np.sort(-values.astype(np.float64), axis=1), np.arange(len(values))
    first, last, worst = 0 * size, np.full(len(size), values.shape[1]), np.zeros(len(size))
    low, width = given.least_tail, given.most_tail - given.least_tail
    cuts = [low + width * (part / PIECES) ** 2 for part in range(PIECES + 1)]
    listed = np.count_nonzero(values, axis=1)
    beyond = _beyond(search, listed, given)
    for least, most in pairwise(cuts):
        poisson = np.stack([least, np.zeros(len(size))], axis=1)
        upper = search.utilities.of_first(arranged, first, last, poisson)
        equal = np.stack([np.ceil(most / given.floor) * given.floor, 0.0 * most + given.floor], 1)
        lower = search.utilities.of_first(arranged, size, size, equal)[rows, size]
        best = np.maximum(upper.max(axis=1), upper[rows, listed] + beyond)
        worst = np.maximum(worst, best - lower)
        if not width.any():
            break
    return worst


def _beyond(search: BySize, listed: Array, given: Shortlist) -> Array:
    """What labels outside can add to the utility of the whole shortlist.

    m of them add at most n1 min(m eps, R) / D, with D that of so many predicted labels and one hit.
    """
    table, most = search.utilities.table, given.most_tail
    many = np.maximum(most / given.floor, 1.0)
    return table.above[2] * most / (table.start[0] + table.slope * (listed + many) + table.step[0])
