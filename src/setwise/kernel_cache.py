"""Where compiled kernels are kept, and when they are compiled again.

Numba keeps a compiled function until the file it stands in changes. Kernels call functions of other
files, so that is not enough: here the key is the source of the kernel's module *and of every module
of the package it imports*, directly or not. A kernel is therefore never stale, and trees with
different sources can share one folder.

The folder is ``NUMBA_CACHE_DIR`` where that is set, else the user's cache or, where that cannot be
written, the temporary folder. It must belong to the user, or to root, and nobody else may write to
it: what is read back is run. One that can only be read serves too, where there is no other. Kernels
that cannot be kept are compiled anew in each process, with one warning.
Kernels of sources that no process has used for thirty days are removed when new ones are kept.

Installing from source compiles most of them, so that first calls need not (`hatch_build.py`). They
lie in the package itself, are read where the folder has none, and are trusted as the code beside
them is. Machine code is bound to the processor, to the release of numba and to that of Python: all
are part of its key. A wheel built elsewhere may therefore carry kernels that do not fit. They are
left alone, and others are compiled and kept as if there were none.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

import numba
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    _CacheLocator,
)
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys

PACKAGE = Path(__file__).parent
# The kernels that were compiled at installation, with ``NUMBA_CACHE_DIR`` at the folder above.
INSTALLED = PACKAGE / "compiled" / "setwise"
# Seconds after which the kernels of a source that nothing has used are removed.
UNUSED = 30 * 24 * 3600.0
# Imports as they begin a line: `from MODULE import ITEMS` (or in brackets), `import LIST`.
IMPORTS = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|.*)|import[ \t]+(.*))", re.MULTILINE
)
NAMES = re.compile(r"[\w.]+")
HINT = (
    "setwise cannot keep compiled kernels, so every process compiles them again; set "
    "NUMBA_CACHE_DIR to a folder of your own, with room, that only you can write to"
)


def cached(dispatcher):
    """The compiled function, kept on disk where there is a place for it."""
    dispatcher._cache = _Later(dispatcher)
    return dispatcher


@cache
def cache_folder() -> Path | None:
    """The folder of compiled kernels, made if need be, or one to be read; None if there is none."""
    places = _candidates()
    return next((f for usable in (is_written, _is_read) for f in places if usable(f)), None)


def writable_folder() -> Path:
    """The folder of compiled kernels; a ValueError where no more can be kept there."""
    folder = cache_folder()
    if folder is None or not is_written(folder):
        raise ValueError(HINT)
    return folder


def is_written(folder: Path) -> bool:
    """Whether kernels can be kept there; it is made if need be."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return _is_trusted(folder)
    except OSError:
        return False


def _is_read(folder: Path) -> bool:
    """Whether kernels that somebody else has kept there can be read."""
    try:
        return bool(os.listdir(folder)) and _is_trusted(folder)
    except OSError:
        return False


_lost: list[str] = []


def _say_lost(reason: str = "") -> None:
    """Once in a process, with the first reason."""
    if not _lost:
        _lost.append(HINT + reason)
        warnings.warn(HINT + reason, RuntimeWarning, stacklevel=3)


def lost() -> str:
    """What was said of a kernel that this process could not keep; nothing if it kept all."""
    return "".join(_lost)


def _candidates() -> list[Path]:
    if numba.config.CACHE_DIR:  # type: ignore
        return [Path(numba.config.CACHE_DIR) / "setwise"]  # type: ignore
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # Without a home, `~` stays as it is.
    places = [Path(user) / "setwise"] if os.path.isabs(user) else []
    try:
        shared = Path(tempfile.gettempdir())
    except OSError:
        return places
    name = f"setwise-{os.getuid()}" if hasattr(os, "getuid") else "setwise"
    return [*places, shared / name]


def _is_trusted(path: Path) -> bool:
    """Whether nobody but the user and root can have written it: what is read back is run."""
    if not hasattr(os, "getuid"):
        return True
    status, owners = path.stat(), (0, os.getuid())
    is_owned = path.lstat().st_uid in owners and status.st_uid in owners
    return is_owned and not status.st_mode & 0o022


@cache
def _are_trusted(folder: Path) -> bool:
    """The same of all kernels of a source; below a folder that only the user can open, they are."""
    above = folder.parent.stat()
    if not hasattr(os, "getuid") or (above.st_uid == os.getuid() and not above.st_mode & 0o077):
        return True
    return all(map(_is_trusted, (folder, *folder.iterdir())))


