"""Units of work in processes of their own, and a stored row for each answer; resumable."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.data import load
from benchmarks.evidence.tuning import MEASURES
from benchmarks.rows import RESULTS
from setwise.evaluation import evaluate
from setwise.study.identity import processor
from setwise.targets import get_target

ROOT = Path(__file__).parents[2]
ROWS = RESULTS / "evidence.jsonl"
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


class Unit(NamedTuple):
    """A method on a split of a set with a seed."""

    set: str
    split: str
    kind: str
    method: str
    seed: int

    @classmethod
    def of(cls, row: dict[str, Any]) -> Unit:
        """The unit that a row is of."""
        return cls(*(row[name] for name in cls._fields))


def stored(path: Path = ROWS) -> list[dict[str, Any]]:
    """The rows so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def keep(unit: Unit, rows: Sequence[dict[str, Any]], path: Path = ROWS) -> None:
    """Store the rows of a unit in the place of those it had; the file is whole at any time."""
    before = stored(path)
    others = [row for row in before if Unit.of(row) != unit]
    place = next((i for i, row in enumerate(before) if Unit.of(row) == unit), len(before))
    partial = path.with_suffix(".partial")
    lines = (json.dumps(row) + "\n" for row in (*others[:place], *rows, *others[place:]))
    partial.write_text("".join(lines))
    partial.replace(path)


def run(
    units: Sequence[Unit], data: Path, interpreters: dict[str, Path], limit: float, jobs: int,
    path: Path = ROWS, again: bool = False,
) -> None:  # fmt: skip
    """Units that have no rows yet (or all, again), ``jobs`` at once, each in ``limit`` seconds."""
    known = set() if again else {Unit.of(row) for row in stored(path)}
    left = [unit for unit in units if unit not in known]
    with ThreadPoolExecutor(jobs) as pool, _cancelling(pool):
        waiting = {pool.submit(answered, unit, data, interpreters, limit): unit for unit in left}
        for number, future in enumerate(as_completed(waiting), 1):
            unit, rows = waiting[future], future.result()
            keep(unit, rows, path)
            said = rows[0].get("failed") or f"{rows[0]['fit_seconds']:.1f} s"
            place = f"{number} of {len(left)}"
            print(f"{place}: {unit.set}, {unit.split}, {unit.method}: {said}", flush=True)


# What differs from run to run: times and memory, and what they depend on.
PASSING = ("fit_seconds", "predict_seconds", "peak_mib", "versions", "processor")


def changed(before: Sequence[dict[str, Any]], now: Sequence[dict[str, Any]]) -> list[str]:
    """Which figures of a unit a second run gives otherwise, times aside."""
    if len(before) != len(now):
        return [f"{len(before)} rows before, {len(now)} now"]
    return [
        f"{old.get('target')}, {name}: {old.get(name)} before, {new.get(name)} now"
        for old, new in zip(before, now, strict=True)
        for name in {**old, **new}
        if name not in PASSING and old.get(name) != new.get(name)
    ]


@contextmanager
def _cancelling(pool: ThreadPoolExecutor) -> Iterator[None]:
    """What waits is not begun once something went wrong, or somebody interrupts."""
    try:
        yield
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def answered(
    unit: Unit, data: Path, interpreters: dict[str, Path], limit: float
) -> list[dict[str, Any]]:
    """A row for each target; of a unit that failed or took too long, one that says so."""
    python = interpreters.get(unit.method.split(":")[0], Path(sys.executable))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "answer"
        asked = [str(data / unit.set), unit.split, unit.kind, unit.method, str(unit.seed), str(out)]
        command = [str(python), "-m", "benchmarks.evidence.unit", *asked]
        paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        try:
            subprocess.run(
                command, cwd=ROOT, env={**os.environ, **ONE_THREAD, "PYTHONPATH": paths},
                timeout=limit, check=True, capture_output=True, text=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return [{**unit._asdict(), "failed": f"took more than {limit:g} s"}]
        except subprocess.CalledProcessError as error:
            last = (error.stderr.strip().splitlines() or [f"exit {error.returncode}"])[-1]
            return [{**unit._asdict(), "failed": last[:300]}]
        try:
            return list(_rows(unit, data, out))
        except ValueError as error:  # what it predicts cannot be judged
            return [{**unit._asdict(), "failed": str(error)[:300]}]


def _rows(unit: Unit, data: Path, out: Path) -> Iterator[dict[str, Any]]:
    about = json.loads(out.with_suffix(".json").read_text())
    arrays = np.load(out.with_suffix(".npz"))
    split = None if unit.split == "official" else int(unit.split)
    X_train, Y_train, _, Y = load(data / unit.set, split)
    shape = {
        "rows": len(Y_train), "test_rows": len(Y), "features": X_train.shape[1],
        "labels": Y.shape[1], "seen_sets": len(np.unique(Y_train, axis=0)),
        "is_sparse": sparse.issparse(X_train),
    }  # fmt: skip
    for place, answer in enumerate(about["answers"]):
        indices, indptr = (arrays[f"{place} {part}"] for part in ("indices", "indptr"))
        ones = np.ones(len(indices), np.int64)
        guess = sparse.csr_array((ones, indices, indptr), shape=Y.shape).toarray()
        key = f"{place} probability"
        figures = measured(guess, Y, arrays.get(key, None))
        yield {
            **unit._asdict(), **shape, **answer, **figures, "peak_mib": about["peak_mib"],
            "versions": about["versions"], "processor": processor(),
        }  # fmt: skip


def measured(guess: np.ndarray, Y: np.ndarray, probability: np.ndarray | None) -> dict[str, Any]:
    """The utility of every target with its 95 % interval, and figures of the ranking."""
    targets = {str(get_target(name)): name for name in MEASURES}
    found = evaluate(guess, Y, probability=probability, targets=list(MEASURES), n_bootstrap=200)
    figures = {}
    for figure in found.figures.values():
        if figure.group == "target":
            name = targets[figure.name.removeprefix("loss: ")]
            ends = (
                1.0 - (figure.value if end is None else end) for end in (figure.high, figure.low)
            )
            figures[name] = round(1.0 - figure.value, 6)
            figures[f"{name} interval"] = [round(end, 6) for end in ends]
        elif figure.group in ("ranking", "calibration") and np.isfinite(figure.value):
            figures[figure.name] = round(figure.value, 6)
    return figures
