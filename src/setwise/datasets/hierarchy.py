"""A hierarchy of labels: edges from parent to child."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setwise.taxonomy.order import levels_of


def edge_array(edges: Any, n_labels: int) -> NDArray[np.int64]:
    """Edges [parent, child] as an (m, 2) array: labels that exist, each edge once, no cycle."""
    array = np.asarray(edges)
    if array.size == 0:
        array = np.zeros((0, 2), np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError(
            f"hierarchy must be a list of edges [parent, child], whole numbers, "
            f"but its shape is {array.shape} and its type {array.dtype}"
        )
    array = array.astype(np.int64)
    outside = (array < 0) | (array >= n_labels)
    if outside.any():
        edge = int(np.argwhere(outside)[0][0])
        raise ValueError(
            f"hierarchy[{edge}] must be two labels from 0 to {n_labels - 1}, "
            f"but it is {array[edge].tolist()}"
        )
    if len(np.unique(array, axis=0)) < len(array):
        raise ValueError("hierarchy must have each edge once, but one is repeated")
    levels_of(array, np.arange(n_labels))
    return array


def parents_of(edges: NDArray[np.int64], n_labels: int) -> NDArray[np.int64]:
    """The parent of each label, -1 for a root; a label with two parents is refused."""
    counts = np.bincount(edges[:, 1], minlength=n_labels)
    if (counts > 1).any():
        label = int(np.argmax(counts > 1))
        raise ValueError(
            f"parents need a forest, but label {label} has {counts[label]} parents; "
            f"use the edges in hierarchy"
        )
    parents = np.full(n_labels, -1, np.int64)
    parents[edges[:, 1]] = edges[:, 0]
    return parents


def closed_upwards(sets: Any, edges: NDArray[np.int64]) -> Any:
    """Label sets with every ancestor of their labels, CSR."""
    n_labels = sets.shape[1]
    ones = np.ones(len(edges), bool)
    step = csr_array((ones, (edges[:, 1], edges[:, 0])), shape=(n_labels, n_labels))
    every = np.arange(n_labels)
    itself = csr_array((np.ones(n_labels, bool), (every, every)), shape=(n_labels, n_labels))
    reach: Any = itself + step
    closed: Any = csr_array(sets).astype(bool)
    while True:
        larger = closed @ reach
        if larger.nnz == closed.nnz:
            break
        closed = larger
    closed.sort_indices()
    return closed.astype(np.uint8)
