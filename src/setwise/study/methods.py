"""The methods a study knows by name, and how a user's own estimator becomes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier

from setwise.estimators import CatalogClassifier, SetClassifier, SetClassifierCV, TargetDecoder
from setwise.estimators.wrapped import seeded
from setwise.study.guarantees import (
    by_chain,
    by_cut,
    by_decoding,
    by_posterior,
    by_thresholds,
    none_known,
)
from setwise.study.peers import (
    TunedLogistic,
    Undecoded,
    extra_trees,
    logistic_regression,
    random_forest,
)
from setwise.targets import PrecisionAtK, RecallAtK, Target, TreeDistance


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
        The estimator, not fitted.
    guarantee : function of a target
        What is proved of it, in words. An estimator that says so itself (``guarantee_``) is
        believed more.
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
    guarantee: Callable[[Target], str] = none_known
    retarget: Callable[[Any, Target], Any] | None = None
    has_probability: bool = True
    own: bool = False


def _same(model: Any, target: Target) -> Any:
    """Of an estimator that takes no target."""
    return model


def _decoded_again(model: Any, target: Target) -> Any:
    return model.for_target(target)


def _cut_again(model: Any, target: Target) -> Any:
    return model.for_target(target, decoder=_cut(target))


def _linear(question: Question, surrogate: str, space: str = "auto", decoder: str = "auto") -> Any:
    """Penalised as scikit-learn's LogisticRegression by default: sum of losses + ||W||² / 2."""
    return SetClassifier(
        question.target,
        surrogate,
        space,
        decoder,
        alpha=1.0 / question.n_rows,
        scaling=None if question.sparse else "standard",
        random_state=question.seed,
    )


def _cut(target: Target) -> str:
    """The decoder that cuts at 1/2; of a target at k or of tree distance, that of its sets."""
    own_sets = isinstance(target, PrecisionAtK | RecallAtK | TreeDistance)
    return "minimum_risk" if own_sets else "most_likely"


def _binary_relevance(question: Question) -> Any:
    return _linear(question, "binary_relevance", decoder=_cut(question.target))


def _logistic(question: Question) -> Any:
    return _linear(question, "logistic", decoder="most_likely")


def _mean_absolute_error(question: Question) -> Any:
    return _linear(question, "mean_absolute_error", decoder="most_likely")


def _catalog(question: Question) -> Any:
    return _linear(question, "likelihood", "catalog")


def _auto(question: Question) -> Any:
    return SetClassifierCV(question.target)


def _one_vs_rest(question: Question) -> Any:
    return Undecoded(OneVsRestClassifier(logistic_regression()), question.target, question.seed)


def _one_vs_rest_decoded(question: Question) -> Any:
    return TargetDecoder(
        OneVsRestClassifier(logistic_regression()), question.target, random_state=question.seed
    )


def _chain(question: Question) -> Any:
    chain = ClassifierChain(logistic_regression(), random_state=question.seed)
    return Undecoded(chain, question.target, question.seed)


def _thresholds(question: Question) -> Any:
    tuned = MultiOutputClassifier(TunedLogistic(question.target))
    return Undecoded(tuned, question.target, question.seed)


def _forest(question: Question) -> Any:
    return Undecoded(random_forest(question.seed), question.target, question.seed)


def _forest_decoded(question: Question) -> Any:
    return TargetDecoder(random_forest(question.seed), question.target, random_state=question.seed)


def _extra_trees_catalog(question: Question) -> Any:
    return CatalogClassifier(
        extra_trees(question.seed), question.target, random_state=question.seed
    )


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "binary_relevance",
            "A logistic regression for each label, cut at 0.5 (linear, the loss of each label).",
            _binary_relevance,
            retarget=_cut_again,
        ),
        Method(
            "logistic",
            "The paper's logistic loss of the target on all label sets (comp-sum, q = 0); predicts "
            "the most likely set.",
            _logistic,
            has_probability=False,
        ),
        Method(
            "mean_absolute_error",
            "The mean absolute error of the target on all label sets (comp-sum, q = 1); predicts "
            "the most likely set.",
            _mean_absolute_error,
            has_probability=False,
        ),
        Method(
            "catalog",
            "The likelihood of the label sets seen, linear scores; predicts the set of least "
            "expected loss.",
            _catalog,
            retarget=_decoded_again,
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
            _one_vs_rest,
            by_cut,
            retarget=_decoded_again,
        ),
        Method(
            "one_vs_rest_decoded",
            "The same probabilities; predicts the set of least expected loss.",
            _one_vs_rest_decoded,
            by_decoding,
            retarget=_decoded_again,
        ),
        Method(
            "chain",
            "scikit-learn's ClassifierChain of logistic regressions, each given the labels before.",
            _chain,
            by_chain,
            retarget=_decoded_again,
        ),
        Method(
            "thresholds",
            "scikit-learn's LogisticRegression for each label, its threshold tuned in three folds.",
            _thresholds,
            by_thresholds,
        ),
        Method(
            "forest",
            "scikit-learn's RandomForestClassifier of 300 trees, cut at 0.5.",
            _forest,
            by_cut,
            retarget=_decoded_again,
        ),
        Method(
            "forest_decoded",
            "The same forest; predicts the set of least expected loss (TargetDecoder).",
            _forest_decoded,
            by_decoding,
            retarget=_decoded_again,
        ),
        Method(
            "extra_trees_catalog",
            "300 extra trees with the label sets seen as classes; predicts the set of least "
            "expected loss (CatalogClassifier).",
            _extra_trees_catalog,
            by_posterior,
            retarget=_decoded_again,
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
        return {_named(name): _method(name, given) for name, given in methods.items()}
    unnamed = [given for given in methods if not isinstance(given, str)]
    if unnamed:
        raise ValueError(
            f"an estimator of your own needs a name: methods={{'mine': estimator}}, a mapping "
            f"from names, not a list with {unnamed[0]!r}"
        )
    found = [_method(name, name) for name in methods]
    twice = sorted({m.name for m in found if sum(other.name == m.name for other in found) > 1})
    if twice:
        raise ValueError(f"each method may be asked for once, but {twice[0]!r} is there twice")
    return {method.name: method for method in found}


def _named(name: Any) -> str:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ValueError(f"the name of a method must be printable text, not {name!r}")
    return name


def _method(name: str, given: Any) -> Method:
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
    if isinstance(given, type) or not all(
        hasattr(given, part) for part in ("fit", "predict", "get_params")
    ):
        raise ValueError(
            f"the method {name!r} must be a scikit-learn estimator with fit and predict, "
            f"not {given!r}"
        )
    if name in METHODS:
        raise ValueError(f"{name!r} is the name of a known method; give your own another")
    targets = [key for key in given.get_params(deep=True) if key.split("__")[-1] == "target"]
    return Method(
        name,
        f"{type(given).__name__}, your own.",
        partial(_own, given, targets),
        retarget=None if targets else _same,
        own=True,
    )


def _own(estimator: Any, targets: list[str], question: Question) -> Any:
    """A clone with seeds for what has none, and the target wherever it takes one."""
    return seeded(estimator, question.seed).set_params(
        **{name: question.target for name in targets}
    )
