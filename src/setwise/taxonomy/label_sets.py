"""Label sets over the labels of a taxonomy, from 0/1 arrays, data frames or names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.labels import ROW, Lists, form_of, name_array, some, zeros_and_ones
from setwise.taxonomy.edges import refuse_repeated


def label_sets(Y: Any, names: NDArray[Any], name: str) -> Any:
    """0/1 of type uint8, dense or CSR, with a column for each name; a fresh array."""
    if hasattr(Y, "columns") and hasattr(Y, "to_numpy"):
        sets = _wide_enough(zeros_and_ones(Y.to_numpy(), name), names, name)
        return np.ascontiguousarray(sets[:, _order(name_array(Y.columns), names, name)])
    if isinstance(Y, list | tuple) or (np.ndim(Y) == 1 and np.asarray(Y).dtype.kind in "OU"):
        if any(_is_named(row) for row in Y):
            return form_of(Y, column_of_classes=False).sets(names)
        if _are_numbered(Y, names):
            return Lists([_once(row, f"{name}[{place}]") for place, row in enumerate(Y)]).sets(
                names
            )
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
    only_count = columns.dtype.kind != names.dtype.kind and places in (given, wanted)
    if given == wanted or only_count:
        return places
    refuse_repeated(given)
    unknown = [column for column in given if column not in set(wanted)]
    if unknown:
        raise ValueError(
            f"the columns of {name} must be the labels of the taxonomy, {some(wanted)}, but it has "
            f"{some(unknown)}"
        )
    return [given.index(label) for label in wanted]


def _is_named(row: Any) -> bool:
    """Whether a row is a name, a Python set, or a list that begins with a name."""
    if isinstance(row, list | tuple):
        return any(isinstance(label, str) for label in row[:1])
    return isinstance(row, str | set | frozenset)


def _are_numbered(Y: Any, names: NDArray[Any]) -> bool:
    """Whether rows are lists of labels that are numbers, or all empty.

    Rows of only 0 and 1 are a matrix if one has an entry for each label, or all have as many.
    """
    if not len(Y) or not all(isinstance(row, ROW) and getattr(row, "ndim", 1) == 1 for row in Y):
        return False
    entries = [entry for row in Y for entry in row]
    are_whole = all(isinstance(entry, int | np.integer) for entry in entries)
    if not entries or names.dtype.kind not in "iuf" or not are_whole:
        return not entries
    lengths = {len(row) for row in Y}
    square = len(names) in lengths or (len(lengths) == 1 and lengths != {1})
    return not (square and set(entries) <= {0, 1})


def _once(row: Any, name: str) -> list[Any]:
    labels = list(row)
    for label in labels:
        if labels.count(label) > 1:
            raise ValueError(
                f"{name.partition('[')[0]} must hold only 0 and 1, or list each label of a row "
                f"once, but {name} has {label} more than once"
            )
    return labels


def _refuse_ragged(Y: Any, names: NDArray[Any], name: str) -> None:
    lengths = [len(row) for row in Y if isinstance(row, ROW) and getattr(row, "ndim", 1)]
    if len(set(lengths)) > 1:
        row = next(row for row, length in enumerate(lengths) if length != len(names))
        raise ValueError(
            f"the rows of {name} must have {len(names)} entries, one for each label of the "
            f"taxonomy, or list its labels by name, but {name}[{row}] has {lengths[row]}"
        )
