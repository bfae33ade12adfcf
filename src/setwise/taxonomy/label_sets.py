"""Label sets over the labels of a taxonomy, from 0/1 arrays or from names."""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise.labels.forms import form_of
from setwise.labels.values import zeros_and_ones


def label_sets(Y: Any, names: Any, name: str) -> Any:
    """0/1 of type uint8, dense or CSR, with a column for each name; a fresh array."""
    if _is_named(Y):
        return form_of(Y, column_of_classes=False).sets(names)
    sets = zeros_and_ones(Y, name)
    if sets.shape[1] != len(names):
        raise ValueError(
            f"{name} must have {len(names)} columns, one for each label of the taxonomy, "
            f"but its shape is {sets.shape}"
        )
    return sets


def _is_named(Y: Any) -> bool:
    """Whether rows are labels, or lists of labels, rather than numbers."""
    is_list = isinstance(Y, list | tuple) or (np.ndim(Y) == 1 and np.asarray(Y).dtype.kind in "OU")
    for row in Y if is_list else ():
        if isinstance(row, str | set | frozenset):
            return True
        if isinstance(row, list | tuple) and len(row):
            return isinstance(row[0], str)
    return False
