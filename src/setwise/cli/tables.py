"""Tables that are no data sets: probabilities to decode, predicted labels beside the true ones.

A text is CSV or TSV, compressed or not, read row by row with the line of each; so is Parquet. NPY
and NPZ hold numbers only.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import numpy as np
from scipy.sparse import csr_array, issparse, load_npz
from sklearn.preprocessing import MultiLabelBinarizer

from setwise.cli.options import Reading
from setwise.cli.options import names as names_in
from setwise.datasets import DataError

OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
DAMAGE = (csv.Error, EOFError, UnicodeError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
# Sums of probabilities in single precision go beyond 1 by so much.
ROUNDING = 1e-6
EXPECTED = "expected is a probability from 0 to 1"
TRUTH: Any = dict.fromkeys(("0", "0.0", "false", "no"), 0) | dict.fromkeys(
    ("1", "1.0", "true", "yes"), 1
)
# Rows of a table that are taken at once.
ROWS = 4096

Row = tuple[int | None, list[Any]]


@contextmanager
def as_file(path: Path, suffix: str) -> Iterator[Path]:
    """The file; of ``-`` a copy of the standard input, whose name ends in the suffix."""
    if str(path) != "-":
        yield path
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder, f"stdin{suffix}")
        with open(copy, "wb") as file:
            copyfileobj(sys.stdin.buffer, file)
        yield copy


def is_parquet(path: Path) -> bool:
    """By its name."""
    return path.suffix.lower() in (".parquet", ".pq")


def rows_of(path: Path, delimiter: str | None = None, encoding: str | None = None) -> Iterator[Row]:
    """Each row that is not empty with its line; of Parquet without one, the names first."""
    if is_parquet(path):
        from pyarrow.parquet import ParquetFile

        with ParquetFile(path) as file:
            yield None, file.schema_arrow.names
            for batch in file.iter_batches(ROWS):
                columns = [column.to_pylist() for column in batch.columns]
                yield from ((None, list(row)) for row in zip(*columns, strict=True))
        return
    packed = path.suffix.lower()
    name = path.stem if packed in OPENERS else path.name
    tab = "\t" if name.lower().endswith((".tsv", ".tab")) else ","
    options: dict[str, Any] = {"newline": "", "encoding": encoding or "utf-8-sig"}
    with OPENERS.get(packed, open)(path, "rt", **options) as file:
        found = csv.reader(file, delimiter=delimiter or tab, strict=True)
        try:
            yield from ((found.line_num, row) for row in found if row)
        except DAMAGE as error:
            raise DataError(path, found.line_num + 1, f"damaged, or no text: {error}") from error


# ------------------------------------------------------------------------------------ probabilities


@dataclass(frozen=True)
class ProbabilityFile:
    """Probabilities in CSV, TSV, Parquet, NPY or NPZ: a row for each, a column for each label.

    Parameters
    ----------
    path : Path
    names : list of str
        Of the labels: those of the columns; numbers from 0 where columns have none.
    headed : bool
        Whether the first row is names.
    """

    path: Path
    names: list[str]
    headed: bool = False

    @classmethod
    def opened(cls, path: Path) -> ProbabilityFile:
        """The file, after a look at its beginning."""
        if path.suffix.lower() in (".npy", ".npz"):
            return cls(path, [str(label) for label in range(_array(path).shape[1])])
        _, first = next(rows_of(path), (1, []))
        if not first:
            raise DataError(path, 1, "the file is empty; expected are probabilities")
        if all(map(_is_number, first)):
            return cls(path, [str(label) for label in range(len(first))])
        names = [str(name).strip() for name in first]
        for number, name in enumerate(names, 1):
            if not name:
                raise DataError(
                    path,
                    1,
                    f"column {number} has no name; expected is one for each label (the index of a "
                    f"data frame is left out by index=False)",
                )
            if names.count(name) > 1:
                raise DataError(path, 1, f"two columns are named {name!r}")
        return cls(path, names, True)

    def parts(self, rows: int) -> Iterator[Any]:
        """Probabilities, (n, n_labels), at most so many rows at a time, checked."""
        if self.path.suffix.lower() in (".npy", ".npz"):
            array = _array(self.path)
            for start in range(0, array.shape[0], rows):
                part = array[start : start + rows]
                part = part if issparse(part) else np.array(part)
                yield self._checked(part, [None] * part.shape[0], start)
            return
        found, start = rows_of(self.path), 0
        if self.headed:
            next(found)
        while block := list(islice(found, rows)):
            lines, cells = zip(*block, strict=True)
            try:
                values = np.array(cells, dtype=float)
            except (TypeError, ValueError):
                self._refuse(block)
            if values.shape[1] != len(self.names):
                self._refuse(block)
            yield self._checked(values, lines, start)
            start += len(block)

    def _refuse(self, block: Sequence[Row]) -> NoReturn:
        """Name the first row that is not a number for each label."""
        for line, cells in block:
            if len(cells) != len(self.names):
                raise DataError(
                    self.path, line, f"{len(cells)} cells, but there are {len(self.names)} labels"
                )
            for name, cell in zip(self.names, cells, strict=True):
                if not _is_number(cell):
                    raise DataError(self.path, line, f"label {name!r} is {cell!r}; {EXPECTED}")
        raise AssertionError

    def _checked(self, values: Any, lines: Sequence[int | None], start: int) -> Any:
        """The values, in [0, 1] but for rounding, or an error that names the first that is not."""
        entries = values.data if issparse(values) else values
        near = (entries >= -ROUNDING) & (entries <= 1.0 + ROUNDING)
        if near.all():
            clipped = np.clip(entries, 0.0, 1.0)
            if not issparse(values):
                return clipped
            return csr_array((clipped, values.indices, values.indptr), shape=values.shape)
        dense = values.toarray() if issparse(values) else values
        wrong = ~((dense >= -ROUNDING) & (dense <= 1.0 + ROUNDING))
        row, label = divmod(int(np.argmax(wrong)), dense.shape[1])
        where = "" if lines[row] is not None else f"row {start + row}: "
        reason = f"{where}label {self.names[label]!r} is {dense[row, label]:g}; {EXPECTED}"
        raise DataError(self.path, lines[row], reason)

    def aligned(self, labels: Sequence[str], n_rows: int) -> Any:
        """All probabilities, with a column for each of the labels, in their order."""
        if sorted(self.names) != sorted(labels):
            raise ValueError(
                f"{self.path.name} must have a column for each of the {len(labels)} labels "
                f"{', '.join(labels[:5])}, ..., but its columns are {', '.join(self.names[:5])}, .."
            )
        parts = [part.toarray() if issparse(part) else part for part in self.parts(ROWS)]
        found = np.concatenate(parts) if parts else np.empty((0, len(labels)))
        if len(found) != n_rows:
            raise ValueError(f"{self.path.name} has {len(found)} rows, but {n_rows} are expected")
        return found[:, [self.names.index(label) for label in labels]]


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def _array(path: Path) -> Any:
    """A matrix of numbers: NPY mapped into memory, NPZ sparse or with one array."""
    try:
        if path.suffix.lower() == ".npy":
            array: Any = np.load(path, mmap_mode="r", allow_pickle=False)
        else:
            with np.load(path, allow_pickle=False) as archive:
                kept = archive.files
                array = archive[kept[0]] if len(kept) == 1 else None
            array = csr_array(load_npz(path)) if array is None else array
    except FileNotFoundError:
        raise
    except Exception as error:
        # Zip files and arrays fail in a dozen ways; all of them mean this.
        raise DataError(path, None, f"damaged, or no array of numbers: {error}") from error
    if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "fiub":
        raise DataError(
            path,
            None,
            f"an array of {array.dtype} of shape {array.shape}; expected are numbers, a row for "
            f"each and a column for each label",
        )
    return array


# ------------------------------------------------------------------------------------------ labels


def label_tables(paths: Sequence[Path], reading: Reading) -> tuple[list[Any], list[str]]:
    """The label sets of each table, CSR with the same columns, and the names of these.

    Labels that are listed in one column are those of any of the tables; label columns have to be
    the same.
    """
    if (
        sum(g is not None for g in (reading.labels, reading.label_prefix, reading.label_column))
        != 1
    ):
        raise ValueError(
            "which columns are labels? Say one of --labels A,B, --label-prefix P and "
            "--label-column C, as for the training file"
        )
    tables = [_label_lists(path, reading) for path in paths]
    labels = [names for names, _ in tables]
    if reading.label_column is not None:
        every = sorted(set(chain.from_iterable(labels)))
    elif any(sorted(names) != sorted(labels[0]) for names in labels):
        words = " and ".join(", ".join(names) for names in labels)
        raise ValueError(
            f"{' and '.join(path.name for path in paths)} must have the same label columns, but "
            f"have {words}"
        )
    else:
        every = labels[0]
    if not every:
        raise ValueError(f"{paths[0].name}: no row has a label in {reading.label_column!r}")
    binarizer = MultiLabelBinarizer(classes=every, sparse_output=True)
    return [csr_array(binarizer.fit_transform(lists)) for _, lists in tables], every


def _label_lists(path: Path, reading: Reading) -> tuple[list[str], list[list[str]]]:
    """The labels of a table, and those of each of its rows."""
    delimiter = reading.options.get("delimiter")
    found = rows_of(path, delimiter, reading.encoding)
    _, header = next(found, (1, []))
    if reading.label_column is not None:
        columns = [reading.label_column]
    elif reading.label_prefix is not None:
        columns = [name for name in header if name.startswith(reading.label_prefix)]
    else:
        columns = names_in(reading.labels or "")
    missing = [name for name in columns if name not in header] or (not columns and ["label"])
    if missing:
        raise DataError(path, 1, f"no column {missing[0]!r}; the columns are {', '.join(header)}")
    places = {name: header.index(name) for name in columns}
    lists = []
    for number, (line, row) in enumerate(found):
        if len(row) != len(header):
            raise DataError(path, line, f"{len(row)} cells, but {len(header)} columns")
        cells = {name: row[place] for name, place in places.items()}
        try:
            if reading.label_column is None:
                lists.append([n for n, cell in cells.items() if TRUTH[str(cell).strip().lower()]])
            else:
                lists.append(_listed(cells[reading.label_column], reading.separator or ","))
        except (KeyError, ValueError) as error:
            where = "" if line is not None else f"row {number}: "
            raise DataError(path, line, f"{where}{error}; expected are labels") from None
    if not lists:
        raise DataError(path, None, "no rows")
    if reading.label_column is not None:
        columns = sorted(set(chain.from_iterable(lists)))
    return columns, lists


def _listed(cell: Any, separator: str) -> list[str]:
    """The labels in a cell: a list already (Parquet), or text to part."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return []
    labels = [
        str(label).strip() for label in (cell.split(separator) if isinstance(cell, str) else cell)
    ]
    if not all(labels) or labels == ["?"] or len(set(labels)) < len(labels):
        raise ValueError(f"the labels {cell!r} are unknown, empty or listed twice")
    return labels
