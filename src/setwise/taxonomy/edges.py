"""The edges of a hierarchy: between numbered labels, or as rows of names.

All functions that read a hierarchy return the arguments of `Taxonomy`: edges (m, 2) of [parent,
child], the names of the labels, and the lengths of the edges, or None where all are 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from setwise.taxonomy.columns import frame_rows
from setwise.taxonomy.names import (
    Array,
    checked_names,
    is_nothing,
    is_root,
    places_of,
    plain,
    refuse_no_name,
    refuse_repeated,
    shown,
)
from setwise.taxonomy.table import Row, edges_of_table, with_whole_parents

Parts = tuple[Array, Any, Any]


def checked_edges(edges: Any, names: Any) -> tuple[Array, Array]:
    """Edges as whole numbers of labels, each once, and names that are all different."""
    array = np.asarray(edges)
    array = array.reshape(-1, 2).astype(np.int64) if array.size == 0 else array
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError(
            f"edges must be whole numbers of shape (n_edges, 2), a parent and a child in each row, "
            f"but their shape is {array.shape} and their dtype {array.dtype}"
        )
    array = array.astype(np.int64)
    if names is None and len(array) == 0:
        raise ValueError("a Taxonomy needs at least one label, but there are no names and no edges")
    names = checked_names(np.arange(array.max() + 1) if names is None else names)
    refuse_repeated(names.tolist())
    bad = np.flatnonzero((array < [-1, 0]).any(axis=1) | (array >= len(names)).any(axis=1))
    if len(bad):
        raise ValueError(
            f"edges[{bad[0]}] must have a parent from -1 (the virtual root) and a child from 0 to "
            f"{len(names) - 1}, but it is {array[bad[0]].tolist()}"
        )
    _refuse_loops(array, names)
    return array, names


def _refuse_loops(edges: Array, names: Array) -> None:
    loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if len(loops):
        name = names.tolist()[edges[loops[0], 0]]
        raise ValueError(f"no label stands under itself, but {name!r} does (edge {loops[0]})")
    rows, times = np.unique(edges, axis=0, return_counts=True)
    if (times > 1).any():
        first = int(np.argmax(times > 1))
        above, child = rows[first].tolist()
        parent = repr(names.tolist()[above]) if above >= 0 else "the virtual root"
        raise ValueError(
            f"each edge must be there once, but {names.tolist()[child]!r} under {parent} is there "
            f"{times[first]} times"
        )


def refuse_lengths(edges: Array, names: Array, lengths: Array) -> None:
    """Raise for a length that is not positive."""
    bad = np.flatnonzero(lengths <= 0)
    if len(bad):
        child = names.tolist()[edges[bad[0], 1]]
        raise ValueError(
            f"lengths must be positive, but the length of the edge to {child!r} is "
            f"{lengths[bad[0]]}"
        )


# -------------------------------------------------------------------------------------------- named


def edges_of_rows(edges: Any, names: Any, root: Any) -> Parts:
    """See `Taxonomy.from_edges`."""
    if hasattr(edges, "columns") and hasattr(edges, "to_numpy"):
        rows, is_table = frame_rows(edges)
        rows = with_whole_parents(rows, names, root)
        return named_edges(rows, names, root, "row {} of the data frame".format, is_table)
    return named_edges(_rows(edges), names, root, "edge {}".format, is_table=False)


def named_edges(
    rows: Sequence[Row], names: Any, root: Any, where: Callable[[int], str], is_table: bool
) -> Parts:
    """From rows of names; ``where`` says in messages where the i-th one stands.

    Those of a table have been found by the names of its columns: see `edges_of_table`.
    """
    if is_table:
        rows, numbers = edges_of_table(rows, names, root, where)
        return named_edges(rows, names, root, lambda row: where(numbers[row]), is_table=False)
    if not rows and names is None:
        raise ValueError(
            "a taxonomy is read from rows [parent, child], or has names, but there is no edge"
        )
    known = {} if names is None else places_of(names)
    if root is not None and root in known:
        raise ValueError(f"root stands for no label, but {shown(root)} is among the names")
    ends = [
        [_end(value, root, known, where(number)) for value in row[:2]]
        for number, row in enumerate(rows)
    ]
    if root is not None and not any(_is_same(row[0], root) for row in rows):
        raise ValueError(
            f"root must be the parent of some label, but {shown(root)} stands above none"
        )
    if names is None:
        order = dict.fromkeys(end for pair in ends for end in pair if end is not None)
        known = {name: number for number, name in enumerate(order)}
    numbered = np.full((len(rows), 2), -1)
    for number, (above, child) in enumerate(ends):
        if child not in known:
            raise ValueError(
                f"{where(number)}, {_ends(rows[number])}, leads to no label: "
                f"{shown(rows[number][1])} is not among the {len(known)} names"
            )
        if above is not None and above not in known:
            raise ValueError(
                f"the parent {shown(above)} of {shown(child)} ({where(number)}) is not among "
                f"the {len(known)} labels"
            )
        numbered[number] = -1 if above is None else known[above], known[child]
    lengths = [_length(row, where(number)) for number, row in enumerate(rows) if len(row) == 3]
    return numbered, list(known), lengths or None


def _rows(edges: Any) -> list[Row]:
    """Rows of two or three values, all of one length."""
    # (The edges of a networkx graph are a mapping and a set, and iterate over pairs.)
    is_mapping = isinstance(edges, Mapping) and not isinstance(edges, Set)
    is_other = is_mapping or isinstance(edges, str) or hasattr(edges, "toarray")
    if is_other or not hasattr(edges, "__iter__"):
        other = "Taxonomy.from_parents takes a mapping, Taxonomy.read the name of a file"
        raise ValueError(
            f"edges must be rows [parent, child], but they are a {type(edges).__name__}; {other}"
        )
    listed = edges.tolist() if isinstance(edges, np.ndarray) else list(edges)
    rows = [tuple(row) if _is_row(row) else (row,) for row in listed]
    for number, row in enumerate(rows):
        if len(row) not in (2, 3) or len(row) != len(rows[0]):
            raise ValueError(
                f"each edge must be [parent, child] or each [parent, child, length], but "
                f"edge {number} is {shown(listed[number])}"
            )
    return list(rows)


def _is_row(row: Any) -> bool:
    # (Text has as many entries as letters, and a set has no order.)
    return hasattr(row, "__iter__") and not isinstance(row, str | bytes | Mapping | set | frozenset)


def _end(value: Any, root: Any, known: Mapping[Any, int], where: str) -> Any:
    """One end of an edge as a name, None where it stands for the virtual root."""
    if not isinstance(value, str):
        refuse_no_name(value, where)
        value = plain(value)
        if is_root(value) and (is_nothing(value) or value not in known):
            return None
    return None if value == "" or (root is not None and value == plain(root)) else value


def _is_same(value: Any, root: Any) -> bool:
    return value is root or (not is_nothing(value) and bool(plain(value) == plain(root)))


def _ends(row: Row) -> str:
    return f"{shown(row[0])} to {shown(row[1])}"


def _length(row: Row, where: str) -> float:
    try:
        length = float(row[2])
    except (TypeError, ValueError):
        length = np.nan
    if not 0.0 < length < np.inf:
        raise ValueError(
            f"the length of {where}, {_ends(row)}, must be a positive number, but it is "
            f"{shown(row[2])} (words for columns are parent, child and length)"
        )
    return length
