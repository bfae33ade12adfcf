"""Tree distance in training: which space, and that predictions are closed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def refuse_open_predictions(target: Target, space: Space) -> None:
    """Raise where the most likely set of the space need not be closed under tree distance."""
    if not isinstance(target, TreeDistance) or target.hierarchy.depth == 1:
        return
    if isinstance(space, Paths) or (isinstance(space, Forest) and space.closed):
        if np.array_equal(space.parents, target.parents) and not len(target.left_out):
            return
    elif isinstance(space, Catalog) and target.hierarchy.is_closed(space.sets).all():
        return
    several = "where labels have several parents, " if len(target.left_out) else ""
    others = "" if several else "space='paths' or 'closed', or "
    raise ValueError(
        f"{several}the most likely set of {space} need not be closed, as tree distance asks of "
        f"predictions; use {others}surrogate='likelihood' with the set of least expected loss"
    )
