"""The data set of a table: which columns are features and labels, and how."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from setwise.datasets.columns import (
    MISSING,
    Categories,
    Features,
    Kind,
    Labels,
    Number,
    Text,
    listed,
)
from setwise.datasets.schema import BLOCK_ROWS, Again, ColumnSchema, First, Raw, Reader
from setwise.datasets.separators import warn_of_separator
from setwise.datasets.table import Cells, Table, open_table
from setwise.datasets.unseen import Unseen
from setwise.files import DataError, File, existing, named
from setwise.spelling import argument, known_names, shown

# With categorical="auto", a column that is no number has at most so many categories.
AUTO_CATEGORIES = 64
# About so many cells tell whether the separator of listed labels may be another.
MOST_TEXTS = 2**20


@dataclass(frozen=True, eq=False)
class TableSchema(ColumnSchema):
    """How a table is read; ``delimiter`` is by default a tab in .tsv files, a comma in others."""

    delimiter: str | None = None
    format = "table"

    def raws(self, path: Path, labels: bool, rows: int) -> Iterator[Raw]:
        table = open_table(path, self.delimiter, self.encoding, self.max_bytes)
        wanted = [*self.features.columns.tolist(), *(self.labels.columns if labels else ())]
        table.require(wanted)
        numbers = {n for n, kind in self.features.coded.items() if isinstance(kind, Number)}
        numbers.update(self.labels.columns if self.labels.column is None else ())
        return (self.raw(cells, labels) for cells in table.parts(wanted, rows, numbers))

    def texts(self, path: File, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
        with named(path):
            table = open_table(existing(path), self.delimiter, self.encoding, self.max_bytes)
            yield from table.texts(columns)

    def raw(self, cells: Cells, labels: bool = True) -> Raw:
        """Some rows as codes, texts and labels."""
        texts = {name: cells.texts(name) for name in self.features.texts}
        given = cells.labels(self.labels) if labels else None
        tolerant = self.features.tolerant.items()
        new = Unseen({name: kind.new(cells.texts(name)) for name, kind in tolerant})
        return Raw(cells.matrix(self.features.coded), texts, given, cells.place, new)


@Reader
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
) -> First:
    r"""Read a CSV, TSV or Parquet file, its first line the names of the columns.

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

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (file := Path(folder, "a.csv")).write_text("tempo,moods\n1.2,calm;sad\n0.7,glad\n")
    ...     print(read_table(file, label_column="moods", separator=";").label_names)
    ['calm' 'glad' 'sad']
    """
    if isinstance(categorical, str) and categorical != "auto":
        raise ValueError(f"categorical must be a list of columns or 'auto', not {categorical!r}")
    file, auto = existing(path), categorical == "auto"
    table = open_table(file, delimiter, encoding, max_bytes)
    columns = label_columns(table, labels, label_prefix, label_column)
    chosen = [] if auto else list(categorical)
    others: dict[str, Any] = {name: Text(dict(text_options or {})) for name in text}
    others |= kinds or {}
    table.require([*columns, *others, *chosen, *drop])
    inputs = [n for n in table.names if n not in {*columns, *drop}]
    if not inputs:
        raise DataError(file, None, "no column is left to be a feature")
    if "" in inputs:
        what = f"column {table.names.index('') + 1} has no name"
        hint = f"the index of a data frame? Leave it out ({argument('drop', [''])}), or name it"
        raise table.error(f"{what}: {hint}")
    numbers = set() if auto else {*inputs} - {*others, *chosen}
    numbers.update(columns if label_column is None else ())
    # Which categories and labels there are is known once all rows are read.
    parts = Again(
        lambda: table.parts({*inputs, *columns}, BLOCK_ROWS, numbers),
        lambda cells: cells.count * len(cells.columns),
    )
    if auto:
        asked = [name for name in inputs if name not in others]
        found = {name for cells in parts for name in cells.no_numbers(asked)}
        chosen = [name for name in asked if name in found]
    if chosen:
        most = AUTO_CATEGORIES if auto else None
        others |= _categories(parts, chosen, unseen_categories, most)
    listing = label_column is not None
    source = listed_labels([parts], columns[0], separator) if listing else Labels(columns)
    features = Features(inputs, others, dtype)
    schema = TableSchema(features, source, unknown_labels, encoding, max_bytes, delimiter=delimiter)
    return schema.first(lambda: map(schema.raw, parts.once_more()))


def label_columns(table: Table, labels: Any, prefix: str | None, column: str | None) -> list[str]:
    """The columns of labels: those of the names, those with the prefix, or the one that lists."""
    if sum(given is not None for given in (labels, prefix, column)) != 1:
        raise ValueError(
            f"which columns are labels? Say one of {argument('labels', [...])} (columns of 0 and "
            f"1), {argument('label_prefix', ...)} and {argument('label_column', ...)} (a column "
            f"that lists them)"
        )
    if isinstance(labels, str):
        raise ValueError(
            f"labels must be a list of columns, not {labels!r}; for one column that lists the "
            f"labels: {argument('label_column', labels)}"
        )
    if prefix is None:
        return list(labels) if column is None else [column]
    found = [name for name in table.names if name.startswith(prefix)]
    if not found:
        known = known_names(prefix, table.names)
        raise table.error(f"no column begins with {shown(prefix)}; {known}")
    return found


def listed_labels(tables: Sequence[Iterable[Cells]], column: str, separator: str) -> Labels:
    """The labels that a column of some tables lists, sorted."""
    names: set[str] = set()
    texts: list[str] = []
    for cells in (cells for table in tables for cells in table):
        found = cells.lists(column)
        if len(texts) < MOST_TEXTS:
            texts += [cell for cell in found if isinstance(cell, str)]
        for row, cell in enumerate(found):
            names.update(listed(cell, separator, row, cells.place) or ())
    if not names:
        raise ValueError(f"no row has a label in column {shown(column)}")
    where = f"column {shown(column)}"
    warn_of_separator(texts, separator, where, lambda mark: f"is it {argument('separator', mark)}?")
    return Labels(sorted(names), None, column, separator)


def _categories(
    parts: Iterable[Cells], names: list[str], unseen: str, most: int | None
) -> dict[str, Categories]:
    """The categories of some columns; more than ``most`` of one are refused."""
    found: dict[str, set[str]] = {name: set() for name in names}
    for cells in parts:
        for name, values in found.items():
            values.update(value.strip() for value in cells.texts(name))
    kinds = {}
    for name, every in found.items():
        values = sorted(value for value in every if value.lower() not in MISSING)
        if most is not None and len(values) > most:
            raise ValueError(
                f"column {shown(name)} has {len(values)} different values, too many for "
                f"{argument('categorical', 'auto')}; name it among the "
                f"categories, the texts or what is left out"
            )
        kinds[name] = Categories(values, unseen=unseen)
    return kinds
