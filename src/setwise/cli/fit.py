"""`setwise fit DATA --target f1 -o model.skops`: train a model, and say what is known of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from setwise.cli.models import (
    AS_THEY_ARE,
    MEAN,
    Asked,
    no_trees,
    settings_of,
    settings_said,
    typed_of_models,
)
from setwise.cli.options import (
    MODEL,
    Reading,
    can_write,
    command,
    concerning,
    echo,
    held_out,
    names,
    refuse_unknown,
    say,
    target_for,
    typed,
)

if TYPE_CHECKING:
    from setwise.datasets import Dataset, Schema
    from setwise.targets import Target

# Rows are taken in parts of at most so many, and so many entries of features or labels.
MOST_ROWS, MOST_ENTRIES, LEAST_ROWS = 10_000, 2**23, 64
# Options that a refusal of the fit may concern.
ASKED = ("target", "model", "surrogate", "space", "alpha", "scaling", "time", "jobs", "folds")
# The exit status of a search that was interrupted, though a model is written.
INTERRUPTED = 130
# Surrogates whose scores are log-probabilities.
LIKELIHOODS = ("auto", "likelihood", "binary_relevance")


@command(
    output="Where the model goes, by custom .skops.",
    model="linear: linear scores, chosen by cross-validation; booster: boosted trees (XGBoost); "
    "ensemble: a mixture of both and of extra trees. auto: linear, or with --time what is best for "
    "the data in that time.",
    surrogate="What is trained on: likelihood, binary_relevance, logistic, mean_absolute_error, "
    "...; several with commas are tried. auto: likelihood, or what fits into memory.",
    space="Label sets that are weighed: auto, catalog, joint, sized, forest, cube, of a hierarchy "
    "paths, closed; several with commas are tried.",
    alpha="Penalty of the weights; several with commas are tried.",
    scaling="Units of the features: none, standard, rows; several with commas are tried. auto: by "
    "whether the features are sparse.",
    time="Seconds; then the best model found so far is trained and written. Without --model, the "
    "model that is best in that time.",
    jobs="Threads; by default as many as there are processors.",
    cv="Whether cross-validation chooses all this.",
    folds="Of the cross-validation; by default by the number of rows.",
)
def fit(
    context: typer.Context,
    data: Path,
    *,
    output: Path,
    target: str = "f1",
    test: Path | None = None,
    test_share: float | None = None,
    model: str = "auto",
    surrogate: str = "auto",
    space: str = "auto",
    alpha: str | None = None,
    scaling: str = "auto",
    time: float | None = None,
    jobs: int | None = None,
    cv: bool = True,
    folds: int | None = None,
    seed: int = 0,
    json: bool = False,
    reading: Reading,
) -> int:
    r"""Train a model for a target and write it to one file, with the columns it was trained on.

    Prints what was chosen, how good it is, and what is guaranteed. With rows to test on (a second
    file, a share, or the file's own split) the model is trained on the others.

    Missing features take their mean over the training rows; boosted trees take them as missing, and
    columns of categories as such.

    With --time alone the model is a mixture of linear scores, extra trees and boosted trees where
    the time is enough for it.

    Long searches tell on the error stream how far they are, and after the first fold about how long
    they will take. Ctrl-C, like --time, ends the search: the best model so far is trained and
    written; a second Ctrl-C ends at once.

    Labels may stand in a hierarchy: the file's own, that of --taxonomy, or the one that path names
    say. Every prediction for the target tree has all that stands above its labels.

    \b
    Examples:
      setwise fit books.csv --label-column tags --separator ";" -o model.skops
      setwise fit books.csv --label-column tags --separator ";" --time 60 -o model.skops
      setwise fit music.csv --label-prefix is_ --model booster -o model.skops
      setwise fit music.csv --label-prefix is_ --target jaccard --test-share 0.3 -o model.skops
      setwise fit posts.csv --labels spam,ad --text-columns title,body -o model.skops
      setwise fit yeast.arff --test yeast-test.arff --target subset -o model.skops
      setwise fit big.csv --label-prefix is_ --no-cv --alpha 0.01 --json -o model.skops
      setwise fit news.csv --label-column topics --target macro_f1 -o model.skops
      setwise fit shop.csv --label-column cats --path-separator / --close --target tree -o m.skops
      setwise fit genes.arff --target tree --test-share 0.3 -o model.skops

    Exit status: 0 fine; 2 the file or an option is wrong; 130 interrupted: the best model so far is
    written if the error stream says so, else nothing.
    """
    can_write(output, (data, test, reading.xml, reading.taxonomy), MODEL)
    if test is not None and test_share is not None:
        raise ValueError("--test and --test-share exclude each other")
    try:
        alphas = None if alpha is None else [float(word) for word in alpha.split(",")]
    except ValueError:
        raise ValueError(f"--alpha must be numbers such as 0.1,0.01, not {alpha!r}") from None
    asked = Asked(
        model, None, names(surrogate), names(space), alphas, names(scaling), cv, folds, time, jobs,
        seed, typed_of_models(context),
    )  # fmt: skip
    refuse_unknown(target)
    if model == "booster" and (missing := no_trees()):
        raise ImportError(missing)
    from scipy.sparse import csr_array

    from setwise.persistence import save

    rows = held_out(reading.read(data, test), test_share, seed)
    train = rows.train() if "train" in (rows.split or {}) else rows
    judged: Any = target_for(target, rows)
    kind, why = asked.chosen_for(train)
    if why is not None:
        echo(f"setwise: {why}", err=True)
    if kind == "ensemble" and (missing := no_trees()):
        echo(f"setwise: the mixture has no boosted trees: {missing}", err=True)
    estimator = replace(asked, target=judged).estimator(kind, train)
    with concerning(typed(context, *ASKED)):
        # (A dense column would be taken for classes; a sparse one is a label.)
        estimator.fit(train.X, csr_array(train.Y) if train.n_labels == 1 else train.Y)
    assert rows.schema is not None
    fitted = Fitted(estimator, rows.schema, judged)
    fitted = replace(fitted, about={"data": data.name, **_about(kind, fitted, rows, train)})
    save(fitted, output)
    say(json, {**fitted.about, "output": str(output)}, f"{rows}\n{_words(fitted)}\nwrote {output}")
    return INTERRUPTED if fitted.about["stopped"] == "interrupt" else 0


def _about(kind: str, fitted: Fitted, data: Dataset, train: Dataset) -> dict[str, Any]:
    """What was chosen and found in training, as JSON."""
    import numpy as np

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
    values = train.X.data if hasattr(train.X, "tocsr") else train.X
    return {
        "setwise": __version__,
        "rows": train.n_rows,
        "features": train.n_features,
        "labels": train.n_labels,
        "target": str(fitted.target),
        "chosen": settings_of(kind, classifier),
        "by_cross_validation": loss is not None,
        "choice": getattr(fitted.model[-1], "choice_", None),
        "stopped": getattr(fitted.model[-1], "stopped_", None),
        "cross_validated_loss": loss,
        "missing_features": int(np.isnan(values).sum()),
        "missing_rule": MEAN if fitted.fills_missing else AS_THEY_ARE,
        "unit": None if scale is None else scale.unit,
        "cross_validated_distance": None if scale is None or loss is None else scale.distance(loss),
        "test": tested,
        "guarantee": fitted.guarantee,
    }


def _words(fitted: Fitted) -> str:
    from setwise.study import Scale

    about, scale = fitted.about, Scale.of(fitted.target)
    loss, test = about["cross_validated_loss"], about["test"]

    def scored(loss: float) -> str:
        distance = "" if scale is None else f", mean tree distance {scale.said(loss)}"
        mean = "" if fitted.target.form == "population" else "mean "
        return f"{mean}loss {loss:.4f}, score {1 - loss:.4f}{distance}"

    chosen = settings_said(about["chosen"], about["by_cross_validation"])
    lines = [f"trained for {about['target']} on {about['rows']} rows: {chosen}"]
    if about["choice"] is not None:
        lines.append(f"not as usual: {about['choice']}")
    if about["stopped"] is not None:
        why = "time was up" if about["stopped"] == "time_budget" else "it was interrupted"
        lines.append(f"the search was cut, since {why}: this is the best model found so far")
    if loss is not None:
        optimistic = "the choice was made by it, so a little optimistic"
        lines.append(f"cross-validated: {scored(loss)} ({optimistic})")
    if test is not None:
        ends = f"95 % interval of the score {1 - test['high']:.4f} to {1 - test['low']:.4f}"
        lines.append(f"on {test['rows']} test rows: {scored(test['loss'])}, {ends}")
    if about["missing_features"]:
        lines.append(
            f"missing features ({about['missing_features']} in training): {about['missing_rule']}"
        )
    return "\n".join([*lines, f"guarantee: {about['guarantee']}"])


# ----------------------------------------------------------------------------- what is written


class Part(NamedTuple):
    """Some rows of a file: what was read and the label sets predicted, (n, n_labels)."""

    data: Any
    y_pred: Any


@dataclass(frozen=True, eq=False)
class Fitted:
    r"""What `setwise fit` writes: a model, how its file was read, and what it was trained for.

    Parameters
    ----------
    model : estimator
        Predicts label sets, a column for each label of the schema.
    schema : Schema
        Reads other files into the same columns.
    target : Target
        What the model was trained for.
    about : mapping
        What was chosen and found in training, as JSON.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from setwise import SetClassifier, get_target
    >>> from setwise.datasets import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "books.csv")
    ...     _ = file.write_text("pages,tags\n120,art;law\n80,law\n130,art;law\n70,law\n")
    ...     data = read(file, label_column="tags", separator=";")
    ...     model = SetClassifier("f1").fit(data.X, data.Y)
    ...     fitted = Fitted(model, data.schema, get_target("f1"))
    ...     [part.y_pred.tolist() for part in fitted.parts(file)]
    [[[1, 1], [0, 1], [1, 1], [0, 1]]]
    """

    model: Any
    schema: Schema
    target: Target
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label_names(self) -> list[str]:
        """The names of the labels, in the order of the columns of a prediction."""
        return [str(name) for name in self.schema.label_names]

    @property
    def guarantee(self) -> str:
        """What is proved of the model, in words."""
        return str(self.classifier.guarantee_)

    @property
    def classifier(self) -> Any:
        """The classifier itself, chosen and behind whatever prepares its inputs."""
        last = self.model[-1] if hasattr(self.model, "steps") else self.model
        return getattr(last, "best_estimator_", last)

    @property
    def has_probability(self) -> bool:
        """Whether the scores of the model are log-probabilities."""
        return getattr(self.classifier, "surrogate", "auto") in LIKELIHOODS

    @property
    def fills_missing(self) -> bool:
        """Whether missing features take their mean; else the model takes them as they are."""
        from sklearn.impute import SimpleImputer

        steps = getattr(self.model, "steps", ())
        return any(isinstance(step, SimpleImputer) for _, step in steps)

    @property
    def mean_row(self) -> Any:
        """The mean of each feature over the training rows, (1, n_features); None if not kept."""
        steps = getattr(self.model, "steps", ())
        means = (getattr(step, "statistics_", None) for _, step in steps)
        return next((row[None] for row in means if row is not None), None)

    @property
    def rows_at_once(self) -> int:
        """How many rows of a file are predicted together."""
        return rows_at_once(max(len(self.schema.label_names), self.classifier.n_features_in_))

    def parts(self, path: str | os.PathLike[str], rows: int | None = None) -> Iterator[Part]:
        """Predictions for the rows of a file, in order and in parts that fit into memory.

        Labels of the file are not looked at, and need not be there.
        """
        found = self.schema.chunks(path, self.rows_at_once if rows is None else rows)
        yield from (Part(data, sets) for data, sets in self.predicted(found))

    def predicted(self, parts: Iterable[Dataset]) -> Iterator[tuple[Dataset, Any]]:
        """Parts of a file with the label sets predicted for their rows.

        Where predictions depend on the rows that come together, all parts are read first.
        """
        if not getattr(self.classifier, "depends_on_batch_", False):
            yield from ((part, self.model.predict(part.X)) for part in parts)
            return
        whole = list(parts)
        if not whole:
            return
        sets = self.model.predict(joined_rows([part.X for part in whole]))
        first = 0
        for part in whole:
            yield part, sets[first : first + part.n_rows]
            first += part.n_rows

    def probability(self, X: Any) -> Any:
        """The probability of each label, (n, n_labels), without what rounding adds beyond 1."""
        return self.model.predict_proba(X).clip(0.0, 1.0)


def joined_rows(parts: list[Any]) -> Any:
    """Parts of an array, dense or sparse, as one."""
    import numpy as np
    from scipy.sparse import issparse, vstack

    return vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)


def rows_at_once(width: int) -> int:
    """How many rows of so many columns fit into memory."""
    return max(LEAST_ROWS, min(MOST_ROWS, MOST_ENTRIES // width))


def load_fitted(path: Path) -> Fitted:
    """What `setwise fit` wrote, or a ValueError."""
    from setwise.persistence import load

    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder, not a model that `setwise fit` wrote")
    loaded = load(path)
    if not isinstance(loaded, Fitted):
        raise ValueError(
            f"{path.name} holds a {type(loaded).__name__} without the columns of a file; expected "
            f"is a model that `setwise fit` wrote"
        )
    return loaded
