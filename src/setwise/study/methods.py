"""The methods a study knows by name, and how a user's own estimator becomes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.utils.metaestimators import available_if

from setwise.decoders import TopK
from setwise.estimators import CatalogClassifier, SetClassifier, SetClassifierCV, TargetDecoder
from setwise.estimators.label_model import LabelModel
from setwise.estimators.wrapped import gives_probability, seeded
from setwise.study.data import require_name
from setwise.targets import Target, get_target
from setwise.targets.target import hierarchy_of, predicted_size

N_TREES = 300


@dataclass(frozen=True)
class Question:
    """What a method is made for: a target, a seed, and what the training rows are like."""

    target: Any
    seed: int = 0
    n_rows: int = 1000
    sparse: bool = False


@dataclass(frozen=True)
class Method:
    """A way to learn and predict label sets.

    Attributes
    ----------
    name, description : str
        What it is called, and what it does, in a line.
    make : function of a Question
        The estimator, not fitted. What is proved of it, it says itself (``guarantee_``).
    retarget : function of a fitted model and a target, or None
        The model for another target without another fit, equal to a fit for it; None where the
        target is trained for.
    has_probability : bool
        Whether its `predict_proba` is a probability. (Losses that are no likelihood have scores
        that are not log-probabilities.)
    own : bool
        Whether it is a user's estimator, which sees missing features as they are.
    """

    name: str
    description: str
    make: Callable[[Question], Any]
    retarget: Callable[[Any, Target], Any] | None = None
    has_probability: bool = True
    own: bool = False


# ------------------------------------------------------------------- scikit-learn's classifiers


class Undecoded(ClassifierMixin, BaseEstimator):
    """A classifier of label sets that predicts as it does by itself, whatever the target.

    A label that is always or never there in training, which many classifiers refuse, is predicted
    so. Precision@k and recall@k judge sets of k labels only: for these the k labels of highest
    probability are predicted.

    Parameters
    ----------
    estimator : classifier
        Of label matrices; cloned and fitted in `fit`.
    target : str or Target, default "hamming"
    random_state : int or None, default 0
        Seeds the parts of the estimator whose own random_state is None.
    """

    def __init__(self, estimator, target="hamming", random_state=0):
        self.estimator = estimator
        self.target = target
        self.random_state = random_state

    def fit(self, X, y):
        """Fit to label sets, (n, l), dense or sparse."""
        sets: Any = y.toarray() if issparse(y) else np.asarray(y)
        self._model = LabelModel.fit(seeded(self.estimator, self.random_state), X, sets, {})
        self.estimator_ = self._model.estimator
        self.classes_ = np.arange(sets.shape[1])
        return self

    def for_target(self, target) -> Undecoded:
        """The same fit for another target."""
        other: Any = copy(self)
        return other.set_params(target=target)

    def predict(self, X) -> csr_array:
        """The label sets, CSR (n, l)."""
        k = predicted_size(get_target(self.target))
        if k is not None:
            return csr_array(TopK(k).decode(self.predict_proba(X)))
        constant = self._model.constant
        varying = np.isnan(constant)
        sets = np.tile(np.nan_to_num(constant), (X.shape[0], 1)).astype(np.uint8)
        if varying.any():
            found: Any = self.estimator_.predict(X)
            dense = found.toarray() if issparse(found) else np.asarray(found)
            sets[:, varying] = dense.reshape(X.shape[0], -1)
        return csr_array(sets)

    @available_if(gives_probability)
    def predict_proba(self, X):
        """The probability of each label, (n, l)."""
        return self._model.probability(X)


class TunedLogistic(ClassifierMixin, BaseEstimator):
    """Its threshold tuned in three folds, or 1/2 where a class is too rare for them.

    The measure tuned for is the target's over the rows of one label: a ratio such as F-beta or
    Jaccard as it is, accuracy for Hamming and subset 0/1, and F1 for others.
    """

    def __init__(self, target="f1"):
        self.target = target

    def fit(self, X, y):
        """Fit to one label."""
        tuned = TunedThresholdClassifierCV(logistic_regression(), scoring=self._scoring(), cv=3)
        plain = logistic_regression()
        self.model_ = (tuned if np.bincount(y).min() >= 3 else plain).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        """By the threshold."""
        return self.model_.predict(X)

    def predict_proba(self, X):
        """Without the threshold."""
        return self.model_.predict_proba(X)

    def _scoring(self) -> Any:
        target = get_target(self.target)
        if target.form == "linear_fractional":
            return make_scorer(partial(_utility_over_rows, target=target))
        own_sets = predicted_size(target) is not None or hierarchy_of(target) is not None
        return "accuracy" if target.form in ("additive", "subset") and not own_sets else "f1"


def _utility_over_rows(y_true: Any, y_pred: Any, target: Target) -> float:
    """The utility of the rows that have a label as though they were a label set."""
    return 1.0 - float(target.loss(y_pred[None], y_true[None])[0])


def logistic_regression(question: Any = None) -> LogisticRegression:
    """scikit-learn's, with room to converge."""
    return LogisticRegression(max_iter=1000)


