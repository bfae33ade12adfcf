"""An environment for each peer, made where it is missing: `... environments FOLDER`."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import venv
from pathlib import Path

LISTED = Path(__file__).with_suffix(".toml")


def make(folder: Path) -> None:
    """Those that are not there; one that cannot be made is told of and left out."""
    for name, packages in tomllib.loads(LISTED.read_text()).items():
        place = folder / name
        if place.exists():
            continue
        partial = place.with_suffix(".partial")
        venv.create(partial, with_pip=True, clear=True)
        command = [str(partial / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages]
        if subprocess.run(command, check=False).returncode:
            print(f"{name} cannot be installed here: its methods are skipped")
        else:
            partial.rename(place)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
