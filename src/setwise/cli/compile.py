"""`setwise compile`: kernels compiled and kept now, so that first calls need not wait for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from setwise.cli.options import command, echo, say

MEASURES = (
    "f1", "jaccard", "subset", "hamming", "precision@3", "recall@3", "macro_f1", "micro_f1",
)  # fmt: skip
SPACES = ("sized", "backoff", "forest", "cube")
LOSSES = ("logistic", "generalized_cross_entropy", "mean_absolute_error", "constrained_exponential")


@command()
def compile(*, json: bool = False) -> None:
    r"""Compile now what first calls would have to wait for.

    setwise compiles its inner loops when they are first used, and keeps the machine code in a
    folder (`setwise doctor` says where). Run this once where the first call must not take seconds,
    for instance while a container image is built. It takes a minute or two. Rarer calls may
    still have something to compile.

    \b
    Examples:
      setwise compile
      NUMBA_CACHE_DIR=/opt/setwise setwise compile

    Exit status: 0 success; 2 the code cannot be kept; 130 interrupted.
    """
    import warnings

    from setwise.kernel_cache import HINT, cache_folder, has_lost, is_written

    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of models that are thrown away
        folder = cache_folder()
        if folder is None or not is_written(folder):
            raise ValueError(HINT)
        for number, (model, X, Y) in enumerate(trials(), 1):
            model.fit(X, Y).predict(X[:5])
            echo(f"setwise: {time.perf_counter() - began:.0f} s: {number} models fitted", err=True)
        if find_spec("torch"):
            compile_losses()
    if has_lost():
        raise ValueError(HINT)
    seconds = time.perf_counter() - began
    told = {"folder": str(folder), "seconds": round(seconds, 1)}
    say(json, told, f"compiled in {seconds:.0f} s; kept in {folder}")


def trials() -> Iterator[tuple[Any, Any, Any]]:
    """Models, with small tables to fit, that need most kernels between them."""
    import numpy as np
    from scipy.sparse import csr_array
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    from setwise import LabelTreeClassifier, SetClassifier, SetClassifierCV, TargetDecoder
    from setwise.targets import TreeDistance

    generator = np.random.default_rng(0)
    X = generator.normal(size=(120, 8))
    Y = (X[:, :6] + generator.normal(size=(120, 6)) > 0.5).astype(np.int64)
    probable = OneVsRestClassifier(LogisticRegression())
    for measure in MEASURES:
        yield SetClassifierCV(measure), X, Y
        yield TargetDecoder(probable, measure), X, Y
    for inputs in (X, csr_array(X)):
        yield SetClassifier("f1", "binary_relevance"), inputs, Y
    yield SetClassifier("macro_f1", "metro"), X, Y
    yield LabelTreeClassifier("f1"), csr_array(X), Y
    for space in SPACES:
        yield SetClassifier("f1", space=space), X, Y
    for loss in LOSSES:
        yield SetClassifier("f1", loss, space="cube"), X, Y
        yield SetClassifier("f1", loss, space="catalog"), X, Y
    parents = np.array([-1, 0, 0, 1, 1, -1])
    closed = Y.copy()
    for label in range(1, 5):
        closed[:, label] *= closed[:, parents[label]]
    yield SetClassifierCV(TreeDistance(parents)), X, closed
    paths = np.zeros_like(Y)
    for row, last in enumerate(generator.integers(6, size=len(X))):
        while last >= 0:
            paths[row, last], last = 1, parents[last]
    yield SetClassifier(TreeDistance(parents)), X, paths


def compile_losses() -> None:
    """The losses of networks, in single precision."""
    import torch

    from setwise.nn import ExpectedLoss, SurrogateLoss

    logits, truth = torch.zeros(8, 6, requires_grad=True), torch.zeros(8, 6)
    for measure in ("f1", "jaccard", "hamming"):
        for loss in (ExpectedLoss(measure), SurrogateLoss(measure)):
            loss(logits, truth).backward()
