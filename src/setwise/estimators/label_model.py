"""A fitted estimator of a label matrix or of classes, and what its probabilities mean.

scikit-learn's classifiers answer `predict_proba` for a label matrix in several shapes: an (n, l)
array (OneVsRestClassifier, ClassifierChain, MLPClassifier), a list of one (n, 2) array a label
(forests, trees, neighbours, MultiOutputClassifier), (n, 2) for a single label. All of them become
one (n, l) array here.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import DataConversionWarning
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples

from setwise.estimators.wrapped import (
    handed_on,
    in_unit_interval,
    last_estimator,
    takes_label_matrix,
)
from setwise.targets.measure import Array


@dataclass(frozen=True, eq=False)
class LabelModel:
    """An estimator fitted to a label matrix, and the labels it never saw vary.

    ``constant`` is 0 or 1 for a label without positive or without negative examples, whose
    probability is that; NaN for the labels the estimator was fitted to.
    """

    estimator: Any
    constant: Array

    @classmethod
    def fit(cls, estimator: Any, X: Any, sets: Array, params: dict) -> LabelModel:
        """Fit a clone to the labels that vary.

        Many classifiers refuse a label of one class, and others would only repeat it. If no label
        varies, a DummyClassifier takes the estimator's place. A FrozenEstimator, fitted before,
        is asked for all labels.
        """
        first = sets[0].astype(np.float64)
        constant = np.where((sets == sets[0]).all(axis=0), first, np.nan)
        if isinstance(estimator, FrozenEstimator):
            constant[:] = np.nan
        varying = np.isnan(constant)
        if not varying.any():
            return cls(DummyClassifier().fit(X, sets.astype(np.int64)), constant)
        # Not uint8: beyond 256 labels scikit-learn's label_binarize puts its columns out of order.
        labels: Array = sets[:, varying].astype(np.int64)
        copy: Any = clone(estimator)
        try:
            with warnings.catch_warnings():
                if labels.shape[1] == 1:
                    # A column is what all classifiers take, though most say that they flatten it.
                    warnings.simplefilter("ignore", DataConversionWarning)
                return cls(copy.fit(X, labels, **params), constant)
        except ValueError as error:
            kind = type(estimator).__name__
            if labels.shape[1] > 1 and not takes_label_matrix(estimator):
                error.add_note(
                    f"If {kind} takes one label at a time, wrap it: "
                    f"MultiOutputClassifier({kind}(...)), or OneVsRestClassifier"
                )
            if not varying.all():
                error.add_note(
                    f"The estimator was given {labels.shape[1]} of the {len(varying)} labels; the "
                    f"others have only positive or only negative examples"
                )
            raise

    def probability(self, X: Any) -> Array:
        """The probability of each label, (n, l)."""
        X = handed_on(X)
        varying = np.isnan(self.constant)
        if not varying.any():
            return np.tile(self.constant, (_num_samples(X), 1))
        known = label_probability(self.estimator, X, int(varying.sum()))
        if varying.all():
            return known
        probability = np.empty((len(known), len(varying)), known.dtype)
        probability[:] = self.constant
        probability[:, varying] = known
        return probability


@dataclass(frozen=True, eq=False)
class ClassModel:
    """An estimator fitted to classes, one a row; ``classes`` in increasing order."""

    estimator: Any
    classes: Array

    @classmethod
    def fit(cls, estimator: Any, X: Any, y: Array, classes: Array, params: dict) -> ClassModel:
        """Fit a clone; a single class, which many refuse, takes a DummyClassifier."""
        if (y == y[0]).all():
            return cls(DummyClassifier().fit(X, y), classes)
        copy: Any = clone(estimator)
        return cls(copy.fit(X, y, **params), classes)

    def probability(self, X: Any) -> Array:
        """The probability of each class, (n, K); of one the estimator never saw, 0."""
        output = np.asarray(self.estimator.predict_proba(handed_on(X)))
        own = np.asarray(getattr(self.estimator, "classes_", self.classes))
        if output.ndim != 2 or own.ndim != 1 or output.shape[1] != len(own):
            raise ValueError(
                f"{type(self.estimator).__name__}.predict_proba gave an array of shape "
                f"{output.shape}; expected is (n, {len(own)}), a column for each class"
            )
        output = in_unit_interval(output, self.estimator)
        if np.array_equal(own, self.classes):
            return output
        column = {name: place for place, name in enumerate(self.classes.tolist())}
        unknown = [name for name in own.tolist() if name not in column]
        if unknown:
            raise ValueError(
                f"the classes_ of {type(self.estimator).__name__} must be among the classes it was "
                f"fitted to, but {unknown[0]!r} is not"
            )
        probability = np.zeros((len(output), len(self.classes)), output.dtype)
        probability[:, [column[name] for name in own.tolist()]] = output
        return probability


def label_probability(estimator: Any, X: Any, n_labels: int) -> Array:
    """The probability of each label from `predict_proba` of any shape, (n, l)."""
    output: Any = _said(estimator, X)
    listed = isinstance(output, list | tuple) and all(np.ndim(part) == 2 for part in output)
    if listed and len(output) == n_labels:
        classes = _classes_of_labels(estimator, n_labels)
        columns = [
            _present(np.asarray(part), own, estimator)
            for part, own in zip(output, classes, strict=True)
        ]
        return in_unit_interval(np.stack(columns, axis=1), estimator)
    matrix = np.asarray([] if listed else getattr(output, "toarray", lambda: output)())
    if n_labels == 1 and matrix.ndim == 2 and matrix.shape[1] in (1, 2):
        own = _classes_of_labels(estimator, 1)[0]
        if matrix.shape[1] == 2 or own is not None:
            matrix = _present(matrix, own, estimator)[:, None]
    if matrix.ndim != 2 or matrix.shape[1] != n_labels:
        found = f"a list of {len(output)} arrays" if listed else f"an array of shape {matrix.shape}"
        raise ValueError(
            f"{type(estimator).__name__}.predict_proba gave {found} for {n_labels} labels; "
            f"expected is an array of shape (n, {n_labels}) or a list of {n_labels} arrays (n, 2)"
        )
    return in_unit_interval(matrix, estimator)


def _said(estimator: Any, X: Any) -> Any:
    """`predict_proba`; of a stack of several labels, what its last estimator says.

    For several labels StackingClassifier gives the probability that each is absent.
    """
    stack = last_estimator(estimator)
    if not hasattr(stack, "final_estimator_") or not isinstance(stack.classes_, list):
        return estimator.predict_proba(X)
    while estimator is not stack:
        if isinstance(estimator, Pipeline):
            X = estimator[:-1].transform(X) if len(estimator) > 1 else X
            estimator = estimator[-1]
        else:
            estimator = estimator.best_estimator_
    return stack.final_estimator_.predict_proba(stack.transform(X))


def _present(part: Array, classes: Any, estimator: Any) -> Array:
    """The probability of class 1 of one label, (n,), from a column a class.

    A single column is the probability of the only class, 0 or 1, that was seen; where both were,
    it is that of class 1.
    """
    seen = None if classes is None else np.asarray(classes).tolist()
    if part.shape[1] == 2 and seen in (None, [0, 1]):
        return part[:, 1]
    if part.shape[1] == 1 and seen == [0, 1]:
        return part[:, 0]
    if part.shape[1] == 1 and seen in ([0], [1]):
        return np.full(len(part), float(seen[0]), part.dtype)
    told = "does not tell its classes_" if seen is None else f"has the classes {seen}"
    raise ValueError(
        f"{type(estimator).__name__}.predict_proba gives {part.shape[1]} columns for a label and "
        f"{told}; expected are two columns, or one with a classes_ that says which it is"
    )


def _classes_of_labels(estimator: Any, n_labels: int) -> list:
    """The classes of each label, None where the estimator does not tell them."""
    classes = getattr(estimator, "classes_", None)
    if isinstance(classes, list | tuple) and len(classes) == n_labels and np.ndim(classes[0]) == 1:
        return list(classes)
    if n_labels == 1 and isinstance(classes, np.ndarray) and classes.ndim == 1:
        return [classes]
    parts = getattr(estimator, "estimators_", None)
    if isinstance(parts, list | tuple) and len(parts) == n_labels:
        return [getattr(part, "classes_", None) for part in parts]
    return [None] * n_labels
