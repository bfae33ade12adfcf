"""`setwise fit DATA --target f1 -o model.skops`: train a model, and say what is known of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from setwise.cli.models import ModelOptions, about, labels_of, no_trees, words
from setwise.cli.options import (
    DONE,
    INTERRUPTED,
    MODEL,
    can_write,
    command,
    concerning,
    echo,
    say,
    typed,
)
from setwise.cli.reading import Decoding, Reading, held_out, refuse_unknown, target_for

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


@command(
    output="Where to write the model; the usual suffix is .skops.",
    model="linear: a linear model whose settings are chosen by cross-validation; booster: boosted "
    "trees (XGBoost); ensemble: a mixture of linear models, extra trees and boosted trees. auto: "
    "linear, or with --time whichever is best for the data in that time.",
    surrogate="The loss that training minimises: likelihood (of whole label sets), "
    "binary_relevance (each label on its own), logistic, mean_absolute_error, ... A "
    "comma-separated list is tried in turn. auto: likelihood, or what fits into memory.",
    space="Which label sets the model considers possible: catalog (those seen in training), joint "
    "(the same, with separate weights for each set), sized (all; models the number of labels), "
    "forest (all; pairs of labels depend on each other), cube (all; labels are independent); for a "
    "hierarchy also paths and closed. A comma-separated list is tried in turn. auto: depends on "
    "the data.",
    alpha="Strength of the L2 penalty; larger values give simpler models. A comma-separated list "
    "is tried in turn.",
    scaling="none; standard: divide features by their standard deviation; rows: divide each row by "
    "its length. A comma-separated list is tried in turn. auto: depends on whether the features "
    "are sparse.",
    time="Time limit in seconds. When it is reached, the best model found so far is trained and "
    "written. Without --model, also chooses the kind of model that is best in that time.",
    jobs="Number of threads. Default: one per processor.",
    cv="Whether to choose the settings by cross-validation.",
    folds="Number of cross-validation folds. Default: depends on the number of rows.",
    precise="Print the full statement of what is guaranteed, with its conditions and source.",
)
def fit(
    context: typer.Context,
    data: Path,
    *,
    output: Path,
    target: str = "f1",
    test: Path | None = None,
    test_share: float | None = None,
    options: ModelOptions,
    decoding: Decoding,
    precise: bool = False,
    json: bool = False,
    reading: Reading,
) -> int:
    r"""Train a model for the measure you are judged by.

    Writes one model file, which also remembers the columns it was trained on. Prints what was
    chosen, how good the model is, and what is guaranteed. If there are rows to test on (--test,
    --test-share, or the file's own test split), the model is trained on the other rows only.

    Missing feature values are replaced by the column's mean over the training rows. Boosted trees
    handle missing values and columns of categories themselves.

    With --time and no --model, setwise trains a mixture of linear models, extra trees and boosted
    trees if the time is long enough for it, and otherwise a linear model.

    Long searches report their progress on standard error. Ctrl-C has the same effect as reaching
    the time limit: the best model so far is trained and written. A second Ctrl-C stops at once.

    A folder written by `setwise convert` is trained on from disk, so the rows need not fit into
    memory. If such a run is cut off, it leaves a checkpoint next to the output, and the same
    command resumes from it.

    Labels may form a hierarchy, given by the file itself, by --taxonomy or by --path-separator.
    With the target tree, every predicted label set includes the ancestors of its labels.

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

    Exit status: 0 success; 2 the file or an option is wrong; 130 interrupted (standard error says
    whether the best model so far was written).
    """
    can_write(output, (data, test, reading.xml, reading.taxonomy), MODEL)
    if test is not None and test_share is not None:
        raise ValueError("--test and --test-share exclude each other")
    typed_of_models = options.typed(context)
    refuse_unknown(target)
    if options.model == "booster" and (missing := no_trees()):
        raise ImportError(missing)
    from setwise.cli.blocks import BlockData
    from setwise.estimators.checkpoint import remove
    from setwise.persistence import save

    rows = _rows(data, test, test_share, options.seed, reading)
    judged: Any = target_for(target, rows)
    with concerning(typed(context, *ASKED)):
        decoder = decoding.asked(judged)
    # What was learnt so far is kept in a file of a fit, or in a folder of a search.
    checkpoint = output.with_name(f"{output.name}.{'search' if options.cv else 'checkpoint'}")
    train = rows.train() if "train" in (rows.split or {}) else rows
    kind, why = options.chosen_for(train, isinstance(rows, BlockData), typed_of_models)
    if why is not None:
        echo(f"setwise: {why}", err=True)
    if kind == "ensemble" and (missing := no_trees()):
        echo(f"setwise: the mixture has no boosted trees: {missing}", err=True)
    with concerning(typed(context, *ASKED)):
        if isinstance(rows, BlockData):
            trained = rows.fitted(options.linear(rows, judged, decoder), checkpoint)
        else:
            model = options.estimator(kind, train, judged, decoder)
            trained = model.fit(train.X, labels_of(train))
    assert rows.schema is not None
    fitted = Fitted(trained, rows.schema, judged)
    split = None if test_share is None else {"test_share": test_share, "seed": options.seed}
    file = {"data": data.name, "digest": digest_of(data), "held_out": split}
    fitted = replace(fitted, about={**file, **about(kind, fitted, rows, train)})
    save(fitted, output)
    if isinstance(rows, BlockData):
        # (Not before the model is there: an interrupt in between would lose what was learnt.)
        remove(checkpoint)
    told = f"{rows}\n{words(fitted, precise)}\nwrote {output}"
    say(json, {**fitted.about, "output": str(output)}, told)
    # (Also of a search that was interrupted, though a model is written.)
    return INTERRUPTED if fitted.about["stopped"] == "interrupt" else DONE


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


def digest_of(path: Path) -> str | None:
    """SHA-256 of what is in a file, by which it is known again; None of a folder."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
    model : Pipeline
        Predicts label sets, a column for each label of the schema; ends with the classifier.
    schema : Schema
        Reads other files into the same columns.
    target : Target
        What the model was trained for.
    about : mapping
        What was chosen and found in training, as JSON.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.pipeline import make_pipeline
    >>> from setwise import SetClassifier, get_target
    >>> from setwise.datasets import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "books.csv")
    ...     _ = file.write_text("pages,tags\n120,art;law\n80,law\n130,art;law\n70,law\n")
    ...     data = read(file, label_column="tags", separator=";")
    ...     model = make_pipeline(SetClassifier("f1")).fit(data.X, data.Y)
    ...     fitted = Fitted(model, data.schema, get_target("f1"))
    ...     [part.y_pred.tolist() for part in fitted.parts(file)]
    [[[1, 1], [0, 1], [1, 1], [0, 1]]]
    """

    model: Any
    schema: Schema
    target: Target
    about: Mapping[str, Any] = field(default_factory=dict)

    def is_of(self, path: Path) -> bool:
        """Whether the model was trained on this file, whatever it is called now."""
        known = self.about.get("digest")
        return known is not None and known == digest_of(path)

    def split_again(self, rows: Dataset) -> Dataset:
        """The rows of the file it was trained on, with those that `--test-share` held out."""
        how = self.about.get("held_out")
        return rows if how is None else held_out(rows, how["test_share"], how["seed"])

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
        return getattr(self.model[-1], "best_estimator_", self.model[-1])

    def decided_by(self, decoder: Any) -> Fitted:
        """The same model, its label sets decided in another way; nothing is trained again."""
        from sklearn.pipeline import Pipeline

        *before, (name, last) = self.model.steps
        last = last.for_target(self.target, decoder)
        return replace(self, model=Pipeline([*before, (name, last)]))

    @property
    def has_probability(self) -> bool:
        """Whether the scores of the model are log-probabilities."""
        from setwise.study.work import has_probability

        return has_probability(self.model)

    @property
    def fills_missing(self) -> bool:
        """Whether missing features take their mean; else the model takes them as they are."""
        return self.mean_row is not None

    @property
    def mean_row(self) -> Any:
        """The mean of each feature over the training rows, (1, n_features); None if not kept."""
        means = getattr(self.model[0], "statistics_", None)
        return None if means is None else means[None]

    @property
    def rows_at_once(self) -> int:
        """How many rows of a file are predicted together."""
        return rows_at_once(max(len(self.schema.label_names), self.classifier.n_features_in_))

    def parts(self, path: str | os.PathLike[str], rows: int | None = None) -> Iterator[Part]:
        """Predictions for the rows of a file, in order and in parts that fit into memory.

        Labels of the file are not looked at, and need not be there.
        """
        return self.predicted(self.chunks(path, self.rows_at_once if rows is None else rows))

    def chunks(self, path: str | os.PathLike[str], rows: int, **options: Any) -> Iterator[Dataset]:
        """The rows of a file, or of a folder of blocks, in parts, without their labels."""
        from setwise.blocks.folder import is_block_folder
        from setwise.cli.blocks import BlockData

        if not is_block_folder(path):
            return self.schema.chunks(path, rows, **options)
        return BlockData.opened(Path(path)).chunks(self.schema, rows)

    def predicted(self, parts: Iterable[Dataset]) -> Iterator[Part]:
        """Parts of a file with the label sets predicted for their rows.

        Where predictions depend on the rows that come together, all parts are read first.
        """
        if not getattr(self.classifier, "depends_on_batch_", False):
            yield from (Part(part, self.model.predict(part.X)) for part in parts)
            return
        from setwise.datasets.schema import stacked

        whole, first = list(parts), 0
        if not whole:
            return
        sets = self.model.predict(stacked([part.X for part in whole]))
        for part in whole:
            yield Part(part, sets[first : first + part.n_rows])
            first += part.n_rows

    def probability(self, X: Any) -> Any:
        """The probability of each label, (n, n_labels), without what rounding adds beyond 1."""
        return self.model.predict_proba(X).clip(0.0, 1.0)


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
