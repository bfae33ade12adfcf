"""`read`: any file of the field, its format recognised by name and content."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from setwise.datasets.arff import read_arff
from setwise.datasets.dataset import Dataset
from setwise.datasets.folder import read_folder
from setwise.datasets.schema import stacked
from setwise.datasets.sparse_text import read_extreme, read_libsvm
from setwise.datasets.table import is_parquet, read_table
from setwise.files import DataError, File, existing, opened, plain_name

READERS: dict[str, Callable[..., Dataset]] = {
    "arff": read_arff,
    "libsvm": read_libsvm,
    "extreme": read_extreme,
    "table": read_table,
    "folder": read_folder,
}
SUFFIXES = {
    ".arff": "arff",
    ".csv": "table",
    ".tsv": "table",
    ".tab": "table",
    ".parquet": "table",
    ".pq": "table",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
}
_SIZES = re.compile(rb"\s*\d+\s+\d+\s+\d+\s*")
_PAIRS = re.compile(rb"([^\s:]+)?([ \t]+\d+:\S+)+\s*(#.*)?|\d+:\S+([ \t]+\d+:\S+)*\s*")
SNIFFED = 2**16


def read(
    path: File, *, format: str | None = None, test: File | None = None, **options: Any
) -> Dataset:
    r"""Read a file or folder into a `Dataset`.

    ============  ==================================================================  ============
    format        what                                                                options of
    ============  ==================================================================  ============
    ``arff``      ARFF of Mulan (with XML), MEKA (``-C n``) and Clus (hierarchical)   `read_arff`
    ``libsvm``    ``label,label index:value ...``                                     `read_libsvm`
    ``extreme``   the same below a line ``n d l``                                     `read_extreme`
    ``table``     CSV, TSV and Parquet                                                `read_table`
    ``folder``    X.npz or X.npy, Y.npz and meta.json                                 `read_folder`
    ============  ==================================================================  ============

    Files whose names end in .gz, .bz2, .xz (and .zst from Python 3.14 on) are unpacked on the way.

    Parameters
    ----------
    path : path
        What to read.
    format : str, optional
        One of the formats above; by default recognised by the name and the first lines.
    test : path, optional
        A second file with the same columns: its rows follow as the "test" part of the split, those
        of the first are "train".
    **options
        Options of the format's reader. Those of several formats:

        - ``dtype``, "float64" or "float32": the type of X.
        - ``encoding``, by default "utf-8": of names and text.
        - ``unknown_labels``, "refuse" or "leave_out": what is done with a row that has an unknown
          label ('?').
        - ``max_bytes``: how much a compressed file may unfold to, by default 256 MiB and 200 times
          its size.

    Returns
    -------
    Dataset
        Its ``schema`` reads other files into the same columns.

    Raises
    ------
    DataError
        If the file is malformed; a ValueError that names the file and the line.
    ValueError
        If an option is unknown or impossible.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "books.csv")
    ...     _ = file.write_text("pages,tags\n120,art;law\n80,law\n")
    ...     print(read(file, label_column="tags", separator=";"))
    books: 2 rows, 1 feature, 2 labels, 1.50 labels a row, 2 distinct sets
    """
    found = existing(path)
    kind = recognise(found) if format is None else format
    if kind not in READERS:
        raise ValueError(f"format must be one of {', '.join(READERS)}, but it is {kind!r}")
    reader = READERS[kind]
    known = [name for name in inspect.signature(reader).parameters if name != "path"]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise ValueError(
            f"the format {kind!r} has no option {', '.join(unknown)}; it has {', '.join(known)}"
        )
    data = reader(path, **options)
    return data if test is None else with_test(data, test)


def recognise(path: Path) -> str:
    """The format of a file, by its name and its first lines."""
    if path.is_dir():
        if any((path / name).exists() for name in ("X.npz", "X.npy")):
            return "folder"
        raise DataError(
            path, None, "a folder without X.npz and X.npy; expected is one of its files"
        )
    kind = SUFFIXES.get(os.path.splitext(plain_name(path))[1])
    if kind in ("arff", "table"):
        return kind
    if is_parquet(path):
        return "table"
    with opened(path) as file:
        head = file.read(SNIFFED).removeprefix(b"\xef\xbb\xbf")
    kind = _by_content(head) or kind
    if kind is None:
        known = f"name it (format=...), one of {', '.join(READERS)}"
        raise DataError(path, None, f"the format is not recognised; {known}")
    return kind


def _by_content(head: bytes) -> str | None:
    lines = [line for line in head.splitlines()[:100] if line.strip()]
    if _SIZES.fullmatch(lines[0] if lines else b""):
        return "extreme"
    plain = [line for line in lines if not line.lstrip().startswith(b"%")]
    if plain and plain[0].lstrip().lower().startswith((b"@relation", b"@attribute")):
        return "arff"
    rows = [line for line in lines if not line.startswith(b"#")]
    # (The last of many lines may be cut.)
    checked = rows[: min(20, max(len(rows) - 1, 1))]
    if checked and all(map(_PAIRS.fullmatch, checked)):
        return "libsvm"
    return None


def with_test(data: Dataset, test: File) -> Dataset:
    """Two files as one data set, the second to test on."""
    assert data.schema is not None
    if data.split is not None:
        raise ValueError("test needs a first file without a split, but it has one")
    other = data.schema.read(test)
    ends = data.n_rows, data.n_rows + other.n_rows
    specific = None
    if data.Y_specific is not None:
        specific = stacked([data.Y_specific, other.Y_specific])
    return replace(
        data,
        X=stacked([data.X, other.X]),
        Y=stacked([data.Y, other.Y]),
        Y_specific=specific,
        split={"train": np.arange(ends[0]), "test": np.arange(*ends)},
    )
