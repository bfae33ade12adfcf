"""A folder that one run works in at a time, and that is of one piece of work."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from setwise.atomic_write import naming, remove_partial, write_whole

try:
    import fcntl
except ImportError:  # (Windows, where nobody looks whether another run is at work.)
    fcntl = None

LOCK = ".lock"
# Values up to this many characters, fewer than a digest has, are shown where two runs differ.
SHOWN = 32


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two descriptions of work, by name; short values are shown."""
    different = []
    for name in dict.fromkeys([*before, *now]):
        old, new = (json.dumps(of.get(name, "nothing")) for of in (before, now))
        if old != new:
            short = max(len(old), len(new)) <= SHOWN
            different.append(f"{name}: {old}, now {new}" if short else f"{name}: another")
    return different


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, or raise a ValueError if another run does, or if it is a file.

    It is made if it is not there. The lock is the operating system's and belongs to the open file,
    so it ends with the process, however that ends. The file holds the process to name in the
    message, and is gone at the end; so are folders that were made here and are still empty.
    """
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise ValueError(f"folder must be a folder, but {str(place)!r} is a file")
    new = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _lock_of(folder):
            yield
    finally:
        for place in new:
            with suppress(OSError):
                place.rmdir()


@contextmanager
def _lock_of(folder: Path) -> Iterator[None]:
    path, mine = folder / LOCK, False
    while not mine:
        with open(path, "a+") as file:
            _take(file, folder)
            # Another run may have ended, and removed the file, since it was opened.
            with suppress(FileNotFoundError):
                mine = os.path.samestat(os.fstat(file.fileno()), path.stat())
            if not mine:
                continue
            with naming(path):
                file.truncate(0)
                file.write(f"{os.getpid()}\n")
                file.flush()
            try:
                yield
            finally:
                with suppress(OSError):
                    path.unlink()


def _take(file: Any, folder: Path) -> None:
    """Take the lock of an open file, or raise, naming the process that has it."""
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        raise ValueError(
            f"another run is at work in {str(folder)!r} (process {file.read().strip() or '?'})"
            f"; wait for it, or give this run a folder of its own"
        ) from None


@contextmanager
def begun_in(folder: Path, identity: Mapping[str, Any], noun: str) -> Iterator[Path]:
    """A locked folder of one piece of work, new or begun before; raises if it is of another.

    The file ``{noun}.json`` in it says what the work is.
    """
    with locked(folder):
        file = folder / f"{noun}.json"
        if not file.exists():
            _refuse_others(folder, noun)
            write_whole(file, json.dumps(identity, indent=1).encode())
        try:
            different = differences(json.loads(file.read_text()), identity)
        except ValueError as error:
            raise ValueError(f"{str(file)!r} cannot be read: {error}") from None
        if different:
            raise ValueError(
                f"{str(folder)!r} holds another {noun} and is left as it is. What differs: "
                f"{'; '.join(different)}. Choose another folder, or remove this one to begin anew"
            )
        remove_partial(folder)
        yield folder


def _refuse_others(folder: Path, noun: str) -> None:
    """Raise for a folder with something else in it."""
    own = (LOCK, f".{noun}.json.")
    others = sorted(one.name for one in folder.iterdir() if not one.name.startswith(own))
    if others:
        raise ValueError(
            f"{str(folder)!r} holds no {noun} but is not empty (there is {others[0]!r}); name a "
            f"new or an empty folder"
        )
