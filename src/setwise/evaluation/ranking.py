"""Figures of a ranking of the labels, all taken from the ranks of the true ones; propensities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.evaluation.sample import Array, label_sets, row_ranges, sparse_rows
from setwise.evaluation.statistics import RatiosOfSums, RowMeans, Sums, Title, quotient
from setwise.sparse import places_among, rows_of
from setwise.validation import positive_number, real_vector


@dataclass(frozen=True)
class TrueRanks:
    """Where the true labels stand in the ranking of their rows; one entry for each true label.

    ``above`` counts the labels of the row with a larger score, ``at_least`` those with a score as
    large or larger, ``true_at_least`` the true ones among these. ``position`` is the place from 0
    on when, among equal scores, the lower label comes first.
    """

    row: Array
    label: Array
    above: Array
    at_least: Array
    true_at_least: Array
    position: Array
    n_true: Array
    n_labels: int

    def sums(self, values: Array) -> Array:
        """The sum over the true labels of each row, (n,)."""
        return np.bincount(self.row, values, minlength=len(self.n_true))


def true_ranks(scores: Any, true: Any) -> TrueRanks:
    """Ranks of the true labels, a range of rows at a time.

    Costs a sort of each row's nonzero scores; zeros, stored or absent, are only counted.
    """
    parts = [
        _ranks_of_rows(sparse_rows(scores, rows), true[rows]) for rows in row_ranges(*true.shape)
    ]
    above, at_least, true_at_least, position = map(np.concatenate, zip(*parts, strict=True))
    return TrueRanks(
        row=rows_of(true),
        label=true.indices,
        above=above,
        at_least=at_least,
        true_at_least=true_at_least,
        position=position,
        n_true=np.diff(true.indptr),
        n_labels=true.shape[1],
    )


def _ranks_of_rows(scores: Any, true: Any) -> tuple[Array, Array, Array, Array]:
    """``above``, ``at_least``, ``true_at_least`` and ``position`` of each true label."""
    places, stored = places_among(scores, true)
    own = np.where(stored, np.append(scores.data, 0.0)[places], 0.0)
    above, at_least, true_at_least = _counts_among_stored(scores, true, own)
    row = rows_of(true)
    zeros = (scores.shape[1] - np.diff(scores.indptr))[row]
    above += np.where(own < 0, zeros, 0)
    at_least += np.where(own <= 0, zeros, 0)
    # Before a label with score 0 stand the lower ones with score 0: all lower but the stored ones.
    position = above + np.where(stored, 0, true.indices - (places - scores.indptr[row]))
    for index in np.unique(row[stored & (at_least - above > 1)]):
        entries = np.arange(true.indptr[index], true.indptr[index + 1])
        entries = entries[stored[entries]]
        rank = _stable_rank(scores.data[scores.indptr[index] : scores.indptr[index + 1]])
        position[entries] = rank[places[entries] - scores.indptr[index]]
        position[entries] += np.where(own[entries] < 0, zeros[entries], 0)
    return above, at_least, true_at_least, position


def _counts_among_stored(scores: Any, true: Any, own: Array) -> tuple[Array, Array, Array]:
    """For each true label: stored scores above its own, at least its own, and true ones such."""
    above, at_least, true_at_least = (np.zeros(len(own), np.int64) for _ in range(3))
    for index in np.flatnonzero(np.diff(true.indptr)):
        here = slice(true.indptr[index], true.indptr[index + 1])
        wanted = own[here]
        ascending = np.sort(scores.data[scores.indptr[index] : scores.indptr[index + 1]])
        above[here] = len(ascending) - np.searchsorted(ascending, wanted, "right")
        at_least[here] = len(ascending) - np.searchsorted(ascending, wanted, "left")
        true_at_least[here] = len(wanted) - np.searchsorted(np.sort(wanted), wanted, "left")
    return above, at_least, true_at_least


def _stable_rank(values: Array) -> Array:
    """The place of each value from the largest down; of equal ones, the earlier comes first."""
    rank = np.empty(len(values), np.int64)
    rank[np.argsort(-values, kind="stable")] = np.arange(len(values))
    return rank


def ranking_means(ranks: TrueRanks, ks: tuple[int, ...], zero_division: float) -> RowMeans:
    """Figures of the ranking that are means over rows."""
    hits = {k: ranks.sums(ranks.position < k) for k in ks}
    columns = {
        **{f"precision@{k}": hits[k] / k for k in ks},
        **{f"recall@{k}": quotient(hits[k], ranks.n_true, zero_division) for k in ks},
        **{f"ndcg@{k}": _ndcg(ranks, k) for k in ks},
        "label ranking average precision": _average_precision(ranks),
    }
    lower = {"ranking loss": _ranking_loss(ranks), "coverage error": _coverage(ranks)}
    titles = (
        *(Title(name, "ranking", "higher") for name in columns),
        *(Title(name, "ranking", "lower") for name in lower),
    )
    return RowMeans(titles, Sums.of(np.column_stack([*columns.values(), *lower.values()])))


def _ndcg(ranks: TrueRanks, k: int) -> Array:
    """DCG of the first k over the best possible; labels with equal scores share their gains.

    0 for a row without true labels, as in scikit-learn.
    """
    gains = np.append(0.0, np.cumsum(1.0 / np.log2(np.arange(k) + 2.0)))
    shared = gains[np.minimum(ranks.at_least, k)] - gains[np.minimum(ranks.above, k)]
    reached = ranks.sums(shared / (ranks.at_least - ranks.above))
    return quotient(reached, gains[np.minimum(ranks.n_true, k)], 0.0)


def _average_precision(ranks: TrueRanks) -> Array:
    """Mean over true labels of the share of true ones among the labels ranked as high."""
    return quotient(ranks.sums(ranks.true_at_least / ranks.at_least), ranks.n_true, 1.0)


def _ranking_loss(ranks: TrueRanks) -> Array:
    """Share of pairs of a true and a false label in which the false one scores at least as high."""
    wrong = ranks.sums(ranks.at_least - ranks.true_at_least)
    return quotient(wrong, ranks.n_true * (ranks.n_labels - ranks.n_true), 0.0)


def _coverage(ranks: TrueRanks) -> Array:
    """How many labels score as high as the lowest true one; 0 without true labels."""
    deepest = np.zeros(len(ranks.n_true))
    np.maximum.at(deepest, ranks.row, ranks.at_least)
    return deepest


def propensity_scored(
    ranks: TrueRanks, ks: tuple[int, ...], propensity: Array, zero_division: float
) -> RatiosOfSums:
    """psp@k: what the first k gain in 1 / propensity, over the most that k labels could gain."""
    worth = 1.0 / propensity[ranks.label]
    # Within each row from the most valuable true label down: its place among them.
    order = np.lexsort((-worth, ranks.row))
    first = np.cumsum(ranks.n_true) - ranks.n_true
    place = np.empty_like(order)
    place[order] = np.arange(len(order)) - np.repeat(first, ranks.n_true)
    return RatiosOfSums(
        tuple(Title(f"psp@{k}", "ranking", "higher") for k in ks),
        Sums.of(np.column_stack([ranks.sums(worth * (ranks.position < k)) for k in ks])),
        Sums.of(np.column_stack([ranks.sums(worth * (place < k)) for k in ks])),
        zero_division,
    )


# ----------------------------------------------------------------------------------- propensities


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