@cache
def source_stamp(file: Path) -> str:
    """A digest of the source of a module and of all modules of the package that it imports."""
    digest = hashlib.sha256()
    for path in sorted(_reached(file)):
        digest.update(str(path.name).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _reached(file: Path) -> set[Path]:
    found, waiting = {file}, [file]
    while waiting:
        fresh = _imported(waiting.pop()) - found
        found |= fresh
        waiting += fresh
    return found


@cache
def _imported(file: Path) -> frozenset[Path]:
    """The modules of the package named in the imports of a file, at any depth of it."""
    names = set()
    # (Not by a parser: that would take longer than all else in importing the package.)
    for module, items, listed in IMPORTS.findall(file.read_text(encoding="utf-8")):
        names |= {module, *(f"{module}.{item}" for item in NAMES.findall(items))}
        names |= set(NAMES.findall(listed))
    ours = (name.split(".")[1:] for name in names if name.split(".")[0] == PACKAGE.name)
    paths = (PACKAGE.joinpath(*parts) for parts in ours if parts)
    files = (p.with_suffix(".py") if not p.is_dir() else p / "__init__.py" for p in paths)
    return frozenset(path for path in files if path.is_file())


def prune(folder: Path, unused: float = UNUSED) -> None:
    """Remove the kernels that were last used so many seconds ago, as far as that can be done.

    A process that has just begun to use them compiles them again.
    """
    for old in folder.iterdir():
        with suppress(OSError):
            is_source = re.fullmatch("[0-9a-f]{20}", old.name)
            if is_source and time.time() - old.stat().st_mtime > unused:
                shutil.rmtree(old)


class _Locator(_CacheLocator):
    """A folder for each source a kernel was compiled from; its time is when it was last used."""

    def __init__(self, function, file: str):
        self._line = function.__code__.co_firstlineno
        self._stamp = source_stamp(Path(file))
        with suppress(OSError):
            os.utime(self.get_cache_path())

    def ensure_cache_path(self) -> None:
        path = Path(self.get_cache_path())
        if not path.exists():
            prune(path.parent)
        super().ensure_cache_path()

    def get_cache_path(self) -> str:
        return str((cache_folder() or INSTALLED) / self._stamp[:20])

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function, file: str):
        return cls(function, file)


class _Later:
    """The cache of a kernel before its first call, which makes it: a process calls few kernels."""

    def __init__(self, dispatcher):
        self._dispatcher = dispatcher

    def __getattr__(self, name: str):
        """What the cache has, now that it is asked."""
        kernel = self._dispatcher
        kernel._cache = _Cache(kernel.py_func)
        return getattr(kernel._cache, name)


class _Kept(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012


class _Cache(FunctionCache):
    _impl_class = _Kept

    def __init__(self, function):
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        folder = str(INSTALLED / stamp[:20])
        self._installed = IndexDataCacheFile(folder, self._impl.filename_base, stamp)

    def load_overload(self, sig, target_context):
        """A kept kernel, or None.

        It needs nothing of what the compiler knows of types and functions, which would take longer
        to load than all kernels of a fit.
        """
        rtsys.initialize(target_context)
        key, is_trusted, found = self._index_key(sig, target_context.codegen()), True, None
        with suppress(OSError):
            is_trusted = _are_trusted(Path(self.cache_path))
            found = self._cache_file.load(key) if is_trusted else None
        if found is None:
            with suppress(OSError):
                found = self._installed.load(key)
        if found is None and not is_trusted:
            _say_lost()
        return None if found is None else self._impl.rebuild(target_context, found)

    def save_overload(self, sig, data):
        """Keep a kernel, where there is room and it may be written."""
        reason = ""
        if cache_folder() is not None:
            try:
                return super().save_overload(sig, data)
            except OSError as error:
                reason = f" ({error})"
        _say_lost(reason)


def count_installed() -> tuple[int, int]:
    """How many kernels were compiled at installation, and how many of them this process can run."""
    release = ".py{}{}{}".format(*sys.version_info[:2], getattr(sys, "abiflags", ""))
    machine = cpu_target.target_context.codegen().magic_tuple()  # type: ignore
    stamps = {stamp[:20]: stamp for stamp in map(source_stamp, PACKAGE.rglob("*.py"))}
    fitting = 0
    for file in INSTALLED.rglob(f"*{release}.nbi"):
        stamp = stamps.get(file.parent.name)
        with suppress(OSError):
            kept = IndexDataCacheFile(str(file.parent), file.stem, stamp)._load_index()
            fitting += sum(key[1] == machine for key in kept)
    return len([*INSTALLED.rglob("*.nbc")]), fitting
