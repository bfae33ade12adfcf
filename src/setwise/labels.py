"""What a user hands over as y: label sets with names, and the way back.

The other modules know one form of label sets: 0/1 of type uint8 with a column for each label, an
array or CSR. Users have data frames, lists of names, sparse matrices, or one class a row.
`read_labels` turns all of these into the one form, and a `LabelNames` remembers how to return.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from setwise.label_forms import (
    ROW,
    Lists,
    form_of,
    name_array,
    require_columns,
    some,
    zeros_and_ones,
)

__all__ = [
    "ROW",
    "LabelNames",
    "Lists",
    "form_of",
    "name_array",
    "read_labels",
    "some",
    "zeros_and_ones",
]


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
        names = name_array(self.names)
        repeated = [name for name, times in Counter(names.tolist()).items() if times > 1]
        if repeated:
            raise ValueError(
                f"each label must have its own name, but {some(repeated)} is there more than once"
            )
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "one_dimensional", bool(self.one_dimensional))

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.names)

    def encode(self, y: Any) -> Any:
        """The label sets of another y over the same labels, in any form of `read_labels`.

        One class for each row if ``one_dimensional``; else any of the other forms. A data frame
        must have the same columns in the same order; an array has no names, only their number.
        A class, label or column that is not in ``names`` is refused by name. Returns a uint8 array
        (n, n_labels), or a csr_array if y is sparse.
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
        checked = zeros_and_ones(sets, "sets")
        require_columns(checked, self.n_labels, "sets")
        if not self.one_dimensional:
            return checked.astype(np.int64)
        size = np.asarray(checked.sum(axis=1, dtype=np.int64)).ravel()
        if (size != 1).any():
            row = int(np.argmax(size != 1))
            raise ValueError(f"each row must have one class, but row {row} of sets has {size[row]}")
        return self.names[checked.indices if issparse(checked) else checked.argmax(axis=1)]

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, LabelNames) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.one_dimensional, *self.names.tolist()


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
    >>> names.names, names.decode(sets)
    (array([3, 5]), array([3, 5, 3]))
    """
    form = form_of(y, column_of_classes=True)
    names = LabelNames(form.own_names(), form.one_dimensional)
    return form.sets(names.names), names
