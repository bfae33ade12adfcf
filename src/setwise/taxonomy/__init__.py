"""Hierarchies over labels: which labels bring which others along, and how far apart they are."""

from setwise.taxonomy.taxonomy import Taxonomy, tree_of, tree_parents

__all__ = ["Taxonomy", "tree_of", "tree_parents"]
