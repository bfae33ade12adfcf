"""Reductions from the literature to problems of one class or of single labels, by their names.

They train what `SetClassifier` trains, on rows or labels made from those given: so that methods
compared differ in the reduction and in nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from setwise.decoders.decisions import TopK
from setwise.decoders.minimum_risk import MinimumRisk
from setwise.distributions import Distribution, Independent
from setwise.estimators.blocked import read_rows, refuse_blocks
from setwise.estimators.design import checked_inputs
from setwise.estimators.named_sets import NamedSets
from setwise.estimators.set_classifier import SetClassifier
from setwise.labels import LabelNames
from setwise.sparse import dense_rows
from setwise.targets.measure import Array
from setwise.targets.registry import get_target
from setwise.targets.target import (
    beta_of,
    follows_from_marginals,
    judges_all_rows,
    predicted_size,
)
from setwise.validation import require_one_of

PICKED = ("all", "all_normalized", "one", "one_vs_all_normalized")
SIZES = ("multinomial", "binary")


class _Reduction(NamedSets, ClassifierMixin, BaseEstimator, ABC):
    """What the reductions share: label sets in and out, and the settings of the linear models."""

    target: Any
    alpha: float
    scaling: str | None
    random_state: Any
    _names: LabelNames

    @abstractmethod
    def _fit(self, inputs: Any, sets: Array, weights: Array) -> None:
        """Train on checked rows, their label sets, (n, l), and their weights, (n,)."""

    @abstractmethod
    def _decode(self, X: Any) -> Array:
        """The label sets of rows, (n, l)."""

    def fit(self, X, y, sample_weight=None):
        """Train on rows X and their label sets, in any form of `SetClassifier.fit`.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, n_features)
        y : label sets
        sample_weight : array of shape (n,), optional
        """
        refuse_blocks(X)
        rows, self._names = read_rows(self, X, y, sample_weight)
        if self._names.one_dimensional:
            raise ValueError(
                f"{type(self).__name__} is of label sets, but y has one class for each row"
            )
        self.classes_, self.target_ = self._names.names, get_target(self.target)
        # A target that is not defined for so many labels says so.
        if not judges_all_rows(self.target_):
            self.target_.measure(self._names.n_labels, "loss")
        self._fit(rows.inputs, dense_rows(rows.sets), rows.weights)
        return self

    def predict(self, X):
        """The label sets, (n, l)."""
        check_is_fitted(self, "classes_")
        return self._names.decode(self._decode(X))

    def _linear(self, surrogate: str = "auto") -> SetClassifier:
        seed = self.random_state
        return SetClassifier(
            "hamming", surrogate, alpha=self.alpha, scaling=self.scaling, random_state=seed
        )


@dataclass(eq=False, repr=False)
class PickLabels(_Reduction):
    """Labels scored by a reduction to single labels, the k of highest score predicted.

    A row with several true labels becomes one row for each of them (Menon, Rawat, Reddi and Kumar,
    2019). Trained is the softmax loss of that one label, or the logistic loss of every label with
    that one true:

    - "all": a row of weight 1 for each true label, softmax. The best scores are log P(label) and a
      constant, so the top k are best for precision@k.
    - "all_normalized": of weight 1 / |y|, softmax. The best scores grow with E[y_j / |y|], so the
      top k are best for recall@k.
    - "one": one true label of each row drawn at random, softmax; on average the same.
    - "one_vs_all_normalized": of weight 1 / |y|, logistic: binary relevance with y_j / |y| in place
      of y_j. For recall@k too.

    No reduction of this kind is consistent for both (their Theorem; the orders by P(label) and by
    E[y_j / |y|] differ). Plain one-versus-all is ``SetClassifier("precision@3",
    "binary_relevance")``.

    Parameters
    ----------
    target : str or Target, default "precision@3"
        Precision@k or recall@k. For a target that does not ask for k labels, as many are predicted
        as a training row has on average.
    pick : {"all", "all_normalized", "one", "one_vs_all_normalized"}, default "all"
    alpha, scaling
        As in `SetClassifier`.
    random_state : int, RandomState or None, default 0
        Draws the labels of "one".

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
    model_ : SetClassifier
        Of the single labels.
    n_predicted_ : int
        k.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
        Of a data frame.

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.9], [0.9, 0.1]]
    >>> Y = [[0, 1, 1], [1, 0, 0], [1, 1, 0], [0, 1, 0], [1, 0, 0]]
    >>> PickLabels("precision@1").fit(X, Y).predict([[0.1, 0.8], [0.8, 0.0]])
    array([[0, 1, 0],
           [1, 0, 0]])
    """

    target: Any = "precision@3"
    pick: str = "all"
    alpha: float = 1e-3
    scaling: str | None = None
    random_state: Any = 0

    def _fit(self, inputs: Any, sets: Array, weights: Array) -> None:
        require_one_of(self.pick, PICKED, "pick")
        row, label = np.nonzero(sets)
        if len(row) == 0:
            raise ValueError("y must have a row with a label, but every label set is empty")
        n_true = sets.sum(axis=1, dtype=np.int64)
        shares = np.ones(len(row)) if self.pick == "all" else 1.0 / n_true[row]
        if self.pick == "one":
            # The true labels of a row stand side by side.
            last = np.cumsum(n_true)[n_true > 0]
            drawn = check_random_state(self.random_state).random_sample(len(last))
            count = n_true[n_true > 0]
            chosen = last - count + np.minimum((drawn * count).astype(np.int64), count - 1)
            row, label, shares = row[chosen], label[chosen], np.ones(len(chosen))
        usual = int(np.rint(np.average(n_true, weights=weights)))
        self.n_predicted_ = predicted_size(self.target_) or max(usual, 1)
        if self.pick == "one_vs_all_normalized":
            empty = np.flatnonzero(n_true == 0)
            alone = np.zeros((len(row) + len(empty), sets.shape[1]), np.uint8)
            alone[np.arange(len(row)), label] = 1
            shares = np.append(shares, np.ones(len(empty)))
            # (A dense column would be taken for classes; a sparse one is a label.)
            row, label = np.append(row, empty), csr_array(alone)
        model = self._linear("binary_relevance" if label.ndim == 2 else "auto")
        self.model_ = model.fit(inputs[row], label, sample_weight=shares * weights[row])

    def decision_function(self, X):
        """The score of each label, (n, l); that of a label never true is the least of its row."""
        check_is_fitted(self, "classes_")
        inputs, n_labels = checked_inputs(self, X, reset=False), len(self.classes_)
        found = self.model_.predict_proba(inputs)
        if found.shape[1] == n_labels and self.pick == "one_vs_all_normalized":
            return found
        scores = np.zeros((len(found), n_labels))
        scores[:, self.model_.classes_.astype(np.int64)] = found
        return scores

    def _decode(self, X: Any) -> Array:
        return TopK(self.n_predicted_).decode(self.decision_function(X))


@dataclass(frozen=True, eq=False)
class LabelSizes(Distribution):
    """P(label in the set, set of size s) and P(set of size s): what F-beta is decided by.

    ``joint`` (n, K + 1, l), ``chance`` (n, K + 1). Not a law over label sets: estimates of the
    parts need not come from one.
    """

    joint: Array
    chance: Array

    @property
    def n_labels(self) -> int:
        return self.joint.shape[2]

    def __len__(self) -> int:
        return len(self.joint)

    def __getitem__(self, rows) -> LabelSizes:
        return LabelSizes(self.joint[rows], self.chance[rows])

    def marginals(self) -> Array:
        """The sum over sizes, at most 1, (n, l)."""
        return np.minimum(self.joint.sum(axis=1), 1.0)

    def log_probability(self, sets: Any) -> Array:
        """Refused: the probability of a set does not follow."""
        raise ValueError("P(label, size) does not say how probable a label set is")

    def label_sizes(self) -> tuple[Array, Array]:
        """What it is made of."""
        return self.joint, self.chance

    def __str__(self) -> str:
        return "P(label, size)"


@dataclass(eq=False, repr=False)
class LabelSizeClassifier(_Reduction):
    """P(label, size of the set) estimated by single problems, then the best set for F-beta.

    The set that maximises the expected F-beta follows from q_jk = P(y_j = 1, |y| = k) and P(y = 0)
    alone: for each size m the m largest of sum_k (1 + b²) q_jk / (b² k + m), the best m, compared
    with the empty set.

    - "multinomial": for each label a multinomial logistic regression, whose classes are "not there"
      and "there, in a set of size k" (Dembczyński, Jachnik, Kotłowski, Waegeman and Hüllermeier,
      2013, "exact F plug-in"; Waegeman et al., 2014).
    - "binary": a logistic regression for each pair of a label and a size, and one for the empty
      set: the reduction to l² + 1 binary problems of Zhang, Ramaswamy and Agarwal (2020).
      Consistent, with a regret of at most a constant times that of the problems.

    Other targets of P(label, size), precision@k and recall@k, are decided exactly too, sums over
    labels from the marginals, and any other as though labels were independent.

    Parameters
    ----------
    target : str or Target, default "f1"
    problems : {"binary", "multinomial"}, default "binary"
    alpha, scaling
        As in `SetClassifier`.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
        Of a data frame.

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.9], [0.9, 0.1]]
    >>> Y = [[0, 1], [1, 0], [1, 1], [0, 1], [1, 0]]
    >>> LabelSizeClassifier("f1").fit(X, Y).predict([[0.1, 0.8], [0.8, 0.0]])
    array([[0, 1],
           [1, 0]])
    """

    target: Any = "f1"
    problems: str = "binary"
    alpha: float = 1e-3
    scaling: str | None = None
    random_state: Any = 0

    def _fit(self, inputs: Any, sets: Array, weights: Array) -> None:
        require_one_of(self.problems, SIZES, "problems")
        sizes = sets.sum(axis=1, dtype=np.int64)
        self._risk = MinimumRisk(self.target_)
        self._shape = int(sizes.max(initial=0)) + 1, sets.shape[1]
        # The size of the set where the label is in it, else 0.
        states = sets * sizes[:, None]
        if self.problems == "multinomial":
            every = np.column_stack([states, np.where(sizes == 0, 1, 0)])
            self.models_ = [self._multinomial(inputs, state, weights) for state in every.T]
            return
        # A pair that never occurs has the probability 0; place 0 is the empty set.
        place = np.arange(sets.shape[1]) + sets.shape[1] * states
        used = place[states > 0]
        self._pairs = np.unique(used)
        column = np.searchsorted(self._pairs, used)
        problems = np.zeros((len(sets), len(self._pairs) + 1), np.uint8)
        problems[np.nonzero(states)[0], column] = 1
        problems[:, -1] = sizes == 0
        model = self._linear("binary_relevance")
        # (A matrix of one column would be read as classes.)
        self.models_ = [model.fit(inputs, problems, weights)] if len(self._pairs) else []

    def _multinomial(self, inputs: Any, state: Array, weights: Array) -> Any:
        """A model of one label's states; the state itself where there is only one."""
        known = np.unique(state)
        if len(known) == 1:
            return int(known[0])
        return self._linear().fit(inputs, state, weights)

    def predict_distribution(self, X) -> LabelSizes:
        """P(label, size) and P(size) of each row."""
        check_is_fitted(self, "classes_")
        inputs = checked_inputs(self, X, reset=False)
        n_rows, (n_sizes, n_labels) = inputs.shape[0], self._shape
        joint, empty = np.zeros((n_rows, n_sizes, n_labels)), np.zeros(n_rows)
        if not self.models_:
            empty[:] = 1.0
        elif self.problems == "binary":
            found = self.models_[0].predict_proba(inputs)
            joint.reshape(n_rows, -1)[:, self._pairs] = found[:, :-1]
            empty = found[:, -1]
        else:
            for label, model in enumerate(self.models_):
                part = np.zeros((n_rows, max(n_sizes, 2)))
                if isinstance(model, int):
                    part[:, model] = 1.0
                else:
                    part[:, model.classes_] = model.predict_proba(inputs)
                if label < n_labels:
                    joint[:, :, label] = part[:, :n_sizes]
                else:
                    empty = part[:, 1]
            joint[:, 0] = 0.0
        chance = joint.sum(axis=2) / np.maximum(np.arange(n_sizes), 1)
        chance[:, 0] = empty
        return LabelSizes(joint, chance)

    def predict_proba(self, X):
        """The probability of each label, the sum over sizes, (n, l)."""
        return self.predict_distribution(X).marginals()

    def _decode(self, X: Any) -> Array:
        found, target = self.predict_distribution(X), self.target_
        at_k, n_labels = predicted_size(target) is not None, found.n_labels
        known = at_k or beta_of(target) is not None or follows_from_marginals(target, n_labels)
        return self._risk.decode(found if known else Independent(found.marginals()))
