"""A posterior over listed label sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise.distributions.distribution import SUM_ERROR, TIE, Array, Distribution, one_set_a_row
from setwise.spaces.catalog import Catalog
from setwise.targets.measure import find_rows
from setwise.validation import real_array


@dataclass(frozen=True, eq=False)
class Listed(Distribution):
    """A probability for each of K listed label sets; no other set is possible.

    Parameters
    ----------
    sets : array of shape (K, l)
        The label sets, no two alike.
    posterior : array of shape (n, K)
        The probability of each listed set; rows add up to 1.

    Examples
    --------
    >>> Listed([[1, 0], [1, 1]], [[0.75, 0.25]]).marginals()
    array([[1.  , 0.25]])
    """

    sets: Any
    posterior: Any

    def __post_init__(self):
        sets = Catalog(self.sets).sets
        object.__setattr__(self, "sets", sets)
        object.__setattr__(self, "posterior", _posterior(self.posterior, len(sets)))

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.sets.shape[1]

    @classmethod
    def trusted(cls, sets: Array, posterior: Array) -> Listed:
        """Sets of a space and their probabilities, which need no check."""
        made = cls.__new__(cls)
        object.__setattr__(made, "sets", sets)
        object.__setattr__(made, "posterior", posterior)
        return made

    def __len__(self) -> int:
        return len(self.posterior)

    def __getitem__(self, rows) -> Listed:
        """The same of some rows."""
        posterior = self.posterior[rows]
        if posterior.ndim != 2:
            raise ValueError(f"rows must be a slice or an array of rows, but they are {rows!r}")
        return Listed.trusted(self.sets, posterior)

    def marginals(self) -> Array:
        """The sum of the probabilities of the sets with a label, (n, l)."""
        return np.clip(self.posterior @ self.sets, 0.0, 1.0)

    def log_probability(self, sets) -> Array:
        """log of the set's own entry, -inf where it is not listed, (n,)."""
        place = find_rows(self.sets, one_set_a_row(sets, self))
        with np.errstate(divide="ignore"):
            found = np.log(self.posterior[np.arange(len(place)), place])
        return np.where(place >= 0, found, -np.inf)

    def listed(self) -> tuple[Array, Array]:
        """The list itself."""
        return self.sets, self.posterior

    def label_sizes(self) -> tuple[Array, Array]:
        """Sums over the listed sets of each size, O(K l) a row."""
        sizes = self.sets.sum(axis=1, dtype=np.int64)
        joint = np.zeros((len(self), sizes.max() + 1, self.n_labels))
        size = np.zeros(joint.shape[:2])
        for s in np.unique(sizes):
            chance = self.posterior[:, sizes == s]
            joint[:, s], size[:, s] = chance @ self.sets[sizes == s], chance.sum(axis=1)
        return joint, size

    def most_likely(self, second: bool) -> tuple[Array, Array, Array]:
        """The set of highest probability, up to 1e-11; ties: the smaller, then the lower labels."""
        order = np.lexsort((*(1 - self.sets.T[::-1]), self.sets.sum(axis=1)))
        chance, rows = self.posterior[:, order], np.arange(len(self))
        place = np.argmax(chance >= chance.max(axis=1, keepdims=True) - TIE, axis=1)
        highest = chance[rows, place]
        chance[rows, place] = 0.0
        with np.errstate(divide="ignore"):
            return self.sets[order][place], np.log(highest), np.log(chance.max(axis=1))

    def __str__(self) -> str:
        return f"a list of {len(self.sets)} label sets"


def _posterior(posterior: Any, n_sets: int) -> Array:
    array = real_array(posterior, "posterior").astype(np.float64)
    if array.ndim != 2 or array.shape[1] != n_sets or len(array) == 0:
        raise ValueError(
            f"posterior must have shape (n, {n_sets}), one column for each of the listed sets and "
            f"at least one row, but its shape is {array.shape}"
        )
    outside = np.argwhere(~((array >= 0.0) & (array <= 1.0 + SUM_ERROR)))
    if len(outside):
        row, column = outside[0].tolist()
        raise ValueError(
            f"posterior must lie in [0, 1], but posterior[{row}, {column}] is {array[row, column]}"
        )
    sums = array.sum(axis=1)
    row = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[row] - 1.0) > SUM_ERROR:
        raise ValueError(
            f"rows of posterior must add up to 1, but row {row} adds up to {sums[row]}"
        )
    return array
