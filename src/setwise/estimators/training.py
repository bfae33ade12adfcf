"""What a classifier is trained on: a surrogate by its name, or one given, and the way to it.

A loss that is not convex is approached from a convex one: along q from the logistic loss, and the
rho margin from the hinge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from setwise.estimators.choice import own_space
from setwise.estimators.likelihood import likelihood
from setwise.estimators.objective import Array, Objective, SurrogateSum, refuse_outside
from setwise.spaces.cube import Cube
from setwise.spaces.forest import Forest
from setwise.spaces.paths import Paths
from setwise.spaces.space import Space
from setwise.surrogates.binary_relevance import BinaryRelevance
from setwise.surrogates.comp_sum import CompSum
from setwise.surrogates.constrained import Constrained
from setwise.surrogates.names import COMP_SUM, CONSTRAINED, DEFAULT_Q, SURROGATES
from setwise.targets.target import Target
from setwise.targets.tree_distance import TreeDistance
from setwise.validation import real_number

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

    def objective(
        self, stage: Stage, space: Space, n_labels: int, y_true: Array, weights: Array
    ) -> Objective:
        """The sum over rows that a stage minimises."""
        if self.is_likelihood:
            return likelihood(space, y_true, weights)
        if self.is_by_label:
            return SurrogateSum(lambda _: stage(space), None, n_labels, y_true, weights)
        if isinstance(space, Paths) and isinstance(self.target, TreeDistance):
            # The distance from a path to what is none may be more than 1.
            refuse_outside(space.are_paths(y_true), space)
        if isinstance(space, Forest) and space.closed_law is not None:
            # Potentials say nothing on closed sets that intercepts do not.
            loss = stage(space)
            return SurrogateSum(lambda _: loss, None, space.n_scores, y_true, weights)
        return SurrogateSum(stage, space, space.n_scores, y_true, weights)

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
