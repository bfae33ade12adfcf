"""`setwise predict` and `setwise decode`: label sets by a model, or from any probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setwise.cli.options import (
    NEEDED,
    ModelFile,
    Output,
    PathSeparator,
    TargetName,
    TaxonomyFile,
    require_target,
    taxonomy_over,
)
from setwise.cli.output import SEPARATOR, LabelRows, can_write, opened_output

if TYPE_CHECKING:
    from setwise.cli.model_file import Fitted
    from setwise.cli.tables import ProbabilityFile
    from setwise.targets import TreeDistance

OutputJson = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
MOST_ROWS, MOST_ENTRIES, LEAST_ROWS = 10_000, 2**23, 64


def predict(
    model: ModelFile,
    data: Annotated[
        Path,
        typer.Argument(
            help="A file with the columns of the training file, labels or not; - for "
            "the standard input."
        ),
    ],
    output: Output = None,
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
    json: OutputJson = False,
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
    from setwise.cli.model_file import load_fitted
    from setwise.cli.tables import as_file

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
        found = fitted.probability if probable else fitted.model.predict
        chunks = fitted.schema.chunks(path, fitted.rows_at_once)
        file.writelines(lines.stream(found(part.X) for part in chunks))


def _lines(fitted: Fitted, format: str, separator: str | None) -> LabelRows:
    """Written so that the same options read it that read the training file."""
    source = getattr(fitted.schema, "labels", None)
    column = str(getattr(source, "column", None) or "labels")
    own = SEPARATOR if source is None or source.column is None else source.separator
    return LabelRows(fitted.label_names, format, column, own if separator is None else separator)


def _suffix(fitted: Fitted) -> str:
    """Of the training file: what comes by the standard input is read as that was."""
    name = Path(str(fitted.about.get("data", "")))
    packed = name.suffix.lower() in (".gz", ".bz2", ".xz", ".zst")
    return Path(name.stem).suffix if packed else name.suffix


def decode(
    probabilities: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV, Parquet, NPY or NPZ (an array, or a sparse matrix): a row for each, a "
            "column for each label. The first line of a text may be names. - for the standard "
            "input, as CSV."
        ),
    ],
    target: TargetName = "f1",
    output: Output = None,
    format: Annotated[
        str,
        typer.Option(
            help="labels: CSV, one column that lists them; columns: CSV, a column of 0 and 1 each; "
            "json: a line of JSON a row."
        ),
    ] = "labels",
    separator: Annotated[str, typer.Option(help="Between listed labels.")] = ";",
    taxonomy: TaxonomyFile = None,
    path_separator: PathSeparator = None,
    json: OutputJson = False,
) -> None:
    r"""Turn probabilities into the label sets of least expected loss for a target.

    Labels are taken as independent given the row. Cutting at 0.5 is best for Hamming loss only;
    for F1, say, a label of probability 0.4 is often worth the risk. Texts and NPY files are taken
    in parts, so they may be larger than memory.

    \b
    Examples:
      setwise decode probabilities.csv --target f1 -o predictions.csv
      setwise decode probabilities.npy --target precision@3 --json
      setwise decode probabilities.csv --target tree --path-separator /
      setwise predict model.skops new.csv --format probabilities | setwise decode - --target f2

    Exit status: 0 fine; 2 the file or an option is wrong; 130 interrupted, nothing is written.
    """
    can_write(output, (probabilities, taxonomy))
    from setwise.cli.tables import ProbabilityFile, as_file
    from setwise.decoders import MinimumRisk

    wanted = "json" if json else format
    if wanted == "probabilities":
        raise ValueError("--format must be labels, columns or json: probabilities go in, not out")
    require_target(target)
    if target != "tree" and (taxonomy is not None or path_separator is not None):
        raise ValueError("--taxonomy and --path-separator are for --target tree")
    with as_file(probabilities, ".csv") as path:
        file = ProbabilityFile.opened(path)
        if target == "tree":
            file, tree = _in_taxonomy(file, taxonomy, path_separator)
            decoder = MinimumRisk(tree)
        else:
            decoder = MinimumRisk(target)
        lines = LabelRows(file.names, wanted, separator=separator)
        rows = max(LEAST_ROWS, min(MOST_ROWS, MOST_ENTRIES // len(file.names)))
        with opened_output(output) as written:
            written.writelines(lines.stream(map(decoder.decode, file.parts(rows))))


def _in_taxonomy(
    file: ProbabilityFile, taxonomy: Path | None, separator: str | None
) -> tuple[ProbabilityFile, TreeDistance]:
    """The file and the distance over its labels; columns without names are the taxonomy's."""
    from dataclasses import replace

    from setwise.labels import some
    from setwise.targets import TreeDistance

    found = taxonomy_over(file.names, taxonomy, separator, file.path.name)
    if found is None:
        raise ValueError(f"the target tree needs a hierarchy; {NEEDED}")
    if not file.headed and found.n_labels == len(file.names):
        return replace(file, names=found.names.tolist()), TreeDistance(found)
    missing = [name for name in found.names.tolist() if name not in file.names]
    if missing:
        raise ValueError(
            f"{file.path.name} must have a column for each label of the taxonomy, but there is "
            f"none for {some(missing)}"
        )
    return file, TreeDistance(found.over(file.names))
