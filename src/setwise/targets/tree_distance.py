"""Tree distance: the length of the edges of a taxonomy on which two label sets differ."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from setwise.targets.additive import AGREE, DIFFER
from setwise.targets.measure import ROUNDING, ZERO_DIFFERENCE, Additive, Array, Form, Of
from setwise.targets.target import Target, require_labels
from setwise.taxonomy import Taxonomy, parent_vector, tree_of
from setwise.validation import positive_number, real_vector

# Distances of so many label sets are compared one by one.
MOST_COMPARED = 2048
# Parents of so many labels are printed.
MOST_SHOWN = 10


@dataclass(frozen=True, eq=False)
class TreeDistance(Target):
    """Total length of the taxonomy's edges in the symmetric difference of two closed label sets.

    L(y', y) = sum_i length_i 1[y'_i != y_i] / largest. A label stands for the edge to its parent
    (a root's edge leads to a virtual root above the forest), and a closed set contains the parents
    of its labels, so the sum is the length of the tree paths that only one of the sets takes.

    Parameters
    ----------
    parents : array of shape (n_labels,), or Taxonomy
        The parent of each label, -1 for a root. Of a taxonomy in which labels have several parents,
        the spanning tree counts, and a warning says which edges it leaves out.
    lengths : array of shape (n_labels,), optional
        Positive length of each label's edge to its parent; by default those of the taxonomy, or 1.
    largest : float, optional
        What counts as loss 1. By default the sum of all lengths, the largest distance of two
        closed sets; on a space of single paths, the largest distance of two paths (a true set that
        is none, such as the empty one, may be further, and its loss above 1: estimators and torch
        losses refuse it there). A smaller one than the largest distance of two sets of a space is
        refused there.
    names : array of shape (n_labels,), optional
        The names of the labels; by default those of the taxonomy, or numbers.
    left_out : array of shape (m, 2), optional
        Edges [parent, child] beside those of the tree, under which predictions are closed too; by
        default those that the spanning tree of a taxonomy leaves out.

    Examples
    --------
    Animals (0) are mammals (1) or birds (2):

    >>> TreeDistance([-1, 0, 0]).loss([[1, 1, 0]], [[1, 0, 1]]).round(3)
    array([0.667])
    """

    parents: Any
    lengths: Any = None
    largest: float | None = None
    names: Any = field(default=None, compare=False)
    left_out: Any = field(default=None, compare=False)
    form: ClassVar[Form] = "additive"

    def __post_init__(self):
        lengths, names, left_out = self.lengths, self.names, self.left_out
        if isinstance(self.parents, Taxonomy):
            tree = tree_of(self.parents)
            parents, names = tree.parents, tree.names
            lengths = tree.lengths if lengths is None else lengths
            above, child = self.parents.edges.T
            other = self.parents.edges[(above >= 0) & (above != parents[child])]
            left_out = other if left_out is None else left_out
        else:
            parents = parent_vector(self.parents)
            lengths = np.ones(len(parents)) if lengths is None else lengths
        lengths = real_vector(lengths, len(parents), "lengths")
        if (lengths <= 0).any():
            label = int(np.argmax(lengths <= 0))
            raise ValueError(f"lengths must be positive, but lengths[{label}] is {lengths[label]}")
        if not np.isfinite(lengths.sum()):
            raise ValueError("lengths must have a finite sum, but they add up to infinity")
        largest = None if self.largest is None else positive_number(self.largest, "largest")
        edges = _edges(left_out, len(parents))
        vars(self).update(
            parents=parents, lengths=lengths, largest=largest, names=names, left_out=edges
        )
        if len(self.left_out):
            # Cycles and edges that are there twice are refused by the taxonomy.
            _ = self.hierarchy

    @cached_property
    def taxonomy(self) -> Taxonomy:
        """The tree with the names and lengths of its labels."""
        return Taxonomy.from_parents(self.parents, self.names, self.lengths)

    @cached_property
    def hierarchy(self) -> Taxonomy:
        """What label sets are closed under: the tree, with the edges that it leaves out."""
        tree = self.taxonomy
        if not len(self.left_out):
            return tree
        edges = np.concatenate([tree.edges, self.left_out])
        return Taxonomy(edges, tree.names, self.lengths[edges[:, 1]])

    def measure(self, n_labels: int, of: Of) -> Additive:
        """Lengths of the edges that differ; for the utility, of those that agree and the rest.

        Where the largest distance is less than all lengths there is no such rest: the utility is 1
        less the loss, a difference of few terms.
        """
        require_labels(self, len(self.lengths), n_labels)
        total = self.lengths.sum()
        largest = total if self.largest is None else self.largest
        weights, rest = self.lengths / largest, 1.0 - total / largest
        if of == "loss":
            return Additive(DIFFER * weights)
        if rest < -ZERO_DIFFERENCE:
            return Additive(-DIFFER * weights, constant=np.ones_like)
        rest = rest if rest > ZERO_DIFFERENCE else 0.0
        return Additive(AGREE * weights, constant=lambda n: np.full_like(n, rest))

    def on(self, space) -> TreeDistance:
        """The same with loss 1 for the largest distance on the space; refused if that is larger."""
        require_labels(self, len(self.lengths), space.n_labels)
        if self.largest is None:
            diameter = getattr(space, "diameter", None)
            # A space of one path has no two sets to differ; any length serves.
            largest = diameter and (diameter(self.lengths) or float(self.lengths.sum()))
            return replace(self, largest=largest) if diameter else self
        least = _diameter(space, self.lengths)
        if self.largest < least * (1.0 - ROUNDING):
            raise ValueError(
                f"largest must be at least {least:g}, by which two sets of {space} may differ, "
                f"so that losses lie in [0, 1], but it is {self.largest:g}; leave it out for that"
            )
        return self

    def __str__(self) -> str:
        return f"TreeDistance over {len(self.lengths)} labels"

    def __repr__(self) -> str:
        # Of a real taxonomy a wall of numbers, in all that prints an estimator's parameters.
        if len(self.lengths) > MOST_SHOWN:
            return f"TreeDistance(parents=<{len(self.lengths)} labels>)"
        given = [f"parents={self.parents.tolist()}"]
        if (self.lengths != 1.0).any():
            given.append(f"lengths={self.lengths.tolist()}")
        if self.largest is not None:
            given.append(f"largest={self.largest:g}")
        return f"TreeDistance({', '.join(given)})"


def _edges(left_out: Any, n_labels: int) -> Array:
    """Edges [parent, child] between labels, (m, 2)."""
    edges = np.asarray([] if left_out is None else left_out)
    if edges.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    is_right = edges.ndim == 2 and edges.shape[1] == 2 and edges.dtype.kind in "iu"
    if not is_right or ((edges < 0) | (edges >= n_labels)).any():
        raise ValueError(
            f"left_out must be edges [parent, child] between labels from 0 to {n_labels - 1}, of "
            f"shape (m, 2), but it is {edges.tolist()} of dtype {edges.dtype}"
        )
    return edges.astype(np.int64)


def _diameter(space, lengths: Array) -> float:
    """The largest distance of two sets of a space; on large ones, of sets of the same sizes."""
    if hasattr(space, "diameter"):
        return space.diameter(lengths)
    if space.has_at_most(MOST_COMPARED):
        sets = space.enumerate().astype(np.float64)
        alone = sets @ lengths
        both = (sets * lengths) @ sets.T
        return float((alone[:, None] + alone - 2.0 * both).max())
    # Two sets of sizes a and b differ in at most min(a + b, 2 l - a - b) labels.
    sizes, labels = np.asarray(space.sizes), len(lengths)
    both = np.add.outer(sizes, sizes)
    apart = int(np.minimum(both, 2 * labels - both).max())
    return float(np.sort(lengths)[::-1][:apart].sum())
