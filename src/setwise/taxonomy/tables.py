"""Hierarchies from tables and files: data frames, text of edges or of path names, descriptions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np

from setwise.files import DataError, cells_of, existing, read_json, read_names
from setwise.spelling import shown, some
from setwise.taxonomy.forms import (
    Parts,
    Row,
    check_path_options,
    edges_of_paths,
    named_edges,
    plain,
    row_of,
)
from setwise.validation import require_one_of, whole_number

KINDS = ("auto", "edges", "paths")
# Words for columns, without case, spaces and marks. What begins with parent or child is one too.
WORDS = {
    "parent": ("source", "from", "isa", "broader"),
    "child": ("label", "name", "id", "term", "target", "to"),
    "length": ("length", "weight", "distance"),
}
# What programs write for no parent.
NO_PARENT = ("NA", "N/A", "<NA>", "NaN", "nan", "None", "null", "NULL", "-1", "-1.0")
WITH_ZEROS = re.compile(r"(-?\d+)\.0+")
# What parts the columns of a file. A tab goes before all others, and a space comes after them.
TAB, SPACE = "\t", " "
MARKS = (TAB, ",", ";", "|", SPACE)
# Parts nothing: no text has it.
NO_MARK = "\x1f"
# First lines above names: always, and where other lines have the separator.
PATH_WORDS = ("path", "paths", "label", "labels")
NAME_WORDS = ("name", "names", "category", "categories", "class", "term", "node", "id")
COMMENT = re.compile(r"(?:^|\s)#")


def edges_of_frame(frame: Any, names: Any, root: Any) -> Parts:
    """From a data frame; by the names of its columns, or by their places if none is known."""
    columns = list(frame.columns)
    if len(set(columns)) < len(columns):
        raise ValueError(f"columns of edges must differ, but they are {some(columns)}")
    # (Column by column: a frame of several types has none for all of it.)
    values = [np.asarray(frame[column], dtype=object).tolist() for column in columns]
    rows = list(zip(*values, strict=True))
    places = _named_columns(columns, rows, "a data frame of edges", is_header=True)
    if places is None and len(columns) not in (2, 3):
        found = f"{len(columns)} columns: {some(columns)}"
        raise ValueError(f"a data frame of edges must have 2 or 3 columns, but it has {found}")
    cells = [(f"row {number} of the data frame", row) for number, row in enumerate(rows)]
    return _edges_of_table(cells, places, names, root)


def _edges_of_table(
    cells: list[tuple[str, Any]], places: list[int] | None, names: Any, root: Any
) -> Parts:
    """Edges from the cells of a table; ``places`` are its columns, where it names them.

    Where all labels are whole numbers written as text, the parent 1.0 is read as 1, and -1 as none.
    In a table with named columns a cell may list several parents, and becomes a row for each. If
    such a table has a row for a root, and no ``names`` are given, every parent needs a row too.
    """
    chosen = range(len(cells[0][1]) if cells else 0) if places is None else places
    rows = [row_of([row[column] for column in chosen], place) for place, row in cells]
    listed = set() if names is None else set(map(plain, names))
    if all(isinstance(row.child, str) and row.child.isdecimal() for row in rows):
        none = {"-1"} - listed - {root}
        whole = [_without_zeros(row.parent) for row in rows]
        whole = [None if above in none else above for above in whole]
        rows = [row._replace(parent=above) for row, above in zip(rows, whole, strict=True)]
    if places is None:
        return named_edges(rows, names, root)
    roots = {None, plain(root)}
    own = {row.child for row in rows} | listed | roots
    labels = {row.parent for row in rows if len(_parts(row.parent)) == 1} | own
    rows = [row._replace(parent=one) for row in rows for one in _parents(row, own, labels)]
    if names is None and any(row.parent in roots for row in rows):
        for row in rows:
            if row.parent not in own:
                raise ValueError(
                    f"the parent {shown(row.parent)} of {shown(row.child)} ({row.place}) has no "
                    f"row of its own, as each label must have where roots have rows with an empty "
                    f"parent; is it misspelt?"
                )
    return named_edges(rows, names, root)


def _parents(row: Row, own: Set[Any], labels: Set[Any]) -> list[Any]:
    """The parents in a cell: several with | or ; between them, if all these are labels."""
    cell, parts = row.parent, _parts(row.parent)
    if cell not in own and (cell == -1 or cell in NO_PARENT):
        return [None]
    unknown = [part for part in parts if part not in labels]
    if cell in own or len(unknown) == len(parts):
        return [cell]
    if unknown:
        raise ValueError(
            f"several parents of {shown(row.child)} ({row.place}) must all be labels of the table, "
            f"but of {shown(cell)} {shown(unknown[0])} is none"
        )
    return parts


def _parts(cell: Any) -> list[Any]:
    """What stands between | or ; in a cell; itself if it has none."""
    several = re.split(r"[|;]", cell) if isinstance(cell, str) else [cell]
    return [part.strip() for part in several if part.strip()] if len(several) > 1 else [cell]


def _without_zeros(value: Any) -> Any:
    """The text 1.0, as a column of whole numbers with gaps is written, as 1."""
    found = WITH_ZEROS.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found else value


def _named_columns(
    words: list[Any], rows: list[Any], where: str, is_header: bool
) -> list[int] | None:
    """The places of parent, child and perhaps length, or None if the words name no columns.

    A first line may hold labels that look like one of the words: it is taken for a header only if
    two of its words are known, or one that is hardly a label. A header with other columns, or
    without one that is needed, is refused. Of several columns of labels, such as id and name, it is
    the one in which parents of the rows occur.
    """
    short = [re.sub(r"[\W_]+", "", str(word).lower()) for word in words]
    roles = [next((role for role in WORDS if _is(word, role)), None) for word in short]
    known = [role for role in roles if role]
    is_sure = is_header or len(known) > 1
    is_sure = is_sure or any(word.startswith(("parent", "child", "id")) for word in short)
    if not known or not is_sure or (is_header and roles == [None, None, "length"]):
        return None
    for role, of in (("parent", "parents"), ("child", "labels")):
        if role not in known:
            expected = "a column of parents (such as parent) and one of labels (such as child)"
            found = f"of {some(words)} none is one of {of}"
            raise ValueError(f"{where} must name {expected}, but {found}")
    others = [word for word, role in zip(words, roles, strict=True) if role is None]
    if others or known.count("parent") > 1 or known.count("length") > 1:
        expected = "one column of parents, labels and perhaps lengths (length, weight or distance)"
        found = f"it has {some(others or words)} too: leave out what is not meant"
        raise ValueError(f"{where} must have {expected}, but {found}")
    places = {role: roles.index(role) for role in WORDS if role in known}
    labels = [place for place, role in enumerate(roles) if role == "child"]
    if len(labels) > 1:
        cells = [row[places["parent"]] for row in rows]
        parents = {one for cell in cells for one in (_without_zeros(cell), *_parts(cell))}
        parents = set(map(plain, parents)) - {None}
        found = [p for p in labels if not parents.isdisjoint(plain(row[p]) for row in rows)]
        if len(found) != 1:
            occur = some([words[p] for p in found]) if found else "none"
            raise ValueError(
                f"{where} has several columns of labels, {some([words[p] for p in labels])}: the "
                f"parents in {words[places['parent']]!r} must occur in one of them, but they occur "
                f"in {occur}; leave out what is not meant"
            )
        places["child"] = found[0]
    return list(places.values())


def _is(word: str, role: str) -> bool:
    return word in WORDS[role] or (role != "length" and word.startswith(role))


# -------------------------------------------------------------------------------------------- files


def edges_of_file(
    path: Path, names: Any, root: Any, separator: str, missing: str, kind: str
) -> Parts:
    """See `Taxonomy.read`.

    A file holds edges if one mark parts all its lines into the same two or three columns, or its
    first line names columns; path names if the separator is in some of its lines, and each name
    that has it stands under another of the file. What could be either is refused.
    """
    check_path_options(separator, missing)
    require_one_of(kind, KINDS, "kind")
    lines = _lines(path)
    marks = [mark for mark in MARKS if mark not in separator]
    rows = None if kind == "paths" else _parted(path, lines, marks)
    places = None
    if rows is not None:
        head = f"line {rows[0][0]} of {path}"
        places = _named_columns(rows[0][1], [row for _, row in rows[1:]], head, is_header=False)
    if kind == "auto":
        has_edges = places is not None or (rows is not None and len(rows[0][1]) in (2, 3))
        has_paths = places is None and _are_paths(lines, separator, missing)
        if has_edges and has_paths:
            either = "could have edges, as each line has columns, or path names"
            raise ValueError(f"{path} {either}; say kind='edges' or kind='paths'")
        has_marks = any(mark in line.strip() for mark in marks for line in lines)
        kind = "paths" if has_paths or not (has_edges or has_marks) else "edges"
    if kind == "paths":
        if names is not None or root is not None:
            hint = "Taxonomy.over(names) puts labels in another order"
            raise ValueError(f"names and root are for edges, but {path} has path names; {hint}")
        return edges_of_paths(_paths(path, lines, separator), separator, missing)
    if missing != "refuse":
        raise ValueError(f"missing={missing!r} is for path names, but {path} has edges")
    if rows is None:
        raise _ragged(path, lines, marks)
    (first, head), *below = rows
    if places is None and len(head) not in (2, 3):
        expected = "2 or 3 columns (parent, child and perhaps length), or name them"
        raise DataError(path, first, f"expected are {expected}, but it has {len(head)}: {head}")
    if places is not None and not below:
        raise ValueError(f"{path} names its columns, but it has no edge below them")
    cells = [(f"line {n} of {path}", row) for n, row in (rows if places is None else below)]
    return _edges_of_table(cells, places, names, None if root is None else str(plain(root)))


def _lines(path: Path) -> list[str]:
    """The lines without comments, which begin with # after a space, outside quotes."""
    lines = read_names(existing(path))
    whole = "".join(lines).strip()
    if whole.startswith(("{", "[")) and whole.endswith(("}", "]")):
        hint = "Taxonomy.from_meta reads a description, Taxonomy.from_parents takes a mapping"
        raise ValueError(f"{path} must have lines, but it has JSON, {shown(whole)}; {hint}")
    for number, line in enumerate(lines):
        for comment in COMMENT.finditer(line):
            if line.count('"', 0, comment.start()) % 2 == 0:
                line = line[: comment.start()]
                break
        # (A tab at the end is a column that is empty.)
        lines[number] = line.rstrip(" ") if line.strip() else ""
    if not any(lines):
        raise ValueError(f"{path} has no lines, but a taxonomy has at least one label")
    return lines


