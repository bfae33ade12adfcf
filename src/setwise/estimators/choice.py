"""Which space suits the training labels: a stated, deterministic rule.

The mass of label sets never seen is estimated by Good and Turing's rule: the share of rows whose
label set occurs once. Unless it is nearly all, the joint likelihood on the list of seen sets is
trained: on real data it was the better one for F1 even where most sets of new rows are not listed
(docs/estimators.md). Where nearly every row has a set of its own, the list is as long as the data
and costs the square of their number; there the likelihood on the sized space is trained, where
every label set is possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setwise.estimators.hierarchy import HIERARCHIES, hierarchy_space
from setwise.spaces.catalog import Catalog
from setwise.spaces.chow_liu import chow_liu
from setwise.spaces.cube import Cube
from setwise.spaces.forest import Forest
from setwise.spaces.sized import Sized, Slice
from setwise.spaces.space import Space
from setwise.targets.at_k import PrecisionAtK, RecallAtK
from setwise.targets.table import TableTarget
from setwise.targets.target import Target
from setwise.targets.tree_distance import TreeDistance

if TYPE_CHECKING:
    from setwise.estimators.training import Training

# Beyond this estimated mass of unseen label sets the list of seen ones is left.
MOST_UNSEEN = 0.9
SPACES = ("auto", "cube", "sized", "catalog", "joint", "forest")


def unseen_mass(sets: NDArray[np.uint8]) -> float:
    """Good and Turing's estimate of the mass of label sets never seen.

    Examples
    --------
    >>> unseen_mass(np.array([[1, 0], [1, 0], [0, 1]], dtype=np.uint8)).__round__(3)
    0.333
    """
    counts = np.unique(np.packbits(sets, axis=1), axis=0, return_counts=True)[1]
    return float(np.count_nonzero(counts == 1) / len(sets))


def space_for(space: Any, training: Training, is_class: bool, sets, weights) -> Space:
    """The space that was asked for, by name or as an object, for these training labels.

    ``is_class`` says that exactly one label is in every set: a one-dimensional y.
    """
    n_labels, names = sets.shape[1], (*SPACES, *HIERARCHIES)
    if not isinstance(space, str | Space) or (isinstance(space, str) and space not in names):
        known = ", ".join(map(repr, names))
        raise ValueError(f"space must be one of {known} or a space object, not {space!r}")
    if is_class and not training.is_by_label:
        return one_of(n_labels)
    if training.is_by_label and not (isinstance(space, Cube) or space in ("auto", "cube")):
        what = f"space {space!r}" if isinstance(space, str) else str(space)
        raise ValueError(
            f"binary relevance decides every label by itself, on all label sets: it takes no "
            f"{what}; use surrogate='likelihood' there"
        )
    if isinstance(space, Space):
        if space.n_labels != n_labels:
            raise ValueError(
                f"the space must have as many labels as y, {n_labels}, but {space} has "
                f"{space.n_labels}"
            )
        return space
    if training.is_by_label:
        return training.space(n_labels)
    by_taxonomy = isinstance(training.target, TreeDistance) and not training.has_space
    if space in HIERARCHIES or (space == "auto" and by_taxonomy):
        return hierarchy_space(space, training.target, sets)
    if space == "auto" and not training.is_likelihood:
        return training.space(n_labels)
    return choose_space(space, sets, weights)


def choose_space(
    name: str, sets: NDArray[np.uint8], weights: NDArray[np.float64] | None = None
) -> Space:
    """The space of that name for training labels, its biases at their frequencies by weight."""
    n_labels = sets.shape[1]
    if name == "auto":
        name = "catalog" if unseen_mass(sets) <= MOST_UNSEEN else "sized"
    if name == "cube":
        return Cube(n_labels)
    mass = np.ones(len(sets)) if weights is None else weights
    if name == "forest":
        return chow_liu(sets, mass)
    if name in ("catalog", "joint"):
        seen, place = np.unique(sets, axis=0, return_inverse=True)
        share = np.bincount(place.ravel(), mass) / mass.sum()
        return Catalog(seen, np.log(share), joint=name == "joint")
    share = np.bincount(sets.sum(axis=1, dtype=np.int64), mass) / mass.sum()
    with np.errstate(divide="ignore"):
        bias = np.log(share) - np.log(_size_law(frequency(sets, mass), len(share)))
    return Sized(n_labels, bias)


def frequency(sets: NDArray[np.uint8], weights: NDArray[np.float64] | None = None):
    """How often each label is in a set, with half a set added with and half without it, (l,)."""
    mass = np.ones(len(sets)) if weights is None else weights
    return (mass @ sets + 0.5) / (mass.sum() + 1.0)


def start_scores(space: Space, sets: NDArray[np.uint8], weights: NDArray[np.float64]):
    """Scores, the same for every row, at which the space's law is near that of the sets.

    Half the log-odds of each label, where the space's parameters do not hold them already.
    """
    if isinstance(space, Catalog):
        return np.zeros(space.n_scores)
    share = frequency(sets, weights)
    scores = (np.log(share) - np.log1p(-share)) / 2.0
    if isinstance(space, Forest) and np.nan_to_num(space.potentials, neginf=0.0).any():
        scores[space.parents >= 0] = 0.0
    return scores


def _size_law(share: NDArray[np.float64], n_sizes: int) -> NDArray[np.float64]:
    """P(size) of independent labels for the first sizes, (n_sizes,)."""
    law = np.zeros(n_sizes)
    law[0] = 1.0
    for p in share:
        law[1:] = law[1:] * (1.0 - p) + law[:-1] * p
        law[0] *= 1.0 - p
    return np.maximum(law, 1e-300)


def own_space(target: Target, n_labels: int) -> Space:
    """Where a target's own losses are trained: all sets of k labels, the listed ones, or all."""
    if isinstance(target, PrecisionAtK | RecallAtK):
        return Slice(n_labels, target.k)
    if isinstance(target, TableTarget):
        return Catalog(target.sets)
    return Cube(n_labels)


def one_of(n_labels: int) -> Space:
    """The space of a one-dimensional y: exactly one label, a softmax of twice the scores."""
    return Slice(n_labels, 1)
