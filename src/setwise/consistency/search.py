"""The adversary: distributions for which a surrogate's minimiser predicts badly.

Distributions are drawn at random, then the worst are varied and the best of their variations kept,
for some rounds: first towards the largest regret at surrogate regret 0, then, where there is a
bound, towards the largest ratio of regret to bound, over distributions and scores. All of it
follows from a seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from setwise.consistency.bounds import Gamma
from setwise.consistency.setting import Setting
from setwise.spaces.space import Array
from setwise.validation import whole_number

# Every true label set keeps this share of a uniform law, so that minimisers are finite.
FLOOR = 1e-3
CONCENTRATIONS = (0.1, 0.3, 1.0, 3.0)
STEPS = (1.0, 0.3, 0.1, 0.03)
# A prediction counts as wrong from this regret on.
WRONG = 1e-3
# Sets at least this much worse than the best are what the ascent tries to have predicted.
AIMED_AT = 2.0 * WRONG
# What a wrong prediction that ties with a right one is worth beside a clear one.
TIED = 0.1


@dataclass(frozen=True)
class Effort:
    """How hard to try: distributions drawn, those kept, variations of each, rounds."""

    draws: int = 2000
    kept: int = 24
    variations: int = 8
    rounds: int = 24

    def __post_init__(self):
        for name in ("draws", "kept", "variations", "rounds"):
            least = 0 if name == "rounds" else 1
            object.__setattr__(self, name, whole_number(getattr(self, name), name, least))


@dataclass(frozen=True, eq=False)
class Worst:
    """The largest value met, where, and after how many distributions.

    ``candidates`` are the distributions of the last round, worst first, (n, m): where a risk is not
    convex, the scores found for the first may turn out not to be its minimiser.
    """

    value: float
    probability: Array
    scores: Array
    prediction: int
    tried: int
    candidates: Array


class _Rows(NamedTuple):
    """Distributions with scores, what is predicted, its regret, the surrogate's, and a merit.

    The merit is what the ascent raises.
    """

    p: Array
    scores: Array
    prediction: Array
    regret: Array
    paid: Array
    merit: Array

    def best(self, count: int) -> _Rows:
        order = np.argsort(-self.merit, kind="stable")[:count]
        return _Rows(*(part[order] for part in self))


def draw(n_rows: int, n_sets: int, rng: np.random.Generator) -> Array:
    """Probabilities from symmetric Dirichlet laws, sparse to even, all above 0, (n, m)."""
    parts = [
        rng.dirichlet(np.full(n_sets, concentration), size=-(-n_rows // len(CONCENTRATIONS)))
        for concentration in CONCENTRATIONS
    ]
    return floored(rng.permutation(np.concatenate(parts))[:n_rows])


def floored(p: Array) -> Array:
    """Mixed with a little of the uniform law."""
    return (1.0 - FLOOR) * p + FLOOR / p.shape[1]


def worst_regret(setting: Setting, effort: Effort, seed: int) -> Worst:
    """The largest regret of a prediction whose scores have surrogate regret 0.

    Where no prediction is wrong yet, the ascent brings a wrong set nearer to being predicted.
    """
    rng = np.random.default_rng(seed)
    first = _judged(setting, draw(effort.draws, len(setting.truths), rng))
    rows, tried = _ascent(first, effort, lambda parents: _judged(setting, _varied(parents.p, rng)))
    value, prediction = float(rows.regret[0]), int(rows.prediction[0])
    return Worst(value, rows.p[0], rows.scores[0], prediction, tried, rows.p)


def worst_ratio(setting: Setting, gamma: Gamma, effort: Effort, seed: int) -> Worst:
    """The largest ratio of regret to gamma(surrogate regret), over distributions and scores.

    gamma is on the paper's scale. It begins with the draws of `sampled_regrets`.
    """
    rng = np.random.default_rng(seed)

    def varied(parents: _Rows) -> _Rows:
        step = rng.choice(STEPS, (len(parents.p), 1))
        scores = parents.scores + step * rng.normal(size=parents.scores.shape)
        return _rated(_aimed(setting, _varied(parents.p, rng), scores, parents.prediction), gamma)

    first = _rated(_sampled(setting, effort.draws, rng), gamma)
    rows, tried = _ascent(first, effort, varied)
    value, prediction = float(rows.merit[0]), int(rows.prediction[0])
    return Worst(value, rows.p[0], rows.scores[0], prediction, tried, rows.p)


def sampled_regrets(setting: Setting, n_rows: int, seed: int) -> tuple[Array, Array]:
    """Surrogate regret (paper's scale) and regret of random distributions and scores, (n,) each.

    Scores are the minimiser's, moved at random and then to where a set chosen at random just
    becomes the prediction: there the regret is largest for its surrogate regret.
    """
    rows = _sampled(setting, n_rows, np.random.default_rng(seed))
    return rows.paid, rows.regret


def _ascent(rows: _Rows, effort: Effort, varied: Callable[[_Rows], _Rows]) -> tuple[_Rows, int]:
    """The best rows after so many rounds of variations of the best, and how many were tried."""
    tried = len(rows.p)
    for _ in range(effort.rounds):
        rows = rows.best(effort.kept)
        children = varied(_Rows(*(np.repeat(part, effort.variations, axis=0) for part in rows)))
        tried += len(children.p)
        rows = _Rows(*(np.concatenate(pair) for pair in zip(rows, children, strict=True)))
    return rows.best(effort.kept), tried


def _rated(rows: _Rows, gamma: Gamma) -> _Rows:
    # Smaller regrets are met by surrogate regrets that are rounding.
    bounds = np.maximum(gamma(rows.paid), 1e-300)
    merit = np.where(rows.regret > WRONG, rows.regret / bounds, 0.0)
    refuse_not_finite(merit, "ratio of regret to bound", rows.p)
    return rows._replace(merit=merit)


def _varied(p: Array, rng: np.random.Generator) -> Array:
    """Log-probabilities moved at random, some of them or all."""
    step = rng.choice(STEPS, (len(p), 1))
    some = rng.random(p.shape) < rng.choice((0.3, 1.0), (len(p), 1))
    return floored(softmax(np.log(p) + step * some * rng.normal(size=p.shape), axis=1))


def _judged(setting: Setting, p: Array) -> _Rows:
    scores, _ = _minimisers(setting, p)
    prediction, regret = setting.worst_predictions(p, scores)
    aimed = np.where(setting.regrets(p) >= AIMED_AT, setting.shortfalls(scores), np.inf)
    nearest = np.minimum(aimed.min(axis=1), 1e9)
    # A wrong prediction by a clear margin is worth more than one that is all but tied. It is in
    # units of weights z, or of expected loss after a likelihood.
    margin = 0.01 if setting.choice.is_likelihood else 0.1
    clear = np.minimum(setting.margins(p, scores, regret) / margin, 1.0)
    merit = np.where(regret > WRONG, regret * (TIED + (1.0 - TIED) * clear), -nearest)
    return _Rows(p, scores, prediction, regret, np.zeros(len(p)), merit)


def _minimisers(setting: Setting, p: Array) -> tuple[Array, Array]:
    scores, least = setting.minimisers(p)
    refuse_not_finite(scores, "minimiser", p)
    refuse_not_finite(least, "least surrogate risk", p)
    return scores, least


def refuse_not_finite(values: Array, name: str, p: Array) -> None:
    """Raise for NaN or infinity, which compare as nothing: a search must not pass over them."""
    bad = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
    if len(bad):
        raise RuntimeError(
            f"the search met a {name} that is not finite, {values[bad[0]]}, at the probabilities "
            f"{p[bad[0]].tolist()} ({len(bad)} such distributions)"
        )


def _sampled(setting: Setting, n_rows: int, rng: np.random.Generator) -> _Rows:
    p = draw(n_rows, len(setting.truths), rng)
    scores = np.clip(_minimisers(setting, p)[0], -8.0, 8.0)
    scores = scores + rng.choice((0.0, 0.1, 1.0), (n_rows, 1)) * rng.normal(size=scores.shape)
    return _aimed(setting, p, scores, rng.integers(len(setting.scored.sets), size=n_rows))


def _aimed(setting: Setting, p: Array, scores: Array, aim: Array) -> _Rows:
    """Scores brought to where they predict the sets aimed at; after a likelihood as they are."""
    if setting.choice.is_likelihood:
        prediction, regret = setting.worst_predictions(p, scores)
    else:
        scores = _brought_to(setting, scores, aim)
        prediction, regret = aim, setting.regrets(p)[np.arange(len(p)), aim]
    value = setting.value(p, scores)
    # A risk beyond floating point is infinite, and so is what it allows.
    refuse_not_finite(np.where(value == np.inf, 0.0, value), "surrogate risk", p)
    paid = np.maximum(value - _minimisers(setting, p)[1], 0.0)
    return _Rows(p, scores, prediction, regret, paid, np.zeros(len(p)))


def _brought_to(setting: Setting, scores: Array, aim: Array) -> Array:
    """Scores moved along the features of the set aimed at until it just ties for the heaviest."""
    features = setting.scored.features
    z = setting.scored.weights.at(scores)[:, 0]
    rows = np.arange(len(scores))
    behind = z - z[rows, aim][:, None]
    rate = (features[aim] * features[aim]).sum(axis=1)[:, None] - features[aim] @ features.T
    rate[rows, aim] = np.inf
    behind[rows, aim] = 0.0
    return scores + (behind / rate).max(axis=1)[:, None] * features[aim]