def _cells(path: Path, lines: list[str], mark: str) -> list[tuple[int, list[str]]]:
    """The cells of each line and its number; names with the mark in them stand in quotes."""
    # (A name in quotes may hold a line end, which the lines no longer have.)
    texts = [(line.strip() if mark in (SPACE, NO_MARK) else line) + "\n" for line in lines]
    rows = cells_of(texts, path, mark, skipinitialspace=True)
    return [(number, [cell.strip() for cell in row]) for number, row in rows]


def _parted(path: Path, lines: list[str], marks: list[str]) -> list[tuple[int, list[str]]] | None:
    """The cells, if a mark parts all lines into as many and more than one."""
    found: dict[str, list[tuple[int, list[str]]]] = {}
    for mark in marks:
        try:
            rows = _cells(path, lines, mark)
        except DataError:
            continue
        widths = {len(row) for _, row in rows}
        if len(widths) == 1 and widths != {1}:
            found[mark] = rows
    between = [mark for mark in found if mark not in (TAB, SPACE)]
    if TAB not in found and len(between) > 1:
        raise ValueError(
            f"{path} is parted into columns by {between[0]!r} and by {between[1]!r} alike; names "
            f"with one of them must stand in double quotes"
        )
    return next(iter(found.values()), None)


def _ragged(path: Path, lines: list[str], marks: list[str]) -> ValueError:
    """The error of the first line that does not have the columns of the first."""
    mark = next((m for m in marks if any(m in line.strip() for line in lines)), SPACE)
    (first, head), *rows = _cells(path, lines, mark)
    for number, row in rows:
        if len(row) != len(head):
            expected = f"expected are {len(head)} columns, parted by {mark!r}, as line {first} has"
            hint = "say kind='paths' and the separator if these are path names"
            return DataError(path, number, f"{expected}, but it has {len(row)}; {hint}")
    return ValueError(f"{path} must have a parent and a child in each line, but it has one column")


