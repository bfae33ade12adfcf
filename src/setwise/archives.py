"""Arrays in zip files: no more than they say, and within bounds, before any of them is read."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

import numpy as np
from numpy.lib import format as npy

from setwise.files import DataError, refuse_bomb
from setwise.spelling import shown

# Objects made from JSON take about so many times the memory of its text.
COST_OF_JSON = 16
SCHEMA = "schema.json"


def refuse_large_arrays(path: Path, max_bytes: int | None = None) -> None:
    """Raise unless arrays in an .npz are as large as their headers say, and within bounds."""
    with ZipFile(path) as file:
        refuse_bomb(path, sum(member.file_size for member in file.infolist()), max_bytes)
        for member in file.infolist():
            _check_array(file, member.filename, path)


def refuse_large_model(path: Path, data: bytes, max_bytes: int | None = None) -> None:
    """Raise unless all that is made from a skops file is within bounds.

    An array counts as often as it is read, and JSON by what is made of it.
    """
    with ZipFile(io.BytesIO(data)) as file:
        sizes = {member.filename: member.file_size for member in file.infolist()}
        whole = sum(member.file_size for member in file.infolist())
        refuse_bomb(path, whole + COST_OF_JSON * sizes[SCHEMA], max_bytes)
        for name in sizes:
            # (By what it holds: skops reads a file of any name as whatever its JSON says.)
            with file.open(name) as member:
                start = member.read(len(npy.MAGIC_PREFIX))
            if start == npy.MAGIC_PREFIX:
                _check_array(file, name, path)
            elif start.startswith(b"PK"):
                sizes[name] += _unpacked(file, name, path)
        read = _arrays_read(json.loads(file.read(SCHEMA)))
    refuse_bomb(path, sum(sizes.get(name, 0) for name in read), max_bytes)


def _unpacked(file: ZipFile, name: str, path: Path) -> int:
    """The bytes of all arrays in an .npz that is in a file."""
    with file.open(name) as member, ZipFile(member) as inner:
        for part in inner.namelist():
            _check_array(inner, part, path)
        return sum(part.file_size for part in inner.infolist())


def _check_array(file: ZipFile, name: str, path: Path) -> None:
    """Raise for an .npy of objects, or whose header promises more than there is."""
    with file.open(name) as member:
        shape, dtype = _header(member)
    if dtype.hasobject:
        raise DataError(path, None, f"{shown(name)} holds Python objects, which could run code")
    if int(np.prod(shape, dtype=object)) * dtype.itemsize > file.getinfo(name).file_size:
        raise DataError(path, None, f"{shown(name)} promises more than it holds")


def _header(file: IO[bytes]) -> tuple[Any, Any]:
    is_first = npy.read_magic(file) == (1, 0)
    read = npy.read_array_header_1_0 if is_first else npy.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype


def _arrays_read(schema: Any) -> list[str]:
    """The file of each array that skops would read: one for each object that names it."""
    found, waiting = set(), [schema]
    while waiting:
        state = waiting.pop()
        if isinstance(state, dict):
            if isinstance(state.get("file"), str):
                found.add((state["file"], str(state.get("__id__"))))
            waiting += state.values()
        elif isinstance(state, list):
            waiting += state
    return [name for name, _ in found]
