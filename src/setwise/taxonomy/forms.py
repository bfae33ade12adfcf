"""Hierarchies from what users have: rows of names, parents, path names.

Each function returns the arguments of `Taxonomy`: edges (m, 2) of [parent, child], the names of the
labels, and the lengths of the edges, or None where all are 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from setwise.labels import distinct_names
from setwise.spelling import shown
from setwise.taxonomy.edges import Array, refuse_missing
from setwise.validation import real_vector, refuse_repeated, require_one_of

Parts = tuple[Array, Any, Any]
LIST = (list, tuple, np.ndarray)
NO_ROW = (str, bytes, Mapping, set, frozenset)


class Row(NamedTuple):
    """An edge by names: parent (None for none), child, perhaps a length, and where it stands."""

    parent: Any
    child: Any
    length: float | None
    place: str


def row_of(cells: Sequence[Any], place: str) -> Row:
    """An edge from its two or three cells; ``place`` says in messages where it stands."""
    above, child = map(plain, cells[:2])
    try:
        hash((above, child))
        length = None if len(cells) == 2 else float(cells[2])
    except TypeError:
        raise ValueError(f"labels must be text or numbers, but {place} has {cells!r}") from None
    except ValueError:
        length = np.nan
    if length is not None and not 0.0 < length < np.inf:
        edge, found = f"{shown(above)} to {shown(child)}", shown(cells[2])
        raise ValueError(
            f"the length of {place}, {edge}, must be a positive number, but it is {found}"
        )
    return Row(above, child, length, place)


def plain(value: Any) -> Any:
    """A name as Python has it: 2.0, as a column with gaps has it, is 2; "", NaN and NA are None."""
    if isinstance(value, str):
        return value or None
    try:
        if value is None or value != value:
            return None
    except TypeError:  # (NA does not say whether it is itself)
        return None
    is_whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return int(value) if is_whole or isinstance(value, np.integer) else value


def is_number(value: Any) -> bool:
    """Whether a plain value is a whole number; True is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def named_edges(rows: Sequence[Row], names: Any, root: Any = None) -> Parts:
    """From rows of names; the labels are those of ``names``, or the rows' own as they occur."""
    if not rows and names is None:
        raise ValueError("a taxonomy has rows [parent, child], or names, but there is no edge")
    known = [] if names is None else list(map(plain, distinct_names(names).tolist()))
    root = plain(root)
    if root is not None and root in known:
        raise ValueError(f"root stands for no label, but {shown(root)} is among the names")
    if root is not None and all(row.parent != root for row in rows):
        raise ValueError(
            f"root must be the parent of a label, but nothing stands under {shown(root)}"
        )
    roots = {None, root} | ({-1} - set(known))
    rows = [row._replace(parent=None) if row.parent in roots else row for row in rows]
    if names is None:
        ends = dict.fromkeys(end for row in rows for end in row[:2])
        names = known = [end for end in ends if end not in roots]
    number = {name: place for place, name in enumerate(known)}
    for row in rows:
        if row.child not in number or (row.parent is not None and row.parent not in number):
            child, parent = shown(row.child), shown(row.parent)
            what = f"parent {parent} of {child}" if row.child in number else f"child {child}"
            raise ValueError(f"{row.place}: the {what} is not among the {len(known)} labels")
    edges = [[number.get(row.parent, -1), number[row.child]] for row in rows]
    lengths = [row.length for row in rows if row.length is not None]
    return np.array(edges, dtype=np.int64).reshape(-1, 2), names, lengths or None


# ---------------------------------------------------------------------------- rows, parents, paths


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
    # (Text has as many entries as letters, and a set has no order.)
    listed = edges.tolist() if isinstance(edges, np.ndarray) else list(edges)
    are_rows = [hasattr(edge, "__iter__") and not isinstance(edge, NO_ROW) for edge in listed]
    cells = [tuple(edge) if is_row else () for edge, is_row in zip(listed, are_rows, strict=True)]
    for number, edge in enumerate(cells):
        if len(edge) not in (2, 3) or len(edge) != len(cells[0]):
            expected = "each be [parent, child] or each [parent, child, length]"
            raise ValueError(f"edges must {expected}, but edge {number} is {shown(listed[number])}")
    return named_edges([row_of(edge, f"edge {i}") for i, edge in enumerate(cells)], names, root)


