"""What a study is given, checked: features, label sets with names, a hierarchy, rows held out.

And what makes two studies the same: everything that figures depend on, as JSON and digests.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_array

from setwise.estimators.folds import StratifiedLabelSets
from setwise.evaluation.sample import label_sets
from setwise.labels import read_labels
from setwise.targets import Target, get_target
from setwise.targets.target import hierarchy_of
from setwise.taxonomy import Taxonomy
from setwise.validation import whole_number

Rows = NDArray[np.intp]
Split = tuple[Rows, Rows]


def read_inputs(X: Any, n_rows: int) -> tuple[Any, bool]:
    """Features as a float array or tidy CSR array, and whether some are missing (NaN)."""
    floats: Any = {"dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"}
    floats["accept_sparse"] = "csr"
    inputs: Any = check_array(X, copy=True, input_name="X", **floats)
    if issparse(inputs):
        inputs = csr_array(inputs)
        inputs.sum_duplicates()
    if inputs.shape[0] != n_rows:
        raise ValueError(
            f"X and Y must have the same number of rows, but X has {inputs.shape[0]} and Y has "
            f"{n_rows}"
        )
    return inputs, bool(np.isnan(inputs.data if issparse(inputs) else inputs).any())


def read_sets(Y: Any, label_names: Any) -> tuple[csr_array, tuple[str, ...] | None]:
    """Label sets as a CSR array of 0/1, and a name for each label, None where there are none."""
    if issparse(Y) or (not _is_list_of_labels(Y) and np.ndim(Y) == 2):
        own = getattr(Y, "columns", None)
        sets = label_sets(Y if own is None else np.asarray(Y), "Y")
    else:
        read, labels = read_labels(Y)
        if labels.one_dimensional:
            raise ValueError(
                "Y must have a label set for each row, as 0/1 columns or lists of labels, "
                "but it has one class for each row"
            )
        sets, own = label_sets(read, "Y"), labels.names
    chosen = own if label_names is None else label_names
    names = None if chosen is None else tuple(map(str, chosen))
    if names is not None and not len(names) == len(set(names)) == sets.shape[1]:
        raise ValueError(
            f"label_names must be {sets.shape[1]} different names, one for each label, but there "
            f"are {len(set(names))} different ones among {len(names)}"
        )
    return csr_array(sets.astype(np.uint8)), names


def _is_list_of_labels(Y: Any) -> bool:
    """Whether rows are lists or sets of labels, which have no common length or are text."""
    if not isinstance(Y, list | tuple) or not Y:
        return False
    rows = [row for row in Y if isinstance(row, list | tuple | set | frozenset | np.ndarray)]
    texts = any(isinstance(label, str) for row in rows for label in row)
    return len(rows) == len(Y) and (
        len({len(row) for row in rows}) > 1 or texts or isinstance(rows[0], set | frozenset)
    )


def read_targets(targets: Any, n_labels: int) -> dict[str, Target]:
    """Targets by name from a list of names and targets, or from a mapping."""
    if isinstance(targets, str) or not isinstance(targets, Mapping | Sequence) or not targets:
        raise ValueError(
            f"targets must be a list such as ['f1', 'hamming'] or a mapping from names to targets, "
            f"not {targets!r}"
        )
    if isinstance(targets, Mapping):
        pairs = [(name, get_target(target)) for name, target in targets.items()]
    else:
        pairs = [(str(target), target) for target in map(get_target, targets)]
    names = [name for name, _ in pairs]
    for name, target in pairs:
        require_name(name, "target")
        if names.count(name) > 1:
            raise ValueError(
                f"targets must have different names, but two are named {name!r}; a mapping from "
                f"names to targets tells them apart"
            )
        # A target made for other labels says so here.
        target.measure(n_labels, "loss")
    return dict(pairs)


def require_name(name: Any, of: str) -> None:
    """Raise unless it is text that can be shown."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ValueError(f"the name of a {of} must be printable text, not {name!r}")


