"""Tables that are no data sets: probabilities to decode, predicted labels beside the true ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, load_npz

from setwise.archives import refuse_large_arrays
from setwise.atomic_write import naming
from setwise.cli.reading import Reading
from setwise.datasets import DataError
from setwise.datasets.columns import Labels, Number
from setwise.datasets.folder import loaded
from setwise.datasets.schema import stacked
from setwise.datasets.table import Table, open_table
from setwise.datasets.table_schema import label_columns, listed_labels
from setwise.files import Place, existing
from setwise.sparse import dense_rows, well_formed

# Sums of probabilities in single precision go beyond 1 by so much.
ROUNDING = 1e-6
# What is said of two tables of labels that differ.
BOTH = (
    "both files must have the label columns that the options name; `setwise predict` writes one "
    "column that lists the labels (--format labels) or 0/1 columns (--format columns)"
)
# Rows of a table that are taken at once.
ROWS = 4096


@contextmanager
def as_file(path: Path, suffix: str) -> Iterator[Path]:
    """The file; of ``-`` a copy of the standard input, whose name ends in the suffix."""
    if str(path) != "-":
        yield path
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder, f"stdin{suffix}")
        with naming(copy), open(copy, "wb") as file:
            copyfileobj(sys.stdin.buffer, file)
        yield copy


@dataclass(frozen=True)
class ProbabilityFile:
    """Probabilities in CSV, TSV, Parquet, NPY or NPZ: a row for each, a column for each label.

    ``names`` are those of the columns, numbers from 0 where they have none (``headed`` is False);
    ``table`` is None for arrays.
    """

    path: Path
    names: list[str]
    headed: bool = False
    table: Table | None = None
    keep: tuple[str, ...] = ()

    @classmethod
    def opened(cls, path: Path, keep: tuple[str, ...] = ()) -> ProbabilityFile:
        """The file, after a look at its beginning; columns to ``keep`` are no labels."""
        if path.suffix.lower() in (".npy", ".npz"):
            if keep:
                raise ValueError(f"--keep names columns, but those of {path.name} have no names")
            return cls(
                path, [str(label) for label in range(loaded(existing(path), _array).shape[1])]
            )
        table = open_table(existing(path), headed=None)
        if "" in table.names:
            what = f"column {table.names.index('') + 1} has no name; expected is one for each label"
            raise table.error(f"{what} (the index of a data frame is left out by index=False)")
        table.require(keep)
        names = [name for name in table.names if name not in keep]
        if not names:
            raise table.error("no column is left for the probability of a label")
        return cls(path, names, table.headed, table, keep)

    def texts(self) -> Iterator[tuple[str, ...]]:
        """The cells of the columns to keep as they are written, row by row."""
        assert self.table is not None
        return self.table.texts(self.keep)

    def parts(self, rows: int) -> Iterator[Any]:
        """Probabilities, (n, n_labels), at most so many rows at a time, checked."""
        if self.table is None:
            array = loaded(self.path, _array)
            for start in range(0, array.shape[0], rows):
                yield self._checked(array[start : start + rows], Place(self.path, None, start))
            return
        for cells in self.table.parts(self.names, rows, self.names):
            columns = [cells.codes(name, Number(), "label") for name in self.names]
            yield self._checked(np.column_stack(columns), cells.place)

    def _checked(self, values: Any, place: Place) -> Any:
        """The values, in [0, 1] but for rounding, or an error that names the first that is not."""
        entries = values.data if issparse(values) else np.asarray(values)
        if ((entries >= -ROUNDING) & (entries <= 1.0 + ROUNDING)).all():
            clipped = np.clip(entries, 0.0, 1.0)
            if not issparse(values):
                return clipped
            return csr_array((clipped, values.indices, values.indptr), shape=values.shape)
        dense = dense_rows(values)
        wrong = ~((dense >= -ROUNDING) & (dense <= 1.0 + ROUNDING))
        row, label = divmod(int(np.argmax(wrong)), dense.shape[1])
        value = f"label {self.names[label]!r} is {dense[row, label]:g}"
        raise place.error(row, f"{value}; expected is a probability from 0 to 1")

    def aligned(self, labels: Sequence[str], n_rows: int) -> Any:
        """All probabilities, with a column for each of the labels, in their order."""
        if sorted(self.names) != sorted(labels):
            raise ValueError(
                f"{self.path.name} must have a column for each of the {len(labels)} labels "
                f"{', '.join(labels[:5])}, ..., but its columns are {', '.join(self.names[:5])}, .."
            )
        parts = map(dense_rows, self.parts(ROWS))
        found = np.concatenate([np.empty((0, len(labels))), *parts])
        if len(found) != n_rows:
            raise ValueError(f"{self.path.name} has {len(found)} rows, but {n_rows} are expected")
        place = {name: number for number, name in enumerate(self.names)}
        return found[:, [place[label] for label in labels]]


def _array(path: Path) -> Any:
    """A matrix of numbers: NPY mapped into memory, NPZ sparse or with one array."""
    if path.suffix.lower() == ".npz":
        refuse_large_arrays(path)
    array: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    if path.suffix.lower() == ".npz":
        with array as archive:
            only = archive[archive.files[0]] if len(archive.files) == 1 else None
        array = csr_array(well_formed(load_npz(path), path.stem)) if only is None else only
    if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "fiub":
        found = f"an array of {array.dtype} of shape {array.shape}"
        reason = f"{found}; expected are numbers, a row for each and a column for each label"
        raise DataError(path, None, reason)
    return array


def label_tables(paths: Sequence[Path], reading: Reading) -> tuple[list[Any], list[str]]:
    """The label sets of each table, CSR with the same columns, and the names of these.

    Labels that are listed in one column are those of any of the tables; label columns have to be
    the same.
    """
    options = reading.options
    given = [options.get(name) for name in ("labels", "label_prefix", "label_column")]
    tables = [
        open_table(existing(path), options.get("delimiter"), options.get("encoding", "utf-8"))
        for path in paths
    ]
    columns = [_label_columns(table, given) for table in tables]
    for names in columns:
        if sorted(names) != sorted(columns[0]):
            words = " and ".join(", ".join(names) for names in columns)
            files = " and ".join(path.name for path in paths)
            raise ValueError(f"{files} must have the same label columns, but have {words}")
    rows = [list(table.parts(columns[0], ROWS, columns[0])) for table in tables]
    source = Labels(columns[0])
    if reading.label_column is not None:
        source = listed_labels(rows, columns[0][0], options.get("separator", ","))
    sets = []
    for path, parts in zip(paths, rows, strict=True):
        if not parts:
            raise DataError(path, None, "no rows")
        found = [source.sets(cells.labels(source), cells.place).Y for cells in parts]
        sets.append(csr_array(stacked(found)))
    return sets, source.names.tolist()


def _label_columns(table: Table, given: list[Any]) -> list[str]:
    """The label columns of one of two tables; both have to have them."""
    try:
        names = label_columns(table, *given)
        table.require(names)
        return names
    except DataError as error:
        hint = "" if table.unnamed() else f"; {BOTH}"
        raise DataError(error.file, error.line, f"{error.reason}{hint}") from error
