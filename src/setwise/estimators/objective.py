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

from setwise.estimators.choice import frequency, start_scores
from setwise.kernels import exp, kernel
from setwise.spaces.catalog import Catalog
from setwise.spaces.paths import Paths
from setwise.spaces.space import Space
from setwise.surrogates.surrogate import Surrogate
from setwise.targets.measure import find_rows
from setwise.threads import for_rows, thread_count

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
            f"trained on there; use {all_closed if isinstance(space, Paths) else seen}"
        )


def _places(space: Catalog, y_true: Array) -> Array:
    """Where in the list the set of each row stands, (n,)."""
    place = find_rows(space.sets, y_true)
    refuse_outside(place >= 0, space)
    return place


def _variance(place: Array, weights: Array, n_sets: int) -> Array:
    """p (1 - p) for the share p of rows at each place of the list, (n_sets,)."""
    share = np.bincount(place, weights, n_sets) / weights.sum()
    return share * (1.0 - share)


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
    """-log s(y) = A(scores) - z(y) on a space with one score a label; all true sets are in it.

    Its gradient is the mean less what is true: E[y'] - y by the scores, likewise by the parameters.
    """

    space: Space
    y_true: Array
    weights: Array

    def __post_init__(self):
        refuse_outside(self.space.contains(self.y_true), self.space)

    @property
    def n_scores(self) -> int:
        """As many as the space has."""
        return self.space.n_scores

    def start(self) -> Array:
        """Near the law of the true sets."""
        return start_scores(self.space, self.y_true, self.weights)

    def spread(self) -> tuple[Array, Array]:
        """Of labels, in the true sets; of features, in the space's law."""
        features = self.space.mean_scores(self.start()[None])[2][0]
        share = frequency(self.y_true, self.weights)
        return 4.0 * share * (1.0 - share), features * (1.0 - features)

    def sums(self, rows: slice, scores: Array, parameters: Array) -> tuple[float, Array, Array]:
        """By one pass for the log-partition and its gradients."""
        y_true, weights = self.y_true[rows], self.weights[rows]
        log_partition, by_score, means = self.space.with_parameters(parameters).mean_scores(scores)
        features = weights @ self.space.features(y_true)
        true = y_true * 2.0 - 1.0
        value = weights @ (log_partition - np.einsum("ij,ij->i", true, scores))
        free = np.isfinite(parameters)
        value -= features[free] @ parameters[free]
        gradient = (by_score - true) * weights[:, None]
        return float(value), gradient, weights @ means - features


@dataclass(frozen=True)
class JointLikelihood:
    """-log s(y) over a list of label sets with a score for each: a softmax; all are listed."""

    space: Catalog
    y_true: Array
    weights: Array
    _place: Array = field(init=False, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "_place", _places(self.space, self.y_true))

    @property
    def n_scores(self) -> int:
        """One score for each listed set."""
        return len(self.space.sets)

    def start(self) -> Array:
        """All 0: the biases hold the law of the sets."""
        return np.zeros(self.n_scores)

    def spread(self) -> tuple[Array, Array]:
        """Of listed sets in the true sets, as scores and as biases."""
        listed = _variance(self._place, self.weights, self.n_scores)
        return listed, listed

    def sums(self, rows: slice, scores: Array, parameters: Array) -> tuple[float, Array, Array]:
        """Value and gradients of a softmax."""
        place, weights = self._place[rows], self.weights[rows]
        true = (np.arange(len(place)), place)
        weight = scores + parameters
        high = weight.max(axis=1, keepdims=True)
        gradient = np.exp(weight - high)
        mass = gradient.sum(axis=1, keepdims=True)
        value = weights @ ((high + np.log(mass))[:, 0] - weight[true])
        gradient /= mass
        gradient[true] -= 1.0
        gradient *= weights[:, None]
        return float(value), gradient, gradient.sum(axis=0)


@dataclass(frozen=True)
class CatalogLikelihood:
    """-log s(y) over a list of label sets with label-wise scores, in one pass over the list.

    z of a listed set is twice the sum of its labels' scores, plus its bias and a number common to
    all sets; only its labels are touched, and no array of rows by sets is made. All true sets must
    be listed.
    """

    space: Catalog
    y_true: Array
    weights: Array
    _place: Array = field(init=False, repr=False)
    _begins: Array = field(init=False, repr=False)
    _labels: Array = field(init=False, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "_place", _places(self.space, self.y_true))
        rows, labels = np.nonzero(self.space.sets)
        begins = np.searchsorted(rows, np.arange(len(self.space.sets) + 1))
        object.__setattr__(self, "_begins", begins)
        object.__setattr__(self, "_labels", labels)

    @property
    def n_scores(self) -> int:
        """One score for each label."""
        return self.space.n_labels

    def start(self) -> Array:
        """All 0: the biases hold the law of the sets."""
        return np.zeros(self.n_scores)

    def spread(self) -> tuple[Array, Array]:
        """Of labels and listed sets in the true sets."""
        share = frequency(self.y_true, self.weights)
        listed = _variance(self._place, self.weights, len(self.space.sets))
        return 4.0 * share * (1.0 - share), listed

    def sums(self, rows: slice, scores: Array, parameters: Array) -> tuple[float, Array, Array]:
        """Value and gradients; what a thread adds up by set is kept apart until the end."""
        n = len(scores)
        gradient, value = np.empty_like(scores), np.empty(n)
        parts = max(1, min(thread_count(), n // 64))
        by_set = np.zeros((parts, len(parameters)))
        place, weights = self._place[rows], self.weights[rows]

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
