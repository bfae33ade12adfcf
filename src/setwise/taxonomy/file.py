"""Text files of edges or of path names.

A file holds edges if one mark parts all its lines into the same two or three columns, or its first
line names columns; path names if the separator is in some of its lines, and each name that has it
stands under another of the file. What could be either is refused.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from setwise.taxonomy.columns import named_columns
from setwise.taxonomy.edges import Parts, named_edges
from setwise.taxonomy.names import plain, shown
from setwise.taxonomy.paths import check_path_options, edges_of_paths
from setwise.taxonomy.table import with_whole_parents
from setwise.taxonomy.text import text_of

KINDS = ("auto", "edges", "paths")
# What parts columns. A tab goes before all others, and a space comes after them.
TAB, SPACE = "\t", " "
MARKS = (TAB, ",", ";", "|", SPACE)
# Parts nothing: no text has it.
NO_MARK = "\x1f"
# First lines above names: always, and where other lines have the separator.
PATH_WORDS = ("path", "paths", "label", "labels")
NAME_WORDS = ("name", "names", "category", "categories", "class", "term", "node", "id")
COMMENT = re.compile(r"(?:^|\s)#")


class Line(NamedTuple):
    """A line that is not empty, without its comment, and its number in the file."""

    number: int
    text: str


class Table(NamedTuple):
    """The cells of all lines, and the places of parent, child and length if line 1 names them."""

    rows: list[list[str]]
    places: list[int] | None

    @property
    def has_edges(self) -> bool:
        """Whether the columns can be parent, child and perhaps length."""
        return self.places is not None or len(self.rows[0]) in (2, 3)


def edges_of_file(
    path: Path, names: Any, root: Any, separator: str, missing: str, kind: str
) -> Parts:
    """See `Taxonomy.read`."""
    check_path_options(separator, missing)
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
    text = text_of(path, "a taxonomy")
    _refuse_json(path, text)
    lines = list(_lines(text))
    if not lines:
        raise ValueError(f"{path} has no lines, but a taxonomy has at least one label")
    marks = [mark for mark in MARKS if mark not in separator]
    table = None if kind == "paths" else _table(path, lines, marks)
    if kind == "auto":
        kind = _recognised(path, lines, table, marks, (separator, missing))
    if kind == "paths":
        if names is not None or root is not None:
            raise ValueError(
                f"names and root are for files of edges, but {path} has path names; "
                f"Taxonomy.over(names) puts them in another order"
            )
        return edges_of_paths(_paths(path, lines, separator), separator, missing)
    if missing != "refuse":
        raise ValueError(f"missing={missing!r} is for path names, but {path} has edges")
    if table is None:
        _refuse_columns(path, lines, marks)
    return _edges(path, lines, table, names, None if root is None else str(plain(root)))


def _refuse_json(path: Path, text: str) -> None:
    text = text.strip()
    if text.startswith(("{", "[")) and text.endswith(("}", "]")):
        raise ValueError(
            f"{path} must have lines of edges or of path names, but it has JSON, "
            f"{shown(text)}; Taxonomy.from_meta reads the description of a data set, and "
            f"Taxonomy.from_parents takes json.load of a mapping (names that begin with a bracket "
            f"stand in double quotes)"
        )


def _lines(text: str) -> Iterator[Line]:
    """The lines with something in them; a comment begins with # after a space, outside quotes."""
    for number, line in enumerate(text.split("\n"), 1):
        for comment in COMMENT.finditer(line):
            if line.count('"', 0, comment.start()) % 2 == 0:
                line = line[: comment.start()]
                break
        # (A tab at the end is a column that is empty.)
        if line.strip():
            yield Line(number, line.rstrip(" \r"))


def _recognised(
    path: Path, lines: list[Line], table: Table | None, marks: list[str], options: tuple[str, str]
) -> str:
    """The kind of a file: "edges" or "paths"."""
    if table is not None and table.places is not None:
        return "edges"
    are_paths = _are_paths(lines, *options)
    if table is not None and table.has_edges:
        if are_paths:
            raise ValueError(
                f"{path} could have edges, as each line has {len(table.rows[0])} columns, or path "
                f"names, as each with {options[0]!r} stands under another; say kind='edges' or "
                f"kind='paths'"
            )
        return "edges"
    if are_paths:
        return "paths"
    parted = any(mark in line.text.strip() for mark in marks for line in lines)
    return "edges" if parted else "paths"


