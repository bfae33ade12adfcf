"""Laws of the package as a whole: what importing costs, what the README says."""

import subprocess
import sys
from pathlib import Path

import pytest

import setwise
from setwise import targets

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
    top = (Path(__file__).parents[1] / "README.md").read_text().splitlines()[:20]
    assert "make demo" in top
    assert "make test" in top


def test_a_registered_target_is_found_by_name_and_refused_twice(monkeypatch):
    monkeypatch.setattr(targets.registry, "TARGETS", dict(targets.TARGETS))
    targets.register("tversky*", lambda number: targets.FBeta(float(number)))
    assert setwise.get_target("tversky3").beta == 3.0
    with pytest.raises(ValueError, match="already"):
        targets.register("tversky*", targets.FBeta)