# ------------------------------------------------------------------------------------ the hierarchy


def read_taxonomy(
    given: Any, targets: Mapping[str, Target], sets: csr_array, names: Any
) -> Taxonomy | None:
    """The hierarchy given, or of the first target that has one; of all, that Y fits them."""
    if given is not None and not isinstance(given, Taxonomy):
        raise ValueError(
            f"taxonomy must be a Taxonomy, such as Taxonomy.from_parents(parents), not a "
            f"{type(given).__name__}"
        )
    own = [tree for target in targets.values() if (tree := hierarchy_of(target)) is not None]
    for taxonomy in own if given is None else [given, *own]:
        _require_labels(taxonomy, names, sets.shape)
    for taxonomy in own:
        taxonomy.refuse_open(sets)
    return next(iter(own), None) if given is None else given


def _require_labels(taxonomy: Taxonomy, names: Any, shape: Any) -> None:
    """Raise unless the taxonomy has the labels of Y in their order, as far as both have names."""
    if taxonomy.n_labels != shape[1]:
        raise ValueError(
            f"the taxonomy must have the {shape[1]} labels of Y, but it has {taxonomy.n_labels}; "
            f"Taxonomy.close makes a column of Y for each label of the taxonomy"
        )
    if names is None or taxonomy.names.dtype.kind in "iu":
        return
    for at, (own, name) in enumerate(zip(map(str, taxonomy.names.tolist()), names, strict=True)):
        if own != name:
            raise ValueError(
                f"the taxonomy must have the labels of Y in their order, but label {at} of Y is "
                f"{name!r} and of the taxonomy {own!r}; Taxonomy.over(names) reorders it"
            )


# --------------------------------------------------------------------------------- rows held out


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
    splits, held = [], np.full(shape[0], -1)
    for fold, parts in enumerate(given):
        named = zip(("training", "test"), parts, strict=True)
        train, test = (_rows(part, shape[0], f"the {of} rows of fold {fold}") for of, part in named)
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
        splits.append((train, test))
    return tuple(splits), words


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


# -------------------------------------------------------------------------- what is the same


def array_digest(array: Any) -> str:
    """The content of a dense or CSR array; the same numbers in another type are others."""
    found = hashlib.sha256(str(array.shape).encode())
    indices = [array.indices, array.indptr] if issparse(array) else []
    for part in (array.data if indices else array, *(part.astype(np.int64) for part in indices)):
        found.update(part.dtype.str.encode())
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()


def described(value: Any) -> Any:
    """A value as JSON that is the same in every process: estimators and targets by their settings.

    Arrays stand as digests, functions by their name and compiled code. What has no better way is
    its type and `repr`, without addresses.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.random.RandomState):
        value = value.get_state(legacy=False)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else repr(value)
    if issparse(value):
        return array_digest(csr_array(value))
    if isinstance(value, np.ndarray) and value.dtype != object:
        return array_digest(value)
    if isinstance(value, Mapping):
        return {str(key): described(part) for key, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [described(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(described(part), sort_keys=True) for part in value)
    if isinstance(value, Taxonomy):
        lengths = np.asarray(value.lengths_of_edges)
        if value.is_tree and (lengths == 1.0).all():
            return value.parents.tolist()
        return {"edges": value.edges.tolist(), "lengths": lengths.tolist()}
    kind = value if isinstance(value, type) else type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, type):
        return name
    if hasattr(value, "__code__"):
        code = value.__code__
        text = code.co_code + _plain(repr(code.co_consts)).encode()
        return f"{value.__module__}.{value.__qualname__} {hashlib.sha256(text).hexdigest()}"
    if hasattr(value, "get_params"):
        return {name: described(value.get_params(deep=False))}
    if is_dataclass(value):
        return {name: described({part.name: getattr(value, part.name) for part in fields(value)})}
    return f"{name} {_plain(repr(value))}"


def _plain(text: str) -> str:
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)
