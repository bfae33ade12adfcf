"""Hierarchies from what users have: rows of names, data frames, parents, path names.

Each function returns the arguments of `Taxonomy`: edges (m, 2) of [parent, child], the names of the
labels, and the lengths of the edges, or None where all are 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from setwise.taxonomy.edges import Array, checked_names, refuse_missing, refuse_repeated
from setwise.validation import real_vector

Parts = tuple[Array, Any, Any]
SEVERAL = (list, tuple, set, frozenset, np.ndarray)
NO_ROW = (str, bytes, Mapping, set, frozenset)
# Letters of a value in a message.
MOST_LETTERS = 40


class Row(NamedTuple):
    """An edge by names: parent (None for none), child, perhaps a length, and where it stands."""

    parent: Any
    child: Any
    length: float | None
    place: str


def row_of(cells: Sequence[Any], place: str) -> Row:
    """An edge from its two or three cells; ``place`` says in messages where it stands."""
    for cell in cells[:2]:
        try:
            hash(cell)
        except TypeError:
            raise ValueError(
                f"labels must be text or numbers, but {place} has {shown(cell)}, a "
                f"{type(cell).__name__}"
            ) from None
    above, child = map(plain, cells[:2])
    if len(cells) == 2:
        return Row(above, child, None, place)
    try:
        length = float(cells[2])
    except (TypeError, ValueError):
        length = np.nan
    if not 0.0 < length < np.inf:
        raise ValueError(
            f"the length of {place}, {shown(above)} to {shown(child)}, must be a positive number, "
            f"but it is {shown(cells[2])} (words for columns are parent, child and length)"
        )
    return Row(above, child, length, place)


def plain(value: Any) -> Any:
    """A name as Python has it: 2.0, as a column with gaps has it, is 2; "", NaN and NA are None."""
    if isinstance(value, str):
        return value or None
    try:
        is_nothing = value is None or bool(value != value)
    except TypeError:  # (NA does not say whether it is itself)
        is_nothing = True
    if is_nothing:
        return None
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return int(value)
    return value


def is_number(value: Any) -> bool:
    """Whether a plain value is a whole number; True is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def shown(value: Any) -> str:
    """A value for a message, cut short if it is long."""
    text = repr(value)
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}..."


# -------------------------------------------------------------------------------------------- edges


def edges_of_rows(edges: Any, names: Any, root: Any) -> Parts:
    """See `Taxonomy.from_edges`."""
    # (The edges of a networkx graph are a mapping and a set, and iterate over pairs.)
    is_mapping = isinstance(edges, Mapping) and not isinstance(edges, Set)
    is_other = is_mapping or isinstance(edges, str) or hasattr(edges, "toarray")
    if is_other or not hasattr(edges, "__iter__"):
        raise ValueError(
            f"edges must be rows [parent, child], but they are a {type(edges).__name__}; "
            f"Taxonomy.from_parents takes a mapping, Taxonomy.read the name of a file"
        )
    listed = edges.tolist() if isinstance(edges, np.ndarray) else list(edges)
    # (Text has as many entries as letters, and a set has no order.)
    cells = [
        tuple(edge) if hasattr(edge, "__iter__") and not isinstance(edge, NO_ROW) else ()
        for edge in listed
    ]
    for number, edge in enumerate(cells):
        if len(edge) not in (2, 3) or len(edge) != len(cells[0]):
            raise ValueError(
                f"each edge must be [parent, child] or each [parent, child, length], but "
                f"edge {number} is {shown(listed[number])}"
            )
    return named_edges([row_of(edge, f"edge {i}") for i, edge in enumerate(cells)], names, root)


def named_edges(rows: Sequence[Row], names: Any, root: Any = None) -> Parts:
    """From rows of names; the labels are those of ``names``, or the rows' own as they occur."""
    if not rows and names is None:
        raise ValueError(
            "a taxonomy is read from rows [parent, child], or has names, but there is no edge"
        )
    known = {} if names is None else _places(map(plain, checked_names(names).tolist()))
    root = plain(root)
    if root is not None and root in known:
        raise ValueError(f"root stands for no label, but {shown(root)} is among the names")
    if root is not None and all(row.parent != root for row in rows):
        raise ValueError(
            f"root must be the parent of some label, but {shown(root)} stands above none"
        )
    roots = {None, root} | ({-1} - known.keys())
    ends = [[None if end in roots else end for end in row[:2]] for row in rows]
    if names is None:
        known = _places(dict.fromkeys(end for pair in ends for end in pair if end is not None))
    for (above, child), row in zip(ends, rows, strict=True):
        if child not in known:
            raise ValueError(
                f"{row.place}, {shown(row.parent)} to {shown(row.child)}, leads to no label: "
                f"{shown(row.child)} is not among the {len(known)} names"
            )
        if above is not None and above not in known:
            raise ValueError(
                f"{row.place}: the parent {shown(above)} of {shown(child)} is not among the "
                f"{len(known)} labels; a root has the parent None"
            )
    numbers = [[-1 if above is None else known[above], known[child]] for above, child in ends]
    lengths = [row.length for row in rows if row.length is not None]
    order = list(known) if names is None else names
    return np.array(numbers, dtype=np.int64).reshape(-1, 2), order, lengths or None


