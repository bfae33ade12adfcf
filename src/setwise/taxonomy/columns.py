"""Which columns of a table are parents, labels and lengths, by the words people use for them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from setwise.taxonomy.names import plain, refuse_no_name, shown
from setwise.taxonomy.table import possible_parents

# Compared without case, spaces and underscores. What begins with parent or child is one too.
PARENT = ("parent", "source", "from", "isa", "superclass", "subclassof", "broader", "hypernym")
CHILD = (
    *("child", "label", "name", "id", "node", "term", "target", "to", "class", "subclass", "code"),
    *("narrower", "hyponym", "category", "concept", "labelid", "nodeid", "termid", "taxid"),
)
LENGTH = ("length", "weight", "distance", "branchlength", "edgelength")
ROLES = ("parent", "child", "length")
# Columns in a message.
MOST_COLUMNS = 10


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
    sure = is_header or any(map(_is_sure, words)) or len(known) > 1
    if not known or not sure or (is_header and roles == [None, None, "length"]):
        return None
    for role in ("parent", "child"):
        if role not in known:
            raise ValueError(
                f"{where} must name a column of parents (such as parent) and one of labels (such "
                f"as child, label or name), but of {_listed(words)} none is one of "
                f"{'parents' if role == 'parent' else 'labels'}"
            )
    for role in ("parent", "length"):
        if known.count(role) > 1:
            both = [word for word, its in zip(words, roles, strict=True) if its == role]
            raise ValueError(
                f"{where} must name one column of parents and at most one of lengths, but "
                f"{_listed(both)} are all of the kind {role}"
            )
    others = [word for word, role in zip(words, roles, strict=True) if role is None]
    if others:
        raise ValueError(
            f"{where} must have columns of parents, labels and perhaps lengths (length, weight or "
            f"distance), but it has {_listed(others)} too: leave out what is not meant"
        )
    places = {role: roles.index(role) for role in ROLES if role in known}
    if known.count("child") > 1:
        places["child"] = _labels_place(words, roles, rows, where)
    return list(places.values())


def _labels_place(words: list[Any], roles: list[str | None], rows: list[Any], where: str) -> int:
    """Of several columns of labels the one in which parents occur."""
    above = roles.index("parent")
    places = [place for place, role in enumerate(roles) if role == "child"]
    for number, row in enumerate(rows):
        for place in (above, *places):
            refuse_no_name(row[place], f"row {number} of {words[place]!r}")
    parents = {parent for row in rows for parent in possible_parents(row[above])}
    found = [p for p in places if not parents.isdisjoint(plain(row[p]) for row in rows)]
    if len(found) != 1:
        occur = f"occur in {_listed([words[p] for p in found])}" if found else "occur in none"
        raise ValueError(
            f"{where} has several columns of labels, {_listed([words[p] for p in places])}: the "
            f"parents in {words[above]!r} must occur in one of them, but they {occur}; leave out "
            f"what is not meant"
        )
    return found[0]


def frame_rows(frame: Any) -> tuple[list[tuple[Any, ...]], bool]:
    """Rows of parent, child and perhaps length, and whether the columns are named so."""
    columns = list(frame.columns)
    if len(set(columns)) < len(columns):
        raise ValueError(
            f"the columns of a data frame of edges must differ, but they are {_listed(columns)}"
        )
    # (Column by column: a frame of several types has none for all of it.)
    values = [np.asarray(frame[column], dtype=object).tolist() for column in columns]
    rows = list(zip(*values, strict=True))
    places = named_columns(columns, rows, "a data frame of edges", is_header=True)
    if places is None and len(columns) not in (2, 3):
        raise ValueError(
            f"a data frame of edges must have columns of parents, labels and perhaps lengths, but "
            f"it has {len(columns)} columns: {_listed(columns)}"
        )
    if places is None:
        return rows, False
    return [tuple(row[place] for place in places) for row in rows], True


def _listed(words: list[Any]) -> str:
    return ", ".join(map(shown, words[:MOST_COLUMNS])) + ", ..." * (len(words) > MOST_COLUMNS)


def _word(word: Any) -> str:
    return re.sub(r"[\W_]+", "", str(word).lower())


def _role(word: Any) -> str | None:
    plain = _word(word)
    if plain in PARENT or plain.startswith("parent"):
        return "parent"
    if plain in CHILD or plain.startswith("child"):
        return "child"
    return "length" if plain in LENGTH else None


def _is_sure(word: Any) -> bool:
    """Whether a word is hardly the name of a label."""
    plain = _word(word)
    return plain.startswith(("parent", "child")) or (plain.endswith("id") and plain in CHILD)
