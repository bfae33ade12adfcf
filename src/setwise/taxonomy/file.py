"""Hierarchies from files: text of edges or of path names, and the description of a data set.

A text file holds edges if one mark parts all its lines into the same two or three columns, or its
first line names columns; path names if the separator is in some of its lines, and each name that
has it stands under another of the file. What could be either is refused.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from setwise.taxonomy.forms import (
    Parts,
    Row,
    check_path_options,
    edges_of_paths,
    is_number,
    plain,
    row_of,
    shown,
)
from setwise.taxonomy.table import edges_of_columns, named_columns
from setwise.validation import whole_number

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
GZIP = b"\x1f\x8b"
# What a compressed file may unfold to: no taxonomy is larger.
MOST_BYTES = 2**30
LIST = (list, tuple, np.ndarray)


class Line(NamedTuple):
    """A line that is not empty, without its comment, and where it stands, for messages."""

    text: str
    place: str

    def cells(self, mark: str) -> list[str]:
        """Its columns; names with the mark in them stand in double quotes."""
        text = self.text.strip() if mark in (SPACE, NO_MARK) else self.text
        try:
            (row,) = csv.reader([text], delimiter=mark, skipinitialspace=True, strict=True)
        except csv.Error as error:
            raise ValueError(
                f"the double quotes in {self.place} cannot be read: {error}"
            ) from error
        return [cell.strip() for cell in row]


def edges_of_file(
    path: Path, names: Any, root: Any, separator: str, missing: str, kind: str
) -> Parts:
    """See `Taxonomy.read`."""
    check_path_options(separator, missing)
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
    lines = list(_lines(path))
    if not lines:
        raise ValueError(f"{path} has no lines, but a taxonomy has at least one label")
    marks = [mark for mark in MARKS if mark not in separator]
    rows = None if kind == "paths" else _parted(path, lines, marks)
    places = None
    if rows is not None:
        places = named_columns(rows[0], rows[1:], lines[0].place, is_header=False)
    if kind == "auto":
        has_edges = places is not None or (rows is not None and len(rows[0]) in (2, 3))
        has_paths = places is None and _are_paths(lines, separator, missing)
        if has_edges and has_paths:
            raise ValueError(
                f"{path} could have edges, as each line has columns, or path names, as each with "
                f"{separator!r} stands under another; say kind='edges' or kind='paths'"
            )
        has_marks = any(mark in line.text.strip() for mark in marks for line in lines)
        kind = "paths" if has_paths or not (has_edges or has_marks) else "edges"
    if kind == "edges":
        if missing != "refuse":
            raise ValueError(f"missing={missing!r} is for path names, but {path} has edges")
        if rows is None:
            _refuse_columns(path, lines, marks)
        edges = _edges(path, lines, rows, places)
        root = None if root is None else str(plain(root))
        return edges_of_columns(edges, names, root, is_table=places is not None)
    if names is not None or root is not None:
        raise ValueError(
            f"names and root are for files of edges, but {path} has path names; "
            f"Taxonomy.over(names) puts them in another order"
        )
    return edges_of_paths(_paths(lines, separator), separator, missing)


def _edges(
    path: Path, lines: list[Line], rows: list[list[str]], places: list[int] | None
) -> list[Row]:
    """The edges of all lines, below the first if that names the places of the columns."""
    if places is not None:
        rows, lines = rows[1:], lines[1:]
        if not rows:
            raise ValueError(f"{path} names its columns, but it has no edge below them")
    elif len(rows[0]) not in (2, 3):
        raise ValueError(
            f"{lines[0].place} must have 2 or 3 columns (parent, child and perhaps length), or "
            f"name them, but it has {len(rows[0])}: {shown(rows[0])}"
        )
    chosen = range(len(rows[0])) if places is None else places
    return [
        row_of([row[place] for place in chosen], line.place)
        for row, line in zip(rows, lines, strict=True)
    ]


def _lines(path: Path) -> Iterator[Line]:
    """The lines with something in them; a comment begins with # after a space, outside quotes."""
    text = _text(path, "a taxonomy")
    if text.lstrip().startswith(("{", "[")) and text.rstrip().endswith(("}", "]")):
        raise ValueError(
            f"{path} must have lines of edges or of path names, but it has JSON, "
            f"{shown(text.strip())}; Taxonomy.from_meta reads the description of a data set, and "
            f"Taxonomy.from_parents takes json.load of a mapping (names that begin with a bracket "
            f"stand in double quotes)"
        )
    for number, line in enumerate(text.split("\n"), 1):
        for comment in COMMENT.finditer(line):
            if line.count('"', 0, comment.start()) % 2 == 0:
                line = line[: comment.start()]
                break
        # (A tab at the end is a column that is empty.)
        if line.strip():
            yield Line(line.rstrip(" \r"), f"line {number} of {path}")


def _parted(path: Path, lines: list[Line], marks: list[str]) -> list[list[str]] | None:
    """The cells, if a mark parts all lines into as many and more than one."""
    found: dict[str, list[list[str]]] = {}
    for mark in marks:
        if mark in lines[0].text:
            try:
                rows = [line.cells(mark) for line in lines]
            except ValueError:
                continue
            if len(rows[0]) > 1 and len(set(map(len, rows))) == 1:
                found[mark] = rows
    between = [mark for mark in found if mark not in (TAB, SPACE)]
    if TAB not in found and len(between) > 1:
        raise ValueError(
            f"{path} is parted into columns by {between[0]!r} and by {between[1]!r} alike; names "
            f"with one of them must stand in double quotes"
        )
    return next(iter(found.values()), None)


