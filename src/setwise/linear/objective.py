"""What a linear model is trained on: sums over rows of a loss, with the gradients a solver needs.

An objective knows the true label sets and the weights of the rows. Given scores and the parameters
of the space, it returns the weighted sum of the losses, its gradient by the scores, and its
gradient by the parameters. Rows come in ranges, so that memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from setwise.elementary import exp, kernel
from setwise.rows import for_rows, thread_count
from setwise.spaces.catalog import Catalog
from setwise.spaces.space import Space
from setwise.surrogates.surrogate import Surrogate

Array = NDArray[Any]


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

    def sums(self, rows: slice, scores: Array, parameters: Array) -> tuple[float, Array, Array]:
        """Weighted loss of the rows, gradient by their scores, gradient by the parameters."""
        ...


@dataclass(frozen=True)
class SurrogateSum:
    """Any surrogate; ``make`` gives it for a space with other parameters."""

    make: Callable[[Space | None], Surrogate]
    space: Space | None
    n_scores: int
    y_true: Array
    weights: Array

    def sums(self, rows: slice, scores: Array, parameters: Array) -> tuple[float, Array, Array]:
        """By the surrogate's own gradients."""
        space = self.space if self.space is None else self.space.with_parameters(parameters)
        value, by_score, by_parameter = self.make(space).value_and_gradients(
            scores, self.y_true[rows]
        )
        weight = self.weights[rows]
        by_score *= weight[:, None].astype(by_score.dtype)
        return float(weight @ value), by_score, weight @ by_parameter


@dataclass(frozen=True)
class CatalogLikelihood:
    """-log s(y) over a list of label sets with label-wise scores, in one pass over the list.

    z of a listed set is twice the sum of its labels' scores, plus its bias and a number common to
    all sets; only its labels are touched, and no array of rows by sets is made. All true sets must
    be listed.
    """

    space: Catalog
    place: Array
    weights: Array
    _begins: Array = field(init=False, repr=False)
    _labels: Array = field(init=False, repr=False)

    def __post_init__(self):
        rows, labels = np.nonzero(self.space.sets)
        begins = np.searchsorted(rows, np.arange(len(self.space.sets) + 1))
        object.__setattr__(self, "_begins", begins)
        object.__setattr__(self, "_labels", labels)

    @property
    def n_scores(self) -> int:
        """One score for each label."""
        return self.space.n_labels

    def sums(self, rows: slice, scores: Array, parameters: Array) -> tuple[float, Array, Array]:
        """Value and gradients; what a thread adds up by set is kept apart until the end."""
        n = len(scores)
        gradient, value = np.empty_like(scores), np.empty(n)
        parts = max(1, min(thread_count(), n // 64))
        by_set = np.zeros((parts, len(parameters)))
        place, weights = self.place[rows], self.weights[rows]

        def run(first: int, last: int) -> None:
            for part in range(first, last):
                start, stop = n * part // parts, n * (part + 1) // parts
                likelihood_rows(
                    start, stop, scores, self._begins, self._labels, parameters, place, weights,
                    value, gradient, by_set[part],
                )  # fmt: skip

        for_rows(run, parts, least=1)
        return float(weights @ value), gradient, by_set.sum(axis=0)


@kernel
def likelihood_rows(
    start, stop, scores, begins, labels, bias, place, weights, value, gradient, by_set
):
    """-log s(y) and weighted gradients; ``place`` is the listed set of each row."""
    n_sets = len(bias)
    weight_of = np.empty(n_sets)
    for row in range(start, stop):
        high = -np.inf
        for k in range(n_sets):
            z = bias[k]
            for position in range(begins[k], begins[k + 1]):
                z += 2.0 * scores[row, labels[position]]
            weight_of[k] = z
            high = max(high, z)
        here = weight_of[place[row]]
        mass = 0.0
        for k in range(n_sets):
            weight_of[k] = exp(weight_of[k] - high)
            mass += weight_of[k]
        value[row] = np.log(mass) + high - here
        share = weights[row] / mass
        for j in range(scores.shape[1]):
            gradient[row, j] = 0.0
        for k in range(n_sets):
            part = share * weight_of[k]
            by_set[k] += part
            for position in range(begins[k], begins[k + 1]):
                gradient[row, labels[position]] += 2.0 * part
        by_set[place[row]] -= weights[row]
        for position in range(begins[place[row]], begins[place[row] + 1]):
            gradient[row, labels[position]] -= 2.0 * weights[row]
