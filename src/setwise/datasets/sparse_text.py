"""LIBSVM files and files of the extreme classification repository.

A row is ``label,label index:value index:value``; labels may be absent. In LIBSVM files empty lines
and lines that begin with # are no rows, as in scikit-learn. In the other format the first line is
``n d l``, the numbers of rows, features and labels, and labels and indices count from 0.
scikit-learn's ``load_svmlight_file`` takes only numbers as labels and only whole files, and its
errors name no line; here pyarrow parses the pairs of many rows at once.

Sparse files declare columns instead of holding them, so a short file can ask for any number: more
than `MAX_FEATURES` features or `MAX_LABELS` labels are refused unless ``max_columns`` allows them,
and nothing is ever allocated for a feature as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setwise.datasets.columns import TYPES, Labels, Number
from setwise.datasets.schema import Again, ColumnSchema, First, Raw, Reader
from setwise.datasets.separators import warn_of_separator
from setwise.datasets.table import parsed
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
from setwise.spelling import shown
from setwise.validation import require_one_of, whole_number

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


def _raw(lines: Lines, path: Path, width: int) -> Raw:
    """Some rows: a column for each index from 0, and the list of labels of each."""
    labels, pairs, ends = [], [], [0]
    for number, line in lines:
        text, _, rest = line.partition(b"#")[0].rstrip().replace(b"\t", b" ").partition(b" ")
        if b":" in text:
            text, rest = b"", text + b" " + rest
        labels.append(decoded(text, path, number).split(",") if text else [])
        pairs += rest.split()
        ends.append(len(pairs))
    place = Place(path, lambda row: lines[row][0])
    found = number_pairs(b"\n".join(pairs), len(pairs), ":", [])
    indices, values = found or _named_pairs(pairs, ends, place)
    return Raw(sparse_matrix(ends, indices, values, width, place), {}, labels, place)


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


@dataclass(frozen=True)
class Indexed:
    """Features that have numbers, from ``first`` on, and no names."""

    count: int
    first: int = 0
    dtype: str = "float64"
    names = None
    coded = texts = MappingProxyType({})

    def __post_init__(self):
        whole_number(self.count, "n_features", 1)
        require_one_of(self.dtype, TYPES, "dtype")

    def reading(self, unseen: str) -> Indexed:
        """The same: there are no categories."""
        return self

    def assemble(self, codes: Any, texts: Any) -> csr_array:
        """X from a matrix with a column for each index from 0."""
        data, indices = codes.data.astype(self.dtype, copy=False), codes.indices - self.first
        if (indices < 0).any():
            raise ValueError("an index is 0, but indices count from 1 (zero_based=False)")
        return csr_array((data, indices, codes.indptr), shape=(codes.shape[0], self.count))


@dataclass(frozen=True, eq=False)
class SparseTextSchema(ColumnSchema):
    """How a LIBSVM file is read, or an extreme one, whose first line has its sizes."""

    has_sizes: bool = False

    @property
    def format(self) -> str:
        return "extreme" if self.has_sizes else "libsvm"

    def raws(self, path: Path, labels: bool, rows: int) -> Iterator[Raw]:
        features = self.features
        sizes = (features.count, len(self.label_names)) if self.has_sizes else None
        for block in blocks(_lines(path, self.max_bytes, sizes), rows):
            raw = _raw(block, path, features.count + features.first)
            yield raw if labels else raw._replace(cells=None)


def _lines(path: Path, max_bytes: int | None, sizes: Any) -> NumberedLines:
    """The lines that are rows; an extreme file has ``sizes`` (features, labels) in its first."""
    with opened(path, max_bytes) as file:
        lines = numbered(file, path)
        if sizes is None:
            # A row without labels and without features cannot be told from an empty line.
            yield from ((n, line) for n, line in lines if line.strip() and line[:1] != b"#")
            return
        n_rows, n_features, n_labels = _sizes(lines, path)
        if n_features != sizes[0] or n_labels > sizes[1]:
            expected = f"{sizes[0]} features and at most {sizes[1]} labels are expected"
            raise DataError(path, 1, f"{n_features} features and {n_labels} labels, but {expected}")
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
    raws = Again(
        lambda: (_raw(block, file, width) for block in blocks(lines(), BLOCK_ROWS)),
        lambda raw: raw.codes.nnz + len(raw.cells),
    )
    lowest, highest, found, texts = 1, 0, set[str](), list[str]()
    for raw in raws:
        lowest = min(lowest, int(raw.codes.indices.min(initial=1)))
        highest = max(highest, int(raw.codes.indices.max(initial=0)))
        found.update(label for names in raw.cells for label in names)
        if len(texts) < MOST_TEXTS:
            texts += [",".join(names) for names in raw.cells]
    first = int(lowest > 0 if zero_based == "auto" else not zero_based)
    needed = max(highest + 1 - first, 1)
    if n_features is not None and needed > whole_number(n_features, "n_features", 1):
        raise ValueError(f"index {highest}, but n_features is {n_features}")
    names = _sorted(found) if labels is None else list(labels)
    hint = "the labels of a LIBSVM file have commas between"
    warn_of_separator(texts, ",", file.name, lambda _: hint)
    _refuse_many(file, needed, len(names), max_columns)
    features = Indexed(n_features or needed, first, dtype)
    schema = SparseTextSchema(features, Labels(names), max_bytes=max_bytes)
    return schema.first(raws.once_more)


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
    features, labels = Indexed(n_features, dtype=dtype), Labels(np.arange(n_labels).astype("<U8"))
    schema = SparseTextSchema(features, labels, max_bytes=max_bytes, has_sizes=True)
    files = {"train": train_split, "test": test_split}
    split = {
        name: _read_split(existing(part), split_column, n_rows)
        for name, part in files.items()
        if part is not None
    }
    return schema.first(lambda: schema.raws(file, True, BLOCK_ROWS), split=split)


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
