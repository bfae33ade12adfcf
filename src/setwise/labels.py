"""What a user hands over as y: label sets with names, and the way back.

The other modules know one form of label sets: 0/1 of type uint8 with a column for each label, an
array or CSR. Users have data frames, lists of names, sparse matrices, or one class a row.
`read_labels` turns all of these into the one form, and a `LabelNames` remembers how to return.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from setwise.entries import refuse_entries, tidied
from setwise.inputs import label_matrix, require_entries

EXPECTED = (
    "expected is a 0/1 array or sparse matrix of shape (n, n_labels), a data frame of 0/1 columns, "
    "a list with the labels of each row, or one class for each row"
)
USE_SETS = "to list labels that are numbers, make each row a Python set, such as {3, 7}"
ROW = (list, tuple, set, frozenset, np.ndarray)


@dataclass(frozen=True, eq=False)
class LabelNames:
    """The names of the labels, and the form of y they came from.

    Two are equal if they have the same names in the same order and the same form.

    Parameters
    ----------
    names : array of shape (n_labels,)
        The name of each label, no two alike: its column's name or number, or its class.
    one_dimensional : bool, default False
        Whether y has one class for each row, and so each label set one label.

    Examples
    --------
    >>> colours = LabelNames(["blue", "red"])
    >>> colours.encode([{"red"}, {"red", "blue"}])
    array([[0, 1],
           [1, 1]], dtype=uint8)
    >>> LabelNames(["blue", "red"], one_dimensional=True).decode([[0, 1], [1, 0]])
    array(['red', 'blue'], dtype='<U4')
    """

    names: Any
    one_dimensional: bool = False

    def __post_init__(self):
        names = _name_array(self.names)
        repeated = [name for name, times in Counter(names.tolist()).items() if times > 1]
        if repeated:
            raise ValueError(
                f"each label must have its own name, but {_some(repeated)} is there more than once"
            )
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "one_dimensional", bool(self.one_dimensional))

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.names)

    def encode(self, y: Any) -> Any:
        """The label sets of another y over the same labels.

        Parameters
        ----------
        y : see `read_labels`
            One class for each row if ``one_dimensional``; else any of the other forms. A data frame
            must have the same columns in the same order; an array has no names, only their number.

        Returns
        -------
        uint8 array of shape (n, n_labels), or csr_array if y is sparse

        Raises
        ------
        ValueError
            If y is of another form, or has a class, a label or a column that is not in ``names``;
            the message lists what is not.
        """
        form = _form_of(y, column_of_classes=self.one_dimensional)
        if isinstance(form, _Classes) != self.one_dimensional:
            lists = f"0/1 in {self.n_labels} columns, or a list of labels for each row"
            expected = "one class for each row" if self.one_dimensional else lists
            raise ValueError(f"y must have {expected}, but it has {form}")
        return form.sets(self)

    def decode(self, sets: Any) -> Any:
        """Label sets in the form of y.

        Parameters
        ----------
        sets : 0/1 array or sparse matrix of shape (n, n_labels)

        Returns
        -------
        array of shape (n,)
            If ``one_dimensional``, the class of each row, of the type of ``names``.
        int64 array of shape (n, n_labels), or csr_array if the sets are sparse
            Otherwise.
        """
        checked = _zeros_and_ones(sets, "sets")
        if checked.shape[1] != self.n_labels:
            raise ValueError(
                f"sets must have {self.n_labels} columns, one for each label, "
                f"but its shape is {checked.shape}"
            )
        if not self.one_dimensional:
            return checked.astype(np.int64)
        size = np.asarray(checked.sum(axis=1, dtype=np.int64)).ravel()
        if (size != 1).any():
            row = int(np.argmax(size != 1))
            raise ValueError(f"each row must have one class, but row {row} of sets has {size[row]}")
        chosen = checked.indices if issparse(checked) else checked.argmax(axis=1)
        return self.names[chosen]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelNames):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.one_dimensional, *self.names.tolist()

    def _columns(self) -> dict[Any, int]:
        return {name: column for column, name in enumerate(self.names.tolist())}


def read_labels(y: Any) -> tuple[Any, LabelNames]:
    """Turn what a user hands over as y into label sets and the names of their labels.

    ======================================  ==================================  ================
    y                                       names                               one_dimensional
    ======================================  ==================================  ================
    0/1 array (n, l), l > 1, of any type    0, 1, ..., l - 1                    False
    sparse matrix of 0/1, any format        0, 1, ..., l - 1                    False
    data frame of 0/1 columns               names of the columns                False
    list of lists, tuples or sets           the labels that occur, sorted       False
    one class a row: numbers, text, bools   the classes that occur, sorted      True
    one column (n, 1)                       the same, with a warning            True
    ======================================  ==================================  ================

    A data frame is anything with ``columns`` and ``to_numpy`` (pandas, polars); a series counts as
    an array.

    Parameters
    ----------
    y : array, sparse matrix, data frame or list
        The labels of each row.

    Returns
    -------
    sets : uint8 array of shape (n, n_labels), or csr_array if y is sparse
        0/1; the array in C order, the CSR array sorted, without stored zeros or repeated entries.
    names : LabelNames
        What the columns stand for.

    Raises
    ------
    ValueError
        If y is None, empty, ragged, of mixed types, has missing or complex values, a data frame
        with two columns of one name, or numbers that are neither 0/1 in columns nor whole numbers
        of classes. The message says where.

    Notes
    -----
    **One column.** As in scikit-learn, an array or data frame of shape (n, 1) is a column of
    classes, even if they are 0 and 1: it is flattened, and a DataConversionWarning says so. A
    sparse matrix with one column is one label.

    **Lists of numbers.** Rows of numbers that are all of one length are a 0/1 matrix. Rows of
    different lengths are lists of labels if they are whole numbers other than just 0 and 1; those
    could be a matrix with a hole, and are refused. Rows that are Python sets are always label
    sets. Names are sorted as by scikit-learn's MultiLabelBinarizer; a label counts once in a row.

    Examples
    --------
    >>> sets, names = read_labels([["news", "sport"], [], ["sport"]])
    >>> sets
    array([[1, 1],
           [0, 0],
           [0, 1]], dtype=uint8)
    >>> names.names
    array(['news', 'sport'], dtype='<U5')

    One class a row:

    >>> sets, names = read_labels([3, 5, 3])
    >>> sets
    array([[1, 0],
           [0, 1],
           [1, 0]], dtype=uint8)
    >>> names.decode(sets)
    array([3, 5, 3])
    """
    form = _form_of(y, column_of_classes=True)
    names = form.learn()
    return form.sets(names), names


# ----------------------------------------------------------------------------------- the forms of y


@dataclass(frozen=True)
class _Columns:
    """0/1 columns, dense (uint8) or CSR, with the names of the columns if they have some."""

    values: Any
    columns: NDArray[Any] | None = None

    def learn(self) -> LabelNames:
        return LabelNames(np.arange(self.values.shape[1]) if self.columns is None else self.columns)

    def sets(self, names: LabelNames) -> Any:
        if self.values.shape[1] != names.n_labels:
            raise ValueError(
                f"y must have {names.n_labels} columns, one for each label, "
                f"but its shape is {self.values.shape}"
            )
        if self.columns is not None and self.columns.tolist() != names.names.tolist():
            _refuse_unknown(self.columns.tolist(), names, "columns")
            raise ValueError(
                f"the columns of y must be in the order of the labels, "
                f"{_some(names.names.tolist())}, but they are {_some(self.columns.tolist())}"
            )
        return self.values

    def __str__(self) -> str:
        return f"the shape {self.values.shape}"


@dataclass(frozen=True)
class _Lists:
    """The labels of each row."""

    rows: list[Any]

    def learn(self) -> LabelNames:
        from sklearn.preprocessing import MultiLabelBinarizer

        names = MultiLabelBinarizer().fit(self.rows).classes_
        if len(names) == 0:
            raise ValueError(
                "y must have at least one label, but the label list of every row is empty"
            )
        return LabelNames(names)

    def sets(self, names: LabelNames) -> NDArray[np.uint8]:
        _refuse_unknown({label for row in self.rows for label in row}, names, "labels")
        column = names._columns()
        out = np.zeros((len(self.rows), names.n_labels), dtype=np.uint8)
        row = np.repeat(np.arange(len(out)), [len(labels) for labels in self.rows])
        out[row, [column[label] for labels in self.rows for label in labels]] = 1
        return out

    def __str__(self) -> str:
        return "a list of labels for each row"


@dataclass(frozen=True)
class _Classes:
    """One class for each row."""

    values: NDArray[Any]

    def learn(self) -> LabelNames:
        return LabelNames(np.unique(self.values), one_dimensional=True)

    def sets(self, names: LabelNames) -> NDArray[np.uint8]:
        classes, place = np.unique(self.values, return_inverse=True)
        _refuse_unknown(classes.tolist(), names, "classes")
        column = names._columns()
        columns = np.array([column[name] for name in classes.tolist()])
        out = np.zeros((len(self.values), names.n_labels), dtype=np.uint8)
        out[np.arange(len(out)), columns[place]] = 1
        return out

    def __str__(self) -> str:
        return f"one class for each row (y[0] is {self.values.tolist()[0]!r})"


_Form = _Columns | _Lists | _Classes


def _form_of(y: Any, column_of_classes: bool) -> _Form:
    """Recognise the form of y; a single dense column is one of classes if so said."""
    if y is None:
        raise ValueError(f"this requires y to be passed, but the target y is None; {EXPECTED}")
    if issparse(y):
        return _Columns(_zeros_and_ones(y, "y"))
    if hasattr(y, "columns") and hasattr(y, "to_numpy"):
        return _form_of_array(y.to_numpy(), column_of_classes, _name_array(y.columns))
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
) -> _Form:
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
        return _Classes(_class_array(array))
    return _Columns(_zeros_and_ones(array, "y"), columns)


def _form_of_list(rows: list[Any], column_of_classes: bool) -> _Form:
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
    if _is_matrix(rows):
        return _form_of_array(np.asarray([np.asarray(row) for row in rows]), column_of_classes)
    return _Lists(_label_lists(rows))


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


# ------------------------------------------------------------------------------------------ values


def _zeros_and_ones(values: Any, name: str) -> Any:
    """0/1 of type uint8 in C order, or CSR, in a copy."""
    if issparse(values):
        matrix = tidied(values, name)
        require_entries(matrix.shape, name)
        refuse_entries(matrix, matrix.data != 1, name, "hold only 0 and 1")
        return matrix.astype(np.uint8)
    array = np.asarray(values)
    if array.dtype == object:
        array = _number_array(array, name)
    try:
        return label_matrix(array, None, name)
    except ValueError:
        if array.dtype.kind == "f":
            _refuse_continuous(array, name, "continuous-multioutput")
        raise


def _number_array(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Objects that are all real numbers, as float64; a frame of 0/1 columns of several types."""
    if any(_kind_of(kind) != "number" for kind in set(map(type, array.ravel()))):
        place, value = next(
            (place, value)
            for place, value in np.ndenumerate(array)
            if _kind_of(type(value)) != "number"
        )
        raise ValueError(
            f"{name} must hold only 0 and 1, but {name}{list(place)} is {value!r}; {EXPECTED}"
        )
    return array.astype(np.float64)


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
        bad = np.flatnonzero(~np.isfinite(array))
        if len(bad):
            raise ValueError(
                f"Input y contains NaN or infinity: y[{bad[0]}] is {array[bad[0]]}; "
                f"classes must be whole numbers, text or bools"
            )
        _refuse_continuous(array, "y", "continuous")
    if array.dtype.kind not in "biufUO":
        raise ValueError(
            f"Unknown label type: classes must be whole numbers, text or bools, "
            f"but y has the type {array.dtype}"
        )
    return array


