"""What a user hands over as y: label sets with names, and the way back.

The other modules know one form of label sets: 0/1 of type uint8 with a column for each label, an
array or CSR. Users have data frames, lists of names, sparse matrices, or one class a row.
`read_labels` turns all of these into the one form, and a `LabelNames` remembers how to return.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from setwise.sparse import columns_among, held, tidy_sets
from setwise.spelling import some, unknown_names
from setwise.validation import (
    label_matrix,
    refuse_missing,
    refuse_repeated,
    require_columns,
    require_entries,
)

EXPECTED = (
    "expected is a 0/1 array or sparse matrix of shape (n, n_labels), a data frame of 0/1 columns, "
    "a list with the labels of each row, or one class for each row"
)
USE_SETS = "to list labels that are numbers, make each row a Python set, such as {3, 7}"
ROW = (list, tuple, set, frozenset, np.ndarray)
NUMBER = (Real, np.bool_)


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
        names = distinct_names(self.names)
        vars(self).update(names=names, one_dimensional=bool(self.one_dimensional))

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.names)

    def encode(self, y: Any) -> Any:
        """The label sets of another y over the same labels, in any form of `read_labels`.

        One class for each row if ``one_dimensional``; else any of the other forms. A data frame
        must have the same columns in the same order; an array has no names, only their number.
        A class, label or column that is not in ``names`` is refused by name. Returns a uint8 array
        (n, n_labels), or a csr_array as by `read_labels`.
        """
        form = form_of(y, column_of_classes=self.one_dimensional)
        if form.one_dimensional != self.one_dimensional:
            lists = f"0/1 in {self.n_labels} columns, or a list of labels for each row"
            expected = "one class for each row" if self.one_dimensional else lists
            raise ValueError(f"y must have {expected}, but it has {form.told}")
        return form.sets(self.names)

    def decode(self, sets: Any) -> Any:
        """0/1 label sets (n, n_labels), dense or sparse, in the form of y.

        The class of each row, (n,), if ``one_dimensional``; else the sets in int64.
        """
        checked = zeros_and_ones(sets, "sets", self.n_labels)
        if not self.one_dimensional:
            return checked.astype(np.int64)
        size = np.asarray(checked.sum(axis=1, dtype=np.int64)).ravel()
        if (size != 1).any():
            row = int(np.argmax(size != 1))
            raise ValueError(f"each row must have one class, but row {row} of sets has {size[row]}")
        return self.names[checked.indices if issparse(checked) else checked.argmax(axis=1)]

    def listed(self, sets: Any) -> list[tuple[Any, ...]]:
        """The names of the labels of 0/1 label sets (n, n_labels), a tuple for each row.

        Examples
        --------
        >>> LabelNames(["blue", "red"]).listed([[0, 1], [1, 1], [0, 0]])
        [('red',), ('blue', 'red'), ()]
        """
        checked = zeros_and_ones(sets, "sets", self.n_labels)
        return named_sets(checked, self.names.tolist())

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, LabelNames) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.one_dimensional, *self.names.tolist()


def named_sets(sets: Any, names: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The names of each label set, in the order of the columns, from 0/1 arrays or sparse ones."""
    rows: Any = csr_array(sets, copy=True)
    rows.eliminate_zeros()
    rows.sort_indices()
    chosen = [names[label] for label in rows.indices.tolist()]
    return [tuple(chosen[start:end]) for start, end in pairwise(rows.indptr.tolist())]


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

    The label sets are a uint8 array (n, n_labels) of 0/1 in C order or, if y is sparse, or a list
    of so many rows and labels that the array would take more than 64 MiB, a csr_array, sorted,
    without stored zeros or repeated entries. A data frame is anything with
    ``columns`` and ``to_numpy`` (pandas, polars); a series counts as an array.

    Raises ValueError, saying where, if y is None, empty, ragged, of mixed types, has missing or
    complex values, two columns of one name, or numbers that are neither 0/1 in columns nor whole.

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
    >>> names.names, names.decode(sets)
    (array([3, 5]), array([3, 5, 3]))
    """
    form = form_of(y, column_of_classes=True)
    if form.own.shape[1] == 0:
        raise ValueError("y must have at least one label, but the label list of every row is empty")
    own = np.arange(form.own.shape[1]) if form.columns is None else form.columns
    names = LabelNames(own, form.one_dimensional)
    return form.sets(names.names), names


# ------------------------------------------------------------------------------------- forms of y


@dataclass(frozen=True)
class Form:
    """Label sets read from y, over the labels that y itself has; ``told`` describes y in messages.

    ``columns`` are the names of these labels, None for the columns of an array. ``in_order`` says
    that they are columns of y, so that their order counts.
    """

    own: Any
    columns: NDArray[Any] | None
    one_dimensional: bool
    told: str
    in_order: bool = False

    def sets(self, names: NDArray[Any]) -> Any:
        """The label sets over the labels of these names; raises if there are others."""
        if self.in_order:
            require_columns(self.own.shape, len(names), "y")
        wanted = names.tolist()
        own = wanted if self.columns is None else self.columns.tolist()
        place = {name: column for column, name in enumerate(wanted)}
        if unknown := unknown_names(own, wanted):
            what = "columns" if self.in_order else "classes" if self.one_dimensional else "labels"
            raise ValueError(f"y has {what} that are not among the labels: {unknown}")
        if own == wanted:
            return self.own
        if self.in_order:
            raise ValueError(
                f"the columns of y must be in the order of the labels, {some(wanted)}, "
                f"but they are {some(own)}"
            )
        places = np.array([place[name] for name in own], np.int64)
        return columns_among(self.own, places, len(names))


def form_of(y: Any, column_of_classes: bool) -> Form:
    """Recognise the form of y; a single dense column is one of classes if so said."""
    if y is None:
        raise ValueError(f"this requires y to be passed, but the target y is None; {EXPECTED}")
    if issparse(y):
        return _columns(y)
    if hasattr(y, "columns") and hasattr(y, "to_numpy"):
        return _form_of_array(y.to_numpy(), column_of_classes, name_array(y.columns))
    if isinstance(y, str | bytes) or not (hasattr(y, "__array__") or isinstance(y, Sequence)):
        raise ValueError(f"y cannot be a {type(y).__name__}; {EXPECTED}")
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        row = int(np.argwhere(np.ma.getmaskarray(y))[0][0])
        raise ValueError(f"y must not have missing values, but an entry of row {row} is masked")
    array: Any = y if isinstance(y, list | tuple) else np.asarray(y)
    if isinstance(y, list | tuple) or (array.ndim == 1 and array.dtype == object):
        return _form_of_list(list(array), column_of_classes)
    return _form_of_array(array, column_of_classes)


def _listed(rows: list[Any]) -> Form:
    """A list of labels for each row."""
    each = [set(row) for row in rows]
    place = {name: column for column, name in enumerate(sorted(set().union(*each)))}
    columns = np.array([place[name] for row in each for name in row], np.int64)
    ends, ones = np.cumsum([0, *map(len, each)]), np.ones(len(columns), np.uint8)
    sets = csr_array((ones, columns, ends), shape=(len(rows), len(place)))
    names = name_array(place) if place else np.empty(0, object)
    return Form(held(tidy_sets(sets, "y")), names, False, "a list of labels for each row")


def _columns(values: Any, names: NDArray[Any] | None = None) -> Form:
    sets = zeros_and_ones(values, "y")
    return Form(sets, names, False, f"the shape {sets.shape}", in_order=True)


def _form_of_array(
    array: NDArray[Any], column_of_classes: bool, columns: NDArray[Any] | None = None
) -> Form:
    """0/1 columns, or one class a row."""
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: y has the type {array.dtype}")
    if array.ndim not in (1, 2) or 0 in array.shape:
        raise ValueError(
            f"y must have at least one row and one label, in one or two dimensions, "
            f"but its shape is {array.shape}; {EXPECTED}"
        )
    if array.ndim == 2 and not (array.shape[1] == 1 and column_of_classes):
        return _columns(array, columns)
    if array.ndim == 2:
        from sklearn.utils import column_or_1d

        array = column_or_1d(array, warn=True)
    values = array.tolist()
    if array.dtype.kind not in "biuU":
        _refuse_labels(values, "y[{}]".format)
        array = array.astype(object) if isinstance(values[0], str) else name_array(values)
    classes, place = np.unique(array, return_inverse=True)
    sets = (place[:, None] == np.arange(len(classes))).astype(np.uint8)
    return Form(sets, classes, True, f"one class for each row (y[0] is {values[0]!r})")


def _form_of_list(rows: list[Any], column_of_classes: bool) -> Form:
    """A list of classes, of numbers that make a matrix, or of label lists."""
    nested = [isinstance(row, ROW) and getattr(row, "ndim", 1) > 0 for row in rows]
    if not any(nested):
        _refuse_labels(rows, "y[{}]".format)
        return _form_of_array(name_array(rows) if rows else np.empty(0), column_of_classes)
    if not all(nested):
        row = nested.index(False)
        raise ValueError(
            f"y must have a list of labels for each row, but y[{row}] is {rows[row]!r}; {EXPECTED}"
        )
    listed = [row.tolist() if isinstance(row, np.ndarray) else list(row) for row in rows]
    labels, lengths = [label for row in listed for label in row], [len(row) for row in rows]
    others = any(issubclass(kind, (str, *ROW)) for kind in set(map(type, labels)))
    plain = labels and not others and not any(isinstance(row, set | frozenset) for row in rows)
    if plain and (len(set(lengths)) == 1 or all(label in (0, 1) for label in labels)):
        return _matrix(listed, lengths, column_of_classes)
    row_of = np.repeat(np.arange(len(rows)), lengths)
    _refuse_labels(labels, lambda place: f"a label of y[{row_of[place]}]")
    return _listed(listed)


def _matrix(rows: list[Any], lengths: list[int], column_of_classes: bool) -> Form:
    """Lists of numbers that are the rows of a matrix."""
    for row, length in enumerate(lengths):
        if length != lengths[0]:
            raise ValueError(
                f"the rows of a 0/1 matrix must be of one length, but y[0] has {lengths[0]} "
                f"entries and y[{row}] has {length}; {USE_SETS}"
            )
    try:
        return _form_of_array(np.asarray(rows), column_of_classes)
    except ValueError as error:
        raise ValueError(f"{error}; {USE_SETS}") from error


# -------------------------------------------------------------- single labels and their names


def zeros_and_ones(values: Any, name: str, n_labels: int | None = None) -> Any:
    """0/1 of type uint8 in C order, or CSR, in a copy; of ``n_labels`` columns if that is known."""
    if issparse(values):
        sets = tidy_sets(values, name)
        require_entries(sets.shape, name)
        require_columns(sets.shape, n_labels, name)
        return sets.astype(np.uint8)
    array = np.asarray(values)
    if array.dtype == object:
        # A frame of 0/1 columns of several types.
        for place, value in np.ndenumerate(array):
            if not isinstance(value, NUMBER):
                raise ValueError(
                    f"{name} must hold only 0 and 1, but {name}{list(place)} is {value!r}; "
                    f"{EXPECTED}"
                )
        array = array.astype(np.float64)
    return label_matrix(array, n_labels, name)


def _refuse_labels(values: list[Any], where: Callable[[int], str]) -> None:
    """Raise unless all are text, or all whole numbers; `where` says where the i-th stands."""
    for place, value in enumerate(values):
        is_text = isinstance(value, str)
        # The first words are scikit-learn's own.
        if not is_text and (not isinstance(value, NUMBER) or value != value):
            raise ValueError(
                f"Unknown label type: labels must be text or numbers, but {where(place)} is "
                f"{value!r} (NaN, missing or of the type {type(value).__name__}); {EXPECTED}"
            )
        if is_text != isinstance(values[0], str):
            raise ValueError(
                f"labels must be all text or all numbers, but {where(0)} is {values[0]!r} "
                f"and {where(place)} is {value!r}"
            )
        if not isinstance(value, str | Integral) and not float(value).is_integer():
            raise ValueError(
                f"Unknown label type: continuous: {where(place)} is {value!r}; labels must be "
                f"whole numbers, text or bools; {EXPECTED}"
            )


def distinct_names(names: Any) -> NDArray[Any]:
    """Names as by `name_array`, none missing and no two alike."""
    array = name_array(names)
    refuse_missing(array)
    refuse_repeated(array.tolist())
    return array


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
    if array.dtype != object:
        return array
    values = array.tolist()
    for place, name in enumerate(values):
        if not isinstance(name, Hashable):
            raise ValueError(f"names must be text or numbers, but label {place} has {name!r}")
    if any(all(isinstance(name, kind) for name in values) for kind in (str, NUMBER)):
        # Kept as objects if numpy would change them: trailing zeros of text, ints beyond 64 bits.
        plain = np.array(values)
        as_floats = plain.dtype.kind == "f" and all(isinstance(name, Integral) for name in values)
        return plain if plain.tolist() == values and not as_floats else array
    return array
