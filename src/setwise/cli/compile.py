"""`setwise compile`: the kernels compiled and kept now, so that no first call waits for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from setwise.cli.options import command, say

MEASURES = (
    "f1", "jaccard", "subset", "hamming", "precision@3", "recall@3", "macro_f1", "micro_f1",
)  # fmt: skip
SPACES = ("sized", "backoff", "forest", "cube")
LOSSES = ("logistic", "generalized_cross_entropy", "mean_absolute_error", "constrained_exponential")


@command()
def compile(*, json: bool = False) -> None:
    r"""Compile everything now, so that later first calls need not.

    setwise compiles its inner loops when they are first used, and keeps the machine code in a
    folder (`setwise doctor` says where). Run this once where the first call must not take seconds,
    for instance while a container image is built. It takes about a minute.

    \b
    Examples:
      setwise compile
      NUMBA_CACHE_DIR=/opt/setwise setwise compile

    Exit status: 0 success; 2 there is no folder to keep the code in.
    """
    import warnings

    from setwise.kernel_cache import HINT, cache_folder

    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of models that are thrown away
        folder = cache_folder()
        if folder is None:
            raise ValueError(HINT)
        for model, X, Y in trials():
            model.fit(X, Y).predict(X[:5])
    seconds = time.perf_counter() - began
    told = {"folder": str(folder), "seconds": round(seconds, 1)}
    say(json, told, f"compiled in {seconds:.0f} s; kept in {folder}")


def trials() -> Iterator[tuple[Any, Any, Any]]:
    """Models, with small tables to fit, that need all kernels between them."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    from setwise import SetClassifier, SetClassifierCV, TargetDecoder
    from setwise.targets import TreeDistance

    generator = np.random.default_rng(0)
    X = generator.normal(size=(120, 8))
    Y = (X[:, :6] + generator.normal(size=(120, 6)) > 0.5).astype(np.int64)
    probable = OneVsRestClassifier(LogisticRegression())
    for measure in MEASURES:
        yield SetClassifierCV(measure), X, Y
        yield TargetDecoder(probable, measure), X, Y
    yield SetClassifier("f1", "binary_relevance"), X, Y
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