def _refuse_columns(path: Path, lines: list[Line], marks: list[str]) -> NoReturn:
    """Raise for the first line that does not have the columns of the first."""
    mark = next((m for m in marks if any(m in line.text.strip() for line in lines)), SPACE)
    widths = [len(line.cells(mark)) for line in lines]
    for line, width in zip(lines, widths, strict=True):
        if width != widths[0]:
            raise ValueError(
                f"{line.place} must have {widths[0]} columns, parted by {mark!r}, as "
                f"{lines[0].place.partition(' of ')[0]} has, but it has {width}; say kind='paths' "
                f"and the separator if these are path names"
            )
    raise ValueError(f"{path} must have a parent and a child in each line, but it has one column")


def _are_paths(lines: list[Line], separator: str, missing: str) -> bool:
    """Whether some names have the separator, and each of these stands under another of them."""
    names = {line.text.strip().strip('"') for line in lines}
    parts = [name.rpartition(separator) for name in names if separator in name]
    return bool(parts) and all(
        below and (above in names or (above and missing == "add")) for above, _, below in parts
    )


def _paths(lines: list[Line], separator: str) -> list[str]:
    """The names, one a line; a first line such as ``path`` is none, if nothing stands under it."""
    for line in lines:
        if line.text[0].isspace():
            raise ValueError(
                f"{line.place} is indented, but path names say by {separator!r} what they stand "
                f"under"
            )
    names = [name for line in lines for name in line.cells(NO_MARK)]
    first, others = names[0].lower(), names[1:]
    has_deep = any(separator in name for name in others)
    is_header = first in PATH_WORDS or (first in NAME_WORDS and has_deep)
    if is_header and others and not any(name.startswith(names[0] + separator) for name in names):
        return others
    return names


# --------------------------------------------------------------------------------------------- meta


def edges_of_meta(meta: Any) -> Parts:
    """See `Taxonomy.from_meta`."""
    folder = Path()
    if not isinstance(meta, str | Path | Mapping):
        raise ValueError(f"meta must be a mapping or a path, but it is a {type(meta).__name__}")
    if not isinstance(meta, Mapping):
        file = Path(meta) / "meta.json" if Path(meta).is_dir() else Path(meta)
        folder, meta = file.parent, _object(file)
    title = f"the description of {meta.get('name', 'the data set')!r}"
    edges = meta.get("hierarchy_edges")
    if edges is None:
        raise ValueError(f"{title} has no hierarchy_edges: its labels have no hierarchy")
    listed = list(edges) if isinstance(edges, LIST) else [edges]
    for edge in listed:
        is_edge = isinstance(edge, LIST) and len(edge) == 2
        if not is_edge or not all(is_number(plain(end)) for end in edge):
            raise ValueError(
                f"hierarchy_edges must be rows [parent, child] of whole numbers, the columns of Y, "
                f"but {title} has {shown(edge)}; Taxonomy.from_edges takes names"
            )
    numbered = np.array([list(edge) for edge in listed], dtype=np.int64).reshape(-1, 2)
    return numbered, _names(meta, folder, title), meta.get("hierarchy_lengths")


def _object(file: Path) -> Mapping[str, Any]:
    """What a JSON file says, by name."""
    try:
        meta = json.loads(_text(file, "the description of a data set"))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{file} must be a JSON file, but it cannot be read: {error}") from error
    if not isinstance(meta, dict):
        raise ValueError(
            f"{file} must have an object with hierarchy_edges, but it has a {type(meta).__name__}"
        )
    return meta


def _names(meta: Mapping[str, Any], folder: Path, title: str) -> Any:
    """The names of the labels, their numbers where there are none, or None without a number."""
    names = meta.get("label_names")
    if names is None and meta.get("label_names_file"):
        names = _text(folder / meta["label_names_file"], f"label_names_file of {title}")
        names = names.splitlines()
    if names is not None and not isinstance(names, LIST):
        raise ValueError(f"label_names must be a list, but {title} has {shown(names)}")
    if "l" not in meta:
        return names
    n_labels = whole_number(meta["l"], f"l in {title}", 1)
    if names is not None and len(names) != n_labels:
        raise ValueError(f"{title} has l = {n_labels} labels, but {len(names)} names of labels")
    return np.arange(n_labels) if names is None else names


def _text(path: Path, what: str) -> str:
    """UTF-8 text, unpacked if it is compressed by gzip; ``what`` is looked for, in messages."""
    if path.is_dir():
        raise ValueError(
            f"{what} must be a file, but {path} is a folder (Taxonomy.from_meta takes the folder "
            f"of a data set, with its meta.json)"
        )
    if not path.exists():
        raise FileNotFoundError(f"{what} is looked for in the file {path}, but it is not there")
    data = path.read_bytes()
    if data.startswith(GZIP):
        try:
            with gzip.open(path) as file:
                data = file.read(MOST_BYTES + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} is damaged: it cannot be unpacked ({error})") from error
        if len(data) > MOST_BYTES:
            raise ValueError(f"{path} unpacks to more than {MOST_BYTES} bytes, as no taxonomy does")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"line {line} of {path} must be UTF-8 text, but it has the byte "
            f"{data[error.start]:#04x}; save the file in UTF-8"
        ) from error
