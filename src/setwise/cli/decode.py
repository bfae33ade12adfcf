"""`setwise decode PROBABILITIES --target f1`: the best sets, from any probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setwise.cli.messages import note
from setwise.cli.output import can_write, opened_output
from setwise.cli.reading import require_known
from setwise.cli.standard_input import as_file
from setwise.cli.taxonomy import FILE_HELP, NEEDED, PATH_HELP, taxonomy_over

if TYPE_CHECKING:
    from setwise.cli.probability_file import ProbabilityFile
    from setwise.targets import TreeDistance

MOST_ROWS, MOST_ENTRIES, LEAST_ROWS = 10_000, 2**23, 64


def decode(
    probabilities: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV, Parquet, NPY or NPZ (an array, or a sparse matrix): a row for each, a "
            "column for each label. The first line of a text may be names. - for the standard "
            "input, as CSV."
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            help="What the label sets are judged by: hamming, f1, f2, jaccard, subset, "
            "precision@3, recall@5, ..., tree (with --taxonomy or --path-separator)."
        ),
    ] = "f1",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file; by default the standard output.")
    ] = None,
    format: Annotated[
        str,
        typer.Option(
            help="labels: CSV, one column that lists them; columns: CSV, a column of 0 and 1 each; "
            "json: a line of JSON a row."
        ),
    ] = "labels",
    separator: Annotated[str, typer.Option(help="Between listed labels.")] = ";",
    taxonomy: Annotated[Path | None, typer.Option(help=FILE_HELP)] = None,
    path_separator: Annotated[str | None, typer.Option(help=PATH_HELP)] = None,
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
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
    from setwise.cli.label_rows import LabelRows
    from setwise.cli.probability_file import ProbabilityFile
    from setwise.decoders import MinimumRisk

    wanted = "json" if json else format
    if wanted == "probabilities":
        raise ValueError("--format must be labels, columns or json: probabilities go in, not out")
    require_known(target)
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
    if output is not None:
        note(f"wrote {output}")


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
