"""Minimum-risk decoding against sorting, and of a wide sparse matrix without a dense copy.

The ratio is the time to decode float32 probabilities over that of `numpy.argsort` along their rows,
minima of interleaved rounds in one process. Each row has what was computed: the mean size and risk
of the label sets, and the largest error of that risk against a sum over the law of the counts.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from benchmarks.rows import machine
from benchmarks.speed import SHAPES, interleaved
from setwise.decoders import MinimumRisk
from setwise.decoders.by_size import BySize
from setwise.decoders.size_utilities import ByCounts

ROUNDS = 40
CHECKED_ROWS = 20
LAWS = {
    "uniform": lambda draws: draws,
    "few likely": lambda draws: draws**8,
    "sigmoid of normal": lambda draws: 1.0 / (1.0 + np.exp(-2.0 * (4.0 * draws - 3.0))),
}


def decoding() -> Iterator[dict[str, Any]]:
    """A row for each shape, law of the probabilities and target."""
    for n_rows, n_labels in SHAPES:
        for law, shape in LAWS.items():
            draws = np.random.default_rng(0).random((n_rows, n_labels))
            probability = shape(draws).astype(np.float32)
            decoders = [MinimumRisk(target) for target in ("f1", "jaccard", "f2", "hamming")]
            works = [partial(np.argsort, probability, axis=1)]
            works += [partial(decoder.decode, probability) for decoder in decoders]
            interleaved(works, 2)
            times = interleaved(works, ROUNDS)
            for decoder, seconds in zip(decoders, times[1:], strict=True):
                yield {
                    "rows": n_rows, "labels": n_labels, "law": law, "target": str(decoder.target),
                    "ratio": seconds / times[0], "milliseconds": 1e3 * seconds,
                    "argsort_milliseconds": 1e3 * times[0], "rounds": ROUNDS,
                    **_computed(decoder, probability), **machine(),
                }  # fmt: skip


def _computed(decoder: MinimumRisk, probability: np.ndarray) -> dict[str, float | None]:
    sets = decoder.decode(probability)
    head = probability[:CHECKED_ROWS].astype(np.float64)
    risk = decoder.risk(head, sets[:CHECKED_ROWS])
    row: dict = {"mean_size": float(sets.sum(axis=1).mean()), "mean_risk": float(risk.mean())}
    measure = decoder.target.measure(head.shape[1], "utility")
    if head.shape[1] > 200 or not hasattr(measure, "of_counts"):
        return {**row, "risk_error": None}
    every = np.ones(head.shape[1] + 1, dtype=bool)
    exact = BySize(ByCounts(measure, head.shape[1], None), every, ~every)
    exact = exact.of_sets(head, sets[:CHECKED_ROWS])
    return {**row, "risk_error": float(np.abs(exact - risk).max())}


def wide(n_rows: int = 10_000, n_labels: int = 30_000, entries: int = 100) -> Iterator[dict]:
    """Time and peak memory for a CSR matrix, in units of its own size and of a dense copy."""
    generator = np.random.default_rng(0)
    columns = np.concatenate(
        [np.sort(generator.choice(n_labels, entries, replace=False)) for _ in range(n_rows)]
    )
    data = generator.random(n_rows * entries, dtype=np.float32) ** 4
    matrix = csr_array(
        (data, columns, np.arange(0, n_rows * entries + 1, entries)), shape=(n_rows, n_labels)
    )
    own = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    for target in ("f1", "jaccard", "hamming", "precision@5"):
        decoder = MinimumRisk(target)
        decoder.decode(matrix[:10])
        began = time.perf_counter()
        sets = decoder.decode(matrix)
        seconds = time.perf_counter() - began
        tracemalloc.start()
        decoder.decode(matrix)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        yield {
            "rows": n_rows, "labels": n_labels, "entries": entries, "target": target,
            "seconds": seconds, "peak_over_own": peak / own,
            "peak_over_dense": peak / (n_rows * n_labels), "mean_size": sets.nnz / n_rows,
            **machine(),
        }  # fmt: skip
