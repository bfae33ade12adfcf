"""What `fit` is given, as arrays that a solver can trust."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, validate_data

from setwise.labels import LabelNames, read_labels
from setwise.targets.truth import read_truth, refuse_open


def read_training(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Any, NDArray[np.uint8], LabelNames, NDArray[np.float64]]:
    """Inputs, dense label sets, their names and the rows' weights, checked against one another."""
    if y is None:
        read_labels(y)
    inputs: Any = validate_data(estimator, X, accept_sparse="csr", dtype=[np.float64, np.float32])
    sets, names = read_truth(estimator.target, y)
    sets = sets.toarray() if hasattr(sets, "toarray") else sets
    if len(sets) != inputs.shape[0]:
        raise ValueError(
            f"X and y must have the same number of rows, but X has {inputs.shape[0]} and y "
            f"{len(sets)}"
        )
    weights = np.asarray(
        _check_sample_weight(sample_weight, inputs, ensure_non_negative=True), np.float64
    )
    if not weights.sum() > 0:
        raise ValueError("sample_weight must not be all zero")
    refuse_open(estimator.target, sets, weights)
    return inputs, sets, names, weights


def counted(
    inputs: Any, sets: NDArray[np.uint8], weights: NDArray[np.float64]
) -> tuple[Any, NDArray[np.uint8], NDArray[np.float64]]:
    """The rows of positive weight: one of weight 0 is as if it were not there."""
    kept = weights > 0
    return (inputs, sets, weights) if kept.all() else (inputs[kept], sets[kept], weights[kept])
