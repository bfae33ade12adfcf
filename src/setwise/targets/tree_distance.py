"""Tree distance: the length of the edges of a taxonomy on which two label sets differ."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from setwise.inputs import positive_number, real_vector
from setwise.targets.hamming import AGREE, DIFFER
from setwise.targets.measure import ROUNDING, ZERO_DIFFERENCE, Additive, Array, Form, Of
from setwise.targets.target import loss_of_rows, require_labels
from setwise.taxonomy import Taxonomy, tree_parents

# Distances of so many label sets are compared one by one.
MOST_COMPARED = 2048


@dataclass(frozen=True, eq=False)
class TreeDistance:
    """Total length of the taxonomy's edges in the symmetric difference of two closed label sets.

    L(y', y) = sum_i length_i 1[y'_i != y_i] / largest. A label stands for the edge to its parent
    (a root's edge leads to a virtual root above the forest), and a closed set contains the parents
    of its labels, so the sum is the length of the tree paths that only one of the sets takes.

    Parameters
    ----------
    parents : array of shape (n_labels,), or Taxonomy
        The parent of each label, -1 for a root.
    lengths : array of shape (n_labels,), optional
        Positive length of each label's edge to its parent; by default those of the taxonomy, or 1.
    largest : float, optional
        What counts as loss 1. By default the sum of all lengths, the largest distance of two
        closed sets; on a space of single paths, the largest distance of two paths. A smaller one
        than the largest distance of two sets of a space is refused there.
    names : array of shape (n_labels,), optional
        The names of the labels, for messages; by default those of the taxonomy, or numbers.

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
    form: ClassVar[Form] = "additive"

    def __post_init__(self):
        parents, lengths = tree_parents(self.parents), self.lengths
        if isinstance(self.parents, Taxonomy):
            lengths = self.parents.lengths if lengths is None else lengths
            object.__setattr__(self, "names", self.parents.names)
        elif lengths is None:
            lengths = np.ones(len(parents))
        lengths = real_vector(lengths, len(parents), "lengths")
        if (lengths <= 0).any():
            label = int(np.argmax(lengths <= 0))
            raise ValueError(f"lengths must be positive, but lengths[{label}] is {lengths[label]}")
        if self.largest is not None:
            object.__setattr__(self, "largest", positive_number(self.largest, "largest"))
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "lengths", lengths)

    @property
    def taxonomy(self) -> Taxonomy:
        """The tree with the names and lengths of its labels."""
        return Taxonomy.from_parents(self.parents, self.names, self.lengths)

    def loss(self, y_pred, y_true) -> Array:
        """Tree distance of each row as a share of the largest, (n,)."""
        return loss_of_rows(self, y_pred, y_true)

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
            return Additive(weights, DIFFER)
        if rest < -ZERO_DIFFERENCE:
            return Additive(weights, -DIFFER, constant=np.ones_like)
        rest = rest if rest > ZERO_DIFFERENCE else 0.0
        return Additive(weights, AGREE, constant=lambda n: np.full_like(n, rest))

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


def _diameter(space, lengths: Array) -> float:
    """The largest distance of two sets of a space; on large ones, of sets of the same sizes."""
    if hasattr(space, "diameter"):
        return space.diameter(lengths)
    if space.log_size <= np.log(MOST_COMPARED) + 1e-9:
        sets = space.enumerate().astype(np.float64)
        alone = sets @ lengths
        return float(
            max(
                np.max(alone + own - 2.0 * (sets @ (row * lengths)))
                for row, own in zip(sets, alone, strict=True)
            )
        )
    # Two sets of sizes a and b differ in at most min(a + b, 2 l - a - b) labels.
    sizes, labels = np.asarray(space.sizes), len(lengths)
    both = np.add.outer(sizes, sizes)
    apart = int(np.minimum(both, 2 * labels - both).max())
    return float(np.sort(lengths)[::-1][:apart].sum())