def _places(names: Iterable[Any]) -> dict[Any, int]:
    return {name: number for number, name in enumerate(names)}


# ----------------------------------------------------------------------------------- parents, paths


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
        rows, names = _rows_of_mapping(parents, names)
    else:
        rows, names = _rows_of_list(parents, names)
    edges, names, _ = named_edges(rows, names)
    if lengths is not None:
        lengths = real_vector(lengths, len(names), "lengths")[edges[:, 1]]
    return edges, names, lengths


def _of_series(series: Any) -> Any:
    """A series as a list if its index only counts, else as a mapping from the index."""
    index, values = list(series.index), np.asarray(series, dtype=object).tolist()
    if index == list(range(len(index))):
        return values
    refuse_repeated(index)
    return dict(zip(index, values, strict=True))


def _rows_of_mapping(parents: Mapping[Any, Any], names: Any) -> tuple[list[Row], Any]:
    """A row for each parent of each label, and all labels.

    Where no entry is that of a root, the roots are the parents that have no entry themselves.
    """
    rows = [
        row_of((one, child), f"the entry of {child!r}")
        for child, above in parents.items()
        for one in (above if isinstance(above, SEVERAL) else [above]) or [None]
    ]
    listed = dict.fromkeys(row.child for row in rows)
    if None in listed:
        raise ValueError("each entry of parents must be that of a label, but one is of nothing")
    order = list(listed) if names is None else list(map(plain, names))
    refuse_missing(listed, order, "names")
    unlisted = [above for above in dict.fromkeys(row.parent for row in rows) if above not in listed]
    if None not in unlisted and -1 not in unlisted:
        roots = [above for above in unlisted if names is None or above in order]
        order += roots if names is None else []
        listed |= dict.fromkeys(roots)
        rows += [Row(None, root, None, "") for root in roots]
    refuse_missing(order, listed, "the labels that have an entry of parents")
    return rows, order


def _rows_of_list(parents: list[Any], names: Any) -> tuple[list[Row], Any]:
    """A row for each label; parents are numbers of labels, or names that must be listed."""
    n_labels = len(parents)
    names = np.arange(n_labels) if (by_number := names is None) else checked_names(names)
    if len(names) != n_labels:
        raise ValueError(
            f"parents and names must be of one length, but there are {n_labels} parents and "
            f"{len(names)} names"
        )
    order = names.tolist()
    rows = [row_of((one, order[child]), f"parents[{child}]") for child, one in enumerate(parents)]
    numbers = [row.parent is None or is_number(row.parent) for row in rows]
    if not by_number and not all(numbers):
        return rows, names
    for row, is_whole in zip(rows, numbers, strict=True):
        if not is_whole:
            raise ValueError(
                f"parents must be whole numbers of labels, -1 or None for a root (parents given by "
                f"name need names, the name of each label), but {row.place} is {row.parent!r}"
            )
        if row.parent is not None and not -1 <= row.parent < n_labels:
            raise ValueError(
                f"{row.place} must be -1 or a label from 0 to {n_labels - 1}, but it is "
                f"{row.parent}"
            )
    # (The entry at -1 is that of the virtual root.)
    named = [*order, None]
    return [
        row._replace(parent=named[-1 if row.parent is None else row.parent]) for row in rows
    ], names


def edges_of_paths(paths: Any, separator: str, missing: str) -> Parts:
    """See `Taxonomy.from_paths`."""
    check_path_options(separator, missing)
    names = _checked_paths(paths, separator)
    if len(names) > 1 and not any(separator in name for name in names):
        warnings.warn(
            f"no path has the separator {separator!r}, so all {len(names)} labels are roots; has "
            f"{names[-1]!r} another one?",
            UserWarning,
            stacklevel=3,
        )
    known, rows = set(names), []
    for child in names:
        above = child.rpartition(separator)[0]
        if above and above not in known:
            if missing == "refuse":
                raise ValueError(
                    f"the parent {above!r} of {child!r} is not among the {len(names)} labels; "
                    f"missing='add' adds such parents"
                )
            # Seen by this very loop, which adds its own parents in turn.
            known.add(above)
            names.append(above)
        rows.append(Row(above or None, child, None, child))
    return named_edges(rows, names)


def check_path_options(separator: Any, missing: Any) -> None:
    """Raise for options that are none."""
    if missing not in ("refuse", "add"):
        raise ValueError(f"missing must be 'refuse' or 'add', not {missing!r}")
    if not isinstance(separator, str) or not separator:
        raise ValueError(f"separator must be text that parts names, but it is {separator!r}")


def _checked_paths(paths: Any, separator: str) -> list[str]:
    if isinstance(paths, str) or hasattr(paths, "columns") or not hasattr(paths, "__iter__"):
        raise ValueError(
            f"paths must be a list of names such as ['01', '01/02'], but they are a "
            f"{type(paths).__name__}; of a data frame, hand over a column or its columns"
        )
    names = list(paths)
    if not names:
        raise ValueError("a taxonomy has at least one label, but there are no paths")
    for number, name in enumerate(names):
        if not isinstance(name, str) or "" in name.split(separator):
            raise ValueError(
                f"paths must be text, on both sides of each {separator!r}, but paths[{number}] is "
                f"{name!r}"
            )
    refuse_repeated(names)
    return list(map(str, names))
