"""Probabilities as an estimator says them: in [0, 1], rows that add up to 1, logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise.targets.measure import Array

# How far outside [0, 1] rounding may take a probability, and a sum of many from 1.
ROUNDING, SUM_ROUNDING = 1e-6, 1e-5


def in_unit_interval(probability: Array, estimator: Any) -> Array:
    """As floats in [0, 1]: what rounding took outside is put to the end, more is refused."""
    if probability.dtype.kind != "f":
        probability = probability.astype(np.float64)
    inside = (probability >= -ROUNDING) & (probability <= 1.0 + ROUNDING)
    if not inside.all():
        row, column = (int(i) for i in np.argwhere(~inside)[0])
        raise ValueError(
            f"{type(estimator).__name__}.predict_proba must give probabilities in [0, 1], but "
            f"row {row}, column {column} is {probability[row, column]}"
        )
    return np.clip(probability, 0.0, 1.0)


def require_law(probability: Array, estimator: Any) -> None:
    """Raise unless each row adds up to 1, up to rounding."""
    total = probability.sum(axis=1, dtype=np.float64)
    wrong = np.flatnonzero(np.abs(total - 1.0) > SUM_ROUNDING)
    if len(wrong):
        raise ValueError(
            f"{type(estimator).__name__}.predict_proba must give rows that add up to 1, but row "
            f"{wrong[0]} adds up to {total[wrong[0]]} ({len(wrong)} such rows)"
        )


def logits(probability: Array) -> Array:
    """log(p / (1 - p)), finite: 0 and 1 are taken for the least positive number and 1 minus it."""
    least = np.finfo(probability.dtype).tiny
    return np.log(np.maximum(probability, least)) - np.log(np.maximum(1.0 - probability, least))
