"""Files that appear whole or not at all; what stops a writing names the file."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

PARTIAL = ".partial"


@contextmanager
def naming(path: Any, beside: Path | None = None) -> Iterator[None]:
    """Let errors of the operating system name the file that is written, which a full disk's do not.

    ``beside`` is what is written in its place for now, a name that nobody knows.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            # Such as NumPy's, which says how much was written and no more.
            raise OSError(errno.EIO, str(error), str(path)) from error
        is_beside = beside is not None and str(error.filename).startswith(str(beside))
        if error.filename is None or is_beside:
            error.filename, error.filename2 = str(path), None
        raise


class _Named(io.FileIO):
    """A file whose errors of writing name another, the one that it is to become."""

    def __init__(self, file: Path, mode: str, path: Path):
        super().__init__(file, mode)
        self.path = path

    def write(self, data: Any) -> int:
        with naming(self.path):
            return super().write(data)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically: its place holds the old content or all of the new, never a part."""
    with opened_whole(path) as file:
        file.write(data)


@contextmanager
def opened_whole(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that replaces ``path`` atomically when the block ends.

    The content goes to a temporary file in the same folder, is flushed to disk, and is renamed, so
    a crash at any moment leaves either the old file or the new one. An error in the block leaves
    the old file. Pipes and devices such as /dev/null are written to directly. An error of writing
    names ``path``.
    """
    if path.exists() and not path.is_file():
        with io.BufferedWriter(_Named(path, "w", path)) as file:
            yield file
        return
    # Not by `tempfile`, whose files nobody else may read.
    beside = path.with_name(f".{path.name}.{uuid4().hex}{PARTIAL}")
    try:
        with naming(path, beside):
            raw = _Named(beside, "x", path)
        with io.BufferedWriter(raw) as file:
            yield file
            file.flush()
            with naming(path):
                os.fsync(file.fileno())
        with naming(path, beside):
            os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    # The renaming too, on systems where a folder can be opened.
    with suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def remove_partial(folder: Path) -> None:
    """Remove the temporary files of killed processes."""
    for leftover in folder.glob(f".*{PARTIAL}"):
        leftover.unlink(missing_ok=True)
