"""Where the output goes: to a file, which appears whole or not at all, or to the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import typer

from setwise.files import opened_whole


def can_write(path: Path | None) -> Path | None:
    """Raise, before any work is done, if a file cannot be written there."""
    if path is None:
        return None
    real = Path(os.path.realpath(path))
    if real.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; name a file in it")
    if not real.parent.is_dir():
        raise ValueError(f"there is no folder {str(path.parent)!r} to write {path.name!r} in")
    if not os.access(real.parent, os.W_OK):
        raise ValueError(f"nothing can be written in the folder {str(path.parent)!r}")
    return real


@contextmanager
def opened_output(path: Path | None) -> Iterator[IO[bytes]]:
    """The file, whole or not at all; without one the standard output."""
    if path is None:
        if sys.stdout is None:
            raise ValueError("the standard output is closed; name a file (-o)")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with opened_whole(Path(os.path.realpath(path))) as file:
        yield file


def say(json_wanted: bool, told: dict[str, Any], words: str) -> None:
    """Print what was found, as one line of JSON or in words."""
    if json_wanted:
        import json

        typer.echo(json.dumps(told, ensure_ascii=False, allow_nan=False))
    else:
        typer.echo(words)
