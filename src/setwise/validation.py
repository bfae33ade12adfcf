"""Checks at the border: what comes in is an array of the right shape and values, or a ValueError.

Inside the package arrays are trusted. Nothing is repaired here: values outside their range are
named with their position, never clipped.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from setwise.sparse import refuse_entries, tidied, well_formed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

# From this many entries on, threads share the check for finite values.
SHARED_CHECK = 2**17


def score_matrix(scores: Any, n_scores: int | None, name: str = "scores") -> NDArray[Any]:
    """Scores as a C-ordered (n, n_scores) array: float32 stays, all else becomes float64."""
    array = real_array(scores, name)
    if array.ndim != 2 or (n_scores is not None and array.shape[1] != n_scores):
        raise ValueError(
            f"{name} must have shape (n, {n_scores or 'n_labels'}), one score a column, "
            f"but its shape is {array.shape}"
        )
    array = _plain(array)
    refuse_not_finite(array, name)
    return array


def probability_matrix(probability: Any, name: str = "probability") -> Any:
    """Probabilities as an (n, l) array (see `score_matrix`) or CSR array, all in [0, 1].

    In a sparse matrix an entry that is absent is a probability of 0; entries are put in the order
    of their columns, and stored zeros are dropped, in a copy where there is anything to do.
    """
    is_sparse = hasattr(probability, "tocsr")
    values = tidied(probability, name) if is_sparse else real_array(probability, name)
    require_entries(values.shape, name)
    values = _plain(values)
    stored = values.data if is_sparse else values
    if stored.size and not (stored.min() >= 0 and stored.max() <= 1):
        refuse_entries(values, ~((stored >= 0) & (stored <= 1)), name, "lie in [0, 1]")
    return values


def input_matrix(X: Any, name: str = "X") -> Any:
    """Inputs as an (n, d) array in C order or a tidy CSR array, float32 or float64; NaN stays."""
    inputs = tidied(X, name) if hasattr(X, "tocsr") else real_array(X, name)
    if inputs.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, but its shape is {inputs.shape}")
    inputs = inputs.astype(_float_type(inputs), copy=False)
    return inputs if hasattr(inputs, "indptr") else np.ascontiguousarray(inputs)


def _plain(values: Any) -> Any:
    """An array in C order, or a CSR one: float32 or float64, and writeable.

    Numba compiles another kernel for read-only arrays; copying is cheaper than that.
    """
    kind = _float_type(values)
    if hasattr(values, "indptr"):
        return values.astype(kind, copy=not values.data.flags.writeable)
    array = np.ascontiguousarray(values, kind)
    return array if array.flags.writeable else array.copy()


def _float_type(values: Any) -> Any:
    """Float32 stays, all else becomes float64."""
    return np.float32 if values.dtype == np.float32 else np.float64


def require_entries(shape: tuple[int, ...], name: str) -> None:
    """Raise unless it is the shape of a matrix that has rows and labels."""
    if len(shape) != 2 or 0 in shape:
        raise ValueError(
            f"{name} must have shape (n, n_labels) with at least one row and one label, "
            f"but its shape is {shape}"
        )


def require_columns(shape: tuple[int, ...], n_labels: int | None, name: str) -> None:
    """Raise unless it is the shape of a matrix that has a column for each label."""
    if len(shape) != 2 or n_labels not in (None, shape[1]):
        width = "n_labels" if n_labels is None else n_labels
        raise ValueError(
            f"{name} must have shape (n, {width}), {width} columns of 0/1, one for each label, "
            f"but its shape is {shape}"
        )


def refuse_not_finite(array: NDArray[Any], name: str) -> None:
    """Raise for the first entry that is NaN or infinite."""
    # If the sum is finite, so is every term. Finite terms whose sum overflows are looked at below.
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum() if array.size < SHARED_CHECK else _shared_sum(array)
        if np.isfinite(total):
            return
    refuse_entries(array, ~np.isfinite(array), name, "be finite")


def refuse_large(values: Any, most: float, name: str, advice: str) -> None:
    """Raise for the first entry, of an array or a CSR one, whose size is beyond ``most``.

    NaN is of no size.
    """
    stored = values.data if hasattr(values, "tocsr") else values
    high, low = (each.reduce(stored, axis=None, initial=0) for each in (np.fmax, np.fmin))
    if max(float(high), -float(low)) > most:
        expected = f"not exceed {most:g} in size ({advice})"
        refuse_entries(values, np.abs(stored) > most, name, expected)


def _shared_sum(array: NDArray[Any]) -> float:
    """The sum of a large matrix, its rows shared among threads."""
    from setwise.kernels import sum_rows
    from setwise.threads import for_rows

    sums = np.empty(len(array))
    for_rows(sum_rows, len(array), array, sums)
    return float(sums.sum())


def label_matrix(
    sets: Any, n_labels: int | None, name: str = "y_true", *, copy: bool = True
) -> NDArray[np.uint8]:
    """Label sets as a C-ordered uint8 (n, n_labels) array of 0 and 1, from dense or sparse.

    Without ``copy`` it may be the caller's own array, and must not be changed.
    """
    if hasattr(sets, "toarray"):
        sets = well_formed(sets, name).toarray()
    array = real_array(sets, name, integers=True)
    require_columns(array.shape, n_labels, name)
    with np.errstate(invalid="ignore"):
        # (Numba compiles another kernel for read-only arrays; copying is cheaper than that.)
        cast = array.astype(np.uint8, copy=copy or not array.flags.writeable)
        cast = np.ascontiguousarray(cast)
        same = array.dtype in (np.uint8, bool) or np.array_equal(cast, array)
    if not same or cast.max(initial=0) > 1:
        refuse_entries(array, (array != 0) & (array != 1), name, "hold only 0 and 1")
    return cast


def same_rows(**matrices: Any) -> None:
    """Raise unless both matrices, given by their names, have the same number of rows."""
    (first, one), (second, other) = ((name, m.shape[0]) for name, m in matrices.items())
    if one != other:
        raise ValueError(
            f"{first} and {second} must have the same number of rows, "
            f"but {first} has {one} and {second} has {other}"
        )


def require_one_of(value: Any, known: Iterable[Any], name: str) -> None:
    """Raise unless a setting is one of its names."""
    if value not in (known := tuple(known)):
        names = ", ".join(map(repr, known))
        raise ValueError(f"{name} must be one of {names}, but it is {value!r}")


def repeated(names: Sequence[Any]) -> Any:
    """The first name that is there more than once, or None."""
    if len(set(names)) == len(names):
        return None
    return next(name for name, times in Counter(names).items() if times > 1)


def refuse_repeated(names: Sequence[Any], what: str = "label") -> None:
    """Raise for a name that two labels have, or two of something else."""
    if (twice := repeated(names)) is not None:
        first, second = [place for place, name in enumerate(names) if name == twice][:2]
        raise ValueError(
            f"each {what} must have its own name, but {what}s {first} and {second} are both "
            f"{twice!r}"
        )


def refuse_missing(names: NDArray[Any]) -> None:
    """Raise for the first label whose name is None, NaN or one of pandas' for missing values."""
    # (Text and whole numbers have none.)
    for place, name in enumerate(() if names.dtype.kind in "biuU" else names.tolist()):
        try:
            # (What is missing is not equal to itself; pandas' NA is neither equal nor not.)
            is_missing = name is None or bool(name != name)
        except TypeError:
            is_missing = True
        if is_missing:
            raise ValueError(
                f"each label must have a name, text or a number, but that of label {place} is "
                f"missing ({name!r})"
            )


