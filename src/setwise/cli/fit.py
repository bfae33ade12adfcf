"""`setwise fit DATA --target f1 -o model.skops`: train a model, and say what is known of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from setwise.cli.models import Asked, about, labels_of, no_trees, typed_of_models, words
from setwise.cli.options import (
    MODEL,
    Reading,
    can_write,
    command,
    concerning,
    decoder_asked,
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
ASKED = (
    *("target", "model", "surrogate", "space", "alpha", "scaling", "time", "jobs", "folds"),
    *("decoder", "budget", "at_most"),
)
# The exit status of a search that was interrupted, though a model is written.
INTERRUPTED = 130
# Surrogates whose scores are log-probabilities.
LIKELIHOODS = ("auto", "likelihood", "binary_relevance")


@command(
    output="Where the model goes, by custom .skops.",
    model="linear: a linear model, its settings chosen by cross-validation; booster: boosted trees "
    "(XGBoost); ensemble: a mixture of both and of extra trees. auto: linear, or with --time what "
    "is best for the data in that time.",
    surrogate="The loss that training minimises: likelihood (of whole label sets), "
    "binary_relevance (each label by itself), logistic, mean_absolute_error, ...; several with "
    "commas are tried. auto: likelihood, or what fits into memory.",
    space="Which label sets the model takes to be possible: catalog (those seen in training), "
    "joint (the same, each with weights of its own), sized (all, some sizes likelier), forest "
    "(all, labels depend on each other), cube (all, labels independent), in a hierarchy paths, "
    "closed; several with commas are tried. auto: by the data.",
    alpha="How strongly large weights are penalised: more for simpler models; several with commas "
    "are tried.",
    scaling="none; standard: features divided by their standard deviation; rows: each row divided "
    "by its length; several with commas are tried. auto: by whether the features are sparse.",
    time="Seconds; then the best model found so far is trained and written. Without --model, the "
    "model that is best in that time.",
    jobs="Threads; by default as many as there are processors.",
    cv="Whether cross-validation chooses all this.",
    folds="Of the cross-validation; by default by the number of rows.",
    precise="Print the whole statement of what is guaranteed, with its conditions and its source.",
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
    decoder: str = "auto",
    budget: int | None = None,
    at_most: int | None = None,
    time: float | None = None,
    jobs: int | None = None,
    cv: bool = True,
    folds: int | None = None,
    seed: int = 0,
    precise: bool = False,
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

    A folder of blocks that `setwise convert` wrote is trained on from the disk, so that rows may be
    more than fit into memory. A training that is cut off leaves a checkpoint beside the output,
    from which the same command goes on.

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
      setwise fit news.csv --label-column topics --target macro_f1 --at-most 3 -o model.skops
      setwise fit shop.csv --label-column cats --path-separator / --close --target tree -o m.skops
      setwise fit blocks --no-cv --alpha 0.001 -o model.skops
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
    from setwise.cli.blocks import BlockData
    from setwise.estimators.checkpoint import remove
    from setwise.persistence import save

    rows = _rows(data, test, test_share, seed, reading)
    judged: Any = target_for(target, rows)
    with concerning(typed(context, *ASKED)):
        decides = decoder_asked(judged, decoder, budget, at_most)
    asked = replace(asked, target=judged, decoder=decides)
    train = rows.train() if "train" in (rows.split or {}) else rows
    kind, why = asked.chosen_for(train, isinstance(rows, BlockData))
    if why is not None:
        echo(f"setwise: {why}", err=True)
    if kind == "ensemble" and (missing := no_trees()):
        echo(f"setwise: the mixture has no boosted trees: {missing}", err=True)
    with concerning(typed(context, *ASKED)):
        if isinstance(rows, BlockData):
            trained = rows.fitted(asked.linear(rows), _checkpoint(output, cv))
        else:
            trained = asked.estimator(kind, train).fit(train.X, labels_of(train))
    assert rows.schema is not None
    fitted = Fitted(trained, rows.schema, judged)
    fitted = replace(fitted, about={"data": data.name, **about(kind, fitted, rows, train)})
    save(fitted, output)
    if isinstance(rows, BlockData):
        # (Not before the model is there: an interrupt in between would lose what was learnt.)
        remove(_checkpoint(output, cv))
    told = f"{rows}\n{words(fitted, precise)}\nwrote {output}"
    say(json, {**fitted.about, "output": str(output)}, told)
    return INTERRUPTED if fitted.about["stopped"] == "interrupt" else 0


def _rows(
    data: Path, test: Path | None, test_share: float | None, seed: int, reading: Reading
) -> Any:
    """The rows of a file, or of a folder of blocks."""
    from setwise.blocks.folder import is_block_folder
    from setwise.cli.blocks import BlockData

    if not is_block_folder(data):
        return held_out(reading.read(data, test), test_share, seed)
    if test is not None or test_share is not None:
        raise ValueError(
            "--test and --test-share are for files: of blocks, all rows are trained on; convert "
            "the rows to test on by themselves"
        )
    if reading != Reading():
        raise ValueError(
            f"{str(data)!r} is a folder of blocks, which was read when it was converted: options "
            f"of reading belong to `setwise convert`"
        )
    return BlockData.opened(data)


def _checkpoint(output: Path, cv: bool) -> Path:
    """Where what was learnt so far is kept: a file of a fit, or a folder of a search."""
    return output.with_name(f"{output.name}.{'search' if cv else 'checkpoint'}")


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

    def decided_by(self, decoder: Any) -> Fitted:
        """The same model, its label sets decided in another way; nothing is trained again."""
        from sklearn.pipeline import Pipeline

        if not hasattr(self.model, "steps"):
            return replace(self, model=self.model.for_target(self.target, decoder))
        *before, (name, last) = self.model.steps
        last = last.for_target(self.target, decoder)
        return replace(self, model=Pipeline([*before, (name, last)]))

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
        found = self.chunks(path, self.rows_at_once if rows is None else rows)
        yield from (Part(data, sets) for data, sets in self.predicted(found))

    def chunks(self, path: str | os.PathLike[str], rows: int, **options: Any) -> Iterator[Dataset]:
        """The rows of a file, or of a folder of blocks, in parts, without their labels."""
        from setwise.blocks.folder import is_block_folder
        from setwise.cli.blocks import BlockData

        if not is_block_folder(path):
            return self.schema.chunks(path, rows, **options)
        return BlockData.opened(Path(path)).chunks(self.schema, rows)

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
