"""What a classifier is trained on: a surrogate by its name, or one given, and the way to it.

A loss that is not convex is approached from a convex one: along q from the logistic loss, and the
rho margin from the hinge. An objective is the sum over rows of such a loss, with the gradients a
solver needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.spaces.space import Space
from setwise.sparse import by_ranges, dense_rows, row_ranges
from setwise.spelling import argument
from setwise.surrogates.binary_relevance import BinaryRelevance
from setwise.surrogates.comp_sum import CompSum, inner_power
from setwise.surrogates.constrained import Constrained
from setwise.surrogates.names import COMP_SUM, CONSTRAINED, DEFAULT_Q, SURROGATES
from setwise.targets.target import Target, hierarchy_of

Array = NDArray[Any]

# Entries of rows by scores, or rows by parameters, that are held at a time, and fewest rows.
MOST_ENTRIES, LEAST_ROWS = 2**23, 64
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
            inner_power(self.q)

    def __str__(self) -> str:
        return str(self.surrogate).replace("_", " ")

    @property
    def is_likelihood(self) -> bool:
        """Whether the joint likelihood of label sets is trained."""
        return self.surrogate == "likelihood"

    @property
    def is_by_label(self) -> bool:
        """Whether labels are trained one by one, by any margin."""
        return self.surrogate == "binary_relevance" or isinstance(self.surrogate, BinaryRelevance)

    @property
    def is_separate(self) -> bool:
        """Whether each label is a logistic regression of its own."""
        return self.is_by_label and self.margin == "logistic"

    @property
    def is_convex(self) -> bool:
        """Whether the objective has one minimum."""
        return len(self.stages()) == 1

    @property
    def trained_for(self) -> Target:
        """The target that the loss is of: that of a surrogate object, if it has one."""
        return getattr(self.surrogate, "target", self.target)

    @property
    def own_space(self) -> Space | None:
        """The space that a surrogate object brings along."""
        return getattr(self.surrogate, "space", None)

    @property
    def q_of_family(self) -> float | None:
        """The member of the comp-sum family, None for other losses."""
        if isinstance(self.surrogate, CompSum):
            return self.surrogate.q
        if self.surrogate == "generalized_cross_entropy":
            return float(self.q)
        return COMP_SUM.get(self.surrogate) if isinstance(self.surrogate, str) else None

    @property
    def margin(self) -> str:
        """The margin of a constrained loss, or of binary relevance."""
        if isinstance(self.surrogate, str):
            return CONSTRAINED.get(self.surrogate, "logistic")
        return self.surrogate.margin

    @property
    def costs(self) -> Any:
        """What misses and false alarms cost in binary relevance, None where all cost 1."""
        return getattr(self.surrogate, "costs", None)

    def stages(self) -> tuple[Stage, ...]:
        """The losses on the way, each for a space; the last is the one asked for."""
        if self.is_likelihood:
            return (lambda space: CompSum("subset", space, 0.0, "paper"),)
        if self.is_by_label:
            return (lambda space: BinaryRelevance(self.margin, self.costs),)
        q = self.q_of_family
        if q is not None:
            return tuple(
                partial(self._comp_sum, step) for step in (*(s for s in STEPS if s < q), q)
            )
        margins = ("hinge", "rho") if self.margin == "rho" else (self.margin,)
        return tuple(partial(self._constrained, margin) for margin in margins)

    def loss(self, space: Space) -> Any:
        """The loss asked for, on a space."""
        return self.stages()[-1](space)

    def _comp_sum(self, q: float, space: Space) -> CompSum:
        if isinstance(self.surrogate, CompSum):
            return replace(self.surrogate, space=space, q=q)
        # On the unit scale the likelihood of one set among many is divided by their number.
        return CompSum(self.target, space, q, "paper" if self.target.form == "subset" else "unit")

    def _constrained(self, margin: str, space: Space) -> Constrained:
        if isinstance(self.surrogate, Constrained):
            return replace(self.surrogate, space=space, margin=margin)
        return Constrained(self.target, space, margin, seed=self.seed)

    def objective(self, stage: Stage, space: Space, y_true: Any, weights: Array) -> Objective:
        """The sum over rows that a stage minimises."""
        if self.is_likelihood:
            return Objective(None, space, y_true, weights)
        if space.is_path and hierarchy_of(self.target) is not None:
            # The distance from a path to what is none may be more than 1.
            refuse_outside(by_ranges(space.are_paths, y_true), space)  # type: ignore
        return Objective(stage, space, y_true, weights)


@dataclass(frozen=True)
class Objective:
    """The sum over rows of a loss of their scores against the true label sets.

    ``stage`` gives the loss for a space with other parameters; None is -log s(y), the likelihood,
    on a space that must hold all true sets. Rows come in ranges, so that memory stays bounded: the
    true sets of all rows may be CSR, those of a range are dense.
    """

    stage: Stage | None
    space: Space
    y_true: Any
    weights: Array

    def __post_init__(self):
        if self.stage is None:
            refuse_outside(by_ranges(self.space.contains, self.y_true), self.space)
        elif not self.learns:
            loss = self.stage(self.space)
            vars(self).update(stage=lambda _: loss)

    def of_rows(self, y_true: Array, weights: Array) -> Objective:
        """The same loss of other rows, which are not checked."""
        other = copy(self)
        vars(other).update(y_true=y_true, weights=weights)
        for name in ("mass", "counts"):
            vars(other).pop(name, None)
        return other

    def of_no_rows(self) -> Objective:
        """The same loss without rows, to be sent elsewhere."""
        return self.of_rows(np.zeros((0, self.space.n_labels), np.uint8), np.zeros(0))

    @cached_property
    def mass(self) -> float:
        """The sum of the weights of the rows."""
        return float(self.weights.sum())

    @cached_property
    def learns(self) -> bool:
        """Whether the space has parameters to learn."""
        return self.space.is_learnable

    @property
    def parameters(self) -> Array:
        """Those of the space that are learnt, as they are at the start, (p,)."""
        return self.space.parameters if self.learns else np.empty(0)

    @cached_property
    def _is_separate(self) -> bool:
        return self.stage is not None and isinstance(self.stage(self.space), BinaryRelevance)

    @property
    def is_smooth(self) -> bool:
        """Whether it is a likelihood, labels one by one by it, or a comp-sum loss."""
        loss = None if self.stage is None else self.stage(self.space)
        return (
            loss is None or isinstance(loss, CompSum) or getattr(loss, "margin", "") == "logistic"
        )

    @cached_property
    def counts(self) -> Array:
        """How often each feature of a learnt parameter is 1 in the rows, by weight, (p,)."""
        counts = np.zeros(len(self.parameters))
        widest = max(len(counts), self.space.n_labels)
        for rows in row_ranges(self.y_true.shape[0], widest) if len(counts) else ():
            part = dense_rows(self.y_true, rows)
            counts += self.space.feature_sums(part, self.weights[rows])
        return counts

    @property
    def lower_bounds(self) -> Array:
        """The least values of those parameters, (p,)."""
        return self.space.lower_bounds if self.learns else np.empty(0)

    def start(self) -> Array:
        """Scores, alike for every row, to begin at: of a likelihood near the truth, (n_scores,)."""
        if self.stage is not None:
            return np.zeros(self.space.n_scores)
        return self.space.start_scores(self.y_true, self.weights)

    @cached_property
    def steepness(self) -> float:
        """The mean steepness of a comp-sum loss at the start; 1 for a likelihood."""
        if self.stage is None or self._is_separate:
            return 1.0
        loss: Any = self.stage(self.space)
        found = by_ranges(lambda sets: loss.steepness(sets.astype(np.uint8)), self.y_true)
        return float(np.average(found, weights=self.weights))

    def spread(self) -> Array:
        """Variance at the start of what each parameter of the space multiplies, (p,).

        For a likelihood p (1 - p) of a feature of the true sets, for others as if all were alike.
        """
        n_parameters = len(self.parameters)
        if self.stage is not None:
            return np.ones(n_parameters)
        share = self.counts / self.mass
        return share * (1.0 - share)

    def variance(self, rows: slice, scores: Array, parameters: Array) -> Array:
        """Weighted sum over the rows of the variance of what each score multiplies, (n_scores,).

        See `variances`; of losses other than a likelihood as if all were alike: they weigh more
        than probabilities.
        """
        if self.stage is not None:
            return np.full(self.space.n_scores, self.weights[rows].sum())
        return self.variances(rows, scores, parameters).sum(axis=0)

    def variances(self, rows: slice, scores: Array, parameters: Array) -> Array:
        """Of a likelihood, the weighted variance of what each score multiplies, (n, n_scores).

        By its probabilities at these scores: p (1 - p) of a listed set, or 4 p (1 - p) of a label's
        sign. The gradient has it: it is away from the truth by 1 - p, or 2 (1 - p).
        """
        space = self.space.with_parameters(parameters) if self.learns else self.space
        away = np.abs(space.negative_log_likelihood(scores, self.y_true[rows], False)[1])
        away *= (1.0 if space.is_joint else 2.0) - away
        away *= self.weights[rows, None]
        return away

    def curvature(self, rows: slice, scores: Array, by_score: Array, parameters: Array) -> Array:
        """The second derivative of the weighted loss of each row by each of its scores.

        Exact for a likelihood, 4 P (1 - P), and for labels one by one, P (1 - P): there P - y is
        half the gradient, and the gradient. For comp-sum losses the first with the marginals of
        the space, times the loss's steepness: exact for q = 0; others may be negative.
        """
        weights, y_true = self.weights[rows, None], self.y_true[rows]
        slope = 1.0 if self._is_separate else 2.0
        if self.stage is None or self._is_separate:
            likely = y_true + by_score / (slope * weights)
        else:
            space = self.space.with_parameters(parameters) if self.learns else self.space
            likely = space.marginals(scores)
            steep = self.stage(space).steepness(y_true.astype(np.uint8), scores)  # type: ignore
            weights = weights * steep[:, None]
        return slope**2 * weights * likely * (1.0 - likely)

    def derivatives(self, scores: Array, parameters: Array) -> tuple[Array, Array, Array]:
        """Gradient and curvature by the scores of all rows, and the gradient by the parameters.

        The first two, (n, n_scores), as exact as float32 is; see `curvature`.
        """
        gradient, hessian = (np.empty(scores.shape, np.float32) for _ in range(2))
        space = self.space.with_parameters(parameters) if self.learns else self.space
        by_parameter = np.zeros(len(parameters))
        for rows in ranges_for(space, len(scores)):
            _, by_score, by_part = self.sums(rows, scores[rows], parameters)
            gradient[rows] = by_score
            hessian[rows] = self.curvature(rows, scores[rows], by_score, parameters)
            by_parameter += by_part
        return gradient, hessian, by_parameter

    def sums(self, rows: slice, scores: Array, parameters: Array) -> tuple[float, Array, Array]:
        """Weighted loss of the rows, gradient by their scores, gradient by the parameters."""
        space = self.space.with_parameters(parameters) if self.learns else self.space
        y_true, weights, total = self.y_true[rows], self.weights[rows], np.empty(0)
        if self.stage is None:
            found = space.summed_likelihood(scores, y_true, weights, self.learns)
            value, by_score, by_parameter = found
            total = by_parameter if self.learns else total
        elif self.learns:
            value, by_score, by_parameter = self.stage(space).value_and_gradients(scores, y_true)
            total = weights @ by_parameter
        else:
            value, by_score = self.stage(space).value_and_gradient(scores, y_true)
        return float(weights @ value), by_score * weights[:, None], total


def penalty(space: Space, parameters: Array) -> tuple[float, Array]:
    """What holds learnt parameters (p,), if any, near 0 beside the sum over rows; its gradient."""
    if len(parameters) == 0:
        return 0.0, parameters
    finite = np.where(np.isfinite(parameters), parameters, 0.0)
    slope = space.penalties * finite
    return float(slope @ finite) / 2.0, slope


def ranges_for(space: Space, n_rows: int) -> Iterator[slice]:
    """Rows in ranges, so that arrays of rows by scores or listed sets stay small."""
    widest = max(space.n_scores, len(space.parameters), 1)
    return row_ranges(n_rows, widest, MOST_ENTRIES, LEAST_ROWS)


def refuse_outside(inside: Array, space: Space) -> None:
    """Raise for the first row whose set the space does not have."""
    if not inside.all():
        seen = f"{argument('space', 'catalog')}, which lists the sets seen, or "
        closed = f"{seen}{argument('space', 'closed')}, which has all closed sets"
        seen += "another space that has it"
        raise ValueError(
            f"the label set of row {int(np.argmin(inside))} is not in {space}, so it cannot be "
            f"trained on there; use {closed if space.is_path else seen}"
        )
