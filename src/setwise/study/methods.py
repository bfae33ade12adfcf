"""The methods a study knows by name, and how a user's own estimator becomes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain

from setwise.estimators import (
    CatalogClassifier,
    SetBooster,
    SetClassifier,
    SetClassifierCV,
    SetEnsemble,
    TargetDecoder,
)
from setwise.estimators.boosting import xgboost
from setwise.estimators.reductions import LabelSizeClassifier, PickLabels
from setwise.estimators.wrapped import seeded
from setwise.study.tuned_thresholds import TunedThresholds, cut_decoder, logistic
from setwise.surrogates.names import METRO
from setwise.targets import FBeta, Hamming, PrecisionAtK, Target, get_target
from setwise.targets.target import judges_all_rows, predicted_size

N_TREES = 300
# So many characters of an estimator of a user describe it.
MOST_WORDS = 200


@dataclass(frozen=True)
class Question:
    """What a method is made for: a target, a seed, and what the training rows are like."""

    target: Any
    seed: int = 0
    n_rows: int = 1000
    sparse: bool = False

    def __post_init__(self):
        vars(self).update(target=get_target(self.target))


@dataclass(frozen=True)
class Method:
    """A way to learn and predict label sets.

    Attributes
    ----------
    name, description : str
        What it is called; what it trains and how it decides, in a sentence or two.
    make : function of a Question
        The estimator, not fitted. What is proved of it, it says itself (``guarantee_``).
    retarget : function of a fitted model and a target, or None
        The model for another target without another fit, equal to a fit for it; None where the
        target is trained for.
    own : bool
        Whether it is a user's estimator.
    sees_missing : bool
        Whether it sees missing features as they are; else they take their mean.
    require : function, optional
        Raises if something that the method needs is not installed.
    of_rows : bool
        Whether it is trained on losses of rows, which a measure of all rows together has not.

    Examples
    --------
    >>> METHODS["catalog"].description
    'Trains a linear model by the likelihood of the label sets seen in training. ...'
    """

    name: str
    description: str
    make: Callable[[Question], Any]
    retarget: Callable[[Any, Target], Any] | None = None
    own: bool = False
    sees_missing: bool = False
    require: Callable[[], Any] | None = None
    of_rows: bool = False

    def serves(self, target: Target) -> bool:
        """Whether it can be trained for the target."""
        return not (self.of_rows and judges_all_rows(target))


# ------------------------------------------------------------------------------ cut at a threshold


def _cut(target: Target) -> Target:
    """The target for which the best set is a cut at 1/2; of targets @k, the k most probable."""
    k = predicted_size(target)
    return Hamming() if k is None else PrecisionAtK(k)


def _of_rows(target: Target) -> Target:
    """The target, or for a measure of all rows together Hamming loss, which cuts at 1/2 too."""
    return Hamming() if judges_all_rows(target) else target


# ----------------------------------------------------------------------------------- by their names


def _penalised(kind: Any, target: Any, question: Question, **chosen: Any) -> Any:
    """Penalised as scikit-learn's LogisticRegression by default: sum of losses + ||W||² / 2."""
    alpha, scaling = 1.0 / question.n_rows, None if question.sparse else "standard"
    return kind(target, alpha=alpha, scaling=scaling, random_state=question.seed, **chosen)


def _linear(surrogate: str, question: Question, **chosen: Any) -> Any:
    return _penalised(SetClassifier, question.target, question, surrogate=surrogate, **chosen)


def _reduction(kind: Any, question: Question, **chosen: Any) -> Any:
    """A reduction; for a measure of all rows together it is decided as for F1."""
    target = FBeta(1.0) if judges_all_rows(question.target) else question.target
    return _penalised(kind, target, question, **chosen)


def _wrapped(
    name: str, description: str, make: Any, cut: bool = False, wrapper: Any = TargetDecoder
) -> Method:
    """A classifier with probabilities, decoded for the target or cut at 1/2."""
    of = _cut if cut else get_target
    return Method(
        name,
        description,
        lambda question: wrapper(make(question), of(question.target), random_state=question.seed),
        lambda model, target: model.for_target(of(target)),
    )


