"""What a linear model is trained on: sums over rows of a loss, with the gradients a solver needs.

An objective knows the true label sets and the weights of the rows. Given scores and the parameters
of the space, it returns the weighted sum of the losses, its gradient by the scores, and its
gradient by the parameters. Rows come in ranges, so that memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from setwise.estimators.choice import frequency
from setwise.spaces.space import Space
from setwise.surrogates.surrogate import Surrogate

Array = NDArray[Any]

# Entries of rows by scores, or rows by parameters, that are held at a time.
CHUNK_ENTRIES = 2**23


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
    if getattr(space, "sets", None) is not None:
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
