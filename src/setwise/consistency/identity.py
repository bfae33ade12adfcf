"""What a target, a space or a surrogate is: its parameters compared, as plain values, in words.

Names leave parameters out: two targets may both print as "f1" and differ in what nothing is worth.
A claim about one of them must not be made of the other.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

# What a name says already, or what changes no law.
SAID = {
    "n_labels", "k", "beta", "closed", "leaves_only", "numerator", "denominator", "function",
    "joint",
}  # fmt: skip
# Arrays of more entries are shown by their first.
MOST_SHOWN = 12


def same_values(first: Any, second: Any) -> bool:
    """Whether two objects are one, or of one type with the same parameters; functions only if one.

    Examples
    --------
    >>> from setwise.targets import FBeta
    >>> same_values(FBeta(1.0), FBeta(1.0)), same_values(FBeta(1.0), FBeta(1.0, empty=0.0))
    (True, False)
    """
    if first is second:
        return True
    if type(first) is not type(second):
        return False
    if isinstance(first, np.ndarray):
        return bool(np.array_equal(first, second))
    if is_dataclass(first) and not isinstance(first, type):
        return all(same_values(getattr(first, n), getattr(second, n)) for n in _names(first))
    return not callable(first) and bool(first == second)


def plain(value: Any) -> Any:
    """An object as its type and parameters, in what JSON can hold; -inf is a word.

    Examples
    --------
    >>> from setwise.targets import Jaccard
    >>> plain(Jaccard())
    {'type': 'Jaccard', 'empty': 1.0}
    """
    if is_dataclass(value) and not isinstance(value, type):
        own = {name: plain(getattr(value, name)) for name in _names(value)}
        return {"type": type(value).__name__} | own
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return getattr(value, "__name__", None) or str(value)


def is_plain(value: Any) -> bool:
    """Whether the parameters of an object say all of it: none of them is a function."""
    if is_dataclass(value) and not isinstance(value, type):
        return all(is_plain(getattr(value, name)) for name in _names(value))
    return value is None or isinstance(value, np.ndarray | np.generic | bool | int | float | str)


def in_words(value: Any) -> str:
    """The name of an object, and those of its parameters that are not the usual ones.

    Examples
    --------
    >>> from setwise.targets import FBeta, Hamming
    >>> in_words(FBeta(1.0)), in_words(FBeta(1.0, empty=0.0)), in_words(Hamming([1, 3]))
    ('f1', 'f1 (empty 0)', 'weighted hamming (weights 1, 3)')
    """
    if not is_dataclass(value) or isinstance(value, type):
        return str(value)
    shown = [f"{name} {_short(getattr(value, name))}" for name in _unusual(value)]
    return f"{value} ({'; '.join(shown)})" if shown else str(value)


def _names(value: Any) -> list[str]:
    """The parameters; one that is not compared, such as names of labels, changes no law."""
    return [field.name for field in fields(value) if field.init and field.compare]


def _unusual(value: Any) -> list[str]:
    usual = {field.name: field.default for field in fields(value)}
    found = []
    for name in _names(value):
        own = getattr(value, name)
        if name in SAID or own is None or (np.ndim(own) == 0 and own == usual[name]):
            continue
        if name in ("bias", "potentials") and np.ptp(own[np.isfinite(own)]) == 0.0:
            continue
        if name == "lengths" and (own == 1.0).all():
            continue
        found.append(name)
    return found


def _short(value: Any) -> str:
    if np.ndim(value) == 2 and np.isin(value, (0, 1)).all():
        words = ["".join(str(int(one)) for one in row) for row in value]
    else:
        words = [f"{one:g}" for one in np.ravel(value)]
    more = f", ... {len(words)} in all" if len(words) > MOST_SHOWN else ""
    return ", ".join(words[:MOST_SHOWN]) + more
