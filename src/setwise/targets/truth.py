"""True label sets as a target takes them: for tree distance closed, over the taxonomy's labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise.labels import LabelNames, form_of, read_labels
from setwise.spelling import some
from setwise.targets.tree_distance import TreeDistance


def read_truth(target: Any, y: Any) -> tuple[Any, LabelNames]:
    """Label sets and the names of their labels, from any form of `read_labels`.

    For tree distance the labels are those of the taxonomy, in its order: lists are read by its
    names, a data frame must have its columns. A taxonomy whose labels are numbered from 0 has the
    names of the data frame. Whether sets are closed is asked of `refuse_open`.
    """
    if not isinstance(target, TreeDistance):
        return read_labels(y)
    numbers = np.arange(len(target.parents))
    names = LabelNames(numbers if target.names is None else target.names)
    form = form_of(y, column_of_classes=False)
    if form.one_dimensional:
        raise ValueError(
            "tree distance is of label sets, but y has one class for each row; hand over each "
            "class with all above it: Taxonomy.close(y)"
        )
    columns = form.columns if form.in_order else None
    numbered = names.names.tolist() == numbers.tolist()
    if columns is not None and columns.dtype.kind not in "iu" and numbered:
        names = LabelNames(columns) if len(columns) == len(numbers) else names
    return names.encode(y), names


def refuse_other_labels(target: Any, names: LabelNames) -> None:
    """Raise where the labels that were trained on are not those of the target's taxonomy, in order.

    Labels that are numbered from 0 are taken as they come.
    """
    if not isinstance(target, TreeDistance):
        return
    numbers = list(range(len(target.parents)))
    own = numbers if target.names is None else np.asarray(target.names).tolist()
    given = names.names.tolist()
    if len(own) != len(given) or (own != given and numbers not in (own, given)):
        raise ValueError(
            f"the labels of the taxonomy must be those that were trained on, in their order, "
            f"{some(given)}, but they are {some(own)}; Taxonomy.over(names) reorders it"
        )


def refuse_open(target: Any, sets: Any, weights: Any = None) -> None:
    """Raise for the first true label set that is not closed, if the target is tree distance.

    A row of weight 0 is as if it were not there.
    """
    if isinstance(target, TreeDistance):
        counted = sets if weights is None else sets * (weights > 0)[:, None]
        target.hierarchy.refuse_open(counted, "y")


def encode_truth(target: Any, names: LabelNames, y: Any) -> Any:
    """The label sets of another y over the same labels; for tree distance closed ones."""
    sets = names.encode(y)
    refuse_open(target, sets)
    return sets
