"""Tables: CSV, TSV and Parquet."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from setwise.datasets.cells import Cells, TableFile, open_table
from setwise.datasets.column_values import (
    MISSING,
    as_text,
    category_codes,
    lists,
    numbers,
    truths,
)
from setwise.datasets.data_error import refuse, shown
from setwise.datasets.dataset import Dataset
from setwise.datasets.features import Categories, Features, Text
from setwise.datasets.label_source import (
    LabelColumns,
    LabelList,
    LabelSource,
    is_unknown,
    labelled,
    listed,
    refuse_empty,
)
from setwise.datasets.schema import File, Rows, existing, gathered, named
from setwise.datasets.streamed import BLOCK_ROWS, NamedColumns
from setwise.labels import some

# With categorical="auto", a column that is no number has at most so many categories.
AUTO_CATEGORIES = 64


@dataclass(frozen=True, eq=False)
class TableSchema(NamedColumns):
    """How a table is read: columns are found by their names, others are not looked at.

    Parameters
    ----------
    features : Features
        Which columns are features, and how.
    labels : LabelColumns or LabelList
        Which are labels.
    unknown_labels : {"refuse", "leave_out"}
        What is done with a row that has an unknown label.
    delimiter : str, optional
        Between cells; by default a tab in .tsv files and a comma in others.
    encoding : str
        Of text files.
    max_bytes : int, optional
        How much a compressed file may unfold to.
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    max_bytes: int | None = None

    @property
    def format(self) -> str:
        """Always "table"."""
        return "table"

    def parts(self, path: Path, labels: bool, rows: int) -> Iterator[Rows]:
        """The rows of a file, at most so many at a time."""
        table = open_table(path, self.delimiter, self.encoding, self.max_bytes)
        wanted = [*self.features.columns.tolist(), *(self.labels.columns if labels else ())]
        require_columns(table, wanted)
        return (self._rows(cells, labels) for cells in table.cells(set(wanted), rows))

    def _rows(self, cells: Cells, labels: bool) -> Rows:
        codes = np.empty((cells.count, len(self.features.coded)))
        for i, name in enumerate(self.features.coded):
            kind = self.features.kinds.get(name)
            values = cells.columns[name]
            codes[:, i] = (
                numbers(values, name, cells.place)
                if kind is None
                else category_codes(values, kind, name, cells.place)
            )
        texts = {name: as_text(cells.columns[name]) for name in self.features.texts}
        X = self.features.assemble(codes, texts)
        if not labels:
            return Rows(X)
        made = labelled(self.labels, self._label_cells(cells), cells.place, self.unknown_labels)
        return Rows(X if made.known.all() else X[made.known], made.Y, made.specific)

    def _label_cells(self, cells: Cells) -> Any:
        if isinstance(self.labels, LabelList):
            return lists(cells.columns[self.labels.column])
        columns = [truths(cells.columns[n], n, cells.place) for n in self.labels.columns]
        return np.column_stack(columns)


def require_columns(table: TableFile, wanted: Collection[str]) -> None:
    """Raise if a column is not there; a wrong delimiter is what it often is."""
    there = set(table.names)
    missing = [name for name in wanted if name not in there]
    if not missing:
        return
    line = None if table.delimiter is None else 1
    hint = ""
    if table.delimiter is not None and len(table.names) == 1:
        other = next((d for d in ";\t|," if d in table.names[0]), None)
        hint = f"; is the delimiter {other!r}?" if other else ""
    refuse(
        table.path,
        line,
        f"no column {some(missing)}; the columns are {some(table.names)}{hint}",
    )


# ------------------------------------------------------------------------------------ a first file


