"""Forests of scikit-learn as plain arrays, so that a file can hold them and be checked.

The trees of scikit-learn are compiled objects that follow the numbers they are given without
looking: one number too large, and the process crashes. Here the numbers are looked at first.
"""

from __future__ import annotations

import copy
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEAF, SIDES = -1, ("left_child", "right_child")


@dataclass(frozen=True, eq=False)
class PlainTree:
    """A tree of scikit-learn by its numbers; those that lead anywhere but into it are refused.

    Parameters
    ----------
    n_features, max_depth : int
    n_classes : int array of shape (n_outputs,)
    nodes : structured array of shape (n_nodes,)
        As scikit-learn has them; children come after their parents.
    values : float64 array of shape (n_nodes, n_outputs, largest of n_classes)
    """

    n_features: int
    n_classes: NDArray[Any]
    max_depth: int
    nodes: NDArray[Any]
    values: NDArray[Any]

    def __post_init__(self):
        from sklearn.tree._tree import NODE_DTYPE

        for name in ("n_features", "max_depth"):
            value = getattr(self, name)
            if not isinstance(value, int) or not 0 <= value < 2**31:
                raise ValueError(f"{name} of a tree must be a whole number, not {value!r}")
        classes, nodes, values = self.n_classes, self.nodes, self.values
        for name, array in {"n_classes": classes, "nodes": nodes, "values": values}.items():
            if not isinstance(array, np.ndarray) or len(array) == 0:
                raise ValueError(f"{name} of a tree must be an array that is not empty")
        if classes.ndim != 1 or classes.dtype != np.intp or not (classes >= 1).all():
            raise ValueError(f"n_classes of a tree must be counts of at least 1, not {classes}")
        shape = (len(nodes), len(classes), int(classes.max()))
        if nodes.ndim != 1 or nodes.dtype != NODE_DTYPE:
            raise ValueError("nodes of a tree must be as this version of scikit-learn has them")
        if values.shape != shape or values.dtype != np.float64:
            raise ValueError(f"values of a tree must be float64 of shape {shape}")
        inner = np.flatnonzero(nodes["left_child"] != LEAF)
        children = np.concatenate([nodes[side][inner] for side in SIDES])
        if not np.array_equal(np.sort(children), np.arange(1, len(nodes))):
            raise ValueError("each node of a tree but the first must be the child of one other")
        if not (children > np.tile(inner, 2)).all():
            raise ValueError("a node of a tree must come after its parent")
        feature = nodes["feature"][inner]
        if not ((feature >= 0) & (feature < self.n_features)).all():
            raise ValueError("a node of a tree asks for a feature that is not there")
        if self._depth() != self.max_depth:
            raise ValueError(f"max_depth of a tree must be its depth, not {self.max_depth}")

    def _depth(self) -> int:
        """Steps from the root to the furthest leaf."""
        depth, level = 0, np.zeros(1, np.intp)
        while len(level := level[self.nodes["left_child"][level] != LEAF]):
            level = np.concatenate([self.nodes[side][level] for side in SIDES])
            depth += 1
        return depth

    @classmethod
    def of(cls, tree: Any) -> PlainTree:
        """The numbers of a tree of scikit-learn."""
        (n_features, n_classes, _), state = tree.__reduce__()[1:]
        classes = np.asarray(n_classes, np.intp)
        parts = (int(state["max_depth"]), state["nodes"], state["values"])
        return cls(int(n_features), classes, *parts)

    def compiled(self) -> Any:
        """The tree of scikit-learn that has these numbers."""
        from sklearn.tree._tree import Tree

        tree = Tree(self.n_features, self.n_classes, len(self.n_classes))
        nodes, values = (np.ascontiguousarray(part) for part in (self.nodes, self.values))
        state = {"max_depth": self.max_depth, "node_count": len(nodes)}
        tree.__setstate__({**state, "nodes": nodes, "values": values})
        return tree


def is_forest(value: Any) -> bool:
    """Whether it is a fitted forest of scikit-learn. (Where none is loaded, there is none.)"""
    module: Any = sys.modules.get("sklearn.ensemble._forest")
    is_own = module is not None and isinstance(value, module.BaseForest)
    return is_own and isinstance(vars(value).get("estimators_"), list)


def in_plain_trees(parts: dict[str, Any]) -> dict[str, Any]:
    """The parts of a forest, with the numbers of its trees in their place."""
    return {**parts, "estimators_": [_with(e, PlainTree.of(e.tree_)) for e in parts["estimators_"]]}


def in_compiled_trees(parts: dict[str, Any]) -> dict[str, Any]:
    """The parts of a forest with its trees again, all of as many features as the forest."""
    n_features, trees = parts.get("n_features_in_"), []
    for one in parts["estimators_"]:
        plain = vars(one).get("tree_")
        if isinstance(plain, PlainTree):
            if not plain.n_features == n_features == vars(one).get("n_features_in_"):
                raise ValueError("a tree of a forest is of other features than the forest")
            one = _with(one, plain.compiled())
        trees.append(one)
    return {**parts, "estimators_": trees}


def _with(estimator: Any, tree: Any) -> Any:
    """A tree estimator that holds another tree."""
    other = copy.copy(estimator)
    other.tree_ = tree
    return other
