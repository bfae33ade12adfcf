"""Which space and surrogate suit the training labels: a stated, deterministic rule.

The mass of label sets never seen is estimated by Good and Turing's rule: the share of rows whose
label set occurs once. Where it is small the label sets seen are a good list, and the joint
likelihood on that list is trained; where it is large, most new rows have a new set, and the
likelihood on the sized space, where every label set is possible, is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setwise.spaces.catalog import Catalog
from setwise.spaces.cube import Cube
from setwise.spaces.sized import Sized, Slice
from setwise.spaces.space import Space

# Beyond this estimated mass of unseen label sets the list of seen ones is left.
MOST_UNSEEN = 0.5
SPACES = ("auto", "cube", "sized", "catalog")


def unseen_mass(sets: NDArray[np.uint8]) -> float:
    """Good and Turing's estimate of the mass of label sets never seen.

    Examples
    --------
    >>> unseen_mass(np.array([[1, 0], [1, 0], [0, 1]], dtype=np.uint8)).__round__(3)
    0.333
    """
    counts = np.unique(np.packbits(sets, axis=1), axis=0, return_counts=True)[1]
    return float(np.count_nonzero(counts == 1) / len(sets))


def choose_space(name: str, sets: NDArray[np.uint8]) -> Space:
    """The space of that name for training labels, its biases at their frequencies."""
    n_labels = sets.shape[1]
    if name not in SPACES:
        raise ValueError(
            f"space must be one of {', '.join(map(repr, SPACES))} or a space object, not {name!r}"
        )
    if name == "auto":
        name = "catalog" if unseen_mass(sets) <= MOST_UNSEEN else "sized"
    if name == "cube":
        return Cube(n_labels)
    if name == "catalog":
        seen, counts = np.unique(sets, axis=0, return_counts=True)
        return Catalog(seen, np.log(counts / len(sets)))
    counts = np.bincount(sets.sum(axis=1, dtype=np.int64))
    with np.errstate(divide="ignore"):
        return Sized(n_labels, np.log(counts / len(sets)))


def one_of(n_labels: int) -> Space:
    """The space of a one-dimensional y: exactly one label, a softmax of twice the scores."""
    return Slice(n_labels, 1)
