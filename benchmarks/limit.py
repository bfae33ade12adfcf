"""How close the losses on the cube come to one pass over a batch that takes one exponential.

What such a loss cannot do without: scores are read, checked to be finite and read again, gradients
written; labels are checked, counted and read. Processor time on one thread, so that a busy machine
disturbs the figures less.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.rows import machine
from benchmarks.speed import SHAPES, batch, computed
from setwise.kernels import exp, kernel
from setwise.spaces import Cube
from setwise.surrogates import CompSum
from setwise.threads import for_rows, threads_limited

LOSSES = tuple((target, q) for target in ("f1", "jaccard", "hamming") for q in (1.0, 0.5, 0.0))
ROUNDS = 40
# Bytes of a float32 score: read twice, its gradient written. Of a label: read three times.
BYTES_A_LOGIT = 3 * 4 + 3 * 1


@kernel
def pass_rows(start, stop, scores, out):
    """out = e^scores."""
    for row in range(start, stop):
        line, to = scores[row], out[row]
        for j in range(len(line)):
            to[j] = exp(line[j])


def one_pass(scores: np.ndarray) -> None:
    """The yardstick: scores in, as many numbers out, in a fresh array, one exponential each."""
    for_rows(pass_rows, len(scores), scores, np.empty_like(scores))


def limit() -> Iterator[dict[str, Any]]:
    """A row for each shape, target and q."""
    for n_rows, n_labels in SHAPES:
        scores, y_true = batch(n_rows, n_labels)
        losses = [CompSum(target, Cube(n_labels), q) for target, q in LOSSES]
        runs: list[Callable[[], Any]] = [partial(one_pass, scores)]
        runs += [partial(loss.value_and_gradient, scores, y_true) for loss in losses]
        with threads_limited(1):
            _processor_times(runs, 2)
            yardstick, *times = _processor_times(runs, ROUNDS)
        for loss, ours in zip(losses, times, strict=True):
            yield {
                "rows": n_rows, "labels": n_labels, "target": str(loss.target), "q": loss.q,
                # Of the weights and, in between, times q: at 1/2 one is the square of the other.
                "exponentials": 1 if loss.q in (0.0, 0.5, 1.0) else 2, "bytes": BYTES_A_LOGIT,
                "nanoseconds": 1e9 * ours / scores.size,
                "pass_nanoseconds": 1e9 * yardstick / scores.size, "ratio": ours / yardstick,
                **computed(loss, scores, y_true), **machine(), "threads": 1,
            }  # fmt: skip


def _processor_times(works: list[Callable[[], Any]], rounds: int) -> list[float]:
    """The least processor time of each work over rounds in which all of them take turns."""
    best = [np.inf] * len(works)
    for _ in range(rounds):
        for place, work in enumerate(works):
            began = time.process_time()
            work()
            best[place] = min(best[place], time.process_time() - began)
    return best
