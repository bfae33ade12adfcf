"""A table with a column of labels and one of their parents.

Its rows are [parent, label] or [parent, label, length], as those of edges. A label has a *row of
its own* if it stands in the column of labels, or is listed among the names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from setwise.taxonomy.names import is_nothing, is_root, plain, refuse_no_name, shown

Row = Sequence[Any]
# What programs write for no parent.
NO_PARENT = ("NA", "N/A", "<NA>", "NaN", "nan", "None", "null", "NULL", "-1", "-1.0")
WHOLE = re.compile(r"\d+")
WITH_ZEROS = re.compile(r"(-?\d+)\.0+")
BETWEEN_PARENTS = re.compile(r"[|;]")


def without_zeros(value: Any) -> Any:
    """The text 1.0, as a column of whole numbers with gaps is written, as 1."""
    found = WITH_ZEROS.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found else value


def possible_parents(cell: Any) -> set[Any]:
    """What a cell may say: itself, itself as a whole number, or several parents."""
    several = map(str.strip, BETWEEN_PARENTS.split(cell)) if isinstance(cell, str) else ()
    found = {plain(cell), without_zeros(cell), *several}
    return {value for value in found if not is_nothing(value)}


def with_whole_parents(rows: Sequence[Row], names: Any, root: Any) -> list[Row]:
    """Where all labels are whole numbers as text, the parent 1.0 is 1, and -1 is none."""
    if not all(isinstance(row[1], str) and WHOLE.fullmatch(row[1]) for row in rows):
        return list(rows)
    parents = [without_zeros(row[0]) for row in rows]
    no_parent = {"-1"} - _listed(names) - {root}
    return [
        ["" if above in no_parent else above, *row[1:]]
        for above, row in zip(parents, rows, strict=True)
    ]


def edges_of_table(
    rows: Sequence[Row], names: Any, root: Any, where: Callable[[int], str]
) -> tuple[list[Row], list[int]]:
    """Rows with one parent each, None for none, and the number of the row that each was.

    If some row is that of a root, and no names are given, each parent must have a row of its own.
    """
    for number, row in enumerate(rows):
        refuse_no_name(row[0], where(number))
        refuse_no_name(row[1], where(number))
    own = {plain(row[1]) for row in rows} | _listed(names)
    root = plain(root)
    own |= set() if root is None else {root}
    whole = {row[0] for row in rows if not _is_several(row[0])} | own
    found = [
        (above, number)
        for number, row in enumerate(rows)
        for above in _parents(row, own, whole, where(number))
    ]
    has_root = any(above is None or above == root for above, _ in found)
    if has_root and names is None:
        for above, number in found:
            if above is not None and above not in own:
                raise ValueError(
                    f"the parent {shown(above)} of {shown(rows[number][1])} ({where(number)}) has "
                    f"no row of its own, as each label must have where roots have rows with an "
                    f"empty parent; is it misspelt?"
                )
    edges: list[Row] = [[above, *rows[number][1:]] for above, number in found]
    return edges, [number for _, number in found]


def _listed(names: Any) -> set[Any]:
    return set() if names is None else {plain(name) for name in names}


def _is_several(cell: Any) -> bool:
    return isinstance(cell, str) and BETWEEN_PARENTS.search(cell) is not None


def _parents(row: Row, own: Collection[Any], whole: Collection[Any], where: str) -> Iterator[Any]:
    """The parents in one cell: several with | or ; between them, if all these are labels."""
    cell = plain(row[0])
    if not is_nothing(cell) and cell in own:
        yield cell
    elif is_root(cell) or cell in NO_PARENT:
        yield None
    elif not _is_several(cell):
        yield cell
    else:
        parts = [part.strip() for part in BETWEEN_PARENTS.split(cell) if part.strip()]
        known = [part for part in parts if part in whole]
        if known and len(known) < len(parts):
            unknown = next(part for part in parts if part not in whole)
            raise ValueError(
                f"several parents of {shown(row[1])} ({where}) must all be labels of the table, "
                f"but of {shown(cell)} {shown(unknown)} is none"
            )
        yield from known or [cell]
