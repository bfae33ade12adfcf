"""Tables: CSV, TSV and Parquet, read by pyarrow in batches.

A text is taken in blocks that end with a line, and pyarrow parses each on all cores; cells that
should be numbers as such, and once one is not (a missing value spelt in a rare way, yes and no) as
text, whose values are looked at one by one. A block with quotes, or one that pyarrow refuses, is
read by Python's csv module: it is strict, and knows the lines.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray
from pyarrow import csv
from pyarrow.parquet import ParquetFile

from setwise.datasets.columns import MISSING, Kind, Labels, Number
from setwise.datasets.schema import BLOCK_ROWS
from setwise.files import (
    MAX_LINE,
    DataError,
    Place,
    cells_of,
    decoded,
    numbered,
    opened,
    plain_name,
    refuse_bomb,
)
from setwise.spelling import argument, shown, some, unknown_names
from setwise.validation import repeated

compute: Any = pyarrow.compute  # (its functions are made when it is imported)
# Text is parsed so many bytes at a time, and so many of these by a thread.
BLOCK_BYTES, THREAD_BYTES = 2**24, 2**20
# Missing values as they are mostly spelt; pyarrow reads NaN in any case.
NULLS = [*MISSING, "NA", "N/A", "NULL", "None", "Null"]


def parsed(text: bytes, types: dict[str, Any], nulls: list[str], **options: Any) -> Any:
    """An Arrow table of many rows of text at once, or None if they do not have these types.

    ``types`` are those of all columns, None for one that is not read; ``options`` go to pyarrow's
    `ParseOptions`.
    """
    wanted = {name: kind for name, kind in types.items() if kind is not None}
    # (A row that is longer than what a thread takes would be refused.)
    size = max(THREAD_BYTES, 8 * text.find(b"\n"))
    try:
        return csv.read_csv(
            pa.BufferReader(text),
            csv.ReadOptions(column_names=list(types), block_size=size),
            csv.ParseOptions(**options),
            csv.ConvertOptions(column_types=wanted, include_columns=[*wanted], null_values=nulls),
        )
    except pa.ArrowInvalid:
        return None


class Cells(NamedTuple):
    """Some rows of a table: an Arrow array of float64, text or lists for each column; a place."""

    columns: dict[str, Any]
    count: int
    place: Place

    def codes(self, name: str, kind: Kind, what: str = "column") -> NDArray[np.float64]:
        """A column as the codes of its kind; NaN where a value is missing."""
        values = self._single(name)
        if values.type == pa.float64():
            if isinstance(kind, Number):
                return values.to_numpy(zero_copy_only=False)
            values = pa.array(self.texts(name))
        text = compute.utf8_trim_whitespace(values)
        missing = compute.is_in(compute.utf8_lower(text), pa.array(MISSING))
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
            if kind == Number() and what == "column":
                as_category, as_text, out = (
                    argument(option, [name]) for option in ("categorical", "text", "drop")
                )
                reason += f"; read the column as categories ({as_category}) or text ({as_text}), "
                reason += f"or leave it out ({out})"
            raise self.place.error(row, reason)
        return np.array([*each, np.nan], np.float64)[places]

    def matrix(self, columns: Mapping[str, Kind]) -> NDArray[np.float64]:
        """The codes of some columns, (n, len(columns)); infinite ones are refused."""
        try:
            codes = np.array([self.codes(name, kind) for name, kind in columns.items()])
        except DataError as error:
            raise self._with_others(error, columns) from None
        matrix = np.ascontiguousarray(codes.reshape(len(columns), self.count).T)
        infinite = np.isinf(matrix)
        if infinite.any():
            row, column = divmod(int(np.argmax(infinite)), len(columns))
            raise self.place.error(row, f"column {shown([*columns][column])} is infinite")
        return matrix

    def _with_others(self, error: DataError, columns: Mapping[str, Kind]) -> DataError:
        """An error of one column that names all others that are not numbers and should be."""
        numbers = [name for name, kind in columns.items() if kind == Number()]
        others = self.no_numbers(numbers)[1:]
        if not others:
            return error
        reason = f"{error.reason}; these columns are not numbers either: {some(others)}"
        return DataError(self.place.file, error.line, reason)

    def no_numbers(self, names: Iterable[str]) -> list[str]:
        """The columns that hold something else than numbers."""
        others = []
        for name in names:
            try:
                self.codes(name, Number())
            except DataError:
                others.append(name)
        return others

    def texts(self, name: str) -> list[str]:
        """A column as text; numbers of Parquet as short as they can be."""
        values = self._single(name).to_pylist()
        return ["" if v is None else v if isinstance(v, str) else f"{v:.17g}" for v in values]

    def labels(self, source: Labels) -> Any:
        """The labels of the rows as `Labels` takes them: codes, or the cells that list them."""
        if source.column is not None:
            return self.lists(source.column)
        codes = [self.codes(n, Number(binary=True), "label") for n in source.columns]
        return np.column_stack(codes)

    def lists(self, name: str) -> list[Any]:
        """A column that lists labels: text, or lists of Parquet; a number is a single one."""
        is_list = pa.types.is_list(self.columns[name].type)
        return self.columns[name].to_pylist() if is_list else self.texts(name)

    def _single(self, name: str) -> Any:
        """A column that must hold one value in each row."""
        if pa.types.is_list(self.columns[name].type):
            reason = f"column {shown(name)} holds lists; only the label_column may"
            raise DataError(
                self.place.file, None, f"{reason} ({argument('drop', [name])} leaves it out)"
            )
        return self.columns[name]


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
        if unknown := unknown_names(wanted, self.names):
            other = next((d for d in ";\t|," if len(self.names) == 1 and d in self.names[0]), None)
            hint = f"; is the delimiter {other!r}?" if self.delimiter and other else ""
            raise self.error(f"no column {unknown}{hint or self.unnamed()}")

    def unnamed(self) -> str:
        """What to do where the first line seems to be data."""
        numbers = [name for name in self.names if Number().code(name.strip()) is not None]
        # (Columns that are numbered from 0 are what a data frame without names writes.)
        is_named = numbers == [str(place) for place in range(len(numbers))]
        if self.delimiter is None or is_named or 2 * len(numbers) < len(self.names):
            return ""
        return (
            f"; {shown(numbers[0])} in the first line is a number: does the file begin with data? "
            f"Put a line with the names of the columns before it"
        )

    def error(self, reason: str) -> DataError:
        """The error of something in the first line."""
        return DataError(self.path, None if self.delimiter is None else 1, reason)

    def parts(self, wanted: Collection[str], rows: int, numbers: Any = ()) -> Iterator[Cells]:
        """The wanted columns, at most so many rows at a time; some are probably ``numbers``."""
        names = [name for name in self.names if name in set(wanted)]
        for table, place in (self._text if self.delimiter else self._parquet)(names, numbers):
            first = place.first
            for batch in table.to_batches(max_chunksize=rows):
                columns = {name: self._plain(batch.column(name), name) for name in names}
                yield Cells(columns, batch.num_rows, place._replace(first=first))
                first += batch.num_rows

    def texts(self, wanted: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """The cells of some columns as they are written (of Parquet, as text), row by row."""
        self.require(wanted)
        for table, _ in (self._text if self.delimiter else self._parquet)(list(wanted), ()):
            yield from zip(*(_written(table.column(name)) for name in wanted), strict=True)

    def _parquet(self, names: list[str], _: Any) -> Iterator[tuple[Any, Place]]:
        first, most = 0, max(1024, min(BLOCK_ROWS, BLOCK_BYTES // (8 * max(1, len(names)))))
        with _open_parquet(self.path) as file:
            for batch in file.iter_batches(batch_size=most, columns=names):
                yield pa.Table.from_batches([batch]), Place(self.path, None, first)
                first += batch.num_rows

    def _plain(self, array: Any, name: str) -> Any:
        """An array of float64, text or lists; other types are refused."""
        kind, types = array.type, pa.types
        is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        try:
            if types.is_dictionary(kind):
                return self._plain(array.dictionary_decode(), name)
            if is_number or types.is_null(kind):
                return array.cast(pa.float64(), safe=False)
            if types.is_string(kind) or types.is_large_string(kind):
                return array.cast(pa.string())
            if types.is_list(kind) or types.is_large_list(kind):
                return array.cast(pa.list_(pa.string()))
        except pa.ArrowException:
            pass
        reason = f"column {shown(name)} has the type {kind}; cast it or drop it"
        raise DataError(self.path, None, reason)

    # ------------------------------------------------------------------------------------ CSV, TSV

    def _text(self, names: list[str], numbers: Collection[str]) -> Iterator[tuple[Any, Place]]:
        """Blocks of a text file, their cells numbers while all ``numbers`` are, else text."""
        with opened(self.path, self.max_bytes) as file:
            first = next(self.rows(file, 1))[0] + 1 if self.headed else 1
            while block := file.read(BLOCK_BYTES):
                if not block.endswith(b"\n"):
                    block += file.readline(MAX_LINE + 1)
                table = self._parsed(block, names, numbers)
                if table is None and numbers:
                    numbers = ()
                    table = self._parsed(block, names, numbers)
                line_of: Any = partial(_line_of, block, first)
                if table is not None:
                    first += int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord("\n")))
                else:
                    table, lines = self._strict(block, file, names, first)
                    line_of, first = lines.__getitem__, lines[-1] + 1 if lines else first
                yield table, Place(self.path, line_of)

    def _parsed(self, block: bytes, names: list[str], numbers: Collection[str]) -> Any:
        """A block by pyarrow; None if it is out of the ordinary."""
        is_plain = b'"' not in block and (b"\r" not in block or b"\r" not in _unix(block))
        is_utf8 = self.encoding.lower() in ("utf-8", "utf8") or block.isascii()
        if not is_plain or not is_utf8 or len(block) > BLOCK_BYTES + MAX_LINE:
            return None
        types = dict.fromkeys(self.names) | {
            name: pa.float64() if name in numbers else pa.string() for name in names
        }
        return parsed(block, types, NULLS, delimiter=self.delimiter, quote_char=False)

    def _strict(
        self, block: bytes, file: Any, names: list[str], first: int
    ) -> tuple[Any, list[int]]:
        """A block by Python's csv, and the line of each row; a quoted cell may go on beyond it."""
        rest, lines, cells = io.BytesIO(block), [], []
        joined = SimpleNamespace(readline=lambda most: rest.readline(most) or file.readline(most))
        for line, row in self.rows(joined, first):
            lines.append(line)
            cells.append(row)
            if rest.tell() == len(block):
                break
        place = {name: number for number, name in enumerate(self.names)}
        columns = [pa.array([row[place[name]] for row in cells], pa.string()) for name in names]
        return pa.table(columns, names), lines

    def rows(self, file: Any, first: int) -> Iterator[tuple[int, list[str]]]:
        """The cells of each row of an open file, and its line; ragged rows are refused."""
        assert self.delimiter is not None
        lines = numbered(file, self.path, first)
        text = (decoded(line, self.path, n, self.encoding) + "\n" for n, line in lines)
        for line, row in cells_of(text, self.path, self.delimiter, first):
            if self.names and len(row) != len(self.names):
                reason = f"{len(row)} cells, but {len(self.names)} columns"
                raise DataError(self.path, line, f"{reason} are named in the first line")
            yield line, row


