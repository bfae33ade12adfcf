"""Blocks in the files of a folder, memory-mapped, and how they are written.

``blocks.json`` says what there is: the names of features and labels, and for each block its rows
and the size and checksum of each of its files. These are plain NumPy arrays: ``00000.X.npy``, or of
sparse inputs ``00000.X.data.npy``, ``.X.indices.npy`` and ``.X.indptr.npy``; ``.Y.indices.npy`` and
``.Y.indptr.npy``, the labels of each row; ``.weights.npy``. A block counts from when blocks.json
has it, which is written whole or not at all: so writing can go on where it was interrupted.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from setwise.atomic_write import opened_whole, remove_partial, write_whole
from setwise.blocks.block import Block, Change, LocalBlocks
from setwise.files import DataError, File, existing, read_json
from setwise.labels import LabelNames
from setwise.sparse import tidied, tidy_sets, well_formed
from setwise.spelling import counted, shown
from setwise.threads import thread_count
from setwise.validation import real_vector, require_columns

MANIFEST, VERSION = "blocks.json", 1
TYPES = ("float32", "float64")
SPARSE, DENSE = ("X.data", "X.indices", "X.indptr"), ("X",)
OTHERS = ("Y.indices", "Y.indptr", "weights")


def is_block_folder(path: File) -> bool:
    """Whether a path is a folder of blocks."""
    return (Path(path) / MANIFEST).is_file()


@dataclass(frozen=True, eq=False)
class FolderBlocks(LocalBlocks):
    """Blocks in a folder that `BlockWriter` wrote, of which only a few are in memory at a time.

    A block is checked against its checksums when it is first read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     writer = BlockWriter(f"{place}/rows", {"n_features": 2, "label_names": ["a", "b"]})
    ...     writer.add(np.eye(2), [[1, 0], [1, 1]])
    ...     blocks = writer.finish()
    ...     print(blocks.n_rows, blocks.load(0).sets.toarray().tolist())
    2 [[1, 0], [1, 1]]
    """

    folder: Path = field(default=Path(), kw_only=True)
    about: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    changes: tuple[Change, ...] = field(default=(), kw_only=True)
    # Numbers of the blocks that are known to be whole.
    whole: set[int] = field(default_factory=set, kw_only=True)

    @classmethod
    def open(cls, path: File) -> FolderBlocks:
        """The blocks of a folder; a ValueError that names it if they are not complete."""
        folder = existing(path)
        manifest = folder / MANIFEST
        if not manifest.is_file():
            raise DataError(folder, None, f"no folder of blocks: there is no {MANIFEST}")
        about = read_json(manifest)
        if about.get("setwise_blocks") != VERSION or not _is_sound(about):
            raise DataError(manifest, None, "damaged, or written by another version of setwise")
        if not about.get("complete"):
            reason = "not complete: the conversion that writes it was interrupted; run it again"
            raise DataError(folder, None, reason)
        names = LabelNames(about["label_names"])
        features = about.get("feature_names")
        return cls(names, about["n_features"], features, folder=folder, about=about)

    def __len__(self) -> int:
        return len(self.about["blocks"])

    def __str__(self) -> str:
        sizes = {"row": self.n_rows, "feature": self.n_features, "label": self.n_labels}
        counts = ", ".join(counted(size, noun) for noun, size in sizes.items())
        missing = "; missing values" if self.n_missing else ""
        return f"{self.name}: {counts} in {counted(len(self), 'block')}{missing}"

    @property
    def name(self) -> str:
        """What the data is called."""
        return str(self.about.get("name") or self.folder.name)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(block["rows"] for block in self.about["blocks"])

    @property
    def n_missing(self) -> int:
        """Number of inputs that are NaN."""
        return sum(block["missing"] for block in self.about["blocks"])

    def changed(self, change: Change) -> FolderBlocks:
        return replace(self, changes=(*self.changes, change))

    def load(self, number: int) -> Block:
        self._ask_for(number + thread_count())
        entry = self.about["blocks"][number]
        arrays = {name: self._mapped(number, name) for name in entry["files"]}
        shape = entry["rows"], self.n_features
        sparse = [arrays[name] for name in SPARSE if name in arrays]
        places = arrays["Y.indices"], arrays["Y.indptr"]
        try:
            inputs = csr_array(tuple(sparse), shape) if sparse else arrays["X"]
            sets = csr_array(
                (np.ones(len(places[0]), np.uint8), *places), (shape[0], self.n_labels)
            )
            if number not in self.whole:
                for name, matrix in (("X", inputs), ("Y", sets)):
                    if issparse(matrix):
                        well_formed(matrix, name)
                self.whole.add(number)
        except ValueError as error:
            reason = f"block {number} is damaged: {error}"
            raise DataError(self.folder, None, reason) from error
        block = Block(inputs, sets, arrays["weights"])
        for change in self.changes:
            block = change(number, block)
        return block

    def _mapped(self, number: int, name: str) -> Any:
        path = self.folder / file_name(number, name)
        if not path.is_file():
            raise DataError(self.folder, None, f"block {number} is not whole: no file {path.name}")
        if number not in self.whole:
            self._verify(number, name, path)
        try:
            array: Any = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise DataError(path, None, f"damaged, or no array: {error}") from error
        return np.asarray(array)

    def _ask_for(self, number: int) -> None:
        """Let the system read a block ahead while others are computed with; where it can."""
        if number >= len(self):
            return
        for name in self.about["blocks"][number]["files"]:
            with suppress(AttributeError, OSError):
                file = os.open(self.folder / file_name(number, name), os.O_RDONLY)
                try:
                    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_WILLNEED)
                finally:
                    os.close(file)

    def _verify(self, number: int, name: str, path: Path) -> None:
        size, expected = self.about["blocks"][number]["files"][name]
        found = 0
        with open(path, "rb") as file:
            while piece := file.read(2**22):
                found = zlib.crc32(piece, found)
        if path.stat().st_size != size or found != expected:
            reason = f"damaged: size or checksum is not that of {MANIFEST}; convert the data again"
            raise DataError(path, None, reason)


def file_name(number: int, name: str) -> str:
    """The file of an array of a block."""
    return f"{number:05}.{name}.npy"


def _is_sound(about: Mapping[str, Any]) -> bool:
    """Whether a manifest has what it should, of the right kinds."""
    names, blocks, features = about.get("label_names"), about.get("blocks"), about.get("n_features")
    return (
        isinstance(names, list)
        and len(names) > 0
        and all(isinstance(name, str | int) for name in names)
        and type(features) is int
        and features > 0
        and isinstance(blocks, list)
        and all(isinstance(block, dict) and _is_block(block) for block in blocks)
    )


def _is_block(block: Mapping[str, Any]) -> bool:
    files, rows = block.get("files"), block.get("rows")
    return (
        type(rows) is int
        and rows >= 0
        and isinstance(files, dict)
        and set(files) in ({*SPARSE, *OTHERS}, {*DENSE, *OTHERS})
        and all(isinstance(pair, list) and len(pair) == 2 for pair in files.values())
    )


class BlockWriter:
    """Writes a folder of blocks, one after the other; what was written stays where it is cut off.

    Parameters
    ----------
    folder : path
        A new one, or one that was begun with the same ``about``.
    about : mapping
        What blocks.json says of all blocks: ``n_features``, ``label_names``, and whatever tells
        this source from another.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     writer = BlockWriter(f"{place}/rows", {"n_features": 2, "label_names": ["a", "b"]})
    ...     for _ in range(3):
    ...         writer.add(np.eye(2), [[1, 0], [1, 1]])
    ...     blocks = writer.finish()
    ...     print(len(blocks), writer.n_rows)
    3 6
    """

    def __init__(self, folder: File, about: Mapping[str, Any]):
        self.folder = Path(folder)
        self.about = json.loads(json.dumps({"setwise_blocks": VERSION, **about}))
        if not _is_sound({**self.about, "blocks": []}):
            raise ValueError(
                "about must have n_features, a whole number above 0, and label_names, a list of "
                "names or numbers"
            )
        self.blocks: list[dict[str, Any]] = []
        manifest = self.folder / MANIFEST
        if manifest.is_file():
            self._resume(read_json(manifest))
        elif self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise DataError(folder, None, "this is there already, and is no folder of blocks")
        else:
            self.folder.mkdir(exist_ok=True)
            self._write_manifest(False)

    def _resume(self, begun: dict[str, Any]) -> None:
        if begun.get("complete"):
            raise DataError(self.folder, None, "this is there already: remove it first")
        own = {key: value for key, value in begun.items() if key not in ("blocks", "complete")}
        if own != self.about or not _is_sound(begun):
            differ = [key for key in {*own, *self.about} if own.get(key) != self.about.get(key)]
            raise DataError(
                self.folder, None,
                f"this was begun from something else ({', '.join(sorted(differ))}): remove it, or "
                f"write to another folder",
            )  # fmt: skip
        remove_partial(self.folder)
        self.blocks = begun["blocks"]

    @property
    def n_rows(self) -> int:
        """Rows that are written."""
        return sum(block["rows"] for block in self.blocks)

    def add(self, X: Any, Y: Any, weights: Any = None) -> None:
        """Write a block: inputs, dense or CSR, label sets, and weights of its rows."""
        sets: Any = tidy_sets(Y if issparse(Y) else csr_array(np.atleast_2d(Y)), "Y")
        X = tidied(X, "X") if issparse(X) else np.asarray(X)
        n, kind = sets.shape[0], str(X.dtype)
        if X.shape != (n, self.about["n_features"]) or kind not in TYPES:
            raise ValueError(
                f"a block must have inputs of shape ({n}, {self.about['n_features']}) and type "
                f"float32 or float64, but they are {shown(X.shape)} of {kind}"
            )
        require_columns(sets.shape, len(self.about["label_names"]), "Y")
        weights = real_vector(np.ones(n) if weights is None else weights, n, "weights")
        if (weights < 0.0).any():
            raise ValueError("weights must not be negative")
        arrays = (
            dict(zip(SPARSE, (X.data, X.indices, X.indptr), strict=True))
            if issparse(X)
            else {"X": np.ascontiguousarray(X)}
        )
        arrays |= dict(zip(OTHERS, (sets.indices, sets.indptr, weights), strict=True))
        number = len(self.blocks)
        files = {name: self._write(number, name, array) for name, array in arrays.items()}
        values = X.data if issparse(X) else X
        missing = int(np.count_nonzero(np.isnan(values)))
        self.blocks.append({"rows": n, "missing": missing, "files": files})
        self._write_manifest(False)

    def finish(self) -> FolderBlocks:
        """All blocks are written: from now on they can be opened."""
        self._write_manifest(True)
        return FolderBlocks.open(self.folder)

    def _write(self, number: int, name: str, array: Any) -> list[int]:
        path = self.folder / file_name(number, name)
        with opened_whole(path) as file:
            sums = _Summed(file)
            np.lib.format.write_array(sums, np.ascontiguousarray(array), allow_pickle=False)
        return [sums.size, sums.checksum]

    def _write_manifest(self, complete: bool) -> None:
        text = json.dumps({**self.about, "complete": complete, "blocks": self.blocks}, indent=1)
        write_whole(self.folder / MANIFEST, text.encode())


class _Summed:
    """A file that knows the size and the checksum of what was written to it."""

    def __init__(self, file: Any):
        self.file, self.size, self.checksum = file, 0, 0

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self.size += view.nbytes
        self.checksum = zlib.crc32(view, self.checksum)
        return self.file.write(data)
