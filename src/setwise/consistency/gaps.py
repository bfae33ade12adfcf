"""Minimizability gaps: what a hypothesis set loses by having to serve all inputs at once.

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

from setwise.consistency.best_scores import RANDOM_STARTS, Risk
from setwise.consistency.conditional import CompSumRisk, ConstrainedRisk, RelevanceRisk
from setwise.consistency.duality import lower_bound
from setwise.consistency.newton import descend
from setwise.consistency.piecewise import least_hinge, lower_rho
from setwise.consistency.scored_sets import Kind
from setwise.consistency.setting import Setting
from setwise.spaces.cube import Cube
from setwise.spaces.space import Array, Space
from setwise.surrogates.names import DEFAULT_Q
from setwise.validation import real_array, real_vector

Hypotheses = Literal["all", "linear"]
# Ways to give each input a label set that are compared one by one, at most.
MOST_ASSIGNMENTS = 4_000_000


@dataclass(frozen=True)
class Gap:
    """The least mean risk in the hypothesis set, the mean of the least risks, and how certain.

    ``lower`` is a lower bound on ``best`` (by duality or a linear program), -inf where the best of
    many descents is all there is. On the paper's scale.
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

    Parameters
    ----------
    X : array of shape (m, d)
    weight : array of shape (m,)
        Probability of each input.
    sets : array of shape (K, n_labels)
        True label sets.
    conditional : array of shape (m, K)
        p(y | x), a row for each input.
    """

    X: Any
    weight: Any
    sets: Any
    conditional: Any

    def __post_init__(self):
        X = real_array(self.X, "X").astype(np.float64)
        if X.ndim != 2:
            raise ValueError(
                f"X must have shape (m, d), an input a row, but its shape is {X.shape}"
            )
        weight = real_vector(self.weight, len(X), "weight")
        conditional = real_array(self.conditional, "conditional").astype(np.float64)
        if conditional.shape != (len(X), len(np.asarray(self.sets))):
            raise ValueError(
                f"conditional must have shape ({len(X)}, {len(np.asarray(self.sets))}), inputs by "
                f"label sets, but its shape is {conditional.shape}"
            )
        sums = np.append(conditional.sum(axis=1), weight.sum())
        if (weight < 0).any() or (conditional < 0).any() or np.abs(sums - 1.0).max() > 1e-9:
            raise ValueError("weight and each row of conditional must be probabilities with sum 1")
        for name, values in (("X", X), ("weight", weight), ("conditional", conditional)):
            object.__setattr__(self, name, values)


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
    q > 0 and the rho margin as the best of many descents.
    """
    target = getattr(surrogate, "target", target)
    setting = Setting.of(target, surrogate, space, scores, q, np.asarray(inputs.sets, np.uint8))
    p = inputs.conditional
    if setting.choice.is_likelihood:
        rows = [setting.probabilities(_at(inputs, row)) for row in range(len(p))]
        p = np.array(rows)
    pointwise = float(inputs.weight @ [setting.optimum(row, seed).value for row in p])
    if hypotheses == "all":
        return Gap(pointwise, pointwise, pointwise, "closed form")
    if hypotheses != "linear":
        raise ValueError(f"hypotheses must be 'all' or 'linear', but it is {hypotheses!r}")
    risk, features, offset, worth = _stacked(setting, p, inputs)
    return _solved(risk, features, offset, worth, pointwise, seed)


def target_gap(
    target: Any, space: Space, inputs: FiniteInputs, hypotheses: Hypotheses = "linear"
) -> Gap:
    """The gap of a target: 0 for all functions; linear scores on the cube by enumeration.

    Of all ways to part the inputs in two, those that linear scores with an intercept can do are
    found by linear programs; all combinations of one for each label are compared.
    """
    setting = Setting.of(
        target, "mean_absolute_error", space, truths=np.asarray(inputs.sets, np.uint8)
    )
    risks = inputs.weight[:, None] * (inputs.conditional @ setting.losses)
    pointwise = float(risks.min(axis=1).sum())
    if hypotheses == "all":
        return Gap(pointwise, pointwise, pointwise, "closed form")
    if not isinstance(space, Cube):
        raise ValueError(
            f"the gap of a target with linear scores is computed on all label sets only, where "
            f"labels are decided one by one, not on {space}; use Cube({space.n_labels}), or "
            f"hypotheses='all', for which it is 0"
        )
    parts = np.array([part for part in _partings(len(inputs.X)) if _is_linear(inputs.X, part)])
    labels = space.n_labels
    if len(parts) ** labels > MOST_ASSIGNMENTS:
        raise ValueError(
            f"{len(parts)} partings of the inputs and {labels} labels are too many combinations to "
            f"compare; use fewer inputs or labels"
        )
    total = np.zeros((len(parts),) * labels)
    digits = 1 << np.arange(labels - 1, -1, -1)
    for row, own in enumerate(risks):
        place = sum(
            (digits[i] * parts[:, row]).reshape((-1,) + (1,) * (labels - 1 - i))
            for i in range(labels)
        )
        total += own[place]
    best = float(total.min())
    return Gap(best, pointwise, best, "all assignments compared")


