"""Hierarchies over labels: which labels bring which others along, and how far apart they are."""

from setwise.taxonomy.forest import parent_vector
from setwise.taxonomy.order import forest_levels
from setwise.taxonomy.taxonomy import Taxonomy, tree_of, tree_parents

__all__ = ["Taxonomy", "forest_levels", "parent_vector", "tree_of", "tree_parents"]
