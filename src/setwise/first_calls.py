"""What first calls need compiled: small models that use it all, fitted once.

`setwise compile` fits them. So does an installation from source, for which `hatch_build.py` runs

    python -m setwise.first_calls

where little more than NumPy, SciPy, scikit-learn and numba need be there.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from setwise import LabelTreeClassifier, SetClassifier, SetClassifierCV, TargetDecoder
from setwise.estimators.strips import FEWEST, product, transposed_product
from setwise.kernel_cache import lost, prune, writable_folder
from setwise.spaces import Cube
from setwise.surrogates import GeneralizedCrossEntropy, Logistic
from setwise.targets import TreeDistance

MEASURES = (
    "f1", "jaccard", "subset", "hamming", "precision@3", "recall@3", "recall_samples", "macro_f1",
    "micro_f1", "macro_precision", "macro_g_mean",
)  # fmt: skip
SPACES = ("sized", "backoff", "forest", "cube")
LOSSES = ("logistic", "generalized_cross_entropy", "mean_absolute_error", "constrained_exponential")
# Of a hierarchy: the label above each.
PARENTS = np.array([-1, 0, 0, 1, 1, -1])


def compile_all(tell: Callable[[str], None]) -> None:
    """Compile and keep what first calls need, and tell of each model that was fitted.

    A ValueError where it cannot be kept.
    """
    writable_folder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of models that are thrown away
        for number, (model, X, Y) in enumerate(trials(), 1):
            model.fit(X, Y).predict(X[:5])
            tell(f"{number} models fitted")
        compile_losses()
        compile_products()
        if find_spec("torch"):
            compile_modules()
    if told := lost():
        raise ValueError(told)


def trials() -> Iterator[tuple[Any, Any, Any]]:
    """Models, with small tables to fit, that need most kernels between them."""
    X, Y = table()
    probable = OneVsRestClassifier(LogisticRegression())
    for measure in ("f1", "macro_f1"):
        yield SetClassifierCV(measure), X, Y
    for measure in MEASURES:
        yield SetClassifier(measure), X, Y
        yield SetClassifier(measure, "binary_relevance"), X, Y
        yield TargetDecoder(probable, measure), X, Y
    yield SetClassifier("f1", "binary_relevance"), csr_array(X), Y
    yield SetClassifier("macro_f1", "metro"), X, Y
    yield LabelTreeClassifier("f1"), csr_array(X), Y
    for space in SPACES:
        yield SetClassifier("f1", space=space), X, Y
    for loss in LOSSES:
        yield SetClassifier("f1", loss, space="cube"), X, Y
        yield SetClassifier("f1", loss, space="catalog"), X, Y
    yield SetClassifierCV(TreeDistance(PARENTS)), X, closed(Y)
    yield SetClassifier(TreeDistance(PARENTS)), X, paths(len(X))


def table() -> tuple[np.ndarray, np.ndarray]:
    """Features, and labels that depend on them."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(120, 8))
    return X, (X[:, :6] + generator.normal(size=(120, 6)) > 0.5).astype(np.int64)


def closed(Y: np.ndarray) -> np.ndarray:
    """Those labels whose parents are there too."""
    Y = Y.copy()
    for label in np.flatnonzero(PARENTS >= 0):
        Y[:, label] *= Y[:, PARENTS[label]]
    return Y


def paths(n_rows: int) -> np.ndarray:
    """A label a row, with all above it."""
    Y = np.zeros((n_rows, len(PARENTS)), np.int64)
    for row, last in enumerate(np.random.default_rng(0).integers(len(PARENTS), size=n_rows)):
        while last >= 0:
            Y[row, last], last = 1, PARENTS[last]
    return Y


def compile_losses() -> None:
    """The losses of networks, in single precision."""
    scores, truth = np.zeros((8, 6), np.float32), np.zeros((8, 6), np.uint8)
    for loss in (Logistic, GeneralizedCrossEntropy):
        for measure in ("f1", "hamming"):
            loss(measure, Cube(6)).value_and_gradient(scores, truth)


def compile_products() -> None:
    """Products of sparse inputs with many labels, in both precisions."""
    for dtype in (np.float32, np.float64):
        inputs, values = csr_array(np.eye(FEWEST, dtype=dtype)), np.eye(FEWEST, dtype=dtype)
        product(inputs, values)
        transposed_product(inputs, values)


def compile_modules() -> None:
    """What the modules of networks need beside their losses, which takes PyTorch."""
    import torch

    from setwise.nn import SurrogateLoss

    logits, truth = torch.zeros(8, 6, requires_grad=True), torch.zeros(8, 6)
    for measure in ("f1", "subset"):
        SurrogateLoss(measure)(logits, truth).backward()


def install() -> None:
    """Compile, leave no kernels of other sources in the folder, and let every user read it."""
    began = time.time()
    os.umask(0o022)
    folder = writable_folder()
    folder.chmod(0o755)
    try:
        compile_all(print)
    finally:
        prune(folder, time.time() - began)


if __name__ == "__main__":
    install()