def _one_vs_rest(question: Question) -> Any:
    return OneVsRestClassifier(logistic())


def _forest(question: Question, kind: Any = RandomForestClassifier) -> Any:
    """In one thread: several add up probabilities in an order that changes."""
    return kind(N_TREES, random_state=question.seed)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "binary_relevance",
            "Trains one logistic regression per label. Predicts the labels above 0.5.",
            lambda asked: _linear(
                "binary_relevance",
                replace(asked, target=_of_rows(asked.target)),
                decoder=cut_decoder(asked.target),
            ),
            lambda model, target: model.for_target(_of_rows(target), cut_decoder(target)),
        ),
        Method(
            "logistic",
            "Trains a linear model on the paper's logistic loss for the target (comp-sum, q = 0). "
            "Predicts the label set with the highest score.",
            lambda asked: _linear("logistic", asked, decoder="most_likely"),
            of_rows=True,
        ),
        Method(
            "mean_absolute_error",
            "Trains a linear model on the expected loss of label sets drawn from it (comp-sum, q = "
            "1: mean absolute error). Predicts the label set with the highest score.",
            lambda asked: _linear("mean_absolute_error", asked, decoder="most_likely"),
            of_rows=True,
        ),
        Method(
            "catalog",
            "Trains a linear model by the likelihood of the label sets seen in training. Predicts "
            "the set with the smallest expected loss.",
            lambda asked: _linear("likelihood", asked, space="catalog"),
            lambda model, target: model.for_target(target),
        ),
        Method(
            "auto",
            "SetClassifierCV: trains a linear model, with penalty, scaling and space chosen for "
            "the target on folds of the training rows. Predicts the set with the smallest expected "
            "loss.",
            lambda asked: SetClassifierCV(asked.target),
        ),
        Method(
            "booster",
            "SetBooster: trains boosted trees by the likelihood of the label sets seen. Predicts "
            "the set with the smallest expected loss.",
            lambda asked: SetBooster(asked.target, random_state=asked.seed),
            lambda model, target: model.for_target(target),
            sees_missing=True,
            require=xgboost,
        ),
        Method(
            "ensemble",
            "SetEnsemble: trains a linear model, extra trees and boosted trees, and mixes their "
            "probabilities with weights found on held-out rows. Predicts the set with the smallest "
            "expected loss.",
            lambda asked: SetEnsemble(asked.target, random_state=asked.seed),
            require=xgboost,
        ),
        _wrapped(
            "one_vs_rest",
            "Trains scikit-learn's LogisticRegression for each label. Predicts the labels above "
            "0.5.",
            _one_vs_rest,
            cut=True,
        ),
        _wrapped(
            "one_vs_rest_decoded",
            "Trains the same models as one_vs_rest. Predicts the set with the smallest expected "
            "loss, treating labels as independent.",
            _one_vs_rest,
        ),
        _wrapped(
            "chain",
            "Trains scikit-learn's ClassifierChain of logistic regressions, each given the labels "
            "before it. Predicts the labels above 0.5.",
            lambda asked: ClassifierChain(logistic(), random_state=asked.seed),
            cut=True,
        ),
        Method(
            "thresholds",
            "Trains scikit-learn's LogisticRegression for each label. Predicts the labels above "
            "their thresholds, which are tuned in three folds.",
            lambda asked: TunedThresholds(asked.target),
        ),
        _wrapped(
            "forest",
            "Trains scikit-learn's RandomForestClassifier of 300 trees for all labels at once. "
            "Predicts the labels above 0.5.",
            _forest,
            cut=True,
        ),
        _wrapped(
            "forest_decoded",
            "Trains the same model as forest. Predicts the set with the smallest expected loss, "
            "treating labels as independent.",
            _forest,
        ),
        _wrapped(
            "extra_trees_catalog",
            "Trains scikit-learn's ExtraTreesClassifier of 300 trees, with the label sets seen as "
            "classes. Predicts the set with the smallest expected loss.",
            partial(_forest, kind=ExtraTreesClassifier),
            wrapper=CatalogClassifier,
        ),
        Method(
            "metro",
            "Trains one logistic regression per label, with costs of misses and false alarms that "
            "represent a measure of all rows (METRO), and predicts by the sign. For other targets, "
            "trains binary_relevance and predicts the set with the smallest expected loss.",
            lambda asked: _linear(
                METRO if judges_all_rows(asked.target) else "binary_relevance", asked
            ),
        ),
        Method(
            "f_plug_in",
            "Trains for each label a multinomial regression on the size of the set it is in. "
            "Predicts the set with the smallest expected loss (exact F plug-in).",
            lambda asked: _reduction(LabelSizeClassifier, asked, problems="multinomial"),
        ),
        Method(
            "f_reduction",
            "Trains one logistic regression for each pair of a label and a set size. Predicts the "
            "set with the smallest expected loss (l² + 1 problems).",
            lambda asked: _reduction(LabelSizeClassifier, asked, problems="binary"),
        ),
        *(
            Method(
                name,
                f"Trains {words}. Predicts the k labels with the highest scores; for other "
                f"targets, as many as training rows have on average.",
                lambda asked, pick=pick: _reduction(PickLabels, asked, pick=pick),
            )
            for name, pick, words in (
                ("pick_all_labels", "all", "linear scores on the softmax of every true label"),
                (
                    "pick_all_labels_normalized",
                    "all_normalized",
                    "linear scores on the softmax of every true label, divided by their number",
                ),
                ("pick_one_label", "one", "linear scores on the softmax of one true label drawn"),
                (
                    "one_vs_all_normalized",
                    "one_vs_all_normalized",
                    "a linear logistic regression for each label, true labels divided by their "
                    "number",
                ),
            )
        ),
    )
}


