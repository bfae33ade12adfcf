"""The estimator inside a meta estimator: how it is fitted, and what its probabilities mean.

scikit-learn's classifiers answer `predict_proba` for a label matrix in several shapes: an (n, l)
array (OneVsRestClassifier, ClassifierChain, MLPClassifier), a list of one (n, 2) array a label
(forests, trees, neighbours, MultiOutputClassifier), (n, 2) for a single label. All of them become
one (n, l) array here.
"""

from __future__ import annotations

import inspect
import warnings
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import DataConversionWarning
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import _num_samples

from setwise.targets.measure import Array

# How far outside [0, 1] rounding may take a probability.
ROUNDING = 1e-6


# --------------------------------------------------------------------------------- one a label


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
        varies, a DummyClassifier takes the estimator's place.
        """
        first = sets[0].astype(np.float64)
        constant = np.where((sets == sets[0]).all(axis=0), first, np.nan)
        varying = np.isnan(constant)
        if not varying.any():
            return cls(DummyClassifier().fit(X, sets.astype(np.int64)), constant)
        # Not uint8: beyond 256 labels scikit-learn's label_binarize puts its columns out of order.
        labels = sets[:, varying].astype(np.int64)
        return cls(_fit_matrix(estimator, X, labels, params), constant)

    def probability(self, X: Any) -> Array:
        """The probability of each label, (n, l)."""
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


def _fit_matrix(estimator: Any, X: Any, labels: Array, params: dict) -> Any:
    """A clone fitted to a label matrix; says what to do if it takes one label only."""
    copy: Any = clone(estimator)
    try:
        with warnings.catch_warnings():
            if labels.shape[1] == 1:
                # A column is what all classifiers take, though most say that they flatten it.
                warnings.simplefilter("ignore", DataConversionWarning)
            return copy.fit(X, labels, **params)
    except ValueError as error:
        if labels.shape[1] > 1 and not takes_label_matrix(estimator):
            error.add_note(
                f"If {type(estimator).__name__} takes one label at a time, wrap it: "
                f"MultiOutputClassifier({type(estimator).__name__}(...)), or OneVsRestClassifier"
            )
        raise


def label_probability(estimator: Any, X: Any, n_labels: int) -> Array:
    """The probability of each label from `predict_proba` of any shape, (n, l)."""
    output: Any = estimator.predict_proba(X)
    if isinstance(output, list | tuple) and all(np.ndim(part) == 2 for part in output):
        if len(output) != n_labels:
            raise ValueError(_odd(estimator, f"a list of {len(output)} arrays", n_labels))
        classes = _classes_of_labels(estimator, n_labels)
        columns = [
            present(np.asarray(part), own, estimator)
            for part, own in zip(output, classes, strict=True)
        ]
        return in_unit_interval(np.stack(columns, axis=1), estimator)
    matrix = np.asarray(getattr(output, "toarray", lambda: output)())
    if n_labels == 1 and matrix.ndim == 2 and matrix.shape[1] in (1, 2):
        own = _classes_of_labels(estimator, 1)[0]
        if matrix.shape[1] == 2 or own is not None:
            matrix = present(matrix, own, estimator)[:, None]
    if matrix.ndim != 2 or matrix.shape[1] != n_labels:
        raise ValueError(_odd(estimator, f"an array of shape {matrix.shape}", n_labels))
    return in_unit_interval(matrix, estimator)


def present(part: Array, classes: Any, estimator: Any) -> Array:
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


def _odd(estimator: Any, found: str, n_labels: int) -> str:
    return (
        f"{type(estimator).__name__}.predict_proba gave {found} for {n_labels} labels; expected is "
        f"an array of shape (n, {n_labels}) or a list of {n_labels} arrays of shape (n, 2)"
    )


# --------------------------------------------------------------------------------- one a class


@dataclass(frozen=True, eq=False)
class ClassModel:
    """An estimator fitted to classes, one a row."""

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
        output = np.asarray(self.estimator.predict_proba(X))
        own = np.asarray(getattr(self.estimator, "classes_", self.classes))
        if output.ndim != 2 or own.ndim != 1 or output.shape[1] != len(own):
            raise ValueError(
                f"{type(self.estimator).__name__}.predict_proba gave an array of shape "
                f"{output.shape}; expected is (n, {len(own)}), a column for each class"
            )
        output = in_unit_interval(output, self.estimator)
        if len(own) == len(self.classes):
            return output
        probability = np.zeros((len(output), len(self.classes)), output.dtype)
        probability[:, np.searchsorted(self.classes, own)] = output
        return probability


# ------------------------------------------------------------------------- values of probabilities


def in_unit_interval(probability: Array, estimator: Any) -> Array:
    """As floats in [0, 1]: what rounding took outside is put to the end, more is refused."""
    if probability.dtype.kind != "f":
        probability = probability.astype(np.float64)
    inside = (probability >= -ROUNDING) & (probability <= 1.0 + ROUNDING)
    if not inside.all():
        row, column = (int(i) for i in np.argwhere(~inside)[0])
        raise ValueError(
            f"{type(estimator).__name__}.predict_proba must give probabilities in [0, 1], but "
            f"row {row}, column {column} is {probability[row, column]}"
        )
    return np.clip(probability, 0.0, 1.0)


def logits(probability: Array) -> Array:
    """log(p / (1 - p)), finite: 0 and 1 are taken for the least positive number and 1 minus it."""
    least = np.finfo(probability.dtype).tiny
    return np.log(np.maximum(probability, least)) - np.log(np.maximum(1.0 - probability, least))


# -------------------------------------------------------------------- the meta estimator's side


def gives_probability(meta: Any) -> bool:
    """Whether the estimator has `predict_proba`; the condition of `available_if`."""
    return hasattr(getattr(meta, "estimator_", meta.estimator), "predict_proba")


def require_classifier(estimator: Any) -> None:
    """Raise unless the estimator is an object with `fit` and `predict_proba`."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise ValueError(
            f"estimator must be a classifier such as RandomForestClassifier(), not {estimator!r}"
        )
    # Stacking without a final estimator makes its own in fit; only then it has probabilities.
    if not hasattr(estimator, "predict_proba") and not _to_be_stacked(estimator):
        raise ValueError(
            f"estimator must have predict_proba, but {estimator!r} has none; wrap it in "
            f"CalibratedClassifierCV, or choose parameters with which it gives probabilities"
        )


