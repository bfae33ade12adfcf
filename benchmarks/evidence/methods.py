"""The methods of the paper, the systems it names, ours, and scikit-learn's, as recipes by name."""

from __future__ import annotations

from functools import partial
from typing import Any

from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.neural_network import MLPClassifier

from benchmarks.evidence.ensembles import ChainEnsemble
from benchmarks.evidence.tuning import (
    Logistic,
    Question,
    Recipe,
    few,
    linear_grid,
    one_vs_rest,
    scaled,
    scalings,
)  # fmt: skip
from setwise import (
    CatalogClassifier,
    SetBooster,
    SetClassifier,
    SetClassifierCV,
    SetEnsemble,
    TargetDecoder,
)
from setwise.estimators.reductions import LabelSizeClassifier, PickLabels
from setwise.study.tuned_thresholds import TunedThresholds
from setwise.surrogates import BinaryRelevance
from setwise.targets import get_target

POPULATION = ("macro_f1", "micro_f1")
OF_ROWS = ("f1", "jaccard", "subset", "hamming")
MARGINS = ("logistic", "exponential", "hinge", "squared_hinge")
# Members of the comp-sum family by q; those above 0 are no likelihoods and have no minimum risk.
COMP_SUM = {
    "sum-exponential": -1.0, "logistic": 0.0, "gce .3": 0.3, "gce .5": 0.5, "gce .7": 0.7,
    "mean absolute error": 1.0,
}  # fmt: skip
SPACES = ("cube", "sized", "forest", "catalog", "joint")
N_TREES = 300


def for_target(model: Any, X: Any, target: str) -> Any:
    """What one fitted model of ours decides for a target."""
    return model.for_target(target).predict(X)


def linear(surrogate: Any, question: Question, C: float, scaling: str | None, **given: Any) -> Any:
    """`SetClassifier` with the penalty of scikit-learn's C."""
    alpha = 1.0 / (C * question.n_rows)
    return SetClassifier(
        question.target, surrogate, alpha=alpha, scaling=scaling, random_state=question.seed,
        **given,
    )  # fmt: skip


def _of_paper() -> dict[str, Recipe]:
    """Binary relevance, comp-sum and constrained losses on every space, and likelihoods."""
    found = {}
    for margin in MARGINS:
        found[f"binary relevance, {margin}"] = Recipe(
            lambda asked, margin=margin, **s: linear(
                BinaryRelevance(margin), asked._replace(target="hamming"), decoder="most_likely",
                **s,
            ),
            linear_grid,
        )  # fmt: skip
    for name, q in COMP_SUM.items():
        for space in SPACES:
            found[f"{name}, {space}"] = Recipe(
                partial(_comp_sum, q, space), linear_grid, serves_all=False, targets=OF_ROWS
            )
    for margin in ("exponential", "squared_hinge"):
        for space in ("cube", "joint"):
            found[f"constrained {margin}, {space}"] = Recipe(
                lambda asked, margin=margin, space=space, **s: linear(
                    f"constrained_{margin}", asked, space=space, decoder="most_likely", **s
                ),
                linear_grid, serves_all=False, targets=OF_ROWS,
            )  # fmt: skip
    for space in (*SPACES, "backoff"):
        made = partial(_likelihood, space)
        found[f"likelihood, {space}, most likely"] = Recipe(
            partial(made, "most_likely"), linear_grid
        )
        found[f"likelihood, {space}, minimum risk"] = Recipe(
            partial(made, "auto"), linear_grid, for_target
        )
    return found


def _comp_sum(q: float, space: str, question: Question, **settings: Any) -> Any:
    names = {-1.0: "sum_exponential", 0.0: "logistic", 1.0: "mean_absolute_error"}
    name = names.get(q, "generalized_cross_entropy")
    given = {"q": q} if q not in names else {}
    return linear(name, question, space=space, decoder="most_likely", **given, **settings)