def get_methods(methods: Any) -> dict[str, Method]:
    """Methods by name from a list of known names, or from a mapping to names and estimators."""
    if isinstance(methods, list | tuple) and all(isinstance(name, str) for name in methods):
        if len(set(methods)) < len(methods):
            raise ValueError(f"each method may be there once, but they are {', '.join(methods)}")
        methods = dict(zip(methods, methods, strict=True))
    if not isinstance(methods, Mapping) or not methods:
        raise ValueError(
            f"methods must be a list of names such as ['auto', 'forest'], or a mapping from names "
            f"to estimators, not {methods!r}"
        )
    return {name: _method(name, given) for name, given in methods.items()}


def _method(name: str, given: Any) -> Method:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ValueError(f"the name of a method must be printable text, not {name!r}")
    if isinstance(given, str) and given == name and name in METHODS:
        if (require := METHODS[name].require) is not None:
            require()
        return METHODS[name]
    if isinstance(given, str) or name in METHODS:
        renamed = f" to be known as {name!r}" if given != name else ""
        raise ValueError(
            f"there is no method named {given!r}{renamed}; known, by these names, "
            f"are {', '.join(METHODS)}; an estimator of your own goes in a mapping, by a new name"
        )
    parts = ("fit", "predict", "get_params")
    if isinstance(given, type) or not all(hasattr(given, part) for part in parts):
        raise ValueError(
            f"the method {name!r} must be a scikit-learn estimator with fit and predict, not "
            f"{given!r}"
        )
    targets = [key for key in given.get_params(deep=True) if key.split("__")[-1] == "target"]
    same = None if targets else lambda model, target: model
    words = f"Your own: {' '.join(repr(given).split())[:MOST_WORDS]}. Decides by its own predict."
    make = partial(_own, given, targets)
    return Method(name, words, make, same, own=True, sees_missing=True)


def _own(estimator: Any, targets: list[str], question: Question) -> Any:
    """A clone with seeds for what has none, and the target wherever it takes one."""
    return seeded(estimator, question.seed).set_params(**dict.fromkeys(targets, question.target))
