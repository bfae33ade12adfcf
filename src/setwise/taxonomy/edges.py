"""Edges between numbered labels, the levels they make, and label sets over them."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.sparse import columns_among
from setwise.validation import refuse_repeated

Array = NDArray[Any]
# Labels of a cycle in a message.
MOST_SHOWN = 10


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


def forest_levels(parents: Array, names: Array | None = None) -> Array:
    """The number of labels above each label of a forest, (l,); a cycle is refused.

    By doubling: label i is ``levels[i]`` steps below ``above[i]``, and two such ways are one of
    twice as many steps. The entry at -1 is that of the virtual root, which stays where it is.
    """
    above = np.append(parents, -1)
    levels = (above >= 0).astype(np.int64)
    for _ in range(len(parents).bit_length()):
        levels, above = levels + levels[above], above[above]
    if (above >= 0).any():
        labels = np.arange(len(parents))
        levels_in_order(np.column_stack([parents, labels]), labels if names is None else names)
    return levels[:-1]


def levels_in_order(edges: Array, names: Array) -> Array:
    """The number of labels on the longest way down to each label, less one, (l,)."""
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for above, child in edges.tolist():
        sorter.add(child, *([above] if above >= 0 else ()))
    try:
        sorter.prepare()
    except CycleError as error:
        cycle = [repr(name) for name in names[error.args[1]].tolist()]
        if len(cycle) > MOST_SHOWN + 1:
            cycle[MOST_SHOWN:] = [f"... ({len(cycle) - 1} labels)"]
        raise ValueError(
            f"a hierarchy must have no cycle, where parents lead back to where they began, but it "
            f"has the cycle {' -> '.join(cycle)}"
        ) from None
    levels, level = np.zeros(len(names), dtype=np.int64), 0
    while ready := sorter.get_ready():
        levels[list(ready)] = level
        sorter.done(*ready)
        level += 1
    return levels


def rooted(edges: Array, lengths: Array, n_labels: int) -> tuple[Array, Array]:
    """Edges, and their lengths, by child and parent, with one from the virtual root to each root.

    Such an edge says nothing of a label that has another parent, and is left out there.
    """
    between = edges[:, 0] >= 0
    kept = between | ~np.isin(edges[:, 1], edges[between, 1])
    roots = np.setdiff1d(np.arange(n_labels), edges[:, 1])
    to_roots = np.stack([np.full(len(roots), -1), roots], axis=1)
    edges = np.concatenate([edges[kept], to_roots])
    lengths = np.concatenate([lengths[kept], np.ones(len(roots))])
    order = np.lexsort((edges[:, 0], edges[:, 1]))
    return edges[order], lengths[order]


def steps_up(edges: Array, n_labels: int) -> Any:
    """U: true at [child, parent] for each edge between labels, a CSR array of shape (l, l)."""
    from scipy.sparse import csr_array

    above, child = edges[edges[:, 0] >= 0].T
    return csr_array((np.ones(len(child), bool), (child, above)), shape=(n_labels, n_labels))


def are_closed(sets: Any, up: Any) -> Array:
    """Whether CSR label sets have all their labels' parents, (n,): y U has no entry beyond y."""
    return np.asarray(((sets @ up) > sets).sum(axis=1)).ravel() == 0


# ------------------------------------------------------------------------------------------- checks


def refuse_missing(names: Iterable[Any], known: Iterable[Any], where: str) -> None:
    """Raise if a name is not among the known ones."""
    found = set(known)
    missing = [name for name in names if name not in found]
    if missing:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ValueError(f"label {missing[0]!r}{others} is not among {where}")


