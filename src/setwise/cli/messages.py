"""What the commands say when something is wrong: one line, in the words of the command line."""

from __future__ import annotations

import re
from typing import Any

import typer

# Options of the readers, as they are called here.
OPTIONS = {
    "labels": "--labels",
    "label_prefix": "--label-prefix",
    "label_column": "--label-column",
    "separator": "--separator",
    "text": "--text-columns",
    "categorical": "--categorical",
    "drop": "--drop",
    "delimiter": "--delimiter",
    "unknown_labels": "--unknown-labels",
    "encoding": "--encoding",
    "max_bytes": "--max-bytes",
    "format": "--format",
    "xml": "--xml",
    "url": "--url",
    "version": "--version",
}
# What only Python can do, or should be done with care.
_PYTHON_ONLY = re.compile(
    r",? or pass an object| or a surrogate object|; for an estimator of your own write \S+ \S+"
    r"| If you trust who wrote it: .*"
    r"|; for it use space=Paths\(\w+\) or Forest\(\w+, closed=True\)"
)
# Said of y in Python; on the command line label sets are closed as they are read.
_CLOSED = re.compile(r"Taxonomy\.close(\([^)]*\))?")
# The target and the spaces of a hierarchy have names there.
_TREE = re.compile(r"target=TreeDistance\(\w+\)")
_SPACE = re.compile(r"\bspace='(\w+)'")
_SPOKEN = re.compile(rf"\b({'|'.join(OPTIONS)})=(\[[^\]]*\]|'[^']*'|\"[^\"]*\"|\.\.\.|-\d+|\d+)")


def complaint(error: BaseException) -> str | None:
    """One line about an error of the user or of the machine; None for one of setwise's own."""
    # Typer's own complaints about arguments say in format_message what they are about.
    said = getattr(error, "format_message", None)
    if said is not None:
        return _line(said())
    if isinstance(error, OSError) and error.strerror:
        place = "" if error.filename is None else f": {str(error.filename)!r}"
        return _line(error.strerror + place)
    if isinstance(error, MemoryError):
        return _line(f"there is not enough memory for this: {error}".rstrip(": "))
    if isinstance(error, ValueError | OSError | ImportError):
        return _line(in_options(str(error)))
    return None


def in_options(message: str) -> str:
    """A message that speaks of arguments in Python, in options of the command line.

    Examples
    --------
    >>> in_options("leave it out (drop=['id'])")
    "leave it out (--drop 'id')"
    >>> in_options("there is no target named 'f'; known are 'hamming', or pass an object")
    "there is no target named 'f'; known are 'hamming'"
    >>> in_options("Taxonomy.close adds what is missing")
    '--close adds what is missing'
    >>> in_options("space='closed' is made from the taxonomy of target=TreeDistance(taxonomy)")
    '--space closed is made from the taxonomy of --target tree'
    """
    plain = _CLOSED.sub("--close", _PYTHON_ONLY.sub("", message))
    plain = _SPACE.sub(r"--space \1", _TREE.sub("--target tree", plain))
    return _SPOKEN.sub(_option, plain)


def _option(spoken: re.Match[str]) -> str:
    value = spoken[2].strip("[]")
    # (What begins with a minus would be taken for an option.)
    return f"{OPTIONS[spoken[1]]}{'=' if value.startswith('-') else ' '}{value}"


def warn(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *more: Any
) -> None:
    """A warning as one line on the error stream."""
    typer.echo(f"setwise: warning: {_line(str(message))}", err=True)


def note(message: str) -> None:
    """Something to know that is no part of the output."""
    typer.echo(message, err=True)


def _line(text: str) -> str:
    return " ".join(text.split())
