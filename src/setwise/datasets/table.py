"""Tables: CSV, TSV and Parquet, read by pyarrow in batches.

Cells that should be numbers are parsed as such by pyarrow. A file where one is not (a missing value
spelt in a rare way, yes and no, a mistake) is read on as text, and its values are looked at one by
one. Where pyarrow fails, and where it is more lenient than this package (text after a closing
quote, a quote that is never closed), Python's csv module has the last word: it knows the lines.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv
from pyarrow.parquet import ParquetFile

from setwise.datasets import columns as kinds
from setwise.datasets.columns import Kind, Number
from setwise.datasets.files import (
    MAX_LINE,
    DataError,
    Place,
    decoded,
    most_bytes,
    numbered,
    opened,
    plain_name,
    refuse,
    refuse_bomb,
    repeated,
    shown,
)
from setwise.datasets.label_source import LabelList, LabelSource
from setwise.labels import some

compute: Any = pyarrow.compute  # (its functions are made when it is imported)
# Text is parsed so many bytes at a time, and rows taken so many where nobody says how many.
BLOCK_BYTES, BLOCK_ROWS = 2**20, 2**16
# Missing values as they are mostly spelt; pyarrow reads NaN in any case.
NULLS = [*kinds.MISSING, "NA", "N/A", "NULL", "None", "Null"]
PLAIN_HINT = (
    "; read the column as categories (categorical=[{0!r}]) or text (text=[{0!r}]), or leave it out "
    "(drop=[{0!r}])"
)


class Cells(NamedTuple):
    """Some rows of a table: an Arrow array of float64, text or lists for each column; a place."""

    columns: dict[str, Any]
    count: int
    place: Place

    def codes(self, name: str, kind: Kind, what: str = "column") -> NDArray[np.float64]:
        """A column as the codes of its kind; NaN where a value is missing."""
        values = self.columns[name]
        if values.type == pa.float64():
            if isinstance(kind, Number):
                return values.to_numpy(zero_copy_only=False)
            values = pa.array(self.texts(name))
        text = compute.utf8_trim_whitespace(values)
        missing = compute.is_in(compute.utf8_lower(text), pa.array(kinds.MISSING))
        text = compute.if_else(missing, None, text)
        if isinstance(kind, Number):
            try:
                return text.cast(pa.float64()).to_numpy(zero_copy_only=False)
            except pa.ArrowInvalid:
                pass  # (the value is found below)
        distinct = text.dictionary_encode()
        each = [kind.code(value) for value in distinct.dictionary.to_pylist()]
        places = distinct.indices.fill_null(len(each)).to_numpy(zero_copy_only=False)
        if None in each:
            row = int(np.argmax(np.isin(places, [i for i, c in enumerate(each) if c is None])))
            reason = f"{what} {shown(name)} {kind.wrong(text[row].as_py())}"
            raise self.place.error(
                row, reason + (PLAIN_HINT.format(name) if kind == Number() else "")
            )
        return np.array([*each, np.nan], np.float64)[places]

    def matrix(self, columns: Mapping[str, Kind]) -> NDArray[np.float64]:
        """The codes of some columns, (n, len(columns)); infinite ones are refused."""
        matrix = np.array([self.codes(name, kind) for name, kind in columns.items()]).T
        matrix = np.ascontiguousarray(matrix).reshape(self.count, len(columns))
        infinite = np.isinf(matrix)
        if infinite.any():
            row, column = divmod(int(np.argmax(infinite)), len(columns))
            raise self.place.error(row, f"column {shown(list(columns)[column])} is infinite")
        return matrix

    def texts(self, name: str) -> list[str]:
        """A column as text; numbers of Parquet as short as they can be."""
        if pa.types.is_list(self.columns[name].type):
            raise ValueError(f"column {shown(name)} holds lists; it can only be the label_column")
        values = self.columns[name].to_pylist()
        return ["" if v is None else v if isinstance(v, str) else f"{v:.17g}" for v in values]

    def lists(self, name: str) -> list[Any]:
        """A column that lists labels: text, or lists of Parquet; a number is a single one."""
        values = self.columns[name]
        return values.to_pylist() if pa.types.is_list(values.type) else self.texts(name)

    def labels(self, source: LabelSource) -> Any:
        """The labels of the rows as their source takes them."""
        if isinstance(source, LabelList):
            return self.lists(source.column)
        return np.column_stack(
            [self.codes(n, Number(binary=True), "label") for n in source.columns]
        )


@dataclass(frozen=True)
class Table:
    """A table whose columns are known; ``delimiter`` is None for Parquet.

    ``headed`` says whether the first row of a text file is names.
    """

    path: Path
    names: list[str]
    delimiter: str | None
    encoding: str
    max_bytes: int | None
    headed: bool = True

    def require(self, wanted: Collection[str]) -> None:
        """Raise if a column is not there; a wrong delimiter is what it often is."""
        missing = [name for name in wanted if name not in set(self.names)]
        if missing:
            other = next((d for d in ";\t|," if len(self.names) == 1 and d in self.names[0]), None)
            hint = f"; is the delimiter {other!r}?" if self.delimiter and other else ""
            self.refuse(f"no column {some(missing)}; the columns are {some(self.names)}{hint}")

    def refuse(self, reason: str) -> None:
        """Raise for something in the first line."""
        refuse(self.path, None if self.delimiter is None else 1, reason)

    def parts(self, wanted: Collection[str], rows: int, numbers: Any = ()) -> Iterator[Cells]:
        """The wanted columns, at most so many rows at a time; some are probably ``numbers``."""
        names = [name for name in self.names if name in set(wanted)]
        first = 0
        for batch in self._text(names, numbers) if self.delimiter else self._parquet(names):
            columns = {n: self._plain(batch.column(i), n) for i, n in enumerate(names)}
            for start in range(0, batch.num_rows, rows):
                part = {name: array.slice(start, rows) for name, array in columns.items()}
                place = Place(self.path, self._line_of(first + start), first + start)
                yield Cells(part, min(rows, batch.num_rows - start), place)
            first += batch.num_rows

    def _plain(self, array: Any, name: str) -> Any:
        """An array of float64, text or lists; other types are refused."""
        kind, types = array.type, pa.types
        if kind == pa.float64() or kind == pa.string():
            return array
        if types.is_dictionary(kind):
            return self._plain(array.dictionary_decode(), name)
        if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
            return array.cast(pa.float64(), safe=False)
        if types.is_null(kind) or types.is_large_string(kind):
            return array.cast(pa.float64() if types.is_null(kind) else pa.string())
        if types.is_list(kind) or types.is_large_list(kind):
            return array.cast(pa.list_(pa.string()))
        refuse(self.path, None, f"column {shown(name)} has the type {kind}; cast it or drop it")

    def _parquet(self, names: list[str]) -> Iterator[Any]:
        with _open_parquet(self.path) as file:
            yield from file.iter_batches(batch_size=4096, columns=names, use_threads=False)

    # ------------------------------------------------------------------------------------ CSV, TSV

    def _text(self, names: list[str], numbers: Collection[str]) -> Iterator[Any]:
        """Batches of a text file, their cells numbers while all ``numbers`` are, else text."""
        done, size = 0, BLOCK_BYTES
        while True:
            seen = 0
            try:
                with opened(self.path, self.max_bytes) as file:
                    if self.headed:
                        next(self._csv(file))
                    watched = _Watched(file)
                    for batch in self._arrow(watched, names, numbers, size):
                        seen += batch.num_rows
                        if seen > done:
                            yield batch.slice(max(batch.num_rows - (seen - done), 0))
                            done = seen
                break
            except pa.ArrowInvalid as error:
                if numbers:
                    numbers = ()
                    continue
                self._refuse_malformed()
                if size > MAX_LINE:
                    raise DataError(self.path, None, f"no table: {error}") from error
                size *= 16  # (a row may be longer than a block)
        if watched.quoted:
            self._refuse_malformed()

    def _arrow(self, file: Any, names: list[str], numbers: Collection[str], size: int) -> Any:
        if not file.file.peek(1):
            return ()  # (for pyarrow a file without rows is none)
        types = {name: pa.float64() if name in numbers else pa.string() for name in names}
        return arrow_csv.open_csv(
            file,
            arrow_csv.ReadOptions(
                use_threads=False, block_size=size, column_names=self.names, encoding=self.encoding
            ),
            arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(column_types=types, include_columns=names, null_values=NULLS),
        )

    def _csv(self, file: Any) -> Iterator[tuple[int, list[str]]]:
        """The rows of an open file by Python's csv module, with the line that they end on."""
        assert self.delimiter is not None
        # The module's own bound on a cell, 128 KiB, is too small for documents. It is one for all
        # readers of the process, so it is raised and left so.
        csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
        lines = numbered(file, self.path)
        text = (decoded(line, self.path, n, self.encoding) + "\n" for n, line in lines)
        reader = csv.reader(text, delimiter=self.delimiter, strict=True)
        try:
            yield from ((reader.line_num, row) for row in reader if row)
        except csv.Error as error:
            raise DataError(self.path, reader.line_num, f"no table: {error}") from error

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """All rows but the header with their lines; ragged ones are refused."""
        with opened(self.path, self.max_bytes) as file:
            for number, (line, row) in enumerate(self._csv(file)):
                if len(row) != len(self.names):
                    reason = f"{len(row)} cells, but {len(self.names)} columns"
                    refuse(self.path, line, f"{reason} are named in the first line")
                if number or not self.headed:
                    yield line, row

    def _refuse_malformed(self) -> None:
        for _ in self._rows():
            pass

    def _line_of(self, first: int) -> Callable[[int], int] | None:
        """A function that finds the line of a row, for an error, by reading the file again."""
        if self.delimiter is None:
            return None

        def line_of(row: int) -> int:
            lines = (line for number, (line, _) in enumerate(self._rows()) if number == first + row)
            return next(lines, first + row + 1 + self.headed)

        return line_of


