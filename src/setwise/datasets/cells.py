"""The cells of tables, by column: CSV and TSV by Python's csv module, Parquet by pyarrow.

The csv module knows the line of every row, takes a file in parts and needs nothing installed. A
table of 1.2 million numbers took it 14 to 16 times as long as pandas (ratio of minima, a busy
machine), but pandas names no line for a value that is no number and fills up rows that are cut off.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from setwise.datasets.data_error import DataError, refuse, shown
from setwise.datasets.label_source import Place
from setwise.datasets.lines import (
    BLOCK_BYTES,
    MAX_LINE,
    decoded,
    most_bytes,
    numbered,
    opened,
    plain_name,
)
from setwise.datasets.names import repeated


class Cells(NamedTuple):
    """Some rows of a table: cells by column, text or numbers, and where they stand."""

    columns: dict[str, Any]
    count: int
    place: Place


class TableFile(NamedTuple):
    """A table that is open: the names of its columns, and a way to read some of them."""

    path: Path
    names: list[str]
    delimiter: str | None
    encoding: str
    max_bytes: int | None

    def cells(self, wanted: Collection[str], rows: int) -> Iterator[Cells]:
        """The wanted columns, at most so many rows at a time."""
        if self.delimiter is None:
            return _parquet_cells(self, wanted, rows)
        return _text_cells(self, wanted, rows)


def open_table(
    path: Path, delimiter: str | None, encoding: str, max_bytes: int | None
) -> TableFile:
    """The names of the columns of a table."""
    if is_parquet(path):
        names = _parquet_names(path, max_bytes)
        delimiter = None
    else:
        delimiter = delimiter or ("\t" if plain_name(path).endswith((".tsv", ".tab")) else ",")
        with _csv_rows(path, delimiter, encoding, max_bytes) as rows:
            _, names = next(rows, (1, []))
        if not names:
            refuse(path, 1, "the file is empty; expected are the names of the columns")
    name = repeated(names)
    if name is not None:
        refuse(path, None if delimiter is None else 1, f"two columns are named {shown(name)}")
    return TableFile(path, names, delimiter, encoding, max_bytes)


# ----------------------------------------------------------------------------------------- CSV, TSV


@contextmanager
def _csv_rows(
    path: Path, delimiter: str, encoding: str, max_bytes: int | None
) -> Iterator[Iterator[tuple[int, list[str]]]]:
    """Rows with the line they end on. A cell may have line ends in it."""
    if len(delimiter) != 1:
        raise ValueError(f"delimiter must be one character, but it is {delimiter!r}")
    # The module's own bound on a cell, 128 KiB, is too small for documents. It is one for all
    # readers of the process, in threads and half-read files too, so it is raised and left so.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
    with opened(path, max_bytes) as file:
        lines = (
            decoded(line, path, number, encoding) + "\n" for number, line in numbered(file, path)
        )
        yield _parsed(csv.reader(lines, delimiter=delimiter, strict=True), path)


def _parsed(reader: Any, path: Path) -> Iterator[tuple[int, list[str]]]:
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(path, reader.line_num, f"no table: {error}") from error
        if row:
            yield reader.line_num, row


def _text_cells(table: TableFile, wanted: Collection[str], rows: int) -> Iterator[Cells]:
    assert table.delimiter is not None
    places = {name: i for i, name in enumerate(table.names) if name in wanted}
    width = len(table.names)
    with _csv_rows(table.path, table.delimiter, table.encoding, table.max_bytes) as found:
        next(found)
        block: list[list[str]] = []
        lines: list[int] = []
        size = 0
        for line, row in found:
            if len(row) != width:
                refuse(
                    table.path,
                    line,
                    f"{len(row)} cells, but {width} columns are named in the first line",
                )
            block.append(row)
            lines.append(line)
            size += sum(map(len, row))
            if len(block) == rows or size >= BLOCK_BYTES:
                yield _by_column(block, places, Place(table.path, lines))
                block, lines, size = [], [], 0
        if block:
            yield _by_column(block, places, Place(table.path, lines))


def _by_column(block: list[list[str]], places: dict[str, int], place: Place) -> Cells:
    every = list(zip(*block, strict=True))
    columns = {name: every[i] for name, i in places.items()}
    return Cells(columns, len(block), place)


# ------------------------------------------------------------------------------------------ Parquet


def is_parquet(path: Path) -> bool:
    """Whether a file begins as Parquet files do."""
    if path.is_dir():
        refuse(path, None, "this is a folder; expected is a file")
    with open(path, "rb") as file:
        return file.read(4) == b"PAR1"


@contextmanager
def _parquet(path: Path) -> Iterator[Any]:
    """An open Parquet file; whatever pyarrow raises is a `DataError`."""
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ImportError(
            "to read Parquet, install pyarrow: pip install setwise[tables]"
        ) from error
    try:
        with ParquetFile(path) as file:
            yield file
    except DataError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(path, None, f"damaged or no Parquet file: {reason}") from error


def _parquet_names(path: Path, max_bytes: int | None) -> list[str]:
    with _parquet(path) as file:
        names = list(file.schema_arrow.names)
        asked = 8 * file.metadata.num_rows * len(names)
        if asked > most_bytes(path, max_bytes):
            refuse(
                path,
                None,
                f"{file.metadata.num_rows} rows of {len(names)} columns need {asked} bytes, as no "
                f"plain data of its size does; if you trust it, read it with a larger max_bytes",
            )
        return names


def _parquet_cells(table: TableFile, wanted: Collection[str], rows: int) -> Iterator[Cells]:
    names = [name for name in table.names if name in wanted]
    first = 0
    with _parquet(table.path) as file:
        for batch in file.iter_batches(batch_size=rows, columns=names, use_threads=False):
            place = Place(table.path, None, first)
            columns = {
                name: _arrow_cells(batch.column(i), name, table.path)
                for i, name in enumerate(batch.schema.names)
            }
            yield Cells(columns, batch.num_rows, place)
            first += batch.num_rows


def _arrow_cells(array: Any, name: str, path: Path) -> Any:
    """Numbers as an array, with NaN for what is null; text and lists as they are."""
    import pyarrow
    from pyarrow import types

    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return array.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
    if types.is_string(kind) or types.is_large_string(kind):
        return ["" if value is None else value for value in array.to_pylist()]
    if types.is_list(kind) or types.is_large_list(kind):
        return [value if value is None else list(map(str, value)) for value in array.to_pylist()]
    if types.is_null(kind):
        return np.full(len(array), np.nan)
    refuse(path, None, f"column {shown(name)} has the type {kind}; cast it or drop it")
