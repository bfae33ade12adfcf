"""Which space suits the training labels, and which decoder the scores: stated, deterministic rules.

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

from setwise.decoders.minimum_risk import MinimumRisk
from setwise.spaces import Catalog, Cube, Forest, Paths, Sized, Slice
from setwise.spaces.chow_liu import chow_liu
from setwise.spaces.space import ENUMERATION_LIMIT, Space
from setwise.targets.target import hierarchy_of, predicted_size

if TYPE_CHECKING:
    from setwise.estimators.training import Training

# Beyond this estimated mass of unseen label sets the list of seen ones is left.
MOST_UNSEEN = 0.9
SPACES = ("auto", "cube", "sized", "catalog", "joint", "forest")
# log of the most sets of a space that are looked at one by one.
LISTABLE = np.log(ENUMERATION_LIMIT)
# The spaces that a taxonomy gives; "auto" chooses one of them for tree distance.
HIERARCHIES = ("paths", "closed")
DECODERS = ("auto", "minimum_risk", "most_likely", "marginals")


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
    if training.is_by_label:
        if space in ("auto", "cube") if isinstance(space, str) else space.is_independent:
            return _of_labels(space, n_labels)
        what = f"space {space!r}" if isinstance(space, str) else str(space)
        raise ValueError(
            f"binary relevance decides every label by itself, on all label sets: it takes no "
            f"{what}; use surrogate='likelihood' there"
        )
    if not isinstance(space, str):
        return _of_labels(space, n_labels)
    by_taxonomy = hierarchy_of(training.target) is not None and not training.has_space
    if space in HIERARCHIES or (space == "auto" and by_taxonomy):
        return hierarchy_space(space, training.target, sets)
    if space == "auto" and not training.is_likelihood:
        return training.space(n_labels)
    return choose_space(space, sets, weights)


def _of_labels(space: Any, n_labels: int) -> Space:
    """A space given as an object, which must be over the labels of y; by name, all label sets."""
    if isinstance(space, str):
        return Cube(n_labels)
    if space.n_labels != n_labels:
        raise ValueError(
            f"the space must have as many labels as y, {n_labels}, but {space} has {space.n_labels}"
        )
    return space


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


def lists_seen(space: Space) -> bool:
    """Whether the label sets are a list with a bias each, as of those seen in training."""
    return hasattr(space, "sets") and not space.is_path


def frequency(sets: NDArray[np.uint8], weights: NDArray[np.float64] | None = None):
    """How often each label is in a set, with half a set added with and half without it, (l,)."""
    mass = np.ones(len(sets)) if weights is None else weights
    return (mass @ sets + 0.5) / (mass.sum() + 1.0)


def _size_law(share: NDArray[np.float64], n_sizes: int) -> NDArray[np.float64]:
    """P(size) of independent labels for the first sizes, (n_sizes,)."""
    law = np.zeros(n_sizes)
    law[0] = 1.0
    for p in share:
        law[1:] = law[1:] * (1.0 - p) + law[:-1] * p
        law[0] *= 1.0 - p
    return np.maximum(law, 1e-300)


def own_space(target: Any, n_labels: int) -> Space:
    """Where a target's own losses are trained: all sets of k labels, the listed ones, or all."""
    size = predicted_size(target)
    if size is not None:
        return Slice(n_labels, size)
    return Catalog(target.sets) if target.form == "table" else Cube(n_labels)


def one_of(n_labels: int) -> Space:
    """The space of a one-dimensional y: exactly one label, a softmax of twice the scores."""
    return Slice(n_labels, 1)


def hierarchy_space(name: str, target: Any, sets: NDArray[Any]) -> Space:
    """Paths or closed sets of the target's taxonomy; "auto": paths if every set is one."""
    if hierarchy_of(target) is None:
        raise ValueError(
            f"space={name!r} is made from the taxonomy of target=TreeDistance(taxonomy), but the "
            f"target is {target}; for it use space=Paths(taxonomy) or Forest(taxonomy, closed=True)"
        )
    paths = Paths(target.parents)
    if name == "paths" or (name == "auto" and paths.contains(sets).all()):
        return paths
    return Forest(target.parents, closed=True)


# ---------------------------------------------------------------------------------------- decoders


def decoder_for(name: str, training: Training, risk: MinimumRisk, space: Space) -> str:
    """The decoder of that name; "auto": the least expected loss, where scores are a likelihood."""
    if name == "auto" and not (training.is_likelihood or training.is_separate):
        name = "most_likely"
    if name == "most_likely":
        refuse_open_predictions(risk.target, space)
    if name != "auto":
        return name
    return "minimum_risk" if training.is_by_label or risk.decodes(space) else "marginals"


def refuse_undecodable(
    decoder: str, training: Training, risk: MinimumRisk, space: Space, is_class: bool
) -> None:
    """Raise, before anything is trained, where a target has no least expected loss on a space.

    Of exclusive classes (``is_class``) the most likely one is predicted, whatever the target.
    """
    if decoder == "most_likely" or is_class:
        return
    if training.is_by_label:
        # Raises for a margin whose scores have no probability.
        training.loss(space).probability(np.empty((0, space.n_labels)))
    if decoder == "marginals" or training.is_by_label:
        space = Cube(space.n_labels)
    risk.prepare(space)


def refuse_open_predictions(target: Any, space: Any) -> None:
    """Raise where the most likely set of the space need not be closed under tree distance."""
    hierarchy: Any = hierarchy_of(target)
    if hierarchy is None or hierarchy.depth == 1:
        return
    several = "where labels have several parents, " if len(target.left_out) else ""
    if space.is_closed:
        if np.array_equal(space.parents, target.parents) and not several:
            return
    elif space.log_size <= LISTABLE and hierarchy.is_closed(space.enumerate()).all():
        return
    others = "" if several else "space='paths' or 'closed', or "
    raise ValueError(
        f"{several}the most likely set of {space} need not be closed, as tree distance asks of "
        f"predictions; use {others}surrogate='likelihood' with the set of least expected loss"
    )