def _one_vs_rest(question: Question) -> Any:
    return OneVsRestClassifier(logistic_regression())


def _chain(question: Question) -> Any:
    return ClassifierChain(logistic_regression(), random_state=question.seed)


def _tuned(question: Question) -> Any:
    return MultiOutputClassifier(TunedLogistic(question.target))


def _trees(kind: Any, question: Question) -> Any:
    """In one thread: several add up probabilities in an order that changes."""
    return kind(N_TREES, random_state=question.seed)


# ----------------------------------------------------------------------------------- by their names


def _linear(
    question: Question, surrogate: str, space: str = "auto", decoder: str | None = "auto"
) -> Any:
    """Penalised as scikit-learn's LogisticRegression by default: sum of losses + ||W||² / 2."""
    return SetClassifier(
        question.target,
        surrogate,
        space,
        _cut(question.target) if decoder is None else decoder,
        alpha=1.0 / question.n_rows,
        scaling=None if question.sparse else "standard",
        random_state=question.seed,
    )


def _cut(target: Target) -> str:
    """The decoder that cuts at 1/2; of a target that judges some sets only, that of these."""
    own_sets = predicted_size(target) is not None or hierarchy_of(target) is not None
    return "minimum_risk" if own_sets else "most_likely"


def _auto(question: Question) -> Any:
    return SetClassifierCV(question.target)


def _around(wrapper: Any, make: Callable[[Question], Any], question: Question) -> Any:
    """What wraps a classifier, made for the target and seeded."""
    return wrapper(make(question), question.target, random_state=question.seed)


def _same(model: Any, target: Target) -> Any:
    """Of an estimator that takes no target."""
    return model


def _decoded_again(model: Any, target: Target) -> Any:
    return model.for_target(target)


def _cut_again(model: Any, target: Target) -> Any:
    return model.for_target(target, decoder=_cut(target))


