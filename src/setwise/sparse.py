"""The stored entries of sparse matrices, and ranges of rows that are few enough to be dense.

An entry that is not stored is 0. Compiled code reads and writes where the index arrays point, so
these are checked once, where a matrix comes in (`well_formed`), and the matrix is tidied: CSR, the
labels of a row in order, none twice, no stored zeros; the caller's own is never changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from setwise.spelling import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray


# Entries that are held densely at a time.
MOST_ENTRIES = 2**22
# Label sets of more entries, where they come sparse, stay so in training.
MOST_HELD = 2**26


def row_ranges(n_rows: int, width: int, most: int | None = None, least: int = 1) -> Iterator[slice]:
    """Ranges that cover the rows, each of at most ``most`` entries or ``least`` rows.

    There is at least one range, if an empty one.
    """
    step = max(least, (most or MOST_ENTRIES) // width)
    for start in range(0, max(n_rows, 1), step):
        yield slice(start, min(start + step, n_rows))


def held(sets: Any) -> Any:
    """Label sets as they are trained on: dense, or CSR where the array would be a large one."""
    few = sets.shape[0] * sets.shape[1] <= MOST_HELD
    return dense_rows(sets) if few else sets


def dense_rows(sets: Any, rows: Any = slice(None)) -> Any:
    """Rows of label sets, dense or CSR, as an array."""
    part = sets[rows]
    return part.toarray() if hasattr(part, "toarray") else part


def by_ranges(function: Callable[[Any], Any], sets: Any) -> Any:
    """A number for each of the label sets, dense or CSR, by a function of ranges of them."""
    return np.concatenate([function(dense_rows(sets, rows)) for rows in row_ranges(*sets.shape)])


def set_sizes(sets: Any) -> Any:
    """The number of labels of each set, dense or tidy CSR, (n,)."""
    if hasattr(sets, "indptr"):
        return np.diff(sets.indptr).astype(np.int64)
    return sets.sum(axis=1, dtype=np.int64)


def label_sums(sets: Any, weights: Any) -> Any:
    """What the sets that have each label weigh together, (l,): sets are dense or tidy CSR.

    Weights are added row by row in both, and so to the same bits. (Not by a product with dense
    sets, for which all of them would be copied to float64.)
    """
    if hasattr(sets, "indptr"):
        return sets.T @ weights
    return np.einsum("i,ij->j", weights, sets)


def well_formed(matrix: Any, name: str) -> Any:
    """The sparse matrix itself, if all of its entries lie inside it; else a ValueError.

    scipy looks at this only on request, and changes the matrix then. Cost: one look at each index.
    """
    wrong = _misplaced(matrix)
    if wrong:
        raise ValueError(
            f"{name} must be a sparse matrix whose entries lie inside its shape {matrix.shape}, "
            f"but {wrong}"
        )
    return matrix


def _misplaced(matrix: Any) -> str:
    """What is wrong with the places of the entries, in words; empty if nothing is."""
    if matrix.ndim != 2:
        return f"it has {counted(matrix.ndim, 'dimension')}, not two"
    kind, blocks = matrix.format, np.ones(2, int)
    if kind == "coo":
        return _outside(matrix.row, matrix.shape[0], len(matrix.data), "row") or _outside(
            matrix.col, matrix.shape[1], len(matrix.data), "col"
        )
    if kind == "lil":
        # (Its lists become the indices of this as they are; other formats are checked by scipy.)
        return _misplaced(matrix.tocsr())
    if kind not in ("csr", "csc", "bsr"):
        return ""
    if kind == "bsr":
        blocks = np.array(matrix.data.shape[1:])
    n_rows, n_columns = np.array(matrix.shape) // blocks
    major, minor = (n_columns, n_rows) if kind == "csc" else (n_rows, n_columns)
    ends, n_stored = matrix.indptr, len(matrix.data)
    wrong = _outside(ends, n_stored + 1, major + 1, "indptr")
    if not wrong and (ends[0] != 0 or (ends[1:] < ends[:-1]).any()):
        wrong = "indptr does not begin with 0 or does not increase"
    # (What lies behind the last end is not used.)
    return wrong or _outside(matrix.indices[: ends[-1]], minor, int(ends[-1]), "indices")


def _outside(places: Any, count: int, length: int, name: str) -> str:
    """What is wrong with an array of so many places, all to be below a count; empty if nothing."""
    if places.ndim != 1 or places.dtype.kind not in "iu" or len(places) != length:
        return (
            f"{name} has shape {places.shape} and type {places.dtype}, not {length} whole numbers"
        )
    if length and (places.min() < 0 or places.max() >= count):
        first = int(np.argmax((places < 0) | (places >= count)))
        return f"{name}[{first}] is {places[first]}; expected is 0 to {count - 1}"
    return ""


def tidied(matrix: Any, name: str) -> Any:
    """A sparse matrix of real numbers as a tidy CSR array; repeated entries are refused."""
    from scipy.sparse import csr_array

    if matrix.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be an array of real numbers, but its dtype is {matrix.dtype}"
        )
    # (A new array: what the matrix says of its own order may not be so any more.)
    rows = csr_array(well_formed(matrix, name))
    is_whole = len(rows.data) == rows.nnz and bool(rows.data.all())
    if not rows.has_canonical_format or not is_whole:
        rows = rows.copy()
    rows.sum_duplicates()
    # Other formats cannot repeat an entry, and may count zeros that the conversion drops.
    if matrix.format in ("csr", "csc", "coo") and rows.nnz < matrix.nnz:
        raise ValueError(
            f"{name} must have each entry once, but {matrix.nnz - rows.nnz} entries are repeated"
        )
    if not is_whole:
        rows.eliminate_zeros()
    return rows


def tidy_sets(sets: Any, name: str) -> Any:
    """Sparse label sets as a tidy CSR array of ones; other values are refused."""
    matrix = tidied(sets, name)
    refuse_entries(matrix, matrix.data != 1, name, "hold only 0 and 1")
    return matrix


def refuse_entries(values: Any, wrong: NDArray[np.bool_], name: str, expected: str) -> None:
    """Raise for the first entry that is wrong, naming its place and what is expected.

    ``wrong`` says it of the entries of an array, or of those that a CSR one stores.
    """
    if not wrong.any():
        return
    first = tuple(np.argwhere(wrong)[0].tolist())
    place, stored = list(first), values
    if hasattr(values, "indptr"):
        row = int(np.searchsorted(values.indptr, first[0], "right")) - 1
        place, stored = [row, int(values.indices[first[0]])], values.data
    raise ValueError(
        f"{name} must {expected}, but {name}{place} is {stored[first]} "
        f"({np.count_nonzero(wrong)} such entries)"
    )


def rows_of(matrix: Any) -> NDArray[np.int64]:
    """The row of each stored entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def places_among(matrix: Any, wanted: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Where each entry of ``wanted`` stands, or would stand, in ``matrix``; and whether it does.

    Both are tidy, so that row * n_labels + label increases.
    """
    n_labels = matrix.shape[1]
    stored, asked = (rows_of(m) * n_labels + m.indices for m in (matrix, wanted))
    places = np.searchsorted(stored, asked)
    return places, np.append(stored, -1)[places] == asked


def columns_among(matrix: Any, places: NDArray[np.int64], n_columns: int) -> Any:
    """The columns at their places among ``n_columns``, all others 0; dense or CSR as given."""
    shape = (matrix.shape[0], n_columns)
    if not hasattr(matrix, "indptr"):
        wide = np.zeros(shape, matrix.dtype)
        wide[:, places] = matrix
        return wide
    from scipy.sparse import csr_array

    rows: Any = csr_array(matrix)
    wide = csr_array((rows.data, places[rows.indices], rows.indptr), shape=shape)
    wide.sort_indices()
    return wide


def entries_of(sets: NDArray[np.uint8]) -> Any:
    """The ones of dense 0/1 bytes as a tidy CSR array of bools.

    Many times faster than `csr_array(sets)`, which goes by way of rows and columns of each entry.
    """
    from scipy.sparse import csr_array

    n_rows, n_labels = sets.shape
    places = np.flatnonzero(np.ascontiguousarray(sets).view(bool))
    index = np.int32 if max(len(places), n_labels) < 2**31 else np.int64
    ends = np.searchsorted(places, n_labels * np.arange(n_rows + 1)).astype(index)
    labels = (places % max(n_labels, 1)).astype(index)
    return csr_array((np.ones(len(places), bool), labels, ends), shape=sets.shape)
