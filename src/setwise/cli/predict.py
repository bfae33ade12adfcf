"""`setwise predict` and `setwise decode`: label sets by a model, or from any probabilities."""

from __future__ import annotations

import csv
import io
import json as json_text
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from setwise.cli.fit import load_fitted, rows_at_once
from setwise.cli.options import NEEDED, Reading, can_write, command, opened_output, target_for

FORMATS = ("labels", "columns", "json", "probabilities")
SHARED = {"output": "A file; by default the standard output.", "json": "The same as --format json."}
LINES = (
    "labels: CSV, one column that lists them; columns: CSV, a column of 0 and 1 each; json: a line "
    "of JSON a row"
)


@command(
    **SHARED,
    data="A file with the columns of the training file, labels or not; - for the standard input.",
    format=f"{LINES}; probabilities: CSV, the probability of each label.",
    separator="Between listed labels; by default that of the training file, else ;",
)
def predict(
    model: Path,
    data: Path,
    *,
    output: Path | None = None,
    format: str = "labels",
    separator: str | None = None,
    json: bool = False,
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
    from setwise.cli.tables import as_file

    can_write(output, (model, data))
    fitted, format = load_fitted(model), "json" if json else format
    # Written so that the same options read it that read the training file.
    source = getattr(fitted.schema, "labels", None)
    column, probable = getattr(source, "column", None), format == "probabilities"
    own = ";" if source is None or column is None else source.separator
    if probable and not fitted.has_probability:
        raise ValueError(
            f"{model.name} was trained on {fitted.classifier.surrogate}, whose scores are no "
            f"log-probabilities; train it on likelihood or binary_relevance to have probabilities"
        )
    # What comes by the standard input is read as the training file was, unpacked.
    name = Path(str(fitted.about.get("data", "")))
    packed = name.suffix.lower() in (".gz", ".bz2", ".xz", ".zst")
    suffix = Path(name.stem).suffix if packed else name.suffix
    with as_file(data, suffix) as path, opened_output(output) as file:
        found = fitted.probability if probable else fitted.model.predict
        chunks = fitted.schema.chunks(path, fitted.rows_at_once)
        values = (found(part.X) for part in chunks)
        mark, column = own if separator is None else separator, str(column or "labels")
        file.writelines(written(values, fitted.label_names, format, mark, column))


@command(
    **SHARED,
    probabilities="CSV, TSV, Parquet, NPY or NPZ (an array, or a sparse matrix): a row for each, a "
    "column for each label. The first line of a text may be names. - for the standard input, as "
    "CSV.",
    format=f"{LINES}.",
    separator="Between listed labels.",
)
def decode(
    probabilities: Path,
    *,
    target: str = "f1",
    output: Path | None = None,
    format: str = "labels",
    separator: str = ";",
    taxonomy: Path | None = None,
    path_separator: str | None = None,
    json: bool = False,
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
    from setwise.targets.registry import known_name

    wanted = "json" if json else format
    if wanted == "probabilities":
        raise ValueError("--format must be labels, columns or json: probabilities go in, not out")
    judged: Any = None if known_name(target) == "tree" else target_for(target)
    if judged is not None and (taxonomy is not None or path_separator is not None):
        raise ValueError("--taxonomy and --path-separator are for --target tree")
    with as_file(probabilities, ".csv") as path:
        file = ProbabilityFile.opened(path)
        if judged is None:
            reading = Reading(taxonomy=taxonomy, path_separator=path_separator)
            file, judged = _in_taxonomy(file, reading)
        parts = file.parts(rows_at_once(len(file.names)))
        found = map(MinimumRisk(judged).decode, parts)
        with opened_output(output) as lines:
            lines.writelines(written(found, file.names, wanted, separator))


def _in_taxonomy(file: Any, reading: Reading) -> tuple[Any, Any]:
    """The file and the distance over its labels; columns without names are the taxonomy's."""
    from setwise.labels import some
    from setwise.targets import TreeDistance

    found = reading.over(file.names, file.path.name)
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


def written(
    parts: Iterable[Any], names: Sequence[str], format: str, separator: str, column: str = "labels"
) -> Iterator[bytes]:
    """Label sets, or probabilities, (n, n_labels) each, as the bytes of a file.

    ``labels`` is CSV with one column that lists the labels of a row, separators between;
    ``columns`` CSV with a column of 0 and 1 for each label; ``json`` a line of JSON for each row;
    ``probabilities`` CSV with the probability of each label.
    """
    from scipy.sparse import csr_array

    if format not in FORMATS:
        raise ValueError(f"--format must be one of {', '.join(FORMATS)}, not {format!r}")
    for name in names if format == "labels" else ():
        if not separator or separator in name or name != name.strip() or name == "?":
            raise ValueError(
                f"the label {name!r} could not be told from others in a list with {separator!r} "
                f"between; choose another --separator, or --format json"
            )
    # The header comes with the rows of the first part, if there is one.
    head = b"" if format == "json" else _csv([[column] if format == "labels" else names])
    for values in parts:
        if format in ("columns", "probabilities"):
            # (As short as is enough to read the same number again.)
            rows = _csv((values.toarray() if hasattr(values, "toarray") else values).tolist())
        else:
            sets: Any = csr_array(values, copy=True)
            sets.eliminate_zeros()
            sets.sort_indices()
            chosen: Any = [names[label] for label in sets.indices.tolist()]
            lists = [chosen[start:end] for start, end in pairwise(sets.indptr.tolist())]
            rows = _csv([[separator.join(labels)] for labels in lists])
            if format == "json":
                told = [json_text.dumps({"labels": own}, ensure_ascii=False) for own in lists]
                rows = "".join(f"{line}\n" for line in told).encode()
        yield head + rows
        head = b""
    yield head


def _csv(rows: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
