"""What users have as a hierarchy, as edges between numbered labels.

Every function below the checks returns the arguments of `Taxonomy`: edges (m, 2) of [parent,
child], the names of the labels, and the lengths of the edges, or None where all are 1.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.taxonomy.parents import parent_vector

Array = NDArray[Any]
Parts = tuple[Array, Any, Any]

NOTHING = (None, "")
CHILD_WORDS = ("child", "label", "name")


# ------------------------------------------------------------------------------------------- checks


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
    names = checked_names(np.arange(array.max() + 1) if names is None else names)
    refuse_repeated(names.tolist())
    bad = np.flatnonzero((array < [-1, 0]).any(axis=1) | (array >= len(names)).any(axis=1))
    if len(bad):
        raise ValueError(
            f"edges[{bad[0]}] must have a parent from -1 (the virtual root) and a child from 0 to "
            f"{len(names) - 1}, but it is {array[bad[0]].tolist()}"
        )
    _refuse_loops(array, names)
    return array, names


def checked_names(names: Any) -> Array:
    """Names as an array, all text or all numbers."""
    from setwise.labels.values import name_array

    return name_array(names)


def refuse_repeated(names: list[Any]) -> None:
    """Raise for a name that two labels have."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        places = [place for place, name in enumerate(names) if name == repeated[0]]
        raise ValueError(
            f"each label must have its own name, but labels {places[0]} and {places[1]} are both "
            f"{repeated[0]!r}"
        )


def _refuse_loops(edges: Array, names: Array) -> None:
    loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if len(loops):
        name = names.tolist()[edges[loops[0], 0]]
        raise ValueError(f"no label stands under itself, but {name!r} does (edge {loops[0]})")
    rows, times = np.unique(edges, axis=0, return_counts=True)
    if (times > 1).any():
        above, child = (int(label) for label in rows[np.argmax(times > 1)])
        parent = repr(names.tolist()[above]) if above >= 0 else "the virtual root"
        raise ValueError(
            f"each edge must be there once, but {names.tolist()[child]!r} under {parent} is there "
            f"{times.max()} times"
        )


def refuse_lengths(edges: Array, names: Array, lengths: Array) -> None:
    """Raise for a length that is not positive."""
    bad = np.flatnonzero(lengths <= 0)
    if len(bad):
        child = names.tolist()[edges[bad[0], 1]]
        raise ValueError(
            f"lengths must be positive, but the length of the edge to {child!r} is "
            f"{lengths[bad[0]]}"
        )


def refuse_missing(names: Iterable[Any], known: Mapping[Any, int], where: str) -> None:
    """Raise if a name is not among the known ones."""
    missing = [name for name in names if name not in known]
    if missing:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ValueError(f"label {missing[0]!r}{others} is not among {where}")


# ------------------------------------------------------------------------------------------ parents


def edges_of_parents(parents: Any, names: Any, lengths: Any) -> Parts:
    """See `Taxonomy.from_parents`."""
    if isinstance(parents, Mapping):
        order = list(parents) if names is None else list(names)
        refuse_missing(order, dict.fromkeys(parents, 0), "the labels that have an entry of parents")
        refuse_missing(parents, dict.fromkeys(order, 0), "names")
        return edges_of_parents([parents[name] for name in order], order, lengths)
    array = np.asarray(parents, dtype=object)
    if array.ndim == 1 and len(array) and all(_is_number(value) for value in array):
        numbers = parent_vector(parents)
    else:
        numbers = _numbers_of(parents, names)
    if names is not None and len(names) != len(numbers):
        raise ValueError(
            f"parents and names must be of one length, but there are {len(numbers)} parents and "
            f"{len(names)} names"
        )
    edges = np.stack([numbers, np.arange(len(numbers))], axis=1)
    return edges, np.arange(len(numbers)) if names is None else names, lengths


def _numbers_of(parents: Any, names: Any) -> Array:
    """Parents given by name as numbers, -1 for none."""
    if names is None:
        raise ValueError("parents given by name need names, the name of each label")
    order = checked_names(names).tolist()
    refuse_repeated(order)
    place = {name: number for number, name in enumerate(order)}
    numbers = np.full(len(parents), -1)
    for child, above in enumerate(parents):
        if above is None or above == "" or above != above:  # (NaN is not itself)
            continue
        if above not in place:
            child_name = order[child] if child < len(order) else child
            raise ValueError(
                f"the parent {above!r} of {child_name!r} is not among the {len(order)} labels"
            )
        numbers[child] = place[above]
    return numbers


