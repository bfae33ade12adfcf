"""Tree distance in training: which space, which label sets, and that predictions are closed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.labels import LabelNames
from setwise.spaces.catalog import Catalog
from setwise.spaces.forest import Forest
from setwise.spaces.paths import Paths
from setwise.spaces.space import Space
from setwise.targets.target import Target
from setwise.targets.tree_distance import TreeDistance

# The spaces that a taxonomy gives, by name; "auto" chooses one of them for tree distance.
HIERARCHIES = ("paths", "closed")


def hierarchy_space(name: str, target: Target, sets: NDArray[Any]) -> Paths | Forest:
    """Paths or closed sets of the target's taxonomy; "auto": paths if every set is one."""
    if not isinstance(target, TreeDistance):
        raise ValueError(
            f"space={name!r} is made from the taxonomy of target=TreeDistance(taxonomy), but the "
            f"target is {target}; for it use space=Paths(taxonomy) or Forest(taxonomy, closed=True)"
        )
    paths = Paths(target.parents)
    if name == "paths" or (name == "auto" and paths.contains(sets).all()):
        return paths
    return Forest(target.parents, closed=True)


def refuse_open(target: Any, sets: NDArray[Any], names: LabelNames, weights: NDArray[Any]) -> None:
    """Raise where the target is tree distance and y is not closed, or names other labels."""
    if not isinstance(target, TreeDistance):
        return
    if names.one_dimensional:
        raise ValueError(
            "tree distance is of label sets, but y has one class for each row; hand over each "
            "class with all above it: Taxonomy.close(y)"
        )
    if len(target.parents) != names.n_labels:
        raise ValueError(
            f"y must have {len(target.parents)} labels, as the taxonomy of the target has, but it "
            f"has {names.n_labels}; Taxonomy.close(y) makes a column for each label of the taxonomy"
        )
    taxonomy = target.taxonomy
    if names.names.dtype.kind == "U" and taxonomy.names.dtype.kind == "U":
        differ = np.flatnonzero(names.names != taxonomy.names)
        if len(differ):
            at = int(differ[0])
            raise ValueError(
                f"y and the taxonomy of the target must have their labels in one order, but label "
                f"{at} of y is {str(names.names[at])!r} and of the taxonomy "
                f"{str(taxonomy.names[at])!r}; Taxonomy.over(names) reorders it"
            )
    taxonomy.refuse_open(sets * (weights > 0)[:, None], "y")


def refuse_open_predictions(target: Target, space: Space) -> None:
    """Raise where the most likely set of the space need not be closed under tree distance."""
    if not isinstance(target, TreeDistance) or (target.parents < 0).all():
        return
    if isinstance(space, Paths) or (isinstance(space, Forest) and space.closed):
        if np.array_equal(space.parents, target.parents):
            return
    elif isinstance(space, Catalog) and target.taxonomy.is_closed(space.sets).all():
        return
    raise ValueError(
        f"the most likely set of {space} need not be closed, as tree distance asks of "
        f"predictions; use space='paths' or 'closed', or surrogate='likelihood' with the set of "
        f"least expected loss"
    )
