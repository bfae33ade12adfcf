"""Thresholds on scores that make a measure of the whole population as large as possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from setwise.decoders.fixed_point import fixed_points
from setwise.decoders.population import POPULATIONS, Average, Utilities, get_metric
from setwise.decoders.threshold_search import (
    EQUAL,
    ScoredRows,
    best_thresholds,
    labelled,
    sparse_scores,
    weighted,
)
from setwise.sparse import rows_of
from setwise.targets import Target
from setwise.targets.measure import Array
from setwise.targets.target import rates_mean
from setwise.validation import probability_matrix, score_matrix, whole_number


@dataclass(eq=False, repr=False)
class Thresholds(BaseEstimator):
    """Predict the labels whose score reaches a threshold that maximises a population measure.

    The measure is a quotient of linear functions of confusion counts, N(k) / D(k) with
    k = (1, tp, fp, fn, tn), and the counts are those of a whole population of decisions:

    - micro: the quotient of the counts of all n l entries together;
    - macro: the mean over labels of the quotient of a label's counts over the n rows;
    - instance: the mean over rows of the quotient of a row's counts over the l labels.

    `fit` finds the thresholds that are best on given scores and label sets. The optimum is exact:
    every distinct score is tried. One threshold for all labels takes one sweep over all entries,
    one a label independent sweeps for macro; for micro the labels are coupled through the quotient,
    and one sweep over the corners of the hulls of their (tp, fp) finds them. `fit_probability`
    needs no label sets: it maximises the measure of the expected counts over all 0/1 matrices, by a
    threshold that depends on the optimal value alone.

    Parameters
    ----------
    metric : str or target, default "f1"
        "precision", "recall", "balanced_accuracy", or a target whose utility, 1 - loss, is a
        quotient of linear functions of the counts: a name such as "f1", "f0.5", "jaccard" or
        "hamming", or an object (`FBeta`, `Jaccard`, `LinearFractional`, `Hamming` without weights).
    average : {"micro", "macro", "instance"}, default "macro"
        Which decisions are counted together.
    per_label : bool, optional
        One threshold for each label, or one for all. By default one a label for micro and macro;
        for "instance" one for all is the only choice.
    cv : int, optional
        Cross-fit with so many folds (see Notes); by default thresholds are fitted once.
    random_state : int or None, default 0
        Seed of the shuffle that makes the folds; with None it differs from fit to fit.

    Attributes
    ----------
    thresholds_ : array of shape (n_labels,)
        The threshold of each label; +inf is never predicted, -inf always.
    threshold_ : float or None
        The one threshold for all labels, where there is one.
    value_ : float
        The measure, as a utility, that the thresholds attain on the data they were fitted to.
    cross_fitted_value_ : float or None
        With ``cv``, the measure that the out-of-fold decisions attain.

    Notes
    -----
    **Conventions.** A label without a positive example (or with no expected one) is never
    predicted, its threshold is +inf; one threshold for all labels holds for it too. It counts in a
    macro average with ``empty`` at 0/0, which is 1 unless the target says otherwise. Entries of
    equal score are decided alike. Of values that differ by at most 1e-12 the one with fewer
    predictions is taken. A threshold found by `fit` stands halfway between the lowest score it
    predicts and the next lower one. Balanced accuracy ignores a class that does not occur.
    Precision is 1 where nothing is predicted, so its optimum is to predict nothing;
    ``LinearFractional(..., empty=0.0)`` changes that.

    **Cross-fitting.** The best threshold for a few positive examples fits their noise. With ``cv``,
    a threshold for all labels and one a label are found on all folds but one, and their decisions
    on that one are counted. By the counts of all folds, a label keeps its own threshold if that
    gives the larger quotient (macro), or belongs to the combination with the largest one (micro):
    the median of those of the folds, the upper of two in the middle. Otherwise it takes the
    threshold for all labels, found on all rows. ``cross_fitted_value_`` judges every row by
    thresholds found without it, and lets a label choose by the counts of the other folds only.
    (Those were decided by thresholds that have seen the row, so it is still a little optimistic.)

    **Sparse scores** (CSR, nonnegative) count as 0 where nothing is stored. Fitting takes memory
    for what is stored, and `decode` answers in CSR.

    **Cost.** A sort, O(n l log n) for thresholds a label and O(n l log(n l)) for one, then O(n l).

    References
    ----------
    Dinkelbach (1967), On nonlinear fractional programming: at the largest quotient v, the sum of
    N_j - v D_j over labels is largest too. Lipton, Elkan and Naryanaswamy (2014): the threshold for
    F1 is half the optimal F1. Koyejo, Natarajan, Ravikumar and Dhillon (2015): all three averages
    have thresholds as optimal decisions, which may be found on data. Dembczyński, Kotłowski, Koyejo
    and Natarajan (2017): how the two kinds, data first and probabilities first, relate.

    Examples
    --------
    >>> scores = [[0.9, 0.2], [0.6, 0.4], [0.3, 0.1], [0.2, 0.3]]
    >>> y_true = [[1, 0], [0, 1], [1, 0], [0, 0]]
    >>> decoder = Thresholds("f1", "macro").fit(scores, y_true)
    >>> decoder.thresholds_
    array([0.25, 0.35])
    >>> decoder.decode([[0.3, 0.3], [0.1, 0.8]])
    array([[1, 0],
           [0, 1]], dtype=uint8)

    From probabilities alone; the best expected F1 is 2 (.9 + .6) / (1.7 + 2), and half of it:

    >>> decoder = Thresholds("f1", "micro").fit_probability([[0.9, 0.2], [0.6, 0.0]])
    >>> round(decoder.threshold_, 4)
    0.4054
    """

    metric: Any = "f1"
    average: Average = "macro"
    per_label: bool | None = None
    cv: int | None = None
    random_state: int | None = 0

    def __post_init__(self):
        get_metric(self.metric)
        if self.average not in POPULATIONS:
            raise ValueError(
                f"average must be 'micro', 'macro' or 'instance' (a mean over rows, 'samples' in "
                f"scikit-learn), but it is {self.average!r}"
            )
        if self.per_label not in (None, True, False):
            raise ValueError(f"per_label must be True, False or None, but it is {self.per_label!r}")
        if self.average == "instance" and self.per_label:
            raise ValueError(
                "per_label=True is not offered for average='instance': every row joins the "
                "thresholds of all labels, so their exact optimum is out of reach; use "
                "per_label=False, or average='macro' or 'micro'"
            )
        if self._is_joint and self.per_label:
            raise ValueError(
                "per_label=True is not offered for the micro average of G-mean: it is no quotient, "
                "so the exact optimum is out of reach; use per_label=False, or average='macro'"
            )
        if self.cv is not None:
            whole_number(self.cv, "cv", 2)
        if self.random_state is not None:
            whole_number(self.random_state, "random_state", 0)

    def fit(self, scores, y_true, sample_weight=None) -> Thresholds:
        """Find the best thresholds on scores with known label sets.

        Parameters
        ----------
        scores : array or CSR matrix of shape (n, n_labels)
            Finite scores; a sparse matrix must not hold negative ones.
        y_true : array or CSR matrix of shape (n, n_labels)
            The true label sets, as 0/1.
        sample_weight : array of shape (n,), optional
            How much each row counts; not for average="instance".
        """
        self._refuse_weights(sample_weight)
        metric, sample = get_metric(self.metric), labelled(scores, y_true, sample_weight)
        if self.cv is None:
            thresholds = best_thresholds(sample, metric, self.average, self._own)[0]
            return self._keep(sample, thresholds, not self._own)
        n_rows = sample.shape[0]
        if self.cv > n_rows:
            raise ValueError(
                f"cv must be at most the number of rows, which is {n_rows}, but it is {self.cv}"
            )
        folds = np.random.default_rng(self.random_state).permutation(n_rows) % self.cv
        thresholds, value = cross_fit(sample, metric, self.average, self._own, folds)
        return self._keep(sample, thresholds, not self._own, value)

    def fit_probability(self, probability, sample_weight=None) -> Thresholds:
        """Find the thresholds that maximise the measure of the expected counts.

        With marginal probabilities p the expected counts are tp = sum of p over what is predicted,
        fp = sum of 1 - p over it, and so on. Their quotient is maximised over all 0/1 matrices, for
        macro label by label. At the optimal value v an entry is predicted if N - v D grows by it:

            p (a1 - v b1) + (1 - p) (a2 - v b2) > p (a3 - v b3) + (1 - p) (a4 - v b4),

        where a and b are the coefficients of (1, tp, fp, fn, tn) in N and D; solved for p, this is
        the threshold. (With ``per_label=False`` the macro average has one threshold for all labels,
        the best one.)

        Parameters
        ----------
        probability : array or CSR matrix of shape (n, n_labels)
            Marginal probabilities of the labels, in [0, 1]; `decode` then takes such.
        sample_weight : array of shape (n,), optional
            How much each row counts.
        """
        if self.average == "instance":
            raise ValueError(
                "fit_probability is not offered for average='instance': an expected mean over rows "
                "is not a quotient of expected counts; MinimumRisk(target) decodes each row for it"
            )
        if self.cv is not None:
            raise ValueError(
                f"fit_probability has no label sets to cross-fit with, but cv is {self.cv}; "
                f"use cv=None, or fit(scores, y_true)"
            )
        table = probability_matrix(probability)
        metric, sample = get_metric(self.metric), weighted(table, table, sample_weight)
        one = not self._own or self.average == "micro"
        if one and self.average == "macro":
            thresholds = best_thresholds(sample, metric, self.average, own=False)[0]
        else:
            thresholds = fixed_points(sample, metric, self.average)
        return self._keep(sample, thresholds, one)

    def decode(self, scores):
        """Predict every label whose score reaches its threshold.

        Parameters
        ----------
        scores : array or CSR matrix of shape (n, n_labels)
            Scores, or probabilities, of the kind the thresholds were fitted to.

        Returns
        -------
        array or CSR array of shape (n, n_labels)
            The label sets as 0/1 of type uint8, CSR for sparse scores. There a label with a
            threshold that is not above 0 is predicted in every row, which takes a full column.
        """
        thresholds = getattr(self, "thresholds_", None)
        if thresholds is None:
            raise NotFittedError(
                "these Thresholds are not fitted: call fit(scores, y_true) or "
                "fit_probability(probability) before decode"
            )
        is_sparse, n_labels = hasattr(scores, "tocsr"), len(thresholds)
        read = sparse_scores if is_sparse else score_matrix
        return reached(read(scores, n_labels), thresholds)

    @property
    def _own(self) -> bool:
        """Whether each label has its own threshold."""
        if self.per_label is None:
            return self.average == "macro" or (self.average == "micro" and not self._is_joint)
        return bool(self.per_label)

    @property
    def _is_joint(self) -> bool:
        """Whether the labels of a micro average cannot be parted: G-mean is no quotient."""
        return self.average == "micro" and rates_mean(get_metric(self.metric)) == "geometric"

    def _refuse_weights(self, sample_weight: Any) -> None:
        if sample_weight is not None and self.average == "instance":
            raise ValueError(
                "sample_weight is not offered for average='instance'; use 'macro' or 'micro'"
            )

    def _keep(self, sample: ScoredRows, found: Array, one: bool, cross_fitted=None) -> Thresholds:
        """Store what was found; ``one`` says whether it is one threshold for all labels."""
        thresholds = np.broadcast_to(found, sample.shape[1]).copy()
        counts = sample.counts(thresholds, POPULATIONS[self.average])
        self.thresholds_ = thresholds
        self.threshold_ = float(thresholds[0]) if one else None
        self.value_ = float(Utilities.of_counts(get_metric(self.metric), counts).mean())
        self.cross_fitted_value_ = cross_fitted
        return self


def reached(table: Any, thresholds: Array) -> Any:
    """The labels whose score, dense or tidy CSR, reaches their threshold, as 0/1 of its kind."""
    if isinstance(table, np.ndarray):
        return (table >= thresholds).view(np.uint8)
    always, every_row = np.flatnonzero(thresholds <= 0), np.arange(table.shape[0])
    kept = table.data >= thresholds[table.indices]
    if len(always) == 0:
        place = np.flatnonzero(kept)
        ends = np.searchsorted(place, table.indptr).astype(table.indptr.dtype)
        labels = table.indices[place]
        return csr_array((np.ones(len(labels), np.uint8), labels, ends), shape=table.shape)
    kept &= thresholds[table.indices] > 0
    rows = np.append(rows_of(table)[kept], np.repeat(every_row, len(always)))
    labels = np.append(table.indices[kept], np.tile(always, len(every_row)))
    return csr_array((np.ones(len(rows), np.uint8), (rows, labels)), shape=table.shape)


def cross_fit(
    sample: ScoredRows, metric: Target, average: Average, own: bool, folds: Array
) -> tuple[Array, float]:
    """The thresholds, and the measure of the decisions out of fold; see the notes of `Thresholds`.

    ``folds`` (n,) says which fold each row belongs to.
    """
    by = "row" if average == "instance" else "label"
    found, counts = ([], []), ([], [])
    for fold in range(folds.max() + 1):
        train, held_out = sample[folds != fold], sample[folds == fold]
        for kind in range(1 + own):
            best = best_thresholds(train, metric, average, kind == 1)[0]
            found[kind].append(np.broadcast_to(best, sample.shape[1]))
            counts[kind].append(held_out.counts(found[kind][-1], by))
    thresholds = best_thresholds(sample, metric, average, own=False)[0]
    if not own:
        decided = np.concatenate(counts[0], axis=1) if by == "row" else np.sum(counts[0], axis=0)
    else:
        parts, totals = np.array(counts), np.sum(counts, axis=1)
        median = np.sort(found[1], axis=0)[len(found[1]) // 2]
        thresholds = np.where(prefers_own(metric, average, *totals), median, thresholds)
        thresholds[totals[1, 0] + totals[1, 2] == 0] = np.inf
        decided = np.zeros_like(totals[0])
        for shared, its_own in parts.swapaxes(0, 1):
            chosen = prefers_own(metric, average, totals[0] - shared, totals[1] - its_own)
            decided += np.where(chosen, its_own, shared)
    if average == "micro":
        decided = decided.sum(axis=1, keepdims=True)
    return thresholds, float(Utilities.of_counts(metric, decided).mean())


def prefers_own(metric: Target, average: Average, shared: Array, own: Array) -> Array:
    """Which labels do better by their own thresholds, from the counts of both, (4, l) each.

    For micro the labels with the largest quotient together, by Dinkelbach's iteration: for a value
    v those whose change raises numerator - v · denominator; their quotient is the next v.
    """
    positives, change = own[0] + own[2], own - shared
    if average == "macro":
        better = Utilities.of_counts(metric, own) > Utilities.of_counts(metric, shared) + EQUAL
        return better | (positives == 0)
    tallies = np.stack([shared[0], shared[0] + shared[1]]).sum(axis=1)
    more = np.stack([change[0], change[0] + change[1]])
    utilities = Utilities.of(metric, positives.sum(keepdims=True), float(shared.sum()))
    above, below = utilities.slopes[..., 0]

    def value_of(chosen: Array) -> float:
        return float(utilities.at(*(tallies + more[:, chosen].sum(axis=1))[:, None])[0])

    better = below @ more > 0
    value = -np.inf
    while (reached := value_of(better)) > value + EQUAL:
        chosen, value = better, reached
        better = (above - value * below) @ more > 0
    # Among equals the fewer predictions.
    size = utilities.parts(*(tallies + more[:, chosen].sum(axis=1)))[1, 0]
    gain, slack = (above - value * below) @ more, EQUAL * size / len(chosen)
    fewest = np.where(np.abs(gain) <= slack, more[1] < 0, gain > 0)
    return (fewest if value_of(fewest) >= value - EQUAL else chosen) | (positives == 0)
