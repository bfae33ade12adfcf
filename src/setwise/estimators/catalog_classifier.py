"""A multi-class classifier over the label sets seen in training, decoded for the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from setwise.decoders.for_target import Together
from setwise.decoders.minimum_risk import OVER, MinimumRisk
from setwise.distributions import Distribution, Listed
from setwise.estimators.claim import Claim
from setwise.estimators.guarantee import claim_of_catalog
from setwise.estimators.label_model import ClassModel
from setwise.estimators.wrapped import DecodedClassifier, gives_probability, require_law
from setwise.spaces import Catalog
from setwise.targets import Hamming
from setwise.targets.measure import Array
from setwise.targets.target import Target, judges_all_rows, predicted_size
from setwise.targets.truth import refuse_open
from setwise.validation import require_one_of, whole_number

# Rows of labels, and rare sets, that are looked at in one go.
ROWS = 2048


@dataclass(eq=False, repr=False)
class CatalogClassifier(DecodedClassifier):
    """Any multi-class classifier over label sets, its posterior decoded for the target.

    Each distinct label set of the training data is a class. The estimator's probabilities are a
    posterior p(y) over these sets, with all dependence between labels in it; `predict` returns
    the label set of least expected loss, sum over y of p(y) L(y', y)
    (`MinimumRisk.decode_catalog`, with its costs and ties). Works where label sets repeat: the
    estimator must learn a class from the rows that share it.

    A one-dimensional y is the multi-class case: `predict` returns the most probable class, which
    has the least expected loss among sets of one label for every target that treats labels alike.

    Parameters
    ----------
    estimator : classifier
        Cloned and fitted in `fit` to the numbers of the label sets. With a single label set a
        DummyClassifier takes its place.
    target, sparse_output, random_state
        As in `TargetDecoder`.
    over : {"auto", "list", "ranked", "edits", "all"}, default "auto"
        Which sets may be predicted, as in `MinimumRisk.decode_catalog`. "auto": all label sets
        where that is exact (F-beta, sums over labels, subset 0/1), else those seen in training.
    min_count : int, default 1
        A label set with fewer rows is merged into the most similar one that has as many: that of
        least target loss as a prediction for it (of least Hamming loss for precision@k and
        recall@k, which judge sets of k labels only, and for measures of all rows together), then
        the one with more rows, then the earlier. If no set has as many, those with the most rows
        are kept. Rows are counted, not weighed; 1 keeps all.
    cv : int or splitter, optional
        Folds for the thresholds of a measure of all rows together, as in `TargetDecoder`.
    decoder
        As in `TargetDecoder`.

    Attributes
    ----------
    estimator_ : classifier
        The fitted clone; its classes are the rows of ``sets_``.
    sets_ : uint8 array of shape (K, l)
        The label sets: smaller ones first, then by their first labels.
    counts_ : array of shape (K,)
        Rows of each, those merged into it included.
    over_ : str
        Which sets may be predicted: what "auto" became; "list" for a one-dimensional y.
    classes_, guarantee_, n_features_in_, feature_names_in_
        As in `TargetDecoder`.

    Examples
    --------
    Two labels that exclude each other:

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, Y = [[0.0], [0.1], [0.9], [1.0]], [[1, 0], [1, 0], [0, 1], [0, 1]]
    >>> model = CatalogClassifier(KNeighborsClassifier(2), "jaccard").fit(X, Y)
    >>> model.sets_
    array([[1, 0],
           [0, 1]], dtype=uint8)
    >>> model.predict([[0.05], [0.95]])
    array([[1, 0],
           [0, 1]])
    """

    estimator: Any
    target: Any = "f1"
    over: str = "auto"
    min_count: int = 1
    sparse_output: bool = False
    random_state: Any = 0
    cv: Any = None
    decoder: Any = "auto"

    def _fit(self, inner: Any, X: Any, labels: Any, params: dict, split_params: dict) -> SetModel:
        whole_number(self.min_count, "min_count", 1)
        require_one_of(self.over, ("auto", *OVER), "over")
        seen, one = self._seen(labels), self._names.one_dimensional
        self.over_ = "list" if one else _usable_over(self._decoder, seen.sets, self.over)
        self.sets_, self.counts_ = seen.sets, seen.counts
        return SetModel.fit(inner, X, seen, params)

    def _fit_model(self, inner: Any, X: Any, sets: Array, params: dict) -> SetModel:
        return SetModel.fit(inner, X, self._seen(sets), params)

    def _seen(self, labels: Any) -> SeenSets:
        return merge_rare(distinct_sets(labels), self.min_count, self._decoder.target)

    def for_target(self, target, decoder=None) -> CatalogClassifier:
        """The same fit, decoded for another target; nothing is trained again.

        Refused with ``min_count`` above 1: which sets are merged depends on the target.
        """
        check_is_fitted(self, "estimator_")
        if self.min_count > 1:
            raise ValueError(
                f"with min_count={self.min_count} rare label sets were merged for {self.target}: "
                f"fit the classifier again for {target}, or with min_count=1"
            )
        other = super().for_target(target, decoder)
        if not self._names.one_dimensional:
            other.over_ = _usable_over(other._decoder, self.sets_, self.over)
        return other

    @available_if(gives_probability)
    def posterior(self, X) -> Array:
        """The probability of each label set in ``sets_``, (n, K)."""
        check_is_fitted(self, "estimator_")
        return self._model.posterior(X)

    @available_if(gives_probability)
    def predict_proba(self, X) -> Array:
        """The probability of each label (or class), (n, l): the sum over the sets that have it."""
        check_is_fitted(self, "estimator_")
        return self._model.probability(X)

    @available_if(gives_probability)
    def predict_distribution(self, X) -> Distribution:
        """The posterior over the label sets of ``sets_``."""
        return Listed(self.sets_, self.posterior(X))

    def _claim(self, target: Any, names: Any) -> Claim:
        is_class = names.one_dimensional
        return claim_of_catalog(target, is_class, not is_class and self.over_ == "all")

    def _decide(self, X) -> Array:
        return self._decoder.decode_catalog(self.posterior(X), self.sets_, over=self.over_)


@dataclass(frozen=True, eq=False)
class SetModel:
    """An estimator fitted to the numbers of label sets (K, l)."""

    classes: ClassModel
    sets: Array

    @classmethod
    def fit(cls, inner: Any, X: Any, seen: SeenSets, params: dict) -> SetModel:
        """A clone fitted to the number of the set of each row, and to the sets if it takes them."""
        numbers = np.arange(len(seen.sets))
        if has_fit_parameter(inner, "vectors"):
            params = {**params, "vectors": seen.sets}
        return cls(ClassModel.fit(inner, X, seen.number, numbers, params), seen.sets)

    @property
    def estimator(self) -> Any:
        """The fitted clone."""
        return self.classes.estimator

    def posterior(self, X: Any) -> Array:
        """The probability of each label set, (n, K)."""
        posterior = self.classes.probability(X)
        require_law(posterior, self.estimator)
        return posterior

    def probability(self, X: Any) -> Array:
        """The probability of each label, (n, l): the sum over the sets that have it."""
        posterior = self.posterior(X)
        return np.clip(posterior @ self.sets.astype(posterior.dtype), 0.0, 1.0)


class SeenSets(NamedTuple):
    """Distinct label sets (K, l), how many rows have each (K,), and which each row has (n,)."""

    sets: Array
    counts: Array
    number: Array


def distinct_sets(labels: Any) -> SeenSets:
    """The label sets of the rows: smaller ones first, then those with the lower labels."""
    parts = (labels[first : first + ROWS] for first in range(0, labels.shape[0], ROWS))
    dense = (part.toarray() if hasattr(part, "toarray") else part for part in parts)
    keys = np.concatenate([np.packbits(part, axis=1) for part in dense])
    found, number, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    sets = np.unpackbits(found, axis=1, count=labels.shape[1])
    # Unique rows come in increasing order, so the set with the lower labels is the later one.
    order = np.lexsort((-np.arange(len(sets)), sets.sum(axis=1, dtype=np.int64)))
    return SeenSets(sets[order], counts[order], np.argsort(order)[number.ravel()])


def merge_rare(seen: SeenSets, min_count: int, target: Target) -> SeenSets:
    """Sets with fewer rows merged into the most similar of the others; see CatalogClassifier."""
    kept = seen.counts >= min(min_count, int(seen.counts.max()))
    if kept.all():
        return seen
    # In the order of preference, so that the first of the least losses is the one to take.
    order = np.flatnonzero(kept)[np.argsort(-seen.counts[kept], kind="stable")]
    into = np.where(kept, np.cumsum(kept) - 1, -1)
    of_rows = predicted_size(target) is None and not judges_all_rows(target)
    judge = target if of_rows else Hamming()
    measure, listed = judge.measure(seen.sets.shape[1], "loss"), Catalog(seen.sets[order])
    rare = np.flatnonzero(~kept)
    for first in range(0, len(rare), ROWS):
        part = rare[first : first + ROWS]
        loss = measure.matrix(listed, seen.sets[part])
        # Equal up to rounding is equal.
        nearest = np.argmax(loss <= loss.min(axis=1, keepdims=True) + 1e-12, axis=1)
        into[part] = into[order[nearest]]
    counts = np.bincount(into, seen.counts, int(kept.sum())).astype(np.int64)
    return SeenSets(seen.sets[kept], counts, into[seen.number])


def _usable_over(decoder: MinimumRisk | Together, sets: Array, over: str) -> str:
    """Which sets may be predicted; what cannot be decoded is refused."""
    if over == "auto":
        over = "all" if decoder.covers_all(sets.shape[1]) else "list"
    decoder.require_over(over, sets)
    if over != "all":
        # Each listed set may be predicted; a target that is not defined for one says so.
        decoder.target.loss(sets, sets)
        refuse_open(decoder.target, sets)
    return over
