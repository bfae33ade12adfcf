"""Exact conditional risks and regrets of targets and surrogates on a finite distribution.

A distribution is a `Distribution`, or the probabilities of the space's own sets in their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise.consistency.best_scores import Optimum
from setwise.consistency.distribution import Distribution, as_distribution
from setwise.consistency.loss_matrix import loss_matrix
from setwise.consistency.scored_sets import Kind
from setwise.consistency.setting import Setting
from setwise.spaces.cube import Cube
from setwise.spaces.space import Array, Space
from setwise.surrogates.binary_relevance import BinaryRelevance
from setwise.surrogates.comp_sum import CompSum
from setwise.surrogates.constrained import Constrained
from setwise.targets.registry import get_target
from setwise.validation import label_matrix, real_vector

# Expected losses that differ by no more are equal.
TIE = 1e-12


def risks(target: Any, space: Space, distribution: Any) -> Array:
    """Expected loss of each label set of a space, in the order of ``space.enumerate()``, (K,).

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> risks("f1", Cube(2), [0.4, 0.3, 0.0, 0.3]).round(4)
    array([0.6, 0.5, 0.8, 0.5])
    """
    judged, truth = get_target(target).on(space), as_distribution(distribution, space)
    return truth.mean(loss_matrix(judged, truth.sets, space.enumerate()))


def bayes(target: Any, space: Space, distribution: Any) -> Array:
    """The label set of least expected loss; ties: the smaller set, then the lower labels, (l,).

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> bayes("f1", Cube(2), [0.4, 0.3, 0.0, 0.3])
    array([0, 1], dtype=uint8)
    """
    expected, sets = risks(target, space, distribution), space.enumerate()
    best = sets[expected <= expected.min() + TIE]
    return best[np.lexsort((*(1 - best.T[::-1]), best.sum(axis=1)))[0]]


def regret(target: Any, space: Space, distribution: Any, y_pred: Any) -> float:
    """Expected loss of a label set less the least of the space.

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> round(regret("f1", Cube(2), [0.4, 0.3, 0.0, 0.3], [0, 0]), 4)
    0.1
    """
    judged, truth = get_target(target).on(space), as_distribution(distribution, space)
    row = label_matrix(np.atleast_2d(np.asarray(y_pred)), space.n_labels, "y_pred")
    if len(row) != 1:
        raise ValueError(f"y_pred must be one label set, but it has {len(row)} rows")
    own = truth.mean(loss_matrix(judged, truth.sets, row))
    return float(own[0] - risks(target, space, truth).min())


def surrogate_risk(
    surrogate: CompSum | Constrained | BinaryRelevance, scores: Any, distribution: Any
) -> float:
    """Expected surrogate loss of scores (n_scores,), on the surrogate's own scale."""
    truth = _truth(surrogate, distribution)
    row = real_vector(scores, None, "scores")
    values, _ = surrogate.value_and_gradient(np.tile(row, (len(truth.sets), 1)), truth.sets)
    return float(truth.mean(values))


def best_in_class(
    surrogate: CompSum | Constrained | BinaryRelevance,
    distribution: Any,
    scores: Kind = "labelwise",
    seed: int = 0,
) -> Optimum:
    """The least expected surrogate loss over all scores, certified, on the paper's scale.

    With ``scores="joint"`` over a score for each label set, whatever the space.
    """
    truth = _truth(surrogate, distribution)
    return _setting(surrogate, truth, scores).optimum(truth.probability, seed)


def surrogate_regret(
    surrogate: CompSum | Constrained | BinaryRelevance, scores: Any, distribution: Any
) -> float:
    """Expected surrogate loss of scores less the least over all scores, on the surrogate's scale.

    For generalised cross-entropy on other spaces than the cube, and more than three labels on it,
    the least is the best of many descents; `best_in_class` says how certain it is.

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> from setwise.surrogates import Logistic
    >>> round(surrogate_regret(Logistic("subset", Cube(2)), [0.0, 0.0], [0.3, 0.3, 0.0, 0.4]), 4)
    0.0256
    """
    truth = _truth(surrogate, distribution)
    setting = _setting(surrogate, truth, "labelwise")
    row, p = real_vector(scores, setting.scored.n_scores, "scores"), truth.probability
    paid = float(setting.value(p[None], row[None])[0]) - setting.optimum(p).value
    unit = getattr(surrogate, "scale", "paper") == "unit"
    return max(0.0, paid) * float(np.exp(-setting.log_unit)) if unit else max(0.0, paid)


def _truth(surrogate: Any, distribution: Any) -> Distribution:
    if isinstance(surrogate, BinaryRelevance):
        if not isinstance(distribution, Distribution):
            raise ValueError(
                "binary relevance has no space of its own: pass a Distribution(sets, probability)"
            )
        return distribution
    return as_distribution(distribution, surrogate.space)


def _setting(surrogate: Any, truth: Distribution, scores: Kind) -> Setting:
    """The surrogate on its own target, with the truths of the distribution."""
    target, space = getattr(surrogate, "target", "hamming"), getattr(surrogate, "space", None)
    space = Cube(truth.n_labels) if space is None else space
    return Setting.of(target, surrogate, space, scores, truths=truth.sets)
