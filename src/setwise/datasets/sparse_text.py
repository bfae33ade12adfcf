"""Rows of labels and ``index:value`` pairs, as LIBSVM and extreme classification have them.

A row is ``label,label index:value index:value``; labels may be absent. scikit-learn's
``load_svmlight_file`` reads the same rows, but its errors name no line, indices beyond 32 bits
escape as OverflowError, and it knows no header and no parts of a file.

Sparse files declare columns instead of holding them, so a short file can ask for any number. The
rule: more than `MAX_FEATURES` features or `MAX_LABELS` labels, by header or by index, are refused
unless ``max_columns`` allows them, and nothing is ever allocated for a column as such: matrices are
CSR, features have no names.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setwise.datasets.arff_rows import NUMBER
from setwise.datasets.data_error import refuse, shown
from setwise.datasets.lines import Lines, decoded
from setwise.datasets.numerals import ORDINARY, numerals

# The largest public sets have 1.6 million features and 2.8 million labels.
MAX_FEATURES = 2**24
MAX_LABELS = 2**22


class SparseRows(NamedTuple):
    """Some rows: entries of X by row, and the labels of each as bytes."""

    ends: NDArray[np.int64]
    indices: NDArray[np.int64]
    values: NDArray[np.float64]
    labels: list[bytes]
    lines: list[int]


def read_rows(lines: Lines, path: Path, first: int, limit: int) -> SparseRows:
    """Part the lines into labels and pairs; indices count from ``first`` and are below a limit."""
    parts = [_parted(line) for _, line in lines]
    rests = [rest for _, rest in parts]
    found = _quick(rests) or _slow(rests, lines, path)
    ends, indices, values = found
    rows = np.repeat(np.arange(len(lines)), np.diff(ends))
    _check(rows, indices - first, values, lines, path, first, limit)
    indices, values = _sorted(rows, indices - first, values, lines, path, first)
    return SparseRows(ends, indices, values, [label for label, _ in parts], [n for n, _ in lines])


def _parted(line: bytes) -> tuple[bytes, bytes]:
    """Labels and pairs: a line that begins with a blank or a pair has no labels."""
    line = line.rstrip()
    if line[:1] in (b" ", b"\t"):
        return b"", line.lstrip()
    labels, _, rest = line.replace(b"\t", b" ").partition(b" ")
    return (b"", line) if b":" in labels else (labels, rest.strip())


def _quick(rests: list[bytes]) -> tuple[Any, Any, Any] | None:
    """All rows at once, if they are index:value and blanks and nothing else; else None."""
    if any(rest.translate(None, ORDINARY) for rest in rests):
        return None
    full = [rest for rest in rests if rest]
    counts = np.array([rest.count(b":") for rest in rests], np.int64)
    text = b";".join(full)
    found = numerals(text)
    if found is None or len(found.values) != 2 * counts.sum() or b"," in text:
        return None
    if text.count(b":") + text.count(b";") != counts.sum() + max(len(full) - 1, 0):
        return None
    ends = np.concatenate([[0], np.cumsum(counts)])
    if not len(found.values):
        return ends, np.zeros(0, np.int64), np.zeros(0)
    # One ':' and nothing else within a pair; no ':' between pairs, and ';' only between rows.
    joined = (found.starts[1::2] == found.ends[::2] + 1).all()
    within = (found.marks[1::2] == found.marks[::2] + 1).all()
    row = np.repeat(np.cumsum(counts > 0) - 1, counts)
    between = (found.marks[::2] == np.arange(len(row)) + row).all()
    if not (joined and within and between and found.whole[::2].all()):
        return None
    return ends, found.values[::2].astype(np.int64), found.values[1::2]


def _slow(rests: list[bytes], lines: Lines, path: Path) -> tuple[Any, Any, Any]:
    """Pair by pair: comments and NaN are read, and what is wrong is named."""
    ends, indices, values = [0], [], []
    for rest, (number, _) in zip(rests, lines, strict=True):
        for pair in rest.partition(b"#")[0].split():
            index, colon, value = decoded(pair, path, number, "utf-8").partition(":")
            if not colon or not index.isascii() or not index.removeprefix("-").isdigit():
                refuse(path, number, f"expected is index:value, not {shown(pair)}")
            if not NUMBER.fullmatch(value) and value.lower() != "nan":
                refuse(path, number, f"the value of {shown(pair)} is no finite number")
            indices.append(int(index) if len(index) < 18 else 2**62)
            values.append(float(value))
        ends.append(len(indices))
    return np.array(ends), np.array(indices, np.int64), np.array(values, np.float64)


def _check(rows, indices, values, lines: Lines, path: Path, first: int, limit: int) -> None:
    wrong = (indices < 0) | (indices >= limit) | np.isinf(values)
    if wrong.any():
        entry = int(np.argmax(wrong))
        number = lines[rows[entry]][0]
        if np.isinf(values[entry]):
            refuse(path, number, f"the value of index {indices[entry] + first} is infinite")
        refuse(
            path,
            number,
            f"index {indices[entry] + first}; expected is {first} to {limit + first - 1}",
        )


def _sorted(rows, indices, values, lines: Lines, path: Path, first: int) -> tuple[Any, Any]:
    order = None
    later = (np.diff(rows) == 0) & (np.diff(indices) <= 0)
    if later.any():
        order = np.lexsort((indices, rows))
        indices, values = indices[order], values[order]
        twice = (np.diff(rows) == 0) & (np.diff(indices) == 0)
        if twice.any():
            entry = int(np.argmax(twice))
            refuse(path, lines[rows[entry]][0], f"index {indices[entry] + first} is there twice")
    return indices, values


def features_of(rows: SparseRows, n_features: int, dtype: str) -> csr_array:
    """X, CSR."""
    shape = (len(rows.lines), n_features)
    return csr_array((rows.values.astype(dtype), rows.indices, rows.ends), shape=shape)


def label_sets(
    rows: SparseRows, number: Callable[[str, int], int], n_labels: int, path: Path
) -> csr_array:
    """Y, CSR; ``number`` gives the column of a label on a line, or raises."""
    indices: list[int] = []
    ends = [0]
    for text, line in zip(rows.labels, rows.lines, strict=True):
        if text:
            found = sorted([number(label, line) for label in split_labels(text, path, line)])
            if len(set(found)) < len(found):
                refuse(path, line, f"a label is there twice in {shown(text)}")
            indices += found
        ends.append(len(indices))
    ones = np.ones(len(indices), np.uint8)
    shape = (len(rows.lines), n_labels)
    return csr_array((ones, np.array(indices, np.int64), ends), shape=shape)


def split_labels(text: bytes, path: Path, line: int) -> list[str]:
    """The labels of a row."""
    labels = decoded(text, path, line, "utf-8").split(",")
    if not all(labels):
        refuse(path, line, f"an empty label in {shown(text)}")
    return labels
