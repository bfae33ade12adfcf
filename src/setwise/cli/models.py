"""Which model `setwise fit` trains, and what is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from setwise.spelling import counted

if TYPE_CHECKING:
    from setwise.datasets import Dataset

MODELS = ("auto", "linear", "booster", "ensemble")
SCALINGS = ("auto", "none", "standard", "rows")
# Options that are of some models only.
OF_MODELS = {
    "linear": ("surrogate", "space", "alpha", "scaling", "no_cv", "folds"),
    "booster": ("surrogate", "space"),
    "ensemble": ("folds",),
}
# A mixture of several models is worth its while from about so many seconds, and so many for each
# product of an entry of X with a label.
LEAST_SECONDS, SECONDS_A_PRODUCT = 5.0, 1e-6
MEAN = (
    "a missing feature takes its mean over the training rows, in this model and in what it predicts"
)
AS_THEY_ARE = "missing features stay missing: each split of a tree sends them the better way"


@dataclass(frozen=True)
class Asked:
    """What was asked of `setwise fit` concerning the model, and checked.

    ``given`` are the names of the options that were typed, of those that some models do not have.
    """

    model: str
    target: Any
    surrogates: list[str]
    spaces: list[str]
    alphas: list[float] | None
    scalings: list[str | None]
    cv: bool
    folds: int | None
    time: float | None
    jobs: int | None
    seed: int
    given: tuple[str, ...] = ()

    def __post_init__(self):
        if self.model not in MODELS:
            raise ValueError(f"--model must be one of {', '.join(MODELS)}, not {self.model!r}")
        for name in self.scalings:
            if name not in SCALINGS:
                raise ValueError(f"--scaling must be of {', '.join(SCALINGS)}, not {name!r}")
        if self.model != "auto":
            for name in self.given:
                if name not in OF_MODELS[self.model]:
                    others = [model for model, own in OF_MODELS.items() if name in own]
                    word = name.replace("_", "-")
                    raise ValueError(
                        f"--{word} is of --model {' and '.join(others)}, not of {self.model}"
                    )
        for name, value in (("folds", self.folds), ("time", self.time)):
            if not self.cv and value is not None:
                raise ValueError(f"--{name} is for cross-validation, which --no-cv switches off")
        is_single = not self.cv or self.model == "booster"
        why = "--model booster" if self.cv else "--no-cv"
        for name, several in self.tried.items():
            if is_single and len(several) != 1:
                raise ValueError(f"{why} takes one --{name}, but there are {len(several)}")

    @property
    def tried(self) -> dict[str, list[Any]]:
        """What is tried of each setting of a linear model."""
        return {
            "surrogate": self.surrogates, "space": self.spaces, "alpha": self.alphas or [1e-3],
            "scaling": self.scalings,
        }  # fmt: skip

    def chosen_for(self, train: Dataset) -> tuple[str, str | None]:
        """The model to train, and why, where that was left open and time is limited."""
        if self.model != "auto":
            return self.model, None
        if self.time is None or not self.cv:
            return "linear", None
        if self.given:
            typed = ", ".join(f"--{name.replace('_', '-')}" for name in self.given)
            return "linear", f"linear scores, since {typed} is theirs"
        X: Any = train.X
        entries = X.nnz if hasattr(X, "nnz") else X.size
        needed = LEAST_SECONDS + SECONDS_A_PRODUCT * entries * train.n_labels
        size = f"{counted(train.n_rows, 'row')} and {counted(train.n_labels, 'label')}"
        if self.time < needed:
            return "linear", (
                f"linear scores: a mixture of models on {size} like these is worth its while from "
                f"about {needed:.0f} s (--model ensemble trains it all the same)"
            )
        return "ensemble", f"a mixture of models, for which {self.time:g} s on {size} are enough"

    def estimator(self, model: str, train: Dataset) -> Any:
        """The model, not fitted, behind what prepares its features."""
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline

        always: Any = {"random_state": self.seed, "verbose": True, "n_jobs": self.jobs}
        timed = {**always, "time_budget": self.time, "on_interrupt": "finish"}
        if model == "booster":
            return self._booster(train, timed)
        if model == "ensemble":
            from setwise.estimators import SetEnsemble

            last: Any = SetEnsemble(self.target, cv=self.folds, **timed)
        else:
            last = self._linear(train, always, timed)
        return make_pipeline(SimpleImputer(keep_empty_features=True), last)

    def _linear(self, train: Dataset, always: Any, timed: Any) -> Any:
        from scipy.sparse import issparse

        from setwise.estimators import SetClassifier, SetClassifierCV

        scalings = [None if name == "none" else name for name in self.scalings]
        if self.cv:
            several = {"surrogate": self.surrogates, "space": self.spaces, "scaling": scalings}
            settings: Any = {
                f"{name}s": "auto" if own == ["auto"] else own for name, own in several.items()
            }
            return SetClassifierCV(
                self.target, **settings, alphas=self.alphas, cv=self.folds, **timed
            )
        by_form = None if issparse(train.X) else "standard"
        units = by_form if scalings == ["auto"] else scalings[0]
        (surrogate,), (space,), (penalty,), _ = self.tried.values()
        return SetClassifier(self.target, surrogate, space, alpha=penalty, scaling=units, **always)

    def _booster(self, train: Dataset, timed: Any) -> Any:
        """Trees, which take missing features and categories as they are."""
        from sklearn.pipeline import make_pipeline

        from setwise.datasets.category_codes import CategoryCodes
        from setwise.estimators import SetBooster

        codes = CategoryCodes.of(train.schema)
        (surrogate,), (space,) = self.surrogates, self.spaces
        trees = SetBooster(
            self.target, surrogate, space, **timed,
            categorical_features=None if codes is None else codes.categorical,
        )  # fmt: skip
        return make_pipeline(*([] if codes is None else [codes]), trees)


def settings_of(model: str, classifier: Any) -> dict[str, Any]:
    """What was chosen for a fitted model, as JSON."""
    told: dict[str, Any] = {"model": model}
    if model == "ensemble":
        return {**told, "members": classifier.contributions_, "equal": bool(classifier.is_equal_)}
    told |= {"surrogate": classifier.surrogate_, "space": str(classifier.space_)}
    if model == "booster":
        told |= {"rounds": classifier.n_iter_, "depth": classifier.max_depth}
    else:
        told |= {"scaling": classifier.scaling, "alpha": float(classifier.alpha)}
    return {**told, "decoder": classifier.decoder_}


def settings_said(chosen: Mapping[str, Any], by_search: bool) -> str:
    """The same in words."""
    model = chosen["model"]
    if model == "ensemble":
        return f"a mixture of {counted(len(chosen['members']), 'model')}\n{_members_said(chosen)}"
    words = f"{chosen['surrogate']} on {chosen['space']}"
    if model == "booster":
        depth = f"of depth {chosen['depth']} at most"
        return f"{words}, {counted(chosen['rounds'], 'boosted tree')} {depth}"
    by = "chosen by cross-validation" if by_search else "as asked"
    return f"{words}, alpha {chosen['alpha']:.3g}, scaling {chosen['scaling']} ({by})"


def _members_said(chosen: Mapping[str, Any]) -> str:
    """Members with their weights, and their log-loss on rows held out, as a table."""
    from setwise.evaluation.figure import aligned

    lines = [["", "weight", "temperature", "log-loss alone", "mixture without it"]]
    for own in chosen["members"]:
        losses = (own["log_loss"], own["log_loss_without"])
        figures = [f"{own['weight']:.3f}", f"{own['temperature']:.2f}"]
        figures += ["-" if loss is None else f"{loss:.4f}" for loss in losses]
        lines.append([f"  {own['member']}", *figures])
    equal = (
        "\n  (equal weights, which decide better on the rows held out)" if chosen["equal"] else ""
    )
    return aligned(lines) + equal


def typed_of_models(context: Any) -> tuple[str, ...]:
    """Those options of `OF_MODELS` that the user typed."""
    every = dict.fromkeys(name for own in OF_MODELS.values() for name in own)
    sources = {
        name: context.get_parameter_source("cv" if name == "no_cv" else name) for name in every
    }
    said = [name for name, source in sources.items() if source.name == "COMMANDLINE"]
    return tuple(name for name in said if name != "no_cv" or not context.params["cv"])


def no_trees() -> str | None:
    """What to install for boosted trees, None if it is there."""
    from setwise.estimators.boosting import xgboost

    try:
        xgboost()
    except ImportError as error:
        return str(error)
    return None
