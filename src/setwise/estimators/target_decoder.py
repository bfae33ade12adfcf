"""Any classifier with probabilities, calibrated if asked for, decoded for the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.metadata_routing import MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from setwise.distributions import Distribution, Independent, Listed
from setwise.estimators.claim import Claim
from setwise.estimators.design import weights_of
from setwise.estimators.guarantee import claim_of_marginals
from setwise.estimators.label_model import ClassModel, LabelModel
from setwise.estimators.wrapped import (
    DecodedClassifier,
    gives_probability,
    logits,
    takes_label_matrix,
)
from setwise.spaces import Cube
from setwise.targets.measure import Array

METHODS = (None, "sigmoid", "isotonic")
# A label with fewer positive or fewer negative rows is left as it is.
LEAST_ROWS = 10


@dataclass(eq=False, repr=False)
class TargetDecoder(DecodedClassifier):
    """Any classifier with `predict_proba`, its probabilities decoded for the target.

    The estimator is fitted as it is; `predict` returns the label set of least expected loss,
    sum over y of p(y) L(y', y), for labels that are independent given X with the probabilities the
    estimator says (`MinimumRisk.decode`, with its costs and ties). For Hamming and subset 0/1 these
    are the labels above 1/2; for F1, Jaccard and others usually more. For a measure of all rows
    together, such as "macro_f1", a threshold for each label is fitted to what clones of the
    estimator say of rows held out from them (`cv`), as scikit-learn's TunedThresholdClassifierCV
    does for one label.

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
        label with fewer than 10 positive or fewer than 10 negative rows is left as it is. The
        weights that the estimator is handed weigh the calibration too. Classes
        of a one-dimensional y are calibrated one by one and their probabilities divided by their
        sum.
    cv : int or splitter, optional
        Number of folds for the calibration, and for the thresholds of a measure of all rows
        together, in which every label occurs about equally often (`StratifiedLabelSets`); or what
        scikit-learn takes, if it holds out each row once. By default five folds, or one for each
        of fewer rows. With metadata routing enabled a splitter is handed what it requests, such as
        groups.
    sparse_output : bool, default False
        Whether `predict` returns a CSR array (not for a one-dimensional y).
    random_state : int, RandomState or None, default 0
        Shuffles the rows into folds, and seeds the parts of the estimator whose own random_state is
        None, so that equal fits are equal; with None those stay random.
    decoder : str or PopulationRule, default "auto"
        How to decide for a measure of all rows together, such as "macro_f1": a rule of
        `PopulationRule`, or such an object. Other targets have the label set of least expected
        loss, "auto".

    Attributes
    ----------
    estimator_ : classifier
        The fitted clone.
    classes_ : array of shape (l,)
        Names of the labels: column numbers, or names of a DataFrame's columns; of a one-dimensional
        y the classes.
    guarantee_ : str
        What is proved about the predictions, and under what assumptions.
    calibrators_ : list or None
        The function of each label, None for one left as it is; None without calibration.
    n_features_in_ : int
        Number of features, if the estimator tells it.
    feature_names_in_ : array of shape (n_features,)
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

    estimator: Any
    target: Any = "f1"
    calibration: str | None = None
    cv: Any = None
    sparse_output: bool = False
    random_state: Any = 0
    decoder: Any = "auto"

    def _fit(self, inner: Any, X: Any, labels: Any, params: dict, split_params: dict) -> Any:
        if self.calibration not in METHODS:
            raise ValueError(
                f"calibration must be None, 'sigmoid' or 'isotonic', not {self.calibration!r}"
            )
        self._refuse_undecodable()
        sets = labels.toarray() if hasattr(labels, "toarray") else labels
        model = self._fit_model(inner, X, sets, params)
        self.calibrators_ = None
        if self.calibration is not None:
            self.calibrators_ = self._calibrators(inner, X, sets, params, split_params)
        return model

    def for_target(self, target, decoder=None) -> TargetDecoder:
        """The same fit, decoded for another target; nothing is trained again."""
        other = super().for_target(target, decoder)
        other._refuse_undecodable()
        return other

    @available_if(gives_probability)
    def predict_proba(self, X) -> Array:
        """The probability of each label (or class), (n, l)."""
        check_is_fitted(self, "estimator_")
        return self._put_right(self._model.probability(X))

    def _put_right(self, probability: Array) -> Array:
        if self.calibrators_ is None:
            return probability
        calibrated = probability.copy()
        for label, calibrator in enumerate(self.calibrators_):
            if calibrator is not None:
                calibrated[:, label] = np.clip(calibrator.predict(probability[:, label]), 0.0, 1.0)
        if not self._names.one_dimensional:
            return calibrated
        if calibrated.shape[1] == 2:
            calibrated[:, 0] = 1.0 - calibrated[:, 1]
            return calibrated
        # Rows that add up to 1; a row of zeros goes back to what the estimator said.
        total = calibrated.sum(axis=1, keepdims=True)
        return np.where(total > 0, calibrated / np.where(total > 0, total, 1.0), probability)

    @available_if(gives_probability)
    def predict_distribution(self, X) -> Distribution:
        """Independent labels with their probabilities; of a one-dimensional y one class."""
        probability = self.predict_proba(X)
        if self._names.one_dimensional:
            return Listed(np.eye(self._names.n_labels, dtype=np.uint8), probability)
        return Independent(probability)

    def _claim(self, target: Any, names: Any) -> Claim:
        return claim_of_marginals(target, names.n_labels, names.one_dimensional)

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

    def _refuse_undecodable(self) -> None:
        """Refuse a target that cannot be decoded here rather than in predict."""
        if not self._names.one_dimensional:
            self._decoder.prepare(Cube(self._names.n_labels))

    def _fit_model(self, inner: Any, X: Any, sets: Array, params: dict) -> LabelModel | ClassModel:
        if not self._names.one_dimensional:
            return LabelModel.fit(inner, X, sets, params)
        return ClassModel.fit(inner, X, self._names.decode(sets), self._names.names, params)

    def _calibrators(
        self, inner: Any, X: Any, sets: Array, params: dict, split_params: dict
    ) -> list[Any]:
        """The calibrator of each label, None for one that has too few rows."""
        weight = weights_of(params.get("sample_weight"), sets)
        counted = sets[weight > 0]
        positive = counted.sum(axis=0, dtype=np.int64)
        enough = np.minimum(positive, len(counted) - positive) >= LEAST_ROWS
        if self._names.one_dimensional and self._names.n_labels == 2:
            enough[0] = False  # 1 minus the other
        if not enough.any():
            return [None for _ in enough]
        probability = self._held_out(inner, X, sets, params, split_params)
        return [
            self._calibrator(probability[:, label], sets[:, label], weight) if few else None
            for label, few in enumerate(enough)
        ]

    def _calibrator(self, probability: Array, y_true: Array, weight: Array) -> Any:
        """The increasing function that best maps the probabilities of a label to what was true."""
        if self.calibration == "sigmoid":
            return Sigmoid.fit(probability, y_true, weight)
        isotonic = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        return isotonic.fit(probability, y_true, sample_weight=weight)


@dataclass(frozen=True)
class Sigmoid:
    """p -> 1 / (1 + exp(-slope * logit(p) - intercept)), slope >= 0 (Platt, 2000).

    On the logit, so that probabilities that are right already are kept (slope 1, intercept 0).
    Logits are cut at ``limit``: a probability of 0 says less than its logit.
    """

    slope: float
    intercept: float
    limit: float

    @classmethod
    def fit(cls, probability: Array, y_true: Array, weight: Array) -> Sigmoid:
        """The least log-loss against Platt's targets, (N+ + 1) / (N+ + 2) and 1 / (N- + 2).

        Among increasing functions only: out of fold, a label that cannot be predicted correlates
        with its own probability negatively. N+ and N- are sums of the weights, in units of their
        mean: weights say how much a row counts beside others.
        """
        weight = weight * (np.count_nonzero(weight) / weight.sum())
        limit = float(np.log(2.0 * len(y_true) + 1.0))
        given = _cut_logits(probability, limit)
        positive, negative = weight @ y_true, weight @ (1.0 - y_true)
        goal = np.where(y_true == 1, (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0))
        share = weight / weight.sum()

        def loss(parameters: Array) -> tuple[float, Array]:
            score = parameters[0] * given + parameters[1]
            value = share @ (np.logaddexp(0.0, score) - goal * score)
            slack = share * (expit(score) - goal)
            return float(value), np.array([slack @ given, slack.sum()])

        bounds = [(0.0, None), (None, None)]
        found = minimize(loss, np.array([1.0, 0.0]), jac=True, bounds=bounds, method="L-BFGS-B")
        return cls(float(found.x[0]), float(found.x[1]), limit)

    def predict(self, probability: Array) -> Array:
        return expit(self.slope * _cut_logits(probability, self.limit) + self.intercept)


def _cut_logits(probability: Array, limit: float) -> Array:
    return np.clip(logits(probability.astype(np.float64)), -limit, limit)
