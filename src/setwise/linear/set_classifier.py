"""The linear classifier: scores X W + b, a surrogate to train on, a decoder to predict by."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from setwise.decoders.minimum_risk import MinimumRisk
from setwise.decoders.most_likely import MostLikely
from setwise.inputs import positive_number, score_matrix, whole_number
from setwise.labels import read_labels
from setwise.linear.choice import choose_space, one_of
from setwise.linear.guarantee import guarantee
from setwise.linear.newton import solve_binary_relevance
from setwise.linear.objective import CatalogLikelihood, Objective, SurrogateSum
from setwise.linear.solver import Problem, Solution, solve
from setwise.spaces.catalog import Catalog
from setwise.spaces.cube import Cube
from setwise.spaces.space import Space
from setwise.surrogates.binary_relevance import BinaryRelevance
from setwise.surrogates.comp_sum import CompSum, Logistic
from setwise.targets.measure import find_rows
from setwise.targets.registry import get_target

SURROGATES = {
    "likelihood": None,
    "binary_relevance": None,
    "sum_exponential": -1.0,
    "logistic": 0.0,
    "mean_absolute_error": 1.0,
}
# A loss that is not convex is approached from the convex end in these steps of q.
PATH = (0.0, 0.5, 0.8, 1.0)


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
        What a prediction is judged by.
    surrogate : str, default "auto"
        What is trained on: "likelihood" (the default choice of "auto"), "binary_relevance",
        or the target's own "logistic", "sum_exponential" or "mean_absolute_error" loss.
    space : str or Space, default "auto"
        The label sets: "catalog" (those seen), "sized" (all, with a bias for each size), "cube"
        (all). "auto": the catalog unless more than half of the rows have a label set that occurs
        once, then "sized"; the cube for the target's own losses and binary relevance.
    decoder : {"auto", "minimum_risk", "most_likely"}, default "auto"
        Least expected loss where the scores are a likelihood, else the most likely set.
    alpha : float, default 1e-3
        Penalty of the weights.
    fit_intercept : bool, default True
    tol : float, default 1e-4
        Training ends where no entry of the gradient is larger.
    max_iter : int, default 1000
    sparse_output : bool, default False
        Whether `predict` returns a CSR array.
    warm_start : bool, default False
        Whether `fit` begins from the last solution, if its shapes are the same.
    label_features : array of shape (n_labels, m), optional
        Features V of the labels: scores are (X W + b) V^T, with W of shape (n_features, m), so that
        labels not seen in training can be scored by `score_labels`. The paper's feature map of an
        input and a label.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        Names of the labels, or the classes of a one-dimensional y.
    coef_ : array of shape (n_scores, n_features); intercept_ : array of shape (n_scores,)
        With label_features (m, n_features) and (m,).
    space_ : Space
        With the parameters learnt.
    target_ : Target
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
        fit_intercept=True,
        tol=1e-4,
        max_iter=1000,
        sparse_output=False,
        warm_start=False,
        label_features=None,
    ):
        self.target = target
        self.surrogate = surrogate
        self.space = space
        self.decoder = decoder
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.sparse_output = sparse_output
        self.warm_start = warm_start
        self.label_features = label_features

    def fit(self, X, y, sample_weight=None):
        """Learn weights and the parameters of the space.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
        y : label sets in any form of `setwise.labels.read_labels`, or one class a row
        sample_weight : array of shape (n,), optional
        """
        if y is None:
            read_labels(y)
        inputs: Any = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        sets, names = read_labels(y)
        sets = sets.toarray() if hasattr(sets, "toarray") else sets
        if len(sets) != inputs.shape[0]:
            raise ValueError(
                f"X and y must have the same number of rows, but X has {inputs.shape[0]} and y "
                f"{len(sets)}"
            )
        weights = np.asarray(_check_sample_weight(sample_weight, inputs), np.float64)
        self._check_parameters()
        self.target_, self._names, self.classes_ = get_target(self.target), names, names.names
        kind = self._kind()
        space = self._space_for(kind, sets)
        solution = self._train(kind, space, inputs, sets, weights)
        self.space_ = space.with_parameters(solution.parameters)
        self.coef_ = np.ascontiguousarray(solution.weights.T).astype(inputs.dtype)
        self.intercept_ = solution.intercept.astype(inputs.dtype)
        self.objective_, self.n_iter_ = solution.value, solution.n_iter
        penalty = positive_number(self.alpha, "alpha") / 2.0 * float((solution.weights**2).sum())
        likely = kind in ("likelihood", "binary_relevance")
        self.guarantee_ = guarantee(
            kind, self.target_, self.space_, self._decoder_name(kind),
            solution.value - penalty if likely else None,
        )  # fmt: skip
        return self

    def decision_function(self, X):
        """The scores of the labels, (n, n_labels); (n,) for a y of two classes."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if self._is_binary else scores

    def predict_proba(self, X):
        """The probability of each label, (n, n_labels)."""
        return self._marginals(self._scores(X))

    def predict(self, X):
        """The label sets, or classes, to predict."""
        scores = self._scores(X)
        if self._names.one_dimensional:
            return self.classes_[np.argmax(scores, axis=1)]
        kind = self._kind()
        if self._decoder_name(kind) == "most_likely":
            sets = MostLikely(self.space_).decode(scores)
        elif kind == "binary_relevance":
            sets = MinimumRisk(self.target_).decode(expit(scores))
        else:
            sets = MinimumRisk(self.target_).decode_scores(scores, self.space_)
        if self.sparse_output:
            from scipy.sparse import csr_array

            return csr_array(sets.astype(np.int64))
        return self._names.decode(sets)

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

    def _kind(self) -> str:
        return "likelihood" if self.surrogate == "auto" else self.surrogate

    def _decoder_name(self, kind: str) -> str:
        if self.decoder != "auto":
            return self.decoder
        return "minimum_risk" if kind in ("likelihood", "binary_relevance") else "most_likely"

    def _check_parameters(self) -> None:
        positive_number(self.alpha, "alpha")
        positive_number(self.tol, "tol")
        whole_number(self.max_iter, "max_iter", 1)
        if self._kind() not in SURROGATES:
            known = ", ".join(map(repr, ("auto", *SURROGATES)))
            raise ValueError(f"surrogate must be one of {known}, not {self.surrogate!r}")
        if self.decoder not in ("auto", "minimum_risk", "most_likely"):
            raise ValueError(
                f"decoder must be 'auto', 'minimum_risk' or 'most_likely', not {self.decoder!r}"
            )

    def _space_for(self, kind: str, sets) -> Space:
        if self._names.one_dimensional:
            return one_of(sets.shape[1])
        if kind == "binary_relevance":
            return Cube(sets.shape[1])
        if not isinstance(self.space, str):
            if not isinstance(self.space, Space):
                raise ValueError(f"space must be a name or a Space, not {self.space!r}")
            return self.space
        own = self.space == "auto" and kind != "likelihood"
        return choose_space("cube" if own else self.space, sets)

    def _train(self, kind: str, space: Space, X, sets, weights) -> Solution:
        """The solution, along a path of q for a loss that is not convex."""
        mass = float(weights.sum())
        if not mass > 0:
            raise ValueError("sample_weight must not be all zero")

        def problem(q: float | None) -> Problem:
            objective = self._objective(kind, q, space, sets, weights)
            basis = self._label_features(objective.n_scores)
            return Problem(X, objective, float(self.alpha), self.fit_intercept, mass, basis)

        q = SURROGATES[kind]
        first = problem(q)
        start = self._start(first)
        separate = kind == "binary_relevance" and not self._names.one_dimensional
        if separate and self.label_features is None:
            return solve_binary_relevance(
                X, sets, weights, float(self.alpha), self.fit_intercept, self.tol, self.max_iter,
                start if self.warm_start and hasattr(self, "coef_") else None,
            )  # fmt: skip
        if q is None or q <= 0.0:
            return solve(first, start, self.tol, self.max_iter, warn=True)
        for step in PATH[:-1]:
            start = solve(problem(step), start, self.tol, self.max_iter, warn=False)
        begun = first.value_and_gradient(start.weights, start.intercept, start.parameters)[0]
        found = solve(first, start, self.tol, self.max_iter, warn=True)
        return found if found.value <= begun else start

    def _objective(self, kind: str, q, space: Space, sets, weights) -> Objective:
        if kind == "binary_relevance" and not self._names.one_dimensional:
            return SurrogateSum(lambda _: BinaryRelevance(), None, sets.shape[1], sets, weights)
        if kind == "likelihood" or self._names.one_dimensional:
            if isinstance(space, Catalog) and not space.joint:
                return CatalogLikelihood(space, self._places(space, sets), weights)

            def make(s):
                return Logistic("subset", s, "paper")

        else:

            def make(s):
                return CompSum(self.target_, s, q)

        return SurrogateSum(make, space, space.n_scores, sets, weights)

    @staticmethod
    def _places(space: Catalog, sets):
        place = find_rows(space.sets, sets)
        if (place < 0).any():
            row = int(np.argmax(place < 0))
            raise ValueError(
                f"the label set of row {row} is not in the given Catalog, so its likelihood is 0; "
                f"use space='catalog', or add it"
            )
        return place

    def _start(self, problem: Problem) -> Solution:
        start = problem.start()
        if self.warm_start and hasattr(self, "coef_"):
            weights, intercept = self.coef_.T.astype(np.float64), self.intercept_.astype(np.float64)
            parameters = self.space_.parameters
            if weights.shape == start.weights.shape and len(parameters) == len(start.parameters):
                return Solution(weights, intercept, parameters, np.inf, np.inf, 0)
        return start

    def score_labels(self, X, label_features):
        """The scores of labels given by their features, seen in training or not, (n, rows of V)."""
        if self.label_features is None:
            raise ValueError(
                "labels can be scored by their features only if fit had label_features"
            )
        features = score_matrix(label_features, len(self.intercept_), "label_features")
        return self._projections(X) @ features.T.astype(self.coef_.dtype)

    def _label_features(self, n_scores: int):
        """The features of the labels, a row for each, or None."""
        if self.label_features is None:
            return None
        features = score_matrix(self.label_features, None, "label_features")
        if len(features) != n_scores or features.shape[1] == 0:
            raise ValueError(
                f"label_features must have shape ({n_scores}, m), a row for each label, "
                f"but its shape is {features.shape}"
            )
        return features

    def _scores(self, X):
        projections = self._projections(X)
        if self.label_features is None:
            return projections
        features = score_matrix(self.label_features, projections.shape[1], "label_features")
        return projections @ features.T.astype(projections.dtype)

    def _projections(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def _marginals(self, scores):
        if self._kind() == "binary_relevance" and not self._names.one_dimensional:
            return expit(scores)
        return self.space_.marginals(scores)
