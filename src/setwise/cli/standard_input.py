"""The standard input as a file, for readers that look at a file twice."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

BLOCK = 2**20


@contextmanager
def as_file(path: Path, suffix: str) -> Iterator[Path]:
    """The file; of ``-`` a copy of the standard input, whose name ends in the suffix."""
    if str(path) != "-":
        yield path
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder, f"stdin{suffix}")
        with open(copy, "wb") as file:
            while piece := sys.stdin.buffer.read(BLOCK):
                file.write(piece)
        yield copy
