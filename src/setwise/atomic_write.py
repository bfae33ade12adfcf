"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

PARTIAL = ".partial"


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically: its place holds the old content or all of the new, never a part."""
    with opened_whole(path) as file:
        file.write(data)


@contextmanager
def opened_whole(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that replaces ``path`` atomically when the block ends.

    The content goes to a temporary file in the same folder, is flushed to disk, and is renamed, so
    a crash at any moment leaves either the old file or the new one. An error in the block leaves
    the old file. Pipes and devices such as /dev/null are written to directly.
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
    # The renaming too, on systems where a folder can be opened.
    with suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def remove_partial(folder: Path) -> int:
    """Remove the temporary files of killed processes; returns how many there were."""
    leftovers = list(folder.glob(f".*{PARTIAL}"))
    for leftover in leftovers:
        leftover.unlink(missing_ok=True)
    return len(leftovers)
