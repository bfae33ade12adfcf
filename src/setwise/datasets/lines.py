"""The lines of a text file, compressed or not, one after the other and within bounds.

What a file may ask for is bounded before it is read: a line has at most `MAX_LINE` bytes, and a
compressed file may unfold to `FREE_BYTES` plus `MAX_RATIO` times its size. (Text of zeros folds to
a hundredth; a file made to fill the memory folds to a thousandth and less.) ``max_bytes`` in `read`
replaces the second bound.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from setwise.datasets.data_error import DataError, refuse

MAX_LINE = 2**26
FREE_BYTES = 2**28
MAX_RATIO = 200
# Rows are turned into numbers this many bytes of text at a time.
BLOCK_BYTES = 2**22

Lines = list[tuple[int, bytes]]


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
DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError)


def plain_name(path: str | os.PathLike[str]) -> str:
    """The name of a file without the suffix of its compression, in lower case."""
    name = Path(path).name.lower()
    stem, dot, suffix = name.rpartition(".")
    return stem if dot + suffix in OPENERS else name


def most_bytes(path: Path, max_bytes: int | None) -> int:
    """How many bytes a compressed file may unfold to."""
    return FREE_BYTES + MAX_RATIO * path.stat().st_size if max_bytes is None else max_bytes


class Unfolded(io.RawIOBase):
    """The bytes of a file that may be compressed, up to a bound; damage is a `DataError`."""

    def __init__(self, path: Path, max_bytes: int | None):
        self.path = path
        opener = OPENERS.get(path.suffix.lower())
        self.limit = most_bytes(path, max_bytes)
        self.left = self.limit if opener else None
        self.inner = opener(path) if opener else open(path, "rb")  # noqa: SIM115

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self.inner.read(len(buffer))
        except (*DAMAGE, ValueError) as error:
            raise DataError(
                self.path, None, f"damaged or cut off: it cannot be unpacked ({error})"
            ) from error
        if self.left is not None:
            self.left -= len(data)
            if self.left < 0:
                refuse(
                    self.path,
                    None,
                    f"unpacks to more than {self.limit} bytes, as no plain data "
                    f"of its size does; if you trust it, read it with a larger max_bytes",
                )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self.inner.close()
        super().close()


@contextmanager
def opened(path: str | os.PathLike[str], max_bytes: int | None = None) -> Iterator[IO[bytes]]:
    """A file to read bytes from, unpacked."""
    if Path(path).is_dir():
        refuse(path, None, "this is a folder; expected is a file")
    with io.BufferedReader(Unfolded(Path(path), max_bytes), 2**18) as file:
        yield file


def numbered(file: IO[bytes], path: Path) -> Iterator[tuple[int, bytes]]:
    """Each line with its number from 1, without its end and without a byte order mark."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            refuse(path, number, f"longer than {MAX_LINE} bytes: this is no file of rows")
        if number == 1 and line.startswith(b"\xef\xbb\xbf"):
            line = line[3:]
        yield number, line.rstrip(b"\r\n")


def blocks(lines: Iterator[tuple[int, bytes]], rows: int) -> Iterator[Lines]:
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
        raise DataError(
            path,
            line,
            f"not {encoding} text: byte {text[error.start]:#04x} at position {error.start + 1}; "
            f"name the encoding, such as encoding='latin-1'",
        ) from error