_FOREST, _EXTRA = (partial(_trees, kind) for kind in (RandomForestClassifier, ExtraTreesClassifier))
METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "binary_relevance",
            "A logistic regression for each label, cut at 0.5 (linear, the loss of each label).",
            partial(_linear, surrogate="binary_relevance", decoder=None),
            _cut_again,
        ),
        Method(
            "logistic",
            "The paper's logistic loss of the target on all label sets (comp-sum, q = 0); predicts "
            "the most likely set.",
            partial(_linear, surrogate="logistic", decoder="most_likely"),
            has_probability=False,
        ),
        Method(
            "mean_absolute_error",
            "The mean absolute error of the target on all label sets (comp-sum, q = 1); predicts "
            "the most likely set.",
            partial(_linear, surrogate="mean_absolute_error", decoder="most_likely"),
            has_probability=False,
        ),
        Method(
            "catalog",
            "The likelihood of the label sets seen, linear scores; predicts the set of least "
            "expected loss.",
            partial(_linear, surrogate="likelihood", space="catalog"),
            _decoded_again,
        ),
        Method(
            "auto",
            "SetClassifierCV: penalty, scaling and space chosen by the target in "
            "cross-validation; predicts the set of least expected loss.",
            _auto,
        ),
        Method(
            "one_vs_rest",
            "scikit-learn's LogisticRegression for each label, cut at 0.5.",
            partial(_around, Undecoded, _one_vs_rest),
            _decoded_again,
        ),
        Method(
            "one_vs_rest_decoded",
            "The same probabilities; predicts the set of least expected loss.",
            partial(_around, TargetDecoder, _one_vs_rest),
            _decoded_again,
        ),
        Method(
            "chain",
            "scikit-learn's ClassifierChain of logistic regressions, each given the labels before.",
            partial(_around, Undecoded, _chain),
            _decoded_again,
        ),
        Method(
            "thresholds",
            "scikit-learn's LogisticRegression for each label, its threshold tuned in three folds.",
            partial(_around, Undecoded, _tuned),
        ),
        Method(
            "forest",
            "scikit-learn's RandomForestClassifier of 300 trees, cut at 0.5.",
            partial(_around, Undecoded, _FOREST),
            _decoded_again,
        ),
        Method(
            "forest_decoded",
            "The same forest; predicts the set of least expected loss (TargetDecoder).",
            partial(_around, TargetDecoder, _FOREST),
            _decoded_again,
        ),
        Method(
            "extra_trees_catalog",
            "300 extra trees with the label sets seen as classes; predicts the set of least "
            "expected loss (CatalogClassifier).",
            partial(_around, CatalogClassifier, _EXTRA),
            _decoded_again,
        ),
    )
}


def get_methods(methods: Any) -> dict[str, Method]:
    """Methods by name from a list of known names, or from a mapping to names and estimators."""
    if isinstance(methods, str) or not isinstance(methods, Mapping | Sequence) or not methods:
        raise ValueError(
            f"methods must be a list of names such as ['auto', 'forest'], or a mapping from names "
            f"to estimators, not {methods!r}"
        )
    if isinstance(methods, Mapping):
        return {name: _method(name, given) for name, given in methods.items()}
    for name in methods:
        if not isinstance(name, str):
            raise ValueError(
                f"an estimator of your own needs a name: methods={{'mine': estimator}}, a mapping "
                f"from names, not a list with {name!r}"
            )
        if list(methods).count(name) > 1:
            raise ValueError(f"each method may be asked for once, but {name!r} is there twice")
    return {name: _method(name, name) for name in methods}


def _method(name: str, given: Any) -> Method:
    require_name(name, "method")
    if isinstance(given, str):
        if given not in METHODS:
            raise ValueError(
                f"there is no method named {given!r}; known are {', '.join(METHODS)}; for an "
                f"estimator of your own write methods={{'mine': estimator}}"
            )
        if name != given:
            raise ValueError(
                f"the method {given!r} keeps its name, but it is asked for as {name!r}"
            )
        return METHODS[given]
    parts = ("fit", "predict", "get_params")
    if isinstance(given, type) or not all(hasattr(given, part) for part in parts):
        raise ValueError(
            f"the method {name!r} must be a scikit-learn estimator with fit and predict, "
            f"not {given!r}"
        )
    if name in METHODS:
        raise ValueError(f"{name!r} is the name of a known method; give your own another")
    targets = [key for key in given.get_params(deep=True) if key.split("__")[-1] == "target"]
    words = f"{type(given).__name__}, your own."
    make = partial(_own, given, targets)
    return Method(name, words, make, retarget=None if targets else _same, own=True)


def _own(estimator: Any, targets: list[str], question: Question) -> Any:
    """A clone with seeds for what has none, and the target wherever it takes one."""
    return seeded(estimator, question.seed).set_params(
        **{name: question.target for name in targets}
    )
