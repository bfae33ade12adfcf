"""Where the labels of a row stand in a file: a column each, or one column that lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from setwise.datasets.data_error import DataError, shown
from setwise.datasets.hierarchy import edge_array
from setwise.datasets.names import repeated, text_array
from setwise.labels import some
from setwise.sparse import place_of, rows_of
from setwise.taxonomy import Taxonomy

UNKNOWN = "?"
# What a cell of a 0/1 column may say, in lower case.
FALSE, TRUE = ("0", "0.0", "false", "no"), ("1", "1.0", "true", "yes")
TRUTH = {**dict.fromkeys(FALSE, 0.0), **dict.fromkeys(TRUE, 1.0)}


class Place(NamedTuple):
    """The file and the lines of some rows, for messages; without lines the number of the first."""

    file: Any
    lines: Sequence[int] | None
    first: int = 0

    def error(self, row: int, reason: str) -> DataError:
        """The error of one of the rows."""
        if self.lines is None:
            return DataError(self.file, None, f"row {self.first + row}: {reason}")
        return DataError(self.file, int(self.lines[row]), reason)


@dataclass(frozen=True, eq=False)
class LabelColumns:
    """A column of 0 and 1 for each label, in this order.

    ``edges`` [parent, child], if there are any, are those of a hierarchy.
    """

    names: Any
    edges: Any = None

    def __post_init__(self):
        _check_names(self)

    @property
    def columns(self) -> list[str]:
        """The columns of the file that are read."""
        return self.names.tolist()

    def sets(self, codes: Any, place: Place) -> tuple[Any, Any]:
        """Label sets from codes, dense or CSR, and which rows are known."""
        values = codes.data if issparse(codes) else codes
        lost = np.isnan(values)
        wrong = ~lost & (values != 0) & (values != 1)
        if wrong.any():
            row, label = _first(codes, wrong)
            raise place.error(
                row, f"label {shown(self.names[label])} is {codes[row, label]:g}; {EXPECTED}"
            )
        known = np.ones(codes.shape[0], bool)
        if lost.any():
            known[rows_of(codes)[lost] if issparse(codes) else lost.any(axis=1)] = False
        if issparse(codes):
            return csr_array(codes[known]).astype(np.uint8), known
        return codes[known].astype(np.uint8), known

    def name_unknown(self, codes: Any, row: int) -> str:
        """The first label of a row that is not known."""
        cells = codes[[row]].toarray()[0] if issparse(codes) else codes[row]
        return shown(self.names[int(np.argmax(np.isnan(cells)))])


@dataclass(frozen=True, eq=False)
class LabelList:
    """One column with the labels of a row and a separator between them; empty is no label.

    Parameters
    ----------
    column : str
        Name of the column.
    separator : str
        What parts the labels. Spaces around a label do not count.
    names : array of str
        The labels, in the order of the columns of Y.
    edges : int array of shape (m, 2), optional
        Edges [parent, child] of a hierarchy; Y then has the ancestors of what is listed too.
    """

    column: str
    separator: str
    names: Any
    edges: Any = None

    def __post_init__(self):
        _check_names(self)
        if not isinstance(self.separator, str) or not self.separator:
            raise ValueError(f"separator must be text, but it is {self.separator!r}")

    @property
    def columns(self) -> list[str]:
        """The columns of the file that are read."""
        return [self.column]

    @cached_property
    def number(self) -> dict[str, int]:
        """The column of Y of each label."""
        return {name: i for i, name in enumerate(self.names.tolist())}

    @cached_property
    def taxonomy(self) -> Taxonomy | None:
        """The hierarchy, if there is one."""
        return None if self.edges is None else Taxonomy(self.edges, self.names)

    def sets(self, cells: Sequence[Any], place: Place) -> tuple[Any, Any]:
        """Label sets as listed, and which rows are known."""
        known = np.array([not is_unknown(cell) for cell in cells], bool)
        indices: list[int] = []
        ends = [0]
        for row in np.flatnonzero(known).tolist():
            found = self._numbers(cells[row], row, place)
            indices += found
            ends.append(len(indices))
        ones = np.ones(len(indices), np.uint8)
        shape = (len(ends) - 1, len(self.number))
        return csr_array((ones, np.array(indices, np.int64), ends), shape=shape), known

    def _numbers(self, cell: Any, row: int, place: Place) -> list[int]:
        labels = listed(cell, self.separator)
        refuse_empty(labels, row, place)
        try:
            found = sorted([self.number[label] for label in labels])
        except KeyError as error:
            raise place.error(
                row,
                f"unknown label {shown(error.args[0])}; known are {some(self.names[:11].tolist())}",
            ) from None
        if len(set(found)) < len(found):
            raise place.error(row, f"label {shown(repeated(labels))} is listed twice")
        return found

    def name_unknown(self, cells: Sequence[Any], row: int) -> str:
        """What is not known: all labels of the row."""
        return shown(self.column)


LabelSource = LabelColumns | LabelList


class Labelled(NamedTuple):
    """Label sets, label sets as written where they differ, and the rows that have them."""

    Y: Any
    specific: Any
    known: NDArray[np.bool_]


def labelled(source: LabelSource, cells: Any, place: Place, unknown: str) -> Labelled:
    """The label sets of some rows; rows whose labels are unknown are refused or left out."""
    sets, known = source.sets(cells, place)
    if unknown == "refuse" and not known.all():
        row = int(np.argmin(known))
        raise place.error(
            row, f"label {source.name_unknown(cells, row)} is unknown (empty, or '?'); {EXPECTED}"
        )
    if isinstance(source, LabelList) and source.taxonomy is not None:
        return Labelled(source.taxonomy.close(sets), sets, known)
    return Labelled(sets, None, known)


def _first(codes: Any, wrong: NDArray[np.bool_]) -> tuple[int, int]:
    entry = int(np.argmax(wrong))
    if issparse(codes):
        return place_of(codes, entry)
    return divmod(entry, codes.shape[1])


def check_unknown(rule: str) -> None:
    """Raise unless it is one of the two rules."""
    if rule not in ("refuse", "leave_out"):
        raise ValueError(f"unknown_labels must be 'refuse' or 'leave_out', but it is {rule!r}")


EXPECTED = (
    "expected is 0 or 1; rows with unknown labels are left out with unknown_labels='leave_out'"
)


def listed(cell: Any, separator: str) -> list[str]:
    """The labels in a cell: a list already (Parquet), or text to part."""
    if isinstance(cell, str):
        return [label.strip() for label in cell.split(separator)] if cell.strip() else []
    return [] if cell is None else [str(label) for label in cell]


def refuse_empty(labels: list[str], row: int, place: Place) -> None:
    """Raise for a separator too many."""
    if not all(labels):
        raise place.error(row, "an empty label between separators")


def is_unknown(cell: Any) -> bool:
    """Whether a cell says that the labels are not known."""
    return isinstance(cell, str) and cell.strip() == UNKNOWN


def _check_names(source: LabelSource) -> None:
    names = text_array(source.names)
    name = repeated(names.tolist())
    if len(names) == 0 or name is not None:
        what = "no label" if name is None else f"the label {shown(name)} twice"
        raise ValueError(f"labels must have different names, but there is {what}")
    object.__setattr__(source, "names", names)
    if source.edges is not None:
        object.__setattr__(source, "edges", edge_array(source.edges, names))
