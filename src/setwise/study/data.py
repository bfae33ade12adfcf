"""What a study is given: features, label sets with names, and which rows are held out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from setwise.estimators.folds import StratifiedLabelSets
from setwise.evaluation.sample import label_sets
from setwise.labels import read_labels
from setwise.validation import whole_number

Rows = NDArray[np.intp]
Split = tuple[Rows, Rows]


def read_inputs(X: Any) -> tuple[Any, bool]:
    """Features as a float array or tidy CSR array, and whether some are missing (NaN)."""
    if issparse(X):
        inputs: Any = csr_array(X, copy=True)
        inputs.sum_duplicates()
    else:
        try:
            inputs = np.asarray(X)
            if inputs.dtype == object:
                inputs = inputs.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X must be a matrix of numbers: {error}") from error
    if inputs.dtype.kind not in "biuf":
        raise ValueError(f"X must be a matrix of numbers, but its dtype is {inputs.dtype}")
    if inputs.ndim != 2 or 0 in inputs.shape:
        raise ValueError(
            f"X must have shape (n, n_features), with at least one of each, but its shape is "
            f"{inputs.shape}"
        )
    inputs = inputs.astype(np.float32 if inputs.dtype == np.float32 else np.float64)
    values = inputs.data if issparse(inputs) else inputs
    if np.isinf(values).any():
        raise ValueError("X must be finite, or NaN where a value is missing, but some are infinite")
    return inputs, bool(np.isnan(values).any())


def read_sets(Y: Any, label_names: Any) -> tuple[csr_array, tuple[str, ...] | None]:
    """Label sets as a CSR array of 0/1, and a name for each label, None where there are none."""
    own: Any = None
    if issparse(Y) or np.ndim(np.empty(0) if _is_list_of_labels(Y) else Y) == 2:
        own = getattr(Y, "columns", None)
        matrix = np.asarray(Y) if own is not None else Y
        sets = label_sets(matrix, "Y")
    else:
        read, names = read_labels(Y)
        if names.one_dimensional:
            raise ValueError(
                "Y must have a label set for each row, as 0/1 columns or lists of labels, "
                "but it has one class for each row"
            )
        sets, own = label_sets(read, "Y"), names.names
    n_labels = sets.shape[1]
    chosen = label_names if label_names is not None else own
    if chosen is None:
        return csr_array(sets.astype(np.uint8)), None
    names = tuple(map(str, chosen))
    if len(names) != n_labels or len(set(names)) != n_labels:
        raise ValueError(
            f"label_names must be {n_labels} different names, one for each label, but there are "
            f"{len(set(names))} different ones among {len(names)}"
        )
    return csr_array(sets.astype(np.uint8)), names


def _is_list_of_labels(Y: Any) -> bool:
    """Whether rows are lists or sets of labels, which have no common length or are text."""
    if not isinstance(Y, list | tuple) or not Y:
        return False
    rows = [row for row in Y if isinstance(row, list | tuple | set | frozenset | np.ndarray)]
    lengths = {len(row) for row in rows}
    texts = any(isinstance(label, str) for row in rows for label in row)
    return len(rows) == len(Y) and (
        len(lengths) > 1 or texts or isinstance(rows[0], set | frozenset)
    )


def read_folds(folds: Any, sets: csr_array, seed: int) -> tuple[tuple[Split, ...], str]:
    """The rows to train on and to hold out in each fold, checked, and the folds in words."""
    shape: Any = sets.shape
    given: Any
    if isinstance(folds, int | np.integer):
        splitter = StratifiedLabelSets(whole_number(folds, "folds", 2), random_state=seed)
        given, words = splitter.split(None, sets), f"{folds} folds, every label spread evenly"
    elif hasattr(folds, "get_n_splits"):
        given, words = folds.split(np.empty((shape[0], 0)), sets.toarray()), str(folds)
    elif _is_split(folds):
        given, words = [folds], "one split into training and test rows"
    elif isinstance(folds, Sequence) and folds and all(map(_is_split, folds)):
        given, words = folds, f"{len(folds)} splits into training and test rows"
    else:
        raise ValueError(
            "folds must be a number of folds, a pair (train, test) of row numbers, a list of such "
            f"pairs or a splitter, not {folds!r}"
        )
    splits = tuple(
        (_rows(train, shape[0], f"the training rows of fold {fold}"),
         _rows(test, shape[0], f"the test rows of fold {fold}"))
        for fold, (train, test) in enumerate(given)
    )  # fmt: skip
    _refuse_overlap(splits, shape[0])
    return splits, words


def _is_split(value: Any) -> bool:
    """Whether it is a pair of one-dimensional lists of row numbers, or of masks."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        return False
    try:
        parts = [np.asarray(part) for part in value]
    except ValueError:
        return False
    return all(part.ndim == 1 and (part.dtype.kind in "iub" or not part.size) for part in parts)


def _rows(part: Any, n_rows: int, name: str) -> Rows:
    rows = np.asarray(part)
    if rows.dtype == bool:
        if len(rows) != n_rows:
            raise ValueError(f"{name}: the mask must have {n_rows} entries, but has {len(rows)}")
        rows = np.flatnonzero(rows)
    if len(rows) == 0:
        raise ValueError(f"{name}: there must be at least one")
    if rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n_rows:
        raise ValueError(
            f"{name} must be whole numbers from 0 to {n_rows - 1}, but they go from {rows.min()} "
            f"to {rows.max()}"
        )
    if len(np.unique(rows)) < len(rows):
        raise ValueError(f"{name} must be there once each, but some are repeated")
    return rows.astype(np.intp)


def _refuse_overlap(splits: Sequence[Split], n_rows: int) -> None:
    held = np.full(n_rows, -1)
    for fold, (train, test) in enumerate(splits):
        common = np.intersect1d(train, test)
        if len(common):
            raise ValueError(
                f"fold {fold} trains on rows that it holds out, the first of {len(common)} is row "
                f"{common[0]}"
            )
        if (held[test] >= 0).any():
            row = int(test[np.argmax(held[test] >= 0)])
            raise ValueError(
                f"each row may be held out once, but row {row} is in fold {held[row]} and in fold "
                f"{fold}"
            )
        held[test] = fold
