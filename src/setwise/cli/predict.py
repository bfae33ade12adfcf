"""`setwise predict` and `setwise decode`: label sets by a model, or from any probabilities."""

from __future__ import annotations

import csv
import io
import json as json_text
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import typer

from setwise.cli.fit import load_fitted, rows_at_once
from setwise.cli.options import (
    can_write,
    command,
    concerning,
    names,
    opened_output,
    say_unseen,
    typed,
)
from setwise.cli.reading import NEEDED, Decoding, Reading, target_for
from setwise.terminal import no_formula

# Options that say how label sets are decided.
DECIDING = ("decoder", "budget", "at_most")
LINES = (
    "labels: CSV with one column that lists the labels; columns: CSV with a 0/1 column per label; "
    "json: one line of JSON per row"
)
SHARED = {
    "output": "Where to write the predictions. Default: standard output.",
    "json": "Same as --format json.",
    "keep": "Columns of the input to copy to the output, before the labels; comma-separated.",
    "most_specific": "In a hierarchy, leave out every label that has a descendant in the same row.",
    "spreadsheet": "Make the output safe to open in a spreadsheet: quote all text, and put ' "
    "before text that would run as a formula (it starts with = + - @, a tab or a line break).",
}


@command(
    **SHARED,
    data="A file with the same columns as the training file (labels are not needed), a folder "
    "written by `setwise convert`, or - for standard input.",
    format=f"{LINES}; probabilities: CSV with the probability of each label.",
    separator="What separates listed labels. Default: as in the training file, otherwise ;",
)
def predict(
    context: typer.Context,
    model: Path,
    data: Path,
    *,
    output: Path | None = None,
    format: Literal["labels", "columns", "json", "probabilities"] = "labels",
    separator: str | None = None,
    decoding: Decoding,
    keep: str = "",
    most_specific: bool = False,
    unseen_categories: Literal["refuse", "zeros"] | None = None,
    spreadsheet: bool = False,
    json: bool = False,
) -> None:
    r"""Predict the labels of new rows, one output line per row.

    The file is processed in parts, so it may be larger than memory. The output file appears only
    once it is complete. Missing feature values are replaced by the column's mean over the training
    rows; standard error says how many there were, and how many unknown categories.

    --decoder, --budget and --at-most change how probabilities are turned into label sets; the model
    is not trained again.

    \b
    Examples:
      setwise predict model.skops new.csv
      setwise predict model.skops new.csv --keep id,title -o predictions.csv
      setwise predict model.skops new.csv --format probabilities -o probabilities.csv
      setwise predict model.skops new.csv --at-most 3 -o predictions.csv
      setwise predict model.skops new.csv --unseen-categories zeros --spreadsheet -o for-excel.csv
      gunzip -c new.csv.gz | setwise predict model.skops - --json

    Exit status: 0 success; 2 the file or the model cannot be read; 130 interrupted, nothing is
    written.
    """
    from setwise.cli.tables import as_file
    from setwise.datasets.unseen import Unseen

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
    if asked := typed(context, *DECIDING):
        if probable:
            raise ValueError(f"{asked}: label sets are decided, not --format probabilities")
        with concerning(asked):
            fitted = fitted.decided_by(decoding.asked(fitted.target))
    mark, kept = own if separator is None else separator, tuple(names(keep))
    lines = Lines(
        fitted.label_names, format, mark, str(column or "labels"), kept, spreadsheet, most_specific
    )
    unseen, n_missing = Unseen(), 0

    def found(path: Path) -> Iterator[Any]:
        nonlocal unseen, n_missing
        chunks = fitted.chunks(path, fitted.rows_at_once, unseen_categories=unseen_categories)
        of_parts = ((part, fitted.probability(part.X)) for part in chunks)
        for part, values in of_parts if probable else fitted.predicted(chunks):
            unseen, n_missing = unseen + part.unseen, n_missing + part.n_missing
            yield _of_hierarchy(part, model).most_specific(values) if most_specific else values

    # What comes by the standard input is read as the training file was, unpacked.
    name = Path(str(fitted.about.get("data", "")))
    packed = name.suffix.lower() in (".gz", ".bz2", ".xz", ".zst")
    suffix = Path(name.stem).suffix if packed else name.suffix
    with as_file(data, suffix) as path, opened_output(output) as file:
        beside = fitted.schema.texts(path, kept) if kept else None
        file.writelines(lines.of(found(path), beside))
    say_unseen(unseen, n_missing, fitted.fills_missing)


