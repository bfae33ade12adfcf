"""Data whose p(y | x) is known, so that the true excess risk of any model can be computed.

Every problem here is log-linear: inputs are standard normal, and the law of the listed label sets
is a softmax of linear functions of them. A catalog with joint scores therefore holds the truth of
all; what else does is said with each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr, softmax

from setwise.consistency.conditional import Kind
from setwise.consistency.naming import loss_matrix
from setwise.consistency.population import best_decisions, expected_counts
from setwise.consistency.setting import Setting
from setwise.spaces.cube import Cube
from setwise.spaces.forest import Forest
from setwise.spaces.sized import Slice
from setwise.spaces.space import Array, Space, all_sets
from setwise.targets.registry import get_target
from setwise.targets.target import judges_all_rows, predicted_size
from setwise.taxonomy import parent_vector
from setwise.validation import label_matrix, real_array, whole_number

# Parts of the inputs from which the error of a population measure is taken.
BLOCKS = 20
# Label sets of so many labels are listed.
MOST_LABELS = 16
# Whole numbers, or a generator that goes on where it is.
Seed = int | np.random.Generator


@dataclass(frozen=True, eq=False)
class Problem:
    """p(y_k | x) proportional to exp(coef_k · x + intercept_k), x standard normal.

    ``sets`` (K, n_labels) are the label sets that occur, with ``coef`` (K, n_features) and
    ``intercept`` (K,).

    Examples
    --------
    >>> problem = rare_but_joint()
    >>> X, Y = problem.sample(5, seed=0)
    >>> X.shape, Y.shape
    ((5, 2), (5, 4))
    >>> sets, probability = problem.conditional(X)
    >>> probability.sum(axis=1)
    array([1., 1., 1., 1., 1.])
    """

    name: str
    sets: Any
    coef: Any
    intercept: Any

    def __post_init__(self):
        sets, coef = label_matrix(self.sets, None, "sets"), real_array(self.coef, "coef")
        intercept = real_array(self.intercept, "intercept")
        if coef.ndim != 2 or len(coef) != len(sets) or intercept.shape != (len(sets),):
            raise ValueError(
                f"coef and intercept must have a row for each of the {len(sets)} label sets, but "
                f"their shapes are {coef.shape} and {intercept.shape}"
            )
        vars(self).update(sets=sets, coef=coef, intercept=intercept)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.sets.shape[1]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.coef.shape[1]

    def conditional(self, X: Any) -> tuple[Array, Array]:
        """The label sets (K, l) and p(y | x) of each row, (n, K)."""
        inputs = real_array(X, "X")
        if inputs.ndim != 2 or inputs.shape[1] != self.n_features:
            raise ValueError(
                f"X must have shape (n, {self.n_features}), one feature a column, but its shape "
                f"is {inputs.shape}"
            )
        return self.sets, softmax(inputs @ self.coef.T + self.intercept, axis=1)

    def inputs(self, n_rows: int, seed: Seed = 0) -> Array:
        """Inputs drawn from their law, (n, d): those of `sample`."""
        n_rows = whole_number(n_rows, "n_rows", 1)
        return np.random.default_rng(seed).normal(size=(n_rows, self.n_features))

    def sample(self, n_rows: int, seed: Seed = 0) -> tuple[Array, Array]:
        """Inputs and label sets drawn from their law, (n, d) and (n, l)."""
        rng = np.random.default_rng(seed)
        X = self.inputs(n_rows, rng)
        _, law = self.conditional(X)
        level = rng.random((n_rows, 1))
        chosen = np.minimum((law.cumsum(axis=1) < level).sum(axis=1), len(self.sets) - 1)
        return X, self.sets[chosen]

    def marginals(self, X: Any) -> Array:
        """P(label | x), (n, l)."""
        sets, law = self.conditional(X)
        return np.clip(law @ sets, 0.0, 1.0)

    def risks(self, target: Any, X: Any, sets: Array) -> Array:
        """Expected loss of each of the given sets at each input, (n, number of sets)."""
        truths, law = self.conditional(X)
        return law @ loss_matrix(get_target(target), truths, sets)

    def expected_loss(self, target: Any, X: Any, y_pred: Any) -> Array:
        """Expected loss of each prediction, (n,)."""
        y_pred = label_matrix(y_pred, self.n_labels, "predictions")
        if len(y_pred) != len(X):
            raise ValueError(
                f"predictions must have a label set for each of the {len(X)} inputs, but it has "
                f"{len(y_pred)} row{'s' * (len(y_pred) != 1)}"
            )
        distinct, place = np.unique(y_pred, axis=0, return_inverse=True)
        return self.risks(target, X, distinct)[np.arange(len(y_pred)), place.ravel()]

    def usual_space(self, target: Any) -> Space:
        """All label sets, for precision@k and recall@k those of size k."""
        size = predicted_size(get_target(target))
        return Slice(self.n_labels, size) if size else Cube(self.n_labels)

    def least_loss(self, target: Any, X: Any, space: Space | None = None) -> Array:
        """Expected loss of the best label set of a space, which is enumerated, (n,)."""
        space = space or self.usual_space(target)
        return self.risks(target, X, space.enumerate()).min(axis=1)


@dataclass(frozen=True)
class ExcessRisk:
    """Mean expected loss above the best possible, with its parts and the error of the mean.

    The expectation over y given x is exact; that over x is a mean over ``n_rows`` fresh inputs, and
    ``standard_error`` is that mean's. For a measure of all rows together the loss is 1 - the
    measure of the expected counts over these inputs, the best possible that of the best of all
    decisions for them, and the error is from twenty parts of the inputs.

    Examples
    --------
    >>> found = excess_risk(lambda X: [[1, 0, 0, 0]] * len(X), rare_but_joint(), "f1", n_rows=100)
    >>> print(found)
    excess risk 0.09725 ± 0.01028 (risk 0.52670, best possible 0.42945, 100 inputs)
    """

    value: float
    standard_error: float
    risk: float
    bayes_risk: float
    n_rows: int

    def __str__(self) -> str:
        return (
            f"excess risk {self.value:.5f} ± {self.standard_error:.5f} "
            f"(risk {self.risk:.5f}, best possible {self.bayes_risk:.5f}, {self.n_rows} inputs)"
        )


def excess_risk(
    model: Any,
    problem: Problem,
    target: Any = "f1",
    *,
    space: Space | None = None,
    n_rows: int = 10_000,
    seed: Seed = 12345,
) -> ExcessRisk:
    """How much worse than the best possible a fitted model predicts, on known truth.

    Parameters
    ----------
    model : object with ``predict(X)``, or a function of X
        Predictions are label sets, (n, l).
    problem : Problem
    target : Target or str, default "f1"
    space : Space, optional
        The label sets a prediction is compared with: all by default, those of size k for
        precision@k and recall@k. Predictions outside are refused: they may be better than all.
    n_rows, seed : int
        Fresh inputs.

    Examples
    --------
    >>> found = excess_risk(lambda X: [[1, 0, 0, 0]] * len(X), rare_but_joint(), "f1")
    >>> round(found.value, 3), round(found.bayes_risk, 3)
    (0.1, 0.427)
    """
    predict = getattr(model, "predict", model)
    if not callable(predict) or not isinstance(problem, Problem):
        raise ValueError(
            f"model must have a method predict or be a function of X, and problem must be a "
            f"Problem, such as rare_but_joint() makes, but they are {model!r} and {problem!r}"
        )
    X = problem.inputs(n_rows, seed)
    y_pred = label_matrix(predict(X), problem.n_labels, "predictions")
    if judges_all_rows(judge := get_target(target)):
        return _population_excess(judge, problem.marginals(X), y_pred)
    space = space or problem.usual_space(target)
    own = problem.expected_loss(target, X, y_pred)
    outside = np.flatnonzero(~np.asarray(space.contains(y_pred), bool))
    if len(outside):
        raise ValueError(
            f"{len(outside)} of the {len(y_pred)} predictions are not in {space}, the first at row "
            f"{outside[0]}: {y_pred[outside[0]].tolist()}; compare with a space that has them"
        )
    best = problem.least_loss(target, X, space)
    excess = own - best
    error = float(excess.std(ddof=1) / np.sqrt(n_rows)) if n_rows > 1 else float("inf")
    return ExcessRisk(float(excess.mean()), error, float(own.mean()), float(best.mean()), n_rows)


def _population_excess(target: Any, chance: Array, y_pred: Array) -> ExcessRisk:
    """1 - the measure of the expected counts of all inputs, above the least of any decisions."""

    def losses(rows: Array) -> Array:
        own, part = y_pred[rows].astype(np.float64), chance[rows]
        found = [expected_counts(part, one) for one in (own, best_decisions(target, part))]
        return 1.0 - np.array([float(target.of_counts(counts)) for counts in found])

    n_rows = len(chance)
    risk, least = losses(np.arange(n_rows))
    error = float("inf")
    if n_rows >= 2 * BLOCKS:
        blocks = np.array_split(np.arange(n_rows), BLOCKS)
        error = np.std([-np.diff(losses(rows))[0] for rows in blocks], ddof=1) / np.sqrt(BLOCKS)
    return ExcessRisk(float(risk - least), float(error), float(risk), float(least), n_rows)


def surrogate_excess(
    surrogate: Any,
    scores: Any,
    problem: Problem,
    X: Any,
    *,
    target: Any = "f1",
    space: Space | None = None,
    kind: Kind = "labelwise",
) -> float:
    """Mean conditional regret of a surrogate on known truth, on the paper's scale.

    What a bound of `certify` is taken of: ``scores`` (n, n_scores) at the inputs X, the least
    conditional risk over all functions. For ``surrogate="likelihood"`` it is the mean divergence
    KL(p || s) in nats, misspecification included.

    Examples
    --------
    >>> problem = independent(2)
    >>> X = problem.inputs(100)
    >>> surrogate_excess("logistic", [[0.0, 0.0]] * 100, problem, X) > 0.0
    True
    """
    space = space or Cube(problem.n_labels)
    setting = Setting.of(target, surrogate, space, kind, truths=problem.sets)
    law = setting.probabilities(*problem.conditional(X))
    least = entr(law).sum(axis=1) if setting.choice.is_likelihood else setting.minimisers(law)[1]
    return float((setting.value(law, np.asarray(scores, float)) - least).mean())


def independent(n_labels: int = 4, n_features: int = 3, seed: int = 0) -> Problem:
    """Labels independent given x, each a logistic regression: binary relevance holds the truth.

    Examples
    --------
    >>> problem = independent(4)
    >>> X, Y = problem.sample(3, seed=0)
    >>> problem.sets.shape, Y.tolist()
    ((16, 4), [[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
    """
    return _log_linear("independent", _every(n_labels), n_features, seed)


def chain(n_labels: int = 4, n_features: int = 3, coupling: float = 1.5, seed: int = 0) -> Problem:
    """Neighbours agree more often: a chain with constant potentials holds the truth.

    Examples
    --------
    >>> problem = chain(4)
    >>> X, Y = problem.sample(3, seed=0)
    >>> problem.sets.shape, Y.tolist()
    ((16, 4), [[1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0]])
    """
    sets = _every(n_labels)
    agree = (sets[:, 1:] == sets[:, :-1]).sum(axis=1)
    return _log_linear("chain", sets, n_features, seed, coupling * agree)


def exclusive(groups: tuple[int, ...] = (3, 2), n_features: int = 3, seed: int = 0) -> Problem:
    """Exactly one label of each group, groups independent given x: a list holds the truth.

    Examples
    --------
    >>> problem = exclusive((3, 2))
    >>> X, Y = problem.sample(3, seed=0)
    >>> problem.sets.shape, Y.tolist()
    ((6, 5), [[1, 0, 0, 1, 0], [1, 0, 0, 1, 0], [0, 0, 1, 0, 1]])
    """
    if not isinstance(groups, Iterable) or not (sizes := list(groups)):
        raise ValueError(
            f"groups must list the sizes of groups of labels, such as (3, 2), but it is {groups!r}"
        )
    sizes = [whole_number(size, f"groups[{place}]", 1) for place, size in enumerate(sizes)]
    every = _every(sum(sizes))
    parts = np.split(every, np.cumsum(sizes)[:-1], axis=1)
    sets = every[np.all([part.sum(axis=1) == 1 for part in parts], axis=0)]
    return _log_linear("exclusive", sets, n_features, seed)


def hierarchy(parents: Any = (-1, 0, 0, 1, 1), n_features: int = 3, seed: int = 0) -> Problem:
    """Sets closed upwards in a taxonomy, weighed label by label: `Forest` with closed sets.

    Examples
    --------
    >>> problem = hierarchy((-1, 0, 0))
    >>> X, Y = problem.sample(3, seed=0)
    >>> problem.sets.shape, Y.tolist()
    ((5, 3), [[1, 1, 1], [1, 1, 1], [0, 0, 0]])
    """
    tree = parent_vector(list(parents) if isinstance(parents, Iterable) else parents)
    sets = Forest(tree, closed=True).enumerate()
    return _log_linear("hierarchy", sets, n_features, seed, 0.8 * sets.sum(axis=1))


def rare_but_joint(n_labels: int = 4) -> Problem:
    """All labels together, or one alone: what defeats binary relevance cut at 1/2.

    With probability a(x), sigmoid(x_1 - 1.2), the set is full, else a single label: label 0 in half
    of these cases. With four labels, all but the first are less likely than not unless a > .4, but
    the full set is the best for F1 from a = .14 on, for Jaccard from a = .25: binary relevance at
    1/2 predicts label 0 alone in between. The best sets change across a plane, so linear scores
    of q = 1 on the cube hold the best classifier; a catalog with joint scores holds the truth.

    Examples
    --------
    >>> rare_but_joint(3).sets.astype(int)
    array([[1, 1, 1],
           [1, 0, 0],
           [0, 1, 0],
           [0, 0, 1]])
    """
    n_labels = whole_number(n_labels, "n_labels", 2)
    share = np.full(n_labels, 0.5 / (n_labels - 1))
    share[0] = 0.5
    sets = np.vstack([np.ones((1, n_labels)), np.eye(n_labels)])
    coef = np.zeros((n_labels + 1, 2))
    coef[0, 0] = 1.0
    return Problem("rare but joint", sets, coef, np.append(-1.2, np.log(share)))


PROBLEMS = {
    "independent": independent, "chain": chain, "exclusive": exclusive, "hierarchy": hierarchy,
    "rare but joint": rare_but_joint,
}  # fmt: skip


def _every(n_labels: int) -> Array:
    """All label sets."""
    if whole_number(n_labels, "n_labels", 1) > MOST_LABELS:
        raise ValueError(
            f"n_labels must be at most {MOST_LABELS}, since sets are listed, but it is {n_labels}"
        )
    return all_sets(n_labels)


def _log_linear(
    name: str, sets: Array, n_features: int, seed: int, raised: Array | float = 0.0
) -> Problem:
    """Slopes and intercepts of labels drawn at random, summed over those of each set."""
    rng, labels = np.random.default_rng(seed), sets.shape[1]
    slopes = 1.2 * rng.normal(size=(labels, whole_number(n_features, "n_features", 1)))
    return Problem(name, sets, sets @ slopes, sets @ rng.normal(-0.5, 0.5, labels) + raised)
