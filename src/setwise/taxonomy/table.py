"""Hierarchies from tables: which columns are parents, labels and lengths, and what cells say."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Any

import numpy as np

from setwise.taxonomy.forms import Parts, Row, named_edges, plain, row_of, shown

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
# Columns in a message.
MOST_COLUMNS = 10


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


def edges_of_frame(frame: Any, names: Any, root: Any) -> Parts:
    """From a data frame; by the names of its columns, or by their places if none is known."""
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
    edges = [
        row_of([row[place] for place in chosen], f"row {number} of the data frame")
        for number, row in enumerate(rows)
    ]
    return edges_of_columns(edges, names, root, is_table=places is not None)


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
