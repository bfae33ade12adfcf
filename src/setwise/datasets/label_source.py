"""Where the labels of a row stand in a file: a column each, or one column that lists them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from setwise.datasets.dataset import edge_array
from setwise.datasets.files import Place, repeated, shown, text_array
from setwise.labels import some
from setwise.sparse import place_of, rows_of
from setwise.taxonomy import Taxonomy

EXPECTED = "expected is 0 or 1 (rows whose labels are missing: unknown_labels='leave_out')"


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
        """Label sets from codes (n, l), dense or CSR, and which rows are known."""
        values = codes.data if issparse(codes) else codes
        lost = np.isnan(values)
        wrong = ~lost & (values != 0) & (values != 1)
        if wrong.any():
            row, label = _first(codes, wrong)
            name, value = shown(self.names[label]), f"{codes[row, label]:g}"
            raise place.error(row, f"label {name} is '{value}'; {EXPECTED}")
        known = np.ones(codes.shape[0], bool)
        if lost.any():
            known[rows_of(codes)[lost] if issparse(codes) else lost.any(axis=1)] = False
            codes = codes[known]
        return codes.astype(np.uint8), known

    def name_unknown(self, codes: Any, row: int) -> str:
        """The first label of a row that is not known."""
        cells = codes[[row]].toarray()[0] if issparse(codes) else codes[row]
        return self.names[int(np.argmax(np.isnan(cells)))]


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
    def _number(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names.tolist())}

    @cached_property
    def taxonomy(self) -> Taxonomy | None:
        """The hierarchy, if there is one."""
        return None if self.edges is None else Taxonomy(self.edges, self.names)

    def sets(self, cells: Sequence[Any], place: Place) -> tuple[Any, Any]:
        """Label sets as listed, and which rows are known."""
        rows = [listed(cell, self.separator, row, place) for row, cell in enumerate(cells)]
        for row, labels in enumerate(rows):
            unknown = next((label for label in labels or () if label not in self._number), None)
            if unknown is not None:
                known = some(self.names[:11].tolist())
                raise place.error(row, f"unknown label {shown(unknown)}; known are {known}")
        found = [[self._number[n] for n in labels] for labels in rows if labels is not None]
        known = np.array([labels is not None for labels in rows], bool)
        return indicator(found, len(self._number)), known

    def name_unknown(self, cells: Sequence[Any], row: int) -> str:
        """What is not known: all labels of the row."""
        return self.column


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
        name = shown(source.name_unknown(cells, row))
        raise place.error(row, f"label {name} is unknown (empty, or '?'); {EXPECTED}")
    if isinstance(source, LabelList) and source.taxonomy is not None:
        return Labelled(source.taxonomy.close(sets), sets, known)
    return Labelled(sets, None, known)


def indicator(sets: list[list[int]], n_labels: int) -> csr_array:
    """Label sets as a CSR matrix of 0 and 1."""
    ends = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    indices = np.array([label for labels in sets for label in sorted(labels)], np.int64)
    ones = np.ones(len(indices), np.uint8)
    return csr_array((ones, indices, ends), shape=(len(sets), n_labels))


def listed(cell: Any, separator: str, row: int, place: Place) -> list[str] | None:
    """The labels in a cell, text to part or a list already (Parquet); None if it says '?'."""
    if not isinstance(cell, str):
        labels = [] if cell is None else [str(label) for label in cell]
    elif cell.strip() == "?":
        return None
    else:
        labels = [label.strip() for label in cell.split(separator)] if cell.strip() else []
    if not all(labels):
        raise place.error(row, "an empty label between separators")
    if len(set(labels)) < len(labels):
        raise place.error(row, f"label {shown(repeated(labels))} is listed twice")
    return labels


def labels_in(parts: Iterable[tuple[Sequence[Any], Place]], separator: str) -> list[str]:
    """The labels that some cells list, sorted."""
    names: set[str] = set()
    for cells, place in parts:
        for row, cell in enumerate(cells):
            names.update(listed(cell, separator, row, place) or ())
    return sorted(names)


def _first(codes: Any, wrong: NDArray[np.bool_]) -> tuple[int, int]:
    entry = int(np.argmax(wrong))
    return place_of(codes, entry) if issparse(codes) else divmod(entry, codes.shape[1])


def _check_names(source: LabelSource) -> None:
    names = text_array(source.names)
    name = repeated(names.tolist())
    if len(names) == 0 or name is not None:
        what = "no label" if name is None else f"the label {shown(name)} twice"
        raise ValueError(f"labels must have different names, but there is {what}")
    object.__setattr__(source, "names", names)
    if source.edges is not None:
        object.__setattr__(source, "edges", edge_array(source.edges, names))
