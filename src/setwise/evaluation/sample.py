"""A sample: label sets and what was predicted for them, checked, read a range of rows at a time.

Label sets are kept sparse. Probabilities and scores stay as they came, dense or sparse; an absent
entry is 0. Nothing here makes a dense array of all rows out of a sparse one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from setwise.sparse import entries_of, refuse_entries, tidied
from setwise.validation import label_matrix, probability_matrix, score_matrix

Array = NDArray[Any]

# Rows are worked on in ranges of about this many entries, which bounds the memory.
CHUNK_ENTRIES = 2**22


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

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.true.shape[0]

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.true.shape[1]

    @cached_property
    def both(self) -> Any:
        """The labels that are true and predicted, CSR."""
        return self.predicted.multiply(self.true)

    @property
    def ranked_by(self) -> Any:
        """What labels are ranked by: the scores, else the probabilities, else None."""
        return self.probability if self.scores is None else self.scores


def checked_sample(
    y_pred: Any, y_true: Any, probability: Any = None, scores: Any = None, suffix: str = ""
) -> Sample:
    """A sample from arrays of one shape; ``suffix`` completes their names in errors."""
    named = {
        "y_true": y_true,
        f"y_pred{suffix}": y_pred,
        f"probability{suffix}": probability,
        f"scores{suffix}": scores,
    }
    columns = one_order({name: columns_of(values) for name, values in named.items()})
    true = label_sets(y_true, "y_true")
    predicted = label_sets(y_pred, f"y_pred{suffix}")
    require_shape(predicted, true, f"y_pred{suffix}")
    if probability is not None:
        probability = checked_probability(probability, true, suffix)
    if scores is not None:
        scores = finite_matrix(scores, f"scores{suffix}")
        require_shape(scores, true, f"scores{suffix}")
    return Sample(predicted, true, probability, scores, columns)


def columns_of(values: Any) -> list[Any] | None:
    """The columns of a data frame, None of what is none."""
    is_frame = hasattr(values, "columns") and hasattr(values, "to_numpy")
    return list(values.columns) if is_frame else None


def one_order(columns: dict[str, list[Any] | None]) -> list[Any] | None:
    """The columns of all that have some, by the names of the arguments; all must agree."""
    given = {name: its for name, its in columns.items() if its is not None}
    if not given:
        return None
    first = next((name for name, its in given.items() if not only_count(its)), next(iter(given)))
    for name, its in given.items():
        place = first_difference(given[first], its)
        if place is not None:
            raise ValueError(
                f"{first} and {name} must have the same columns in the same order, but column "
                f"{place} of {first} is {given[first][place]!r} and of {name} {its[place]!r}; if "
                f"they are the same labels in this order, {name}.to_numpy() leaves out the names"
            )
    return given[first]


def only_count(names: list[Any]) -> bool:
    """Whether names are 0, 1, ... in this order, which stand for no labels in particular."""
    return names == list(range(len(names)))


def first_difference(one: list[Any], other: list[Any]) -> int | None:
    """The first place where names differ; None if nowhere, or if those of one only count."""
    if (only_count(one) or only_count(other)) and set(one) != set(other):
        return None
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), None)


def checked_probability(probability: Any, true: Any, suffix: str = "") -> Any:
    """Probabilities of the entries of ``true`` in float64, dense or CSR without stored zeros."""
    matrix = probability_matrix(probability, f"probability{suffix}")
    require_shape(matrix, true, f"probability{suffix}")
    return matrix.astype(np.float64, copy=False)


def probability_and_truth(probability: Any, y_true: Any) -> tuple[Any, Any]:
    """Probabilities and true label sets of one shape, with their columns in one order."""
    one_order({"y_true": columns_of(y_true), "probability": columns_of(probability)})
    true = label_sets(y_true, "y_true")
    return checked_probability(probability, true), true


def label_sets(sets: Any, name: str) -> Any:
    """Label sets as a CSR array of ones, from dense or sparse."""
    matrix: Any
    if issparse(sets):
        matrix = tidied(sets, name)
        refuse_entries(matrix, matrix.data != 1, name, "hold only 0 and 1")
    else:
        matrix = entries_of(label_matrix(sets, None, name))
    if 0 in matrix.shape:
        raise ValueError(
            f"{name} must have at least one row and one label, but its shape is {matrix.shape}"
        )
    return matrix.astype(np.int64)


def finite_matrix(values: Any, name: str) -> Any:
    """Real numbers as float64: a dense array, or a CSR array without stored zeros."""
    if not issparse(values):
        return score_matrix(values, None, name).astype(np.float64, copy=False)
    matrix = tidied(values, name).astype(np.float64)
    refuse_entries(matrix, ~np.isfinite(matrix.data), name, "be finite")
    return matrix


def require_shape(matrix: Any, true: Any, name: str) -> None:
    """Raise unless ``matrix`` has the shape of the true label sets."""
    if matrix.shape != true.shape:
        raise ValueError(
            f"{name} and y_true must have the same shape, "
            f"but {name} has {matrix.shape} and y_true has {true.shape}"
        )


def row_ranges(n_rows: int, n_labels: int) -> Iterator[slice]:
    """Ranges that cover the rows, each of a bounded number of entries."""
    step = max(1, CHUNK_ENTRIES // n_labels)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def sparse_rows(matrix: Any, rows: slice) -> Any:
    """A range of rows as CSR without stored zeros."""
    return matrix[rows] if issparse(matrix) else csr_array(matrix[rows])
