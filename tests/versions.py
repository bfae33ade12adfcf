"""The wheel and the sdist, installed by themselves on each Python and both ends of scikit-learn.

    python tests/versions.py                the interpreters that are there
    python tests/versions.py 3.12 3.13      these

Both files are built once. For each interpreter the wheel goes into a fresh environment with the
oldest supported scikit-learn and into one with the newest; the sdist into one more, of the first
interpreter. In each the command has to start, a model to be trained, saved and loaded from outside
the repository, and scikit-learn's checks of estimators to pass. An interpreter that is not there,
and a scikit-learn that has no build for one, is skipped, and said so.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# Tests that hold estimators to scikit-learn's own checks.
CHECKS = ("test_set_classifier.py", "test_set_classifier_cv.py", "test_meta.py")
TRIAL = """
import os, tempfile, setwise
from sklearn.datasets import make_multilabel_classification

X, Y = make_multilabel_classification(80, n_classes=4, random_state=0)
model = setwise.SetClassifier("f1").fit(X, Y)
path = os.path.join(tempfile.mkdtemp(), "model.skops")
setwise.save(model, path)
assert (setwise.load(path).predict(X) == model.predict(X)).all()
assert "site-packages" in setwise.__file__, setwise.__file__
print(setwise.__version__)
"""


def oldest() -> str:
    """The oldest scikit-learn that the project says it works with."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (line,) = (line for line in wanted if line.startswith("scikit-learn"))
    return re.search(r">=([\d.]+)", line)[1]


def interpreter(version: str) -> str | None:
    """The path of a Python that runs and is that version."""
    homes = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *map(str, homes.glob(f"{version}.*/bin/python"))]
    for path in filter(None, found):
        told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        if told.stdout.startswith(f"Python {version}."):
            return path
    return None


def run(*words, **options) -> subprocess.CompletedProcess:
    words = [*map(str, words)]
    return subprocess.run(words, capture_output=True, text=True, check=False, **options)


def built(folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist, built in an environment of their own."""
    venv.create(folder / "build", with_pip=True)
    python = folder / "build" / "bin" / "python"
    _done(run(python, "-m", "pip", "install", "-q", "build"))
    _done(run(python, "-m", "build", "--outdir", folder / "dist", ROOT))
    (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    return wheel, sdist


def _done(result: subprocess.CompletedProcess) -> None:
    if result.returncode:
        raise SystemExit(f"{result.args}\n{result.stdout[-2000:]}{result.stderr[-4000:]}")


def tried(path: str, package: Path, learn: str, folder: Path, checks: bool) -> str:
    """What became of a package on one interpreter with one scikit-learn."""
    home = Path(tempfile.mkdtemp(dir=folder))
    _done(run(path, "-m", "venv", home))
    python = home / "bin" / "python"
    told = run(python, "-m", "pip", "install", "-q", "--only-binary", "scikit-learn,numpy,scipy",
               package, f"scikit-learn{learn}")  # fmt: skip
    if told.returncode and "scikit-learn" in told.stderr and "No matching" in told.stderr:
        return "skipped: there is no build of this scikit-learn for it"
    _done(told)
    clean = {**os.environ, "PYTHONPATH": ""}
    _done(run(home / "bin" / "setwise", "doctor", cwd=home, env=clean))
    _done(run(python, "-c", TRIAL, cwd=home, env=clean))
    if checks:
        _done(run(python, "-m", "pip", "install", "-q", "pytest", "pytest-xdist", "hypothesis",
                  "pandas", "mpmath"))  # fmt: skip
        files = [ROOT / "tests" / "estimators" / name for name in CHECKS]
        _done(run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "-k",
                  "scikit_learn", *files, cwd=ROOT, env=clean))  # fmt: skip
    shutil.rmtree(home)
    return "passed"


def main(wanted: list[str]) -> int:
    """Try every combination, and print a line for each."""
    first = True
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        wheel, sdist = built(folder)
        for version in wanted or PYTHONS:
            path = interpreter(version)
            if path is None:
                print(f"Python {version}: skipped, it is not there")
                continue
            for learn in (f"=={oldest()}.*", f">={oldest()}"):
                told = tried(path, wheel, learn, folder, checks=True)
                print(f"Python {version}, scikit-learn{learn}, wheel: {told}", flush=True)
            if first:
                told = tried(path, sdist, "", folder, checks=False)
                print(f"Python {version}, newest scikit-learn, sdist: {told}", flush=True)
            first = False
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
