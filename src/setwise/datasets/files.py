"""Files within bounds: opened, unpacked, line by line; what is wrong with one is a `DataError`.

What a file may ask for is bounded before it is read: a line has at most `MAX_LINE` bytes, and a
compressed file may unfold to `FREE_BYTES` plus `MAX_RATIO` times its size. (Text of zeros folds to
a hundredth; a file made to fill the memory folds to a thousandth and less.) ``max_bytes`` of the
readers replaces the second bound.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

MAX_LINE = 2**26
FREE_BYTES = 2**28
MAX_RATIO = 200
# Text is turned into numbers this many bytes at a time.
BLOCK_BYTES = 2**22
# Numpy gives every name the room of the longest. Beyond this many bytes names are objects instead.
MOST_BYTES = 2**26

File = str | os.PathLike[str]
Lines = list[tuple[int, bytes]]


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


def refuse(file: File, line: int | None, reason: str) -> NoReturn:
    """Raise a `DataError`."""
    raise DataError(file, line, reason)


def shown(value: object, most: int = 60) -> str:
    """A value from a file, for a message: quoted, and cut if it is long."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return repr(text if len(text) <= most else text[:most] + "…")


class Place(NamedTuple):
    """Where some rows of a file stand, for messages.

    ``line`` gives the line of a row; files without lines have None, and ``first`` is the number of
    their first row.
    """

    file: Any
    line: Callable[[int], int] | None
    first: int = 0

    def error(self, row: int, reason: str) -> DataError:
        """The error of one of the rows."""
        if self.line is None:
            return DataError(self.file, None, f"row {self.first + row}: {reason}")
        return DataError(self.file, self.line(row), reason)


@contextmanager
def named(path: File) -> Iterator[None]:
    """Whatever is wrong with the values of a file is a `DataError` that names the file."""
    try:
        yield
    except DataError:
        raise
    except (ValueError, OverflowError, MemoryError) as error:
        raise DataError(path, None, str(error) or type(error).__name__) from error


# ------------------------------------------------------------------------------ opened and unpacked


def existing(path: File) -> Path:
    """A path to something that is there."""
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no file {os.fspath(path)!r}")
    return Path(path)


def _open_zstd(path: Path) -> IO[bytes]:
    try:
        from compression import zstd  # type: ignore  (in Python from 3.14 on)
    except ImportError:
        refuse(path, None, "Python reads .zst from version 3.14 on; unpack it, or use .gz or .xz")
    return zstd.open(path)


OPENERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstd,
}


def plain_name(path: File) -> str:
    """The name of a file without the suffix of its compression, in lower case."""
    name = Path(path).name.lower()
    stem, dot, suffix = name.rpartition(".")
    return stem if dot + suffix in OPENERS else name


def most_bytes(path: Path, max_bytes: int | None) -> int:
    """How many bytes a compressed file may unfold to."""
    return FREE_BYTES + MAX_RATIO * path.stat().st_size if max_bytes is None else max_bytes


def refuse_bomb(path: Path, found: int, limit: int) -> None:
    """Raise if a file unfolds to more than its limit."""
    if found > limit:
        rest = "as no plain data of its size does; if you trust it, read it with a larger max_bytes"
        refuse(path, None, f"unpacks to more than {limit} bytes, {rest}")


class Unfolded(io.RawIOBase):
    """The bytes of a file that may be compressed, up to a bound; damage is a `DataError`."""

    def __init__(self, path: Path, max_bytes: int | None):
        self.path, self.found = path, 0
        opener = OPENERS.get(path.suffix.lower())
        self.limit = most_bytes(path, max_bytes) if opener else None
        self.inner = opener(path) if opener else open(path, "rb")  # noqa: SIM115

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self.inner.read(len(buffer))
        except (EOFError, OSError, zlib.error, lzma.LZMAError, ValueError) as error:
            raise DataError(
                self.path, None, f"damaged or cut off: it cannot be unpacked ({error})"
            ) from error
        self.found += len(data)
        if self.limit is not None:
            refuse_bomb(self.path, self.found, self.limit)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self.inner.close()
        super().close()


@contextmanager
def opened(path: File, max_bytes: int | None = None) -> Iterator[IO[bytes]]:
    """A file to read bytes from, unpacked."""
    if Path(path).is_dir():
        refuse(path, None, "this is a folder; expected is a file")
    with io.BufferedReader(Unfolded(Path(path), max_bytes), 2**18) as file:
        yield file


# -------------------------------------------------------------------------------------------- lines


def numbered(file: IO[bytes], path: Path) -> Iterator[tuple[int, bytes]]:
    """Each line with its number from 1, without its end and without a byte order mark."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            refuse(path, number, f"longer than {MAX_LINE} bytes: this is no file of rows")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        yield number, line.rstrip(b"\r\n")


def blocks(lines: Iterable[tuple[int, bytes]], rows: int) -> Iterator[Lines]:
    """Lists of lines: at most ``rows``, and no more once they have `BLOCK_BYTES`."""
    block: Lines = []
    size = 0
    for entry in lines:
        block.append(entry)
        size += len(entry[1])
        if len(block) == rows or size >= BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


def decoded(text: bytes, path: Path, line: int, encoding: str) -> str:
    """Bytes as text; bytes that are none are named."""
    try:
        return text.decode(encoding)
    except LookupError as error:
        raise ValueError(f"encoding must be the name of one, but it is {encoding!r}") from error
    except UnicodeDecodeError as error:
        where = f"byte {text[error.start]:#04x} at position {error.start + 1}"
        hint = "name the encoding, such as encoding='latin-1'"
        raise DataError(path, line, f"not {encoding} text: {where}; {hint}") from error


def parsed(text: bytes, types: dict[str, Any], nulls: list[str], **options: Any) -> Any:
    """An Arrow table of many rows of text at once, or None if they do not have these types.

    ``types`` are those of all columns, None for one that is not read; ``options`` go to pyarrow's
    `ParseOptions`.
    """
    wanted = {name: kind for name, kind in types.items() if kind is not None}
    size = len(text) + 1
    try:
        return csv.read_csv(
            pa.BufferReader(text),
            csv.ReadOptions(column_names=list(types), block_size=size, use_threads=False),
            csv.ParseOptions(**options),
            csv.ConvertOptions(column_types=wanted, include_columns=[*wanted], null_values=nulls),
        )
    except pa.ArrowInvalid:
        return None


# ------------------------------------------------------------------------------------------- names


def text_array(names: Iterable[Any]) -> NDArray[Any]:
    """Names as an array of text; of objects where the longest would make it huge."""
    if isinstance(names, np.ndarray) and names.ndim == 1 and names.dtype.kind == "U":
        return names
    listed = [str(name) for name in names]
    longest = max(map(len, listed), default=1)
    # (Numpy's text drops zeros at the end.)
    if 4 * longest * len(listed) > MOST_BYTES or any(name.endswith("\0") for name in listed):
        array = np.empty(len(listed), dtype=object)
        array[:] = listed
        return array
    return np.array(listed, dtype=f"<U{max(longest, 1)}")


def repeated(names: Sequence[Any]) -> Any:
    """The first name that is there more than once, or None."""
    if len(set(names)) == len(names):
        return None
    return next((name for name, times in Counter(names).items() if times > 1), None)