def _is_number(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


# -------------------------------------------------------------------------------------------- edges


def named_edges(edges: Any, names: Any, root: Any) -> Parts:
    """See `Taxonomy.from_edges`."""
    rows = [tuple(row) for row in (edges.tolist() if isinstance(edges, np.ndarray) else edges)]
    for number, row in enumerate(rows):
        if len(row) not in (2, 3) or len(row) != len(rows[0]):
            raise ValueError(
                f"each edge must be [parent, child] or each [parent, child, length], but edge "
                f"{number} is {list(row)}"
            )
    nowhere = (*NOTHING, root) if root is not None else NOTHING
    if names is None:
        ends = (end for row in rows for end in row[:2])
        order = list(dict.fromkeys(end for end in ends if end not in nowhere))
    else:
        order = checked_names(names).tolist()
        refuse_repeated(order)
    place: dict[Any, int] = {name: number for number, name in enumerate(order)}
    numbered = np.empty((len(rows), 2), dtype=np.int64)
    for number, (above, child, *_) in enumerate(rows):
        if child in nowhere or child not in place:
            raise ValueError(
                f"edge {number}, {above!r} to {child!r}, leads to no label: {child!r} is not among "
                f"the {len(order)} names"
            )
        if above not in nowhere and above not in place:
            raise ValueError(
                f"the parent {above!r} of {child!r} (edge {number}) is not among the "
                f"{len(order)} labels"
            )
        numbered[number] = -1 if above in nowhere else place[above], place[child]
    lengths = [_length(row, number) for number, row in enumerate(rows)] if rows[:1] else []
    return numbered, order, lengths if rows and len(rows[0]) == 3 else None


def _length(row: tuple[Any, ...], number: int) -> float:
    try:
        return float(row[2]) if len(row) == 3 else 1.0
    except (TypeError, ValueError):
        raise ValueError(
            f"the length of edge {number}, {row[0]!r} to {row[1]!r}, must be a number, but it is "
            f"{row[2]!r}"
        ) from None


# -------------------------------------------------------------------------------------------- paths


def edges_of_paths(paths: Any, separator: str, missing: str) -> Parts:
    """See `Taxonomy.from_paths`."""
    if missing not in ("refuse", "add"):
        raise ValueError(f"missing must be 'refuse' or 'add', not {missing!r}")
    if not isinstance(separator, str) or not separator:
        raise ValueError(f"separator must be text that parts names, but it is {separator!r}")
    names = [str(path) for path in paths]
    refuse_repeated(names)
    place = {name: number for number, name in enumerate(names)}
    numbers: list[int] = []
    for child in names:
        if "" in child.split(separator):
            raise ValueError(
                f"path names must have text on both sides of each {separator!r}, but one is "
                f"{child!r}"
            )
        above = child.rpartition(separator)[0]
        if above and above not in place:
            if missing == "refuse":
                raise ValueError(
                    f"the parent {above!r} of {child!r} is not among the {len(names)} labels; "
                    f"missing='add' adds such parents"
                )
            # Seen by this very loop, which adds its own parents in turn.
            place[above] = len(names)
            names.append(above)
        numbers.append(place[above] if above else -1)
    return np.stack([numbers, np.arange(len(names))], axis=1), names, None


# -------------------------------------------------------------------------------------------- files


def edges_of_meta(meta: Any) -> Parts:
    """See `Taxonomy.from_meta`."""
    folder = Path()
    if not isinstance(meta, Mapping):
        folder = Path(meta).parent
        meta = json.loads(Path(meta).read_text())
    edges, names = meta.get("hierarchy_edges"), meta.get("label_names")
    if edges is None:
        raise ValueError(
            f"the description of {meta.get('name', 'the data set')!r} has no hierarchy_edges: its "
            f"labels have no hierarchy"
        )
    if names is None and meta.get("label_names_file"):
        names = (folder / meta["label_names_file"]).read_text().splitlines()
    if names is None:
        names = np.arange(int(meta["l"])) if "l" in meta else None
    return np.asarray(edges, dtype=np.int64).reshape(-1, 2), names, None


def edges_of_file(path: Path, names: Any, root: Any) -> Parts:
    """See `Taxonomy.read`."""
    lines = [line.partition("#")[0].rstrip() for line in path.read_text().splitlines()]
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not numbered:
        raise ValueError(f"{path} has no lines, but a taxonomy has at least one label")
    mark = next((mark for mark in ("\t", ",") if any(mark in line for _, line in numbered)), None)
    rows = [(number, [part.strip() for part in line.split(mark)]) for number, line in numbered]
    columns = ["parent", "child", "length"][: len(rows[0][1])]
    head = [word.lower() for word in rows[0][1]]
    if "parent" in head:
        columns = ["child" if word in CHILD_WORDS else word for word in head]
        rows = rows[1:]
        if columns.count("child") != 1:
            raise ValueError(
                f"{path} must name a column beside parent by one of {', '.join(CHILD_WORDS)}, but "
                f"its columns are {', '.join(head)}"
            )
    for number, row in rows:
        if len(row) != len(columns):
            raise ValueError(
                f"line {number} of {path} must have {len(columns)} columns as the first line has, "
                f"but it has {len(row)}"
            )
    if len(columns) == 1:
        return edges_of_paths([row[0] for _, row in rows], "/", "refuse")
    wanted = [columns.index(word) for word in ("parent", "child", "length") if word in columns]
    return named_edges([[row[place] for place in wanted] for _, row in rows], names, root)
