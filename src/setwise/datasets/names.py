"""Arrays of names, as readers make them and files keep them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Numpy gives every name the room of the longest. Beyond this many bytes names are objects instead.
MOST_BYTES = 2**26


def text_array(names: Iterable[Any]) -> NDArray[Any]:
    """Names as an array of text; of objects where the longest would make it huge."""
    if isinstance(names, np.ndarray) and names.ndim == 1 and names.dtype.kind == "U":
        return names
    listed = [str(name) for name in names]
    longest = max(map(len, listed), default=1)
    # (Numpy's text drops zeros at the end.)
    if 4 * longest * len(listed) > MOST_BYTES or any(name.endswith("\0") for name in listed):
        array = np.empty(len(listed), dtype=object)
        array[:] = listed
        return array
    return np.array(listed, dtype=f"<U{max(longest, 1)}")


def repeated(names: Sequence[Any]) -> Any:
    """The first name that is there more than once, or None."""
    if len(set(names)) == len(names):
        return None
    return next((name for name, times in Counter(names).items() if times > 1), None)