def edges_of_parents(parents: Any, names: Any, lengths: Any) -> Parts:
    """See `Taxonomy.from_parents`."""
    if hasattr(parents, "columns") or isinstance(parents, str) or not hasattr(parents, "__iter__"):
        raise ValueError(
            f"parents must be a list or a mapping with the parent of each label, but they are a "
            f"{type(parents).__name__}; Taxonomy.from_edges takes tables"
        )
    if hasattr(parents, "index") and hasattr(parents, "to_numpy"):
        # A series is a list if its index only counts, else a mapping from the index.
        index, parents = list(parents.index), np.asarray(parents, dtype=object).tolist()
        if index != list(range(len(index))):
            refuse_repeated(index)
            parents = dict(zip(index, parents, strict=True))
    parents = parents if isinstance(parents, Mapping) else list(map(plain, parents))
    if not parents:
        raise ValueError("parents must have an entry for each label, but they are empty")
    if not isinstance(parents, Mapping):
        parents, names = _by_name(parents, names)
    rows = [
        row_of((one, child), f"the entry of {child!r}")
        for child, above in parents.items()
        for one in (above if isinstance(above, (*LIST, set, frozenset)) else [above]) or [None]
    ]
    listed = dict.fromkeys(row.child for row in rows)
    if None in listed:
        raise ValueError("each entry of parents must be that of a label, but one is of nothing")
    order = list(listed) if names is None else list(map(plain, distinct_names(names).tolist()))
    unlisted = [above for above in dict.fromkeys(row.parent for row in rows) if above not in listed]
    if None not in unlisted and -1 not in unlisted:
        # No entry is that of a root: the roots are the parents that have no entry themselves.
        named = set(order)
        roots = [above for above in unlisted if names is None or above in named]
        order += roots if names is None else []
        listed |= dict.fromkeys(roots)
        rows += [Row(None, root, None, "") for root in roots]
    refuse_missing(listed, order, "names")
    refuse_missing(order, listed, "the labels that have an entry of parents")
    edges, _, _ = named_edges(rows, order)
    if lengths is not None:
        lengths = real_vector(lengths, len(order), "lengths")[edges[:, 1]]
    return edges, order if names is None else names, lengths


def _by_name(parents: list[Any], names: Any) -> tuple[dict[Any, Any], Any]:
    """A mapping from each label to its parent, from numbers of labels or names."""
    n_labels, by_number = len(parents), names is None
    names = np.arange(n_labels) if by_number else distinct_names(names)
    if len(names) != n_labels:
        counts = f"{n_labels} parents and {len(names)} names"
        raise ValueError(f"parents and names must be of one length, but there are {counts}")
    order = [*names.tolist(), None]  # (the entry at -1 is that of the virtual root)
    numbers = [-1 if above is None else above for above in parents]
    if by_number or all(map(is_number, numbers)):
        for place, above in enumerate(numbers):
            if not is_number(above) or not -1 <= above < n_labels:
                raise ValueError(
                    f"parents[{place}] must be -1, None or a label from 0 to {n_labels - 1}, but "
                    f"it is {above!r} (parents given by name need names, the name of each label)"
                )
        parents = [order[above] for above in numbers]
    return dict(zip(order, parents, strict=False)), names


def edges_of_paths(paths: Any, separator: str, missing: str) -> Parts:
    """See `Taxonomy.from_paths`."""
    check_path_options(separator, missing)
    if isinstance(paths, str) or hasattr(paths, "columns") or not hasattr(paths, "__iter__"):
        kind = type(paths).__name__
        raise ValueError(f"paths must be a list of names such as '01/02', but they are a {kind}")
    names = list(paths)
    if not names:
        raise ValueError("a taxonomy has at least one label, but there are no paths")
    for number, name in enumerate(names):
        if not isinstance(name, str) or "" in name.split(separator):
            expected = f"text, on both sides of each {separator!r}"
            raise ValueError(f"paths must be {expected}, but paths[{number}] is {name!r}")
    refuse_repeated(names)
    if len(names) > 1 and not any(separator in name for name in names):
        warnings.warn(
            f"no path has the separator {separator!r}, so all {len(names)} labels are roots; has "
            f"{names[-1]!r} another one?",
            UserWarning,
            stacklevel=3,
        )
    names, rows = list(map(str, names)), []
    known = set(names)
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
    require_one_of(missing, ("refuse", "add"), "missing")
    if not isinstance(separator, str) or not separator:
        raise ValueError(f"separator must be text that parts names, but it is {separator!r}")
