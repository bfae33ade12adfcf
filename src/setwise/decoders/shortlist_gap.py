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
# A listed label is at the floor if it is but for the rounding of single precision.
NEARLY = 1.0 - 1e-6


def gaps(search: Any, given: Shortlist, spare: int) -> Array:
    """The most that decisions of a search can be below the best, (n,)."""
    if not isinstance(search, BySize):
        # Labels decided by themselves: one outside would have to be above its own threshold.
        least, most = search.least_gainful
        return np.where(given.floor > least, most * given.most_tail, 0.0)
    if np.count_nonzero(search.top) == 1:
        return _of_one_size(search, given, spare)
    outside: Any = given.ranked().outside

    def decide(values: Array, rows: Array) -> Decisions:
        sets = search.decide(values, False, outside[rows]).sets
        found = _of_sizes(search, values, sets.sum(axis=1, dtype=np.int64), given[rows])
        return Decisions(sets, found, found)

    return decide_sparse(given.probability, decide, spare).risk


def _of_one_size(search: BySize, given: Shortlist, spare: int) -> Array:
    """Of predictions of k labels: those less probable than a label outside may be."""
    table, size = search.utilities.table, int(np.argmax(search.top))

    def decide(values: Array, rows: Array) -> Decisions:
        taken, floor = np.sort(values, axis=1)[:, values.shape[1] - size :], given.floor[rows]
        below = taken < floor[:, None] * NEARLY
        hits = np.where(below, floor[:, None] - taken, 0.0).sum(axis=1)
        hits = np.minimum(hits, np.where(below.any(axis=1), given.most_tail[rows], 0.0))
        found = np.minimum(hits * table.hits / (table.start[size] + table.head_step), 1.0)
        return Decisions(np.zeros(values.shape, np.uint8), found, found)

    return decide_sparse(given.probability, decide, spare).risk


def _of_sizes(search: BySize, values: Array, size: Array, given: Shortlist) -> Array:
    """The largest regret of the top ``size`` labels of each row, (n,)."""
    arranged, rows = -np.sort(-values.astype(np.float64), axis=1), np.arange(len(values))
    first, last, worst = 0 * size, np.full(len(size), values.shape[1]), np.zeros(len(size))
    low, width = given.least_tail, given.most_tail - given.least_tail
    cuts = [low + width * (part / PIECES) ** 2 for part in range(PIECES + 1)]
    beyond, floor = _beyond(search, values, given), _floor(given)
    for least, most in pairwise(cuts):
        poisson = np.stack([least, np.zeros(len(size))], axis=1)
        upper = search.utilities.of_first(arranged, first, last, poisson)
        equal = np.stack([np.ceil(most / floor) * floor, floor], axis=1)
        lower = search.utilities.of_first(arranged, size, size, equal)[rows, size]
        best = upper + beyond
        # (What no prediction at all is worth is lost with the first label.)
        best[:, 0] = np.maximum(upper[:, 0], beyond[:, 0])
        worst = np.maximum(worst, best.max(axis=1) - lower)
        if not width.any():
            break
    return worst


def _beyond(search: BySize, values: Array, given: Shortlist) -> Array:
    """What labels outside can add to the utility of the top k of a shortlist, for each k.

    m of them add at most n1 min(m eps, R) / D, with D that of so many predicted labels and one hit.
    Nothing where listed labels are left out that no label outside is more probable than: with them
    in its place the set is as good.
    """
    table, most, sizes = search.utilities.table, given.most_tail, np.arange(values.shape[1] + 1)
    many = np.maximum(most / _floor(given), 1.0)[:, None]
    added = table.hits * most[:, None]
    added = added / (table.start[0] + table.slope * (sizes + many) + table.head_step)
    before = np.count_nonzero(values >= given.floor[:, None] * NEARLY, axis=1)
    return np.where(sizes >= before[:, None], added, 0.0)


def _floor(given: Shortlist) -> Array:
    """The floor of each row; something where it is 0, since nothing is outside then."""
    return np.where(given.floor > 0.0, given.floor, 1.0)
