"""Laws of what building a wheel compiles: it is in the wheel alone, and never in the way."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
COMPILING = """
import os, pathlib
kernel = pathlib.Path(os.environ["NUMBA_CACHE_DIR"], "setwise", "0" * 20, "module.kernel.nbc")
kernel.parent.mkdir(parents=True)
kernel.write_text("")
"""
BUILD = """
from hatchling import build
print(build.get_requires_for_build_wheel())
build.build_wheel(".")
"""


@pytest.fixture
def project(tmp_path):
    """A copy of the project with next to nothing in it."""
    pytest.importorskip("hatchling")
    package = tmp_path / "src" / "setwise"
    package.mkdir(parents=True)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copy(ROOT / "src" / "setwise" / "__init__.py", package)
    return tmp_path


def built(project, compiling: str, **environment: str):
    """What is said, the kernels in the wheel, and what it is for, if compiling does this."""
    (project / "src" / "setwise" / "first_calls.py").write_text(compiling)
    call = [sys.executable, "-c", BUILD]
    clean = {name: text for name, text in os.environ.items() if name != "SETWISE_COMPILE"}
    done = subprocess.run(
        call, cwd=project, env=clean | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = project.glob("*.whl")
    names = [name for name in ZipFile(wheel).namelist() if name.endswith(".nbc")]
    wheel.unlink()
    return done.stdout + done.stderr, names, wheel.stem.split("-", 2)[2]


def test_a_wheel_has_the_kernels_that_were_compiled_for_it(project):
    told, names, made_for = built(project, COMPILING)
    assert made_for.startswith(f"cp{sys.version_info[0]}{sys.version_info[1]}-")
    assert names == [f"setwise/compiled/setwise/{'0' * 20}/module.kernel.nbc"]
    # (Where an editable installation reads them.)
    assert (project / "src" / names[0]).exists()
    assert "numba>=" in told
    assert "typer" not in told


def test_nothing_is_compiled_where_that_is_switched_off(project):
    """Nor needed, nor is what was compiled before in the wheel."""
    assert built(project, COMPILING)[1]
    told, names, made_for = built(project, "raise SystemError", SETWISE_COMPILE="0")
    assert names == []
    assert made_for == "py3-none-any"
    assert told == "[]\n"


@pytest.mark.parametrize(
    ("further", "limit", "reason"),
    [
        ("raise ImportError('no numba')", "300.0", "ImportError: no numba"),
        ("os.kill(os.getpid(), 9)", "300.0", "SIGKILL"),
        ("import time; time.sleep(60)", "2.0", "timed out after 2.0 seconds"),
    ],
)
def test_a_wheel_is_built_whatever_compiling_comes_to(project, further, limit, reason):
    """With what was compiled until then."""
    hook = project / "hatch_build.py"
    hook.write_text(hook.read_text().replace("LIMIT = 300.0", f"LIMIT = {limit}"))
    told, names, _ = built(project, COMPILING + further)
    assert len(names) == 1
    (line,) = (line for line in told.splitlines() if "when they are first used" in line)
    assert reason in line
