"""What a classifier is trained on: a surrogate by its name, or one given, and the way to it.

A loss that is not convex is approached from a convex one: along q from the logistic loss, and the
rho margin from the hinge.

An objective is a sum over rows of a loss, with the gradients a solver needs. It knows the true
label sets and the weights of the rows. Rows come in ranges, so that memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from setwise.estimators.choice import frequency, lists_seen, own_space
from setwise.spaces.cube import Cube
from setwise.spaces.space import Space
from setwise.surrogates.binary_relevance import BinaryRelevance
from setwise.surrogates.comp_sum import CompSum
from setwise.surrogates.constrained import Constrained
from setwise.surrogates.names import COMP_SUM, CONSTRAINED, DEFAULT_Q, SURROGATES
from setwise.surrogates.surrogate import Surrogate
from setwise.targets.target import Target, hierarchy_of
from setwise.validation import real_number

Array = NDArray[Any]

# Entries of rows by scores, or rows by parameters, that are held at a time.
CHUNK_ENTRIES = 2**23
# Members of the comp-sum family that lead from the convex one to the one asked for.
STEPS = (0.0, 0.5, 0.8)

Stage = Callable[[Space], CompSum | Constrained | BinaryRelevance]


@dataclass(frozen=True)
class Training:
    """A surrogate, by name or as an object, for a target."""

    surrogate: Any
    target: Target
    q: float = DEFAULT_Q
    seed: int = 0

    def __post_init__(self):
        known = isinstance(self.surrogate, CompSum | Constrained | BinaryRelevance)
        if not known and self.surrogate not in SURROGATES:
            names = ", ".join(map(repr, ("auto", *SURROGATES)))
            raise ValueError(
                f"surrogate must be one of {names} or a surrogate object, not {self.surrogate!r}"
            )
        if self.surrogate == "generalized_cross_entropy":
            q = real_number(self.q, "q", 0.0, 1.0)
            if not 0.0 < q < 1.0:
                raise ValueError(
                    f"q must be above 0 and below 1 for the generalized cross-entropy, not {q:g}; "
                    f"at the ends it is the logistic loss and the mean absolute error"
                )

    @property
    def is_likelihood(self) -> bool:
        """Whether the joint likelihood of label sets is trained."""
        return self.surrogate == "likelihood"

    @property
    def is_separate(self) -> bool:
        """Whether each label is a logistic regression of its own."""
        margin = getattr(self.surrogate, "margin", None)
        return self.is_by_label and margin in (None, "logistic")

    @property
    def is_by_label(self) -> bool:
        """Whether labels are trained one by one, by any margin."""
        return self.surrogate == "binary_relevance" or isinstance(self.surrogate, BinaryRelevance)

    @property
    def is_convex(self) -> bool:
        """Whether the objective has one minimum."""
        return len(self.stages()) == 1

    @property
    def q_of_family(self) -> float | None:
        """The member of the comp-sum family, None for other losses."""
        if isinstance(self.surrogate, CompSum):
            return self.surrogate.q
        if self.surrogate == "generalized_cross_entropy":
            return float(self.q)
        return COMP_SUM.get(self.surrogate) if isinstance(self.surrogate, str) else None

    @property
    def has_space(self) -> bool:
        """Whether the surrogate is an object that brings its own space."""
        return isinstance(self.surrogate, CompSum | Constrained)

    def space(self, n_labels: int) -> Space:
        """The space of a loss that is not a likelihood, if none is named."""
        if self.has_space:
            return self.surrogate.space
        return Cube(n_labels) if self.is_by_label else own_space(self.target, n_labels)

    def stages(self) -> tuple[Stage, ...]:
        """The losses on the way, each for a space; the last is the one asked for."""
        if self.is_likelihood:
            return (lambda space: CompSum("subset", space, 0.0, "paper"),)
        if self.is_by_label:
            margin = getattr(self.surrogate, "margin", "logistic")
            return (lambda space: BinaryRelevance(margin),)
        q = self.q_of_family
        if q is not None:
            return tuple(self._comp_sum(step) for step in (*(s for s in STEPS if s < q), q))
        if self.margin == "rho":
            return self._constrained("hinge"), self._constrained("rho")
        return (self._constrained(self.margin),)

    def objective(self, stage: Stage, space: Any, y_true: Array, weights: Array) -> Objective:
        """The sum over rows that a stage minimises."""
        if self.is_likelihood:
            return Likelihood(space, y_true, weights)
        if space.is_path and hierarchy_of(self.target) is not None:
            # The distance from a path to what is none may be more than 1.
            refuse_outside(space.are_paths(y_true), space)
        # On closed sets potentials say nothing that intercepts do not, and label by label there are
        # none: the loss is that of one space.
        fixed = self.is_by_label or space.is_closed
        loss = stage(space)
        make = (lambda _: loss) if fixed else stage
        n_scores = y_true.shape[1] if self.is_by_label else space.n_scores
        return SurrogateSum(make, None if fixed else space, n_scores, y_true, weights)

    def loss(self, space: Space) -> Any:
        """The loss asked for, on a space."""
        return self.stages()[-1](space)

    def __str__(self) -> str:
        return str(self.surrogate).replace("_", " ")

    @property
    def margin(self) -> str:
        """The margin of a constrained loss."""
        if isinstance(self.surrogate, Constrained):
            return self.surrogate.margin
        return CONSTRAINED[self.surrogate]

    def _comp_sum(self, q: float) -> Stage:
        if isinstance(self.surrogate, CompSum):
            given = self.surrogate
            return lambda space: replace(given, space=space, q=q)
        # On the unit scale the likelihood of one set among many is divided by their number.
        scale = "paper" if self.target.form == "subset" else "unit"
        return lambda space: CompSum(self.target, space, q, scale)

    def _constrained(self, margin: str) -> Stage:
        if isinstance(self.surrogate, Constrained):
            given = self.surrogate
            return lambda space: replace(given, space=space, margin=margin)
        return lambda space: Constrained(self.target, space, margin, seed=self.seed)


# -------------------------------------------------------------------------------------- objectives


class Objective(Protocol):
    """A sum of losses of scores against the true label sets of some rows."""

    @property
    def space(self) -> Space | None:
        """The space whose parameters are learnt, as it is at the start; None without any."""
        ...

    @property
    def n_scores(self) -> int:
        """How many scores a row has."""
        ...

    def start(self) -> Array:
        """Scores, alike for every row, to begin at, (n_scores,)."""
        ...

    def spread(self) -> tuple[Array, Array]:
        """Variance there of what each score (n_scores,), each parameter (p,), multiplies."""
        ...

    def sums(self, rows: slice, scores: Array, parameters: Array) -> tuple[float, Array, Array]:
        """Weighted loss of the rows, gradient by their scores, gradient by the parameters."""
        ...


def refuse_outside(inside: Array, space: Space) -> None:
    """Raise for the first row whose set the space does not have."""
    if not inside.all():
        all_closed = (
            "space='closed', which has all closed sets, or 'catalog', which lists those seen"
        )
        seen = "space='catalog', which lists the sets seen, or another space that has it"
        raise ValueError(
            f"the label set of row {int(np.argmin(inside))} is not in {space}, so it cannot be "
            f"trained on there; use {all_closed if space.is_path else seen}"
        )


@dataclass(frozen=True)
class SurrogateSum:
    """Any surrogate; ``make`` gives it for a space with other parameters."""

    make: Callable[[Any], Surrogate]
    space: Space | None
    n_scores: int
    y_true: Array
    weights: Array

    def start(self) -> Array:
        """All 0."""
        return np.zeros(self.n_scores)

    def spread(self) -> tuple[Array, Array]:
        """As if all were alike: what a loss weighs depends on more than how often labels occur."""
        n_parameters = 0 if self.space is None else len(self.space.parameters)
        return np.ones(self.n_scores), np.ones(n_parameters)

    def sums(self, rows: slice, scores: Array, parameters: Array) -> tuple[float, Array, Array]:
        """By the surrogate's own gradients."""
        space = self.space if self.space is None else self.space.with_parameters(parameters)
        surrogate, weight = self.make(space), self.weights[rows]
        if space is None:
            value, by_score = surrogate.value_and_gradient(scores, self.y_true[rows])
            return float(weight @ value), by_score * weight[:, None], np.empty(0)
        value, by_score, by_parameter = surrogate.value_and_gradients(scores, self.y_true[rows])
        return float(weight @ value), by_score * weight[:, None], weight @ by_parameter


