"""The parents of a forest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.taxonomy.order import forest_levels


def parent_vector(parents: Any) -> NDArray[np.int64]:
    """The parents of a forest: -1 for a root, else another label; no cycle."""
    array = np.asarray(parents)
    if array.ndim != 1 or len(array) == 0 or array.dtype.kind not in "iu":
        raise ValueError(
            f"parents must be a non-empty one-dimensional list of whole numbers (-1 for a root), "
            f"but it is {parents!r}"
        )
    array = array.astype(np.int64)
    bad = np.flatnonzero((array < -1) | (array >= len(array)))
    if len(bad):
        raise ValueError(
            f"parents[{bad[0]}] must be -1 or a label from 0 to {len(array) - 1}, "
            f"but it is {array[bad[0]]}"
        )
    forest_levels(array)
    return array
