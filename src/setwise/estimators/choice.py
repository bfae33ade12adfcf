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

from setwise.decoders.for_target import Decoder
from setwise.estimators.seen import Seen
from setwise.spaces import Backoff, Catalog, Cube, Forest, Paths, Sized, Slice
from setwise.spaces.chow_liu import chow_liu
from setwise.spaces.space import ENUMERATION_LIMIT, Space
from setwise.sparse import by_ranges, label_sums, set_sizes
from setwise.spelling import argument
from setwise.targets.target import hierarchy_of, predicted_size
from setwise.validation import require_one_of

if TYPE_CHECKING:
    from setwise.estimators.training import Training

# Beyond this estimated mass of unseen label sets the list of seen ones is left.
MOST_UNSEEN = 0.9
# A label set is favoured by a bonus if it was seen at least twice, and in one of 4,000 rows: so
# there are never more than 4,000, and training takes time in proportion to the rows.
LEAST_SEEN, LEAST_SHARE = 2, 1.0 / 4000.0
# The spaces that a taxonomy gives; "auto" chooses one of them for tree distance.
HIERARCHIES = ("paths", "closed")
SPACES = ("auto", "cube", "sized", "backoff", "catalog", "joint", "forest", *HIERARCHIES)
# What each decoder predicts, in words.
DECODERS = {
    "minimum_risk": "label set of least expected loss",
    "most_likely": "most likely set",
    "marginals": "marginals as though labels were independent",
    "population": "thresholds on the marginals that are best for all rows together",
}


def unseen_mass(sets: Any, counts: NDArray[np.int64] | None = None) -> float:
    """Good and Turing's estimate of the mass of label sets never seen.

    Of the sets of all rows; or of those that differ, with how many rows have each.

    Examples
    --------
    >>> unseen_mass(np.array([[1, 0], [1, 0], [0, 1]], dtype=np.uint8)).__round__(3)
    0.333
    """
    counts = set_counts(sets) if counts is None else counts
    return float(np.count_nonzero(counts == 1) / counts.sum())


def set_counts(sets: Any) -> NDArray[np.int64]:
    """How many rows have each of the label sets, (K,)."""
    return Seen.of(sets, np.zeros(sets.shape[0])).counts


def space_for(space: Any, training: Training, is_class: bool, sets, weights, counts=None) -> Space:
    """The space that was asked for, by name or as an object, for these training labels.

    ``sets`` and ``weights`` are those of all rows; or the sets that differ, what the rows of each
    weigh together, and ``counts``, how many they are.
    ``is_class`` says that exactly one label is in every set: a one-dimensional y, where the
    likelihood is a softmax of twice the scores.
    """
    named, n_labels = isinstance(space, str), sets.shape[1]
    if space not in SPACES if named else not isinstance(space, Space):
        known = ", ".join(map(repr, SPACES))
        raise ValueError(f"space must be one of {known} or a space object, not {space!r}")
    if is_class and not training.is_by_label:
        return Slice(n_labels, 1)
    if training.is_by_label and not (space in ("auto", "cube") if named else space.is_independent):
        what = f"space {space!r}" if named else str(space)
        raise ValueError(
            f"binary relevance decides every label by itself, on all label sets: it takes no "
            f"{what}; use surrogate='likelihood' there"
        )
    if not named and space.n_labels != n_labels:
        raise ValueError(
            f"the space must have as many labels as y, {n_labels}, but {space} has {space.n_labels}"
        )
    if not isinstance(space, str):
        return space
    if training.is_by_label:
        return Cube(n_labels)
    is_auto, own = space == "auto", training.own_space
    by_taxonomy = hierarchy_of(training.target) is not None and own is None
    if space in HIERARCHIES or (is_auto and by_taxonomy):
        return hierarchy_space(space, training.target, sets)
    if is_auto and not training.is_likelihood:
        return space_of_target(training.target, n_labels) if own is None else own
    return choose_space(space, sets, weights, counts)


def choose_space(
    name: str,
    sets: Any,
    weights: NDArray[np.float64] | None = None,
    counts: NDArray[np.int64] | None = None,
) -> Space:
    """The space of that name for training labels, its biases at their frequencies by weight."""
    n_labels = sets.shape[1]
    if name == "auto":
        name = "catalog" if unseen_mass(sets, counts) <= MOST_UNSEEN else "sized"
    if name == "cube":
        return Cube(n_labels)
    mass = np.ones(sets.shape[0]) if weights is None else weights
    if name == "forest":
        return chow_liu(sets, mass, None if counts is None else int(counts.sum()))
    if name in ("catalog", "joint"):
        seen = Seen.of(sets, mass)
        share = seen.weights / mass.sum()
        return Catalog(seen.sets.toarray(), np.log(share), joint=name == "joint")
    base = sized_space(sets, mass)
    return base if name == "sized" else favouring(base, sets, mass, counts)


