"""The forms in which labels come, and which values and names of labels there may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from setwise.sparse import refuse_entries, tidied
from setwise.validation import label_matrix, require_entries

EXPECTED = (
    "expected is a 0/1 array or sparse matrix of shape (n, n_labels), a data frame of 0/1 columns, "
    "a list with the labels of each row, or one class for each row"
)
USE_SETS = "to list labels that are numbers, make each row a Python set, such as {3, 7}"
ROW = (list, tuple, set, frozenset, np.ndarray)


@dataclass(frozen=True)
class Form:
    """The labels of all rows as label sets over their own names; ``told`` says how they came.

    Columns without names, of an array or a sparse matrix, have ``columns`` None.
    """

    own: Any
    columns: NDArray[Any] | None
    one_dimensional: bool
    told: str
    in_order: bool = False

    def own_names(self) -> NDArray[Any]:
        """The names of the labels that occur, in order."""
        if self.own.shape[1] == 0:
            raise ValueError(
                "y must have at least one label, but the label list of every row is empty"
            )
        return np.arange(self.own.shape[1]) if self.columns is None else self.columns

    def sets(self, names: NDArray[Any]) -> Any:
        """The label sets over the labels of these names; raises if there are others."""
        if self.in_order or self.columns is None:
            require_columns(self.own, len(names), "y")
        if self.columns is None or self.columns.tolist() == names.tolist():
            return self.own
        place = {name: column for column, name in enumerate(names.tolist())}
        own = self.columns.tolist()
        unknown = sorted((name for name in own if name not in place), key=str)
        if unknown:
            what = "columns" if self.in_order else "classes" if self.one_dimensional else "labels"
            raise ValueError(
                f"y has {what} that are not among the labels: {some(unknown)}; "
                f"the labels are {some(names.tolist())}"
            )
        if self.in_order:
            raise ValueError(
                f"the columns of y must be in the order of the labels, "
                f"{some(names.tolist())}, but they are {some(own)}"
            )
        out = np.zeros((len(self.own), len(names)), dtype=np.uint8)
        out[:, [place[name] for name in own]] = self.own
        return out


def Columns(sets: Any, columns: NDArray[Any] | None = None) -> Form:
    """The form of 0/1 columns, dense (uint8) or CSR, which may have names."""
    return Form(sets, columns, False, f"the shape {sets.shape}", in_order=True)


def Lists(rows: list[Any]) -> Form:
    """The form of a list of labels for each row."""
    from sklearn.preprocessing import MultiLabelBinarizer

    binarizer = MultiLabelBinarizer()
    sets = np.asarray(binarizer.fit_transform(rows), dtype=np.uint8)
    names = name_array(binarizer.classes_) if sets.shape[1] else binarizer.classes_
    return Form(sets, names, False, "a list of labels for each row")


def Classes(values: NDArray[Any]) -> Form:
    """The form of one class for each row."""
    classes, place = np.unique(values, return_inverse=True)
    sets = np.zeros((len(values), len(classes)), dtype=np.uint8)
    sets[np.arange(len(values)), place] = 1
    told = f"one class for each row (y[0] is {values.tolist()[0]!r})"
    return Form(sets, classes, True, told)


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
        return Classes(_class_array(array))
    return Columns(zeros_and_ones(array, "y"), columns)


def _form_of_list(rows: list[Any], column_of_classes: bool) -> Form:
    """A list of classes, of numbers that make a matrix, or of label lists."""
    nested = [isinstance(row, ROW) and getattr(row, "ndim", 1) > 0 for row in rows]
    if not any(nested):
        _refuse_mixed(rows, "y[{}]".format)
        return _form_of_array(np.asarray(rows), column_of_classes)
    if not all(nested):
        row = nested.index(False)
        raise ValueError(
            f"y must have a list of labels for each row, but y[{row}] is {rows[row]!r}; {EXPECTED}"
        )
    if not _is_matrix(rows):
        return Lists(_label_lists(rows))
    matrix = np.asarray([np.asarray(row) for row in rows])
    wrong = (matrix != 0) & (matrix != 1)
    if matrix.dtype.kind in "iu" and matrix.shape[1] > 1 and wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"y must hold only 0 and 1 if its rows are all of one length, but y{list(place)} is "
            f"{matrix[place]}; {USE_SETS}"
        )
    return _form_of_array(matrix, column_of_classes)


def _is_matrix(rows: list[Any]) -> bool:
    """Whether rows of numbers are all of one length, and no Python sets."""
    lengths = {len(row) for row in rows}
    if len(lengths) > 1 or lengths == {0} or any(isinstance(row, set | frozenset) for row in rows):
        return False
    kinds = {kind for row in rows for kind in set(map(type, row))}
    return not any(issubclass(kind, (str, *ROW)) for kind in kinds)


def _label_lists(rows: list[Any]) -> list[list[Any]]:
    """Rows of hashable labels of one kind: text, or whole numbers."""
    listed = [row.tolist() if isinstance(row, np.ndarray) else list(row) for row in rows]
    places = [(row, label) for row, labels in enumerate(listed) for label in labels]
    labels = [label for _, label in places]
    _refuse_mixed(labels, lambda place: f"a label of y[{places[place][0]}]")
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


# ------------------------------------------------------------- single labels and their names


def zeros_and_ones(values: Any, name: str) -> Any:
    """0/1 of type uint8 in C order, or CSR, in a copy."""
    if issparse(values):
        matrix = tidied(values, name)
        require_entries(matrix.shape, name)
        refuse_entries(matrix, matrix.data != 1, name, "hold only 0 and 1")
        return matrix.astype(np.uint8)
    array = np.asarray(values)
    if array.dtype == object:
        # A frame of 0/1 columns of several types.
        for place, value in np.ndenumerate(array):
            if _kind_of(type(value)) != "number":
                raise ValueError(
                    f"{name} must hold only 0 and 1, but {name}{list(place)} is {value!r}; "
                    f"{EXPECTED}"
                )
        array = array.astype(np.float64)
    return label_matrix(array, None, name)


def require_columns(sets: Any, n_labels: int, name: str) -> None:
    """Raise unless there is a column for each label."""
    if sets.shape[1] != n_labels:
        raise ValueError(
            f"{name} must have {n_labels} columns, one a label, but its shape is {sets.shape}"
        )


def _class_array(array: NDArray[Any]) -> NDArray[Any]:
    """Classes: whole numbers, bools or text."""
    if array.dtype == object:
        values = array.tolist()
        _refuse_mixed(values, "y[{}]".format)
        if not isinstance(values[0], str):
            array = np.asarray(values)
    if array.dtype.kind == "T":
        array = array.astype(object)
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            bad = np.flatnonzero(~(array == np.floor(array)) | np.isinf(array))
        if len(bad):
            # The first words are scikit-learn's own.
            is_number = np.isfinite(array[bad[0]])
            known = "Unknown label type: continuous" if is_number else "y contains NaN or infinity"
            raise ValueError(
                f"{known}: y[{bad[0]}] is {array[bad[0]]}; classes must be whole numbers, text or "
                f"bools; {EXPECTED}"
            )
    if array.dtype.kind not in "biufUO":
        raise ValueError(
            f"Unknown label type: classes must be whole numbers, text or bools, "
            f"but y has the type {array.dtype}"
        )
    return array


def _refuse_mixed(values: list[Any], where: Callable[[int], str]) -> None:
    """Raise unless all values are text or all are numbers; `where` says where the i-th stands."""
    kinds = {kind: _kind_of(kind) for kind in set(map(type, values))}
    for place, value in enumerate(values):
        kind = kinds[type(value)]
        if kind == "complex":
            raise ValueError(f"Complex data not supported: {where(place)} is {value!r}")
        if kind is None or value != value:  # (NaN is not itself)
            raise ValueError(
                f"labels must be text or numbers, but {where(place)} is {value!r} (NaN, missing or "
                f"of the type {type(value).__name__}); {EXPECTED}"
            )
        if kind != kinds[type(values[0])]:
            raise ValueError(
                f"labels must be all text or all numbers, but {where(0)} is {values[0]!r} "
                f"and {where(place)} is {value!r}"
            )


def _kind_of(kind: type) -> str | None:
    if issubclass(kind, str):
        return "text"
    if issubclass(kind, Real | np.bool_):
        return "number"
    return "complex" if issubclass(kind, complex | np.complexfloating) else None


def name_array(names: Any) -> NDArray[Any]:
    """A one-dimensional array of names: text or numbers of one type, else objects."""
    if isinstance(names, str) or not hasattr(names, "__iter__"):
        raise ValueError(f"names must be a list with one name for each label, but it is {names!r}")
    # (Filled one by one, so that a tuple stays one name.)
    array = names.copy() if isinstance(names, np.ndarray) else np.fromiter(names, dtype=object)
    if array.ndim != 1 or len(array) == 0:
        raise ValueError(
            f"names must be one-dimensional, with one name for each label, "
            f"but their shape is {array.shape}"
        )
    if array.dtype == object:
        values = array.tolist()
        if {_kind_of(type(name)) for name in values} in ({"text"}, {"number"}):
            # Text is kept as objects if numpy's own would change it (it drops trailing zeros).
            plain = np.array(values)
            return plain if plain.tolist() == values else array
    return array


def some(names: list[Any]) -> str:
    """The first names, for a message."""
    listed = [repr(name) for name in names[:10]]
    more = len(names) - len(listed)
    return ", ".join(listed) + (f" and {more} more" if more else "")
