"""The parent, or the parents, of each label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from setwise.taxonomy.edges import Parts
from setwise.taxonomy.names import (
    is_nothing,
    is_number,
    is_root,
    places_of,
    plain,
    refuse_missing,
    refuse_no_name,
    refuse_repeated,
)
from setwise.validation import real_vector

SEVERAL = (list, tuple, set, frozenset, np.ndarray)


def edges_of_parents(parents: Any, names: Any, lengths: Any) -> Parts:
    """See `Taxonomy.from_parents`."""
    if hasattr(parents, "columns") or isinstance(parents, str) or not hasattr(parents, "__iter__"):
        raise ValueError(
            f"parents must be a list or a mapping with the parent of each label, but they are a "
            f"{type(parents).__name__}; Taxonomy.from_edges takes tables"
        )
    if hasattr(parents, "index") and hasattr(parents, "to_numpy"):
        parents = _of_series(parents)
    parents = parents if isinstance(parents, Mapping) else list(parents)
    if not len(parents):
        raise ValueError("parents must have an entry for each label, but they are empty")
    if isinstance(parents, Mapping):
        above, order = _of_mapping(parents, names)
        known = places_of(order)
    else:
        above, order = [[plain(value)] for value in parents], names
        if names is not None and len(names) != len(above):
            raise ValueError(
                f"parents and names must be of one length, but there are {len(above)} parents and "
                f"{len(names)} names"
            )
        known = None if _are_numbers(above, names) else places_of(names)
    edges = [
        [_number(value, child, known, order, len(above)), child]
        for child, values in enumerate(above)
        for value in values
    ]
    if lengths is not None:
        lengths = real_vector(lengths, len(above), "lengths")[[child for _, child in edges]]
    return np.array(edges), np.arange(len(above)) if order is None else order, lengths


def _of_series(series: Any) -> Any:
    """A series as a list if its index only counts, else as a mapping from the index."""
    index, values = list(series.index), np.asarray(series, dtype=object).tolist()
    if index == list(range(len(index))):
        return values
    refuse_repeated(index)
    return dict(zip(index, values, strict=True))


def _of_mapping(parents: Mapping[Any, Any], names: Any) -> tuple[list[list[Any]], list[Any]]:
    """The parents of each label, and all labels.

    Where no entry is that of a root, the roots are the parents that have no entry themselves.
    """
    if any(is_nothing(name) for name in parents):
        raise ValueError("each entry of parents must be that of a label, but one is of nothing")
    above = {plain(name): _several(value, name) for name, value in parents.items()}
    order = list(above) if names is None else [plain(name) for name in names]
    refuse_missing(above, dict.fromkeys(order, 0), "names")
    used = dict.fromkeys(value for values in above.values() for value in values)
    unlisted = [value for value in used if value not in above]
    if not any(is_root(value) for value in unlisted):
        roots = [value for value in unlisted if names is None or value in order]
        above |= {name: [None] for name in roots}
        order += roots if names is None else []
    refuse_missing(order, dict.fromkeys(above, 0), "the labels that have an entry of parents")
    return [above[name] for name in order], order


def _several(value: Any, name: Any) -> list[Any]:
    """The parents in one entry of a mapping; none is that of a root."""
    if not isinstance(value, SEVERAL):
        value = [value]
    values = [plain(one) for one in value]
    for one in values:
        refuse_no_name(one, f"the entry of {name!r}")
    return values or [None]


def _are_numbers(above: list[list[Any]], names: Any) -> bool:
    """Whether parents are numbers of labels; else they are names, which must be listed."""
    for child, (value,) in enumerate(above):
        if is_root(value) or is_number(value):
            continue
        refuse_no_name(value, f"parents[{child}]")
        if names is None and isinstance(value, str):
            raise ValueError(
                f"parents given by name need names, the name of each label, but there are none, "
                f"and parents[{child}] is {value!r}"
            )
        if names is None:
            raise ValueError(
                f"parents must be whole numbers of labels, -1 or None for a root, but "
                f"parents[{child}] is {value!r}"
            )
        return False
    return True


def _number(value: Any, child: int, known: Any, order: Any, n_labels: int) -> int:
    """The number of a parent, -1 for none."""
    if known is not None and value in known:
        return known[value]
    if is_root(value):
        return -1
    if known is not None:
        raise ValueError(
            f"the parent {value!r} of {list(order)[child]!r} is not among the {n_labels} labels; "
            f"a root has the parent None"
        )
    if not 0 <= value < n_labels:
        raise ValueError(
            f"parents[{child}] must be -1 or a label from 0 to {n_labels - 1}, but it is {value}"
        )
    return value
