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
    entries, n_labels = problem.entries, len(problem.positives)
    gains = problem.gains(tp, predicted)
    price = np.zeros(len(entries.weight))
    for_rows(price_rows, len(price), entries, np.stack(gains, axis=1), problem.budget.size, price)
    row = np.repeat(np.arange(len(price)), np.diff(entries.ends))
    order = np.argsort(entries.label, kind="stable")
    columns = (
        np.append(0, np.cumsum(np.bincount(entries.label, minlength=n_labels))),
        entries.probability[order],
        entries.weight[row][order],
        price[row][order],
    )
    if problem.utilities.geometric.any():
        # G-mean is concave: it is nowhere above its linear part.
        tangents = problem.utilities.tangents(tp, predicted, problem.total)
        bounds, slope, offset = problem.factor * tangents
        add_tangents(columns, slope, offset, problem.total, bounds)
    else:
        bounds = np.empty(n_labels)
        facts = problem.utilities, problem.factor, problem.positives, problem.total
        for_rows(bound_labels, n_labels, columns, *facts, bounds, least=1)
    return float(problem.budget.size * price.sum() + bounds.sum())


@kernel
def price_rows(first, last, entries, gain_of, size, price):
    """The k-th largest gain of each row, by its weight; 0 where fewer gain."""
    ends, label, probability, weight = entries[0], entries[1], entries[2], entries[4]
    for row in range(first, last):
        found = np.zeros(size)
        for i in range(ends[row], ends[row + 1]):
            gain = gain_of[label[i], 0] * probability[i] + gain_of[label[i], 1]
            if gain > found[size - 1]:
                at = size - 1
                while at > 0 and found[at - 1] < gain:
                    found[at] = found[at - 1]
                    at -= 1
                found[at] = gain
        price[row] = weight[row] * found[size - 1]


@kernel
def add_tangents(columns, slope, offset, total, bounds):
    """Add what each label can gain at most beyond the prices of its rows."""
    start, probability, weight, price = columns
    for j in range(len(bounds)):
        stored = 0.0
        for i in range(start[j], start[j + 1]):
            gain = weight[i] * (slope[j] * probability[i] + offset[j]) - price[i]
            bounds[j] += max(gain, 0.0)
            stored += weight[i]
        bounds[j] += (total - stored) * max(offset[j], 0.0)


@kernel
def bound_labels(first, last, columns, utilities, factor, positives, total, bounds):
    """The largest utility of each label less the prices of its rows, at most.

    At any v, N / D = v + (N - v D) / D. Where D lies between two numbers, the second part is at
    most what it is with one of the two in its place, and then linear in the decisions. D's range
    is cut into pieces, and each has the v of its least bound.
    """
    for j in range(first, last):
        (top, bottom), rest = utilities.constants[:, j], total
        slopes = utilities.slopes[:, :, j if utilities.slopes.shape[2] > 1 else 0]
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