def _likelihood(space: str, decoder: str, question: Question, **settings: Any) -> Any:
    asked = question._replace(target="f1")
    return linear("likelihood", asked, space=space, decoder=decoder, **settings)


def _reduction(kind: Any, question: Question, C: float, scaling: str | None, **given: Any) -> Any:
    target = "f1" if question.target in POPULATION else question.target
    alpha = 1.0 / (C * question.n_rows)
    return kind(target, alpha=alpha, scaling=scaling, random_state=question.seed, **given)


def _named() -> dict[str, Recipe]:
    """The related systems."""
    found = {
        f"F plug-in, {problems}": Recipe(
            lambda asked, problems=problems, **s: _reduction(
                LabelSizeClassifier, asked, problems=problems, **s
            ),
            linear_grid, targets=("f1",),
        )
        for problems in ("multinomial", "binary")
    }  # fmt: skip
    for pick in ("all", "all_normalized", "one", "one_vs_all_normalized"):
        found[f"pick labels, {pick}"] = Recipe(
            lambda asked, pick=pick, **s: _reduction(PickLabels, asked, pick=pick, **s),
            linear_grid, targets=OF_ROWS,
        )  # fmt: skip
    found["METRO"] = Recipe(
        lambda asked, **s: linear("metro", asked, **s), linear_grid, serves_all=False,
        targets=POPULATION,
    )  # fmt: skip
    return found


def _decoded(make: Any, wrapper: Any = TargetDecoder) -> Any:
    """A classifier of theirs, decided by us."""
    return lambda asked, **s: wrapper(make(asked, **s), "f1", random_state=asked.seed)


def _forest(asked: Question, kind: Any = RandomForestClassifier) -> Any:
    return kind(N_TREES, random_state=asked.seed, n_jobs=1)


def _network(asked: Question, scaling: str | None) -> Any:
    return scaled(MLPClassifier(random_state=asked.seed), scaling)


def _of_scikit_learn() -> dict[str, Recipe]:
    return {
        "one-vs-rest": Recipe(one_vs_rest, linear_grid),
        "tuned thresholds": Recipe(
            lambda asked, C, scaling: scaled(TunedThresholds(get_target(asked.target), C), scaling),
            lambda is_sparse: few(is_sparse)[-3:-1],
            serves_all=False,
        ),
        "classifier chain": Recipe(
            lambda asked, C, scaling: scaled(
                ClassifierChain(Logistic(C), random_state=asked.seed), scaling
            ),
            linear_grid,
        ),
        "ensemble of chains": Recipe(
            lambda asked, C, scaling: scaled(
                ChainEnsemble(Logistic(C), n_chains=10, random_state=asked.seed), scaling
            ),
            few,
        ),
        "random forest": Recipe(_forest),
        "extra trees": Recipe(partial(_forest, kind=ExtraTreesClassifier)),
        "MLP": Recipe(_network, scalings),
    }


def _of_ours() -> dict[str, Recipe]:
    return {
        "SetClassifierCV": Recipe(
            lambda asked: SetClassifierCV(asked.target, random_state=asked.seed), serves_all=False
        ),
        "SetBooster": Recipe(
            lambda asked: SetBooster("f1", random_state=asked.seed), decide=for_target
        ),
        "SetEnsemble": Recipe(
            lambda asked: SetEnsemble("f1", random_state=asked.seed), decide=for_target
        ),
        "TargetDecoder(one-vs-rest)": Recipe(_decoded(one_vs_rest), linear_grid, for_target),
        "TargetDecoder(random forest)": Recipe(_decoded(_forest), decide=for_target),
        "CatalogClassifier(extra trees)": Recipe(
            _decoded(partial(_forest, kind=ExtraTreesClassifier), CatalogClassifier),
            decide=for_target,
        ),
    }


# What kind each method is of, and its recipe.
KINDS = {
    "ours": _of_ours(),
    "paper": _of_paper(),
    "related": _named(),
    "scikit-learn": _of_scikit_learn(),
}
