"""Any loss over listed label sets, as a table; a literal tree over label sets is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from setwise.targets.measure import Form, Of, Table
from setwise.targets.target import Target, require_labels
from setwise.taxonomy import parent_vector
from setwise.validation import label_matrix, real_array, real_vector


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
        if not ((losses >= 0) & (losses <= 1)).all():
            row, column = (int(i) for i in np.argwhere(~((losses >= 0) & (losses <= 1)))[0])
            raise ValueError(
                f"losses must lie in [0, 1], but losses[{row}, {column}] is {losses[row, column]}"
            )
        object.__setattr__(self, "sets", sets)
        object.__setattr__(self, "losses", losses)

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
        if len(parents) != len(np.asarray(sets)):
            raise ValueError(
                f"parents must have an entry for each of the {len(np.asarray(sets))} label sets, "
                f"but it has {len(parents)}"
            )
        if (parents < 0).sum() != 1:
            raise ValueError(
                f"a tree over label sets must have one root (parent -1), "
                f"but there are {int((parents < 0).sum())}"
            )
        lengths = real_vector(
            np.ones(len(parents)) if lengths is None else lengths, len(parents), "lengths"
        )
        if (lengths <= 0).any():
            raise ValueError(f"lengths must be positive, but they are {lengths.tolist()}")
        above = np.zeros((len(parents), len(parents)))
        for node in range(len(parents)):
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

    def __str__(self) -> str:
        return f"TableTarget of {len(self.sets)} label sets"