def _refuse_continuous(array: NDArray[Any], name: str, kind: str) -> None:
    """Raise for finite numbers that are not whole (`kind` is scikit-learn's word for them)."""
    with np.errstate(invalid="ignore"):
        wrong = np.isfinite(array) & (array != np.floor(array))
    if wrong.any():
        place = [int(i) for i in np.argwhere(wrong)[0]]
        raise ValueError(
            f"Unknown label type: {kind}. {name}{place} is {array[tuple(place)]}; {EXPECTED}"
        )


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


def _refuse_unknown(given: Any, names: LabelNames, what: str) -> None:
    known = set(names.names.tolist())
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ValueError(
            f"y has {what} that are not among the labels: {_some(sorted(unknown, key=str))}; "
            f"the labels are {_some(names.names.tolist())}"
        )


# ------------------------------------------------------------------------------------------- names


def _name_array(names: Any) -> NDArray[Any]:
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
        kinds = {_kind_of(type(name)) for name in values}
        if kinds in ({"text"}, {"number"}):
            # Text is kept as objects if numpy's own would change it (it drops trailing zeros).
            plain = np.array(values)
            return plain if plain.tolist() == values else array
    return array


def _some(names: list[Any]) -> str:
    """The first names, for a message."""
    listed = [repr(name) for name in names[:10]]
    more = len(names) - len(listed)
    return ", ".join(listed) + (f" and {more} more" if more else "")
