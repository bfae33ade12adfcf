"""Laws of the package as a whole: what importing costs, what the README says."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

import setwise
from setwise import targets

ROOT = Path(__file__).parents[1]
HEAVY = ("numba", "scipy", "sklearn", "torch", "dask", "matplotlib", "numpy")


def _modules_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_setwise_loads_nothing_heavy():
    assert not _modules_after("import setwise").intersection(HEAVY)


def test_targets_need_no_compiler():
    loaded = _modules_after("import setwise; setwise.get_target('f1').loss([[1, 0]], [[1, 1]])")
    assert not loaded.intersection({"numba", "sklearn", "torch", "matplotlib"})


def test_public_names_resolve_and_others_do_not():
    for name in setwise.__all__:
        assert getattr(setwise, name) is not None
    assert set(setwise.__all__) <= set(dir(setwise))
    with pytest.raises(AttributeError, match="nonsense"):
        setwise.nonsense  # noqa: B018


def test_the_readme_names_the_two_commands_near_its_top():
    top = (ROOT / "README.md").read_text().splitlines()[:24]
    assert "make demo" in top
    assert "make test" in top


def test_a_registered_target_is_found_by_name_and_refused_twice(monkeypatch):
    monkeypatch.setattr(targets.registry, "TARGETS", dict(targets.TARGETS))
    targets.register("tversky*", lambda number: targets.FBeta(float(number)))
    assert setwise.get_target("tversky3").beta == 3.0
    with pytest.raises(ValueError, match="already"):
        targets.register("tversky*", targets.FBeta)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the sdist; `make test-versions` installs both with all that they need."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    code = "import sys; from hatchling import build; build.build_wheel(sys.argv[1])"
    code += "; build.build_sdist(sys.argv[1])"
    call, plain = [sys.executable, "-c", code, folder], {**os.environ, "SETWISE_COMPILE": "0"}
    subprocess.run(call, cwd=ROOT, env=plain, check=True, capture_output=True)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def _tracked(*folders):
    """The files of the project in these folders, without what was made of them."""
    made = (".pyc", ".partial", ".nbi", ".nbc")
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.*") if path.is_file())
    return {str(path.relative_to(ROOT)) for path in found if path.suffix not in made}


def test_the_wheel_has_every_file_of_the_package_and_no_other(built):
    names = set(ZipFile(built[0]).namelist())
    about = {name for name in names if ".dist-info/" in name}
    assert {f"src/{name}" for name in names - about} == _tracked("src/setwise")
    assert {Path(name).name for name in about} >= {"METADATA", "entry_points.txt", "LICENSE"}
    assert built[0].stat().st_size < 2**20


def test_the_sdist_has_what_the_tests_need(built):
    with tarfile.open(built[1]) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    needed = ("src/setwise", "tests", "benchmarks", "examples")
    assert _tracked(*needed) <= names
    assert {"pyproject.toml", "Makefile", "README.md", "LICENSE", "docs/start.md"} <= names


def test_the_wheel_runs_where_it_is_unpacked(built, tmp_path):
    ZipFile(built[0]).extractall(tmp_path)
    code = "import setwise, setwise.report; from setwise.cli import main; print(setwise.__file__)"
    clean = {**os.environ, "PYTHONPATH": str(tmp_path)}
    call = [sys.executable, "-c", f"{code}; main(['certify', 'hamming', 'logistic'])"]
    done = subprocess.run(call, cwd=tmp_path, env=clean, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(tmp_path))
    assert "Certificate" in done.stdout
