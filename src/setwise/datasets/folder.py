"""Folders of arrays: X.npz or X.npy, Y.npz and meta.json.

``X.npz`` and ``Y.npz`` are CSR matrices of ``scipy.sparse.save_npz``, ``X.npy`` is dense. meta.json
has ``label_names``, ``feature_names``, ``hierarchy_edges`` with ``hierarchy_lengths``, and a
``split``: for each part ``{"range": [a, b]}``, ``{"indices": [...]}`` or ``{"file": ...}``; or one
file for all parts. Names may stand in text files instead, a line each. ``Y_specific.npz`` has the
labels of a hierarchy as they were written.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, load_npz

from setwise.datasets.dataset import Dataset
from setwise.datasets.files import (
    DataError,
    File,
    decoded,
    existing,
    most_bytes,
    named,
    numbered,
    opened,
    refuse,
    refuse_bomb,
    shown,
    text_array,
)
from setwise.datasets.schema import Rows, dataset_of
from setwise.datasets.sparse_text import MAX_FEATURES, MAX_LABELS
from setwise.validation import whole_number

# Members of a matrix in a zip file, whose own headers are this large at most.
SLACK = 2**16


@dataclass(frozen=True, eq=False)
class FolderSchema:
    """Folders with these features and labels; ``hierarchy`` is edges [parent, child] of labels."""

    n_features: int
    label_names: Any
    feature_names: Any = None
    hierarchy: Any = None
    max_bytes: int | None = None
    edge_lengths: Any = None

    @property
    def format(self) -> str:
        return "folder"

    def read(self, path: File, *, labels: bool = True) -> Dataset:
        folder = existing(path)
        with named(path):
            split = _split(folder, _read_meta(folder / "meta.json").get("split"))
            rows = self.fitting(_read_rows(folder, self.max_bytes, labels), folder)
            return dataset_of(self, rows, path, split=split)

    def chunks(self, path: File, rows: int = 10_000, *, labels: bool = False) -> Iterator[Dataset]:
        with named(path):
            size = whole_number(rows, "rows", 1)
            whole = self.fitting(_read_rows(existing(path), self.max_bytes, labels), path)
            for start in range(0, whole.X.shape[0], size):
                part = [None if m is None else m[start : start + size] for m in whole]
                yield dataset_of(self, Rows(*part), path)

    def fitting(self, rows: Rows, folder: File) -> Rows:
        """The rows, if they have these numbers of features and labels."""
        found = {"features": (rows.X, self.n_features), "labels": (rows.Y, len(self.label_names))}
        for what, (matrix, count) in found.items():
            if matrix is not None and (matrix.ndim != 2 or matrix.shape[1] != count):
                reason = f"the shape is {matrix.shape}, but {count} {what} are expected"
                refuse(folder, None, reason)
        return rows


def read_folder(path: File, *, max_bytes: int | None = None) -> Dataset:
    """Read a folder of arrays; ``max_bytes`` is that of `read`."""
    folder = existing(path)
    with named(path):
        meta = _read_meta(folder / "meta.json")
        X, Y, _ = rows = _read_rows(folder, max_bytes, True)
        for key, count in (("n", X.shape[0]), ("d", X.shape[1]), ("l", Y.shape[1])):
            if meta.get(key, count) != count:
                reason = f"{key!r} is {meta[key]!r}, but there are {count}"
                refuse(folder / "meta.json", None, reason)
        names, edges = _names(folder, meta, "label_names"), meta.get("hierarchy_edges")
        schema = FolderSchema(
            X.shape[1],
            np.arange(Y.shape[1]).astype("<U8") if names is None else names,
            _names(folder, meta, "feature_names"),
            None if edges is None else _whole_numbers(edges, folder, "'hierarchy_edges'"),
            max_bytes,
            meta.get("hierarchy_lengths"),
        )
        split, title = _split(folder, meta.get("split")), str(meta.get("name") or folder.name)
        return dataset_of(schema, schema.fitting(rows, folder), path, name=title, split=split)


def _read_rows(folder: Path, max_bytes: int | None, labels: bool) -> Rows:
    """The arrays of a folder."""
    if not any((folder / name).exists() for name in ("X.npz", "X.npy")):
        refuse(folder, None, "there is neither X.npz nor X.npy")
    sparse = (folder / "X.npz").exists()
    X = _matrix(folder / "X.npz", max_bytes) if sparse else _array(folder / "X.npy")
    if not labels:
        return Rows(X)
    specific = folder / "Y_specific.npz"
    written = _matrix(specific, max_bytes) if specific.exists() else None
    return Rows(X, _matrix(folder / "Y.npz", max_bytes), written)


def _read_meta(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    with opened(path) as file:
        data = file.read(2**28)
    try:
        meta = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DataError(path, getattr(error, "lineno", None), f"no JSON: {error}") from error
    if not isinstance(meta, dict):
        refuse(path, None, "expected is an object of names and values")
    return meta


def _array(path: Path) -> Any:
    try:
        # (Mapped first: a header that promises more than the file holds is refused, not allocated.)
        return np.array(np.load(path, mmap_mode="r", allow_pickle=False))
    except Exception as error:
        raise DataError(path, None, f"damaged, or no array of numbers: {error}") from error


def _matrix(path: Path, max_bytes: int | None) -> Any:
    """A CSR matrix that is within bounds and whole."""
    if not path.exists():
        refuse(path.parent, None, f"there is no {path.name}")
    try:
        _check_members(path, most_bytes(path, max_bytes))
        found = load_npz(path)
        if found.format != "csr" or found.ndim != 2:
            refuse(path, None, f"the matrix is {found.format}; expected is csr")
        matrix: Any = csr_array(found)
        if matrix.shape[1] > MAX_FEATURES:
            refuse(path, None, f"{matrix.shape[1]} columns; at most {MAX_FEATURES} are read")
        matrix.check_format(full_check=True)
        return matrix
    except DataError:
        raise
    except Exception as error:
        # Zip files and arrays fail in a dozen ways; all of them mean this.
        raise DataError(path, None, f"damaged, or no sparse matrix: {error}") from error


def _check_members(path: Path, limit: int) -> None:
    """Raise unless arrays in a zip file are as large as their headers say, and within bounds."""
    with zipfile.ZipFile(path) as file:
        sizes = {member.filename: member.file_size for member in file.infolist()}
        refuse_bomb(path, sum(sizes.values()), limit)
        for name, size in sizes.items():
            with file.open(name) as member:
                version = np.lib.format.read_magic(member)
                read = {(1, 0): np.lib.format.read_array_header_1_0}.get(
                    version, np.lib.format.read_array_header_2_0
                )
                shape, _, dtype = read(member)
            if dtype.hasobject or int(np.prod(shape, dtype=object)) * dtype.itemsize > size:
                refuse(path, None, f"{shown(name)} promises more than it holds")


def _inside(folder: Path, name: Any) -> Path:
    """A file of the folder; a name that leads out of it is refused."""
    path = folder / str(name)
    if not isinstance(name, str) or path.parent != folder or not path.is_file():
        refuse(folder / "meta.json", None, f"there is no file {shown(name)} beside it")
    return path


def _names(folder: Path, meta: dict[str, Any], key: str) -> Any:
    names = meta.get(key)
    if names is None and f"{key}_file" in meta:
        path = _inside(folder, meta[f"{key}_file"])
        with opened(path) as file:
            names = [decoded(line, path, number, "utf-8") for number, line in numbered(file, path)]
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(n, str | int) for n in names):
        refuse(folder / "meta.json", None, f"{key!r} must be a list of names")
    if len(names) > (MAX_LABELS if key == "label_names" else MAX_FEATURES):
        refuse(folder / "meta.json", None, f"{key!r} has {len(names)} names")
    return text_array(names)


def _whole_numbers(values: Any, folder: Path, what: str) -> Any:
    try:
        return np.array(values, dtype=np.int64)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DataError(
            folder / "meta.json", None, f"{what} must be whole numbers: {error}"
        ) from error


def _split(folder: Path, split: Any) -> dict[str, Any] | None:
    """The rows of each part."""
    if split is None:
        return None
    if not isinstance(split, dict):
        refuse(folder / "meta.json", None, f"'split' must be an object, not {shown(split)}")
    if isinstance(split.get("file"), str):
        path = _inside(folder, split["file"].split()[0] if split["file"] else "")
        try:
            _check_members(path, most_bytes(path, None))
            with np.load(path, allow_pickle=False) as parts:
                return {name: parts[name] for name in parts.files}
        except DataError:
            raise
        except Exception as error:
            raise DataError(path, None, f"damaged, or no arrays of rows: {error}") from error
    parts = {name: part for name, part in split.items() if isinstance(part, dict)}
    return {name: _part(folder, name, part) for name, part in parts.items()} or None


def _part(folder: Path, name: str, part: dict[str, Any]) -> Any:
    if "range" in part:
        ends = part["range"]
        whole = isinstance(ends, list) and len(ends) == 2 and all(type(e) is int for e in ends)
        if not whole or not 0 <= ends[0] < ends[1] <= 2**31:
            refuse(folder / "meta.json", None, f"the range of {shown(name)} is {shown(ends)}")
        return np.arange(*ends)
    if "indices" in part:
        return _whole_numbers(part["indices"], folder, f"the indices of {shown(name)}")
    return _array(_inside(folder, part.get("file")))
