"""The least conditional risk of a surrogate, the scores that reach it, and how certain that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from setwise.consistency import branch
from setwise.consistency.conditional import FAR, CompSumRisk, ConstrainedRisk
from setwise.consistency.duality import lower_bound
from setwise.consistency.newton import descend
from setwise.consistency.piecewise import (
    along_lines,
    has_vertices,
    least_hinge,
    lower_rho,
    vertices,
)
from setwise.consistency.scored_sets import ScoredSets
from setwise.spaces.cube import Cube
from setwise.spaces.space import Array

Method = Literal[
    "closed form", "duality", "linear program", "vertices", "branch and bound", "multistart"
]
Risk = CompSumRisk | ConstrainedRisk
# Vertices whose values differ by no more are all minimisers.
SAME_VALUE = 1e-11
# A bound further below the value than this does not make it certain.
CERTAIN = 1e-8
# Random points where descents of a single risk that is not convex begin, beside those towards the
# label sets.
RANDOM_STARTS = 60
# Of the descents of a rho margin so many are ended by linear programs.
ENDED = 12
# In a search, its descents begin at zero and towards so many of the best sets.
NEAREST = 4


@dataclass(frozen=True, eq=False)
class Optimum:
    """Scores of least risk, the value there, and a lower bound on every value.

    ``method`` says where the bound comes from. "closed form", "duality" (a feasible point of the
    dual), "linear program", "vertices" (all of them compared) and "branch and bound" are bounds
    over all scores. "multistart" is the best of many descents of a risk that is not convex: its
    ``lower`` is only the least risk over all laws, reachable or not. ``others`` are further
    minimisers, where the method shows them. Values are on the paper's scale.
    """

    scores: Array
    value: float
    lower: float
    method: Method
    others: tuple[Array, ...] = ()

    @property
    def gap(self) -> float:
        """How much lower the infimum might be."""
        return max(0.0, self.value - self.lower)

    @property
    def is_certain(self) -> bool:
        """Whether the bound shows the value to be the least, but for rounding."""
        return self.method != "multistart" and self.gap <= CERTAIN * max(1.0, abs(self.value))

    @property
    def infimum(self) -> float:
        """What a regret is measured from: the bound, or where that says little the value."""
        return self.value if self.method == "multistart" else self.lower


def best_scores(risk: Risk, scored: ScoredSets, worth: Array, seed: int = 0) -> Optimum:
    """The least risk for the worth (K,) of each set, with its certificate."""
    row = worth[None]
    features, offset = scored.features[None], scored.offset[None]
    if _is_closed(risk, scored):
        scores, value = _closed(risk, scored, row)
        return Optimum(scores[0], float(value[0]), float(risk.least(row)[1][0]), "closed form")
    if isinstance(risk, ConstrainedRisk) and not risk.is_smooth:
        return _best_of_pieces(risk, scored, worth, seed)
    if risk.is_convex:
        start = np.zeros((1, scored.n_scores))
        scores, value = descend(risk, features, offset, row[:, None], start)
        lower = lower_bound(risk, features, offset, row, scores[0])
        return Optimum(scores[0], float(value[0]), lower, "duality")
    return _best_of_descents(risk, scored, worth, seed)


def least_risks(risk: Risk, scored: ScoredSets, worth: Array) -> tuple[Array, Array]:
    """Scores (n, d) and values (n,) of least risk for many worths (n, K), without certificates.

    A risk that is not convex starts at zero and towards each of the label sets.
    """
    if _is_closed(risk, scored):
        return _closed(risk, scored, worth)
    if isinstance(risk, ConstrainedRisk) and not risk.is_smooth:
        if has_vertices(risk, scored.features):
            points, costs = vertices(risk, scored.features, scored.offset)
            values = worth @ costs.T
            best = values.argmin(axis=1)
            return points[best], values[np.arange(len(worth)), best]
        if risk.margin == "rho":
            return _lowest_lines(risk, scored, worth)
        found = [best_scores(risk, scored, row) for row in worth]
        return np.array([one.scores for one in found]), np.array([one.value for one in found])
    features, offset = scored.features[None], scored.offset[None]
    starts = np.zeros((len(worth), 1, scored.n_scores))
    if not risk.is_convex:
        towards = np.broadcast_to(1.5 * scored.features, (len(worth), *scored.features.shape))
        starts = np.concatenate([starts, towards], axis=1)
    count, flat = starts.shape[1], starts.reshape(-1, scored.n_scores)
    every = np.repeat(worth, count, axis=0)[:, None]
    scores, value = descend(risk, features, offset, every, flat)
    value = value.reshape(-1, count)
    rows, best = np.arange(len(worth)), value.argmin(axis=1)
    return scores.reshape(len(worth), count, -1)[rows, best], value[rows, best]


def _is_closed(risk: Risk, scored: ScoredSets) -> bool:
    """Whether scores reach all laws, or (q = 1) need only reach those of a single set."""
    return scored.reaches_every_law or (isinstance(risk, CompSumRisk) and risk.q == 1.0)


def _closed(risk: Risk, scored: ScoredSets, worth: Array) -> tuple[Array, Array]:
    z, value = risk.least(worth)
    if isinstance(risk, CompSumRisk) and risk.q == 1.0:
        span = FAR + np.ptp(scored.offset)
        return scored.exposing(np.argmax(worth, axis=1), span), value
    centred = scored.features - scored.features.mean(axis=0)
    wanted = z - scored.offset
    wanted = wanted - wanted.mean(axis=1, keepdims=True)
    return np.linalg.lstsq(centred, wanted.T, rcond=None)[0].T, value


def _best_of_pieces(risk: ConstrainedRisk, scored: ScoredSets, worth: Array, seed: int) -> Optimum:
    features, offset = scored.features, scored.offset
    least = _least_vertices(risk, scored, worth)
    if risk.margin == "hinge":
        scores, value, lower = least_hinge(risk, features[None], offset[None], worth[None])
        centred = features - features.mean(axis=0)
        others = [other for other in least if np.abs(centred @ (other - scores)).max() > 1e-9]
        return Optimum(scores, value, lower, "linear program", tuple(others))
    if not least:
        return _best_of_lines(risk, scored, worth, seed)
    first = least[0]
    value = float(risk.value((features @ first + offset)[None, None], worth[None, None])[0])
    return Optimum(first, value, value, "vertices", tuple(least[1:]))


def _best_of_lines(risk: ConstrainedRisk, scored: ScoredSets, worth: Array, seed: int) -> Optimum:
    """The best of many descents of the rho margin, each ended by linear programs."""
    features, offset = scored.features, scored.offset
    starts = risk.rho * _starts(scored, seed)
    every = np.tile(worth, (len(starts), 1))
    scores, value = along_lines(risk, features, offset, every, starts, seed)
    ends = [
        lower_rho(risk, features[None], offset[None], worth[None], scores[k])
        for k in np.argsort(value, kind="stable")[:ENDED]
    ]
    best, least = min(ends, key=lambda end: end[1])
    return Optimum(best, least, float(risk.least(worth[None])[1][0]), "multistart")


def _lowest_lines(risk: ConstrainedRisk, scored: ScoredSets, worth: Array) -> tuple[Array, Array]:
    """The lowest of a few descents along lines for each worth, from zero and the best sets."""
    nearest = np.argsort(worth, axis=1, kind="stable")[:, :NEAREST]
    starts = risk.rho * scored.features[nearest]
    starts = np.concatenate([np.zeros((len(worth), 1, scored.n_scores)), starts], axis=1)
    count, every = starts.shape[1], np.repeat(worth, starts.shape[1], axis=0)
    flat = starts.reshape(-1, scored.n_scores)
    scores, value = along_lines(risk, scored.features, scored.offset, every, flat)
    value, rows = value.reshape(-1, count), np.arange(len(worth))
    best = value.argmin(axis=1)
    return scores.reshape(len(worth), count, -1)[rows, best], value[rows, best]


def _least_vertices(risk: ConstrainedRisk, scored: ScoredSets, worth: Array) -> list[Array]:
    """All points of least risk among those where the planes meet; none if they are too many."""
    if not has_vertices(risk, scored.features):
        return []
    points, costs = vertices(risk, scored.features, scored.offset)
    values = costs @ worth
    same = values <= values.min() + SAME_VALUE * max(1.0, abs(values.min()))
    return [points[k] for k in np.flatnonzero(same)]


def _best_of_descents(risk: Risk, scored: ScoredSets, worth: Array, seed: int) -> Optimum:
    starts = _starts(scored, seed)
    scores, value = descend(
        risk,
        scored.features[None],
        scored.offset[None],
        np.tile(worth, (len(starts), 1))[:, None],
        starts,
    )
    best = int(value.argmin())
    least = float(value[best])
    if isinstance(risk, CompSumRisk) and _is_small_cube(scored):
        total = float(worth.sum())
        lower = (total - branch.largest(worth, risk.q, total - risk.q * least)) / risk.q
        if least - lower <= CERTAIN:
            return Optimum(scores[best], least, lower, "branch and bound")
    lower = float(risk.least(worth[None])[1][0])
    return Optimum(scores[best], least, lower, "multistart")


def _starts(scored: ScoredSets, seed: int) -> Array:
    """Zero, towards each of the label sets, and at random."""
    rng = np.random.default_rng(seed)
    scales = np.repeat([0.3, 1.0, 3.0], RANDOM_STARTS // 3)[:, None]
    return np.concatenate(
        [
            np.zeros((1, scored.n_scores)),
            *(size * scored.features for size in (0.1, 0.3, 1.0, 3.0)),
            scales * rng.normal(size=(RANDOM_STARTS, scored.n_scores)),
        ]
    )


def _is_small_cube(scored: ScoredSets) -> bool:
    cube = isinstance(scored.space, Cube) and scored.kind == "labelwise"
    return cube and scored.space.n_labels <= branch.MOST_LABELS
