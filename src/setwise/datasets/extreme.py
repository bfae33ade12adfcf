"""The text format of the extreme classification repository.

The first line is ``n d l``, the numbers of rows, features and labels; each line after it a row (see
`sparse_text`), with labels and indices from 0. Files with splits have one row number from 1 a line
and part, a column for each of several splits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.datasets.data_error import refuse, shown
from setwise.datasets.dataset import Dataset
from setwise.datasets.features import check_type
from setwise.datasets.lines import blocks, numbered, opened
from setwise.datasets.schema import File, Rows, existing, gathered, named
from setwise.datasets.sparse_text import (
    MAX_FEATURES,
    MAX_LABELS,
    features_of,
    label_sets,
    read_rows,
)
from setwise.datasets.streamed import BLOCK_ROWS, Streamed
from setwise.validation import whole_number


@dataclass(frozen=True)
class ExtremeSchema(Streamed):
    """Files with the same numbers of features and labels in their header.

    Parameters
    ----------
    n_features, n_labels : int
        As in the header.
    dtype : {"float64", "float32"}
        Type of X.
    max_bytes : int, optional
        How much a compressed file may unfold to.
    """

    n_features: int
    n_labels: int
    dtype: str = "float64"
    max_bytes: int | None = None

    def __post_init__(self):
        whole_number(self.n_features, "n_features", 1)
        whole_number(self.n_labels, "n_labels", 1)
        check_type(self.dtype)

    @property
    def format(self) -> str:
        """Always "extreme"."""
        return "extreme"

    @property
    def feature_names(self) -> None:
        """None: features have only numbers."""
        return None

    @cached_property
    def label_names(self) -> Any:
        """The numbers of the labels."""
        return np.arange(self.n_labels).astype("<U8")

    def parts(self, path: Path, labels: bool, rows: int) -> Iterator[Rows]:
        """The rows of a file, at most so many at a time."""
        with opened(path, self.max_bytes) as file:
            lines = numbered(file, path)
            n_rows, n_features, n_labels = read_sizes(lines, path)
            if (n_features, n_labels) != (self.n_features, self.n_labels):
                refuse(
                    path,
                    1,
                    f"{n_features} features and {n_labels} labels, but {self.n_features} and "
                    f"{self.n_labels} are expected",
                )
            for block in blocks(_counted(lines, n_rows, path), rows):
                found = read_rows(block, path, 0, self.n_features)
                X = features_of(found, self.n_features, self.dtype)
                Y = label_sets(found, self._number(path), self.n_labels, path) if labels else None
                yield Rows(X, Y)

    def _number(self, path: Path):
        def number(label: str, line: int) -> int:
            known = label.isascii() and label.isdigit() and len(label) < 10
            if not known or int(label) >= self.n_labels:
                refuse(path, line, f"label {shown(label)}; expected is 0 to {self.n_labels - 1}")
            return int(label)

        return number


def read_sizes(lines: Iterator[tuple[int, bytes]], path: Path) -> tuple[int, int, int]:
    """The three numbers of the first line."""
    _, line = next(lines, (1, b""))
    words = line.split()
    if len(words) != 3 or not all(word.isdigit() and len(word) < 18 for word in words):
        refuse(path, 1, f"expected are the numbers of rows, features and labels, not {shown(line)}")
    n_rows, n_features, n_labels = map(int, words)
    if 0 in (n_rows, n_features, n_labels):
        refuse(path, 1, f"expected is at least one row, feature and label, not {shown(line)}")
    return n_rows, n_features, n_labels


def _counted(
    lines: Iterator[tuple[int, bytes]], n_rows: int, path: Path
) -> Iterator[tuple[int, bytes]]:
    """As many lines as the header says; only empty ones may follow."""
    count, number = 0, 1
    for number, line in lines:
        if count < n_rows:
            count += 1
            yield number, line
        elif line.strip():
            refuse(path, number, f"more rows than the {n_rows} of the first line")
    if count < n_rows:
        refuse(path, number, f"the file ends after {count} rows, but its first line says {n_rows}")


def read_extreme(
    path: File,
    *,
    train_split: File | None = None,
    test_split: File | None = None,
    split_column: int = 0,
    max_columns: int | None = None,
    dtype: str = "float64",
    max_bytes: int | None = None,
) -> Dataset:
    """Read a file of the extreme classification repository.

    Parameters
    ----------
    path : path
        The file; compressed if its name ends in .gz, .bz2, .xz or .zst.
    train_split, test_split : paths, optional
        Files of row numbers, from 1, with a column for each split.
    split_column : int, default 0
        Which of the splits.
    max_columns : int, optional
        Most features and most labels; by default 2**24 and 2**22.
    dtype : {"float64", "float32"}
        Type of X.
    max_bytes : int, optional
        How much a compressed file may unfold to; by default 256 MiB and 200 times its size.
    """
    file = existing(path)
    with named(path):
        with opened(file, max_bytes) as stream:
            n_rows, n_features, n_labels = read_sizes(numbered(stream, file), file)
        refuse_many(file, n_features, max_columns or MAX_FEATURES, "features")
        refuse_many(file, n_labels, max_columns or MAX_LABELS, "labels")
        schema = ExtremeSchema(n_features, n_labels, dtype, max_bytes)
        split = {
            name: read_split(existing(part), split_column, n_rows)
            for name, part in (("train", train_split), ("test", test_split))
            if part is not None
        }
        return gathered(schema, schema.parts(file, True, BLOCK_ROWS), path, split=split or None)


def refuse_many(path: Path, count: int, most: int, what: str) -> None:
    """Raise if a file declares more columns than any data set has."""
    if count > most:
        refuse(
            path,
            1,
            f"{count} {what}, and more than {most} are refused; if it is so, "
            f"say max_columns={count}",
        )


def read_split(path: Path, column: int, n_rows: int) -> NDArray[np.int64]:
    """One column of row numbers, counted from 0."""
    whole_number(column, "split_column", 0)
    rows = []
    with opened(path) as file:
        for number, line in numbered(file, path):
            words = line.split()
            if not words:
                continue
            if column >= len(words):
                refuse(path, number, f"{len(words)} columns, but split_column is {column}")
            word = words[column]
            if not word.isdigit() or len(word) > 17 or not 1 <= int(word) <= n_rows:
                refuse(path, number, f"row {shown(word)}; expected is 1 to {n_rows}")
            rows.append(int(word) - 1)
    if not rows:
        refuse(path, None, "no rows")
    return np.array(rows)
