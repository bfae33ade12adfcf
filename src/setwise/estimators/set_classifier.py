"""The linear classifier: scores X W + b, a surrogate to train on, a decoder to predict by."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from setwise.decoders.minimum_risk import MinimumRisk
from setwise.distributions import Distribution, Independent, OfSpace
from setwise.estimators.choice import (
    DECODERS,
    decoder_for,
    refuse_undecodable,
    space_for,
    unseen_mass,
)
from setwise.estimators.design import Design, Rows, read_training, scaled_rows
from setwise.estimators.fitting import Fitting
from setwise.estimators.guarantee import claim, claim_of_classes, trains_likelihood
from setwise.estimators.solver import CHUNK_ENTRIES, Solution
from setwise.estimators.training import Training
from setwise.labels import LabelNames
from setwise.surrogates.names import DEFAULT_Q
from setwise.targets.registry import get_target
from setwise.targets.target import mean_utility
from setwise.targets.truth import encode_truth, refuse_other_labels
from setwise.validation import positive_number, score_matrix, whole_number

# Probabilities are kept this far from 0 and 1 where their log-odds are asked for.
LEAST = 1e-7


class SetClassifier(ClassifierMixin, BaseEstimator):
    """A linear classifier trained and decoded for the target it is judged by.

    Scores are X W + b. By default the joint likelihood of the label sets is trained, on the list
    of sets seen or, where most sets are new, on sets weighted by their size; predicted is the label
    set with the least expected loss of the target. The objective is

        mean loss + alpha / 2 ||W||²,

    with intercepts and the parameters of the space free.

    Parameters
    ----------
    target : str or Target, default "f1"
        What a prediction is judged by. With `TreeDistance` label sets must be closed, a label
        beside all above it, and so are all predictions.
    surrogate : str or Surrogate, default "auto"
        What is trained on: "likelihood" (the choice of "auto"), "binary_relevance", or one of the
        target's own losses: "logistic", "sum_exponential", "generalized_cross_entropy" (with `q`),
        "mean_absolute_error", "constrained_exponential", "constrained_squared_hinge",
        "constrained_hinge", "constrained_rho"; or a surrogate object, whose target, space (unless
        one is given) and settings are kept. One that is not convex begins at the solution of a
        convex one and ends no higher.
    space : str or Space, default "auto"
        The label sets: "catalog" (those seen, a bias each), "joint" (those seen, a score each),
        "sized" (all of the sizes seen, a bias for each size), "forest" (all, with potentials on
        the edges of the Chow-Liu tree of the training labels), "cube" (all); of the taxonomy of
        tree distance "paths" (a label and all above it) or "closed" (a child brings its parent).
        What the space has of biases and potentials is learnt with the weights. "auto": for tree
        distance "paths" where every set of y is one, else "closed"; for a likelihood the catalog,
        unless more than nine in ten rows have a label set that occurs once, then "sized"; for
        other losses the sets of k labels (precision@k, recall@k), those of a table, else the cube.
    decoder : {"auto", "minimum_risk", "most_likely", "marginals"}, default "auto"
        The set of least expected loss where the scores are a likelihood, else the most likely set.
        "marginals": least expected loss as though the labels were independent with their
        marginals; an approximation, which "auto" takes where there is no exact way.
    alpha : float, default 1e-3
        Penalty of the weights.
    q : float, default 0.7
        Member of the generalized cross-entropy, between 0 and 1.
    scaling : {None, "standard", "rows"}, default None
        In which units features are penalised: as they are; "standard", as if each were divided by
        its standard deviation (of ``coef_`` they are the plain ones again); "rows", with every row
        of X divided by its Euclidean length, in training and in prediction.
    fit_intercept : bool, default True
    tol : float, default 1e-4
        Training ends where no entry of the gradient is larger.
    max_iter : int, default 1000
        Steps of the solver, for each loss on the way to one that is not convex.
    sparse_output : bool, default False
        Whether `predict` returns a CSR array.
    warm_start : bool, default False
        Whether `fit` begins from the last solution, if its shapes are the same.
    label_features : array of shape (n_labels, m), optional
        Features V of the labels: scores are (X W + b) V^T, with W of shape (n_features, m), so that
        labels not seen in training can be scored by `score_labels`. The paper's feature map of an
        input and a label.
    verbose : bool, default False
        Whether to show progress.
    random_state : int, RandomState or None, default None
        Seed of the label sets drawn for margins other than the exponential on spaces of more than
        2^16 sets; None is 0. Nothing else is random.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        Names of the labels, or the classes of a one-dimensional y.
    coef_ : array of shape (n_scores, n_features); intercept_ : array of shape (n_scores,)
        With label_features (m, n_features) and (m,).
    space_ : Space
        With the parameters learnt.
    target_ : Target
    decoder_ : str
        The decoder in use.
    objective_ : float
        The objective reached.
    guarantee_ : str
        Which theorem covers the combination, if any; put into words when it is asked for.
    n_iter_ : int

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.9], [0.9, 0.1]]
    >>> Y = [[0, 1], [1, 0], [1, 1], [0, 1], [1, 0]]
    >>> SetClassifier("f1").fit(X, Y).predict([[0.1, 0.8], [0.8, 0.0]])
    array([[0, 1],
           [1, 0]])
    """

    def __init__(
        self,
        target="f1",
        surrogate="auto",
        space="auto",
        decoder="auto",
        *,
        alpha=1e-3,
        q=DEFAULT_Q,
        scaling=None,
        fit_intercept=True,
        tol=1e-4,
        max_iter=1000,
        sparse_output=False,
        warm_start=False,
        label_features=None,
        verbose=False,
        random_state=None,
    ):
        self.target = target
        self.surrogate = surrogate
        self.space = space
        self.decoder = decoder
        self.alpha = alpha
        self.q = q
        self.scaling = scaling
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.sparse_output = sparse_output
        self.warm_start = warm_start
        self.label_features = label_features
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        """Learn weights and the parameters of the space.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
        y : label sets in any form of `setwise.labels.read_labels`, or one class a row
        sample_weight : array of shape (n,), optional
        """
        rows, names = read_training(self, X, y, sample_weight)
        rows = rows.counted()
        design = Design.of(rows, self.scaling, self.fit_intercept)
        return self._fit(design, rows, names, MinimumRisk(self.target))

    def _fit(self, design: Design, rows: Rows, names: LabelNames, risk: MinimumRisk):
        """Learn from what has been read and checked, to be decoded by ``risk``."""
        self._check_parameters()
        sets, weights = rows.sets, rows.weights
        training = self._training(risk.target)
        space = space_for(self.space, training, names.one_dimensional, sets, weights)
        self._names, self.classes_ = names, names.names
        last = self._last(design)
        self._decode_by(risk, training, space)
        fitting = Fitting(
            training, space, float(self.alpha), self.fit_intercept, float(self.tol),
            self.max_iter, self.verbose, self.label_features,
        )  # fmt: skip
        solution = fitting.solve(design, sets, weights, last)
        self._scaling = self.scaling
        self._features = fitting.features(space.n_scores)
        dtype = design.inputs.dtype
        self.space_ = fitting.learnt(solution)
        coef = (solution.weights / design.unit[:, None]).T
        self.coef_ = np.ascontiguousarray(coef).astype(dtype)
        intercept = solution.intercept
        if names.one_dimensional and not training.is_by_label and self.label_features is None:
            # The scores of all classes may be raised together; these have the mean 0.
            intercept = intercept - intercept.mean()
        self.intercept_ = intercept.astype(dtype)
        self.objective_, self.n_iter_ = solution.value, solution.n_iter
        # What the guarantee tells of the training rows.
        self._unseen = unseen_mass(sets) if isinstance(self.space, str) else None
        likelihood = trains_likelihood(training, space, names.one_dimensional)
        self._reached = fitting.log_loss(design, sets, weights, solution) if likelihood else None
        return self

    def _decode_by(self, risk: MinimumRisk, training: Training, space: Any) -> None:
        """Settle what predictions are decoded for, and how; refuses what cannot be."""
        decoder = decoder_for(self.decoder, training, risk, space)
        refuse_undecodable(decoder, training, risk, space, self._names.one_dimensional)
        self.target_, self.decoder_ = risk.target, decoder
        self._trained, self._risk = training, risk

    @property
    def guarantee_(self) -> str:
        """Which theorem covers the combination, if any, in words."""
        if not hasattr(self, "coef_"):
            raise AttributeError("there is no guarantee_ before fit")
        trained, space, reached = self._trained, self.space_, self._reached
        if self._names.one_dimensional:
            return claim_of_classes(trained, space, len(self.classes_), reached).describe()
        return claim(trained, self.target_, space, self.decoder_, reached, self._unseen).describe()

    def for_target(self, target, decoder=None):
        """The same fit, decoded for another target; nothing is trained again.

        A likelihood and binary relevance are trained without a look at the target, so this is equal
        to a fit for that target. Other surrogates are losses of their target, and are refused.

        Parameters
        ----------
        target : str or Target
        decoder : str, optional
            Another decoder too.

        Returns
        -------
        SetClassifier
            A fitted one; this one stays as it is.
        """
        check_is_fitted(self, "coef_")
        if not (self._trained.is_likelihood or self._trained.is_by_label):
            raise ValueError(
                f"a classifier trained on the loss {self._trained} of {self.target_} is not one "
                f"for {target}: fit it again; only 'likelihood' and 'binary_relevance' serve all"
            )
        other: Any = copy(self)
        other.set_params(target=target, decoder=self.decoder if decoder is None else decoder)
        other._check_parameters()
        judge = get_target(target)
        refuse_other_labels(judge, self._names)
        other._decode_by(MinimumRisk(judge), replace(self._trained, target=judge), self.space_)
        return other

    def decision_function(self, X):
        """The scores of the labels, (n, n_labels); (n,) for a y of two classes.

        With the space "joint", which scores label sets, half the log-odds of each label.
        """
        inputs = self._checked(X)
        if self.space_.is_joint:
            likely = self._by_ranges(lambda rows: self._distribution(rows).marginals(), inputs)
            return logit(np.clip(likely, LEAST, 1.0 - LEAST)) / 2.0
        scores = self._scores(inputs)
        is_binary = self._names.one_dimensional and len(self.classes_) == 2
        return scores[:, 1] - scores[:, 0] if is_binary else scores

    def predict_distribution(self, X) -> Distribution:
        """The distribution over label sets that the scores of each row stand for.

        Independent labels for binary relevance; else that of the space with its learnt parameters.
        (Where a target's own loss was trained, rather than a likelihood, it is no estimate of the
        probabilities.)
        """
        return self._distribution(self._checked(X))

    def predict_proba(self, X):
        """The probability of each label, (n, n_labels)."""
        return self._by_ranges(self._probability, self._checked(X))

    def predict(self, X):
        """The label sets, or classes, to predict."""
        return self._predict(self._checked(X))

    def _predict(self, X):
        """From checked inputs."""
        if self._names.one_dimensional:
            return self.classes_[np.argmax(self._scores(X), axis=1)]
        sets = self._by_ranges(self._decoded, X)
        return csr_array(sets).astype(np.int64) if self.sparse_output else self._names.decode(sets)

    def _decoded(self, X):
        if self.decoder_ == "most_likely":
            return self.space_.most_likely(self._scores(X))
        distribution = self._distribution(X)
        if self.decoder_ == "marginals":
            distribution = Independent(distribution.marginals())
        return self._risk.decode(distribution)

    def _distribution(self, X) -> Any:
        scores = self._scores(X)
        if self._trained.is_by_label:
            return Independent(self._trained.loss(self.space_).probability(scores))
        return OfSpace(self.space_, scores)

    def _probability(self, X):
        probability = self._distribution(X).marginals().astype(self.coef_.dtype)
        if self._names.one_dimensional and self._trained.is_by_label:
            probability = probability / probability.sum(axis=1, keepdims=True)
        return probability

    def _by_ranges(self, function, X):
        """Rows in ranges, so that arrays of rows by scores or listed sets stay small."""
        widest = max(self.space_.n_scores, len(self.space_.parameters), 1)
        step = max(64, CHUNK_ENTRIES // widest)
        if X.shape[0] <= step:
            return function(X)
        parts = [function(X[first : first + step]) for first in range(0, X.shape[0], step)]
        return np.concatenate(parts)

    def score_labels(self, X, label_features):
        """The scores of labels given by their features, seen in training or not, (n, rows of V)."""
        inputs = self._checked(X)
        if self._features is None:
            raise ValueError(
                "labels can be scored by their features only if fit had label_features"
            )
        features = score_matrix(label_features, len(self.intercept_), "label_features")
        return self._projections(inputs) @ features.T.astype(self.coef_.dtype)

    def score(self, X, y, sample_weight=None) -> float:
        """1 - the mean loss of the target, or the accuracy of classes; y in any form of `fit`."""
        check_is_fitted(self)
        if self._names.one_dimensional:
            return super().score(X, y, sample_weight)
        known = encode_truth(self.target_, self._names, y)
        return mean_utility(self.target_, self.predict(X), known, sample_weight)

    def save(self, path) -> None:
        """Write the classifier to a file that holds data only; `setwise.load` reads it."""
        from setwise.persistence import save

        save(self, path)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    def _training(self, target: Any) -> Training:
        is_auto = isinstance(self.surrogate, str) and self.surrogate == "auto"
        surrogate = "likelihood" if is_auto else self.surrogate
        seed = self.random_state
        if seed is None:
            seed = 0
        elif not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        return Training(surrogate, target, self.q, int(seed))

    def _check_parameters(self) -> None:
        positive_number(self.alpha, "alpha")
        positive_number(self.tol, "tol")
        whole_number(self.max_iter, "max_iter", 1)
        if self.decoder not in DECODERS:
            known = ", ".join(map(repr, DECODERS))
            raise ValueError(f"decoder must be one of {known}, not {self.decoder!r}")

    def _last(self, design: Design) -> Solution | None:
        """The last solution if a fit is to begin there, else None."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        if self.coef_.shape[1] != len(design.unit):
            return None
        weights = self.coef_.T.astype(np.float64) * design.unit[:, None]
        intercept = self.intercept_.astype(np.float64)
        if not (np.isfinite(weights).all() and np.isfinite(intercept).all()):
            return None
        return Solution(weights, intercept, self.space_.parameters, np.inf, np.inf, 0)

    def _scores(self, X):
        projections = self._projections(X)
        if self._features is None:
            return projections
        return projections @ self._features.T.astype(projections.dtype)

    def _checked(self, X):
        check_is_fitted(self, "coef_")
        return validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )

    def _projections(self, X):
        X = scaled_rows(X, self._scaling)
        return np.asarray(X @ self.coef_.T + self.intercept_)
