"""LIBSVM files and files of the extreme classification repository.

A row is ``label,label index:value index:value``; labels may be absent. In LIBSVM files empty lines
and lines that begin with # are no rows, as in scikit-learn. In the other format the first line is
``n d l``, the numbers of rows, features and labels, and labels and indices count from 0.
scikit-learn's ``load_svmlight_file`` takes only numbers as labels and only whole files, and its
errors name no line; here pyarrow parses the pairs of many rows at once.

Sparse files declare columns instead of holding them, so a short file can ask for any number: more
than `MAX_FEATURES` features or `MAX_LABELS` labels are refused unless ``max_columns`` allows them,
and nothing is ever allocated for a column as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setwise.datasets.columns import TYPES, Number, indicator
from setwise.datasets.dataset import Dataset, text_array
from setwise.datasets.schema import Again, First, Reader, Rows, Schema, with_new_labels
from setwise.datasets.separators import warn_of_separator
from setwise.datasets.table import parsed
from setwise.datasets.unseen import unseen_hint
from setwise.files import (
    DataError,
    File,
    NumberedLines,
    Place,
    decoded,
    existing,
    numbered,
    opened,
    read_names,
)
from setwise.spelling import known_names, shown
from setwise.validation import refuse_repeated, require_one_of, whole_number

# The largest public sets have 1.6 million features and 2.8 million labels.
MAX_FEATURES, MAX_LABELS = 2**24, 2**22
# What pairs of plain numbers are written with; '?' may be a value that is missing.
ORDINARY = b" \n0123456789.+-eE:?"
# Lines are turned into numbers at most so many, and so many bytes, at a time.
BLOCK_ROWS, BLOCK_BYTES = 4096, 2**22
# About so many rows tell whether labels may be parted by something else than commas.
MOST_TEXTS = 2**20

Lines = list[tuple[int, bytes]]


def blocks(lines: Iterable[tuple[int, bytes]], rows: int) -> Iterator[Lines]:
    """Lists of lines: at most ``rows``, and no more once they have `BLOCK_BYTES`."""
    block: Lines = []
    size = 0
    for entry in lines:
        block.append(entry)
        size += len(entry[1])
        if len(block) == min(rows, BLOCK_ROWS) or size >= BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


def sparse_matrix(ends: Any, indices: Any, values: Any, width: int, place: Place) -> csr_array:
    """A tidy CSR matrix of rows that end at ``ends``, (n + 1); each index stands in a row once."""
    rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    wrong = np.flatnonzero((indices < 0) | (indices >= width) | np.isinf(values))
    if len(wrong):
        index = f"index {indices[wrong[0]]}"
        expected, infinite = f"{index}; expected is 0 to {width - 1}", f"{index} is infinite"
        is_infinite = np.isinf(values[wrong[0]])
        raise place.error(rows[wrong[0]], infinite if is_infinite else expected)
    matrix = csr_array((values, indices, ends), shape=(len(ends) - 1, width))
    matrix.sort_indices()
    twice = np.flatnonzero((np.diff(rows) == 0) & (np.diff(matrix.indices) == 0))
    if len(twice):
        reason = f"index {matrix.indices[twice[0]]} is there twice"
        raise place.error(rows[twice[0]], reason)
    return matrix


class _SparseRows(NamedTuple):
    """Some rows: X with a column for each index from 0, the labels of each, where they stand."""

    X: Any
    labels: list[list[str]]
    place: Place


def _read_rows(lines: Lines, path: Path, width: int) -> _SparseRows:
    place = Place(path, lambda row: lines[row][0])
    labels, pairs, ends = [], [], [0]
    for row, (number, line) in enumerate(lines):
        text, _, rest = line.partition(b"#")[0].rstrip().replace(b"\t", b" ").partition(b" ")
        if b":" in text:
            text, rest = b"", text + b" " + rest
        names = decoded(text, path, number).split(",") if text else []
        if not all(names) or len(set(names)) < len(names):
            what = "a label is there twice" if all(names) else "an empty label"
            raise place.error(row, f"{what} in {shown(text)}")
        labels.append(names)
        pairs += rest.split()
        ends.append(len(pairs))
    found = number_pairs(b"\n".join(pairs), len(pairs), ":", [])
    indices, values = found or _named_pairs(pairs, ends, place)
    return _SparseRows(sparse_matrix(ends, indices, values, width, place), labels, place)


def number_pairs(pairs: bytes, count: int, mark: str, nulls: list[str]) -> Any:
    """Index and value of so many pairs of plain numbers, one a line; None if they are not all."""
    types = {"index": pa.uint32(), "value": pa.float64()}
    is_plain = count and not pairs.translate(None, ORDINARY)
    table = parsed(pairs, types, nulls, delimiter=mark, quote_char=False) if is_plain else None
    if table is None or len(table) != count or table.column("index").null_count:
        return None
    # (Copies: Arrow's memory is not to be written to.)
    return tuple(np.array(column.to_numpy()) for column in table.columns)


def _named_pairs(pairs: list[bytes], ends: list[int], place: Place) -> tuple[Any, Any]:
    """Index and value of each pair, one by one: NaN is read, and what is wrong is named."""
    indices, values = [], []
    for entry, pair in enumerate(pairs):
        index, colon, text = pair.decode("utf-8", "replace").partition(":")
        value = Number().code(text)
        is_index = index.isascii() and index.removeprefix("-").isdigit()
        if not colon or not is_index or value is None:
            what = f"the value of {shown(pair)} is no finite number"
            expected = f"expected is index:value, not {shown(pair)}"
            row = int(np.searchsorted(ends, entry, "right")) - 1
            raise place.error(row, what if colon and is_index else expected)
        indices.append(int(index) if len(index) < 18 else 2**62)
        values.append(value)
    return np.array(indices, np.int64), np.array(values, np.float64)


@dataclass(frozen=True, eq=False)
class SparseTextSchema(Schema):
    """Files with these numbers of features and labels.

    ``names`` are the labels of a LIBSVM file, in the order of the columns of Y; None for an extreme
    file, whose labels are their numbers. Indices count from ``first``.
    """

    n_features: int
    n_labels: int
    names: Any = None
    first: int = 0
    dtype: str = "float64"
    max_bytes: int | None = None
    unseen_labels: str = "refuse"

    def __post_init__(self):
        whole_number(self.n_features, "n_features", 1)
        whole_number(self.n_labels, "n_labels", 1)
        require_one_of(self.dtype, TYPES, "dtype")
        if self.names is not None:
            vars(self).update(names=text_array(self.names))

    @property
    def format(self) -> str:
        return "extreme" if self.names is None else "libsvm"

    @cached_property
    def label_names(self) -> Any:
        return np.arange(self.n_labels).astype("<U8") if self.names is None else self.names

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {} if self.names is None else {n: i for i, n in enumerate(self.names.tolist())}

    def reading(self, unseen_categories: str | None, unseen_labels: str | None) -> Schema:
        super().reading(unseen_categories, unseen_labels)
        return self if unseen_labels is None else replace(self, unseen_labels=unseen_labels)

    def whole(self, path: Path, labels: bool, source: File) -> Dataset:
        if not labels or self.unseen_labels == "refuse" or self.names is None:
            return super().whole(path, labels, source)
        lines = blocks(_lines(path, self.max_bytes, None), BLOCK_ROWS)
        parts = [_read_rows(block, path, self.n_features + self.first) for block in lines]
        found = {label for part in parts for labels in part.labels for label in labels}
        new = [name for name in _sorted(found) if name not in self._columns]
        names = [*self.names.tolist(), *new]
        schema = replace(self, names=names, n_labels=len(names), unseen_labels="refuse")
        return with_new_labels(schema.gathered(map(schema.rows, parts), source), len(new))

    def parts(self, path: Path, labels: bool, rows: int) -> Iterator[Rows]:
        sizes = (self.n_features, self.n_labels) if self.names is None else None
        for block in blocks(_lines(path, self.max_bytes, sizes), rows):
            found = _read_rows(block, path, self.n_features + self.first)
            yield self.rows(found, labels, unseen_hint())

    def rows(self, rows: _SparseRows, labels: bool = True, hint: str = "") -> Rows:
        """Features and label sets; ``hint`` is said of a label that is not known."""
        data, indices = rows.X.data.astype(self.dtype, copy=False), rows.X.indices - self.first
        if (indices < 0).any():
            raise ValueError("an index is 0, but indices count from 1 (zero_based=False)")
        shape = (rows.X.shape[0], self.n_features)
        X = csr_array((data, indices, rows.X.indptr), shape=shape)
        if not labels:
            return Rows(X)
        column = partial(self._column, place=rows.place, hint=hint)
        found = [[column(name, row) for name in names] for row, names in enumerate(rows.labels)]
        return Rows(X, indicator(found, self.n_labels))

    def _column(self, label: str, row: int, place: Place, hint: str) -> int:
        column = self._columns.get(label, self.n_labels)
        if self.names is None and label.isascii() and label.isdigit() and len(label) < 10:
            column = int(label)
        if column >= self.n_labels:
            expected = f"label {shown(label)}; expected is 0 to {self.n_labels - 1}"
            known = f"unknown label {shown(label)}; {known_names(label, self._columns)}{hint}"
            raise place.error(row, expected if self.names is None else known)
        return column


def _lines(path: Path, max_bytes: int | None, sizes: Any) -> NumberedLines:
    """The lines that are rows; an extreme file has ``sizes`` (features, labels) in its first."""
    with opened(path, max_bytes) as file:
        lines = numbered(file, path)
        if sizes is None:
            # A row without labels and without features cannot be told from an empty line.
            yield from ((n, line) for n, line in lines if line.strip() and line[:1] != b"#")
            return
        n_rows, *columns = _sizes(lines, path)
        if columns != [*sizes]:
            reason = "{} features and {} labels, but {} and {} are expected"
            raise DataError(path, 1, reason.format(*columns, *sizes))
        number = 1
        for number, line in lines:
            if number <= n_rows + 1:
                yield number, line
            elif line.strip():
                raise DataError(path, number, f"more rows than the {n_rows} of the first line")
        if number <= n_rows:
            reason = f"the file ends after {number - 1} rows, but its first line says {n_rows}"
            raise DataError(path, number, reason)


def _sizes(lines: NumberedLines, path: Path) -> list[int]:
    """The three numbers of the first line of an extreme file."""
    _, line = next(lines, (1, b""))
    words = line.split()
    if len(words) != 3 or not all(w.isdigit() and len(w) < 18 and int(w) for w in words):
        expected = "expected are the numbers of rows, features and labels, at least 1 of each"
        raise DataError(path, 1, f"{expected}, not {shown(line)}")
    return [int(word) for word in words]


def _refuse_many(path: Path, n_features: int, n_labels: int, most: int | None) -> None:
    """Raise if a file declares more columns than any data set has."""
    counts = (("features", n_features, MAX_FEATURES), ("labels", n_labels, MAX_LABELS))
    for what, count, usual in counts:
        if count > (most or usual):
            hint = f"more than {most or usual} are refused; if it is so, say max_columns={count}"
            raise DataError(path, 1, f"{count} {what}, and {hint}")


# ------------------------------------------------------------------------------------ a first file


@Reader
def read_libsvm(
    path: File,
    *,
    n_features: int | None = None,
    labels: Any = None,
    zero_based: bool | Literal["auto"] = "auto",
    max_columns: int | None = None,
    dtype: str = "float64",
    max_bytes: int | None = None,
) -> First:
    r"""Read a LIBSVM file.

    Parameters
    ----------
    path, dtype, max_bytes
        As in `read`.
    n_features : int, optional
        Number of features; by default what the largest index needs. Say it if other files may have
        larger ones.
    labels : list of str, optional
        The labels; by default those that occur, sorted, as numbers if they are.
    zero_based : bool or "auto"
        Whether indices count from 0; "auto": if a 0 occurs.
    max_columns : int, optional
        Most features and most labels; by default 2**24 and 2**22.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (file := Path(folder, "tiny.svm")).write_text("0,2 1:0.5 3:1\n1 2:2.0\n")
    ...     print(read_libsvm(file))
    tiny: 2 rows, 3 features, 3 labels, 1.50 labels per row, 2 distinct sets
    """
    file = existing(path)
    width = (max_columns or MAX_FEATURES) + 1
    lines = partial(_lines, file, max_bytes, None)
    parts = Again(
        lambda: (_read_rows(block, file, width) for block in blocks(lines(), BLOCK_ROWS)),
        lambda part: part.X.nnz + len(part.labels),
    )
    lowest, highest, found, texts = 1, 0, set[str](), list[str]()
    for part in parts:
        lowest = min(lowest, int(part.X.indices.min(initial=1)))
        highest = max(highest, int(part.X.indices.max(initial=0)))
        found.update(label for names in part.labels for label in names)
        if len(texts) < MOST_TEXTS:
            texts += [",".join(names) for names in part.labels]
    first = int(lowest > 0 if zero_based == "auto" else not zero_based)
    needed = max(highest + 1 - first, 1)
    if n_features is not None and needed > whole_number(n_features, "n_features", 1):
        raise ValueError(f"index {highest}, but n_features is {n_features}")
    names = _sorted(found) if labels is None else list(labels)
    hint = "the labels of a LIBSVM file have commas between"
    warn_of_separator(texts, ",", file.name, lambda _: hint)
    if not names:
        raise ValueError("no row has a label")
    refuse_repeated(names)
    _refuse_many(file, needed, len(names), max_columns)
    sizes = n_features or needed, len(names)
    schema = SparseTextSchema(*sizes, names, first, dtype, max_bytes)
    return First(schema, lambda: map(schema.rows, parts.once_more()), {})


def _sorted(names: set[str]) -> list[str]:
    """Labels sorted as numbers if all are whole numbers, else as text."""
    if all(len(n) < 19 and n.isascii() and n.removeprefix("-").isdigit() for n in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)


@Reader
def read_extreme(
    path: File,
    *,
    train_split: File | None = None,
    test_split: File | None = None,
    split_column: int = 0,
    max_columns: int | None = None,
    dtype: str = "float64",
    max_bytes: int | None = None,
) -> First:
    r"""Read a file of the extreme classification repository.

    Parameters
    ----------
    path, dtype, max_bytes
        As in `read`.
    train_split, test_split : paths, optional
        Files of row numbers, from 1, with a column for each split.
    split_column : int, default 0
        Which of the splits.
    max_columns : int, optional
        Most features and most labels; by default 2**24 and 2**22.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (file := Path(folder, "tiny.txt")).write_text("2 3 3\n0,2 1:0.5 2:1\n1 0:2.0\n")
    ...     print(read_extreme(file))
    tiny: 2 rows, 3 features, 3 labels, 1.50 labels per row, 2 distinct sets
    """
    file = existing(path)
    with opened(file, max_bytes) as stream:
        n_rows, n_features, n_labels = _sizes(numbered(stream, file), file)
    _refuse_many(file, n_features, n_labels, max_columns)
    schema = SparseTextSchema(n_features, n_labels, dtype=dtype, max_bytes=max_bytes)
    files = {"train": train_split, "test": test_split}
    split = {
        name: _read_split(existing(part), split_column, n_rows)
        for name, part in files.items()
        if part is not None
    }
    return First(schema, lambda: schema.parts(file, True, BLOCK_ROWS), {"split": split})


def _read_split(path: Path, column: int, n_rows: int) -> NDArray[np.int64]:
    """One column of row numbers, counted from 0."""
    rows, whole_column = [], whole_number(column, "split_column", 0)
    for number, line in enumerate(read_names(path), 1):
        words = line.split()
        if words:
            word = words[column] if whole_column < len(words) else ""
            if not word.isdecimal() or len(word) > 17 or not 1 <= int(word) <= n_rows:
                found = f"{shown(word)} in column {column}"
                raise DataError(path, number, f"{found}; expected is a row from 1 to {n_rows}")
            rows.append(int(word) - 1)
    if not rows:
        raise DataError(path, None, "no rows")
    return np.array(rows)
