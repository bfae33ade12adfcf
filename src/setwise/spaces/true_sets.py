"""What is counted of true label sets."""

import numpy as np

from setwise.spaces.cube_kernels import count_true_rows
from setwise.spaces.space import Array
from setwise.threads import for_rows


def true_counts(y_true: Array) -> Array:
    """The number of true labels of each row, (n,)."""
    n_true = np.empty(len(y_true), dtype=np.int64)
    for_rows(count_true_rows, len(y_true), y_true, n_true)
    return n_true
