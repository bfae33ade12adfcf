"""Folders of arrays: X.npz or X.npy, Y.npz and meta.json.

``X.npz`` and ``Y.npz`` are CSR matrices of ``scipy.sparse.save_npz``, ``X.npy`` is dense. meta.json
has ``label_names``, ``feature_names``, ``hierarchy_edges`` with ``hierarchy_lengths``, and a
``split``: for each part ``{"range": [a, b]}``, ``{"indices": [...]}`` or ``{"file": ...}``; or one
file for all parts. Names may stand in text files instead, a line each. ``Y_specific.npz`` has the
labels of a hierarchy as they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, load_npz

from setwise.archives import refuse_large_arrays
from setwise.datasets.dataset import Dataset, text_array
from setwise.datasets.schema import First, Reader, Rows, Schema
from setwise.datasets.sparse_text import MAX_FEATURES
from setwise.files import DataError, File, existing, read_json, read_names
from setwise.sparse import well_formed
from setwise.spelling import shown


@dataclass(frozen=True, eq=False)
class FolderSchema(Schema):
    """Folders with these features and labels; ``hierarchy`` is edges [parent, child] of labels."""

    n_features: int
    label_names: Any
    feature_names: Any = None
    hierarchy: Any = None
    max_bytes: int | None = None
    edge_lengths: Any = None
    format = "folder"

    def whole(self, path: Path, labels: bool) -> Dataset:
        rows = self._fitting(_read_rows(path, self.max_bytes, labels), path)
        return self.dataset(rows, path, **self._about(path))

    def parts(self, path: Path, labels: bool, rows: int) -> Iterator[Rows]:
        whole = self._fitting(_read_rows(path, self.max_bytes, labels), path)
        for start in range(0, whole.X.shape[0], rows):
            X, Y, specific = (m if m is None else m[start : start + rows] for m in whole[:3])
            yield Rows(X, Y, specific)

    def _about(self, folder: Path) -> dict[str, Any]:
        meta = _read_meta(folder)
        split, title = _split(folder, meta.get("split")), str(meta.get("name") or folder.name)
        return {"name": title, "split": split}

    def _fitting(self, rows: Rows, folder: Path) -> Rows:
        """The rows, if they have these numbers of features and labels."""
        found = {"features": (rows.X, self.n_features), "labels": (rows.Y, len(self.label_names))}
        for what, (matrix, count) in found.items():
            if matrix is not None and (matrix.ndim != 2 or matrix.shape[1] != count):
                reason = f"the shape is {matrix.shape}, but {count} {what} are expected"
                raise DataError(folder, None, reason)
        return rows


@Reader
def read_folder(path: File, *, max_bytes: int | None = None) -> First:
    """Read a folder of arrays; ``max_bytes`` is that of `read`.

    Examples
    --------
    >>> import tempfile
    >>> from scipy.sparse import csr_array, save_npz
    >>> with tempfile.TemporaryDirectory() as place:
    ...     np.save(f"{place}/X.npy", [[0.5, 1.0], [2.0, 0.0]])
    ...     save_npz(f"{place}/Y.npz", csr_array([[1, 0, 1], [0, 1, 0]]))
    ...     _ = Path(place, "meta.json").write_text("{}")
    ...     print(read_folder(place).Y.toarray())
    [[1 0 1]
     [0 1 0]]
    """
    folder = existing(path)
    meta = _read_meta(folder)
    X, Y, *_ = rows = _read_rows(folder, max_bytes, True)
    for key, count in (("n", X.shape[0]), ("d", X.shape[1]), ("l", Y.shape[1])):
        if meta.get(key, count) != count:
            reason = f"{key!r} is {meta[key]!r}, but there are {count}"
            raise DataError(folder / "meta.json", None, reason)
    names = _names(folder, meta, "label_names")
    schema = FolderSchema(
        X.shape[1],
        text_array(range(Y.shape[1])) if names is None else names,
        _names(folder, meta, "feature_names"),
        meta.get("hierarchy_edges"),
        max_bytes,
        meta.get("hierarchy_lengths"),
    )
    return First(schema, lambda: [schema._fitting(rows, folder)], schema._about(folder))


def _read_rows(folder: Path, max_bytes: int | None, labels: bool) -> Rows:
    """The arrays of a folder."""
    dense, specific = folder / "X.npy", folder / "Y_specific.npz"
    is_sparse = (folder / "X.npz").exists()
    if not is_sparse and not dense.exists():
        raise DataError(folder, None, "there is neither X.npz nor X.npy")
    X = _matrix(folder / "X.npz", max_bytes) if is_sparse else loaded(dense, _array)
    if not labels:
        return Rows(X)
    written = _matrix(specific, max_bytes) if specific.exists() else None
    return Rows(X, _matrix(folder / "Y.npz", max_bytes), written)


def loaded(path: Path, load: Callable[[Path], Any]) -> Any:
    """What ``load`` makes of a file of arrays; whatever is wrong with it is a `DataError`."""
    if not path.exists():
        raise DataError(path.parent, None, f"there is no {path.name}")
    try:
        return load(path)
    except DataError:
        raise
    except Exception as error:
        # Zip files and arrays fail in a dozen ways; all of them mean this.
        raise DataError(path, None, f"damaged, or no array of numbers: {error}") from error


def _array(path: Path) -> Any:
    # (Mapped first: a header that promises more than the file holds is refused, not allocated.)
    return np.array(np.load(path, mmap_mode="r", allow_pickle=False))


def _matrix(path: Path, max_bytes: int | None) -> Any:
    """A CSR matrix that is within bounds and whole."""

    def load(path: Path) -> Any:
        refuse_large_arrays(path, max_bytes)
        found: Any = load_npz(path)
        if found.format != "csr" or found.ndim != 2 or found.shape[1] > MAX_FEATURES:
            what = f"the matrix is {found.format} of shape {found.shape}"
            reason = f"{what}; expected is csr with at most {MAX_FEATURES} columns"
            raise DataError(path, None, reason)
        return csr_array(well_formed(found, path.stem))

    return loaded(path, load)


# ---------------------------------------------------------------------------------------- meta.json


def _read_meta(folder: Path) -> dict[str, Any]:
    path = folder / "meta.json"
    return read_json(path) if path.exists() else {}


def _inside(folder: Path, name: Any) -> Path:
    """A file of the folder; a name that leads out of it is refused."""
    path = folder / str(name)
    if not isinstance(name, str) or path.parent != folder or not path.is_file():
        reason = f"there is no file {shown(name)} beside it"
        raise DataError(folder / "meta.json", None, reason)
    return path


def _names(folder: Path, meta: dict[str, Any], key: str) -> Any:
    names = meta.get(key)
    if names is None and f"{key}_file" in meta:
        names = read_names(_inside(folder, meta[f"{key}_file"]))
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(n, str | int) for n in names):
        raise DataError(folder / "meta.json", None, f"{key!r} must be a list of names")
    return text_array(names)


def _split(folder: Path, split: Any) -> dict[str, Any] | None:
    """The rows of each part."""
    if split is None:
        return None
    if not isinstance(split, dict):
        reason = f"'split' must be an object, not {shown(split)}"
        raise DataError(folder / "meta.json", None, reason)
    if isinstance(split.get("file"), str):

        def load(path: Path) -> dict[str, Any]:
            refuse_large_arrays(path)
            with np.load(path, allow_pickle=False) as parts:
                return {name: parts[name] for name in parts.files}

        return loaded(_inside(folder, split["file"].split()[0] if split["file"] else ""), load)
    parts = {name: part for name, part in split.items() if isinstance(part, dict)}
    return {name: _part(folder, name, part) for name, part in parts.items()} or None


def _part(folder: Path, name: str, part: dict[str, Any]) -> Any:
    if "range" in part:
        ends = part["range"]
        is_whole = isinstance(ends, list) and len(ends) == 2 and all(type(e) is int for e in ends)
        if not is_whole or not 0 <= ends[0] < ends[1] <= 2**31:
            reason = f"the range of {shown(name)} is {shown(ends)}"
            raise DataError(folder / "meta.json", None, reason)
        return np.arange(*ends)
    if "indices" in part:
        try:
            return np.array(part["indices"], dtype=np.int64)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            reason = f"the indices of {shown(name)} must be whole numbers: {error}"
            raise DataError(folder / "meta.json", None, reason) from error
    return loaded(_inside(folder, part.get("file")), _array)