def sized_space(sets: Any, mass: NDArray[np.float64]) -> Sized:
    """All sets of the sizes seen, with biases by which sizes are as frequent as in training."""
    share = np.bincount(set_sizes(sets), mass) / mass.sum()
    # P(size) of independent labels, which the biases are put beside.
    law = np.zeros(len(share))
    law[0] = 1.0
    for p in frequency(sets, mass):
        law[1:] = law[1:] * (1.0 - p) + law[:-1] * p
        law[0] *= 1.0 - p
    with np.errstate(divide="ignore"):
        return Sized(sets.shape[1], np.log(share) - np.log(np.maximum(law, 1e-300)))


def favouring(base: Space, sets: Any, mass: NDArray[np.float64], counts: Any = None) -> Space:
    """A space with a bonus for the label sets seen often: see `LEAST_SEEN`.

    The bonuses begin where the sets are as frequent as in training, if the base is at the scores
    that training begins with; a set that it has more often begins, and may stay, without one.
    """
    seen = Seen.of(sets, mass, counts)
    often = (seen.counts >= LEAST_SEEN) & (seen.counts >= LEAST_SHARE * seen.counts.sum())
    if not often.any():
        return base
    share = (seen.weights / mass.sum())[often]
    listed = seen.sets[often].toarray()
    scores = np.broadcast_to(base.start_scores(sets, mass), listed.shape)
    log_chance = base.log_probability(np.ascontiguousarray(scores), listed)
    # By what the base has to shrink: the mass of the other sets, with half a row added to both.
    rest, total = 1.0 - min(np.exp(log_chance).sum(), 1.0), mass.sum()
    left = ((1.0 - share.sum()) * total + 0.5) / (rest * total + 0.5)
    return Backoff(base, listed, np.maximum(np.log(share) - log_chance - np.log(left), 0.0))


def lists_seen(space: Space) -> bool:
    """Whether the label sets are a list with a bias each, as of those seen in training."""
    return space.is_list and not space.is_path


def frequency(sets: Any, weights: NDArray[np.float64]):
    """How often each label is in a set, with half a set added with and half without it, (l,)."""
    return (label_sums(sets, weights) + 0.5) / (weights.sum() + 1.0)


def space_of_target(target: Any, n_labels: int) -> Space:
    """Where a target's own losses are trained: all sets of k labels, the listed ones, or all."""
    size = predicted_size(target)
    if size is not None:
        return Slice(n_labels, size)
    return Catalog(target.sets) if target.form == "table" else Cube(n_labels)


def hierarchy_space(name: str, target: Any, sets: Any) -> Space:
    """Paths or closed sets of the target's taxonomy; "auto": paths if every set is one."""
    if hierarchy_of(target) is None:
        raise ValueError(
            f"{argument('space', name)} is made from the taxonomy of a tree distance, but the "
            f"target is {target}; for it use a space of its own, Paths(taxonomy) or "
            f"Forest(taxonomy, closed=True)"
        )
    paths = Paths(target.parents)
    if name == "paths" or (name == "auto" and by_ranges(paths.contains, sets).all()):
        return paths
    return Forest(target.parents, closed=True)


def decoder_for(name: Any, training: Training, risk: Decoder, space: Space, is_class: bool) -> str:
    """The decoder of that name; "auto": the least expected loss, where scores are a likelihood.

    For a measure of all rows together it is "population", by whatever rule was asked for.
    Raises, before anything is trained, where a target has no least expected loss on the space. Of
    exclusive classes (``is_class``) the most likely one is predicted, whatever the target.
    """
    if risk.is_of_whole:
        risk.prepare(space)
        return "population"
    require_one_of(name, ("auto", "minimum_risk", "most_likely", "marginals"), "decoder")
    if name == "auto" and not (training.is_likelihood or training.is_separate):
        name = "most_likely"
    if name == "auto":
        name = "minimum_risk" if training.is_by_label or risk.decodes(space) else "marginals"
    if name == "most_likely":
        if not is_class:
            # Refuses a space whose sets the target does not judge, such as those of other sizes.
            risk.target.on(space)
        _refuse_open_predictions(risk.target, space)
    elif not is_class:
        if training.is_by_label:
            # Raises for a margin whose scores have no probability.
            training.loss(space).probability(np.empty((0, space.n_labels)))
        alone = name == "marginals" or training.is_by_label
        risk.prepare(Cube(space.n_labels) if alone else space)
    return name


def _refuse_open_predictions(target: Any, space: Any) -> None:
    """Raise where the most likely set of the space need not be closed under tree distance."""
    hierarchy: Any = hierarchy_of(target)
    if hierarchy is None or hierarchy.depth == 1:
        return
    several = "where labels have several parents, " if len(target.left_out) else ""
    if space.is_closed:
        closed = np.array_equal(space.parents, target.parents) and not several
    else:
        few = space.has_at_most(ENUMERATION_LIMIT)
        closed = few and hierarchy.is_closed(space.enumerate()).all()
    if not closed:
        hierarchical = " or ".join(argument("space", name) for name in HIERARCHIES)
        others = "" if several else f"{hierarchical}, or "
        raise ValueError(
            f"{several}the most likely set of {space} need not be closed, as tree distance asks of "
            f"predictions; use {others}{argument('surrogate', 'likelihood')} with the "
            f"set of least expected loss"
        )
