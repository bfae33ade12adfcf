"""Which model `setwise fit` trains, and what is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from setwise.cli.options import given, names, numbers
from setwise.spelling import counted

if TYPE_CHECKING:
    from setwise.datasets import Dataset

SCALINGS = ("auto", "none", "standard", "rows")
# Options that are of some models only.
OF_MODELS = {
    "linear": ("surrogate", "space", "alpha", "scaling", "no-cv", "folds"),
    "booster": ("surrogate", "space"),
    "ensemble": ("folds",),
}
# A mixture of several models is worth its while from about so many seconds, and so many for each
# product of an entry of X with a label.
LEAST_SECONDS, SECONDS_A_PRODUCT = 5.0, 1e-6
MEAN = "replaced by the column's mean over the training rows, in training and in prediction"
AS_THEY_ARE = "left missing; each split of a tree learns where to send them"


@dataclass(frozen=True)
class ModelOptions:
    """The options of `setwise fit` that concern the model, checked."""

    model: Literal["auto", "linear", "booster", "ensemble"] = "auto"
    surrogate: str = "auto"
    space: str = "auto"
    alpha: str | None = None
    scaling: str = "auto"
    time: float | None = None
    jobs: int | None = None
    cv: bool = True
    folds: int | None = None
    seed: int = 0

    def __post_init__(self):
        for name in names(self.scaling):
            if name not in SCALINGS:
                raise ValueError(f"--scaling must be of {', '.join(SCALINGS)}, not {name!r}")
        for name, value in (("folds", self.folds), ("time", self.time)):
            if not self.cv and value is not None:
                raise ValueError(f"--{name} is for cross-validation, which --no-cv switches off")
        if self.time is not None:
            from setwise.validation import positive_number

            positive_number(self.time, "--time")
        is_single = not self.cv or self.model == "booster"
        why = "--model booster" if self.cv else "--no-cv"
        for name, several in self.tried.items():
            if is_single and len(several) != 1:
                raise ValueError(f"{why} takes one --{name}, but there are {len(several)}")

    @property
    def alphas(self) -> list[float] | None:
        """The penalties asked for."""
        expected = "--alpha must be numbers such as 0.1,0.01"
        return None if self.alpha is None else numbers(self.alpha, float, expected)

    @property
    def tried(self) -> dict[str, list[Any]]:
        """What is tried of each setting of a linear model."""
        return {
            "surrogate": names(self.surrogate), "space": names(self.space),
            "alpha": self.alphas or [1e-3], "scaling": names(self.scaling),
        }  # fmt: skip

    def typed(self, context: Any) -> list[str]:
        """Options of `OF_MODELS` that the user typed, refused where the model has no such one."""
        every = [name for own in OF_MODELS.values() for name in own if name != "no-cv"]
        found = given(context, every) + ["no-cv"] * (not self.cv)
        for name in found if self.model != "auto" else ():
            if name not in OF_MODELS[self.model]:
                others = " and ".join(model for model, own in OF_MODELS.items() if name in own)
                raise ValueError(f"--{name} is of --model {others}, not of {self.model}")
        return found

    def chosen_for(self, train: Any, is_on_disk: bool, typed: list[str]) -> tuple[str, str | None]:
        """The model to train, and why, where that was left open and time is limited."""
        if is_on_disk:
            if self.model not in ("auto", "linear"):
                raise ValueError(
                    f"--model {self.model} needs all rows in memory; of a folder of blocks it is "
                    f"linear"
                )
            return "linear", None
        if self.model != "auto":
            return self.model, None
        if self.time is None or not self.cv:
            return "linear", None
        if typed:
            options = ", ".join(f"--{name}" for name in typed)
            return "linear", f"training a linear model, because of {options}"
        X: Any = train.X
        entries = X.nnz if hasattr(X, "nnz") else X.size
        needed = LEAST_SECONDS + SECONDS_A_PRODUCT * entries * train.n_labels
        size = f"{counted(train.n_rows, 'row')} and {counted(train.n_labels, 'label')}"
        if self.time < needed:
            return "linear", (
                f"training a linear model: for {size} a mixture of models needs about "
                f"{needed:.0f} s (--model ensemble trains one anyway)"
            )
        return "ensemble", f"training a mixture of models: {self.time:g} s are enough for {size}"

    def estimator(self, model: str, train: Dataset, target: Any, decoder: Any) -> Any:
        """The model, not fitted, behind what prepares its features."""
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline

        if model == "booster":
            return self._booster(train, target, decoder)
        if model == "ensemble":
            from setwise.estimators import SetEnsemble

            last: Any = SetEnsemble(target, cv=self.folds, **self._timed(decoder))
        else:
            last = self.linear(train, target, decoder)
        return make_pipeline(SimpleImputer(keep_empty_features=True), last)

    def _always(self, decoder: Any) -> dict[str, Any]:
        """What every model is told."""
        told = {"decoder": decoder, "random_state": self.seed, "n_jobs": self.jobs}
        return {**told, "verbose": True}

    def _timed(self, decoder: Any) -> dict[str, Any]:
        """What those are told that can end in time."""
        return {**self._always(decoder), "time_budget": self.time, "on_interrupt": "finish"}

    def linear(self, train: Any, target: Any, decoder: Any) -> Any:
        """Linear scores, not fitted, chosen by cross-validation or as asked."""
        from setwise.estimators import SetClassifier, SetClassifierCV

        surrogates, spaces, alphas, named = self.tried.values()
        scalings = [None if name == "none" else name for name in named]
        if self.cv:
            several = {"surrogates": surrogates, "spaces": spaces, "scalings": scalings}
            settings: Any = {
                name: "auto" if own == ["auto"] else own for name, own in several.items()
            }
            settings |= {"alphas": self.alphas, "cv": self.folds}
            return SetClassifierCV(target, **settings, **self._timed(decoder))
        by_form = None if train.is_sparse else "standard"
        units = by_form if scalings == ["auto"] else scalings[0]
        return SetClassifier(
            target, surrogates[0], spaces[0], alpha=alphas[0], scaling=units,
            **self._always(decoder),
        )  # fmt: skip

    def _booster(self, train: Dataset, target: Any, decoder: Any) -> Any:
        """Trees, which take missing features and categories as they are."""
        from sklearn.pipeline import make_pipeline

        from setwise.datasets.category_codes import CategoryCodes
        from setwise.estimators import SetBooster

        codes = CategoryCodes.of(train.schema)
        trees = SetBooster(
            target, self.surrogate, self.space, **self._timed(decoder),
            categorical_features=None if codes is None else codes.categorical,
        )  # fmt: skip
        return make_pipeline(*([] if codes is None else [codes]), trees)


def _settings(model: str, classifier: Any) -> dict[str, Any]:
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


def _settings_said(chosen: Mapping[str, Any], by_search: bool) -> str:
    """The same in words."""
    model = chosen["model"]
    if model == "ensemble":
        tried, used = len(chosen["members"]), sum(one["weight"] > 0 for one in chosen["members"])
        models = counted(used, "model") if used == tried else f"{used} of {tried} models tried"
        return f"a mixture of {models}\n{_members_said(chosen)}"
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
        "\n  (equal weights, which predict better on the held-out rows)" if chosen["equal"] else ""
    )
    return aligned(lines) + equal


def about(kind: str, fitted: Any, data: Any, train: Any) -> dict[str, Any]:
    """What was chosen and found in training, as JSON."""
    from setwise import __version__
    from setwise.evaluation import evaluate
    from setwise.study import Scale

    scale, classifier = Scale.of(fitted.target), fitted.classifier
    loss, tested = getattr(fitted.model[-1], "best_loss_", None), None
    if "test" in (data.split or {}):
        test = data.test()
        judged = evaluate(fitted.model.predict(test.X), test.Y, targets=[fitted.target])
        figure = judged[f"loss: {fitted.target}"]
        tested = {"rows": test.n_rows, "loss": figure.value, "low": figure.low, "high": figure.high}
        if scale is not None:
            tested["distance"] = scale.distance(figure.value)
    return {
        "setwise": __version__,
        "rows": train.n_rows,
        "features": train.n_features,
        "labels": train.n_labels,
        "target": str(fitted.target),
        "chosen": _settings(kind, classifier),
        "by_cross_validation": loss is not None,
        "choice": getattr(fitted.model[-1], "choice_", None),
        "stopped": getattr(fitted.model[-1], "stopped_", None),
        "cut": getattr(fitted.model[-1], "cut_", []),
        "cross_validated_loss": loss,
        "missing_features": train.n_missing,
        "missing_rule": MEAN if fitted.fills_missing else AS_THEY_ARE,
        "unit": None if scale is None else scale.unit,
        "cross_validated_distance": None if scale is None or loss is None else scale.distance(loss),
        "test": tested,
        "guarantee": fitted.guarantee,
    }


def words(fitted: Any, precise: bool) -> str:
    """The same in words; of the guarantee the first sentence, unless all is asked for."""
    from setwise.report.words import first_sentence, measure_of
    from setwise.study import Scale

    told, scale = fitted.about, Scale.of(fitted.target)
    loss, test = told["cross_validated_loss"], told["test"]
    measure = measure_of(told["target"])
    if measure.is_loss and "loss" not in measure.title:
        measure = replace(measure, title="loss")

    def scored(loss: float) -> str:
        distance = "" if scale is None else f"mean tree distance {scale.said(loss)}: "
        return f"{distance}{measure.title} {measure.shown(loss):.4f}"

    chosen = _settings_said(told["chosen"], told["by_cross_validation"])
    lines = [f"trained for {told['target']} on {told['rows']} rows: {chosen}"]
    if told["choice"] is not None:
        lines.append(f"note: {told['choice']}")
    if told["stopped"] is not None:
        why = (
            "too little time was left" if told["stopped"] == "time_budget" else "it was interrupted"
        )
        cut = f" ({'; '.join(told['cut'])})" if told.get("cut") else ""
        lines.append(f"the search stopped early because {why}; this is the best model so far{cut}")
    if loss is not None:
        optimistic = "slightly optimistic, since it was used to choose the settings"
        lines.append(f"cross-validated: {scored(loss)} ({optimistic})")
    if test is not None:
        low, high = measure.ends(test["low"], test["high"])
        ends = f"95 % confidence interval {low:.4f} to {high:.4f}"
        lines.append(f"on {test['rows']} test rows: {scored(test['loss'])}, {ends}")
    if told["missing_features"]:
        lines.append(
            f"missing feature values ({told['missing_features']} in training): "
            f"{told['missing_rule']}"
        )
    first, rest = first_sentence(told["guarantee"])
    more = f" {rest}" if precise or not rest else " (--precise prints the full statement)"
    return "\n".join([*lines, f"guarantee: {first}{more}".rstrip()])


def no_trees() -> str | None:
    """What to install for boosted trees, None if it is there."""
    from setwise.estimators.boosting import xgboost

    try:
        xgboost()
    except ImportError as error:
        return str(error)
    return None


def labels_of(train: Dataset) -> Any:
    """Label sets as `fit` takes them: a dense column would be taken for classes."""
    from scipy.sparse import csr_array

    return csr_array(train.Y) if train.n_labels == 1 else train.Y
