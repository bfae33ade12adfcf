"""The likelihood on a space, by its fastest way."""

from __future__ import annotations

from setwise.estimators.hierarchy_likelihood import HierarchyLikelihood
from setwise.estimators.objective import (
    Array,
    CatalogLikelihood,
    JointLikelihood,
    Likelihood,
    Objective,
    refuse_outside,
)
from setwise.spaces.catalog import Catalog
from setwise.spaces.closed import ClosedLaw
from setwise.spaces.forest import Forest
from setwise.spaces.paths import Paths
from setwise.spaces.space import Space


def likelihood(space: Space, y_true: Array, weights: Array) -> Objective:
    """The sum of -log s(y) over rows; a row whose set is not in the space is refused."""
    if isinstance(space, Catalog):
        return (JointLikelihood if space.joint else CatalogLikelihood)(space, y_true, weights)
    law = space.closed_law if isinstance(space, Forest) else space
    if not isinstance(law, ClosedLaw | Paths):
        return Likelihood(space, y_true, weights)
    refuse_outside(space.contains(y_true), space)
    return HierarchyLikelihood(law, y_true, weights)
