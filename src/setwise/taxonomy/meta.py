"""The hierarchy in the description of a data set."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from setwise.taxonomy.edges import Parts
from setwise.taxonomy.names import is_number, shown
from setwise.taxonomy.text import text_of
from setwise.validation import whole_number

ROW = (list, tuple, np.ndarray)


def edges_of_meta(meta: Any) -> Parts:
    """See `Taxonomy.from_meta`."""
    folder = Path()
    if not isinstance(meta, str | Path | Mapping):
        raise ValueError(f"meta must be a mapping or a path, but it is a {type(meta).__name__}")
    if not isinstance(meta, Mapping):
        file = Path(meta) / "meta.json" if Path(meta).is_dir() else Path(meta)
        folder, meta = file.parent, _object(file)
    title = f"the description of {meta.get('name', 'the data set')!r}"
    edges = meta.get("hierarchy_edges")
    if edges is None:
        raise ValueError(f"{title} has no hierarchy_edges: its labels have no hierarchy")
    listed = list(edges) if isinstance(edges, ROW) else [edges]
    for edge in listed:
        if not isinstance(edge, ROW) or len(edge) != 2 or not all(map(is_number, edge)):
            raise ValueError(
                f"hierarchy_edges must be rows [parent, child] of whole numbers, the columns of Y, "
                f"but {title} has {shown(edge)}; Taxonomy.from_edges takes names"
            )
    numbered = np.array([list(edge) for edge in listed], dtype=np.int64).reshape(-1, 2)
    return numbered, _names(meta, folder, title), meta.get("hierarchy_lengths")


def _object(file: Path) -> Mapping[str, Any]:
    """What a JSON file says, by name."""
    try:
        meta = json.loads(text_of(file, "the description of a data set"))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{file} must be a JSON file, but it cannot be read: {error}") from error
    if not isinstance(meta, dict):
        raise ValueError(
            f"{file} must have an object with hierarchy_edges, but it has a {type(meta).__name__}"
        )
    return meta


def _names(meta: Mapping[str, Any], folder: Path, title: str) -> Any:
    """The names of the labels, their numbers where there are none, or None without a number."""
    names = meta.get("label_names")
    if names is None and meta.get("label_names_file"):
        names = text_of(folder / meta["label_names_file"], f"label_names_file of {title}")
        names = names.splitlines()
    if names is not None and not isinstance(names, ROW):
        raise ValueError(f"label_names must be a list, but {title} has {shown(names)}")
    if "l" not in meta:
        return names
    n_labels = whole_number(meta["l"], f"l in {title}", 1)
    if names is not None and len(names) != n_labels:
        raise ValueError(f"{title} has l = {n_labels} labels, but {len(names)} names of labels")
    return np.arange(n_labels) if names is None else names
