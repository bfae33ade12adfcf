"""The rows of an ARFF file as codes (see `Features`) and text.

Rows of numbers are read many at once (`numerals`); rows that are out of the ordinary (quotes, '?',
nominal values other than 0 and 1) value by value. The 120,919 sparse rows of imdb take a third of
the time and of the memory that liac-arff takes; scipy reads no sparse files, and neither of them
names the line of every error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from setwise.datasets.arff_header import QUOTED, Attribute, plain
from setwise.datasets.data_error import DataError, refuse, shown
from setwise.datasets.lines import Lines, decoded
from setwise.datasets.numerals import ORDINARY, numerals

NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
# What a sparse row of numbers is written with.
SPARSE = bytes(set(ORDINARY) - set(b":;"))
_ENTRY = re.compile(rf"\s*(\d+)\s+({QUOTED}|[^\s,'\"]+)\s*(,|$)")
_CELL = re.compile(rf"(?:\s*({QUOTED})\s*|([^,'\"]*))(,|$)")

# Kinds of columns for the reader of rows.
PLAIN, CODED, TEXT, SKIPPED = range(4)


@dataclass(frozen=True)
class Column:
    """How the values of one attribute are read.

    ``codes`` are those of the values of a nominal attribute; ``binary`` says that its values are
    0 and 1, and so their own codes.
    """

    attribute: Attribute
    way: int
    codes: Mapping[str, float] = field(default_factory=dict)
    unseen: float | None = None

    @property
    def binary(self) -> bool:
        return self.way == CODED and dict(self.codes) == {"0": 0.0, "1": 1.0}


class Block(NamedTuple):
    """Codes (dense, or CSR) with a column for each attribute, texts by name, and lines."""

    codes: Any
    texts: dict[str, list[str]]
    lines: list[int]


class RowReader:
    """Reads lines of one ARFF file."""

    def __init__(self, columns: Sequence[Column], path: Path, encoding: str):
        self.columns, self.path, self.encoding = columns, path, encoding
        self.texts = {c.attribute.name: i for i, c in enumerate(columns) if c.way == TEXT}
        self.binary = np.array([i for i, c in enumerate(columns) if c.binary], np.int64)
        self.skipped = np.array([c.way == SKIPPED for c in columns])
        quick = [c.way in (PLAIN, SKIPPED) or c.binary for c in columns]
        self.quick = all(quick)
        # One list of labels at the end of numbers, as in Clus files, is split off.
        self.quick_but_last = not quick[-1] and all(quick[:-1])

    def block(self, lines: Lines) -> Block:
        """The rows on some lines."""
        kept = [(number, line.strip()) for number, line in lines]
        kept = [(number, line) for number, line in kept if line and not line.startswith(b"%")]
        texts: dict[str, list[str]] = {name: [] for name in self.texts}
        numbers = [number for number, _ in kept]
        if any(line.startswith(b"{") for _, line in kept):
            codes: Any = self._sparse(kept, texts)
            self._check(codes.data, codes.indices, np.repeat(numbers, np.diff(codes.indptr)))
        else:
            codes = self._quick_dense(kept)
            if codes is None:
                rows = [self._dense_row(number, line, texts) for number, line in kept]
                codes = np.array(rows, np.float64).reshape(len(rows), len(self.columns))
            self._check_dense(codes, numbers)
        return Block(codes, texts, numbers)

    # ------------------------------------------------------------------------------- dense rows

    def _quick_dense(self, lines: Lines) -> Any:
        """All rows at once, if they are numbers with commas and nothing else; else None."""
        if not self.quick or any(line.translate(None, SPARSE) for _, line in lines):
            return None
        if any(line.count(b",") != len(self.columns) - 1 for _, line in lines):
            return None
        found = numerals(b",".join([line for _, line in lines]))
        if found is None or len(found.values) != len(lines) * len(self.columns):
            return None
        if (found.marks != np.arange(len(found.marks))).any():
            return None
        return found.values.reshape(len(lines), len(self.columns))

    def _dense_row(self, number: int, line: bytes, texts: dict[str, list[str]]) -> list[float]:
        if self.quick and b"_" not in line:
            try:
                row = list(map(float, line.split(b",")))
            except ValueError:
                pass
            else:
                self._require_all(number, len(row))
                return row
        return self._slow_row(number, line, texts)

    def _slow_row(self, number: int, line: bytes, texts: dict[str, list[str]]) -> list[float]:
        if self.quick_but_last and b"_" not in line and b"'" not in line and b'"' not in line:
            rest, _, last = line.rpartition(b",")
            try:
                row = [nan if c == b"?" else float(c) for c in rest.split(b",")] if rest else []
            except ValueError:
                pass
            else:
                self._require_all(number, len(row) + 1)
                text = decoded(last, self.path, number, self.encoding).strip()
                return [*row, self._value(self.columns[-1], text, number, texts)]
        cells = self._cells(number, decoded(line, self.path, number, self.encoding))
        self._require_all(number, len(cells))
        return [
            self._value(column, cell, number, texts)
            for column, cell in zip(self.columns, cells, strict=True)
        ]

    def _cells(self, number: int, line: str) -> list[str]:
        if "'" not in line and '"' not in line:
            return [plain(cell.strip()) for cell in line.split(",")]
        cells, place = [], 0
        while True:
            found = _CELL.match(line, place)
            if found is None:
                refuse(self.path, number, f"a quote that is not closed, near {shown(line[place:])}")
            quoted, bare, comma = found.groups()
            cells.append(plain(quoted) if quoted else plain(bare.strip()))
            if not comma:
                return cells
            place = found.end()

    def _require_all(self, number: int, count: int) -> None:
        if count != len(self.columns):
            refuse(
                self.path,
                number,
                f"{count} values, but {len(self.columns)} attributes are declared",
            )

    # ------------------------------------------------------------------------------ sparse rows

    def _sparse(self, lines: Lines, texts: dict[str, list[str]]) -> csr_array:
        ends, columns, data = self._quick_sparse(lines) or self._any_sparse(lines, texts)
        shape = (len(lines), len(self.columns))
        rows = np.repeat(np.arange(len(lines)), np.diff(ends))
        self._require_places(rows, columns, lines)
        steps = np.diff(rows * len(self.columns) + columns)
        if (steps <= 0).any():
            order = np.lexsort((columns, rows))
            rows, columns, data = rows[order], columns[order], data[order]
            twice = np.flatnonzero(np.diff(rows * len(self.columns) + columns) == 0)
            if len(twice):
                name = self.columns[columns[twice[0]]].attribute.name
                line = lines[rows[twice[0]]][0]
                refuse(self.path, line, f"attribute {shown(name)} has two values")
        codes = csr_array((data, columns, ends), shape=shape)
        self._refuse_left_out()
        return codes

    def _quick_sparse(self, lines: Lines) -> tuple[Any, Any, Any] | None:
        """All rows at once, if they are numbers in braces and nothing else; else None."""
        bodies = [line[1:-1].strip() for _, line in lines if line[:1] + line[-1:] == b"{}"]
        if not self.quick or len(bodies) < len(lines):
            return None
        if any(body.translate(None, SPARSE) for body in bodies):
            return None
        full = [body for body in bodies if body]
        found = numerals(b",".join(full))
        counts = np.array([body.count(b",") + 1 if body else 0 for body in bodies], np.int64)
        if found is None or len(found.values) != 2 * counts.sum():
            return None
        pair = np.arange(counts.sum())
        # No comma within a pair, one before each pair but the first.
        within = (found.marks[1::2] == pair).all() and (found.marks[::2] == pair).all()
        if not within or not found.whole[::2].all():
            return None
        ends = np.concatenate([[0], np.cumsum(counts)])
        return ends, found.values[::2].astype(np.int64), found.values[1::2]

    def _any_sparse(self, lines: Lines, texts: dict[str, list[str]]) -> tuple[Any, Any, Any]:
        """Row by row."""
        indices, values, ends = [], [], [0]
        for number, line in lines:
            if line.startswith(b"{"):
                pair = self._sparse_row(number, line, texts)
            else:
                row = self._dense_row(number, line, texts)
                pair = list(range(len(row))), row
            indices += pair[0]
            values += pair[1]
            ends.append(len(indices))
        return np.array(ends), np.array(indices, np.int64), np.array(values, np.float64)

    def _sparse_row(
        self, number: int, line: bytes, texts: dict[str, list[str]]
    ) -> tuple[list[int], list[float]]:
        if not line.endswith(b"}"):
            refuse(self.path, number, "a sparse row that does not end with '}': cut off?")
        body = line[1:-1].strip()
        return self._slow_sparse_row(number, decoded(body, self.path, number, self.encoding), texts)

    def _slow_sparse_row(
        self, number: int, body: str, texts: dict[str, list[str]]
    ) -> tuple[list[int], list[float]]:
        before = {name: len(cells) for name, cells in texts.items()}
        indices, values, place = [], [], 0
        while place < len(body):
            found = _ENTRY.match(body, place)
            if found is None:
                refuse(
                    self.path,
                    number,
                    f"expected is '{{index value, ...}}', but near {shown(body[place:])} it is not",
                )
            index = int(found.group(1)) if len(found.group(1)) < 18 else 2**62
            if index >= len(self.columns):
                self._refuse_index(index, number)
            value = self._value(self.columns[index], plain(found.group(2)), number, texts)
            indices.append(index)
            values.append(value)
            place = found.end()
        for name, count in before.items():
            if len(texts[name]) == count:
                texts[name].append("")
            if len(texts[name]) > count + 1:
                refuse(self.path, number, f"attribute {shown(name)} has two values")
        return indices, values

    def _require_places(self, rows: Any, columns: Any, lines: Lines) -> None:
        outside = columns >= len(self.columns)
        if outside.any():
            entry = int(np.argmax(outside))
            self._refuse_index(int(columns[entry]), lines[rows[entry]][0])

    def _refuse_index(self, index: int, number: int) -> None:
        refuse(
            self.path,
            number,
            f"index {index}, but {len(self.columns)} attributes are declared (0 to "
            f"{len(self.columns) - 1})",
        )

    def _refuse_left_out(self) -> None:
        """Raise if the value that sparse rows leave out is not the one with code 0."""
        for column in self.columns:
            if column.way == CODED and column.codes.get(column.attribute.values[0]) != 0:
                refuse(
                    self.path,
                    column.attribute.line,
                    f"attribute {shown(column.attribute.name)} has the first value "
                    f"{shown(column.attribute.values[0])}, which the sparse rows of ARFF leave "
                    f"out; expected is "
                    f"{shown(next((v for v, c in column.codes.items() if c == 0), '0'))} first",
                )

    # ------------------------------------------------------------------------------ single values

    def _value(self, column: Column, text: str, number: int, texts: dict[str, list[str]]) -> float:
        if column.way == SKIPPED:
            return 0.0
        if column.way == TEXT:
            texts[column.attribute.name].append(text)
            return 0.0
        if text == "?":
            return nan
        if column.way == CODED:
            return self._code(column, text, number)
        if NUMBER.fullmatch(text) or text.lower() == "nan":
            return float(text)
        raise DataError(
            self.path,
            number,
            f"attribute {shown(column.attribute.name)} is a number, but its value is {shown(text)}",
        )

    def _code(self, column: Column, text: str, number: int) -> float:
        code = column.codes.get(text, column.unseen)
        if code is None or text not in column.attribute.values:
            some = ", ".join(column.attribute.values[:8])
            declared = text in column.attribute.values
            what = "was not there when the schema was made" if declared else "is not declared"
            refuse(
                self.path,
                number,
                f"the value {shown(text)} of attribute {shown(column.attribute.name)} {what}; "
                f"declared are {shown('{' + some + '}')}",
            )
        return code

    def _check_dense(self, codes: Any, numbers: list[int]) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            clean = np.isfinite(codes.sum()) and not len(self.binary)
        if not clean:
            rows, columns = np.indices(codes.shape, sparse=True)
            self._check(
                codes.ravel(),
                np.broadcast_to(columns, codes.shape).ravel(),
                np.broadcast_to(np.array(numbers)[rows], codes.shape).ravel(),
            )

    def _check(self, values: Any, columns: Any, numbers: Any) -> None:
        """Raise for infinite values, and values of 0/1 attributes that are neither."""
        wrong = np.isinf(values)
        if len(self.binary):
            binary = np.zeros(len(self.columns), bool)
            binary[self.binary] = True
            wrong |= binary[columns] & (values != 0) & (values != 1) & ~np.isnan(values)
        wrong &= ~self.skipped[columns]
        if wrong.any():
            entry = int(np.argmax(wrong))
            column = self.columns[columns[entry]]
            expected = "0 or 1" if column.binary else "a finite number"
            refuse(
                self.path,
                int(numbers[entry]),
                f"attribute {shown(column.attribute.name)} must be {expected}, "
                f"but it is {values[entry]:g}",
            )
