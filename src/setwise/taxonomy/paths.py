"""Names that say where their labels stand."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from setwise.taxonomy.edges import Parts
from setwise.taxonomy.names import refuse_repeated


def edges_of_paths(paths: Any, separator: str, missing: str) -> Parts:
    """See `Taxonomy.from_paths`."""
    check_path_options(separator, missing)
    names = _checked_paths(paths)
    if len(names) > 1 and not any(separator in name for name in names):
        warnings.warn(
            f"no path has the separator {separator!r}, so all {len(names)} labels are roots; has "
            f"{names[-1]!r} another one?",
            UserWarning,
            stacklevel=3,
        )
    place = {name: number for number, name in enumerate(names)}
    numbers: list[int] = []
    for child in names:
        if "" in child.split(separator):
            raise ValueError(
                f"path names must have text on both sides of each {separator!r}, but one is "
                f"{child!r}"
            )
        above = child.rpartition(separator)[0]
        if above and above not in place:
            if missing == "refuse":
                raise ValueError(
                    f"the parent {above!r} of {child!r} is not among the {len(names)} labels; "
                    f"missing='add' adds such parents"
                )
            # Seen by this very loop, which adds its own parents in turn.
            place[above] = len(names)
            names.append(above)
        numbers.append(place[above] if above else -1)
    return np.stack([numbers, np.arange(len(names))], axis=1), names, None


def check_path_options(separator: Any, missing: Any) -> None:
    """Raise for options that are none."""
    if missing not in ("refuse", "add"):
        raise ValueError(f"missing must be 'refuse' or 'add', not {missing!r}")
    if not isinstance(separator, str) or not separator:
        raise ValueError(f"separator must be text that parts names, but it is {separator!r}")


def _checked_paths(paths: Any) -> list[str]:
    if isinstance(paths, str) or hasattr(paths, "columns") or not hasattr(paths, "__iter__"):
        raise ValueError(
            f"paths must be a list of names such as ['01', '01/02'], but they are a "
            f"{type(paths).__name__}; of a data frame, hand over a column or its columns"
        )
    names = list(paths)
    if not names:
        raise ValueError("a taxonomy has at least one label, but there are no paths")
    for number, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise ValueError(f"paths must be text, but paths[{number}] is {name!r}")
    names = [str(name) for name in names]
    refuse_repeated(names)
    return names