def _written(values: Any) -> list[str]:
    """A column of any type as text; nothing where a value is missing."""
    try:
        texts = values.cast(pa.string()).to_pylist()
    except pa.ArrowException:
        texts = [None if value is None else str(value) for value in values.to_pylist()]
    return ["" if text is None else text for text in texts]


def _unix(block: bytes) -> bytes:
    return block.replace(b"\r\n", b"\n")


def _line_of(block: bytes, first: int, row: int) -> int:
    """The line of a row; empty lines are none."""
    lines = enumerate(block.split(b"\n"), first)
    return [number for number, line in lines if line.strip(b"\r")][row]


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
        with _open_parquet(path) as file:
            names = list(file.schema_arrow.names)
            refuse_bomb(path, 8 * file.metadata.num_rows * len(names), max_bytes)
        table = Table(path, names, None, encoding, max_bytes)
    else:
        delimiter = delimiter or ("\t" if plain_name(path).endswith((".tsv", ".tab")) else ",")
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
            raise ValueError(f"delimiter must be one ASCII character, but it is {delimiter!r}")
        table = Table(path, [], delimiter, encoding, max_bytes)
        with opened(path, max_bytes) as file:
            _, names = next(table.rows(file, 1), (1, []))
        if not names:
            raise table.error("the file is empty; expected are the names of the columns")
        if headed is None:
            headed = any(Number().code(name.strip()) is None for name in names)
        names = names if headed else [str(i) for i in range(len(names))]
        table = Table(path, names, delimiter, encoding, max_bytes, headed)
    if (name := repeated(table.names)) is not None:
        raise table.error(f"two columns are named {shown(name)}{table.unnamed()}")
    return table


def is_parquet(path: Path) -> bool:
    """Whether a file begins as Parquet files do."""
    if path.is_dir():
        raise DataError(path, None, "this is a folder; expected is a file")
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
