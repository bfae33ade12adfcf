"""Hierarchies over labels: which labels bring which others along, and how far apart they are."""

from setwise.taxonomy.edges import are_closed, forest_levels, parent_vector, raised, steps_up
from setwise.taxonomy.taxonomy import Taxonomy, tree_of, tree_parents

__all__ = [
    "Taxonomy",
    "are_closed",
    "forest_levels",
    "parent_vector",
    "raised",
    "steps_up",
    "tree_of",
    "tree_parents",
]
