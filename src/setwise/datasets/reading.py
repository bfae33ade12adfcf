"""`read` takes any file of the field, by name and content; `fetch` data sets of OpenML."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np

from setwise.atomic_write import opened_whole
from setwise.blocks.folder import is_block_folder
from setwise.datasets.arff import read_arff
from setwise.datasets.dataset import Dataset
from setwise.datasets.folder import read_folder
from setwise.datasets.schema import Reader, stacked
from setwise.datasets.sparse_text import read_extreme, read_libsvm
from setwise.datasets.table import is_parquet
from setwise.datasets.table_schema import read_table
from setwise.datasets.taxonomy_schema import spread
from setwise.files import DataError, File, existing, opened, plain_name
from setwise.spelling import argument, shown
from setwise.validation import whole_number

READERS: dict[str, Reader[...]] = {
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
OPENML = "OpenML"  # stands for a file in messages
SERVER = "https://www.openml.org/api/v1"
MOST_BYTES, MOST_DESCRIPTION, PIECE = 2**30, 2**24, 2**18


def read(
    path: File,
    *,
    format: str | None = None,
    test: File | None = None,
    unseen_labels: str | None = None,
    **options: Any,
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
    unseen_labels : {"refuse", "missed"}, optional
        What a label means that only the second file has: an error, or a label that is never true in
        the first, and so missed by what is learnt from it.
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
    books: 2 rows, 1 feature, 2 labels, 1.50 labels per row, 2 distinct sets
    """
    reader = reader_of(path, format, options)
    if test is None and unseen_labels is not None:
        hint = f"{argument('unseen_labels', unseen_labels)} is for labels that only a second file"
        raise ValueError(f"{hint} has, and there is none ({argument('test', ...)})")
    data = reader(path, **options)
    return data if test is None else with_test(data, test, unseen_labels)


def reader_of(path: File, format: str | None, options: Mapping[str, Any]) -> Reader:
    """The reader of a file, which takes these options."""
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
    return reader


def recognise(path: Path) -> str:
    """The format of a file, by its name and its first lines."""
    if path.is_dir():
        if any((path / name).exists() for name in ("X.npz", "X.npy")):
            return "folder"
        if is_block_folder(path):
            reason = "a folder of blocks, which is not read whole; FolderBlocks.open opens it"
            raise DataError(path, None, f"{reason}, `setwise fit` and `setwise predict` take it")
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
        known = f"name it ({argument('format', ...)}), one of {', '.join(READERS)}"
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


def with_test(data: Dataset, test: File, unseen_labels: str | None = None) -> Dataset:
    """Two files as one data set, the second to test on; its new labels are those of both."""
    assert data.schema is not None
    if data.split is not None:
        raise ValueError("test needs a first file without a split, but it has one")
    other = data.schema.read(test, unseen_labels=unseen_labels)
    ends = data.n_rows, data.n_rows + other.n_rows

    def both(first: Any, second: Any) -> Any:
        if first is None:
            return None
        return stacked([spread(first, data.label_names, other.label_names), second])

    return replace(
        other,
        X=stacked([data.X, other.X]),
        Y=both(data.Y, other.Y),
        Y_specific=both(data.Y_specific, other.Y_specific),
        name=data.name,
        source=data.source,
        split={"train": np.arange(ends[0]), "test": np.arange(*ends)},
    )


# ------------------------------------------------------------------------------------------- OpenML
# A data set is asked for by number, or by name and version: its description is JSON, its file ARFF.
# scikit-learn's ``fetch_openml`` has one fixed server and gives a table, from which label sets and
# sparse rows would have to be made again; here the file is read by `read_arff`. What comes over the
# net is checked against the md5 of the description and only ever read as data.