@dataclass(frozen=True)
class Likelihood:
    """-log s(y) of the label sets on a space, which must hold them all.

    On closed sets only scores are learnt: potentials say nothing there that intercepts do not.
    """

    on: Space
    y_true: Array
    weights: Array

    def __post_init__(self):
        refuse_outside(self.on.contains(self.y_true), self.on)

    @property
    def space(self) -> Space | None:
        """The space, unless its sets are closed."""
        return None if self.on.is_closed else self.on

    @property
    def n_scores(self) -> int:
        """As many as the space has."""
        return self.on.n_scores

    def start(self) -> Array:
        """Near the distribution of the true sets."""
        return start_scores(self.on, self.y_true, self.weights)

    def spread(self) -> tuple[Array, Array]:
        """Of the true sets: p (1 - p) of a listed set, 4 p (1 - p) of a label's sign."""
        share = frequency(self.y_true, self.weights)
        by_label = 4.0 * share * (1.0 - share)
        if self.space is None:
            return by_label, np.empty(0)
        features = np.zeros(len(self.on.parameters))
        step = max(1, CHUNK_ENTRIES // max(1, len(features)))
        for first in range(0, len(self.y_true), step):
            rows = slice(first, first + step)
            features += self.weights[rows] @ self.on.features(self.y_true[rows])
        share = features / self.weights.sum()
        by_feature = share * (1.0 - share)
        return by_feature if self.on.is_joint else by_label, by_feature

    def sums(self, rows: slice, scores: Array, parameters: Array) -> tuple[float, Array, Array]:
        """As the space has it of each row."""
        learns = self.space is not None
        space, weights = (
            self.on.with_parameters(parameters) if learns else self.on,
            self.weights[rows],
        )
        value, by_score, by_parameter = space.negative_log_likelihood(
            scores, self.y_true[rows], learns
        )
        by_score = by_score * weights[:, None]
        return float(weights @ value), by_score, weights @ by_parameter if learns else np.empty(0)


def start_scores(space: Any, sets: Array, weights: Array) -> Array:
    """Scores, the same for every row, at which a space's distribution is near that of the sets.

    Half the log-odds of each label, where the space's parameters do not hold them already. On
    closed sets P(label | parent) = r asks for 2 h = logit r + sum over children log(1 - r'); on
    paths P(end) for 2 h = log P(end) - log P(path ends at the parent). Half a row is added to every
    count.
    """
    if lists_seen(space):
        return np.zeros(space.n_scores)
    parents = getattr(space, "parents", np.full(space.n_labels, -1))
    child, count = np.flatnonzero(parents >= 0), weights @ sets
    if space.is_path:
        is_end = ~np.isin(np.arange(len(parents)), parents) | (not space.leaves_only)
        ending = count.copy()
        np.subtract.at(ending, parents[child], count[child])
        weight = np.where(is_end, np.log(np.maximum(ending, 0.0) + 0.5), 0.0)
        scores = weight.copy()
        scores[child] -= weight[parents[child]]
        return scores / 2.0
    above = np.full(len(parents), weights.sum())
    if space.is_closed:
        above[child] = count[parents[child]]
    share = (count + 0.5) / (above + 1.0)
    scores = np.log(share) - np.log1p(-share)
    if space.is_closed:
        np.add.at(scores, parents[child], np.log1p(-share[child]))
    elif np.nan_to_num(space.parameters, neginf=0.0).any():
        # The potentials of an edge hold how frequent the label below it is.
        scores[child] = 0.0
    return scores / 2.0
