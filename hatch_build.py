"""Kernels compiled while a wheel is built, as other packages compile an extension in C.

They are those of this processor and of this release of Python and numba, and stand in a folder of
the package, which an editable installation reads as well. What does not fit where a wheel is used
is left alone there and compiled when it is first used (`src/setwise/kernel_cache.py`). So is all of
it where compiling fails or takes too long: an installation never fails for it.
``SETWISE_COMPILE=0`` in the environment switches it off, for a wheel that others are to use.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "src/setwise/compiled"
COMPILE = (sys.executable, "-m", "setwise.first_calls")
# Seconds; it takes 50 to 80.
LIMIT = 300.0
# Of the dependencies, what compiling imports.
NEEDED = ("numpy", "scipy", "scikit-learn", "numba", "threadpoolctl", "joblib")


class CompiledKernels(BuildHookInterface):
    """Compiles what first calls need, and hands it to the wheel."""

    def dependencies(self) -> list[str]:
        """What the environment of the build needs, in the releases that the project asks for."""
        found = self.metadata.core.dependencies if _is_wanted() else []
        return [line for line in found if re.split(r"[^\w-]", line)[0] in NEEDED]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before files are gathered; a warning where that cannot be done."""
        if not _is_wanted():
            return
        self.app.display_info("setwise: kernels are compiled, which takes about a minute")
        try:
            _compile(Path(self.root))
        except (OSError, subprocess.SubprocessError) as failed:
            self.app.display_warning(
                "setwise: kernels are not all compiled now, but when they are first used: "
                f"{_reason(failed)}"
            )
        build_data["artifacts"].append(f"/{FOLDER}")
        if any(Path(self.root, FOLDER).rglob("*.nbc")):
            # Machine code: the wheel is for this kind of system and this release of Python.
            build_data.update(pure_python=False, infer_tag=True)


def _is_wanted() -> bool:
    return os.environ.get("SETWISE_COMPILE") != "0"


def _compile(root: Path) -> None:
    """In a process of its own: what it loads and how it ends is nothing to the build."""
    places = [str(root / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"PYTHONPATH": os.pathsep.join(places), "NUMBA_CACHE_DIR": str(root / FOLDER)}
    options: dict[str, Any] = {"capture_output": True, "encoding": "utf-8", "errors": "replace"}
    subprocess.run(COMPILE, check=True, env=os.environ | own, timeout=LIMIT, **options)


def _reason(failed: Exception) -> str:
    """The last line of what a process said, or else of the error itself."""
    told = failed.stderr if isinstance(failed, subprocess.CalledProcessError) else ""
    return (told.strip() or str(failed)).splitlines()[-1]