def _of_hierarchy(part: Any, model: Path) -> Any:
    """The hierarchy over the labels of some rows."""
    if part.hierarchy is None:
        raise ValueError(
            f"--most-specific leaves out what stands above a label, but {model.name} was trained "
            f"without a hierarchy; with one, {NEEDED}"
        )
    return part.taxonomy


@command(
    **SHARED,
    probabilities="A CSV, TSV, Parquet, NPY or NPZ file with one row per example and one column "
    "per label. A CSV or TSV file may have a header with the label names. - reads CSV from "
    "standard input.",
    format=f"{LINES}.",
    separator="What separates listed labels.",
)
def decode(
    context: typer.Context,
    probabilities: Path,
    *,
    target: str = "f1",
    decoding: Decoding,
    output: Path | None = None,
    format: Literal["labels", "columns", "json"] = "labels",
    separator: str = ";",
    taxonomy: Path | None = None,
    path_separator: str | None = None,
    keep: str = "",
    most_specific: bool = False,
    spreadsheet: bool = False,
    json: bool = False,
) -> None:
    r"""Turn the probabilities of any model into label sets.

    For each row, picks the label set with the smallest expected loss, assuming that labels are
    independent given the row. Cutting at 0.5 is best for Hamming loss only; for F1, for example, a
    label with probability 0.4 is often worth predicting. Text and NPY files are processed in parts,
    so they may be larger than memory.

    A measure of all rows at once, such as macro_f1, is optimised over the whole file, so the labels
    of a row depend on the other rows. (A model that `setwise fit` trained for such a measure has
    fixed thresholds instead.)

    \b
    Examples:
      setwise decode probabilities.csv --target f1 -o predictions.csv
      setwise decode probabilities.csv --target macro_f1 -o predictions.csv
      setwise decode probabilities.csv --target macro_f1 --budget 5 -o predictions.csv
      setwise decode probabilities.csv --keep id -o predictions.csv
      setwise decode probabilities.npy --target precision@3 --json
      setwise decode probabilities.csv --target tree --path-separator / --most-specific
      setwise predict model.skops new.csv --format probabilities | setwise decode - --target f2

    Exit status: 0 success; 2 the file or an option is wrong; 130 interrupted, nothing is written.
    """
    can_write(output, (probabilities, taxonomy))
    from setwise.cli.tables import ProbabilityFile, as_file
    from setwise.datasets.schema import stacked
    from setwise.decoders.for_target import decoder_of
    from setwise.targets.registry import known_name
    from setwise.targets.target import hierarchy_of
    from setwise.validation import require_one_of

    wanted, kept = "json" if json else format, tuple(names(keep))
    judged: Any = None if known_name(target) == "tree" else target_for(target)
    if judged is not None and (taxonomy is not None or path_separator is not None):
        raise ValueError("--taxonomy and --path-separator are for --target tree")
    if judged is not None and most_specific:
        raise ValueError("--most-specific needs a hierarchy, which --target tree has")
    with as_file(probabilities, ".csv") as path:
        file = ProbabilityFile.opened(path, kept)
        if judged is None:
            reading = Reading(taxonomy=taxonomy, path_separator=path_separator)
            file, judged = _in_taxonomy(file, reading)
        # Without rows to fit to, a measure of all rows together is decided for by the whole file.
        with concerning(typed(context, "target", *DECIDING)):
            decides = decoder_of(judged, decoding.asked(judged))
            if not decides.is_of_whole:
                require_one_of(decoding.decoder, ("auto", "minimum_risk"), "decoder")
            decides = decides.fitted(lambda: None)
        parts = file.parts(rows_at_once(len(file.names)))
        parts = [stacked(list(parts))] if decides.depends_on_batch else parts
        found: Any = map(decides.decode, parts)
        if most_specific:
            found = map(hierarchy_of(judged).most_specific, found)  # type: ignore
        lines = Lines(
            file.names, wanted, separator, keep=kept, spreadsheet=spreadsheet,
            most_specific=most_specific,
        )  # fmt: skip
        with opened_output(output) as out:
            out.writelines(lines.of(found, file.texts() if kept else None))


