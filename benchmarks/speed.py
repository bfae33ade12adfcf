"""Value and gradient of the comp-sum losses against binary cross-entropy in PyTorch.

Both start from float32 scores and run with the same number of threads, in turns in one process;
the ratio is that of the minima. Each row has the error of what was computed, measured in float64
against the same loss from float64 scores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.rows import machine
from setwise.spaces import Cube
from setwise.surrogates import CompSum
from setwise.threads import thread_count

SHAPES = ((20_000, 100), (2_000, 1_000))
TARGETS = ("f1", "jaccard", "hamming")
POWERS = (1.0, 0.5, 0.0)
ROUNDS = 80
CHECKED_ROWS = 500


def batch(n_rows: int, n_labels: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Normal scores around a negative mean in float32, label sets drawn from their probabilities.

    The scores shrink as labels grow in number: with one law over so many sets and q < 1, gradients
    on the unit scale would otherwise be too small for float32.
    """
    generator = np.random.default_rng(seed)
    spread = min(1.0, 10.0 / np.sqrt(n_labels))
    scores = (spread * (generator.normal(size=(n_rows, n_labels)) - 1.0)).astype(np.float32)
    probability = 1.0 / (1.0 + np.exp(-2.0 * scores))
    return scores, (generator.random(scores.shape) < probability).astype(np.uint8)


def interleaved(works: list[Callable[[], Any]], rounds: int) -> list[float]:
    """The shortest time of each work, in seconds, over rounds in which all of them take turns.

    All together, so that a slow spell of the machine meets every one of them.
    """
    best = [np.inf] * len(works)
    for _ in range(rounds):
        for place, work in enumerate(works):
            began = time.perf_counter()
            work()
            best[place] = min(best[place], time.perf_counter() - began)
    return best


def cross_entropy(scores: np.ndarray, y_true: np.ndarray) -> Callable[[], Any]:
    """Forward and backward of binary cross-entropy with logits."""
    import torch

    torch.set_num_threads(thread_count())
    logits = torch.from_numpy(scores).requires_grad_()
    labels = torch.from_numpy(y_true.astype(np.float32))

    def run() -> None:
        logits.grad = None
        torch.nn.functional.binary_cross_entropy_with_logits(logits, labels).backward()

    return run


def speed() -> Iterator[dict[str, Any]]:
    """A row for each shape, target and q."""
    for n_rows, n_labels in SHAPES:
        scores, y_true = batch(n_rows, n_labels)
        reference = cross_entropy(scores, y_true)
        losses = [CompSum(target, Cube(n_labels), q) for target in TARGETS for q in POWERS]
        runs = [partial(loss.value_and_gradient, scores, y_true) for loss in losses]
        # Cross-entropy goes before each loss, so that all start from the same state.
        turns = [work for run in runs for work in (reference, run)]
        interleaved(turns, 2)
        times = interleaved(turns, ROUNDS)
        theirs = min(times[::2])
        for loss, ours in zip(losses, times[1::2], strict=True):
            yield {
                "rows": n_rows, "labels": n_labels, "target": str(loss.target), "q": loss.q,
                "ratio": ours / theirs,
                "milliseconds": 1e3 * ours,
                "cross_entropy_milliseconds": 1e3 * theirs,
                "rounds": ROUNDS, **computed(loss, scores, y_true), **machine(),
            }  # fmt: skip


def computed(
    loss: CompSum,
    scores: np.ndarray,
    y_true: np.ndarray,
    exact: Callable[..., Any] | None = None,
    checked_rows: int = CHECKED_ROWS,
) -> dict[str, float]:
    """What was computed, and its error against ``exact``, or the same loss, from float64 scores."""
    value, gradient = loss.value_and_gradient(scores, y_true)
    head = slice(0, checked_rows)
    right = (exact or loss.value_and_gradient)(scores[head].astype(np.float64), y_true[head])

    def error(found: np.ndarray, right: np.ndarray) -> float:
        """The largest error relative to the largest exact entry."""
        return float(np.abs(found - right).max() / np.abs(right).max())

    return {
        "mean_value": float(value.mean(dtype=np.float64)),
        "gradient_norm": float(np.linalg.norm(gradient.astype(np.float64))),
        "value_error": error(value[head], right[0]),
        "gradient_error": error(gradient[head], right[1]),
    }


def growth() -> Iterator[dict[str, Any]]:
    """How the time grows when the number of labels doubles: F1 at q = 1."""
    for n_rows, n_labels in ((5_000, 100), (2_000, 500), (500, 2_000)):
        small, large = batch(n_rows, n_labels), batch(n_rows, 2 * n_labels)
        losses = [CompSum("f1", Cube(k), 1.0) for k in (n_labels, 2 * n_labels)]
        runs = [
            partial(losses[0].value_and_gradient, *small),
            partial(losses[1].value_and_gradient, *large),
        ]
        interleaved(runs, 2)
        one, two = interleaved(runs, ROUNDS)
        yield {
            "rows": n_rows, "labels": n_labels, "target": "f1", "q": 1.0,
            "doubling": two / one, "rounds": ROUNDS,
            "mean_value": float(losses[1].value_and_gradient(*large)[0].mean()), **machine(),
        }  # fmt: skip
