"""What classifiers that hold another share: what they pass on, and what they make of answers."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from copy import copy, deepcopy
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection._search import BaseSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, check_random_state, get_tags, indexable
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import _safe_split, available_if
from sklearn.utils.validation import _check_method_params, check_is_fitted

from setwise.decoders.for_target import HeldOut, Together, decoder_of, with_target
from setwise.decoders.minimum_risk import MinimumRisk
from setwise.estimators.blocked import refuse_blocks
from setwise.estimators.claim import Claim
from setwise.estimators.design import weights_of
from setwise.estimators.folds import splits_of
from setwise.estimators.guarantee import claim_of_population
from setwise.estimators.named_sets import NamedSets
from setwise.labels import LabelNames
from setwise.sparse import well_formed
from setwise.spelling import argument
from setwise.targets.measure import Array
from setwise.targets.truth import read_truth, refuse_open, refuse_other_labels

# How far outside [0, 1] rounding may take a probability, and a sum of many from 1.
ROUNDING, SUM_ROUNDING = 1e-6, 1e-5


def handed_on(X: Any) -> Any:
    """The inputs as they are; of a sparse matrix the entries must lie inside it.

    (Places of entries are told in 32 bits where that is enough: the trees of scikit-learn take no
    others.)
    """
    refuse_blocks(X)
    if not issparse(X):
        return X
    matrix: Any = well_formed(X, "X")
    is_long = matrix.format in ("csr", "csc") and matrix.indices.dtype == np.int64
    if not is_long or max(*matrix.shape, matrix.nnz) >= 2**31:
        return matrix
    places = (part.astype(np.int32) for part in (matrix.indices, matrix.indptr))
    return type(matrix)((matrix.data, *places), shape=matrix.shape)


def gives_probability(meta: Any) -> bool:
    """Whether the estimator has `predict_proba`; the condition of `available_if`."""
    return hasattr(getattr(meta, "estimator_", meta.estimator), "predict_proba")


def seeded(estimator: Any, random_state: Any) -> Any:
    """A clone whose parts with random_state=None have seeds; with None, nothing is changed."""
    copy: Any = clone(estimator)
    if random_state is not None:
        generator, given = check_random_state(random_state), copy.get_params(deep=True)
        named = (name for name in sorted(given) if name.split("__")[-1] == "random_state")
        unset = [name for name in named if given[name] is None]
        copy.set_params(**{name: int(generator.randint(2**31 - 1)) for name in unset})
    return copy


def take_columns(model: Any, inner: Any) -> None:
    """What an estimator inside knows of the columns, its model knows as well, and nothing else."""
    for name in ("n_features_in_", "feature_names_in_"):
        vars(model).pop(name, None)
        if hasattr(inner, name):
            setattr(model, name, getattr(inner, name))


def takes_weights(fit: Any) -> bool:
    """Whether a `fit` takes weights of rows, or whatever it is handed."""
    taken = inspect.signature(fit).parameters.values()
    return any(one.name == "sample_weight" or one.kind is one.VAR_KEYWORD for one in taken)


def routed(meta: Any, rows: Any, sample_weight: Any, fit_params: dict) -> tuple[dict, dict]:
    """What the estimator's `fit`, and the splitter's `split`, are handed beside X and y.

    With metadata routing enabled, what they have requested; otherwise everything goes to `fit`.
    """
    params, fit = dict(fit_params), meta.estimator.fit
    if sample_weight is not None:
        params["sample_weight"] = weights_of(sample_weight, rows)
    if get_config()["enable_metadata_routing"]:
        found = process_routing(meta, "fit", **params)
        return dict(found.estimator.fit), dict(found.get("splitter", {}).get("split", {}))
    if sample_weight is not None and not takes_weights(fit):
        raise ValueError(
            f"{type(meta.estimator).__name__}.fit takes no sample_weight, so none can be passed on"
        )
    return params, {}


def last_estimator(estimator: Any) -> Any:
    """The estimator at the end of pipelines and searches."""
    while isinstance(estimator, Pipeline | BaseSearchCV):
        if isinstance(estimator, Pipeline):
            estimator = estimator.steps[-1][1]
        else:
            estimator = getattr(estimator, "best_estimator_", estimator.estimator)
    return estimator


def takes_label_matrix(estimator: Any) -> bool:
    """Whether the estimator's tags say that y may have several columns.

    OneVsRestClassifier's do not, though it may.
    """
    if isinstance(last_estimator(estimator), OneVsRestClassifier):
        return True
    tags = get_tags(estimator)
    several = tags.classifier_tags is not None and tags.classifier_tags.multi_label
    return bool(several or tags.target_tags.multi_output)


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


def require_law(probability: Array, estimator: Any) -> None:
    """Raise unless each row adds up to 1, up to rounding."""
    total = probability.sum(axis=1, dtype=np.float64)
    wrong = np.flatnonzero(np.abs(total - 1.0) > SUM_ROUNDING)
    if len(wrong):
        raise ValueError(
            f"{type(estimator).__name__}.predict_proba must give rows that add up to 1, but row "
            f"{wrong[0]} adds up to {total[wrong[0]]} ({len(wrong)} such rows)"
        )


def logits(probability: Array) -> Array:
    """log(p / (1 - p)), finite: 0 and 1 are taken for the least positive number and 1 minus it."""
    least = np.finfo(probability.dtype).tiny
    return np.log(np.maximum(probability, least)) - np.log(np.maximum(1.0 - probability, least))


def decoder_by_rule(target: Any, rule: Any) -> MinimumRisk | Together:
    """The decoder of a target, where only those of all rows together have several rules."""
    found = decoder_of(target, rule)
    if not found.is_of_whole and rule != "auto":
        raise ValueError(
            f"{argument('decoder', rule)} cannot decide for {found.target}: here rules other than "
            f"'auto' are for measures of all rows together, such as 'macro_f1'"
        )
    return found


class DecodedClassifier(NamedSets, ClassifierMixin, MetaEstimatorMixin, BaseEstimator, ABC):
    """A classifier that holds another, ``estimator``, and decodes what it says for ``target``.

    Once fitted it has ``_names``, the names of the labels, ``_decoder``, the decoder of the target,
    and ``_model``, which has the fitted estimator. What clones of the estimator said of rows held
    out from them is kept in ``_out_of_fold``, where the decoder is fitted to it.
    """

    # Weights are handed on to the estimator, which says whether it wants them.
    __metadata_request__fit = {"sample_weight": UNUSED}  # noqa: RUF012

    estimator: Any
    target: Any
    decoder: Any
    cv: Any
    sparse_output: bool
    random_state: Any
    classes_: Array
    _names: LabelNames
    _decoder: MinimumRisk | Together
    _model: Any
    _out_of_fold: HeldOut | None = None

    def fit(self, X, y=None, sample_weight=None, **fit_params) -> Self:
        """Fit the estimator.

        Parameters
        ----------
        X : what the estimator takes
            Handed on as it is.
        y : array, CSR matrix or DataFrame of 0 and 1, of shape (n, l); list of label lists; or
            classes of shape (n,)
        sample_weight : array of shape (n,), optional
            None negative, not all 0. Handed on to the estimator, which must take it.
        **fit_params
            Handed on to the estimator; with metadata routing enabled, as it requests.
        """
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise ValueError(
                f"estimator must be a classifier such as RandomForestClassifier(), not "
                f"{self.estimator!r}"
            )
        # Stacking without a final estimator makes its own in fit; only then it has probabilities.
        to_be_stacked = getattr(self.estimator, "final_estimator", self.estimator) is None
        if not hasattr(self.estimator, "predict_proba") and not to_be_stacked:
            raise ValueError(
                f"estimator must have predict_proba, but {self.estimator!r} has none; wrap it in "
                f"CalibratedClassifierCV, or choose parameters with which it gives probabilities"
            )
        X = handed_on(X)
        labels, names = read_truth(self.target, y)
        refuse_open(self.target, labels)
        check_consistent_length(X, labels)
        params, split_params = routed(self, labels, sample_weight, fit_params)
        # What is refused leaves the model as it was, so a copy is fitted.
        fitted = copy(self)
        fitted._names, fitted._decoder = names, self._decoder_of(self.target)
        inner, fitted._out_of_fold = seeded(self.estimator, self.random_state), None
        fitted._model = fitted._fit(inner, X, labels, params, split_params)
        if not names.one_dimensional:
            rows = lambda: fitted._kept(inner, X, labels, params, split_params)  # noqa: E731
            fitted._decoder = fitted._decoder.fitted(rows)
        vars(self).update(vars(fitted))
        self.classes_, self.estimator_ = names.names, self._model.estimator
        take_columns(self, self.estimator_)
        return self

    @abstractmethod
    def _fit(self, inner: Any, X: Any, labels: Any, params: dict, split_params: dict) -> Any:
        """The model of a seeded clone fitted to label sets (n, l), after all that may be refused.

        ``params`` are for the clone's `fit`, ``split_params`` for a splitter's `split`.
        """

    @abstractmethod
    def _fit_model(self, inner: Any, X: Any, sets: Array, params: dict) -> Any:
        """A clone fitted to label sets (n, l); its ``probability(X)`` is that of each label."""

    @available_if(gives_probability)
    @abstractmethod
    def predict_proba(self, X) -> Array:
        """The probability of each label (or class), (n, l)."""

    @abstractmethod
    def _decide(self, X) -> Array:
        """The label sets that are best for the target, uint8 (n, l)."""

    def for_target(self, target, decoder=None) -> Self:
        """The same fit, decoded for another target; nothing is trained again.

        A measure of all rows together, such as "macro_f1", is decided for by thresholds that are
        fitted to rows held out, if this was fitted for such a measure too; else by the
        probabilities of the rows to be predicted, so that predictions depend on the batch.
        """
        check_is_fitted(self, "estimator_")
        refuse_other_labels(target, self._names)
        other: Any = copy(self)
        decoder = with_target(self.decoder, target) if decoder is None else decoder
        other.set_params(target=target, decoder=decoder)
        other._decoder = other._decoder_of(target).fitted(lambda: self._out_of_fold)
        return other

    def _kept(self, inner: Any, X: Any, labels: Any, params: dict, split_params: dict) -> HeldOut:
        """What clones of the estimator say of rows held out, with their label sets and weights."""
        sets = labels.toarray() if hasattr(labels, "toarray") else labels
        weights = weights_of(params.get("sample_weight"), sets)
        probability = self._put_right(self._held_out(inner, X, sets, params, split_params))
        self._out_of_fold = HeldOut(probability.astype(np.float32), sets, weights)
        return self._out_of_fold

    def _put_right(self, probability: Array) -> Array:
        """The probabilities that estimators say, calibrated where that was asked for."""
        return probability

    def _decoder_of(self, target: Any) -> MinimumRisk | Together:
        return decoder_by_rule(target, self.decoder)

    def _held_out(self, inner: Any, X: Any, sets: Array, params: dict, split_params: dict) -> Array:
        """The probability of each label, (n, l), by clones that were not fitted to the row."""
        (X,) = indexable(X)
        probability, times = np.zeros(sets.shape), np.zeros(len(sets), np.int64)
        for train, test in splits_of(self.cv, X, sets, self.random_state, split_params):
            seen, _ = _safe_split(inner, X, None, train)
            unseen, _ = _safe_split(inner, X, None, test, train)
            part = _check_method_params(X, params, train)
            model = self._fit_model(inner, seen, sets[train], part)
            probability[test] = model.probability(unseen)
            times[test] += 1
        if (times != 1).any():
            row = int(np.argmax(times != 1))
            raise ValueError(
                f"cv must hold out each row once, but row {row} is held out {times[row]} times"
            )
        return probability

    @property
    def feature_importances_(self) -> Array:
        """Those of the estimator, if it has any, (n_features,)."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.feature_importances_

    @property
    def guarantee_(self) -> str:
        """What is proved of the predictions, in words."""
        names, target = self._judged()
        if self._decoder.is_of_whole and not names.one_dimensional:
            return str(claim_of_population(self._decoder, self._out_of_fold))  # type: ignore
        return str(self._claim(target, names))

    @abstractmethod
    def _claim(self, target: Any, names: LabelNames) -> Claim:
        """What is proved of rows judged one by one."""

    @property
    def depends_on_batch_(self) -> bool:
        """Whether what is predicted for a row depends on the rows that come with it."""
        check_is_fitted(self, "estimator_")
        return self._decoder.depends_on_batch

    def predict(self, X) -> Any:
        """The label set of least expected loss, int64 (n, l); of a one-dimensional y the class."""
        check_is_fitted(self, "estimator_")
        if self._names.one_dimensional:
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        sets = self._decide(X)
        return csr_array(sets, dtype=np.int64) if self.sparse_output else sets.astype(np.int64)

    @available_if(gives_probability)
    def decision_function(self, X) -> Array:
        """The log-odds of each label, (n, l), finite; (n,) for a one-dimensional y of two."""
        scores = logits(self.predict_proba(X))
        return scores[:, 1] if self._names.one_dimensional and scores.shape[1] == 2 else scores

    def _judged(self) -> tuple[LabelNames, Any]:
        check_is_fitted(self, "estimator_")
        return self._names, self._decoder.target

    def get_metadata_routing(self):
        """What `fit` hands on, for scikit-learn's metadata routing: everything, to `fit`."""
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=to_fit)

    def __sklearn_tags__(self):
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        # Of X, and of how well it can be learnt, what the estimator says.
        tags.input_tags = deepcopy(inner.input_tags)
        tags.non_deterministic = inner.non_deterministic
        tags.no_validation = inner.no_validation
        if inner.classifier_tags is not None:
            tags.classifier_tags.poor_score = inner.classifier_tags.poor_score
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        tags.classifier_tags.multi_label = True
        return tags
