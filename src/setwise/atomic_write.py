"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from uuid import uuid4

PARTIAL = ".partial"


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that its place holds what was there before, or all of the new, never a part.

    As by `opened_whole`.
    """
    with opened_whole(path) as file:
        file.write(data)


@contextmanager
def opened_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which takes its place when the block ends.

    It is written beside its place, flushed to disk, and then takes the place at once; so also if
    the process is killed or the machine stops. On an error what was there stays. What is there but
    no file, such as a pipe or /dev/null, is written to as it is.
    """
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            yield file
        return
    # Not by `tempfile`, whose files nobody else may read.
    beside = path.with_name(f".{path.name}.{uuid4().hex}{PARTIAL}")
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


def remove_partial(folder: Path) -> int:
    """Remove what processes that were killed had begun to write; how many files that were."""
    leftovers = list(folder.glob(f".*{PARTIAL}"))
    for leftover in leftovers:
        leftover.unlink(missing_ok=True)
    return len(leftovers)


def _flush_folder(folder: Path) -> None:
    """Put the new name on disk too; where a folder cannot be opened, there is no way to."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