def _stacked(setting: Setting, p: Array, inputs: FiniteInputs) -> tuple[Risk, Array, Array, Array]:
    """Risk, features (m, K, P), offset and worth (m, K) of all inputs, with an intercept."""
    X = np.column_stack([inputs.X, np.ones(len(inputs.X))])
    worth = inputs.weight[:, None] * setting.worth(p)
    if isinstance(setting.risk, RelevanceRisk):
        return _label_by_label(setting.risk, X, worth, inputs.weight)
    scored = setting.scored
    features = np.einsum("xd,ks->xkds", X, scored.features)
    features = features.reshape(len(X), scored.count, -1)
    offset = np.tile(scored.offset, (len(X), 1))
    return setting.risk, features, offset, worth


def _label_by_label(
    risk: RelevanceRisk, X: Array, present: Array, weight: Array
) -> tuple[Risk, Array, Array, Array]:
    """Binary relevance as problems of two sets, absent and present, one for each input and label.

    eta Phi(h) + (1 - eta) Phi(-h) is a constrained risk with weights z = -h and h, whose losses are
    eta and 1 - eta; with the logistic margin a comp-sum risk with weights 0 and h.
    """
    n_inputs, n_labels = present.shape
    row = np.einsum("xd,il->xidl", X, np.eye(n_labels)).reshape(n_inputs * n_labels, -1)
    on = present.ravel()
    off = (weight[:, None] - present).ravel()
    offset = np.zeros((len(row), 2))
    if risk.margin == "logistic":
        features = np.stack([np.zeros_like(row), row], axis=1)
        return CompSumRisk(0.0), features, offset, np.column_stack([off, on])
    features = np.stack([-row, row], axis=1)
    return ConstrainedRisk(risk.margin), features, offset, np.column_stack([on, off])


def _solved(
    risk: Risk, features: Array, offset: Array, worth: Array, pointwise: float, seed: int
) -> Gap:
    size = features.shape[-1]
    if isinstance(risk, ConstrainedRisk) and not risk.is_smooth:
        if risk.margin == "rho":
            starts = np.random.default_rng(seed).normal(size=(RANDOM_STARTS, size))
            ends = [lower_rho(risk, features, offset, worth, start) for start in starts]
            return Gap(min(value for _, value in ends), pointwise, -np.inf, "multistart")
        _, best, lower = least_hinge(risk, features, offset, worth)
        return Gap(best, pointwise, lower, "linear program")
    if risk.is_convex:
        weights, value = descend(risk, features, offset, worth[None], np.zeros((1, size)))
        lower = lower_bound(risk, features, offset, worth, weights[0])
        return Gap(float(value[0]), pointwise, lower, "duality")
    starts = np.random.default_rng(seed).normal(size=(RANDOM_STARTS, size))
    starts[0] = 0.0
    _, value = descend(risk, features, offset, np.tile(worth, (RANDOM_STARTS, 1, 1)), starts)
    return Gap(float(value.min()), pointwise, -np.inf, "multistart")


def _at(inputs: FiniteInputs, row: int):
    from setwise.consistency.distribution import Distribution

    return Distribution(inputs.sets, inputs.conditional[row])


def _partings(count: int) -> list[tuple[int, ...]]:
    """All ways to part so many inputs in two."""
    if count > 12:
        raise ValueError(
            f"{count} inputs can be parted in too many ways to compare; use at most 12"
        )
    return list(product((0, 1), repeat=count))


def _is_linear(X: Array, part: tuple[int, ...]) -> bool:
    """Whether w · x + b >= 0 exactly for the inputs of the part (sgn(0) = +1)."""
    rows = np.column_stack([X, np.ones(len(X))])
    inside = np.array(part, dtype=bool)
    found = linprog(
        np.zeros(rows.shape[1]),
        A_ub=np.where(inside[:, None], -rows, rows),
        b_ub=np.where(inside, 0.0, -1.0),
        bounds=(None, None),
        method="highs",
    )
    return found.status == 0
