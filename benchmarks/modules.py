"""Forward and backward of the torch losses against `BCEWithLogitsLoss`, on the CPU.

Same logits, same threads, in turns in one process; the ratio is that of the minima. Each row has
the error of what was computed, against the same loss of float64 logits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.rows import machine
from benchmarks.speed import CHECKED_ROWS, ROUNDS, SHAPES, TARGETS, batch, interleaved
from setwise.nn import ExpectedLoss, SurrogateLoss
from setwise.threads import thread_count

LOSSES: dict[str, Callable[[str], nn.Module]] = {
    "expected loss": ExpectedLoss,
    "q = 0.5": lambda target: SurrogateLoss(target, surrogate="comp_sum", q=0.5),
    "logistic": lambda target: SurrogateLoss(target, surrogate="logistic"),
}


def modules() -> Iterator[dict[str, Any]]:
    """A row for each shape, target and loss; labels are float32, as cross-entropy wants them."""
    torch.set_num_threads(thread_count())
    for n_rows, n_labels in SHAPES:
        scores, y_true = batch(n_rows, n_labels)
        logits = torch.from_numpy(2.0 * scores).requires_grad_()
        labels = torch.from_numpy(y_true.astype(np.float32))
        reference = both_ways(nn.BCEWithLogitsLoss(), logits, labels)
        made = [(target, name, make(target)) for target in TARGETS for name, make in LOSSES.items()]
        runs = [both_ways(loss, logits, labels) for _, _, loss in made]
        # Cross-entropy goes before each loss, so that all start from the same state.
        turns = [work for run in runs for work in (reference, run)]
        interleaved(turns, 2)
        times = interleaved(turns, ROUNDS)
        theirs = min(times[::2])
        for (target, name, loss), ours in zip(made, times[1::2], strict=True):
            yield {
                "rows": n_rows, "labels": n_labels, "target": target, "loss": name,
                "ratio": ours / theirs, "milliseconds": 1e3 * ours,
                "cross_entropy_milliseconds": 1e3 * theirs, "rounds": ROUNDS,
                **computed(loss, logits, labels), "torch": torch.__version__, **machine(),
            }  # fmt: skip


def both_ways(loss: nn.Module, logits: Tensor, labels: Tensor) -> Callable[[], None]:
    """Forward and backward once."""

    def run() -> None:
        logits.grad = None
        loss(logits, labels).backward()

    return run


def computed(loss: nn.Module, logits: Tensor, labels: Tensor) -> dict[str, float]:
    """Value and gradient of some rows, and their errors relative to the largest exact entry."""
    answers = []
    for dtype in (torch.float32, torch.float64):
        some = logits[:CHECKED_ROWS].detach().to(dtype).requires_grad_()
        value = loss(some, labels[:CHECKED_ROWS])
        answers.append((value.item(), torch.autograd.grad(value, some)[0].double()))
    (value, gradient), (exact, exact_gradient) = answers
    error = (gradient - exact_gradient).abs().max() / exact_gradient.abs().max()
    return {
        "mean_value": value,
        "gradient_norm": float(gradient.norm()),
        "value_error": abs(value - exact) / abs(exact),
        "gradient_error": float(error),
    }
