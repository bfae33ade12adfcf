"""The linear classifier with its penalty and space chosen by cross-validation of the target."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from setwise.folds import StratifiedLabelSets
from setwise.inputs import positive_number, whole_number
from setwise.labels import read_labels
from setwise.linear.set_classifier import SetClassifier
from setwise.targets.registry import get_target

ALPHAS = tuple(float(alpha) for alpha in np.logspace(-4.5, -0.5, 9))
SPACES = ("catalog", "sized")


class SetClassifierCV(ClassifierMixin, BaseEstimator):
    """`SetClassifier` that chooses alpha and the space by the target itself.

    Every combination is trained on all folds but one and judged by the mean loss of the target on
    that one; alphas go from large to small, each starting from the solution before. The combination
    of least loss is trained on all rows; ties: the larger alpha, the earlier space.

    Parameters
    ----------
    target : str or Target, default "f1"
        What a prediction is judged by, here and in the end.
    alphas : sequence of float, optional
        Penalties to try; by default nine from 3e-5 to .3.
    spaces : sequence of str or Space, default ("catalog", "sized")
        Spaces to try.
    surrogates : sequence of str, default ("likelihood",)
        Surrogates to try.
    cv : int or splitter, default 3
        Folds; a number makes `StratifiedLabelSets`.
    decoder, fit_intercept, tol, max_iter, sparse_output
        As in `SetClassifier`.

    Attributes
    ----------
    best_estimator_ : SetClassifier
        Trained on all rows; what predicts.
    best_params_ : dict
        The surrogate, space and alpha that were chosen.
    cv_results_ : list of dict
        One a combination: its settings, mean loss and the loss of each fold.
    best_loss_ : float
        The least mean loss. (Chosen by it, so a little optimistic.)

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.9], [0.9, 0.1], [0.8, 1.1]]
    >>> Y = [[0, 1], [1, 0], [1, 1], [0, 1], [1, 0], [1, 1]]
    >>> SetClassifierCV("f1", alphas=[0.01, 0.1], cv=2).fit(X, Y).predict([[0.1, 0.8]])
    array([[0, 1]])
    """

    def __init__(
        self,
        target="f1",
        *,
        alphas=ALPHAS,
        spaces=SPACES,
        surrogates=("likelihood",),
        cv=3,
        decoder="auto",
        fit_intercept=True,
        tol=1e-3,
        max_iter=300,
        sparse_output=False,
    ):
        self.target = target
        self.alphas = alphas
        self.spaces = spaces
        self.surrogates = surrogates
        self.cv = cv
        self.decoder = decoder
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.sparse_output = sparse_output

    def fit(self, X, y, sample_weight=None):
        """Choose by cross-validation, then learn from all rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
        y : label sets in any form of `setwise.labels.read_labels`, or one class a row
        sample_weight : array of shape (n,), optional
            For training; the losses of held-out rows are weighted by it too.
        """
        if y is None:
            read_labels(y)
        inputs: Any = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        sets, names = read_labels(y)
        # In a form that `read_labels` reads as the same again.
        truth: Any = names.decode(sets) if names.one_dimensional else csr_array(sets)
        weights = _check_sample_weight(sample_weight, inputs)
        folds = list(self._splitter().split(inputs, truth))
        spaces = ["auto"] if names.one_dimensional else self.spaces
        self.cv_results_ = []
        for surrogate, space in product(self.surrogates, spaces):
            losses = [
                self._losses(surrogate, space, inputs, truth, weights, train, test)
                for train, test in folds
            ]
            for alpha, by_fold in zip(self._alphas(), np.transpose(losses), strict=True):
                row = {"surrogate": surrogate, "space": space, "alpha": alpha}
                row |= {"loss": float(by_fold.mean()), "fold_losses": by_fold.tolist()}
                self.cv_results_.append(row)
        best = min(self.cv_results_, key=lambda row: row["loss"])
        self.best_loss_ = best["loss"]
        self.best_params_ = {name: best[name] for name in ("surrogate", "space", "alpha")}
        model = self._model(**self.best_params_).set_params(sparse_output=self.sparse_output)
        self.best_estimator_ = model.fit(inputs, y, sample_weight)
        self.classes_ = self.best_estimator_.classes_
        self.guarantee_ = self.best_estimator_.guarantee_
        self.n_iter_ = self.best_estimator_.n_iter_
        return self

    def predict(self, X):
        """The label sets, or classes, to predict."""
        return self._fitted().predict(X)

    def predict_proba(self, X):
        """The probability of each label, (n, n_labels)."""
        return self._fitted().predict_proba(X)

    def decision_function(self, X):
        """The scores of the labels, (n, n_labels); (n,) for a y of two classes."""
        return self._fitted().decision_function(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    def _fitted(self) -> SetClassifier:
        check_is_fitted(self)
        return self.best_estimator_

    def _splitter(self) -> Any:
        if hasattr(self.cv, "split"):
            return self.cv
        return StratifiedLabelSets(whole_number(self.cv, "cv", 2))

    def _alphas(self) -> list[float]:
        return sorted((positive_number(a, "each of alphas") for a in self.alphas), reverse=True)

    def _model(self, surrogate, space, alpha) -> SetClassifier:
        return SetClassifier(
            self.target, surrogate, space, self.decoder, alpha=alpha, tol=self.tol,
            fit_intercept=self.fit_intercept, max_iter=self.max_iter,
        )  # fmt: skip

    def _losses(self, surrogate, space, inputs, truth, weights, train, test) -> list[float]:
        """The held-out loss of each alpha, each fit beginning where the one before ended."""
        model = self._model(surrogate, space, self._alphas()[0]).set_params(warm_start=True)
        losses = []
        for alpha in self._alphas():
            with warnings.catch_warnings():
                # A path of penalties need not converge at each; the last fit says so itself.
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.set_params(alpha=alpha).fit(inputs[train], truth[train], weights[train])
            losses.append(self._loss(model, inputs[test], truth[test], weights[test]))
        return losses

    def _loss(self, model: SetClassifier, inputs, truth: Any, weights) -> float:
        predicted: Any = model.predict(inputs)
        if truth.ndim == 1:
            return float(np.average(predicted != truth, weights=weights))
        return float(
            np.average(get_target(self.target).loss(predicted, truth.toarray()), weights=weights)
        )
