"""How large a measure of the expected counts any decisions within a budget can have, at most.

A price for each row's labels turns the budget into a cost, and parts the problem into labels
(Lagrange). The bound holds at any prices that are not below 0.
"""

from __future__ import annotations

import numpy as np

from setwise.decoders.budget import BudgetProblem
from setwise.kernels import inner, kernel
from setwise.targets.measure import Array
from setwise.threads import for_rows

# Pieces of the range of a label's denominator, and steps of the search for the value of a piece.
PIECES, SEARCH = 24, 30


def dual_bound(problem: BudgetProblem, tp: Array, predicted: Array) -> float:
    """No decisions within the budget have a larger measure; prices are those at these tallies."""
    entries, n_labels, size = problem.entries, len(problem.positives), problem.budget.size
    price = _prices(problem, *problem.gains(tp, predicted))
    row = np.repeat(np.arange(len(price)), np.diff(entries.ends))
    if problem.utilities.geometric.any():
        # G-mean is concave: it is nowhere above its linear part.
        bounds, slope, offset = problem.factor * problem.utilities.tangents(
            tp, predicted, problem.total
        )
        label, weight = entries.label, entries.weight[row]
        gain = weight * (slope[label] * entries.probability + offset[label]) - price[row]
        bounds = bounds + np.bincount(label, np.maximum(gain, 0.0), n_labels)
        absent = problem.total - np.bincount(label, weight, n_labels)
        bounds = bounds + absent * np.maximum(offset, 0.0)
    else:
        order, bounds = np.argsort(entries.label, kind="stable"), np.empty(n_labels)
        columns = (
            np.append(0, np.cumsum(np.bincount(entries.label, minlength=n_labels))),
            entries.probability[order],
            entries.weight[row][order],
            price[row][order],
        )
        positives = problem.positives.astype(np.float64, copy=False)
        facts = problem.utilities, problem.factor, positives, problem.total
        for_rows(bound_labels, n_labels, columns, *facts, bounds, least=1)
    return float(size * price.sum() + bounds.sum())


def _prices(problem: BudgetProblem, slope: Array, offset: Array) -> Array:
    """The least of the k largest gains of each row, by its weight; 0 where fewer gain, (n,)."""
    entries, budget = problem.entries, problem.budget._replace(exact=False)
    label, entry = (part[:, -1] for part in entries.choose(budget, slope, offset))
    probability, is_stored = np.zeros(len(entry)), entry >= 0
    probability[is_stored] = entries.probability[entry[is_stored]]
    gain = slope[label] * probability + offset[label]
    return np.where(label >= 0, entries.weight * gain, 0.0)


@kernel
def bound_labels(first, last, columns, utilities, factor, positives, total, bounds):
    """The largest utility of each label less the prices of its rows, at most.

    At any v, N / D = v + (N - v D) / D. Where D lies between two numbers, the second part is at
    most what it is with one of the two in its place, and then linear in the decisions. D's range
    is cut into pieces, and each has the v of its least bound.
    """
    for j in range(first, last):
        (top, bottom), rest = utilities.constants[:, j], total
        slopes = utilities.slopes[:, :, j if len(utilities.geometric) > 1 else 0]
        n_false, d_false = slopes[:, 1]
        n_true, d_true = n_false + slopes[0, 0], d_false + slopes[1, 0]
        low, high, least = bottom, bottom, np.inf
        start, stop = columns[0][j], columns[0][j + 1]
        for i in range(start, stop):
            change = columns[2][i] * (d_false + (d_true - d_false) * columns[1][i])
            low, high = low + min(change, 0.0), high + max(change, 0.0)
            least = min(least, change) if change > 0.0 else least
            rest -= columns[2][i]
        low, high = low + min(rest * d_false, 0.0), high + max(rest * d_false, 0.0)
        best = 0.0
        if low <= 1e-12 * high or low <= 0.0:
            # 0/0, or at least the smallest change; where others are not stored, any weight.
            best = factor[j] * utilities.empty
            low = least if rest <= 1e-12 * total and d_false >= 0.0 else 0.0
        if high > 0.0 and (low <= 0.0 or not low < np.inf):
            best = factor[j] if positives[j] > 0.0 or max(top, n_false) > 0.0 else best
        elif high > 0.0:
            nothing, gains = (top, bottom), (n_false, d_false, n_true, d_true, rest)
            ratio = (max(high, low) / low) ** (1.0 / PIECES)
            for piece in range(PIECES):
                ends = low * ratio**piece, low * ratio ** (piece + 1.0)
                left, right = 0.0, 1.0
                found = of_piece(columns, start, stop, factor[j], nothing, gains, ends, 0.0)
                for _ in range(SEARCH):
                    if found <= best:
                        break
                    v, w = left + (right - left) / 3.0, right - (right - left) / 3.0
                    at_v = of_piece(columns, start, stop, factor[j], nothing, gains, ends, v)
                    at_w = of_piece(columns, start, stop, factor[j], nothing, gains, ends, w)
                    found = min(found, at_v, at_w)
                    left, right = (left, w) if at_v < at_w else (v, right)
                best = max(best, found)
        bounds[j] = best


@inner
def of_piece(columns, start, stop, factor, nothing, gains, ends, v):
    """The bound for denominators between two numbers at the value v; see `bound_labels`."""
    n_false, d_false, n_true, d_true, rest = gains
    if_false, if_true = n_false - v * d_false, n_true - v * d_true
    largest = -np.inf
    for end in ends:
        total = factor * (v + (nothing[0] - v * nothing[1]) / end)
        for i in range(start, stop):
            p = columns[1][i]
            gain = columns[2][i] * ((1.0 - p) * if_false + p * if_true)
            total += max(factor * gain / end - columns[3][i], 0.0)
        total += max(factor * rest * if_false / end, 0.0)
        largest = max(largest, total)
    return largest