def places_of(given: Any, name: str, count: int, what: str = "columns") -> NDArray[np.int64]:
    """Numbers of columns, or of something else, from 0 to count - 1, as an array.

    Examples
    --------
    >>> places_of([2, 0], "features", 3)
    array([2, 0])
    """
    places = np.asarray(given)
    good = places.ndim == 1 and (places.dtype.kind in "iu" or len(places) == 0)
    if not good or ((places < 0) | (places >= count)).any():
        raise ValueError(
            f"{name} must be a list of numbers of {what}, from 0 to {count - 1}, not {given!r}"
        )
    return places.astype(np.int64)


def whole_number(value: Any, name: str, least: int) -> int:
    """An int of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, but it is {value!r}")
    return int(value)


def real_number(value: Any, name: str, low: float, high: float) -> float:
    """A finite float in [low, high]."""
    number = _number(value)
    if not low <= number <= high or not np.isfinite(number):
        raise ValueError(f"{name} must be a number in [{low}, {high}], but it is {value!r}")
    return number


def positive_number(value: Any, name: str) -> float:
    """A finite float above 0."""
    number = _number(value)
    if not 0.0 < number < np.inf:
        raise ValueError(f"{name} must be a positive number, but it is {value!r}")
    return number


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


def real_vector(values: Any, length: int | None, name: str, minus_infinity: bool = False):
    """A float64 vector without NaN; -inf only where that means 'excluded'."""
    array = real_array(values, name).astype(np.float64)
    if array.ndim != 1 or (length is not None and len(array) != length):
        wanted = "one-dimensional" if length is None else f"of shape ({length},)"
        raise ValueError(f"{name} must be {wanted}, but its shape is {array.shape}")
    refuse_bad_weights(array, name, minus_infinity)
    return array


def refuse_bad_weights(array: NDArray[Any], name: str, minus_infinity: bool = True) -> None:
    """Raise for NaN or +inf, and for -inf unless that means 'excluded'."""
    allowed = np.isfinite(array) | (minus_infinity & np.isneginf(array))
    expected = "be finite or -inf" if minus_infinity else "be finite"
    refuse_entries(array, ~allowed, name, expected)


def real_array(values: Any, name: str, integers: bool = False) -> NDArray[Any]:
    """An array of numbers of any shape; sparse matrices and text are refused."""
    if hasattr(values, "toarray"):
        raise ValueError(
            f"{name} must be a dense array, but it is a sparse {type(values).__name__}"
        )
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array: {error}") from error
    if array.dtype.kind not in "biuf":
        kind = "0/1" if integers else "real"
        raise ValueError(
            f"{name} must be an array of {kind} numbers, but its dtype is {array.dtype}"
        )
    return array
