"""Laws of the cache of compiled kernels: never stale, never in the way."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from setwise import kernel_cache
from setwise.spaces import forest_kernels
from tests.support.turns import in_turn

CALLED = """
from setwise.kernels import kernel

@kernel
def added(x):
    return x + {number}
"""
CALLER = """
from setwise.called import added
from setwise.kernels import kernel

@kernel
def doubled(x):
    return 2 * added(x)
"""
COUNTED = """
from setwise.caller import doubled
print(doubled(1), sum(doubled.stats.cache_hits.values()))
"""
# Another user, who may read every file (the interpreter may lie in root's home) but write none.
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
NOBODY += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]


@pytest.fixture
def tree(tmp_path):
    """A copy of the package with two kernels, one of which calls the other."""
    package = tmp_path / "src" / "setwise"
    package.mkdir(parents=True)
    for name in ("__init__", "kernels", "kernel_cache", "kernel_parts", "lanes"):
        shutil.copy(kernel_cache.PACKAGE / f"{name}.py", package)
    (package / "called.py").write_text(CALLED.format(number=1))
    (package / "caller.py").write_text(CALLER)
    return package


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip() + done.stderr.strip()


def test_a_kernel_is_kept_until_something_it_calls_changes(tree, tmp_path):
    """And loads nothing of what the compiler knows: that takes longer than all kernels of a fit.

    Kernels that nobody has used for long are removed when new ones are kept.
    """
    folder = tmp_path / "cache" / "setwise"
    places = {"PYTHONPATH": str(tree.parent), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    told = "import sys\n" + COUNTED + "print('numba.np.linalg' in sys.modules)"
    assert run(told, **places).split() == ["4", "0", "True"]
    # (What a kept kernel calls is in it, and not asked for by itself.)
    used = [path for path in folder.iterdir() if any(path.glob("caller.*"))]
    assert len(used) == 1
    unused, recent, other = (folder / name for name in ("0" * 20, "1" * 20, "downloads"))
    for path in (unused, recent, other):
        path.mkdir()
        (path / "kept").write_text("")
    for path in (*used, unused, other):
        os.utime(path, (0, 0))
    assert run(told, **places).split() == ["4", "1", "False"]
    assert unused.exists()
    (tree / "called.py").write_text(CALLED.format(number=5))
    assert run(told, **places).split() == ["12", "0", "True"]
    assert not unused.exists()
    assert all(path.exists() for path in (*used, recent, other))
    (tree / "called.py").write_text(CALLED.format(number=1))
    assert run(told, **places).split() == ["4", "1", "False"]


def install(tree: Path) -> None:
    """Compile as an installation does."""
    run(COUNTED, PYTHONPATH=str(tree.parent), NUMBA_CACHE_DIR=str(tree / "compiled"))


def test_installed_kernels_serve_where_they_fit(tree, tmp_path):
    """Wherever the package stands; for another processor or source others are compiled."""
    install(tree)
    tree = Path(shutil.move(tree.parent, tmp_path / "elsewhere")) / "setwise"
    empty = tmp_path / "cache"
    places = {"PYTHONPATH": str(tree.parent), "NUMBA_CACHE_DIR": str(empty)}
    told = COUNTED + "from setwise.kernel_cache import count_installed; print(*count_installed())"
    assert run(told, **places).split() == ["4", "1", "2", "2"]
    assert not [path for path in empty.rglob("*") if path.is_file()]
    other = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert run(told, **places, **other).split() == ["4", "0", "2", "0"]
    assert run(told, **places, **other).split() == ["4", "1", "2", "0"]
    (tree / "called.py").write_text(CALLED.format(number=5))
    assert run(told, **places).split() == ["12", "0", "2", "0"]


def test_every_module_that_a_kernel_can_reach_is_in_its_stamp():
    reached = {path.name for path in kernel_cache._reached(Path(forest_kernels.__file__))}
    assert {"forest_kernels.py", "nodes.py", "kernels.py", "kernel_cache.py"} <= reached


@in_turn(
    "folder",
    sorted({path.parent for path in kernel_cache.PACKAGE.rglob("*.py")}),
    ids=lambda f: f.name,
)
def test_imports_are_found_as_the_parser_finds_them(folder):
    for file in folder.glob("*.py"):
        names = set()
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.ImportFrom):
                names |= {node.module, *(f"{node.module}.{item.name}" for item in node.names)}
            elif isinstance(node, ast.Import):
                names |= {item.name for item in node.names}
        paths = (kernel_cache.PACKAGE.parent.joinpath(*str(name).split(".")) for name in names)
        files = (p / "__init__.py" if p.is_dir() else p.with_suffix(".py") for p in paths)
        root = kernel_cache.PACKAGE / "__init__.py"
        found = {path for path in files if path.is_file()} - {root}
        assert kernel_cache._imported(file) == found, file


def test_a_folder_that_others_can_write_to_is_not_trusted(tmp_path, monkeypatch):
    kernel_cache.cache_folder.cache_clear()
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setattr(kernel_cache, "_candidates", lambda: [shared, tmp_path / "own"])
    assert kernel_cache.cache_folder() == tmp_path / "own"
    kernel_cache.cache_folder.cache_clear()


AS_NOBODY = pytest.mark.skipif(
    not shutil.which("setpriv") or os.getuid() != 0, reason="only root can become nobody"
)


def run_as_nobody(environment):
    """What another user than root gets of the two kernels."""
    command = [*NOBODY, sys.executable, "-c", COUNTED]
    return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True)


@AS_NOBODY
@pytest.mark.parametrize(
    ("home", "place"), [("/", "TMPDIR"), (None, "TMPDIR"), ("/nonexistent", "NUMBA_CACHE_DIR")]
)
def test_in_a_container_kernels_run_and_are_kept_where_they_can_be(home, place, tree, tmp_path):
    """As another user than root, with packages that cannot be written and no home.

    The temporary folder serves; a folder that was asked for and cannot be written is warned of.
    """
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    scratch.chmod(0o777 if place == "TMPDIR" else 0o700)
    environment = {"PYTHONPATH": str(tree.parent), place: str(scratch)}
    environment |= {"HOME": home} if home else {}
    done = run_as_nobody(environment)
    assert done.stdout == "4 0\n", done.stderr
    assert done.stderr.count("NUMBA_CACHE_DIR to a") == (place == "NUMBA_CACHE_DIR")
    assert any(scratch.rglob("*.nbc")) == (place == "TMPDIR")


@AS_NOBODY
def test_installed_kernels_serve_where_none_can_be_kept(tree, tmp_path):
    """And no more is said than of any other package."""
    install(tree)
    for folder in tree.glob("compiled/**/"):
        folder.chmod(0o755)
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    done = run_as_nobody({"PYTHONPATH": str(tree.parent), "NUMBA_CACHE_DIR": str(closed)})
    assert (done.stdout, done.stderr) == ("4 1\n", "")


@AS_NOBODY
@pytest.mark.parametrize(("mode", "hits"), [(0o644, 1), (0o666, 0), (None, 0)])
def test_kernels_that_root_has_kept_are_read_if_nobody_else_can_write_them(
    mode, hits, tree, tmp_path
):
    """As where a container image is built; others are compiled, and it is said."""
    kept = tmp_path / "kernels"
    environment = {"PYTHONPATH": str(tree.parent), "NUMBA_CACHE_DIR": str(kept)}
    assert run(COUNTED, **environment) == "4 0"
    for file in kept.rglob("*.nb?"):
        file.chmod(mode or 0o644)
        if mode is None:  # what cannot be read, whoever asks
            file.unlink()
            file.mkdir(0o755)
    for folder in (kept / "setwise", *(kept / "setwise").iterdir()):
        folder.chmod(0o755)
    done = run_as_nobody(environment)
    assert done.stdout == f"4 {hits}\n", done.stderr
    assert done.stderr.count("NUMBA_CACHE_DIR to a") == 1 - hits
    # Root itself does not run what others could have written, nor stays silent about it.
    own = run(COUNTED, **environment)
    assert own.startswith(f"4 {hits}")
    assert own.count("NUMBA_CACHE_DIR to a") == 1 - hits
