"""`setwise predict MODEL DATA`: label sets for new rows, however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setwise.cli.messages import note
from setwise.cli.output import can_write, opened_output
from setwise.cli.standard_input import as_file

if TYPE_CHECKING:
    from setwise.cli.label_rows import LabelRows
    from setwise.fitted import Fitted


def predict(
    model: Annotated[Path, typer.Argument(help="A file that `setwise fit` wrote.")],
    data: Annotated[
        Path,
        typer.Argument(
            help="A file with the columns of the training file, labels or not; - for "
            "the standard input."
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file; by default the standard output.")
    ] = None,
    format: Annotated[
        str,
        typer.Option(
            help="labels: CSV, one column that lists them; columns: CSV, a column of 0 and 1 each; "
            "json: a line of JSON a row; probabilities: CSV, the probability of each label."
        ),
    ] = "labels",
    separator: Annotated[
        str | None,
        typer.Option(help="Between listed labels; by default that of the training file, else ;"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    r"""Predict the label sets of new rows, in order, a line each.

    Files are read and predicted in parts, so they may be larger than memory. The output file
    appears when it is complete.

    \b
    Examples:
      setwise predict model.skops new.csv
      setwise predict model.skops new.csv -o predictions.csv
      setwise predict model.skops new.csv --format probabilities -o probabilities.csv
      gunzip -c new.csv.gz | setwise predict model.skops - --json

    Exit status: 0 fine; 2 the file or the model cannot be read; 130 interrupted, and nothing is
    written.
    """
    can_write(output, (model, data))
    fitted = load_fitted(model)
    lines = _lines(fitted, "json" if json else format, separator)
    probable = lines.format == "probabilities"
    if probable and not fitted.has_probability:
        raise ValueError(
            f"{model.name} was trained on {fitted.classifier.surrogate}, whose scores are no "
            f"log-probabilities; train it on likelihood or binary_relevance to have probabilities"
        )
    with as_file(data, _suffix(fitted)) as path, opened_output(output) as file:
        parts = _probabilities(fitted, path) if probable else _label_sets(fitted, path)
        file.writelines(lines.stream(parts))
    if output is not None:
        note(f"wrote {output}")


def _label_sets(fitted: Fitted, path: Path) -> Iterator[Any]:
    return (part.y_pred for part in fitted.parts(path))


def _probabilities(fitted: Fitted, path: Path) -> Iterator[Any]:
    chunks = fitted.schema.chunks(path, fitted.rows_at_once)
    return (fitted.probability(data.X) for data in chunks)


def load_fitted(path: Path) -> Fitted:
    """What `setwise fit` wrote, or a ValueError."""
    from setwise.fitted import Fitted
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


def _lines(fitted: Fitted, format: str, separator: str | None) -> LabelRows:
    """Written so that the same options read it that read the training file."""
    from setwise.cli.label_rows import SEPARATOR, LabelRows

    source = getattr(fitted.schema, "labels", None)
    column = str(getattr(source, "column", "labels"))
    own = str(getattr(source, "separator", SEPARATOR))
    return LabelRows(fitted.label_names, format, column, own if separator is None else separator)


def _suffix(fitted: Fitted) -> str:
    """Of the training file: what comes by the standard input is read as that was."""
    from setwise.datasets.files import plain_name

    return Path(plain_name(str(fitted.about.get("data", "")))).suffix
