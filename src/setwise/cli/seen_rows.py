"""Which rows a model has seen: digests of their features, kept with the model."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

# Of more rows than this, those with the smallest digests stand for all: half a megabyte.
MOST_DIGESTS = 2**16


def digests(X: Any) -> NDArray[np.uint64]:
    """A number for each row, (n,), the same for rows whose features are the same.

    Features are compared in single precision, in which blocks on disk may have them.

    Examples
    --------
    >>> one, two, again = digests(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    >>> bool(one == again), bool(one == two)
    (True, False)
    """
    with np.errstate(over="ignore"):
        if issparse(X):
            sparse = csr_array(X)
            values, places = sparse.data.astype(np.float32), sparse.indices.astype(np.int64)
            ends = zip(sparse.indptr[:-1].tolist(), sparse.indptr[1:].tolist(), strict=True)
            rows = (places[a:b].tobytes() + values[a:b].tobytes() for a, b in ends)
        else:
            rows = map(np.ndarray.tobytes, np.asarray(X, np.float32))
    found = b"".join(blake2b(row, digest_size=8).digest() for row in rows)
    return np.frombuffer(found, np.dtype("<u8")).astype(np.uint64)


def remembered(parts: Iterable[Any]) -> NDArray[np.uint64]:
    """The digests that are kept of all rows of some parts, in order and each once."""
    kept = np.empty(0, np.uint64)
    for X in parts:
        kept = np.union1d(kept, digests(X))[:MOST_DIGESTS]
    return kept


def n_known(X: Any, kept: NDArray[np.uint64]) -> int:
    """How many of the rows were among those remembered; an estimate if not all digests are kept."""
    found = digests(X)
    if len(kept) == MOST_DIGESTS:
        # A row beyond the last digest may or may not have been there: the others speak for it.
        found = found[found <= kept[-1]]
    return round(X.shape[0] * float(np.isin(found, kept).mean())) if len(found) else 0
