"""The decision oracle: the least expected loss, by trying every label set against every outcome.

Like `oracle`, it shares no code with the package and knows no shortcut: the loss of each of the 2^l
predictions against each of the 2^l outcomes is a table, the law of the outcomes is a vector, and
the expected losses are their product in extended precision. Sets are numbered in counting order,
label 0 the highest digit: set 5 of 4 labels is 0101. For many labels there are sums over the
confusion counts (`risks_by_size`) and over an explicit list of outcomes (`expected_losses`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tests.support import oracle

EXTENDED = np.longdouble
TIE = 1e-12  # risks this close count as equal
CLEAR = 1e-10  # a gap between this and a hundredth of TIE is neither a tie nor a difference


# ------------------------------------------------------------------------- predictions and outcomes


def number_of(sets) -> np.ndarray:
    """The number of each 0/1 row in counting order."""
    return np.array(
        [int("".join(str(int(label)) for label in row), 2) for row in np.asarray(sets).tolist()]
    )


def allowed_numbers(n_labels: int, size: int | None = None, parents=None) -> np.ndarray:
    """The sets that may be predicted: of one size if given, closed under the parents if given."""
    return np.array(
        [
            number
            for number, row in enumerate(oracle.all_sets(n_labels).tolist())
            if (size is None or sum(row) == size) and (parents is None or is_closed(row, parents))
        ]
    )


def is_closed(row: Sequence[int], parents: Sequence[int]) -> bool:
    """Whether each label of the set has its parent in the set."""
    return all(
        parent < 0 or row[parent] == 1 for label, parent in enumerate(parents) if row[label] == 1
    )


def edits(numbers: np.ndarray, n_labels: int) -> np.ndarray:
    """The sets themselves and all sets one label away."""
    near = {int(number) for number in numbers}
    for number in numbers:
        near |= {int(number) ^ (1 << label) for label in range(n_labels)}
    return np.array(sorted(near))


def independent_law(probability) -> np.ndarray:
    """P(outcome) for independent labels: a product of p or 1 - p for each of the 2^l outcomes."""
    probability = np.asarray(probability, dtype=EXTENDED)
    outcomes = oracle.all_sets(len(probability))
    return np.where(outcomes == 1, probability, 1 - probability).prod(axis=1)


def listed_law(sets, posterior) -> np.ndarray:
    """P(outcome) for each of the 2^l outcomes, when only the listed ones can occur."""
    law = np.zeros(2 ** np.asarray(sets).shape[1], dtype=EXTENDED)
    for number, share in zip(number_of(sets), np.asarray(posterior, EXTENDED), strict=True):
        law[number] += share
    return law


def loss_table(definition: oracle.Target, n_labels: int) -> np.ndarray:
    """L(y', y) of every prediction (row) against every outcome (column), one pair at a time."""
    everything = oracle.all_sets(n_labels)
    return np.array([definition.losses(everything, outcome) for outcome in everything]).T


# ------------------------------------------------------------------------------------- the decision


@dataclass(frozen=True)
class Decision:
    """All candidates for one row, in the order given, with their expected losses."""

    n_labels: int
    candidates: np.ndarray  # numbers of sets
    risks: np.ndarray

    @property
    def least(self) -> np.longdouble:
        return self.risks.min()

    def risk_of(self, number: int) -> np.longdouble:
        """The expected loss of a candidate; a KeyError for any other set."""
        position = np.flatnonzero(self.candidates == number)
        if len(position) != 1:
            raise KeyError(f"set {number:0{self.n_labels}b} is not a candidate")
        return self.risks[position[0]]

    def second(self, number: int) -> float:
        """The least expected loss of the other candidates, inf if there is none."""
        others = self.risks[self.candidates != number]
        return float(others.min()) if len(others) else np.inf

    def ties(self) -> list[int] | None:
        """The candidates whose risk counts as the least, in order; None where that is unclear."""
        gaps = self.risks - self.least
        if ((gaps > TIE / 100) & (gaps < CLEAR)).any():
            return None
        return self.candidates[gaps <= TIE / 100].tolist()

    def documented(self) -> int | None:
        """Of the ties the smallest set, then the one with the lower labels; None where unclear."""
        ties = self.ties()
        if ties is None:
            return None
        # Of two sets of one size, the lower labels have the higher digits.
        return min(ties, key=lambda number: (number.bit_count(), -number))


def decide(table: np.ndarray, law: np.ndarray, candidates: np.ndarray) -> Decision:
    """The expected loss of every candidate: sum over outcomes of P(y) L(y', y)."""
    return Decision(int(np.log2(len(law))), candidates, table[candidates] @ law)


def labels_in_order(probability, size: int, lowest: bool = False) -> int:
    """The number of the set of the `size` most (or least) probable labels, lower labels first."""
    values = np.asarray(probability, dtype=EXTENDED)
    order = sorted(
        range(len(values)), key=lambda label: (values[label] if lowest else -values[label], label)
    )
    return sum(1 << (len(values) - 1 - label) for label in order[:size])


# ------------------------------------------------------------------------------------- monotonicity


def directions(definition: oracle.Target, n_labels: int) -> list[str] | None:
    """For each predicted size how the loss goes with tp: "top" (falls or stays, so more hits are
    better), "bottom" (rises), "flat" or "mixed".

    At each true size one pair of sets stands for each tp. None where a step is so small that it
    may be rounding.
    """
    answer = []
    for n_pred in range(n_labels + 1):
        found = set()
        for n_true in range(n_labels + 1):
            losses = [
                definition.loss(*_sets_with(n_labels, n_pred, n_true, tp))
                for tp in range(max(0, n_pred + n_true - n_labels), min(n_pred, n_true) + 1)
            ]
            for before, after in itertools.pairwise(losses):
                step = after - before
                if 1e-14 < abs(step) < 1e-9:
                    return None
                if abs(step) >= 1e-9:
                    found.add("bottom" if step > 0 else "top")
        answer.append("mixed" if len(found) > 1 else found.pop() if found else "flat")
    return answer


def _sets_with(n_labels: int, n_pred: int, n_true: int, tp: int) -> tuple[tuple, tuple]:
    """A predicted and a true set of the given sizes that share tp labels."""
    predicted = [1] * n_pred + [0] * (n_labels - n_pred)
    fn = n_true - tp
    true = [1] * tp + [0] * (n_pred - tp) + [1] * fn + [0] * (n_labels - n_pred - fn)
    return tuple(predicted), tuple(true)


# ---------------------------------------------------------------------------------- many labels


def fraction_of_counts(numerator, denominator, empty: float = 1.0) -> Callable:
    """The linear-fractional loss as a function of arrays of counts."""
    above, below = np.asarray(numerator, EXTENDED), np.asarray(denominator, EXTENDED)

    def loss(tp, fp, fn, tn):
        counts = [np.asarray(count, dtype=EXTENDED) for count in (tp, fp, fn, tn)]
        top, size = (
            c[0] + sum(a * count for a, count in zip(c[1:], counts, strict=True) if a != 0)
            for c in (above, below)
        )
        nothing = size == 0
        return np.where(nothing, 1 - EXTENDED(empty), top / np.where(nothing, 1, size))

    return loss


def f_beta_of_counts(beta: float = 1.0, empty: float = 1.0) -> Callable:
    """1 - F-beta as a function of arrays of counts."""
    square = EXTENDED(beta) ** 2
    return fraction_of_counts((0, 0, 1, square, 0), (0, 1 + square, 1, square, 0), empty)


def jaccard_of_counts(empty: float = 1.0) -> Callable:
    """1 - intersection over union as a function of arrays of counts."""
    return fraction_of_counts((0, 0, 1, 1, 0), (0, 1, 1, 1, 0), empty)


def count_law(probability) -> np.ndarray:
    """The Poisson-binomial law in extended precision, one label after another."""
    law = np.ones(1, dtype=EXTENDED)
    for p in np.asarray(probability, dtype=EXTENDED):
        longer = np.zeros(len(law) + 1, dtype=EXTENDED)
        longer[:-1] += law * (1 - p)
        longer[1:] += law * p
        law = longer
    return law


def risk_by_counting(probability, predicted, loss_of_counts: Callable) -> np.longdouble:
    """E[L] of one set for independent labels: the laws of tp and of fn against the table of L."""
    probability, chosen = np.asarray(probability, dtype=EXTENDED), np.asarray(predicted) == 1
    hits, misses = count_law(probability[chosen]), count_law(probability[~chosen])
    return _contract(hits, misses, loss_of_counts)


def _contract(hits: np.ndarray, misses: np.ndarray, loss_of_counts: Callable) -> np.longdouble:
    n_pred, n_rest = len(hits) - 1, len(misses) - 1
    tp, fn = np.ix_(np.arange(n_pred + 1), np.arange(n_rest + 1))
    losses = np.asarray(loss_of_counts(tp, n_pred - tp, fn, n_rest - fn), dtype=EXTENDED)
    return hits @ np.broadcast_to(losses, (n_pred + 1, n_rest + 1)) @ misses


def risks_by_size(probability, loss_of_counts: Callable, lowest: bool = False) -> np.ndarray:
    """E[L] of the k most (or least) probable labels for each k from 0 to l, in O(l^3)."""
    ordered = np.sort(np.asarray(probability, dtype=EXTENDED))
    ordered = ordered if lowest else ordered[::-1]
    n_labels = len(ordered)
    heads = [np.ones(1, dtype=EXTENDED)]
    for p in ordered:
        heads.append(_one_more(heads[-1], p))
    tails = [np.ones(1, dtype=EXTENDED)]
    for p in ordered[::-1]:
        tails.append(_one_more(tails[-1], p))
    return np.array(
        [
            _contract(heads[size], tails[n_labels - size], loss_of_counts)
            for size in range(n_labels + 1)
        ]
    )


def _one_more(law: np.ndarray, p: np.longdouble) -> np.ndarray:
    longer = np.zeros(len(law) + 1, dtype=EXTENDED)
    longer[:-1] += law * (1 - p)
    longer[1:] += law * p
    return longer


def second_by_size(probability, risks: np.ndarray, loss_of_counts: Callable) -> np.longdouble:
    """The second least E[L] over all sets, for a loss that falls with tp.

    It is attained by the top labels of another size, or at the best size by exchanging the last
    label inside for the first outside: every other set of that size is reached from there by
    exchanges that do not help.
    """
    best = int(np.argmin(risks))
    others = np.delete(risks, best)
    ordered = np.sort(np.asarray(probability, dtype=EXTENDED))[::-1]
    if not 0 < best < len(ordered):
        return others.min()
    ordered[[best - 1, best]] = ordered[[best, best - 1]]
    return min(
        others.min(),
        _contract(count_law(ordered[:best]), count_law(ordered[best:]), loss_of_counts),
    )


def expected_losses(outcomes, posterior, predicted, loss_of_counts: Callable) -> np.ndarray:
    """sum_y P(y) L(y', y) over listed outcomes, for each row y' of `predicted`."""
    # (Whole numbers, in floats, which are multiplied faster.)
    outcomes, predicted = (np.asarray(sets, dtype=np.float64) for sets in (outcomes, predicted))
    posterior, n_true = np.asarray(posterior, dtype=EXTENDED), outcomes.sum(axis=1)
    answer, at_once = [], max(1, 2**16 // len(outcomes))
    for start in range(0, len(predicted), at_once):
        rows = predicted[start : start + at_once]
        tp = rows @ outcomes.T
        fp, fn = rows.sum(axis=1, keepdims=True) - tp, n_true - tp
        losses = loss_of_counts(tp, fp, fn, outcomes.shape[1] - tp - fp - fn)
        answer.append((posterior * np.asarray(losses, dtype=EXTENDED)).sum(axis=1))
    return np.concatenate(answer)


def f_beta_by_size(outcomes, posterior, beta: float, empty: float) -> np.ndarray:
    """The least expected 1 - F-beta over all sets of each size, for any law of the outcomes.

    At size k, E[F] = sum over the predicted labels i of E[(1 + b²) y_i / (b² |y| + k)]: the k
    largest of these are best.
    """
    outcomes = np.asarray(outcomes, dtype=EXTENDED)
    posterior = np.asarray(posterior, dtype=EXTENDED)
    square, sizes = EXTENDED(beta) ** 2, outcomes.sum(axis=1)
    answer = [1 - EXTENDED(empty) * posterior[sizes == 0].sum()]
    for size in range(1, outcomes.shape[1] + 1):
        gains = ((1 + square) * posterior / (square * sizes + size)) @ outcomes
        answer.append(1 - np.sort(gains)[::-1][:size].sum())
    return np.array(answer, dtype=EXTENDED)


def tree_gain(probability, parents, lengths) -> np.longdouble:
    """The most that a closed set gains over the empty one in expected agreement of edge lengths."""
    probability = np.asarray(probability, dtype=EXTENDED)

    def gain(node: int) -> np.longdouble:
        own = EXTENDED(lengths[node]) * (2 * probability[node] - 1)
        below = [gain(child) for child, parent in enumerate(parents) if parent == node]
        return max(EXTENDED(0), own + sum(below, EXTENDED(0)))

    return sum((gain(node) for node, parent in enumerate(parents) if parent < 0), EXTENDED(0))


def best_closed_set(probability, parents, lengths) -> tuple[list[int], Fraction, Fraction]:
    """The smallest of the best closed sets, its risk, and how much more the second best has.

    In fractions, so that a tie is one. Another closed set differs first in a label that may be
    chosen freely, its parent being in both, and then has the best below it.
    """
    p = [Fraction(float(value)) for value in probability]
    length = [Fraction(float(value)) for value in lengths]
    children = [[c for c, parent in enumerate(parents) if parent == node] for node in range(len(p))]
    chosen, gaps = [0] * len(p), []

    def gain(node: int) -> Fraction:
        below = sum((max(Fraction(0), gain(child)) for child in children[node]), Fraction(0))
        return length[node] * (2 * p[node] - 1) + below

    def choose(node: int) -> None:
        own = gain(node)
        gaps.append(abs(own))
        chosen[node] = int(own > 0)
        for child in children[node] if own > 0 else []:
            choose(child)

    for node, parent in enumerate(parents):
        if parent < 0:
            choose(node)
    wrong = [length[i] * (1 - p[i] if chosen[i] else p[i]) for i in range(len(p))]
    return chosen, sum(wrong) / sum(length), min(gaps) / sum(length)
