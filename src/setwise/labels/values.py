"""Single labels and their names: which numbers and which text they may be."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
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


def zeros_and_ones(values: Any, name: str) -> Any:
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


def class_array(array: NDArray[Any]) -> NDArray[Any]:
    """Classes: whole numbers, bools or text."""
    if array.dtype == object:
        values = array.tolist()
        refuse_mixed(values, "y[{}]".format)
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


def refuse_mixed(values: list[Any], where: Callable[[int], str]) -> None:
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


# ------------------------------------------------------------------------------------------- names


def refuse_unknown(given: Any, names: NDArray[Any], what: str) -> None:
    """Raise if a label is not among the names; the message lists what is not."""
    known = set(names.tolist())
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ValueError(
            f"y has {what} that are not among the labels: {some(sorted(unknown, key=str))}; "
            f"the labels are {some(names.tolist())}"
        )


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
        kinds = {_kind_of(type(name)) for name in values}
        if kinds in ({"text"}, {"number"}):
            # Text is kept as objects if numpy's own would change it (it drops trailing zeros).
            plain = np.array(values)
            return plain if plain.tolist() == values else array
    return array


def some(names: list[Any]) -> str:
    """The first names, for a message."""
    listed = [repr(name) for name in names[:10]]
    more = len(names) - len(listed)
    return ", ".join(listed) + (f" and {more} more" if more else "")