def _in_taxonomy(file: Any, reading: Reading) -> tuple[Any, Any]:
    """The file and the distance over its labels; columns without names are the taxonomy's."""
    from setwise.spelling import some
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


@dataclass(frozen=True)
class Lines:
    """How label sets, or probabilities, are written.

    ``labels`` is CSV with one column that lists the labels of a row, separators between;
    ``columns`` CSV with a column of 0 and 1 for each label; ``json`` a line of JSON for each row;
    ``probabilities`` CSV with the probability of each label. Columns to ``keep`` come first. With
    ``spreadsheet`` no cell is a formula.
    """

    names: Sequence[str]
    format: str = "labels"
    separator: str = ";"
    column: str = "labels"
    keep: tuple[str, ...] = ()
    spreadsheet: bool = False
    most_specific: bool = False

    def __post_init__(self):
        listed = self.format == "labels"
        for name in self.names if listed else ():
            if (
                not self.separator
                or self.separator in name
                or name.strip() in ("?", "")
                or (name != name.strip())
            ):
                raise ValueError(
                    f"the label {name!r} could not be told from others in a list with "
                    f"{self.separator!r} between; choose another --separator, or --format json"
                )
        own = ["labels"] if self.format == "json" else [self.column] if listed else self.names
        for name in self.keep:
            if name in own or self.keep.count(name) > 1:
                raise ValueError(f"--keep {name}: there would be two columns of that name")
        if self.spreadsheet and self.format == "json":
            raise ValueError("--spreadsheet is for CSV; JSON is not opened by spreadsheets as such")
        if self.most_specific and self.format == "probabilities":
            raise ValueError("--most-specific is of label sets, not of --format probabilities")

    def of(
        self, parts: Iterable[Any], kept: Iterator[tuple[str, ...]] | None = None
    ) -> Iterator[bytes]:
        """The bytes of the file of some parts, (n, n_labels) each; ``kept`` has cells by row."""
        from setwise.labels import named_sets
        from setwise.sparse import dense_rows

        # The header comes with the rows of the first part, if there is one.
        titles = [self.column] if self.format == "labels" else self.names
        head = b"" if self.format == "json" else self._csv([[*self.keep, *titles]])
        for values in parts:
            before: Any = [()] * values.shape[0]
            if kept is not None:
                before = list(islice(kept, values.shape[0]))
            if self.format in ("columns", "probabilities"):
                # (As short as is enough to read the same number again.)
                cells = dense_rows(values).tolist()
            else:
                cells = named_sets(values, self.names)
            pairs = zip(before, cells, strict=True)
            if self.format == "json":
                rows = b"".join(self._json(own, labels) for own, labels in pairs)
            elif self.format == "labels":
                rows = self._csv([*own, self.separator.join(labels)] for own, labels in pairs)
            else:
                rows = self._csv([*own, *numbers] for own, numbers in pairs)
            yield head + rows
            head = b""
        yield head

    def _json(self, own: tuple[str, ...], labels: tuple[str, ...]) -> bytes:
        told = {**dict(zip(self.keep, own, strict=True)), "labels": labels}
        return f"{json_text.dumps(told, ensure_ascii=False)}\n".encode()

    def _csv(self, rows: Iterable[Sequence[Any]]) -> bytes:
        cells = [[*map(no_formula, row)] if self.spreadsheet else row for row in rows]
        # (The module leaves a carriage return bare unless all text is quoted.)
        is_bare = any("\r" in cell for row in cells for cell in row if isinstance(cell, str))
        quoted = csv.QUOTE_NONNUMERIC if self.spreadsheet or is_bare else csv.QUOTE_MINIMAL
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n", quoting=quoted).writerows(cells)
        return text.getvalue().encode()
