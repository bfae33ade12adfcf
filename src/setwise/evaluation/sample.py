"""A sample: label sets and what was predicted for them, checked, read a range of rows at a time.

Label sets are kept sparse. Probabilities and scores stay as they came, dense or sparse; an absent
entry is 0. Nothing here makes a dense array of all rows out of a sparse one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from setwise.sparse import entries_of, refuse_entries, row_ranges, tidied, tidy_sets
from setwise.validation import label_matrix, probability_matrix, score_matrix

Array = NDArray[Any]


@dataclass(frozen=True)
class Sample:
    """Predicted and true label sets, with probabilities and scores where they are known.

    ``columns`` are those of a data frame, if one of them came as such; with names, if one has some.
    """

    predicted: Any
    true: Any
    probability: Any = None
    scores: Any = None
    columns: list[Any] | None = None

    @cached_property
    def both(self) -> Any:
        """The labels that are true and predicted, CSR."""
        return self.predicted.multiply(self.true)


def checked_sample(
    y_pred: Any, y_true: Any, probability: Any = None, scores: Any = None, suffix: str = ""
) -> Sample:
    """A sample from arrays of one shape; ``suffix`` completes their names in errors."""
    given = {
        "y_true": (label_sets, y_true),
        f"y_pred{suffix}": (label_sets, y_pred),
        f"probability{suffix}": (_probabilities, probability),
        f"scores{suffix}": (_finite, scores),
    }
    columns = one_order({name: _columns(values) for name, (_, values) in given.items()})
    found: dict[str, Any] = {}
    for name, (read, values) in given.items():
        found[name] = None if values is None and read is not label_sets else read(values, name)
        if found[name] is not None and found[name].shape != found["y_true"].shape:
            raise ValueError(
                f"{name} and y_true must have the same shape, but {name} has "
                f"{found[name].shape} and y_true has {found['y_true'].shape}"
            )
    true, *others = found.values()
    predicted, probability, scores = others
    return Sample(predicted, true, probability, scores, columns)


def _columns(values: Any) -> list[Any] | None:
    """The columns of a data frame, None of what is none."""
    is_frame = hasattr(values, "columns") and hasattr(values, "to_numpy")
    return list(values.columns) if is_frame else None


def one_order(columns: dict[str, list[Any] | None], advice: str = "") -> list[Any] | None:
    """The columns that all data frames among the arguments share; a ValueError if they differ.

    Columns that only count, 0, 1, ..., are taken for no names, and agree with any others.
    """
    given = {name: its for name, its in columns.items() if its is not None}
    counted = {name for name, its in given.items() if its == list(range(len(its)))}
    first = min(given, key=lambda name: name in counted, default="")
    for name, its in given.items():
        pairs = list(zip(given[first], its, strict=False))
        place = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
        if place is None or ({first, name} & counted and set(its) != set(given[first])):
            continue
        a, b = pairs[place]
        raise ValueError(
            f"{first} and {name} must have the same columns in the same order, but column {place} "
            f"of {first} is {a!r} and of {name} {b!r}; if they are the same labels in this order, "
            + (advice or f"{name}.to_numpy() leaves out the names")
        )
    return given.get(first)


def label_sets(sets: Any, name: str) -> Any:
    """Label sets as a CSR array of ones, from dense or sparse."""
    dense = not issparse(sets)
    matrix = entries_of(label_matrix(sets, None, name)) if dense else tidy_sets(sets, name)
    if 0 in matrix.shape:
        raise ValueError(
            f"{name} must have at least one row and one label, but its shape is {matrix.shape}"
        )
    return matrix.astype(np.int64)


def _probabilities(values: Any, name: str) -> Any:
    """Probabilities in float64, dense or CSR without stored zeros."""
    return probability_matrix(values, name).astype(np.float64, copy=False)


def _finite(values: Any, name: str) -> Any:
    """Real numbers in float64, dense or CSR without stored zeros."""
    if not issparse(values):
        return score_matrix(values, None, name).astype(np.float64, copy=False)
    matrix = tidied(values, name).astype(np.float64)
    refuse_entries(matrix, ~np.isfinite(matrix.data), name, "be finite")
    return matrix


def in_parts(function: Callable[..., Any], matrix: Any, true: Any, *others: Any) -> list[Array]:
    """What a function gives of two CSR arrays, taken some rows at a time and put together.

    The first may be dense; a range of its rows is made sparse at a time, without stored zeros.
    """
    parts = []
    for rows in row_ranges(*true.shape):
        part = matrix[rows] if issparse(matrix) else csr_array(matrix[rows])
        parts.append(function(part, true[rows], *others))
    return [np.concatenate(part) for part in zip(*parts, strict=True)]
