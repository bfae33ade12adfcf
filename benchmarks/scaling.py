"""Many rows: time and memory as they double, from a folder of blocks; and two workers against one.

A set is repeated as often as needed, with its rows in another order each time. Every fit is in a
process of its own, which says how long it took and how much memory it held at most.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, load_npz

from benchmarks.pictures import draw_growth
from benchmarks.rows import load, machine, put, table

# Rows are doubled so often, and are in the end those of the set twenty times over.
ROW_SET, DOUBLINGS, LEAST_ROWS, TIMES = "imdb", 5, 2**15, 20
WORKER_SET, WORKER_ROWS, WORKER_BLOCKS, TURNS = "tmc2007_500", 10**6, 32, 3
BLOCK_ROWS = 2**15
SETTINGS = {"space": "sized", "alpha": 1e-4}
# Steps of a fit by workers: as many for one as for two.
STEPS = 8


def repeated(folder: Path, start: int, stop: int) -> tuple[Any, Any]:
    """Rows of a set that is repeated for ever, in another order each time."""
    X, Y = (csr_array(load_npz(folder / f"{name}.npz")) for name in "XY")
    n = X.shape[0]
    parts = [
        np.random.default_rng(turn).permutation(n)[max(start - turn * n, 0) : stop - turn * n]
        for turn in range(start // n, -(-stop // n))
    ]
    taken = np.concatenate(parts)
    return X[taken].astype(np.float64), Y[taken].astype(np.uint8)


# ------------------------------------------------------------------------------------- by rows


def row_growth(data: Path, sets: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """A row for each number of rows: the fit to a folder of blocks beside that to arrays."""
    for name in sets or [ROW_SET]:
        many = TIMES * load_npz(data / name / "Y.npz").shape[0]
        for n_rows in (*(LEAST_ROWS * 2**doubling for doubling in range(DOUBLINGS)), many):
            found: dict[str, Any] = {}
            with tempfile.TemporaryDirectory() as place:
                _write(data / name, n_rows, Path(place, "blocks"))
                for stage in ("blocks", "arrays"):
                    words = [sys.executable, "-m", "benchmarks.scaling", stage]
                    words += [str(data / name), str(n_rows), f"{place}/blocks"]
                    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
                    found |= json.loads(done.stdout.splitlines()[-1])
            over = found["blocks_seconds"] / found["blocks_passes"]
            over /= found["arrays_seconds"] / found["arrays_passes"]
            yield {"set": name, "rows": n_rows, **found, "over_arrays": over, **machine()}


def _write(folder: Path, n_rows: int, place: Path) -> None:
    """The rows as a folder of blocks."""
    from setwise.blocks import BlockWriter

    writer: Any = None
    for start in range(0, n_rows, BLOCK_ROWS):
        X, Y = repeated(folder, start, min(start + BLOCK_ROWS, n_rows))
        if writer is None:
            about = {"n_features": X.shape[1], "label_names": list(range(Y.shape[1]))}
            writer = BlockWriter(place, about)
        writer.add(X, Y)
    writer.finish()


def fitted(stage: str, folder: Path, n_rows: int, place: str) -> None:
    """Fit, and tell of it."""
    from setwise import SetClassifier
    from setwise.blocks import FolderBlocks

    # (Kernels are compiled, or read, beforehand.)
    model = SetClassifier(**SETTINGS)
    model.fit(*repeated(folder, 0, 1000))
    given = (FolderBlocks.open(place),) if stage == "blocks" else repeated(folder, 0, n_rows)
    began = time.perf_counter()
    model.fit(*given)
    seconds = time.perf_counter() - began
    told = {
        "seconds": seconds, "passes": model.n_iter_, "objective": model.objective_,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip
    print(json.dumps({f"{stage}_{name}": value for name, value in told.items()}))


# ---------------------------------------------------------------------------------- by workers


def workers(data: Path, sets: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """One worker process against two, of one thread each, in turns; coefficients must be equal."""
    import dask
    from distributed import Client, LocalCluster

    for name in sets or [WORKER_SET]:
        seconds: dict[int, list[float]] = {1: [], 2: []}
        ends = np.linspace(0, WORKER_ROWS, WORKER_BLOCKS + 1).astype(int).tolist()
        coefficients = []
        for turn in range(TURNS):
            for count in (1, 2) if turn % 2 == 0 else (2, 1):
                cluster = LocalCluster(
                    n_workers=count, threads_per_worker=1, dashboard_address=":0", memory_limit=0
                )
                with cluster, Client(cluster) as client:
                    block = dask.delayed(repeated)
                    delayed = [block(data / name, *pair) for pair in pairwise(ends)]
                    took, coef = _timed(client, delayed)
                seconds[count].append(took)
                coefficients.append(coef)
        best = {count: min(times) for count, times in seconds.items()}
        yield {
            "set": name, "rows": WORKER_ROWS, "blocks": WORKER_BLOCKS, "steps": STEPS,
            "one_seconds": best[1], "two_seconds": best[2], "ratio": best[1] / best[2],
            "equal": all((coef == coefficients[0]).all() for coef in coefficients), **machine(),
        }  # fmt: skip


def _timed(client: Any, delayed: list[Any]) -> tuple[float, Any]:
    """Seconds of a fit once the workers hold the rows, and its coefficients."""
    import warnings

    from setwise import dask as on_dask

    blocks = on_dask.DaskBlocks.of(client, delayed)
    model = on_dask.SetClassifier(**SETTINGS, max_iter=STEPS, client=client)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(max_iter=1).fit(blocks)
        began = time.perf_counter()
        model.set_params(max_iter=STEPS).fit(blocks)
    return time.perf_counter() - began, model.coef_


# ------------------------------------------------------------------------------ docs/scaling.md

GROWTH = [
    *("rows", "blocks_seconds", "blocks_passes", "blocks_mib", "arrays_seconds", "arrays_passes"),
    *("arrays_mib", "over_arrays"),
]
PICTURE = "![Time and memory against the number of rows](pictures/row_growth_light.svg)\n"


def section() -> str:
    """Tables for docs/scaling.md, from the stored rows."""
    parts, growth, two = [], load("row_growth"), load("workers")
    if growth:
        parts += [
            f"{growth[0]['set']}, repeated as often as needed: the fit to a folder of blocks "
            f"beside that to arrays in memory ({SETTINGS}), each in a process of its own. "
            f"`over_arrays`: time a pass over that in memory; "
            f"`mib`: the most that a process held, of which a folder's blocks are pages that the "
            f"system may take back.\n",
            table(growth, GROWTH) + "\n", PICTURE,
        ]  # fmt: skip
    for row in two:
        parts.append(
            f"{row['set']}, repeated to {row['rows']:,} rows in {row['blocks']} blocks: two worker "
            f"processes of one thread are {row['ratio']:.2f} times as fast as one, and their "
            f"coefficients are {'equal' if row['equal'] else 'NOT equal'} to the last bit.\n"
        )
    return "\n".join(parts)


def write_section(page: Path) -> None:
    """Put the section in its place in the guide."""
    put(page, "scaling", section())


def draw(growth: list[dict[str, Any]], folder: Path) -> None:
    """Time and memory against the number of rows."""
    draw_growth(growth, "fits by the number of rows", "rows", ("blocks", "arrays"), folder)


if __name__ == "__main__":
    stage, folder, n_rows, place = sys.argv[1:]
    fitted(stage, Path(folder), int(n_rows), place)
