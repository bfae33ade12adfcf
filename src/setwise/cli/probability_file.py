"""Files of probabilities, a row for each and a column for each label, read in parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, load_npz

from setwise.datasets.columns import Number
from setwise.datasets.files import DataError, Place, existing, named, refuse, shown
from setwise.datasets.table import Table, open_table
from setwise.sparse import place_of


@dataclass(frozen=True)
class ProbabilityFile:
    """Probabilities in CSV, TSV, Parquet, NPY or NPZ.

    Parameters
    ----------
    path : Path
    names : list of str
        Of the labels: those of the columns; numbers from 0 where columns have none.
    table : Table, optional
        The columns; None for an array.
    """

    path: Path
    names: list[str]
    table: Table | None = None

    @property
    def headed(self) -> bool:
        """Whether the columns have names."""
        return self.table is not None and self.table.headed

    @classmethod
    def opened(cls, path: Path) -> ProbabilityFile:
        """The file, after a look at its beginning."""
        found = existing(path)
        if found.is_dir():
            refuse(path, None, "a folder; expected is a file of probabilities")
        if found.suffix.lower() in (".npy", ".npz"):
            return cls(found, [str(label) for label in range(_array(found).shape[1])])
        with named(path):
            table = open_table(found, headed=None)
            names = [name.strip() for name in table.names]
            if "" in names:
                table.refuse(
                    f"column {names.index('') + 1} has no name; expected is one for each label "
                    f"(the index of a data frame is left out by index=False)"
                )
            return cls(found, names, table)

    def parts(self, rows: int) -> Iterator[Any]:
        """Probabilities, (n, n_labels), at most so many rows at a time, checked."""
        if self.table is None:
            array = _array(self.path)
            for start in range(0, array.shape[0], rows):
                part = array[start : start + rows]
                place = Place(self.path, None, start)
                yield _checked(part if issparse(part) else np.array(part), self.names, place)
            return
        with named(self.path):
            columns = self.table.names
            for cells in self.table.parts(columns, rows, columns):
                codes = [cells.codes(name, Number(), "label") for name in columns]
                yield _checked(np.column_stack(codes), self.names, cells.place)


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