def checked_edges(edges: Any, names: Any) -> tuple[Array, Array]:
    """Edges as whole numbers of labels, each once, and names that are all different."""
    array = np.asarray(edges)
    array = array.reshape(-1, 2).astype(np.int64) if array.size == 0 else array
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError(
            f"edges must be whole numbers of shape (n_edges, 2), a parent and a child in each row, "
            f"but their shape is {array.shape} and their dtype {array.dtype}"
        )
    array = array.astype(np.int64)
    if names is None and len(array) == 0:
        raise ValueError("a Taxonomy needs at least one label, but there are no names and no edges")
    from setwise.labels import distinct_names

    names = distinct_names(np.arange(array.max() + 1) if names is None else names)
    bad = np.flatnonzero((array < [-1, 0]).any(axis=1) | (array >= len(names)).any(axis=1))
    if len(bad):
        raise ValueError(
            f"edges[{bad[0]}] must have a parent from -1 (the virtual root) and a child from 0 to "
            f"{len(names) - 1}, but it is {array[bad[0]].tolist()}"
        )
    each, times = np.unique(array, axis=0, return_counts=True)
    if (times > 1).any():
        above, child = each[np.argmax(times)].tolist()
        parent = repr(names.tolist()[above]) if above >= 0 else "the virtual root"
        raise ValueError(
            f"each edge must be there once, but {names.tolist()[child]!r} under {parent} is there "
            f"{times.max()} times"
        )
    return array, names


# --------------------------------------------------------------------------------------- label sets


def sets_over(Y: Any, names: Array, name: str) -> Any:
    """0/1 bytes, dense or CSR, with a column for each name, from any form; a fresh array."""
    from setwise.labels import form_of, name_array, zeros_and_ones

    if hasattr(Y, "columns") and hasattr(Y, "to_numpy"):
        sets = zeros_and_ones(Y.to_numpy(), name, len(names))
        return columns_among(sets, _places(name_array(Y.columns), names, name), len(names))
    if isinstance(Y, list | tuple) or (np.ndim(Y) == 1 and np.asarray(Y).dtype.kind in "OU"):
        if _are_lists(Y, names):
            rows = [row if isinstance(row, str) else set(row) for row in Y]
            return form_of(rows, column_of_classes=False).sets(names)
        if len({np.size(row) for row in Y}) > 1:
            expected = f"{len(names)} entries, one for each label of the taxonomy, or list labels"
            raise ValueError(f"the rows of {name} must have {expected}, but their lengths differ")
    return zeros_and_ones(Y, name, len(names))


def _are_lists(rows: Any, names: Array) -> bool:
    """Whether rows are names or lists of labels: of names, of labels that are numbers, or empty.

    Rows of only 0 and 1 are a matrix if one has an entry for each label, or all have as many; and
    so are rows that have an entry twice.
    """
    if any(isinstance(row, str | set | frozenset) for row in rows):
        return True
    if not len(rows) or not all(np.ndim(row) == 1 for row in rows):
        return False
    entries = [entry for row in rows for entry in row]
    if any(isinstance(entry, str) for entry in entries) or not entries:
        return True
    lengths = {len(row) for row in rows}
    is_flat = len(names) in lengths or (len(lengths) == 1 and lengths != {1})
    is_matrix = is_flat and set(entries) <= {0, 1}
    are_whole = all(isinstance(entry, int | np.integer) for entry in entries)
    once = all(len(set(row)) == len(row) for row in rows)
    return names.dtype.kind in "iuf" and are_whole and once and not is_matrix


def _places(columns: Array, names: Array, name: str) -> Array:
    """Which label each column of a frame is: by name, by place where either has only numbers."""
    given, wanted = columns.tolist(), names.tolist()
    counted = list(range(len(wanted)))
    if columns.dtype.kind != names.dtype.kind and counted in (given, wanted):
        return np.array(counted)
    refuse_repeated(given)
    refuse_missing(
        given, wanted, f"the labels of the taxonomy, which the columns of {name} must be"
    )
    place = {label: number for number, label in enumerate(wanted)}
    return np.array([place[label] for label in given])


def raised(values: Array, taxonomy: Any) -> Array:
    """The values (n, l), each at least those of the labels under its own: from below upwards."""
    raised = np.array(values, order="F")
    between = taxonomy.edges[taxonomy.edges[:, 0] >= 0]
    deepest_first = np.argsort(-taxonomy.levels[between[:, 1]], kind="stable")
    for above, label in between[deepest_first].tolist():
        np.maximum(raised[:, above], raised[:, label], out=raised[:, above])
    return np.ascontiguousarray(raised)