def fetch(
    name_or_id: str | int,
    *,
    version: int | None = None,
    cache: File | None = None,
    url: str = SERVER,
    timeout: float = 30.0,
    max_bytes: int = MOST_BYTES,
    **options: Any,
) -> Dataset:
    """A data set of OpenML, from the cache if it was fetched before.

    Parameters
    ----------
    name_or_id : str or int
        Its number, or its name; of several with one name, the active one with the highest version.
    version : int, optional
        The version, with a name.
    cache : path, optional
        Where files are kept; by default ``setwise/openml`` in the user's cache folder
        (``$XDG_CACHE_HOME``, or ``~/.cache``).
    url : str
        The server's interface.
    timeout : float, default 30
        Seconds to wait for an answer.
    max_bytes : int
        Largest file to fetch, 1 GiB by default.
    **options
        Options of `read_arff`. By default ``labels`` are the targets of the description.

    Raises
    ------
    DataError
        If the server cannot be reached, does not have the data set, or its file is damaged.

    Examples
    --------
    >>> fetch(41465).Y.shape  # doctest: +SKIP
    (593, 6)
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "setwise" / "openml"
    folder = Path(cache or home) / (quote(urlsplit(url).netloc, safe="") or "server")
    number = _number(name_or_id, version, folder, url, timeout)
    path, address = folder / str(number) / "data.arff", f"{url}/json/data/{number}"
    answer = _answer(address, path.with_name("description.json"), timeout)
    about = answer.get("data_set_description") if isinstance(answer, dict) else None
    if not isinstance(about, dict):
        raise DataError(OPENML, None, f"{address} gives no description of a data set")
    if str(about.get("format", "ARFF")).lower() not in ("arff", "sparse_arff"):
        found = shown(about.get("format"))
        raise DataError(OPENML, None, f"the format is {found}; only ARFF is read")
    if not path.exists():
        source = str(about.get("url", ""))
        _download(source, path, about.get("md5_checksum"), timeout, max_bytes)
    options.setdefault("labels", _names(about.get("default_target_attribute")))
    dropped = _names(about.get("row_id_attribute")) + _names(about.get("ignore_attribute"))
    options.setdefault("drop", dropped)
    if not options["labels"]:
        how = argument("labels", [...])
        raise DataError(path, None, f"OpenML names no targets; name the labels ({how})")
    title = str(about.get("name", number))
    where = f"OpenML {number}, version {about.get('version')}"
    return replace(read_arff(path, **options), name=title, source=where)


def _number(
    name_or_id: str | int, version: int | None, folder: Path, url: str, timeout: float
) -> int:
    """The number of a data set."""
    if not isinstance(name_or_id, str) or name_or_id.isdigit():
        if version is not None:
            raise ValueError("a version goes with a name: a number is one version already")
        return whole_number(int(name_or_id), "the number of a data set", 1)
    chosen = "" if version is None else f"/data_version/{whole_number(version, 'version', 1)}"
    name = quote(name_or_id, safe="") + chosen
    address = f"{url}/json/data/list/data_name/{name}/status/active/limit/100"
    kept = folder / "names" / f"{hashlib.sha256(address.encode()).hexdigest()[:16]}.json"
    try:
        found = _answer(address, kept, timeout)["data"]["dataset"]
        return int(max(found, key=lambda row: int(row["version"]))["did"])
    except DataError:
        raise
    except (KeyError, ValueError, TypeError) as error:
        raise DataError(OPENML, None, f"no data set is named {shown(name_or_id)}") from error


def _names(value: Any) -> list[str]:
    """Names that are a list, or text with commas."""
    parts = value if isinstance(value, list) else str(value or "").split(",")
    return [str(part).strip() for part in parts if str(part).strip()]


def _answer(address: str, kept: Path, timeout: float) -> Any:
    """An answer in JSON, kept for the next time."""
    if not kept.exists():
        _download(address, kept, None, timeout, MOST_DESCRIPTION)
    try:
        return json.loads(kept.read_bytes())
    except (ValueError, RecursionError) as error:
        kept.unlink(missing_ok=True)
        raise DataError(OPENML, None, f"{address} gives no JSON: {error}") from error


def _download(address: str, path: Path, md5: Any, timeout: float, max_bytes: int) -> None:
    """Fetch a file: it appears whole and checked, or not at all."""
    if urlsplit(address).scheme not in ("http", "https"):
        reason = f"an address must begin with http:// or https://, but it is {shown(address)}"
        raise DataError(OPENML, None, reason)
    path.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.md5(usedforsecurity=False), 0
    request = urllib.request.Request(address, headers={"User-Agent": "setwise"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer, opened_whole(path) as file:
            promised = str(answer.headers.get("Content-Length") or "")
            while piece := answer.read(PIECE):
                size += len(piece)
                if size > max_bytes:
                    reason = f"{address} is larger than {max_bytes} bytes (max_bytes)"
                    raise DataError(OPENML, None, reason)
                digest.update(piece)
                file.write(piece)
            if promised.isdigit() and size < int(promised):
                reason = f"{address} was cut off after {size} of {promised} bytes"
                raise DataError(OPENML, None, reason)
            if md5 and digest.hexdigest() != str(md5).lower():
                found = f"its md5 is {digest.hexdigest()}, not {shown(md5)}"
                raise DataError(OPENML, None, f"{address} was damaged on the way: {found}")
    except urllib.error.HTTPError as error:
        try:
            said = shown(json.loads(error.read(PIECE))["error"]["message"])
        except (ValueError, OSError, HTTPException, KeyError, TypeError):
            said = str(error.reason)
        raise DataError(OPENML, None, f"{address} says {error.code}: {said}") from error
    except (HTTPException, TimeoutError, urllib.error.URLError, ConnectionError) as error:
        what = f"{urlsplit(address).netloc} cannot be reached ({error})"
        rest = "without a network only what was fetched before can be read"
        raise DataError(OPENML, None, f"{what}; {rest}") from error
