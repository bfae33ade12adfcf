"""Label sets over the labels of a taxonomy, from 0/1 arrays, data frames or names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.labels import ROW, Lists, form_of, name_array, some, zeros_and_ones
from setwise.taxonomy.names import refuse_repeated


def label_sets(Y: Any, names: NDArray[Any], name: str) -> Any:
    """0/1 of type uint8, dense or CSR, with a column for each name; a fresh array."""
    if hasattr(Y, "columns") and hasattr(Y, "to_numpy"):
        sets = _wide_enough(zeros_and_ones(Y.to_numpy(), name), names, name)
        return np.ascontiguousarray(sets[:, _order(name_array(Y.columns), names, name)])
    if _is_named(Y):
        return form_of(Y, column_of_classes=False).sets(names)
    if isinstance(Y, list | tuple):
        if _is_numbered(Y, names):
            rows = [list(row) for row in Y]
            _refuse_twice(rows, name)
            return Lists(rows).sets(names)
        _refuse_ragged(Y, names, name)
    return _wide_enough(zeros_and_ones(Y, name), names, name)


def _wide_enough(sets: Any, names: NDArray[Any], name: str) -> Any:
    if sets.shape[1] != len(names):
        raise ValueError(
            f"{name} must have {len(names)} columns, one for each label of the taxonomy, "
            f"but its shape is {sets.shape}"
        )
    return sets


def _order(columns: NDArray[Any], names: NDArray[Any], name: str) -> list[int]:
    """Which column of a frame is each label: by name, by place where either has only numbers."""
    given, wanted = columns.tolist(), names.tolist()
    places = list(range(len(wanted)))
    if given == wanted or (
        columns.dtype.kind != names.dtype.kind and (given == places or wanted == places)
    ):
        return places
    refuse_repeated(given)
    place = {column: number for number, column in enumerate(given)}
    unknown = sorted(set(given) - set(wanted), key=given.index)
    if unknown:
        raise ValueError(
            f"the columns of {name} must be the labels of the taxonomy, {some(wanted)}, but it has "
            f"{some(unknown)}"
        )
    return [place[label] for label in wanted]


def _is_named(Y: Any) -> bool:
    """Whether rows are names of labels, or lists of names, rather than numbers."""
    is_list = isinstance(Y, list | tuple) or (np.ndim(Y) == 1 and np.asarray(Y).dtype.kind in "OU")
    for row in Y if is_list else ():
        if isinstance(row, str | set | frozenset):
            return True
        if isinstance(row, list | tuple) and len(row):
            return isinstance(row[0], str)
    return False


def _is_numbered(Y: Any, names: NDArray[Any]) -> bool:
    """Whether rows are lists of labels that are numbers, or all empty.

    Rows of only 0 and 1 are a matrix if one has an entry for each label, or all have as many.
    """
    if names.dtype.kind not in "iuf" and any(len(row) for row in Y if isinstance(row, ROW)):
        return False
    if not len(Y) or not all(isinstance(row, ROW) and getattr(row, "ndim", 1) == 1 for row in Y):
        return False
    entries = [entry for row in Y for entry in row]
    if not entries:
        return True
    if not all(isinstance(entry, int | np.integer) for entry in entries):
        return False
    lengths = {len(row) for row in Y}
    square = len(names) in lengths or (len(lengths) == 1 and lengths != {1})
    return not (square and set(entries) <= {0, 1})


def _refuse_twice(rows: list[list[Any]], name: str) -> None:
    for number, row in enumerate(rows):
        if len(set(row)) < len(row):
            label = next(label for label in row if row.count(label) > 1)
            raise ValueError(
                f"{name} must hold only 0 and 1, or list each label of a row once, but "
                f"{name}[{number}] has {label} more than once"
            )


def _refuse_ragged(Y: Any, names: NDArray[Any], name: str) -> None:
    lengths = [len(row) for row in Y if isinstance(row, ROW) and getattr(row, "ndim", 1)]
    if len(set(lengths)) > 1:
        row = next(row for row, length in enumerate(lengths) if length != len(names))
        raise ValueError(
            f"the rows of {name} must have {len(names)} entries, one for each label of the "
            f"taxonomy, or list its labels by name, but {name}[{row}] has {lengths[row]}"
        )
