"""LIBSVM files with several labels a row: ``label,label index:value index:value``.

Empty lines and lines that begin with # are no rows, as in scikit-learn: a row without labels and
without features cannot be told from an empty line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from setwise.datasets.data_error import refuse, shown
from setwise.datasets.dataset import Dataset
from setwise.datasets.extreme import refuse_many
from setwise.datasets.features import check_type
from setwise.datasets.label_source import LabelColumns
from setwise.datasets.lines import blocks, numbered, opened
from setwise.datasets.schema import File, Rows, existing, gathered, named
from setwise.datasets.sparse_text import (
    MAX_FEATURES,
    MAX_LABELS,
    SparseRows,
    features_of,
    label_sets,
    read_rows,
    split_labels,
)
from setwise.datasets.streamed import BLOCK_ROWS, Streamed
from setwise.labels import some
from setwise.validation import whole_number


@dataclass(frozen=True, eq=False)
class LibsvmSchema(Streamed):
    """Files with these features and labels.

    Parameters
    ----------
    n_features : int
        Number of features.
    labels : LabelColumns
        Names of the labels as files have them, in the order of the columns of Y.
    zero_based : bool
        Whether indices count from 0.
    dtype : {"float64", "float32"}
        Type of X.
    max_bytes : int, optional
        How much a compressed file may unfold to.
    """

    n_features: int
    labels: LabelColumns
    zero_based: bool
    dtype: str = "float64"
    max_bytes: int | None = None

    def __post_init__(self):
        whole_number(self.n_features, "n_features", 1)
        check_type(self.dtype)

    @property
    def format(self) -> str:
        """Always "libsvm"."""
        return "libsvm"

    @property
    def feature_names(self) -> None:
        """None: features have only numbers."""
        return None

    @property
    def label_names(self) -> Any:
        """The labels as files have them."""
        return self.labels.names

    @cached_property
    def _column(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.label_names.tolist())}

    def parts(self, path: Path, labels: bool, rows: int) -> Iterator[Rows]:
        """The rows of a file, at most so many at a time."""
        first = 0 if self.zero_based else 1
        for block in _blocks(path, rows, self.max_bytes):
            yield self._made(read_rows(block, path, first, self.n_features), path, labels)

    def _made(self, rows: SparseRows, path: Path, labels: bool) -> Rows:
        X = features_of(rows, self.n_features, self.dtype)
        if not labels:
            return Rows(X)

        def number(label: str, line: int) -> int:
            if label not in self._column:
                refuse(path, line, f"unknown label {shown(label)}; known are {known}")
            return self._column[label]

        known = some(self.label_names[:11].tolist())
        return Rows(X, label_sets(rows, number, len(self._column), path))


def _blocks(path: Path, rows: int, max_bytes: int | None) -> Iterator[list[tuple[int, bytes]]]:
    """The lines that are rows: empty ones and comments are none."""
    with opened(path, max_bytes) as file:
        lines = ((n, line) for n, line in numbered(file, path) if not _is_void(line))
        yield from blocks(lines, rows)


def _is_void(line: bytes) -> bool:
    return not line.strip() or line.startswith(b"#")


def read_libsvm(
    path: File,
    *,
    n_features: int | None = None,
    labels: Any = None,
    zero_based: bool | Literal["auto"] = "auto",
    max_columns: int | None = None,
    dtype: str = "float64",
    max_bytes: int | None = None,
) -> Dataset:
    """Read a LIBSVM file.

    Parameters
    ----------
    path : path
        The file; compressed if its name ends in .gz, .bz2, .xz or .zst.
    n_features : int, optional
        Number of features; by default what the largest index needs. Say it if other files may have
        larger ones.
    labels : list of str, optional
        The labels; by default those that occur, sorted, as numbers if they are.
    zero_based : bool or "auto"
        Whether indices count from 0; "auto": if a 0 occurs.
    max_columns : int, optional
        Most features and most labels; by default 2**24 and 2**22.
    dtype : {"float64", "float32"}
        Type of X.
    max_bytes : int, optional
        How much a compressed file may unfold to; by default 256 MiB and 200 times its size.
    """
    file = existing(path)
    with named(path):
        limit = max_columns or MAX_FEATURES
        parts = [
            read_rows(block, file, 0, limit + 1) for block in _blocks(file, BLOCK_ROWS, max_bytes)
        ]
        used = [part.indices for part in parts if len(part.indices)]
        lowest = min((int(indices.min()) for indices in used), default=1)
        highest = max((int(indices.max()) for indices in used), default=0)
        zero = lowest == 0 if zero_based == "auto" else bool(zero_based)
        if not zero and lowest == 0:
            refuse(file, None, "an index is 0, but indices count from 1 (zero_based=False)")
        needed = max(highest + zero, 1)
        if n_features is not None and needed > whole_number(n_features, "n_features", 1):
            refuse(file, None, f"index {highest}, but n_features is {n_features}")
        refuse_many(file, needed, limit, "features")
        names = _found(parts, file) if labels is None else list(labels)
        if not names:
            refuse(file, None, "no row has a label")
        refuse_many(file, len(names), max_columns or MAX_LABELS, "labels")
        schema = LibsvmSchema(n_features or needed, LabelColumns(names), zero, dtype, max_bytes)
        moved = (p._replace(indices=p.indices - (not zero)) for p in parts)
        return gathered(schema, (schema._made(part, file, True) for part in moved), path)


def _found(parts: list[SparseRows], path: Path) -> list[str]:
    """The labels that occur, sorted as numbers if all are whole numbers, else as text."""
    names: set[str] = set()
    for part in parts:
        for text, line in zip(part.labels, part.lines, strict=True):
            if text:
                names.update(split_labels(text, path, line))
    if all(len(n) < 19 and n.isascii() and n.removeprefix("-").isdigit() for n in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)
