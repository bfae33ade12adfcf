"""A table of numbers read into a data set, against `pandas.read_csv` on the same file.

Wall time on all cores, in turns in one process; the ratio is that of the minima.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from benchmarks.rows import machine
from benchmarks.speed import interleaved
from setwise.datasets import read

ROWS, COLUMNS, ROUNDS = 200_000, 50, 10


def tables() -> Iterator[dict[str, Any]]:
    """One row: a CSV file of features and one label."""
    values = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).round(3)
    frame = pandas.DataFrame(values).add_prefix("x").assign(y=(values[:, 0] > 0).astype(int))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "numbers.csv")
        frame.to_csv(path, index=False)
        works = [partial(read, path, labels=["y"]), partial(pandas.read_csv, path)]
        interleaved(works, 1)
        ours, theirs = interleaved(works, ROUNDS)
        error = float(np.abs(read(path, labels=["y"]).X - values).max())
    yield {
        "rows": ROWS, "columns": COLUMNS, "ratio": ours / theirs, "milliseconds": 1e3 * ours,
        "pandas_milliseconds": 1e3 * theirs, "largest_error": error, "rounds": ROUNDS, **machine(),
    }  # fmt: skip
