"""The hierarchy over the labels of a study, and that it is over the same labels as Y."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from setwise.targets import Target, TreeDistance
from setwise.taxonomy import Taxonomy


def known_taxonomy(given: Any, targets: Mapping[str, Target]) -> Taxonomy | None:
    """The one given, or that of the first target that has one."""
    if given is None:
        trees = (target for target in targets.values() if isinstance(target, TreeDistance))
        return next((tree.hierarchy for tree in trees), None)
    if not isinstance(given, Taxonomy):
        raise ValueError(
            f"taxonomy must be a Taxonomy, such as Taxonomy.from_parents(parents), not a "
            f"{type(given).__name__}"
        )
    return given


def refuse_other_labels(taxonomy: Taxonomy | None, names: Any, n_labels: int) -> None:
    """Raise unless the taxonomy has the labels of Y in their order, as far as both have names."""
    if taxonomy is None:
        return
    if taxonomy.n_labels != n_labels:
        raise ValueError(
            f"the taxonomy must have the {n_labels} labels of Y, but it has {taxonomy.n_labels}; "
            f"Taxonomy.close makes a column of Y for each label of the taxonomy"
        )
    if names is None or taxonomy.names.dtype.kind in "iu":
        return
    own = [str(name) for name in taxonomy.names.tolist()]
    differ = [at for at, name in enumerate(names) if name != own[at]]
    if differ:
        at = differ[0]
        raise ValueError(
            f"the taxonomy must have the labels of Y in their order, but label {at} of Y is "
            f"{names[at]!r} and of the taxonomy {own[at]!r}; Taxonomy.over(names) reorders it"
        )


def refuse_misplaced(targets: Iterable[Target], sets: csr_array, names: Any) -> None:
    """Raise where a tree distance is over other labels than Y, or Y is not closed."""
    for target in targets:
        if isinstance(target, TreeDistance):
            refuse_other_labels(target.hierarchy, names, len(target.lengths))
            target.hierarchy.refuse_open(sets)


def as_identity(taxonomy: Taxonomy | None) -> Any:
    """The hierarchy as JSON: parents where they say all there is to it."""
    if taxonomy is None:
        return None
    lengths = np.asarray(taxonomy.lengths_of_edges)
    if taxonomy.is_tree and (lengths == 1.0).all():
        return taxonomy.parents.tolist()
    return {"edges": taxonomy.edges.tolist(), "lengths": lengths.tolist()}
