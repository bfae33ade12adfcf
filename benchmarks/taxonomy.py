"""Losses on a taxonomy of ten thousand labels against binary cross-entropy in PyTorch.

Both start from float32 scores and run with the same number of threads, in turns in one process;
the ratio is that of the minima. What was computed is checked in float64 against the recursion that
knows potentials on every edge (closed sets) and against the list of all paths.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from benchmarks.rows import machine
from benchmarks.speed import computed, cross_entropy, interleaved
from setwise.spaces import Forest, Paths
from setwise.spaces.expectation import Tempered
from setwise.surrogates import CompSum, Logistic
from setwise.targets import TreeDistance
from setwise.taxonomy import Taxonomy

# The smaller batch stays in cache, and cross-entropy pays for no fresh memory there.
BATCHES, LABELS = (1_000, 200), 10_000
POWERS = (1.0, 0.5, 0.0, -1.0)
ROUNDS = 25
# The general ways are slow.
CHECKED_ROWS = 12


def random_taxonomy(n_labels: int, generator: np.random.Generator) -> Taxonomy:
    """A tree whose labels hang on one of the 200 before them, with lengths of edges."""
    parents = [-1, *(int(generator.integers(max(0, k - 200), k)) for k in range(1, n_labels))]
    return Taxonomy.from_parents(parents, lengths=generator.uniform(0.5, 2.0, n_labels))


def taxonomy() -> Iterator[dict[str, Any]]:
    """A row for each size of batch, space and loss."""
    generator = np.random.default_rng(0)
    tree = random_taxonomy(LABELS, generator)
    for n_rows in BATCHES:
        yield from _batch(n_rows, tree, generator)


def _batch(n_rows: int, tree: Taxonomy, generator: np.random.Generator) -> Iterator[dict[str, Any]]:
    # As labels grow in number scores shrink: at q < 1 the gradient of a law over so many sets would
    # otherwise be too small for float32.
    scores = 10.0 / np.sqrt(LABELS) * generator.normal(size=(n_rows, LABELS))
    scores = scores.astype(np.float32)
    single = np.zeros(scores.shape, dtype=np.uint8)
    single[np.arange(n_rows), generator.choice(tree.leaves, n_rows)] = 1
    several = (generator.random(scores.shape) < 3.0 / LABELS).astype(np.uint8)
    spaces = {
        "closed sets": (Forest(tree, closed=True), tree.close(several)),
        "paths": (Paths(tree), tree.close(single)),
        "paths to leaves": (Paths(tree, leaves_only=True), tree.close(single)),
    }
    losses = [
        (name, y_true, loss)
        for name, (space, y_true) in spaces.items()
        for loss in (
            *(CompSum(TreeDistance(tree), space, q) for q in POWERS),
            Logistic("subset", space, "paper"),
        )
    ]
    works = [partial(loss.value_and_gradient, scores, y_true) for _, y_true, loss in losses]
    works.append(cross_entropy(scores, spaces["closed sets"][1]))
    interleaved(works, 1)
    *times, theirs = interleaved(works, ROUNDS)
    for (name, y_true, loss), ours in zip(losses, times, strict=True):
        yield {
            "rows": n_rows, "labels": LABELS, "levels": tree.depth, "space": name,
            "loss": "likelihood" if loss.scale == "paper" else f"tree distance, q={loss.q:g}",
            "ratio": ours / theirs, "milliseconds": 1e3 * ours,
            "cross_entropy_milliseconds": 1e3 * theirs, "rounds": ROUNDS,
            **computed(loss, scores, y_true, partial(_general, loss), CHECKED_ROWS), **machine(),
        }  # fmt: skip


def _general(loss: CompSum, scores: np.ndarray, y_true: np.ndarray) -> Any:
    """Value and gradient without the passes made for closed sets and paths."""
    space = loss.space
    if isinstance(space, Forest):
        space = copy(space)
        object.__setattr__(space, "closed_law", None)
        if loss.target.form == "subset":
            return space.negative_log_likelihood(scores, y_true, False)[:2]
    slow = copy(loss)
    object.__setattr__(slow, "expectation", Tempered(loss.target, space))
    return slow.value_and_gradient(scores, y_true)
