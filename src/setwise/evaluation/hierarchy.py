"""Figures of label sets in a taxonomy: both sets are taken with all labels above theirs.

Hierarchical precision and recall (Kiritchenko, Matwin and Famili, 2005) are those over all entries
of the sets so augmented: a wrong label costs less, the more of what stands above it is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setwise.evaluation.label_sets import PerLabel, per_label, precision_recall_f1_jaccard
from setwise.evaluation.sample import Array, Sample, checked_sample, first_difference
from setwise.evaluation.statistics import RatiosOfSums, RowMeans, Statistic, Sums, Title
from setwise.taxonomy import Taxonomy

THREE = tuple(
    Title(f"hierarchical {name}", "hierarchy", "higher") for name in ("precision", "recall", "f1")
)
CLOSED = Title("closed predictions", "hierarchy", "higher")
DISTANCE = Title("tree distance", "hierarchy", "lower")


@dataclass(frozen=True)
class ByLevel:
    """One entry for each level of a taxonomy, the roots' first.

    Attributes
    ----------
    n_labels : array of int
        How many labels the level has.
    support, predicted, both : array of int
        How many entries of its labels are true, predicted, and both.
    precision, recall, f1 : array of float
        both / predicted, both / support and 2 both / (predicted + support).
    """

    n_labels: NDArray[np.int64]
    support: NDArray[np.int64]
    predicted: NDArray[np.int64]
    both: NDArray[np.int64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    f1: NDArray[np.float64]

    @classmethod
    def of(cls, labels: PerLabel, taxonomy: Taxonomy, zero_division: float = 1.0) -> ByLevel:
        """From the counts of each label, which are those of closed sets."""
        both, predicted, support = (
            np.bincount(taxonomy.levels, counts).astype(np.int64)
            for counts in (labels.both, labels.predicted, labels.support)
        )
        of = precision_recall_f1_jaccard(both, predicted, support, float(zero_division))
        return cls(np.bincount(taxonomy.levels), support, predicted, both, *of[:3])


def by_level(
    y_pred: Any, y_true: Any, taxonomy: Taxonomy, *, zero_division: float = 1.0
) -> ByLevel:
    """Counts, precision, recall and F1 on each level of a taxonomy, of closed label sets.

    Parameters
    ----------
    y_pred, y_true : array or sparse matrix of shape (n, n_labels)
        Predicted and true label sets, 0/1; what stands above their labels is added. Data frames
        must have the same columns, those of the taxonomy, in the same order.
    taxonomy : Taxonomy
        A tree or not; a label is on the level below its deepest parent.
    zero_division : {0.0, 1.0}, default 1.0
        The value of 0/0, as in `evaluate`.

    Examples
    --------
    The right group of animals, the wrong one in it:

    >>> animals = Taxonomy.from_paths(["animals", "animals/mammals", "animals/birds"])
    >>> by_level([[0, 1, 0]], [[0, 0, 1]], animals).f1
    array([1., 0.])
    """
    sample = checked_sample(y_pred, y_true)
    checked_taxonomy(taxonomy, sample.n_labels, sample.columns)
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
    names = taxonomy.names.tolist()
    place = None if columns is None else first_difference(columns, names)
    if columns is not None and place is not None:
        raise ValueError(
            f"taxonomy must have its labels in the order of the columns, but column {place} is "
            f"{columns[place]!r} and label {place} {names[place]!r}; taxonomy.over(columns) "
            f"reorders it; if they are the same labels in the same order, y_true.to_numpy() and "
            f"y_pred.to_numpy() leave the columns' names out"
        )
    return taxonomy


def hierarchy_statistics(sample: Sample, taxonomy: Taxonomy, nothing: float) -> list[Statistic]:
    """Hierarchical figures, those by level, and the length of the edges that differ.

    Where labels have several parents that is of the edges of the spanning tree, as for
    `TreeDistance`.
    """
    sets = closed(sample.predicted, taxonomy), closed(sample.true, taxonomy)
    both, predicted, true = _counts(*sets, taxonomy)
    above, below = _parts(*(part.sum(axis=1)[:, None] for part in (both, predicted, true)))
    levels = tuple(
        Title(f"f1 on level {level}", "hierarchy", "higher") for level in range(taxonomy.depth)
    )
    distances = row_distances(*sets, taxonomy.spanning_tree().lengths)
    means = np.column_stack([taxonomy.is_closed(sample.predicted), distances])
    return [
        RatiosOfSums(THREE, Sums.of(above), Sums.of(below), nothing),
        RatiosOfSums(levels, Sums.of(2 * both), Sums.of(predicted + true), nothing),
        RowMeans((CLOSED, DISTANCE), Sums.of(means)),
    ]


def _parts(both: Array, predicted: Array, true: Array) -> tuple[Array, Array]:
    """What precision, recall and F1 are quotients of."""
    return np.hstack([both, both, 2 * both]), np.hstack([predicted, true, predicted + true])


def closed(sets: Any, taxonomy: Taxonomy) -> Any:
    """Label sets with all above their labels, a CSR array of integers."""
    return csr_array(taxonomy.close(sets)).astype(np.int64)


def row_distances(predicted: Any, true: Any, lengths: Array) -> Array:
    """The total length of the edges on which the closed sets of each row differ, (n,)."""
    differ = predicted + true - 2 * predicted.multiply(true)
    return np.asarray(differ @ lengths).ravel()


def _counts(predicted: Any, true: Any, taxonomy: Taxonomy) -> tuple[Any, Any, Any]:
    """Of each row's closed sets, how many labels on each level are in both, predicted, true."""
    labels = np.arange(taxonomy.n_labels)
    on_level = csr_array(
        (np.ones(len(labels), np.int64), (labels, taxonomy.levels)),
        shape=(len(labels), taxonomy.depth),
    )
    return tuple(
        (sets @ on_level).toarray() for sets in (predicted.multiply(true), predicted, true)
    )  # type: ignore