# -------------------------------------------------------------------------------------------- edges


def _table(path: Path, lines: list[Line], marks: list[str]) -> Table | None:
    """The cells, if a mark parts all lines into as many."""
    found = {mark: rows for mark in marks if (rows := _parted(lines, mark))}
    if not found:
        return None
    between = [mark for mark in found if mark not in (TAB, SPACE)]
    if TAB not in found and len(between) > 1:
        raise ValueError(
            f"{path} is parted into columns by {between[0]!r} and by {between[1]!r} alike; names "
            f"with one of them must stand in double quotes"
        )
    rows = next(iter(found.values()))
    where = f"line {lines[0].number} of {path}"
    return Table(rows, named_columns(rows[0], rows[1:], where, is_header=False))


def _parted(lines: list[Line], mark: str) -> list[list[str]] | None:
    """The cells of all lines, if all have as many and more than one."""
    if mark not in lines[0].text:
        return None
    try:
        rows = [_cells(line, mark) for line in lines]
    except csv.Error:
        return None
    return rows if len(rows[0]) > 1 and len(set(map(len, rows))) == 1 else None


def _cells(line: Line, mark: str) -> list[str]:
    text = line.text.strip() if mark in (SPACE, NO_MARK) else line.text
    if mark != SPACE and '"' not in text:
        return [cell.strip() for cell in text.split(mark)]
    (row,) = csv.reader([text], delimiter=mark, skipinitialspace=True, strict=True)
    return [cell.strip() for cell in row]


def _edges(path: Path, lines: list[Line], table: Table, names: Any, root: Any) -> Parts:
    rows, places = table
    if places is None:
        if not table.has_edges:
            raise ValueError(
                f"line {lines[0].number} of {path} must have 2 or 3 columns (parent, child and "
                f"perhaps length), or name them, but it has {len(rows[0])}: {shown(rows[0])}"
            )
        places = list(range(len(rows[0])))
    else:
        rows, lines = rows[1:], lines[1:]
    if not rows:
        raise ValueError(f"{path} names its columns, but it has no edge below them")
    edges = with_whole_parents([[row[place] for place in places] for row in rows], names, root)
    is_table = table.places is not None
    return named_edges(
        edges, names, root, lambda row: f"line {lines[row].number} of {path}", is_table
    )


def _refuse_columns(path: Path, lines: list[Line], marks: list[str]) -> NoReturn:
    """Raise for the first line that does not have the columns of the first."""
    mark = next((m for m in marks if any(m in line.text.strip() for line in lines)), SPACE)
    width = 0
    for line in lines:
        try:
            cells = _cells(line, mark)
        except csv.Error as error:
            raise ValueError(
                f"the double quotes in line {line.number} of {path} cannot be read: {error}"
            ) from error
        width = width or len(cells)
        if len(cells) != width:
            raise ValueError(
                f"line {line.number} of {path} must have {width} columns, parted by {mark!r}, as "
                f"line {lines[0].number} has, but it has {len(cells)}; say kind='paths' and the "
                f"separator if these are path names"
            )
    raise ValueError(f"{path} must have a parent and a child in each line, but it has one column")


# -------------------------------------------------------------------------------------------- paths


def _are_paths(lines: list[Line], separator: str, missing: str) -> bool:
    """Whether some names have the separator, and each of these stands under another of them."""
    names = {line.text.strip().strip('"') for line in lines}
    deep = [name for name in names if separator in name]
    parts = [name.rpartition(separator) for name in deep]
    return bool(deep) and all(
        below and (above in names or (above and missing == "add")) for above, _, below in parts
    )


def _paths(path: Path, lines: list[Line], separator: str) -> list[str]:
    """The names, one a line; a first line such as ``path`` is none, if nothing stands under it."""
    names = []
    for line in lines:
        if line.text[0].isspace():
            raise ValueError(
                f"line {line.number} of {path} is indented, but path names say by {separator!r} "
                f"what they stand under"
            )
        try:
            names += _cells(line, NO_MARK)
        except csv.Error as error:
            raise ValueError(
                f"the double quotes in line {line.number} of {path} cannot be read: {error}"
            ) from error
    first, others = names[0].lower(), names[1:]
    has_deep = any(separator in name for name in others)
    is_header = first in PATH_WORDS or (first in NAME_WORDS and has_deep)
    if is_header and others and not any(name.startswith(names[0] + separator) for name in names):
        return others
    return names
