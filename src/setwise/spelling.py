"""How messages write arguments, as in a call or as command-line options, and lists of names."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import fields
from difflib import get_close_matches
from itertools import islice
from typing import Any

# So many names are listed; of more, so many near ones, sought among so many.
MOST_LISTED, MOST_NEAR, MOST_SOUGHT = 10, 3, 5000
# Characters of a value.
MOST_SHOWN = 60


def as_python(name: str, value: Any) -> str:
    """An argument as it is written in a call; ``...`` in it stands for what the user knows."""
    return f"{name}={value!r}".replace("Ellipsis", "...")


# How messages write arguments; the command line writes them as its options.
SPELLING: ContextVar[Callable[[str, Any], str]] = ContextVar("SPELLING", default=as_python)


def argument(name: str, value: Any) -> str:
    """An argument in a message, as whoever reads it would type it."""
    return SPELLING.get()(name, value)


def counted(number: int, what: str) -> str:
    """So many of a thing.

    Examples
    --------
    >>> counted(1, "row"), counted(0, "row")
    ('1 row', '0 rows')
    """
    return f"{number} {what}{'s' * (number != 1)}"


def brief(self: Any) -> str:
    """The `repr` of a dataclass on one line: of long arrays the shape, fields at defaults left out.

    Examples
    --------
    >>> from setwise.spaces import Catalog, Sized
    >>> Sized(2, [0.0, 1.0, 0.5]), Catalog([[i // 4, i // 2 % 2, i % 2] for i in range(8)])
    (Sized(n_labels=2, bias=[0.0, 1.0, 0.5]), Catalog(sets=<8 × 3>, bias=[0.0, 0.0, ...]))
    """
    values = ((field, getattr(self, field.name)) for field in fields(self) if field.init)
    given = [
        f"{field.name}={_shape(value)}"
        for field, value in values
        if hasattr(value, "shape") or value is not field.default
    ]
    return f"{type(self).__name__}({', '.join(given)})"


def _shape(value: Any) -> str:
    """An array as a list, or as its shape if that is long; what is no array as it is."""
    if not hasattr(value, "shape"):
        return " ".join(repr(value).split())
    if math.prod(value.shape) <= MOST_LISTED:
        return str(value.tolist())
    return f"<{' × '.join(map(str, value.shape))}>"


def shown(value: object) -> str:
    """A value from a file or a user, for a message: as Python writes it, and cut if it is long."""
    text = repr(value.decode("utf-8", "replace") if isinstance(value, bytes) else value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def some(names: Sequence[Any]) -> str:
    """The first names, for a message."""
    listed, more = ", ".join(map(shown, names[:MOST_LISTED])), len(names) - MOST_LISTED
    return f"{listed} and {more} more" if more > 0 else listed


def unknown_names(names: Iterable[Any], known: Collection[Any]) -> str:
    """The names that are not known, and what there is in their place; empty if all are known.

    Examples
    --------
    >>> unknown_names(["art", "oprea"], ["art", "opera"])
    "'oprea'; known are 'art', 'opera'"
    """
    there = set(known)
    unknown = [name for name in names if name not in there]
    return f"{some(unknown)}; {known_names(unknown[0], known)}" if unknown else ""


def known_names(name: Any, names: Iterable[Any]) -> str:
    """What there is in place of a name that is not: all names if they are few, else the nearest.

    Examples
    --------
    >>> known_names("oprea", ["art", "opera"])
    "known are 'art', 'opera'"
    >>> known_names("label70", [f"label{number}" for number in range(70)])
    "70 are known, the nearest 'label7', 'label0', 'label67'"
    """
    known = list(names)
    if len(known) <= MOST_LISTED:
        return f"known are {some(known)}"
    word = str(name)
    like = (text for text in map(str, known) if abs(len(text) - len(word)) <= len(word) / 2 + 1)
    near = get_close_matches(word, list(islice(like, MOST_SOUGHT)), MOST_NEAR)
    if near:
        return f"{len(known)} are known, the nearest {some(near)}"
    return f"{len(known)} are known, such as {some(known[:MOST_NEAR])}"
