"""`setwise evaluate`: all figures of a model on a file, or of predictions against the truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setwise.cli.flat import flat
from setwise.cli.output import say
from setwise.cli.reading import Reading, names

if TYPE_CHECKING:
    from setwise.evaluation import Evaluation

# Of so many entries (rows times labels) or fewer, probabilities are judged too.
MOST_PROBABILITIES = 50_000_000


@flat
def evaluate(
    reading: Reading,
    model: Annotated[Path | None, typer.Argument(help="A file that `setwise fit` wrote.")] = None,
    data: Annotated[
        Path | None, typer.Argument(help="A file with the same columns and the true labels.")
    ] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Instead: a table of predicted labels.")
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(help="With it: a table of true labels, row for row.")
    ] = None,
    probabilities: Annotated[
        Path | None, typer.Option(help="With it: the probability of each label, for calibration.")
    ] = None,
    targets: Annotated[
        str | None, typer.Option(help="Further targets, commas between; their losses are added.")
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(help="Part of a file that has a split: test (default there), train, or all."),
    ] = None,
    resamples: Annotated[int, typer.Option(help="Behind the intervals; 0 for none.", min=0)] = 1000,
    confidence: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of the resamples.", min=0)] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    r"""Print every figure of a prediction with its interval: a model's, or one in a file.

    A model reads the file as it read its training file. With --predictions and --truth, the options
    below say which columns of both tables are labels; of the predictions of `setwise predict`,
    the same options that read the training file.

    \b
    Examples:
      setwise evaluate model.skops new.csv
      setwise evaluate model.skops new.csv --targets f2,precision@1 --json
      setwise evaluate --predictions out.csv --truth new.csv --label-column tags --separator ";"

    Exit status: 0 fine; 2 a file or an option is wrong.
    """
    if (model is None) == (predictions is None):
        raise ValueError("evaluate either MODEL DATA, or --predictions P --truth T")
    options: dict[str, Any] = {
        "targets": names(targets or ""),
        "n_bootstrap": resamples,
        "confidence": confidence,
        "random_state": seed,
    }
    if predictions is not None:
        if truth is None or data is not None:
            raise ValueError("--predictions goes with --truth, and without DATA")
        judged = _of_files(predictions, truth, probabilities, reading, options)
    else:
        if truth is not None or probabilities is not None or reading != Reading():
            raise ValueError(
                "a model reads the file as it read its training file: --truth, --probabilities and "
                "options of reading go with --predictions"
            )
        if model is None or data is None:
            raise ValueError("evaluate MODEL DATA: there is no DATA")
        judged = _of_model(model, data, part, options)
    say(json, judged.to_dict(), str(judged))


def _of_model(model: Path, data: Path, part: str | None, options: dict[str, Any]) -> Evaluation:
    from setwise.cli.predict import load_fitted
    from setwise.evaluation import evaluate as figures

    fitted = load_fitted(model)
    rows = fitted.schema.read(data)
    if part != "all" and (part is not None or (rows.split and "test" in rows.split)):
        rows = rows.part(part or "test")
    known = fitted.has_probability and rows.n_rows * rows.n_labels <= MOST_PROBABILITIES
    if str(fitted.target) not in options["targets"]:
        options["targets"] = [fitted.target, *options["targets"]]
    return figures(
        fitted.model.predict(rows.X),
        rows.Y,
        probability=fitted.probability(rows.X) if known else None,
        **options,
    )


def _of_files(
    predictions: Path, truth: Path, probabilities: Path | None, reading: Reading,
    options: dict[str, Any],
) -> Evaluation:  # fmt: skip
    from setwise.cli.label_tables import aligned_probabilities, label_tables
    from setwise.evaluation import evaluate as figures

    (y_pred, y_true), labels = label_tables([predictions, truth], reading)
    if y_pred.shape[0] != y_true.shape[0]:
        raise ValueError(
            f"{predictions.name} has {y_pred.shape[0]} rows and {truth.name} has "
            f"{y_true.shape[0]}: a row of one must be a row of the other"
        )
    known = None
    if probabilities is not None:
        known = aligned_probabilities(probabilities, labels, y_true.shape[0])
    return figures(y_pred, y_true, probability=known, **options)
