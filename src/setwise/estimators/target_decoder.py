"""Any classifier with probabilities, decoded for the target."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length, indexable
from sklearn.utils.metadata_routing import MethodMapping
from sklearn.utils.metaestimators import _safe_split, available_if
from sklearn.utils.validation import _check_method_params, check_is_fitted

from setwise.decoders.minimum_risk import MinimumRisk
from setwise.distributions import Distribution, Independent, Listed
from setwise.estimators.calibration import (
    METHODS,
    Calibrator,
    calibrate,
    enough_rows,
    fit_calibrator,
    out_of_fold,
    splits_of,
)
from setwise.estimators.label_model import ClassModel, LabelModel
from setwise.estimators.wrapped import (
    DecodedClassifier,
    gives_probability,
    require_classifier,
    routed,
    seeded,
    takes_label_matrix,
    weights_of,
)
from setwise.labels import LabelNames
from setwise.spaces import Cube
from setwise.targets.measure import Array
from setwise.targets.truth import read_truth, refuse_open


class TargetDecoder(DecodedClassifier):
    """Any classifier with `predict_proba`, its probabilities decoded for the target.

    The estimator is fitted as it is; `predict` returns the label set of least expected loss,
    sum over y of p(y) L(y', y), for labels that are independent given X with the probabilities the
    estimator says (`MinimumRisk.decode`, with its costs and ties). For Hamming and subset 0/1 these
    are the labels above 1/2; for F1, Jaccard and others usually more.

    `predict_proba` of the estimator may be an (n, l) array (OneVsRestClassifier, ClassifierChain,
    MLPClassifier) or a list of one (n, 2) array a label (forests, trees, neighbours,
    MultiOutputClassifier), in a Pipeline or a search or not. An estimator of one label, such as
    LogisticRegression, is to be wrapped in one of these first.

    A label without positive or without negative examples has the probability 0 or 1; the estimator
    is fitted to the others. If there are none, a DummyClassifier takes its place.

    A one-dimensional y is the multi-class case: `predict` returns the most probable class, which
    has the least expected loss among sets of one label for every target that treats labels alike.
    Shapes are scikit-learn's own.

    Parameters
    ----------
    estimator : classifier
        Cloned and fitted in `fit`.
    target : Target or str, default "f1"
        What a prediction is judged by.
    calibration : {None, "sigmoid", "isotonic"}, default None
        Put the probabilities right by one increasing function a label, fitted to what clones of the
        estimator say of rows held out from them; the estimator itself is fitted to all rows.
        "sigmoid" is Platt's on the logit, "isotonic" any increasing step function, for many rows. A
        label with fewer than 10 positive or fewer than 10 negative rows is left as it is. Classes
        of a one-dimensional y are calibrated one by one and their probabilities divided by their
        sum.
    cv : int or splitter, default 5
        Number of folds for the calibration, in which every label occurs about equally often
        (`StratifiedLabelSets`); or what scikit-learn takes, if it holds out each row once. With
        metadata routing enabled a splitter is handed what it requests, such as groups.
    sparse_output : bool, default False
        Whether `predict` returns a CSR array (not for a one-dimensional y).
    random_state : int, RandomState or None, default 0
        Shuffles the rows into folds, and seeds the parts of the estimator whose own random_state is
        None, so that equal fits are equal; with None those stay random.

    Attributes
    ----------
    estimator_ : classifier
        The fitted clone.
    classes_ : array of shape (l,)
        Names of the labels: column numbers, or names of a DataFrame's columns; of a one-dimensional
        y the classes.
    calibrators_ : list or None
        The function of each label, None for one left as it is; None without calibration.
    n_features_in_ : int
        Number of features, if the estimator tells it.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if the estimator tells them.

    Examples
    --------
    Three of five neighbours have the first label, two the second, which is worth predicting too:

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, Y = [[0], [0], [0], [0], [0]], [[1, 1], [1, 1], [1, 0], [0, 0], [0, 0]]
    >>> KNeighborsClassifier(5).fit(X, Y).predict([[0]])
    array([[1, 0]])
    >>> TargetDecoder(KNeighborsClassifier(5), "f1").fit(X, Y).predict([[0]])
    array([[1, 1]])
    """

    def __init__(
        self,
        estimator,
        target="f1",
        calibration=None,
        cv=5,
        sparse_output=False,
        random_state=0,
    ):
        self.estimator = estimator
        self.target = target
        self.calibration = calibration
        self.cv = cv
        self.sparse_output = sparse_output
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None, **fit_params):
        """Fit the estimator, and the calibrators if asked for.

        Parameters
        ----------
        X : what the estimator takes
            Handed on as it is.
        y : array, CSR matrix or DataFrame of 0 and 1, of shape (n, l); list of label lists; or
            classes of shape (n,)
        sample_weight : array of shape (n,), optional
            None negative, not all 0. Handed on to the estimator, which must take it; weighs the
            calibration too.
        **fit_params
            Handed on to the estimator; with metadata routing enabled, as it requests.

        Returns
        -------
        self : TargetDecoder
        """
        require_classifier(self.estimator)
        if self.calibration is not None and self.calibration not in METHODS:
            raise ValueError(
                f"calibration must be None, 'sigmoid' or 'isotonic', not {self.calibration!r}"
            )
        labels, names = read_truth(self.target, y)
        refuse_open(self.target, labels)
        check_consistent_length(X, labels)
        sets = labels.toarray() if hasattr(labels, "toarray") else labels
        decoder = _usable_decoder(self.target, names)
        params, split_params = routed(self, sets, sample_weight, fit_params)
        self._names, self._decoder = names, decoder
        estimator = seeded(self.estimator, self.random_state)
        self._take_over(self._fit_model(estimator, X, sets, params))
        self.classes_ = names.names
        weight = weights_of(params.get("sample_weight", sample_weight), sets)
        self.calibrators_ = self._calibrators(estimator, X, sets, weight, params, split_params)
        return self

    def for_target(self, target) -> TargetDecoder:
        """The same fit, decoded for another target; nothing is trained again."""
        other = super().for_target(target)
        other._decoder = _usable_decoder(target, self._names)
        return other

    @available_if(gives_probability)
    def predict_proba(self, X) -> Array:
        """The probability of each label (or class), (n, l)."""
        check_is_fitted(self, "estimator_")
        probability = self._model.probability(X)
        if self.calibrators_ is None:
            return probability
        calibrated = calibrate(probability, self.calibrators_)
        return _as_law(calibrated, probability) if self._names.one_dimensional else calibrated

    @available_if(gives_probability)
    def predict_distribution(self, X) -> Distribution:
        """Independent labels with their probabilities; of a one-dimensional y one class."""
        probability = self.predict_proba(X)
        if self._names.one_dimensional:
            return Listed(np.eye(self._names.n_labels, dtype=np.uint8), probability)
        return Independent(probability)

    def _decide(self, X) -> Array:
        return self._decoder.decode(self.predict_proba(X))

    def get_metadata_routing(self):
        """What `fit` hands on: to the estimator's `fit`, and to the splitter's `split`."""
        to_split = MethodMapping().add(caller="fit", callee="split")
        return super().get_metadata_routing().add(splitter=self.cv, method_mapping=to_split)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = takes_label_matrix(self.estimator)
        return tags

    def _fit_model(
        self, estimator: Any, X: Any, sets: Array, params: dict
    ) -> LabelModel | ClassModel:
        if not self._names.one_dimensional:
            return LabelModel.fit(estimator, X, sets, params)
        y = self._names.decode(sets)
        return ClassModel.fit(estimator, X, y, self._names.names, params)

    def _calibrators(
        self, estimator: Any, X: Any, sets: Array, weight: Array, params: dict, split_params: dict
    ) -> list[Calibrator | None] | None:
        if self.calibration is None:
            return None
        enough = enough_rows(sets, weight)
        if self._names.one_dimensional and self._names.n_labels == 2:
            enough[0] = False  # 1 minus the other
        if not enough.any():
            return [None for _ in enough]
        (X,) = indexable(X)

        def predict(train: Array, test: Array) -> Array:
            seen, _ = _safe_split(estimator, X, None, train)
            unseen, _ = _safe_split(estimator, X, None, test, train)
            part = _check_method_params(X, params, train)
            return self._fit_model(estimator, seen, sets[train], part).probability(unseen)

        splits = splits_of(self.cv, X, sets, self.random_state, split_params)
        probability = out_of_fold(sets, splits, predict)
        return [
            fit_calibrator(self.calibration, probability[:, label], sets[:, label], weight)
            if enough[label]
            else None
            for label in range(len(enough))
        ]


def _usable_decoder(target: Any, names: LabelNames) -> MinimumRisk:
    """The decoder; a target that cannot be decoded is refused here rather than in predict."""
    decoder = MinimumRisk(target)
    if not names.one_dimensional:
        decoder.prepare(Cube(names.n_labels))
    return decoder


def _as_law(calibrated: Array, probability: Array) -> Array:
    """Rows that add up to 1; a row of zeros goes back to what the estimator said."""
    if calibrated.shape[1] == 2:
        calibrated[:, 0] = 1.0 - calibrated[:, 1]
        return calibrated
    total = calibrated.sum(axis=1, keepdims=True)
    return np.where(total > 0, calibrated / np.where(total > 0, total, 1.0), probability)
