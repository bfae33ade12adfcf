"""One process at a time in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, or raise a ValueError if another run does.

    The lock is the operating system's and belongs to the open file, so it ends with the process,
    however that ends. The file stays: what it holds is the process to name in the message.
    """
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if not _taken(descriptor):
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            raise ValueError(
                f"another run is at work in {str(folder)!r} (process {holder}); wait for it, or "
                f"give this study a folder of its own"
            )
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    """Whether the lock is now ours."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            # Far behind what is written, which others may then read.
            os.lseek(descriptor, 2**20, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # pyright: ignore
        except OSError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
