"""Equality of two label sets, any function of the confusion counts, and any table of losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from setwise.spelling import brief
from setwise.targets.measure import Array, Counts, Equality, Form, Of, Table
from setwise.targets.target import Target, require_labels
from setwise.taxonomy import parent_vector
from setwise.validation import label_matrix, real_array, real_vector


@dataclass(frozen=True)
class ZeroOne(Target):
    """1 where the predicted set differs from the true set in any label, else 0.

    Examples
    --------
    >>> ZeroOne().loss([[1, 0], [1, 1]], [[1, 0], [1, 0]])
    array([0., 1.])
    """

    form: ClassVar[Form] = "subset"

    def measure(self, n_labels: int, of: Of) -> Equality:
        """Equality of the two sets, or its opposite for the loss."""
        return Equality(0.0 if of == "loss" else 1.0)

    def __str__(self) -> str:
        return "subset"


@dataclass(frozen=True)
class CountTarget(Target):
    """A loss given as a function of the confusion counts.

    Parameters
    ----------
    function : callable
        ``function(tp, fp, fn, tn)`` takes arrays of counts and returns the *loss*, an array of
        the same shape with values in [0, 1], its own 0/0 convention included.

    Examples
    --------
    At most one label wrong is fine:

    >>> lenient = CountTarget(lambda tp, fp, fn, tn: (fp + fn > 1) * 1.0)
    >>> lenient.loss([[1, 1, 0]], [[1, 0, 0]])
    array([0.])
    """

    function: Callable[[Array, Array, Array, Array], Array]
    form: ClassVar[Form] = "counts"

    def __post_init__(self):
        if not callable(self.function):
            raise ValueError(
                f"CountTarget needs a function of (tp, fp, fn, tn), but it got {self.function!r}"
            )

    def measure(self, n_labels: int, of: Of) -> Counts:
        """The function of the counts, or 1 minus it."""
        return Counts(self.function, complement=of == "utility")

    def __str__(self) -> str:
        return f"CountTarget({getattr(self.function, '__name__', 'function')})"


@dataclass(frozen=True, eq=False)
class TableTarget(Target):
    """A loss for each pair of listed label sets.

    Parameters
    ----------
    sets : array of shape (K, n_labels)
        The label sets, no two alike.
    losses : array of shape (K, K)
        ``losses[predicted, true]`` in [0, 1].

    Examples
    --------
    >>> TableTarget([[0], [1]], [[0.0, 1.0], [0.2, 0.0]]).loss([[1]], [[0]])
    array([0.2])
    """

    sets: Any
    losses: Any
    form: ClassVar[Form] = "table"

    def __post_init__(self):
        sets = label_matrix(self.sets, None, "sets")
        losses = real_array(self.losses, "losses").astype(np.float64)
        if len(sets) == 0 or len(np.unique(sets, axis=0)) < len(sets):
            raise ValueError("sets must list at least one label set and none twice")
        if losses.shape != (len(sets), len(sets)):
            raise ValueError(
                f"losses must have shape ({len(sets)}, {len(sets)}), predicted by true, "
                f"but its shape is {losses.shape}"
            )
        outside = np.argwhere(~((losses >= 0) & (losses <= 1)))
        if len(outside):
            row, column = outside[0].tolist()
            raise ValueError(
                f"losses must lie in [0, 1], but losses[{row}, {column}] is {losses[row, column]}"
            )
        vars(self).update(sets=sets, losses=losses)

    @classmethod
    def from_tree(cls, sets, parents, lengths=None) -> TableTarget:
        """The length of the path between two label sets that are the nodes of a tree.

        Parameters
        ----------
        sets : array of shape (K, n_labels)
            The label set at each node.
        parents : array of shape (K,)
            The parent of each node; -1 for the root, of which there is one.
        lengths : array of shape (K,), optional
            Positive length of each node's edge to its parent; 1 by default.

        Returns
        -------
        TableTarget
            The distance as a share of the largest.
        """
        parents = parent_vector(parents)
        n_sets, n_roots = len(np.asarray(sets)), int((parents < 0).sum())
        if len(parents) != n_sets or n_roots != 1:
            raise ValueError(
                f"a tree over label sets must have a parent for each of the {n_sets} sets and one "
                f"root (parent -1), but there are {len(parents)} parents and {n_roots} roots"
            )
        lengths = real_vector(np.ones(n_sets) if lengths is None else lengths, n_sets, "lengths")
        if (lengths <= 0).any():
            raise ValueError(f"lengths must be positive, but they are {lengths.tolist()}")
        above = np.zeros((n_sets, n_sets))
        for node in range(n_sets):
            ancestor = node
            while parents[ancestor] >= 0:
                above[node, ancestor] = lengths[ancestor]
                ancestor = parents[ancestor]
        distance = np.abs(above[:, None, :] - above[None, :, :]).sum(axis=2)
        return cls(sets, distance / (distance.max() or 1.0))

    def measure(self, n_labels: int, of: Of) -> Table:
        """The table, or 1 minus it."""
        require_labels(self, self.sets.shape[1], n_labels)
        return Table(self.sets, self.losses if of == "loss" else 1.0 - self.losses)

    __repr__ = brief

    def __str__(self) -> str:
        return f"TableTarget of {len(self.sets)} label sets"
