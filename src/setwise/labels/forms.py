"""The forms in which users have their labels: 0/1 columns, lists of labels, one class a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from setwise.labels.values import (
    EXPECTED,
    class_array,
    name_array,
    refuse_mixed,
    refuse_unknown,
    some,
    zeros_and_ones,
)

USE_SETS = "to list labels that are numbers, make each row a Python set, such as {3, 7}"
ROW = (list, tuple, set, frozenset, np.ndarray)


class Form(Protocol):
    """The labels of all rows, in one of the forms below."""

    one_dimensional: ClassVar[bool]

    def own_names(self) -> NDArray[Any]:
        """The names of the labels that occur, in order."""
        ...

    def sets(self, names: NDArray[Any]) -> Any:
        """The label sets over the labels of these names; raises if there are others."""
        ...


@dataclass(frozen=True)
class Columns:
    """0/1 columns, dense (uint8) or CSR, with the names of the columns if they have some."""

    one_dimensional: ClassVar[bool] = False
    values: Any
    columns: NDArray[Any] | None = None

    def own_names(self) -> NDArray[Any]:
        return np.arange(self.values.shape[1]) if self.columns is None else self.columns

    def sets(self, names: NDArray[Any]) -> Any:
        if self.values.shape[1] != len(names):
            raise ValueError(
                f"y must have {len(names)} columns, one for each label, "
                f"but its shape is {self.values.shape}"
            )
        if self.columns is not None and self.columns.tolist() != names.tolist():
            refuse_unknown(self.columns.tolist(), names, "columns")
            raise ValueError(
                f"the columns of y must be in the order of the labels, "
                f"{some(names.tolist())}, but they are {some(self.columns.tolist())}"
            )
        return self.values

    def __str__(self) -> str:
        return f"the shape {self.values.shape}"


@dataclass(frozen=True)
class Lists:
    """The labels of each row."""

    one_dimensional: ClassVar[bool] = False
    rows: list[Any]

    def own_names(self) -> NDArray[Any]:
        from sklearn.preprocessing import MultiLabelBinarizer

        names = MultiLabelBinarizer().fit(self.rows).classes_
        if len(names) == 0:
            raise ValueError(
                "y must have at least one label, but the label list of every row is empty"
            )
        return names

    def sets(self, names: NDArray[Any]) -> NDArray[np.uint8]:
        refuse_unknown({label for row in self.rows for label in row}, names, "labels")
        column = _column_of(names)
        out = np.zeros((len(self.rows), len(names)), dtype=np.uint8)
        row = np.repeat(np.arange(len(out)), [len(labels) for labels in self.rows])
        out[row, [column[label] for labels in self.rows for label in labels]] = 1
        return out

    def __str__(self) -> str:
        return "a list of labels for each row"


@dataclass(frozen=True)
class Classes:
    """One class for each row."""

    one_dimensional: ClassVar[bool] = True
    values: NDArray[Any]

    def own_names(self) -> NDArray[Any]:
        return np.unique(self.values)

    def sets(self, names: NDArray[Any]) -> NDArray[np.uint8]:
        classes, place = np.unique(self.values, return_inverse=True)
        refuse_unknown(classes.tolist(), names, "classes")
        column = _column_of(names)
        columns = np.array([column[name] for name in classes.tolist()])
        out = np.zeros((len(self.values), len(names)), dtype=np.uint8)
        out[np.arange(len(out)), columns[place]] = 1
        return out

    def __str__(self) -> str:
        return f"one class for each row (y[0] is {self.values.tolist()[0]!r})"


def _column_of(names: NDArray[Any]) -> dict[Any, int]:
    return {name: column for column, name in enumerate(names.tolist())}


def form_of(y: Any, column_of_classes: bool) -> Form:
    """Recognise the form of y; a single dense column is one of classes if so said."""
    if y is None:
        raise ValueError(f"this requires y to be passed, but the target y is None; {EXPECTED}")
    if issparse(y):
        return Columns(zeros_and_ones(y, "y"))
    if hasattr(y, "columns") and hasattr(y, "to_numpy"):
        return _form_of_array(y.to_numpy(), column_of_classes, name_array(y.columns))
    if isinstance(y, list | tuple):
        return _form_of_list(list(y), column_of_classes)
    if isinstance(y, str | bytes) or not (hasattr(y, "__array__") or isinstance(y, Sequence)):
        raise ValueError(f"y cannot be a {type(y).__name__}; {EXPECTED}")
    if isinstance(y, np.ma.MaskedArray) and np.ma.getmaskarray(y).any():
        row = int(np.argwhere(np.ma.getmaskarray(y))[0][0])
        raise ValueError(f"y must not have missing values, but an entry of row {row} is masked")
    array = np.asarray(y)
    if array.ndim == 1 and array.dtype == object:
        return _form_of_list(array.tolist(), column_of_classes)
    return _form_of_array(array, column_of_classes)


def _form_of_array(
    array: NDArray[Any], column_of_classes: bool, columns: NDArray[Any] | None = None
) -> Form:
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: y has the type {array.dtype}")
    if array.ndim not in (1, 2) or 0 in array.shape:
        raise ValueError(
            f"y must have at least one row and one label, in one or two dimensions, "
            f"but its shape is {array.shape}; {EXPECTED}"
        )
    if array.ndim == 2 and array.shape[1] == 1 and column_of_classes:
        from sklearn.utils import column_or_1d

        array = column_or_1d(array, warn=True)
    if array.ndim == 1:
        return Classes(class_array(array))
    return Columns(zeros_and_ones(array, "y"), columns)


def _form_of_list(rows: list[Any], column_of_classes: bool) -> Form:
    """A list of classes, of numbers that make a matrix, or of label lists."""
    nested = [isinstance(row, ROW) and getattr(row, "ndim", 1) > 0 for row in rows]
    if not any(nested):
        refuse_mixed(rows, "y[{}]".format)
        return _form_of_array(np.asarray(rows), column_of_classes)
    if not all(nested):
        row = nested.index(False)
        raise ValueError(
            f"y must have a list of labels for each row, but y[{row}] is {rows[row]!r}; {EXPECTED}"
        )
    if _is_matrix(rows):
        matrix = np.asarray([np.asarray(row) for row in rows])
        _refuse_numbered(matrix)
        return _form_of_array(matrix, column_of_classes)
    return Lists(_label_lists(rows))


def _is_matrix(rows: list[Any]) -> bool:
    """Whether rows of numbers are all of one length, and no Python sets."""
    if any(isinstance(row, set | frozenset) for row in rows):
        return False
    lengths = {len(row) for row in rows}
    if len(lengths) > 1 or lengths == {0}:
        return False
    return not any(
        issubclass(kind, str) or issubclass(kind, ROW)
        for row in rows
        for kind in set(map(type, row))
    )


def _refuse_numbered(matrix: NDArray[Any]) -> None:
    """Raise for rows of one length that may be lists of numbers meant as labels."""
    wrong = (matrix != 0) & (matrix != 1)
    if matrix.dtype.kind in "iu" and matrix.shape[1] > 1 and wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"y must hold only 0 and 1 if its rows are all of one length, but "
            f"y[{row}, {column}] is {matrix[row, column]}; {USE_SETS}"
        )


def _label_lists(rows: list[Any]) -> list[list[Any]]:
    """Rows of hashable labels of one kind: text, or whole numbers."""
    listed = [row.tolist() if isinstance(row, np.ndarray) else list(row) for row in rows]
    places = [(row, label) for row, labels in enumerate(listed) for label in labels]
    for row, label in places:
        if isinstance(label, ROW):
            raise ValueError(
                f"y must have a list of labels for each row, but a label of y[{row}] is itself a "
                f"{type(label).__name__}; {EXPECTED}"
            )
    labels = [label for _, label in places]
    refuse_mixed(labels, lambda place: f"a label of y[{places[place][0]}]")
    if labels and not isinstance(labels[0], str):
        _refuse_ragged(rows, places)
    return listed


def _refuse_ragged(rows: list[Any], places: list[tuple[int, Any]]) -> None:
    """Raise for label lists of numbers that may be something else."""
    for row, label in places:
        if not isinstance(label, Integral | np.bool_) and not float(label).is_integer():
            raise ValueError(
                f"labels that are numbers must be whole, but y[{row}] has {label!r}, and as a "
                f"matrix the rows of y must be of one length; {USE_SETS}"
            )
    python_sets = any(isinstance(row, set | frozenset) for row in rows)
    if not python_sets and all(label in (0, 1) for _, label in places):
        row = next(i for i, labels in enumerate(rows) if len(labels) != len(rows[0]))
        raise ValueError(
            f"the rows of a 0/1 matrix must be of one length, but y[0] has {len(rows[0])} entries "
            f"and y[{row}] has {len(rows[row])}; {USE_SETS}"
        )
