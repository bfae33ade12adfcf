"""The wheel and the sdist, installed by themselves on each Python and both ends of what is needed.

    python tests/versions.py                the interpreters that are there
    python tests/versions.py 3.12 3.13      these

Both files are built once. For each interpreter the wheel goes into a fresh environment with the
oldest supported release of every dependency, and into one with the newest; the sdist into one more,
of the first interpreter. In each the command has to start, a model to be trained, saved and loaded
from outside the repository, and scikit-learn's checks of all estimators to pass; with the oldest
releases also what else is promised to users of scikit-learn. The sdist compiles its kernels, the
wheel, which serves all, has none. An interpreter that is not there is
skipped, and said so; of a dependency whose oldest release has no build for one, the oldest that has
is taken. A line is printed as each one ends, and a table of all at the end.
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
# Tests of what users of scikit-learn are promised, and what other packages have a say in. (With the
# newest releases `make test` runs all tests.)
PROMISES = ("estimators/test_conventions.py", "estimators/test_shown.py", "test_persistence.py",
            "datasets", "cli/test_cli.py", "cli/test_cli_files.py", "evaluation")  # fmt: skip
BUILT = ("--only-binary", ":all:")
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "pandas", "mpmath", "xgboost-cpu")
TRIAL = """
import os, tempfile, setwise
from sklearn.datasets import make_multilabel_classification

X, Y = make_multilabel_classification(80, n_classes=4, random_state=0)
model = setwise.SetClassifier("f1").fit(X, Y)
path = os.path.join(tempfile.mkdtemp(), "model.skops")
setwise.save(model, path)
assert (setwise.load(path).predict(X) == model.predict(X)).all()
assert "site-packages" in setwise.__file__, setwise.__file__
"""
COMPILED = """
from setwise.kernel_cache import count_installed

found, fitting = count_installed()
assert found == fitting > 0, (found, fitting)
"""
NAMES = ("scikit-learn", "numpy", "scipy", "numba")
TOLD = f"""
from importlib.metadata import version
print(*map(version, {NAMES!r}))
"""


class CommandError(RuntimeError):
    """A command that ended badly, with the end of what it said."""


def oldest() -> dict[str, str]:
    """The oldest release of each dependency that the project says it works with."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return dict(re.match(r"([\w-]+)>=([\d.]+)$", line).groups() for line in wanted)


def interpreter(version: str) -> str | None:
    """The path of a Python that runs and is that version."""
    homes = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *map(str, homes.glob(f"{version}.*/bin/python"))]
    for path in filter(None, found):
        told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        if told.stdout.startswith(f"Python {version}."):
            return path
    return None


def run(*words, **options) -> str:
    """What a command says; a `CommandError` where it ends badly."""
    words = [*map(str, words)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise CommandError(f"{' '.join(words)}\n{done.stdout[-6000:]}{done.stderr[-4000:]}")
    return done.stdout.strip()


def built(folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist, built in an environment of their own."""
    venv.create(folder / "build", with_pip=True)
    python = folder / "build" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "build")
    plain = {**os.environ, "SETWISE_COMPILE": "0"}
    run(python, "-m", "build", "--outdir", folder / "dist", ROOT, env=plain)
    (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    return wheel, sdist


def installed(python: Path, package: Path, releases: dict[str, str]) -> list[str]:
    """Install the package with these releases; what they were in the end, as pip takes it.

    A release without a build for this Python gives way to the oldest later one that has one.
    """
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    # (Of 13 the oldest is 13.0, of 1.6 any 1.6 will do.)
    least = {name: f"{own}.0" if "." not in own else own for name, own in releases.items()}
    held = {name: f"{name}=={release}.*" for name, release in least.items()}
    while True:
        try:
            run(*pip, "install", "-q", "--no-compile", *BUILT, package, *held.values())
            return [*held.values()]
        except CommandError as failed:
            lost = re.search(r"No matching distribution found for ([\w-]+)==", str(failed))
            if lost is None:
                raise
            held[lost[1]] = f"{lost[1]}=={_next(str(failed), lost[1], releases[lost[1]])}"


def _next(told: str, name: str, least: str) -> str:
    """The oldest release that pip names as having a build, and that is no older than ``least``."""
    listed = re.search(r"\(from versions: ([^)]*)\)", told)
    numbers = [one for one in (listed[1].split(", ") if listed else []) if one[-1:].isdigit()]
    later = [one for one in numbers if _key(one) > _key(least)]
    if not later:
        raise CommandError(f"no release of {name} has a build for this Python\n{told}")
    return min(later, key=_key)


def _key(release: str) -> list[int]:
    return [*map(int, re.findall(r"\d+", release))]


def tried(path: str, package: Path, releases: dict[str, str], folder: Path) -> list[str]:
    """The releases of `NAMES` a package works with on one interpreter, or a `CommandError`."""
    home = Path(tempfile.mkdtemp(dir=folder))
    run(path, "-m", "venv", home)
    python = home / "bin" / "python"
    held = installed(python, package, releases)
    clean = {**os.environ, "PYTHONPATH": ""}
    run(home / "bin" / "setwise", "doctor", cwd=home, env=clean)
    run(python, "-c", TRIAL, cwd=home, env=clean)
    if package.suffix != ".whl":
        run(python, "-c", COMPILED, cwd=home, env=clean)
    else:
        run(python, "-m", "pip", "install", "-q", "--no-compile", *BUILT, *TOOLS, *held)
        # (What old releases say of each other's old age is no fault of ours.)
        quiet = ("-p", "no:cacheprovider", "-W", "ignore::DeprecationWarning")
        pytest, tests = (python, "-m", "pytest", "-q", *quiet), ROOT / "tests"
        run(*pytest, "-k", "scikit_learn", tests / "estimators", cwd=ROOT, env=clean)
        if releases:
            run(*pytest, *(tests / name for name in PROMISES), cwd=ROOT, env=clean)
    told = run(python, "-c", TOLD, cwd=home, env=clean)
    shutil.rmtree(home)
    return told.split()


def table(rows: list[list[str]]) -> str:
    """Rows, the first of them the heads, in columns as wide as they need to be."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def main(wanted: list[str]) -> int:
    """Try every combination and print what came of it; 1 if one failed."""
    rows = [["Python", "package", "releases", "result", *NAMES]]
    nothing = [""] * len(NAMES)
    with tempfile.TemporaryDirectory() as place:
        wheel, sdist = built(Path(place))
        alone = [("sdist", "newest", sdist, {})]
        for version in wanted or PYTHONS:
            path = interpreter(version)
            if path is None:
                rows.append([version, "", "", "skipped: it is not there", *nothing])
                print(f"Python {version} is not there: skipped", flush=True)
                continue
            both = [("wheel", "oldest", wheel, oldest()), ("wheel", "newest", wheel, {})]
            for kind, age, package, releases in [*both, *alone]:
                rows.append([version, kind, age, "passed", *nothing])
                try:
                    rows[-1][4:] = tried(path, package, releases, Path(place))
                except CommandError as failed:
                    rows[-1][3] = "FAILED"
                    print(failed, flush=True)
                print("Python", *rows[-1], flush=True)
            alone = []
    print(f"\n{table(rows)}")
    return int(any(row[3] == "FAILED" for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
