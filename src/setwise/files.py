"""Files within bounds: opened, unpacked, line by line; what is wrong with one is a `DataError`.

What a file may ask for is bounded before it is read: a line has at most `MAX_LINE` bytes, and a
compressed file may unfold to `FREE_BYTES` plus `MAX_RATIO` times its size. (Text of zeros folds to
a hundredth; a file made to fill the memory folds to a thousandth and less.) ``max_bytes`` of the
readers replaces the second bound.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from setwise.spelling import argument

MAX_LINE = 2**26
FREE_BYTES = 2**28
MAX_RATIO = 200

File = str | os.PathLike[str]
NumberedLines = Iterator[tuple[int, bytes]]


class DataError(ValueError):
    """A file does not hold what it should; the message names the file and, if known, the line.

    Attributes
    ----------
    file : str
        Name of the file, without its folder.
    line : int or None
        Number of the line, from 1; for files without lines, such as Parquet, None.
    reason : str
        What is wrong and what is expected.

    Examples
    --------
    >>> print(DataError("data/birds.arff", 17, "3 values, but 5 attributes are declared"))
    birds.arff, line 17: 3 values, but 5 attributes are declared
    """

    def __init__(self, file: File, line: int | None, reason: str):
        self.file = os.path.basename(os.fspath(file)) or os.fspath(file)
        self.line = line
        self.reason = reason
        place = self.file if line is None else f"{self.file}, line {line}"
        super().__init__(f"{place}: {reason}")

    def __reduce__(self):
        return type(self), (self.file, self.line, self.reason)


class Place(NamedTuple):
    """Where some rows of a file stand, for messages.

    ``first`` is the number of the first; ``line`` gives the line of a row by its number, and is
    None for files without lines.
    """

    file: Any
    line: Callable[[int], int] | None
    first: int = 0

    def error(self, row: Any, reason: str) -> DataError:
        """The error of one of the rows."""
        row = self.first + int(row)
        if self.line is None:
            return DataError(self.file, None, f"row {row}: {reason}")
        return DataError(self.file, self.line(row), reason)


@contextmanager
def named(path: File) -> Iterator[None]:
    """Turn an error about the values of a file into a `DataError` that names the file."""
    try:
        yield
    except DataError:
        raise
    except (ValueError, OverflowError, MemoryError) as error:
        raise DataError(path, None, str(error) or type(error).__name__) from error


# ------------------------------------------------------------------------------ opened and unpacked


def _open_zstd(path: Path) -> IO[bytes]:
    try:
        from compression import zstd  # type: ignore  (in Python from 3.14 on)
    except ImportError:
        reason = "Python reads .zst from version 3.14 on; unpack it, or use .gz or .xz"
        raise DataError(path, None, reason) from None
    return zstd.open(path)


OPENERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstd,
}
GZIP = b"\x1f\x8b"


def existing(path: File) -> Path:
    """A path to something that is there."""
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no file {os.fspath(path)!r}")
    return Path(path)


def plain_name(path: File) -> str:
    """The name of a file without the suffix of its compression, in lower case."""
    name = Path(path).name.lower()
    stem, dot, suffix = name.rpartition(".")
    return stem if dot + suffix in OPENERS else name


def refuse_bomb(path: Path, found: int, max_bytes: int | None) -> None:
    """Raise if a compressed file unfolds to more than it may."""
    limit = FREE_BYTES + MAX_RATIO * path.stat().st_size if max_bytes is None else max_bytes
    if found > limit:
        rest = "as no plain data of its size does; if you trust it, read it with a larger max_bytes"
        raise DataError(path, None, f"unpacks to more than {limit} bytes, {rest}")


class Unfolded(io.RawIOBase):
    """The bytes of a file that may be compressed, up to a bound; damage is a `DataError`."""

    def __init__(self, path: Path, max_bytes: int | None):
        self.path, self.max_bytes, self.found = path, max_bytes, 0
        opener = OPENERS.get(path.suffix.lower())
        self.inner: Any = open(path, "rb")  # noqa: SIM115
        if opener is None and self.inner.peek(2)[:2] == GZIP:
            opener = gzip.open
        self.is_packed = opener is not None
        if opener is not None:
            self.inner.close()
            self.inner = opener(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self.inner.read(len(buffer))
        except (EOFError, OSError, zlib.error, lzma.LZMAError, ValueError) as error:
            reason = f"damaged or cut off: it cannot be unpacked ({error})"
            raise DataError(self.path, None, reason) from error
        self.found += len(data)
        if self.is_packed:
            refuse_bomb(self.path, self.found, self.max_bytes)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self.inner.close()
        super().close()


@contextmanager
def opened(path: File, max_bytes: int | None = None) -> Iterator[IO[bytes]]:
    """A file to read bytes from, unpacked: by its suffix, or as gzip if it begins so."""
    if Path(path).is_dir():
        raise DataError(path, None, "this is a folder; expected is a file")
    with io.BufferedReader(Unfolded(Path(path), max_bytes), 2**18) as file:
        yield file


# -------------------------------------------------------------------------------------------- lines


def numbered(lines: IO[bytes], path: Path, first: int = 1) -> NumberedLines:
    """Each line with its number, without its end and without a byte order mark."""
    number = first
    while line := lines.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            reason = f"longer than {MAX_LINE} bytes: this is no file of rows"
            raise DataError(path, number, reason)
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        yield number, line.rstrip(b"\r\n")
        number += 1


def decoded(text: bytes, path: Path, line: int, encoding: str | None = None) -> str:
    """Bytes as text, UTF-8 where a reader takes no ``encoding``; bytes that are none are named."""
    try:
        return text.decode(encoding or "utf-8")
    except LookupError as error:
        raise ValueError(f"encoding must be the name of one, but it is {encoding!r}") from error
    except UnicodeDecodeError as error:
        where = f"byte {text[error.start]:#04x} at position {error.start + 1}"
        hint = "save it so"
        if encoding is not None:
            hint += f", or name its encoding, such as {argument('encoding', 'latin-1')}"
        raise DataError(path, line, f"not {encoding or 'utf-8'} text: {where}; {hint}") from error


def cells_of(
    lines: Iterable[str], path: Path, delimiter: str, first: int = 1, **options: Any
) -> Iterator[tuple[int, list[str]]]:
    """The cells of each row that is not empty, and the line that it ends on, by Python's csv.

    ``first`` is the number of the first line.
    """
    # The module's own bound on a cell, 128 KiB, is too small for documents. It is one for all
    # readers of the process, so it is raised and left so.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
    reader = csv.reader(lines, delimiter=delimiter, strict=True, **options)
    try:
        yield from ((first - 1 + reader.line_num, row) for row in reader if row)
    except csv.Error as error:
        line = first - 1 + reader.line_num
        raise DataError(path, line, f"no table: {error}") from error


def read_names(path: Path) -> list[str]:
    """The lines of a text file."""
    with opened(path) as file:
        return [decoded(line, path, number) for number, line in numbered(file, path)]


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    with opened(path) as file:
        data = file.read(FREE_BYTES)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DataError(path, getattr(error, "lineno", None), f"no JSON: {error}") from error
    if not isinstance(found, dict):
        expected = "expected is an object of names and values"
        raise DataError(path, None, f"{expected}, not a {type(found).__name__}")
    return found
