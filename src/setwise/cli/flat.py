"""From a function to a command: its help, and options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def help_of(command: Callable[..., Any]) -> str:
    """A command's docstring, with the mark that keeps the lines of a paragraph apart."""
    return (inspect.getdoc(command) or "").replace(r"\b", "\b")


def flat(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with every parameter that is a dataclass replaced by its fields as options.

    Typer makes an option of each parameter of a function; so ``reading: Reading`` becomes
    ``--labels``, ``--label-prefix`` and so on, and the function gets them as one object.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {}
    flattened: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if not (isinstance(kind, type) and is_dataclass(kind)):
            flattened.append(parameter.replace(annotation=kind))
            continue
        groups[name] = kind
        options = get_type_hints(kind, include_extras=True)
        flattened += [
            parameter.replace(
                name=field.name, annotation=options[field.name], default=field.default
            )
            for field in fields(kind)
        ]

    @wraps(command)
    def called(**given: Any) -> Any:
        gathered = {
            name: kind(**{field.name: given.pop(field.name) for field in fields(kind)})
            for name, kind in groups.items()
        }
        return command(**given, **gathered)

    called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in flattened]
    )
    called.__annotations__ = {p.name: p.annotation for p in flattened}
    return called
