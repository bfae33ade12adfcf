"""What figures depend on: the processor, and the versions of what computes."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


def library_versions() -> dict[str, str]:
    """The versions of setwise and of the libraries that compute."""
    from setwise import __version__

    return {"setwise": __version__, **{name: version(name) for name in LIBRARIES}}


def processor() -> str:
    """The processor's own name where the system tells it."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def machine() -> dict[str, str]:
    """Versions and processor, as a report shows them."""
    return {
        "python": platform.python_version(),
        **library_versions(),
        "system": platform.system(),
        "processor": processor(),
        "threads of a unit": "1",
    }
