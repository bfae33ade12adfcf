"""How messages write the arguments they speak of: as in a call, or as command-line options."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any


def as_python(name: str, value: Any) -> str:
    """An argument as it is written in a call; ``...`` in it stands for what the user knows."""
    return f"{name}={value!r}".replace("Ellipsis", "...")


# How messages write arguments; the command line writes them as its options.
SPELLING: ContextVar[Callable[[str, Any], str]] = ContextVar("SPELLING", default=as_python)


def argument(name: str, value: Any) -> str:
    """An argument in a message, as whoever reads it would type it."""
    return SPELLING.get()(name, value)
