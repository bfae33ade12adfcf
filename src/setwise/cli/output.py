"""Where the output goes: to a file, which appears whole or not at all, or to the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import typer

from setwise.atomic_write import opened_whole

# How the files begin that a command writes, and may therefore replace.
MODEL, PAGE = (b"PK", "a model"), (b"<!doctype html", "a page")


def can_write(
    path: Path | None,
    inputs: Iterable[Path | None] = (),
    replaces: tuple[bytes, str] | None = None,
) -> Path | None:
    """Raise, before any work is done, if a file cannot be written there or must not be.

    It must not take the place of a file that is read, nor, with ``replaces``, of one that does not
    begin as what is written does.
    """
    if path is None:
        return None
    if _is_stream(path):
        return path
    real = Path(os.path.realpath(path))
    for given in inputs:
        if given is not None and given.exists() and real.exists() and given.samefile(real):
            raise ValueError(f"{str(path)!r} is read, and would be lost: write to another file")
    if replaces is not None and real.is_file():
        begins, what = replaces
        with open(real, "rb") as file:
            start = file.read(len(begins))
        if start and start.lower() != begins.lower():
            raise ValueError(
                f"{str(path)!r} is there and is not {what}: remove it, or write to another file"
            )
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
    with opened_whole(path if _is_stream(path) else Path(os.path.realpath(path))) as file:
        yield file


def _is_stream(path: Path) -> bool:
    """Whether something is there that is no file and no folder: a pipe, a terminal."""
    return path.exists() and not path.is_file() and not path.is_dir()


def say(json_wanted: bool, told: dict[str, Any], words: str) -> None:
    """Print what was found, as one line of JSON or in words."""
    if json_wanted:
        import json

        typer.echo(json.dumps(told, ensure_ascii=False, allow_nan=False))
    else:
        typer.echo(words)
