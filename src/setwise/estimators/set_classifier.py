"""The linear classifier: scores X W + b, a surrogate to train on, a decoder to predict by."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from setwise.estimators.choice import space_for, unseen_mass
from setwise.estimators.decoding import DECODERS, decoded, decoder_for, marginals
from setwise.estimators.design import Design, scaled_rows
from setwise.estimators.fitting import Fitting
from setwise.estimators.guarantee import guarantee, guarantee_of_classes
from setwise.estimators.reading import counted, read_training
from setwise.estimators.solver import CHUNK_ENTRIES, Solution
from setwise.estimators.training import Training
from setwise.labels import LabelNames
from setwise.spaces.catalog import Catalog
from setwise.surrogates.names import DEFAULT_Q
from setwise.targets.registry import get_target
from setwise.targets.target import Target, mean_utility
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
        Which theorem covers the combination, if any.
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
        inputs, sets, names, weights = read_training(self, X, y, sample_weight)
        inputs, sets, weights = counted(inputs, sets, weights)
        design = Design.of(inputs, self.scaling, self.fit_intercept, weights)
        return self._fit(design, sets, names, weights)

    def _fit(self, design: Design, sets, names: LabelNames, weights):
        """Learn from what has been read and checked."""
        self._check_parameters()
        target = get_target(self.target)
        training = self._training(target)
        space = space_for(self.space, training, names.one_dimensional, sets, weights)
        decoder = decoder_for(self.decoder, training, target, space)
        if not names.one_dimensional:
            # What cannot be decoded is refused before it is trained.
            decoded(training, target, space, decoder, np.zeros((1, space.n_scores)))
        fitting = Fitting(
            training, space, float(self.alpha), self.fit_intercept, float(self.tol),
            self.max_iter, self.verbose, self.label_features,
        )  # fmt: skip
        solution = fitting.solve(design, sets, weights, self._last(design))
        self._names, self.classes_ = names, names.names
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
        self._unseen = unseen_mass(sets) if isinstance(self.space, str) else None

        def log_loss() -> float:
            return fitting.log_loss(design, sets, weights, solution)

        # For `for_target`, which no other surrogate serves.
        likelihood = training.is_likelihood or training.is_separate
        self._reached = log_loss() if likelihood else None
        self._decide(training, target, decoder, log_loss)
        return self

    def _decide(
        self, training: Training, target: Target, decoder: str, log_loss: Callable[[], float]
    ) -> None:
        """What predictions are decoded for, and what is proved of that."""
        self.target_, self._trained, self.decoder_ = target, training, decoder
        if self._names.one_dimensional:
            self.guarantee_ = guarantee_of_classes(
                training, self.space_, len(self.classes_), log_loss
            )
        else:
            self.guarantee_ = guarantee(
                training, target, self.space_, decoder, log_loss, self._unseen
            )

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
        training = replace(self._trained, target=judge)
        name = decoder_for(other.decoder, training, judge, self.space_)
        if not self._names.one_dimensional:
            decoded(training, judge, self.space_, name, np.zeros((1, self.space_.n_scores)))
        other._decide(training, judge, name, lambda: self._reached)
        return other

    def decision_function(self, X):
        """The scores of the labels, (n, n_labels); (n,) for a y of two classes.

        With the space "joint", which scores label sets, half the log-odds of each label.
        """
        scores = self._scores(self._checked(X))
        if isinstance(self.space_, Catalog) and self.space_.joint:
            likely = marginals(self._trained, self.space_, scores)
            return logit(np.clip(likely, LEAST, 1.0 - LEAST)) / 2.0
        return scores[:, 1] - scores[:, 0] if self._is_binary else scores

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
        sets = self._by_ranges(
            lambda rows: decoded(
                self._trained, self.target_, self.space_, self.decoder_, self._scores(rows)
            ),
            X,
        )
        return csr_array(sets).astype(np.int64) if self.sparse_output else self._names.decode(sets)

    def _probability(self, X):
        probability = marginals(self._trained, self.space_, self._scores(X))
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

    @property
    def _is_binary(self) -> bool:
        return self._names.one_dimensional and len(self.classes_) == 2

    def _training(self, target: Target) -> Training:
        surrogate = "likelihood" if _is_auto(self.surrogate) else self.surrogate
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


def _is_auto(value: object) -> bool:
    return isinstance(value, str) and value == "auto"
