"""Figures of predicted label sets: by row, over all, by label, and in a taxonomy.

In a taxonomy both sets are taken with all labels above theirs. Hierarchical precision and recall
(Kiritchenko, Matwin and Famili, 2005) are those over all entries of the sets so augmented: a wrong
label costs less, the more of what stands above it is right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setwise.evaluation.sample import Array, Sample, checked_sample, one_order
from setwise.evaluation.separation import separations
from setwise.evaluation.statistics import (
    Statistic,
    Title,
    mean_of_known,
    quotient,
    ratios_of_sums,
    row_means,
    titled,
)
from setwise.sparse import row_ranges
from setwise.targets import Target
from setwise.targets.target import averages_labels, judges_all_rows
from setwise.taxonomy import Taxonomy

FOUR = ("precision", "recall", "f1", "jaccard")
HAMMING = titled("instance", "lower", "hamming loss")
INSTANCE = titled("instance", "higher", "subset accuracy", *(f"instance {of}" for of in FOUR))
INSTANCE += titled("instance", None, "predicted size", "true size", most=math.inf)
LABELS = titled("micro", "higher", *(f"micro {of}" for of in FOUR))
LABELS += titled("macro", "higher", *(f"macro {of}" for of in FOUR))
LABELS += titled("macro", "higher", "macro balanced accuracy", "weighted f1")


def precision_recall_f1_jaccard(both: Any, predicted: Any, true: Any, nothing: float):
    """The `FOUR`, from the sizes of intersection, prediction and truth."""
    return (
        quotient(both, predicted, nothing),
        quotient(both, true, nothing),
        quotient(2.0 * both, predicted + true, nothing),
        quotient(both, predicted + true - both, nothing),
    )


def instance_statistics(sample: Sample, zero_division: float) -> list[Statistic]:
    """Figures of each row's two label sets, averaged over rows.

    Hamming loss is one quotient of two counts, as exact as can be.
    """
    both, predicted, true = (
        part.sum(axis=1) for part in (sample.both, sample.predicted, sample.true)
    )
    differ = predicted + true - 2 * both
    four = precision_recall_f1_jaccard(both, predicted, true, zero_division)
    n_rows, n_labels = sample.true.shape
    entries = np.full((n_rows, 1), n_labels)
    return [
        ratios_of_sums(HAMMING, differ[:, None], entries, 0.0),
        row_means(INSTANCE, np.column_stack([differ == 0, *four, predicted, true])),
    ]


def label_statistic(sample: Sample, zero_division: float) -> Statistic:
    """Micro and macro figures, from how often each label is predicted, true, and both."""

    def figures(
        total: Array, both: Array, predicted: Array, true: Array, prior: Array | None = None
    ) -> Array:
        counts = both, predicted, true
        micro = precision_recall_f1_jaccard(*(p.sum(axis=0) for p in counts), nothing=zero_division)
        by_label = precision_recall_f1_jaccard(*counts, zero_division)
        # Weighted by how often each label is true; unweighted where none ever is.
        support = true.sum(axis=0)
        found = np.where(true > 0, by_label[2], 0.0)
        weighted = quotient((found * true).sum(axis=0), support, 0.0)
        weighted = np.where(support == 0, mean_of_known(by_label[2]), weighted)
        if prior is not None:
            both = both + prior[0]
            predicted, true = predicted + prior[0] + prior[1], true + prior[0] + prior[2]
            total = total + prior.sum(axis=0)
            again = precision_recall_f1_jaccard(both, predicted, true, zero_division)
            # What is left out of the sample's mean stays out.
            pairs = zip(by_label, again, strict=True)
            by_label = [np.where(np.isnan(own), own, spread) for own, spread in pairs]
        macro = [mean_of_known(figure) for figure in by_label]
        # Mean recall of a label's two classes; of one class where the other never occurs.
        false = total - true
        recalls = quotient(both, true, 0.0) + quotient(false - predicted + both, false, 0.0)
        balanced = recalls / (1.0 * (true > 0) + (false > 0))
        return np.stack([*micro, *macro, balanced.mean(axis=0), weighted])

    parts = sample.both, sample.predicted, sample.true
    return Statistic.of(LABELS, figures, *parts, has_prior=True)


def loss_statistic(title: Title, target: Target, sample: Sample) -> Statistic:
    """The loss of a setwise target: the mean over rows, or of all rows together."""
    if not judges_all_rows(target):
        return row_means([title], row_losses(sample, target)[:, None])

    def figures(total: Array, *sums: Array) -> Array:
        counts = target.counts_of(total, *sums[:3])  # type: ignore
        prior = sums[3] if len(sums) > 3 else None
        return 1.0 - target.of_counts(counts if prior is None else counts + prior)[None]  # type: ignore

    parts = target.tallies(sample.predicted, sample.true)  # type: ignore
    # What is averaged over labels is spread by the prior, as macro figures are.
    return Statistic.of([title], figures, *parts, has_prior=averages_labels(target))


def row_losses(sample: Sample, target: Target) -> Array:
    """The loss of each row, (n,), a range of rows at a time.

    An error that names a row says where its range begins. A target that judges all rows together
    is asked for all at once.
    """
    if judges_all_rows(target):
        return target.row_losses(sample.predicted, sample.true)
    losses = np.empty(sample.true.shape[0])
    for rows in row_ranges(*sample.true.shape):
        try:
            losses[rows] = target.loss(sample.predicted[rows], sample.true[rows])
        except ValueError as error:
            if rows.start == 0:
                raise
            where = f"(counting rows from row {rows.start} of the whole)"
            raise ValueError(f"{error} {where}") from error
    return losses


@dataclass(frozen=True)
class PerLabel:
    """One entry for each label.

    Attributes
    ----------
    support, predicted, both : array of int
        In how many rows it is true, predicted, and both.
    precision, recall, f1 : array of float
        both / predicted, both / support and 2 both / (predicted + support).
    average_precision, roc_auc : array of float, or None without probabilities
        How well the probabilities rank the rows; NaN where they are not defined: average precision
        of a label that is never true, the area under the ROC curve also of one that always is.

    Examples
    --------
    >>> found = per_label([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    >>> found.support, found.precision
    (array([1, 1]), array([0.5, 1. ]))
    """

    support: NDArray[np.int64]
    predicted: NDArray[np.int64]
    both: NDArray[np.int64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    f1: NDArray[np.float64]
    average_precision: NDArray[np.float64] | None = None
    roc_auc: NDArray[np.float64] | None = None


def per_label(
    y_pred: Any, y_true: Any, *, probability: Any = None, zero_division: float = 0.0
) -> PerLabel:
    """Counts, precision, recall, F1, average precision and ROC AUC of each label.

    Parameters
    ----------
    y_pred, y_true, probability, zero_division
        As in `evaluate`. Probabilities give average precision and ROC AUC; the counts tell where
        0/0 is.

    Notes
    -----
    The counts take one pass over the stored label sets, average precision and ROC AUC a search
    for each nonzero probability among those of the label's true entries.

    Examples
    --------
    >>> figures = per_label([[1, 1], [0, 1]], [[1, 0], [1, 1]])
    >>> figures.support, figures.precision, figures.recall
    (array([2, 1]), array([1. , 0.5]), array([0.5, 1. ]))
    """
    nothing = checked_zero_division(zero_division)
    sample = checked_sample(y_pred, y_true, probability)
    both, predicted, support = (
        part.sum(axis=0) for part in (sample.both, sample.predicted, sample.true)
    )
    precision, recall, f1, _ = precision_recall_f1_jaccard(both, predicted, support, nothing)
    found: Any = () if sample.probability is None else separations(sample.probability, sample.true)
    return PerLabel(support, predicted, both, precision, recall, f1, *found)


def checked_zero_division(value: Any) -> float:
    """The value of 0/0: 0, 1 or NaN."""
    if not isinstance(value, int | float | np.integer | np.floating) or not (
        value in (0, 1) or math.isnan(value)
    ):
        raise ValueError(f"zero_division must be 0.0, 1.0 or nan, but it is {value!r}")
    return float(value)


@dataclass(frozen=True)
class ByLevel:
    """One entry for each level of a taxonomy, the roots' first.

    Attributes
    ----------
    n_labels : array of int
        How many labels the level has.
    support, predicted, both, precision, recall, f1
        As in `PerLabel`, over the entries of all its labels.

    Examples
    --------
    >>> from setwise import Taxonomy
    >>> levels = by_level([[1, 1, 0]], [[1, 0, 1]], Taxonomy.from_parents([-1, 0, 0]))
    >>> levels.n_labels, levels.f1
    (array([1, 2]), array([1., 0.]))
    """

    n_labels: NDArray[np.int64]
    support: NDArray[np.int64]
    predicted: NDArray[np.int64]
    both: NDArray[np.int64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    f1: NDArray[np.float64]

    @classmethod
    def of(cls, labels: PerLabel, taxonomy: Taxonomy, zero_division: float = 0.0) -> ByLevel:
        """From the counts of each label, which are those of closed sets."""
        both, predicted, support = (
            np.bincount(taxonomy.levels, counts).astype(np.int64)
            for counts in (labels.both, labels.predicted, labels.support)
        )
        of = precision_recall_f1_jaccard(both, predicted, support, float(zero_division))
        return cls(np.bincount(taxonomy.levels), support, predicted, both, *of[:3])


def by_level(
    y_pred: Any, y_true: Any, taxonomy: Taxonomy, *, zero_division: float = 0.0
) -> ByLevel:
    """Counts, precision, recall and F1 on each level of a taxonomy, of closed label sets.

    Parameters
    ----------
    y_pred, y_true, zero_division
        As in `evaluate`; what stands above the labels of the sets is added.
    taxonomy : Taxonomy
        A tree or not; a label is on the level below its deepest parent.

    Examples
    --------
    The right group of animals, the wrong one in it:

    >>> animals = Taxonomy.from_paths(["animals", "animals/mammals", "animals/birds"])
    >>> by_level([[0, 1, 0]], [[0, 0, 1]], animals).f1
    array([1., 0.])
    """
    sample = checked_sample(y_pred, y_true)
    checked_taxonomy(taxonomy, sample.true.shape[1], sample.columns)
    sets = (closed(part, taxonomy) for part in (sample.predicted, sample.true))
    return ByLevel.of(per_label(*sets, zero_division=zero_division), taxonomy, zero_division)


def checked_taxonomy(taxonomy: Any, n_labels: int, columns: list[Any] | None = None) -> Taxonomy:
    """A taxonomy over that many labels, in the order of columns with names, or a ValueError."""
    if not isinstance(taxonomy, Taxonomy):
        raise ValueError(f"taxonomy must be a Taxonomy, not {taxonomy!r}")
    if taxonomy.n_labels != n_labels:
        raise ValueError(
            f"taxonomy must have as many labels as y_true, {n_labels}, but it has "
            f"{taxonomy.n_labels}"
        )
    advice = "y_true.to_numpy() leaves out the names, else taxonomy.over(columns) reorders it"
    one_order({"y_true": columns, "taxonomy": taxonomy.names.tolist()}, advice)
    return taxonomy


def hierarchy_statistics(sample: Sample, taxonomy: Taxonomy, nothing: float) -> list[Statistic]:
    """Hierarchical figures, those by level, and the length of the edges that differ.

    Where labels have several parents that is of the edges of the spanning tree, as for
    `TreeDistance`.
    """
    predicted, true = closed(sample.predicted, taxonomy), closed(sample.true, taxonomy)
    labels = np.arange(taxonomy.n_labels)
    on_level = csr_array((np.ones(len(labels), np.int64), (labels, taxonomy.levels)))
    counts = [sets @ on_level for sets in (predicted.multiply(true), predicted, true)]

    def figures(_: Array, *counts: Array) -> Array:
        of_all = precision_recall_f1_jaccard(*(p.sum(axis=0) for p in counts), nothing=nothing)
        return np.vstack([*of_all[:3], precision_recall_f1_jaccard(*counts, nothing=nothing)[2]])

    names = [f"hierarchical {of}" for of in FOUR[:3]]
    names += [f"f1 on level {level}" for level in range(taxonomy.depth)]
    titles = titled("hierarchy", "higher", *names)
    mean_titles = titled("hierarchy", "higher", "closed predictions")
    mean_titles += titled("hierarchy", "lower", "tree distance", most=math.inf)
    distances = row_distances(predicted, true, taxonomy.spanning_tree().lengths)
    means = np.column_stack([taxonomy.is_closed(sample.predicted), distances])
    return [Statistic.of(titles, figures, *counts), row_means(mean_titles, means)]


def closed(sets: Any, taxonomy: Taxonomy) -> Any:
    """Label sets with all above their labels, a CSR array of integers."""
    return csr_array(taxonomy.close(sets)).astype(np.int64)


def row_distances(predicted: Any, true: Any, lengths: Array) -> Array:
    """The total length of the edges on which the closed sets of each row differ, (n,)."""
    differ = predicted + true - 2 * predicted.multiply(true)
    return np.asarray(differ @ lengths).ravel()