def _are_paths(lines: list[str], separator: str, missing: str) -> bool:
    """Whether some names have the separator, and each of these stands under another of them."""
    names = {line.strip().strip('"') for line in lines}
    parts = [name.rpartition(separator) for name in names if separator in name]
    return bool(parts) and all(
        below and (above in names or (above and missing == "add")) for above, _, below in parts
    )


def _paths(path: Path, lines: list[str], separator: str) -> list[str]:
    """The names, one a line; a first line such as ``path`` is none, if nothing stands under it."""
    for number, line in enumerate(lines, 1):
        if line[:1].isspace():
            hint = f"path names say by {separator!r} what they stand under"
            raise DataError(path, number, f"indented, but {hint}")
    first, *others = [name for _, row in _cells(path, lines, NO_MARK) for name in row]
    has_deep = any(separator in name for name in others)
    is_header = first.lower() in PATH_WORDS or (first.lower() in NAME_WORDS and has_deep)
    has_below = any(name.startswith(first + separator) for name in others)
    return others if is_header and others and not has_below else [first, *others]


def edges_of_meta(meta: Any) -> Parts:
    """See `Taxonomy.from_meta`."""
    folder = Path()
    if not isinstance(meta, str | Path | Mapping):
        raise ValueError(f"meta must be a mapping or a path, but it is a {type(meta).__name__}")
    if not isinstance(meta, Mapping):
        file = existing(Path(meta) / "meta.json" if Path(meta).is_dir() else Path(meta))
        folder, meta = file.parent, read_json(file)
    title = f"the description of {meta.get('name', 'the data set')!r}"
    edges, names = meta.get("hierarchy_edges"), meta.get("label_names")
    if edges is None:
        raise ValueError(f"{title} has no hierarchy_edges: its labels have no hierarchy")
    if names is None and meta.get("label_names_file"):
        names = read_names(existing(folder / meta["label_names_file"]))
    if "l" in meta:
        n_labels = whole_number(meta["l"], f"l in {title}", 1)
        names = np.arange(n_labels) if names is None else names
        if len(names) != n_labels:
            raise ValueError(f"{title} has l = {n_labels} labels, but {len(names)} names of labels")
    return edges, names, meta.get("hierarchy_lengths")
