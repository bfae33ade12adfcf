"""What commands write: to a file, which appears whole or not at all, or to the terminal."""

from __future__ import annotations

import csv
import inspect
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import typer

from setwise.atomic_write import opened_whole

# How the files begin that a command writes, and may therefore replace.
MODEL, PAGE = (b"PK", "a model"), (b"<!doctype html", "a page")
FORMATS = ("labels", "columns", "json", "probabilities")
SEPARATOR = ";"


def help_of(command: Callable[..., Any]) -> str:
    """A command's docstring, with the mark that keeps the lines of a paragraph apart."""
    return (inspect.getdoc(command) or "").replace(r"\b", "\b")


def say(json_wanted: bool, told: dict[str, Any], words: str) -> None:
    """Print what was found, as one line of JSON or in words."""
    typer.echo(json.dumps(told, ensure_ascii=False, allow_nan=False) if json_wanted else words)


def note(message: str) -> None:
    """Say what is no part of the output."""
    typer.echo(message, err=True)


def can_write(
    path: Path | None,
    inputs: Iterable[Path | None] = (),
    replaces: tuple[bytes, str] | None = None,
) -> None:
    """Raise, before any work is done, if a file cannot be written there or must not be.

    It must not take the place of a file that is read, nor, with ``replaces``, of one that does not
    begin as what is written does.
    """
    if path is None or _is_stream(path):
        return
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
    note(f"wrote {path}")


def _is_stream(path: Path) -> bool:
    """Whether something is there that is no file and no folder: a pipe, a terminal."""
    return path.exists() and not path.is_file() and not path.is_dir()


@dataclass(frozen=True)
class LabelRows:
    """Turns label sets, or probabilities, into the bytes of a file.

    Parameters
    ----------
    names : list of str
        Of the labels.
    format : {"labels", "columns", "json", "probabilities"}
        CSV with one column that lists the labels of a row; CSV with a column of 0 and 1 for each
        label; a line of JSON for each row; CSV with the probability of each label.
    column, separator : str
        The name of the column that lists labels, and what stands between them.
    """

    names: Sequence[str]
    format: str = "labels"
    column: str = "labels"
    separator: str = SEPARATOR

    def __post_init__(self):
        if self.format not in FORMATS:
            raise ValueError(f"--format must be one of {', '.join(FORMATS)}, not {self.format!r}")
        if self.format == "labels" and not self.separator:
            raise ValueError("--separator must be text, but it is empty")
        for name in self.names if self.format == "labels" else ():
            if self.separator in name or name != name.strip() or name == "?":
                raise ValueError(
                    f"the label {name!r} could not be told from others in a list with "
                    f"{self.separator!r} between; choose another --separator, or --format json"
                )

    def stream(self, parts: Iterable[Any]) -> Iterator[bytes]:
        """The header with the rows of the first part, if there is one, and then the others."""
        head = b""
        if self.format != "json":
            head = _csv([[self.column] if self.format == "labels" else self.names])
        for values in parts:
            yield head + self._rows(values)
            head = b""
        yield head

    def _rows(self, values: Any) -> bytes:
        """A line for each row of label sets, (n, n_labels), or of probabilities."""
        from scipy.sparse import csr_array

        if self.format not in ("labels", "json"):
            # (As short as is enough to read the same number again.)
            return _csv((values.toarray() if hasattr(values, "toarray") else values).tolist())
        sets: Any = csr_array(values, copy=True)
        sets.eliminate_zeros()
        sets.sort_indices()
        chosen: Any = [self.names[label] for label in sets.indices.tolist()]
        lists = [chosen[start:end] for start, end in pairwise(sets.indptr.tolist())]
        if self.format == "labels":
            return _csv([[self.separator.join(labels)] for labels in lists])
        lines = [json.dumps({"labels": labels}, ensure_ascii=False) + "\n" for labels in lists]
        return "".join(lines).encode()


def _csv(rows: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