class _Watched:
    """A file for pyarrow; ``quoted`` says whether a quote was in it."""

    closed = False

    def __init__(self, file: Any):
        self.file, self.quoted = file, False

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self.quoted = self.quoted or b'"' in data
        return data


def open_table(
    path: Path,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    max_bytes: int | None = None,
    headed: bool | None = True,
) -> Table:
    """A table and its columns.

    ``headed`` says whether the first row is names; None: unless its cells are all numbers. Columns
    without names are numbered from 0.
    """
    if is_parquet(path):
        table = Table(path, _parquet_names(path, max_bytes), None, encoding, max_bytes)
    else:
        delimiter = delimiter or ("\t" if plain_name(path).endswith((".tsv", ".tab")) else ",")
        if len(delimiter) != 1:
            raise ValueError(f"delimiter must be one character, but it is {delimiter!r}")
        table = Table(path, [], delimiter, encoding, max_bytes)
        with opened(path, max_bytes) as file:
            _, names = next(table._csv(file), (1, []))
        if not names:
            table.refuse("the file is empty; expected are the names of the columns")
        if headed is None:
            headed = any(Number().code(name.strip()) is None for name in names)
        names = names if headed else [str(i) for i in range(len(names))]
        table = Table(path, names, delimiter, encoding, max_bytes, headed)
    if (name := repeated(table.names)) is not None:
        table.refuse(f"two columns are named {shown(name)}")
    return table


def is_parquet(path: Path) -> bool:
    """Whether a file begins as Parquet files do."""
    if path.is_dir():
        refuse(path, None, "this is a folder; expected is a file")
    with open(path, "rb") as file:
        return file.read(4) == b"PAR1"


@contextmanager
def _open_parquet(path: Path) -> Iterator[Any]:
    """An open Parquet file; whatever pyarrow raises is a `DataError`."""
    try:
        with ParquetFile(path) as file:
            yield file
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(path, None, f"damaged or no Parquet file: {reason}") from error


def _parquet_names(path: Path, max_bytes: int | None) -> list[str]:
    with _open_parquet(path) as file:
        names = list(file.schema_arrow.names)
        asked = 8 * file.metadata.num_rows * len(names)
        refuse_bomb(path, asked, most_bytes(path, max_bytes))
        return names
