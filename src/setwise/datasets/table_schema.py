"""The data set of a table: which columns are features and labels, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from setwise.datasets.columns import MISSING, Categories, Features, Kind, Number, Text
from setwise.datasets.dataset import Dataset
from setwise.datasets.files import File, existing, named, refuse, shown
from setwise.datasets.label_source import LabelColumns, LabelList, LabelSource, labels_in
from setwise.datasets.schema import NamedColumns, Raw, Rows
from setwise.datasets.table import BLOCK_ROWS, Cells, Table, open_table
from setwise.labels import some

# With categorical="auto", a column that is no number has at most so many categories.
AUTO_CATEGORIES = 64


@dataclass(frozen=True, eq=False)
class TableSchema(NamedColumns):
    """How a table is read; ``delimiter`` is by default a tab in .tsv files, a comma in others."""

    delimiter: str | None = None

    @property
    def format(self) -> str:
        return "table"

    def parts(self, path: Path, labels: bool, rows: int) -> Iterator[Rows]:
        table = open_table(path, self.delimiter, self.encoding, self.max_bytes)
        wanted = [*self.features.columns.tolist(), *(self.labels.columns if labels else ())]
        table.require(wanted)
        numbers = {n for n, kind in self.features.coded.items() if isinstance(kind, Number)}
        numbers.update(self.labels.columns if isinstance(self.labels, LabelColumns) else ())
        parts = table.parts(wanted, rows, numbers)
        return (self.rows(self.raw(cells, labels)) for cells in parts)

    def raw(self, cells: Cells, labels: bool = True) -> Raw:
        """Some rows as codes, texts and labels."""
        texts = {name: cells.texts(name) for name in self.features.texts}
        given = cells.labels(self.labels) if labels else None
        return Raw(cells.matrix(self.features.coded), texts, given, cells.place)


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
    kinds: Mapping[str, Kind] | None = None,
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
    path, unknown_labels, dtype, encoding, max_bytes
        As in `read`.
    labels : list of str, optional
        Columns of 0 and 1 that are labels.
    label_prefix : str, optional
        Instead: what the names of these columns begin with.
    label_column : str, optional
        Instead: the column that lists the labels of a row; an empty cell is the empty set. In
        Parquet it may be a column of lists.
    separator : str, default ","
        What parts the labels in ``label_column``.
    text, text_options : list of str and dict, optional
        Columns of text, for TF-IDF, and options of scikit-learn's TfidfVectorizer.
    categorical : list of str, or "auto"
        Columns of categories, a 0/1 feature each. "auto": all columns that are no numbers and have
        at most 64 categories.
    unseen_categories : {"refuse", "zeros"}
        What a category means that later files have and this one has not.
    kinds : dict of str to Kind, optional
        Columns of any other kind in `setwise.datasets.columns`, by name.
    drop : list of str
        Columns not to read.
    delimiter : str, optional
        Between cells; by default a tab in .tsv files and a comma in others.
    """
    if isinstance(categorical, str) and categorical != "auto":
        raise ValueError(f"categorical must be a list of columns or 'auto', not {categorical!r}")
    file, auto = existing(path), categorical == "auto"
    with named(path):
        table = open_table(file, delimiter, encoding, max_bytes)
        columns = _label_columns(table, labels, label_prefix, label_column)
        chosen = [] if auto else list(categorical)
        others: dict[str, Any] = {name: Text(dict(text_options or {})) for name in text}
        others |= kinds or {}
        table.require([*columns, *others, *chosen, *drop])
        inputs = [n for n in table.names if n not in {*columns, *drop}]
        if not inputs:
            refuse(file, None, "no column is left to be a feature")
        if "" in inputs:
            what = f"column {table.names.index('') + 1} has no name"
            hint = "the index of a data frame? Leave it out (drop=['']), or name it"
            table.refuse(f"{what}: {hint}")
        numbers = set() if auto else {*inputs} - {*others, *chosen}
        numbers.update(columns if label_column is None else ())
        cells = table.parts({*inputs, *columns}, BLOCK_ROWS, numbers)
        source: LabelSource = LabelColumns(columns)
        if auto or chosen or label_column is not None:
            # Which categories and labels there are is known once all rows are read.
            parts = list(cells)
            if not parts:
                refuse(file, None, "no rows")
            if auto:
                chosen = [n for n in inputs if n not in others and not _are_numbers(parts, n)]
            most = AUTO_CATEGORIES if auto else None
            others |= {n: _categories(parts, n, unseen_categories, most) for n in chosen}
            if label_column is not None:
                source = _label_list(parts, label_column, separator)
            cells = (parts.pop(0) for _ in range(len(parts)))  # (each is let go once it is used)
        features = Features(inputs, others, dtype)
        schema = TableSchema(features, source, unknown_labels, encoding, max_bytes, delimiter)
        return schema.first(map(schema.raw, cells), path)


def _label_columns(table: Table, labels: Any, prefix: str | None, column: str | None) -> list[str]:
    if sum(given is not None for given in (labels, prefix, column)) != 1:
        raise ValueError(
            "which columns are labels? Say one of labels=[...] (columns of 0 and 1), "
            "label_prefix='...' and label_column='...' (a column that lists them)"
        )
    if isinstance(labels, str):
        raise ValueError(
            f"labels must be a list of columns, not {labels!r}; for one column that lists the "
            f"labels: label_column={labels!r}"
        )
    if prefix is None:
        return list(labels) if column is None else [column]
    found = [name for name in table.names if name.startswith(prefix)]
    if not found:
        table.refuse(f"no column begins with {shown(prefix)}; the columns are {some(table.names)}")
    return found


def _label_list(parts: list[Cells], column: str, separator: str) -> LabelList:
    found = labels_in(((part.lists(column), part.place) for part in parts), separator)
    if not found:
        refuse(parts[0].place.file, None, f"no row has a label in column {shown(column)}")
    return LabelList(column, separator, found)


def _categories(parts: list[Cells], name: str, unseen: str, most: int | None) -> Categories:
    """The categories of a column; more than ``most`` are refused."""
    values = {value.strip() for cells in parts for value in cells.texts(name)}
    values = sorted(value for value in values if value.lower() not in MISSING)
    if most is not None and len(values) > most:
        what = f"column {shown(name)} has {len(values)} different values"
        hint = "too many for categorical='auto'; name it in categorical, text or drop"
        refuse(parts[0].place.file, None, f"{what}, {hint}")
    return Categories(values, unseen=unseen)


def _are_numbers(parts: list[Cells], name: str) -> bool:
    try:
        return all(cells.codes(name, Number()) is not None for cells in parts)
    except ValueError:
        return False
