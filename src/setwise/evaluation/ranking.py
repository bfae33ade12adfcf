"""Figures of a ranking of the labels, all taken from the ranks of the true ones; propensities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.evaluation.sample import Array, in_parts, label_sets
from setwise.evaluation.separation import own_scores
from setwise.evaluation.statistics import Statistic, quotient, ratios_of_sums, row_means, titled
from setwise.sparse import places_among, rows_of
from setwise.validation import positive_number, real_vector


def counts_as_high(scores: Any, true: Any) -> tuple[Array, Array, Array, Array]:
    """Where the true labels stand in the ranking of their rows; an entry for each true label.

    Its score; how many labels of the row have a larger one; how many one as large or larger; and
    how many of these are true. Both arrays are CSR. Costs a sort of each row's nonzero scores;
    zeros, stored or absent, are only counted.
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


def _ranks(scores: Any, true: Any) -> tuple[Array, Array, Array, Array]:
    """Of each true label: labels above, as high, true ones as high; and its place, from 0 on.

    Of labels with equal scores the lower one comes first; these are looked at one by one.
    """
    own, above, at_least, true_at_least = counts_as_high(scores, true)
    places, stored = places_among(scores, true)
    first = scores.indptr[rows_of(true)]
    # Before a label with score 0 stand the lower ones with score 0: all lower but the stored ones.
    position = above + np.where(stored, 0, true.indices - (places - first))
    for entry in np.flatnonzero(stored & (at_least - above > 1)):
        lower = scores.data[first[entry] : places[entry]]
        position[entry] += np.count_nonzero(lower == own[entry])
    return above, at_least, true_at_least, position


def ranking_statistics(
    scores: Any, true: Any, ks: tuple[int, ...], propensity: Array | None, nothing: float
) -> list[Statistic]:
    """Figures of the ranking of labels by dense or sparse scores, with psp@k given propensities."""
    above, at_least, true_at_least, position = in_parts(_ranks, scores, true)
    row, n_true, n_labels = rows_of(true), np.diff(true.indptr), true.shape[1]

    def sums(values: Array) -> Array:
        """Over the true labels of each row, (n,)."""
        return np.bincount(row, values, minlength=len(n_true))

    def ndcg(k: int) -> Array:
        """DCG of the first k over the best possible; labels with equal scores share their gains."""
        gains = np.append(0.0, np.cumsum(1.0 / np.log2(np.arange(k) + 2.0)))
        shared = gains[np.minimum(at_least, k)] - gains[np.minimum(above, k)]
        reached = sums(shared / (at_least - above))
        return quotient(reached, gains[np.minimum(n_true, k)], 0.0)

    hits = {k: sums(position < k) for k in ks}
    higher = {
        **{f"precision@{k}": hits[k] / k for k in ks},
        **{f"recall@{k}": quotient(hits[k], n_true, nothing) for k in ks},
        **{f"ndcg@{k}": ndcg(k) for k in ks},
        # Mean over true labels of the share of true ones among the labels ranked as high.
        "label ranking average precision": quotient(sums(true_at_least / at_least), n_true, 1.0),
    }
    deepest = np.zeros(len(n_true))
    np.maximum.at(deepest, row, at_least)
    # Pairs of a true and a false label in which the false one scores as high.
    wrong = quotient(sums(at_least - true_at_least), n_true * (n_labels - n_true), 0.0)
    # The coverage error is how many labels score as high as the lowest true one.
    lower = {"ranking loss": wrong, "coverage error": deepest}
    titles = titled("ranking", "higher", *higher)
    titles += titled("ranking", "lower", *lower, most=math.inf)
    found = [row_means(titles, np.column_stack([*higher.values(), *lower.values()]))]
    if propensity is not None and ks:
        worth = 1.0 / propensity[true.indices]
        # Within each row from the most valuable true label down: its place among them.
        order = np.lexsort((-worth, row))
        place = np.empty_like(order)
        place[order] = np.arange(len(order)) - true.indptr[row]
        gained, possible = (
            np.column_stack([sums(worth * (first < k)) for k in ks]) for first in (position, place)
        )
        titles = titled("ranking", "higher", *(f"psp@{k}" for k in ks))
        found.append(ratios_of_sums(titles, gained, possible, nothing))
    return found


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
