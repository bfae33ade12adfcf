"""Hierarchies from what users have: rows of names, data frames, parents, path names.

Each function returns the arguments of `Taxonomy`: edges (m, 2) of [parent, child], the names of the
labels, and the lengths of the edges, or None where all are 1.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from setwise.taxonomy.edges import Array, checked_names, refuse_missing, refuse_repeated
from setwise.validation import real_vector

Parts = tuple[Array, Any, Any]
# Words for columns, without case, spaces and marks. What begins with parent or child is one too.
WORDS = {
    "parent": ("source", "from", "isa", "broader"),
    "child": ("label", "name", "id", "term", "target", "to"),
    "length": ("length", "weight", "distance"),
}
# What programs write for no parent.
NO_PARENT = ("NA", "N/A", "<NA>", "NaN", "nan", "None", "null", "NULL", "-1", "-1.0")
BETWEEN_PARENTS = re.compile(r"[|;]")
WHOLE, WITH_ZEROS = re.compile(r"\d+"), re.compile(r"(-?\d+)\.0+")
SEVERAL = (list, tuple, set, frozenset, np.ndarray)
NO_ROW = (str, bytes, Mapping, set, frozenset)
# Letters of a value, and columns, in a message.
MOST_LETTERS, MOST_COLUMNS = 40, 10


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
    if hasattr(edges, "columns") and hasattr(edges, "to_numpy"):
        rows, is_table = _frame_rows(edges)
        return edges_of_columns(rows, names, root, is_table)
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
    cells = [() if isinstance(edge, NO_ROW) else tuple(edge) for edge in listed]
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


# ------------------------------------------------------------------------------------------- tables


def edges_of_columns(rows: list[Row], names: Any, root: Any, is_table: bool) -> Parts:
    """From rows of a frame or a file; in a table the columns were found by their names.

    Where all labels are whole numbers as text, the parent 1.0 is 1, and -1 is none.
    """
    if all(isinstance(row.child, str) and WHOLE.fullmatch(row.child) for row in rows):
        none = {"-1"} - _listed(names) - {root}
        whole = [_without_zeros(row.parent) for row in rows]
        rows = [
            row._replace(parent=None if above in none else above)
            for row, above in zip(rows, whole, strict=True)
        ]
    return named_edges(_single_parents(rows, names, root) if is_table else rows, names, root)


def _single_parents(rows: list[Row], names: Any, root: Any) -> list[Row]:
    """The rows of a table with one parent each, None for none.

    A label has a row of its own if it stands in the column of labels, or among the names. If some
    row is that of a root, and no names are given, each parent must have such a row.
    """
    roots = {None, plain(root)}
    own = {row.child for row in rows} | _listed(names) | roots
    labels = {row.parent for row in rows if not _is_several(row.parent)} | own
    found = [row._replace(parent=one) for row in rows for one in _parents(row, own, labels)]
    if names is None and any(row.parent in roots for row in found):
        for row in found:
            if row.parent not in own:
                raise ValueError(
                    f"the parent {shown(row.parent)} of {shown(row.child)} ({row.place}) has no "
                    f"row of its own, as each label must have where roots have rows with an empty "
                    f"parent; is it misspelt?"
                )
    return found


def _parents(row: Row, own: Set[Any], labels: Set[Any]) -> list[Any]:
    """The parents in one cell: several with | or ; between them, if all these are labels."""
    cell = row.parent
    if cell not in own and (cell == -1 or cell in NO_PARENT):
        return [None]
    if cell in own or not _is_several(cell):
        return [cell]
    parts = [part.strip() for part in BETWEEN_PARENTS.split(cell) if part.strip()]
    unknown = [part for part in parts if part not in labels]
    if unknown and len(unknown) < len(parts):
        raise ValueError(
            f"several parents of {shown(row.child)} ({row.place}) must all be labels of the table, "
            f"but of {shown(cell)} {shown(unknown[0])} is none"
        )
    return [cell] if unknown else parts


def _is_several(cell: Any) -> bool:
    return isinstance(cell, str) and BETWEEN_PARENTS.search(cell) is not None


def _without_zeros(value: Any) -> Any:
    """The text 1.0, as a column of whole numbers with gaps is written, as 1."""
    found = WITH_ZEROS.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found else value


def _listed(names: Any) -> set[Any]:
    return set() if names is None else set(map(plain, names))


# ------------------------------------------------------------------------------------------ columns


def named_columns(
    words: list[Any], rows: list[Any], where: str, is_header: bool
) -> list[int] | None:
    """The places of parent, child and perhaps length, or None if the words name no columns.

    A first line may hold labels that look like one of the words: it is taken for a header only if
    two of its words are known, or one that is hardly a label. A header with other columns, or
    without one that is needed, is refused. Of several columns of labels, such as id and name, it is
    the one in which parents of the rows occur.
    """
    roles = [_role(word) for word in words]
    known = [role for role in roles if role]
    is_sure = any(_word(word).startswith(("parent", "child", "id")) for word in words)
    is_sure = is_sure or is_header or len(known) > 1
    if not known or not is_sure or (is_header and roles == [None, None, "length"]):
        return None
    for role, of in (("parent", "parents"), ("child", "labels")):
        if role not in known:
            raise ValueError(
                f"{where} must name a column of parents (such as parent) and one of labels (such "
                f"as child, label or name), but of {_some(words)} none is one of {of}"
            )
    others = [word for word, role in zip(words, roles, strict=True) if role is None]
    if others or known.count("parent") > 1 or known.count("length") > 1:
        raise ValueError(
            f"{where} must have one column of parents, labels and perhaps one of lengths (length, "
            f"weight or distance), but it has {_some(others or words)} too: leave out what is not "
            f"meant"
        )
    places = {role: roles.index(role) for role in WORDS if role in known}
    if known.count("child") > 1:
        labels = [place for place, role in enumerate(roles) if role == "child"]
        places["child"] = _labels_place(words, rows, places["parent"], labels, where)
    return list(places.values())


def _labels_place(
    words: list[Any], rows: list[Any], above: int, places: list[int], where: str
) -> int:
    """Of several columns of labels the one in which parents occur."""
    parents = {parent for row in rows for parent in _possible_parents(row[above])}
    found = [p for p in places if not parents.isdisjoint(plain(row[p]) for row in rows)]
    if len(found) != 1:
        occur = _some([words[p] for p in found]) if found else "none"
        raise ValueError(
            f"{where} has several columns of labels, {_some([words[p] for p in places])}: the "
            f"parents in {words[above]!r} must occur in one of them, but they occur in {occur}; "
            f"leave out what is not meant"
        )
    return found[0]


def _possible_parents(cell: Any) -> set[Any]:
    """What a cell may say: itself, itself as a whole number, or several parents."""
    several = map(str.strip, BETWEEN_PARENTS.split(cell)) if isinstance(cell, str) else ()
    found = {plain(cell), _without_zeros(cell), *several}
    return found - {None, ""}


def _frame_rows(frame: Any) -> tuple[list[Row], bool]:
    """The rows of a data frame, and whether its columns were found by their names."""
    columns = list(frame.columns)
    if len(set(columns)) < len(columns):
        raise ValueError(
            f"the columns of a data frame of edges must differ, but they are {_some(columns)}"
        )
    # (Column by column: a frame of several types has none for all of it.)
    values = [np.asarray(frame[column], dtype=object).tolist() for column in columns]
    rows = list(zip(*values, strict=True))
    places = named_columns(columns, rows, "a data frame of edges", is_header=True)
    if places is None and len(columns) not in (2, 3):
        raise ValueError(
            f"a data frame of edges must have columns of parents, labels and perhaps lengths, but "
            f"it has {len(columns)} columns: {_some(columns)}"
        )
    chosen = range(len(columns)) if places is None else places
    return [
        row_of([row[place] for place in chosen], f"row {number} of the data frame")
        for number, row in enumerate(rows)
    ], places is not None


def _some(words: list[Any]) -> str:
    return ", ".join(map(shown, words[:MOST_COLUMNS])) + ", ..." * (len(words) > MOST_COLUMNS)


def _word(word: Any) -> str:
    return re.sub(r"[\W_]+", "", str(word).lower())


def _role(word: Any) -> str | None:
    found = _word(word)
    for role, words in WORDS.items():
        if found in words or (role != "length" and found.startswith(role)):
            return role
    return None


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
