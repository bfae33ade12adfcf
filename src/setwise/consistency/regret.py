"""Exact conditional risks and regrets on a finite distribution, and minimizability gaps.

A distribution is a `Distribution`, or the probabilities of the space's own sets in their order.

A gap is what a hypothesis set loses by having to serve all inputs at once:

    M(H) = inf_{h in H} E_x[C(h, x)] - E_x[inf_{h in H} C(h, x)],

C the conditional risk of a surrogate or a target. The paper's bounds hold with the gaps added on
both sides: regret + M_target <= Gamma(surrogate regret + M_surrogate). For all functions both gaps
are 0; linear scores with an intercept reach every score at a single input, so the second term is
the same as for all functions, and only the first has to be found.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from scipy.optimize import linprog

from setwise.consistency.conditional import Kind, Weights
from setwise.consistency.naming import loss_matrix
from setwise.consistency.optimum import Optimum, best_scores
from setwise.consistency.setting import Setting
from setwise.consistency.verdicts import Distribution
from setwise.spaces.cube import Cube
from setwise.spaces.space import Array, Space, smaller_first
from setwise.surrogates import BinaryRelevance, CompSum, Constrained
from setwise.surrogates.names import DEFAULT_Q
from setwise.targets.registry import get_target
from setwise.validation import label_matrix, real_array, real_vector

Surrogates = CompSum | Constrained | BinaryRelevance
Hypotheses = Literal["all", "linear"]
# Expected losses that differ by no more are equal.
TIE = 1e-12
# Inputs that are parted in two, and ways to give each a label set, that are compared one by one.
MOST_INPUTS, MOST_ASSIGNMENTS = 12, 4_000_000


def risks(target: Any, space: Space, distribution: Any) -> Array:
    """Expected loss of each label set of a space, in the order of ``space.enumerate()``, (K,).

    Examples
    --------
    >>> risks("f1", Cube(2), [0.4, 0.3, 0.0, 0.3]).round(4)
    array([0.6, 0.5, 0.8, 0.5])
    """
    truth = Distribution.of(distribution, space)
    return truth.mean(loss_matrix(get_target(target).on(space), truth.sets, space.enumerate()))


def bayes(target: Any, space: Space, distribution: Any) -> Array:
    """The label set of least expected loss; ties: the smaller set, then the lower labels, (l,).

    Examples
    --------
    >>> bayes("f1", Cube(2), [0.4, 0.3, 0.0, 0.3])
    array([0, 1], dtype=uint8)
    """
    expected, sets = risks(target, space, distribution), space.enumerate()
    best = sets[expected <= expected.min() + TIE]
    return best[smaller_first(best)[0]]


def regret(target: Any, space: Space, distribution: Any, y_pred: Any) -> float:
    """Expected loss of a label set less the least of the space.

    Examples
    --------
    >>> round(regret("f1", Cube(2), [0.4, 0.3, 0.0, 0.3], [0, 0]), 4)
    0.1
    """
    truth = Distribution.of(distribution, space)
    row = label_matrix(np.atleast_2d(np.asarray(y_pred)), space.n_labels, "y_pred")
    if len(row) != 1:
        raise ValueError(f"y_pred must be one label set, but it has {len(row)} rows")
    own = truth.mean(loss_matrix(get_target(target).on(space), truth.sets, row))
    return float(own[0] - risks(target, space, truth).min())


def surrogate_risk(surrogate: Surrogates, scores: Any, distribution: Any) -> float:
    """Expected surrogate loss of scores (n_scores,), on the surrogate's own scale.

    Examples
    --------
    >>> from setwise.surrogates import Logistic
    >>> round(surrogate_risk(Logistic("subset", Cube(2)), [0.0, 0.0], [0.3, 0.3, 0.0, 0.4]), 4)
    0.0
    """
    truth = _truth(surrogate, distribution)
    row = real_vector(scores, None, "scores")
    values, _ = surrogate.value_and_gradient(np.tile(row, (len(truth.sets), 1)), truth.sets)
    return float(truth.mean(values))


def best_in_class(
    surrogate: Surrogates, distribution: Any, scores: Kind = "labelwise", seed: int = 0
) -> Optimum:
    """The least expected surrogate loss over all scores, certified, on the paper's scale.

    With ``scores="joint"`` over a score for each label set, whatever the space.

    Examples
    --------
    >>> from setwise.surrogates import Logistic
    >>> best = best_in_class(Logistic("subset", Cube(2)), [0.3, 0.3, 0.0, 0.4])
    >>> best.scores.round(3), best.is_certain
    (array([-0.203,  0.424]), True)
    """
    truth = _truth(surrogate, distribution)
    return _setting(surrogate, truth, scores).optimum(truth.probability, seed)


def surrogate_regret(surrogate: Surrogates, scores: Any, distribution: Any) -> float:
    """Expected surrogate loss of scores less the least over all scores, on the surrogate's scale.

    For generalised cross-entropy on other spaces than the cube, and more than three labels on it,
    the least is the best of many descents; `best_in_class` says how certain it is.

    Examples
    --------
    >>> from setwise.surrogates import Logistic
    >>> round(surrogate_regret(Logistic("subset", Cube(2)), [0.0, 0.0], [0.3, 0.3, 0.0, 0.4]), 4)
    0.0256
    """
    truth = _truth(surrogate, distribution)
    setting = _setting(surrogate, truth, "labelwise")
    row = real_vector(scores, setting.weights.n_scores, "scores")
    own = float(setting.value(truth.probability[None], row[None])[0])
    paid = max(0.0, own - setting.optimum(truth.probability).value)
    unit = getattr(surrogate, "scale", "paper") == "unit"
    return paid * float(np.exp(-setting.choice.log_unit(setting.space.log_size) * unit))


def _truth(surrogate: Any, distribution: Any) -> Distribution:
    space = getattr(surrogate, "space", None)
    if space is not None:
        return Distribution.of(distribution, space)
    if not isinstance(distribution, Distribution):
        raise ValueError(
            "binary relevance has no space of its own: pass a Distribution(sets, probability)"
        )
    return distribution


def _setting(surrogate: Any, truth: Distribution, scores: Kind) -> Setting:
    """The surrogate on its own target, with the truths of the distribution."""
    target, space = getattr(surrogate, "target", "hamming"), getattr(surrogate, "space", None)
    return Setting.of(target, surrogate, space or Cube(truth.n_labels), scores, truths=truth.sets)


# -------------------------------------------------------------------------- minimizability gaps


@dataclass(frozen=True)
class Gap:
    """The least mean risk in the hypothesis set, the mean of the least risks, and how certain.

    ``lower`` is a lower bound on ``best``, -inf where the best of many descents is all there is;
    ``method`` says how it was found. On the paper's scale.

    Examples
    --------
    >>> law = [[0.9, 0.1], [0.2, 0.8]]
    >>> inputs = FiniteInputs([[0.0], [1.0]], [0.5, 0.5], [[1, 0], [1, 1]], law)
    >>> gap = target_gap("f1", Cube(2), inputs)
    >>> round(gap.value, 4), gap.method
    (0.0, 'all assignments compared')
    """

    best: float
    pointwise: float
    lower: float
    method: str

    @property
    def value(self) -> float:
        """The gap."""
        return max(0.0, self.best - self.pointwise)


@dataclass(frozen=True, eq=False)
class FiniteInputs:
    """Finitely many inputs x with their probabilities and the law of the label sets at each.

    The inputs ``X`` (m, d) have the probabilities ``weight`` (m,), and each the law
    ``conditional`` (m, K) of the true label sets ``sets`` (K, n_labels).

    Examples
    --------
    >>> law = [[0.9, 0.1], [0.2, 0.8]]
    >>> inputs = FiniteInputs([[0.0], [1.0]], [0.5, 0.5], [[1, 0], [1, 1]], law)
    >>> inputs.features
    array([[0., 1.],
           [1., 1.]])
    """

    X: Any
    weight: Any
    sets: Any
    conditional: Any

    def __post_init__(self):
        X, law = real_array(self.X, "X"), real_array(self.conditional, "conditional")
        weight = real_vector(self.weight, len(X), "weight")
        sets = label_matrix(self.sets, None, "sets")
        if X.ndim != 2 or law.shape != (len(X), len(sets)):
            raise ValueError(
                f"X must have shape (m, d) and conditional (m, {len(sets)}), inputs by label sets, "
                f"but their shapes are {X.shape} and {law.shape}"
            )
        if min(weight.min(), law.min()) < 0.0 or not np.allclose(
            [*law.sum(axis=1), weight.sum()], 1.0, rtol=0.0, atol=1e-9
        ):
            raise ValueError("weight and each row of conditional must be probabilities with sum 1")
        vars(self).update(X=X, weight=weight, sets=sets, conditional=law)

    @property
    def features(self) -> Array:
        """X with a column of ones, for the intercept."""
        return np.column_stack([self.X, np.ones(len(self.X))])


def surrogate_gap(
    surrogate: Any,
    space: Space,
    inputs: FiniteInputs,
    hypotheses: Hypotheses = "linear",
    *,
    target: Any = "hamming",
    scores: Kind = "labelwise",
    q: float = DEFAULT_Q,
    seed: int = 0,
) -> Gap:
    """The gap of a surrogate by name (for the target) or as an object.

    On every space that can be listed. Convex surrogates with a certificate; comp-sum losses with
    q > 0, and the rho margin on more than a few inputs, as the best of many descents.

    Examples
    --------
    >>> law = [[0.9, 0.1], [0.2, 0.8]]
    >>> inputs = FiniteInputs([[0.0], [1.0]], [0.5, 0.5], [[1, 0], [1, 1]], law)
    >>> round(surrogate_gap("logistic", Cube(2), inputs).value, 6)
    0.0
    """
    target = getattr(surrogate, "target", target)
    setting = Setting.of(target, surrogate, space, scores, q, inputs.sets)
    p = setting.probabilities(inputs.sets, inputs.conditional)
    pointwise = float(inputs.weight @ [setting.optimum(row, seed).value for row in p])
    if hypotheses == "all":
        return Gap(pointwise, pointwise, pointwise, "closed form")
    if hypotheses != "linear":
        raise ValueError(f"hypotheses must be 'all' or 'linear', but it is {hypotheses!r}")
    # Scores that are linear in x weigh the sets at all inputs by one array of coefficients.
    own, n_sets = setting.weights, setting.weights.offset.shape[1]
    features = np.einsum("xd,mks->xmkds", inputs.features, own.features)
    features = features.reshape(-1, n_sets, inputs.features.shape[1] * own.n_scores)
    weights = Weights(features, np.tile(own.offset, (len(p), 1)))
    worth = inputs.weight[:, None, None] * setting.worth(p)
    found = best_scores(setting.choice.risk, weights, worth.reshape(-1, n_sets), seed)
    lower = -np.inf if found.method == "multistart" else found.lower
    return Gap(found.value, pointwise, lower, found.method)


def target_gap(
    target: Any, space: Space, inputs: FiniteInputs, hypotheses: Hypotheses = "linear"
) -> Gap:
    """The gap of a target: 0 for all functions; linear scores on the cube by enumeration.

    Of all ways to part the inputs in two, those that linear scores with an intercept can do are
    found by linear programs; all combinations of one for each label are compared.

    Examples
    --------
    >>> law = [[0, 1], [1, 0], [0, 1]]  # true at both ends, false between: no line does that
    >>> inputs = FiniteInputs([[0.0], [1.0], [2.0]], [0.25, 0.5, 0.25], [[0], [1]], law)
    >>> target_gap("hamming", Cube(1), inputs).value
    0.25
    """
    setting = Setting.of(target, "mean_absolute_error", space, truths=inputs.sets)
    losses = inputs.weight[:, None] * (inputs.conditional @ setting.losses)
    pointwise = float(losses.min(axis=1).sum())
    if hypotheses == "all":
        return Gap(pointwise, pointwise, pointwise, "closed form")
    if not space.is_independent:
        raise ValueError(
            f"the gap of a target with linear scores is computed on all label sets only, where "
            f"labels are decided one by one, not on {space}; use Cube({space.n_labels}), or "
            f"hypotheses='all', for which it is 0"
        )
    labels, parts = space.n_labels, _linear_partings(inputs.features)
    if len(parts) ** labels > MOST_ASSIGNMENTS:
        raise ValueError(
            f"{len(parts)} partings of the inputs and {labels} labels are too many combinations to "
            f"compare; use fewer inputs or labels"
        )
    total = np.zeros((len(parts),) * labels)
    for row, own in enumerate(losses):
        # The place of a label set in the list: its labels as digits, one axis for each.
        total += own.reshape((2,) * labels)[np.ix_(*[parts[:, row]] * labels)]
    best = float(total.min())
    return Gap(best, pointwise, best, "all assignments compared")


def _linear_partings(rows: Array) -> Array:
    """The ways to part the inputs in two by w · x + b >= 0 (sgn(0) = +1), as rows of 0/1."""
    if len(rows) > MOST_INPUTS:
        raise ValueError(
            f"{len(rows)} inputs can be parted in too many ways to compare; the limit is "
            f"{MOST_INPUTS}"
        )
    found = []
    for part in product((0, 1), repeat=len(rows)):
        inside = np.array(part, dtype=bool)
        sides = np.where(inside[:, None], -rows, rows), np.where(inside, 0.0, -1.0)
        program = linprog(np.zeros(rows.shape[1]), *sides, bounds=(None, None), method="highs")
        if program.status == 0:
            found.append(part)
    return np.array(found)