def _to_be_stacked(estimator: Any) -> bool:
    return hasattr(estimator, "final_estimator") and estimator.final_estimator is None


def seeded(estimator: Any, random_state: Any) -> Any:
    """A clone whose parts with random_state=None have seeds; with None, nothing is changed."""
    copy: Any = clone(estimator)
    if random_state is None:
        return copy
    generator = check_random_state(random_state)
    given = sorted(copy.get_params(deep=True).items(), key=lambda item: item[0])
    unset = [
        name
        for name, value in given
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    ]
    return copy.set_params(**{name: int(generator.randint(2**31 - 1)) for name in unset})


def fit_parameters(meta: Any, sample_weight: Any, fit_params: dict) -> dict:
    """What the estimator's `fit` is handed beside X and y.

    With metadata routing enabled, what the estimator has requested; otherwise everything.
    """
    from sklearn import get_config

    params = dict(fit_params)
    if sample_weight is not None:
        params["sample_weight"] = sample_weight
    if get_config()["enable_metadata_routing"]:
        return dict(process_routing(meta, "fit", **params).estimator.fit)
    if sample_weight is not None and not _takes(meta.estimator.fit, "sample_weight"):
        raise ValueError(
            f"{type(meta.estimator).__name__}.fit takes no sample_weight, so none can be passed on"
        )
    return params


def _takes(function: Any, name: str) -> bool:
    parameters = inspect.signature(function).parameters
    return name in parameters or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def routing(meta: Any) -> MetadataRouter:
    """Everything handed to `fit` goes to the estimator's `fit`."""
    return MetadataRouter(owner=meta).add(
        estimator=meta.estimator,
        method_mapping=MethodMapping().add(caller="fit", callee="fit"),
    )


def takes_label_matrix(estimator: Any) -> bool:
    """Whether the estimator's tags say that y may have several columns.

    OneVsRestClassifier's do not, though it may.
    """
    if isinstance(estimator, OneVsRestClassifier):
        return True
    tags = get_tags(estimator)
    several = tags.classifier_tags is not None and tags.classifier_tags.multi_label
    return bool(several or tags.target_tags.multi_output)


def pass_tags(tags: Any, estimator: Any) -> None:
    """Say of X, and of how well it can be learnt, what the estimator says."""
    inner = get_tags(estimator)
    tags.input_tags = deepcopy(inner.input_tags)
    tags.non_deterministic = inner.non_deterministic
    tags.no_validation = inner.no_validation
    if inner.classifier_tags is not None:
        tags.classifier_tags.poor_score = inner.classifier_tags.poor_score
        tags.classifier_tags.multi_class = inner.classifier_tags.multi_class


def pass_features(meta: Any) -> None:
    """Take over what the fitted estimator knows of the columns of X."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(meta.estimator_, name):
            setattr(meta, name, getattr(meta.estimator_, name))
        elif hasattr(meta, name):
            delattr(meta, name)
