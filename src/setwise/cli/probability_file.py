"""Files of probabilities, a row for each and a column for each label, read in parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, load_npz

from setwise.datasets.cells import csv_rows, is_parquet, open_table
from setwise.datasets.column_values import numbers
from setwise.datasets.data_error import DataError, refuse, shown
from setwise.datasets.label_source import Place
from setwise.datasets.lines import plain_name
from setwise.datasets.names import repeated
from setwise.datasets.schema import existing, named
from setwise.sparse import place_of


@dataclass(frozen=True)
class ProbabilityFile:
    """Probabilities in CSV, TSV, Parquet, NPY or NPZ.

    Parameters
    ----------
    path : Path
    names : list of str
        Of the labels: those of the columns; numbers from 0 where columns have none.
    kind : {"text", "parquet", "array"}
    headed : bool
        Whether the first line of a text is names.
    """

    path: Path
    names: list[str]
    kind: str
    headed: bool = False

    @classmethod
    def opened(cls, path: Path) -> ProbabilityFile:
        """The file, after a look at its beginning."""
        found = existing(path)
        if found.is_dir():
            refuse(path, None, "a folder; expected is a file of probabilities")
        if found.suffix.lower() in (".npy", ".npz"):
            return cls(found, _numbered(_array(found).shape[1]), "array")
        with named(path):
            if is_parquet(found):
                names = open_table(found, None, "utf-8", None).names
                return cls(found, names, "parquet", True)
            _, first = next(_text_rows(found), (1, []))
            if not first:
                refuse(path, 1, "the file is empty; expected are probabilities")
            headed = not all(map(_is_number, first))
            names = [cell.strip() for cell in first] if headed else _numbered(len(first))
            if "" in names:
                refuse(
                    path,
                    1,
                    f"column {names.index('') + 1} has no name; expected is one for each label "
                    f"(the index of a data frame is left out by index=False)",
                )
            twice = repeated(names)
            if twice is not None:
                refuse(path, 1, f"two columns are named {shown(twice)}")
            return cls(found, names, "text", headed)

    def parts(self, rows: int) -> Iterator[Any]:
        """Probabilities, (n, n_labels), at most so many rows at a time, checked."""
        if self.kind == "array":
            array = _array(self.path)
            for start in range(0, array.shape[0], rows):
                part = array[start : start + rows]
                place = Place(self.path, None, start)
                yield _checked(part if issparse(part) else np.array(part), self.names, place)
        else:
            with named(self.path):
                yield from self._table(rows) if self.kind == "parquet" else self._text(rows)

    def _table(self, rows: int) -> Iterator[Any]:
        table = open_table(self.path, None, "utf-8", None)
        for cells in table.cells(set(self.names), rows):
            columns = [numbers(cells.columns[name], name, cells.place) for name in self.names]
            yield _checked(np.column_stack(columns), self.names, cells.place)

    def _text(self, rows: int) -> Iterator[Any]:
        found = _text_rows(self.path)
        if self.headed:
            next(found)
        block: list[list[str]] = []
        lines: list[int] = []
        for line, row in found:
            if len(row) != len(self.names):
                refuse(self.path, line, f"{len(row)} cells, but there are {len(self.names)} labels")
            block.append(row)
            lines.append(line)
            if len(block) == rows:
                yield self._values(block, lines)
                block, lines = [], []
        if block:
            yield self._values(block, lines)

    def _values(self, block: list[list[str]], lines: list[int]) -> Any:
        place = Place(self.path, lines)
        try:
            values = np.array([list(map(float, row)) for row in block])
        except ValueError:
            row, label, cell = next(
                (row, label, cell)
                for row, cells in enumerate(block)
                for label, cell in enumerate(cells)
                if not _is_number(cell)
            )
            raise place.error(
                row, f"label {shown(self.names[label])} is {shown(cell)}; {EXPECTED}"
            ) from None
        return _checked(values, self.names, place)


# Sums of probabilities in single precision go beyond 1 by so much.
ROUNDING = 1e-6
EXPECTED = "expected is a probability from 0 to 1"


def _checked(values: Any, names: list[str], place: Place) -> Any:
    """The values, all in [0, 1] but for rounding, or an error that names the first that is not."""
    entries = values.data if issparse(values) else values
    near = (entries >= -ROUNDING) & (entries <= 1.0 + ROUNDING)
    if near.all():
        clipped = np.clip(entries, 0.0, 1.0)
        if not issparse(values):
            return clipped
        return csr_array((clipped, values.indices, values.indptr), shape=values.shape)
    first = int(np.argmin(near))
    row, label = place_of(values, first) if issparse(values) else divmod(first, values.shape[1])
    raise place.error(row, f"label {shown(names[label])} is {values[row, label]:g}; {EXPECTED}")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbered(count: int) -> list[str]:
    return [str(label) for label in range(count)]


def _text_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    delimiter = "\t" if plain_name(path).endswith((".tsv", ".tab")) else ","
    with csv_rows(path, delimiter, "utf-8", None) as rows:
        yield from rows


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
    except Exception as error:
        # Zip files and arrays fail in a dozen ways; all of them mean this.
        raise DataError(path, None, f"damaged, or no array of numbers: {error}") from error
    if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "fiub":
        refuse(
            path,
            None,
            f"an array of {array.dtype} of shape {array.shape}; expected are numbers, a row for "
            f"each and a column for each label",
        )
    return array
