"""The names of labels, and what stands for no label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Letters of a value in a message.
MOST_LETTERS = 40


def checked_names(names: Any) -> Array:
    """Names as an array, all text or all numbers."""
    from setwise.labels import name_array

    return name_array(names)


def places_of(names: Any) -> dict[Any, int]:
    """The number of each label by its name; no two may be alike."""
    order = checked_names(names).tolist()
    refuse_repeated(order)
    return {name: number for number, name in enumerate(order)}


def refuse_repeated(names: list[Any]) -> None:
    """Raise for a name that two labels have."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        places = [place for place, name in enumerate(names) if name == repeated[0]]
        raise ValueError(
            f"each label must have its own name, but labels {places[0]} and {places[1]} are both "
            f"{repeated[0]!r}"
        )


def refuse_missing(names: Iterable[Any], known: Mapping[Any, int], where: str) -> None:
    """Raise if a name is not among the known ones."""
    missing = [name for name in names if name not in known]
    if missing:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ValueError(f"label {missing[0]!r}{others} is not among {where}")


def is_nothing(value: Any) -> bool:
    """Whether a value is None, "", NaN, or the NA of a data frame."""
    if value is None or isinstance(value, str):
        return not value
    try:
        return bool(value != value)
    except TypeError:  # (NA does not say whether it is itself)
        return True
    except ValueError:  # (an array)
        return False


def is_number(value: Any) -> bool:
    """Whether a value is a whole number, if only by its value: 2 and 2.0, not True."""
    if isinstance(value, float | np.floating):
        return float(value).is_integer()
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_root(value: Any) -> bool:
    """Whether a parent is none: nothing, or the number -1."""
    return is_nothing(value) or (is_number(value) and value == -1)


def plain(value: Any) -> Any:
    """A name as Python has it; 2.0, as a column with gaps has it, is 2."""
    return int(value) if is_number(value) else value


def shown(value: Any) -> str:
    """A value for a message, cut short if it is long."""
    text = repr(value)
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}..."


def refuse_no_name(value: Any, where: str) -> None:
    """Raise for what cannot be the name of a label, such as a list."""
    try:
        hash(value)
    except TypeError:
        raise ValueError(
            f"labels must be text or numbers, but {where} has {shown(value)}, a "
            f"{type(value).__name__}"
        ) from None
