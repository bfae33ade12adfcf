"""Figures of a ranking of the labels, all taken from the ranks of the true ones; propensities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.evaluation.sample import Array, in_parts, label_sets
from setwise.evaluation.statistics import Statistic, quotient, ratios_of_sums, row_means, titled
from setwise.sparse import places_among, rows_of
from setwise.validation import positive_number, real_vector


@dataclass(frozen=True)
class TrueRanks:
    """Where the true labels stand in the ranking of their rows; one entry for each true label.

    ``above`` counts the labels of the row with a larger score, ``at_least`` those with a score as
    large or larger, ``true_at_least`` the true ones among these. ``position`` is the place from 0
    on when, among equal scores, the lower label comes first.
    """

    true: Any
    above: Array
    at_least: Array
    true_at_least: Array
    position: Array

    @classmethod
    def of(cls, scores: Any, true: Any) -> TrueRanks:
        """From dense or sparse scores and CSR label sets, a range of rows at a time."""
        return cls(true, *in_parts(_ranks, scores, true))

    @property
    def n_true(self) -> Array:
        """How many labels are true, (n,)."""
        return np.diff(self.true.indptr)

    def sums(self, values: Array) -> Array:
        """The sum over the true labels of each row, (n,)."""
        return np.bincount(rows_of(self.true), values, minlength=self.true.shape[0])


def counts_as_high(scores: Any, true: Any) -> tuple[Array, Array, Array, Array]:
    """The score of each true label, and the counts of `TrueRanks` before positions; both are CSR.

    Costs a sort of each row's nonzero scores; zeros, stored or absent, are only counted.
    """
    own = own_scores(scores, true)
    above, at_least, true_at_least = (np.zeros(len(own), np.int64) for _ in range(3))
    for index in np.flatnonzero(np.diff(true.indptr)):
        here = slice(true.indptr[index], true.indptr[index + 1])
        wanted = own[here]
        ascending = np.sort(scores.data[scores.indptr[index] : scores.indptr[index + 1]])
        above[here] = len(ascending) - np.searchsorted(ascending, wanted, "right")
        at_least[here] = len(ascending) - np.searchsorted(ascending, wanted, "left")
        true_at_least[here] = len(wanted) - np.searchsorted(np.sort(wanted), wanted, "left")
    zeros = (scores.shape[1] - np.diff(scores.indptr))[rows_of(true)]
    above += np.where(own < 0, zeros, 0)
    at_least += np.where(own <= 0, zeros, 0)
    return own, above, at_least, true_at_least


def own_scores(scores: Any, true: Any) -> Array:
    """The score of each true label, from dense or sparse scores."""
    if isinstance(scores, np.ndarray):
        return scores[rows_of(true), true.indices]
    places, stored = places_among(scores, true)
    return np.where(stored, np.append(scores.data, 0.0)[places], 0.0)


def _ranks(scores: Any, true: Any) -> tuple[Array, Array, Array, Array]:
    """The counts and ``position`` of each true label; equal scores are looked at one by one."""
    own, above, at_least, true_at_least = counts_as_high(scores, true)
    places, stored = places_among(scores, true)
    first = scores.indptr[rows_of(true)]
    # Before a label with score 0 stand the lower ones with score 0: all lower but the stored ones.
    position = above + np.where(stored, 0, true.indices - (places - first))
    for entry in np.flatnonzero(stored & (at_least - above > 1)):
        lower = scores.data[first[entry] : places[entry]]
        position[entry] += np.count_nonzero(lower == own[entry])
    return above, at_least, true_at_least, position


def ranking_statistic(ranks: TrueRanks, ks: tuple[int, ...], zero_division: float) -> Statistic:
    """Figures of the ranking that are means over rows."""
    n_true, n_labels = ranks.n_true, ranks.true.shape[1]
    hits = {k: ranks.sums(ranks.position < k) for k in ks}
    wrong = ranks.sums(ranks.at_least - ranks.true_at_least)
    deepest = np.zeros(len(n_true))
    np.maximum.at(deepest, rows_of(ranks.true), ranks.at_least)
    higher = {
        **{f"precision@{k}": hits[k] / k for k in ks},
        **{f"recall@{k}": quotient(hits[k], n_true, zero_division) for k in ks},
        **{f"ndcg@{k}": _ndcg(ranks, k) for k in ks},
        # Mean over true labels of the share of true ones among the labels ranked as high.
        "label ranking average precision": quotient(
            ranks.sums(ranks.true_at_least / ranks.at_least), n_true, 1.0
        ),
    }
    lower = {
        # Share of pairs of a true and a false label in which the false one scores as high.
        "ranking loss": quotient(wrong, n_true * (n_labels - n_true), 0.0),
        # How many labels score as high as the lowest true one.
        "coverage error": deepest,
    }
    titles = titled("ranking", "higher", *higher) + titled("ranking", "lower", *lower)
    return row_means(titles, np.column_stack([*higher.values(), *lower.values()]))


def _ndcg(ranks: TrueRanks, k: int) -> Array:
    """DCG of the first k over the best possible; labels with equal scores share their gains.

    0 for a row without true labels, as in scikit-learn.
    """
    gains = np.append(0.0, np.cumsum(1.0 / np.log2(np.arange(k) + 2.0)))
    shared = gains[np.minimum(ranks.at_least, k)] - gains[np.minimum(ranks.above, k)]
    reached = ranks.sums(shared / (ranks.at_least - ranks.above))
    return quotient(reached, gains[np.minimum(ranks.n_true, k)], 0.0)


def propensity_statistic(
    ranks: TrueRanks, ks: tuple[int, ...], propensity: Array, zero_division: float
) -> Statistic:
    """psp@k: what the first k gain in 1 / propensity, over the most that k labels could gain."""
    worth = 1.0 / propensity[ranks.true.indices]
    # Within each row from the most valuable true label down: its place among them.
    row = rows_of(ranks.true)
    order = np.lexsort((-worth, row))
    place = np.empty_like(order)
    place[order] = np.arange(len(order)) - ranks.true.indptr[row]
    return ratios_of_sums(
        titled("ranking", "higher", *(f"psp@{k}" for k in ks)),
        np.column_stack([ranks.sums(worth * (ranks.position < k)) for k in ks]),
        np.column_stack([ranks.sums(worth * (place < k)) for k in ks]),
        zero_division,
    )


def propensities(y_train: Any, a: float = 0.55, b: float = 1.5) -> NDArray[np.float64]:
    """The propensity of each label, estimated from how often it is true in training data.

    p_l = 1 / (1 + C exp(-a log(N_l + b))) with C = (log N - 1) (b + 1)^a, for N rows of which
    N_l have label l. Rare labels have low propensities, so finding one counts for more in
    propensity-scored precision.

    Parameters
    ----------
    y_train : array or sparse matrix of shape (n, n_labels)
        The label sets of the *training* data, 0/1, of at least 3 rows (fewer make C negative).
    a, b : float, default 0.55 and 1.5
        The constants of the model. Jain, Prabhu and Varma take 0.5 and 0.4 for Wikipedia, 0.6 and
        2.6 for Amazon, and these for other data.

    Returns
    -------
    array of shape (n_labels,)
        In (0, 1).

    References
    ----------
    H. Jain, Y. Prabhu, M. Varma. Extreme multi-label loss functions for recommendation, tagging,
    ranking and other missing label applications. KDD 2016.

    Examples
    --------
    >>> propensities([[1, 0], [1, 0], [1, 0], [1, 1]]).round(3)
    array([0.8  , 0.721])
    """
    train = label_sets(y_train, "y_train")
    a, b = positive_number(a, "a"), positive_number(b, "b")
    n_rows = train.shape[0]
    if n_rows < 3:
        raise ValueError(f"y_train must have at least 3 rows, but it has {n_rows}")
    scale = (np.log(n_rows) - 1.0) * (b + 1.0) ** a
    return 1.0 / (1.0 + scale * (train.sum(axis=0) + b) ** -a)


def checked_propensity(propensity: Any, n_labels: int) -> NDArray[np.float64]:
    """Propensities of that many labels, each in (0, 1]."""
    vector = real_vector(propensity, n_labels, "propensity")
    wrong = np.flatnonzero((vector <= 0.0) | (vector > 1.0))
    if len(wrong):
        raise ValueError(
            f"propensity must lie in (0, 1], but propensity[{wrong[0]}] is {vector[wrong[0]]}"
        )
    return vector
