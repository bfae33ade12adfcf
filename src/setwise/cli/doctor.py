"""`setwise doctor`: versions, threads, cache and extras, to paste into a report of a problem."""

from __future__ import annotations

import os
import platform
import re
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from typing import Any

from setwise.cli.options import command, say

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


# Extras of those who work on setwise itself.
OURS = ("dev", "docs", "examples")


@command()
def doctor(*, json: bool = False) -> None:
    r"""Print versions and settings, to paste into a problem report.

    Lists versions, threads, where compiled code is, and optional packages. It mentions no other
    paths, and nothing is sent anywhere.

    \b
    Examples:
      setwise doctor
      setwise doctor --json

    Exit status: 0.
    """
    found = state()
    lines = [f"{name:12s} {_said(value)}" for name, value in found.items()]
    say(json, found, "\n".join(lines))


def state() -> dict[str, Any]:
    """What `setwise doctor` prints, as JSON."""
    from setwise import __version__
    from setwise.kernel_cache import cache_folder, is_written
    from setwise.threads import thread_count

    needed, extras = requirements()
    cache = cache_folder()
    kept = "nowhere: every process compiles again" if cache is None else str(cache)
    kept += "" if cache is None or is_written(cache) else " (only read)"
    files = [] if cache is None else [file for file in cache.rglob("*") if file.is_file()]
    return {
        "setwise": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "threads": thread_count(),
        "processors": os.cpu_count(),
        "set by": {name: os.environ[name] for name in THREADS if name in os.environ},
        "terminal": f"{sys.stdout.encoding if sys.stdout else None}",
        "cache": kept,
        "cached": f"{len(files)} files, {sum(f.stat().st_size for f in files) / 2**20:.0f} MB",
        "installed": _installed_kernels(),
        "needs": {name: installed(name) for name in needed},
        "extras": {
            extra: {name: installed(name) for name in names} for extra, names in extras.items()
        },
    }


def _installed_kernels() -> str:
    """How many kernels were compiled at installation, and whether they are of use here."""
    from setwise.kernel_cache import INSTALLED, count_installed

    found, fitting = count_installed()
    if not found:
        return "no compiled code"
    told = f"{found} compiled functions, {fitting} of them for this machine and these sources"
    return f"{told}, in {INSTALLED}"


def requirements() -> tuple[list[str], dict[str, list[str]]]:
    """The distributions that are needed, and those of each extra that users ask for."""
    needed: list[str] = []
    extras: dict[str, list[str]] = {}
    for line in requires("setwise") or ():
        name, extra = re.match(r"[\w.-]+", line), re.search(r"extra == ['\"](\w+)", line)
        if name and extra is None:
            needed.append(name[0])
        elif name and extra and extra[1] not in OURS:
            extras.setdefault(extra[1], []).append(name[0])
    return needed, extras


_by_module = cache(packages_distributions)


def installed(name: str) -> str | None:
    """The version of a distribution, or of what has its module; None where neither is there."""
    for own in (name, *_by_module().get(name, ())):
        try:
            return version(own)
        except PackageNotFoundError:
            continue
    return None


def _said(value: Any) -> str:
    """On one line: what is missing as such."""
    if not isinstance(value, dict):
        return str(value)
    parts = (f"{name} ({_said(one)})" if isinstance(one, dict) else f"{name} {one or 'missing'}"
             for name, one in value.items())  # fmt: skip
    return ", ".join(parts) or "nothing"