def read_table(
    path: File,
    *,
    labels: Sequence[str] | None = None,
    label_prefix: str | None = None,
    label_column: str | None = None,
    separator: str = ",",
    text: Sequence[str] = (),
    text_options: Mapping[str, Any] | None = None,
    categorical: Sequence[str] | Literal["auto"] = (),
    unseen_categories: str = "refuse",
    drop: Sequence[str] = (),
    delimiter: str | None = None,
    unknown_labels: str = "refuse",
    dtype: str = "float64",
    encoding: str = "utf-8",
    max_bytes: int | None = None,
) -> Dataset:
    """Read a CSV, TSV or Parquet file, its first line the names of the columns.

    Columns are numbers unless ``categorical``, ``text`` or ``drop`` names them; another column that
    is no number is an error, not a guess. An empty cell, '?', 'NA', 'NaN', 'null' and 'None' are
    missing values.

    Parameters
    ----------
    path : path
        The file; text files compressed if the name ends in .gz, .bz2, .xz or .zst.
    labels : list of str, optional
        Columns of 0 and 1 that are labels.
    label_prefix : str, optional
        Instead: what the names of these columns begin with.
    label_column : str, optional
        Instead: the column that lists the labels of a row; an empty cell is the empty set. In
        Parquet it may be a column of lists.
    separator : str, default ","
        What parts the labels in ``label_column``.
    text : list of str
        Columns of text, for TF-IDF.
    text_options : dict, optional
        Options of scikit-learn's TfidfVectorizer.
    categorical : list of str, or "auto"
        Columns of categories, a 0/1 feature each. "auto": all columns that are no numbers and have
        at most 64 categories.
    unseen_categories : {"refuse", "zeros"}
        What a category means that later files have and this one has not.
    drop : list of str
        Columns not to read.
    delimiter : str, optional
        Between cells; by default a tab in .tsv files and a comma in others.
    unknown_labels : {"refuse", "leave_out"}
        What is done with a row that has an unknown label.
    dtype : {"float64", "float32"}
        Type of X.
    encoding : str
        Of text files.
    max_bytes : int, optional
        How much a compressed file may unfold to; by default 256 MiB and 200 times its size.
    """
    file = existing(path)
    with named(path):
        table = open_table(file, delimiter, encoding, max_bytes)
        columns = _label_columns(table, labels, label_prefix, label_column)
        chosen = [] if isinstance(categorical, str) else list(categorical)
        if isinstance(categorical, str) and categorical != "auto":
            raise ValueError(
                f"categorical must be a list of columns or 'auto', not {categorical!r}"
            )
        require_columns(table, [*columns, *text, *chosen, *drop])
        inputs = [n for n in table.names if n not in {*columns, *drop}]
        if not inputs:
            refuse(file, None, "no column is left to be a feature")
        if "" in inputs:
            refuse(
                file,
                1,
                f"column {table.names.index('') + 1} has no name: the index of a data frame? Leave "
                f"it out (drop=['']), or name it",
            )
        parts = [
            _prepared(cells, inputs, {*text, *chosen}, categorical == "auto")
            for cells in table.cells({*inputs, *columns}, BLOCK_ROWS)
        ]
        texts = {name: Text(dict(text_options or {})) for name in text}
        kinds = texts | _categories(parts, inputs, texts, chosen, categorical, unseen_categories)
        features = Features(inputs, kinds, dtype)
        source = _label_source(parts, columns, label_column, separator, file)
        schema = TableSchema(features, source, unknown_labels, delimiter, encoding, max_bytes)
        if texts:
            every = {n: [t for p in parts for t in as_text(p.columns[n])] for n in texts}
            schema = replace(schema, features=features.fitted(every))
        return gathered(schema, (schema._rows(cells, True) for cells in parts), path)


def _label_columns(
    table: TableFile, labels: Any, prefix: str | None, column: str | None
) -> list[str]:
    if sum(given is not None for given in (labels, prefix, column)) != 1:
        raise ValueError(
            "which columns are labels? Say one of labels=[...] (columns of 0 and 1), "
            "label_prefix='...' and label_column='...' (a column that lists them)"
        )
    if column is not None:
        return [column]
    if prefix is None:
        if isinstance(labels, str):
            raise ValueError(
                f"labels must be a list of columns, not {labels!r}; for one column that lists the "
                f"labels: label_column={labels!r}"
            )
        return list(labels)
    found = [name for name in table.names if name.startswith(prefix)]
    if not found:
        refuse(
            table.path,
            None if table.delimiter is None else 1,
            f"no column begins with {shown(prefix)}; the columns are {some(table.names)}",
        )
    return found


def _prepared(cells: Cells, inputs: list[str], kept: set[str], auto: bool) -> Cells:
    """With columns of numbers as numbers, so that their text need not be kept."""
    if auto:
        return cells
    columns = dict(cells.columns)
    for name in inputs:
        if name not in kept:
            columns[name] = numbers(columns[name], name, cells.place)
    return cells._replace(columns=columns)


def _categories(
    parts: list[Cells],
    inputs: list[str],
    texts: Mapping[str, Any],
    chosen: list[str],
    rule: Any,
    unseen: str,
) -> dict[str, Categories]:
    if rule == "auto":
        chosen = [n for n in inputs if n not in texts and not _is_number(parts, n)]
    found = {}
    for name in chosen:
        values = {v.strip() for cells in parts for v in as_text(cells.columns[name])}
        values = sorted(value for value in values if value.lower() not in MISSING)
        if rule == "auto" and len(values) > AUTO_CATEGORIES:
            refuse(
                parts[0].place.file,
                None,
                f"column {shown(name)} has {len(values)} different values, too many for "
                f"categorical='auto'; name it in categorical, text or drop",
            )
        found[name] = Categories(values, unseen=unseen)
    return found


def _is_number(parts: list[Cells], name: str) -> bool:
    try:
        for cells in parts:
            numbers(cells.columns[name], name, cells.place)
    except ValueError:
        return False
    return True


def _label_source(
    parts: list[Cells], columns: list[str], listed_in: str | None, separator: str, path: Path
) -> LabelSource:
    if listed_in is None:
        return LabelColumns(columns)
    names: set[str] = set()
    for cells in parts:
        for row, cell in enumerate(lists(cells.columns[listed_in])):
            if not is_unknown(cell):
                labels = listed(cell, separator)
                refuse_empty(labels, row, cells.place)
                names.update(labels)
    if not names:
        refuse(path, None, f"no row has a label in column {shown(listed_in)}")
    return LabelList(listed_in, separator, sorted(names))
