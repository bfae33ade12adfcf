"""Least constrained risks of the hinge and the rho margin, which are made of pieces of planes.

The hinge is a linear program. A function that is linear between planes and bounded below is least
at a point where the planes meet: on a small space all such points are listed, which serves the rho
margin, whose risk is not convex, and shows all minimisers of either. Where they are too many, the
rho margin is brought down from many starts: along lines, on which its least point is found exactly,
and then by linear programs. It is a hinge less another, and the second, replaced by its tangent,
leaves a program whose minimum lies no higher.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
from scipy.optimize import linprog

from setwise.consistency.conditional import ConstrainedRisk
from setwise.consistency.duality import lower_bound
from setwise.spaces.space import Array

MOST_VERTICES = 50_000
# Lines along which a risk is brought down from each start, and programs after that.
LINES, MOST_PROGRAMS = 40, 30
# Points where lines cross planes, of so many rows at once.
MOST_EVENTS = 2**20
# Weights nearer to 0 may be taken to be on either side of it.
ON_THE_PLANE = 1e-11


def least_hinge(
    risk: ConstrainedRisk, features: Array, offset: Array, worth: Array
) -> tuple[Array, float, float]:
    """Scores of least hinge risk, its value, and a lower bound, for (m, K) inputs by sets."""
    scores, slopes = hinge_program(features, offset, worth)
    value = float(risk.value((features @ scores + offset)[None], worth[None])[0])
    return scores, value, lower_bound(risk, features, offset, worth, scores, slopes)


def lower_rho(
    risk: ConstrainedRisk, features: Array, offset: Array, worth: Array, start: Array
) -> tuple[Array, float]:
    """Scores from a start where no linear program goes lower, and the rho risk there.

    For (m, K) inputs by sets. worth · (max(0, 1 + z) - max(0, z)) with z in units of rho.
    """

    def value_at(scores: Array) -> float:
        return float(risk.value((features @ scores + offset)[None], worth[None])[0])

    scores, value = start, value_at(start)
    for _ in range(MOST_PROGRAMS):
        z = (features @ scores + offset) / risk.rho
        z = z - z.mean(axis=1, keepdims=True)
        lower = False
        for side in (ON_THE_PLANE, -ON_THE_PLANE):
            pull = worth * (z > side)
            trial, _ = hinge_program(features / risk.rho, offset / risk.rho, worth, pull)
            reached = value_at(trial)
            if reached < value - 1e-13 * max(1.0, abs(value)):
                scores, value, lower = trial, reached, True
                break
        if not lower:
            break
    return scores, value


def along_lines(
    risk: ConstrainedRisk, features: Array, offset: Array, worth: Array, start: Array, seed: int = 0
) -> tuple[Array, Array]:
    """Scores (n, d) after the least point of the rho risk was taken on many lines, and the risk.

    features are (K, d), worth (n, K), each row from its own start (n, d).
    """
    most = max(1, MOST_EVENTS // (2 * len(features)))
    if len(start) > most:
        ranges = [slice(first, first + most) for first in range(0, len(start), most)]
        parts = [along_lines(risk, features, offset, worth[r], start[r], seed) for r in ranges]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    rng, n_scores = np.random.default_rng(seed), features.shape[1]
    centred, flat = features - features.mean(axis=0), offset - offset.mean()
    scores = np.array(start, dtype=np.float64)
    directions = np.concatenate([np.eye(n_scores), rng.normal(size=(LINES, n_scores))])
    for direction in directions:
        slope = centred @ direction
        moving = np.abs(slope) > 1e-12
        if not moving.any():
            continue
        z, rate, own = (scores @ centred.T + flat)[:, moving], slope[moving], worth[:, moving]
        # A set costs more with its weight between -rho and 0: there it adds its rate to the slope.
        low, high = (-risk.rho - z) / rate, -z / rate
        times = np.concatenate([np.minimum(low, high), np.maximum(low, high)], axis=1)
        change = own * rate / risk.rho
        order = np.argsort(times, axis=1)
        times = np.take_along_axis(times, order, axis=1)
        bends = np.take_along_axis(np.concatenate([change, -change], axis=1), order, axis=1)
        rises = np.cumsum(bends, axis=1)[:, :-1] * np.diff(times, axis=1)
        heights = np.concatenate([np.zeros((len(z), 1)), np.cumsum(rises, axis=1)], axis=1)
        rows, best = np.arange(len(z)), heights.argmin(axis=1)
        here = _height_at(times, heights, bends)
        lower = heights[rows, best] < here - 1e-13
        scores = scores + np.where(lower, times[rows, best], 0.0)[:, None] * direction
    value = risk.value((scores @ features.T + offset)[:, None], worth[:, None])
    return scores, value


def _height_at(times: Array, heights: Array, bends: Array) -> Array:
    """The height of each row at time 0, from its events in order, (n,)."""
    rows, last = np.arange(len(times)), (times <= 0.0).sum(axis=1) - 1
    before = np.maximum(last, 0)
    slopes = np.cumsum(bends, axis=1)[rows, before]
    risen = heights[rows, before] - times[rows, before] * slopes
    return np.where(last < 0, heights[:, 0], risen)


def hinge_program(
    features: Array, offset: Array, worth: Array, pull: Array | None = None
) -> tuple[Array, Array]:
    """Scores of least hinge risk, and the dual variable of each set, for (m, K) inputs by sets.

    min worth · excess - pull · z subject to excess >= 1 + z, excess >= 0, with z centred.
    """
    m, count, n_scores = features.shape
    centred = (features - features.mean(axis=1, keepdims=True)).reshape(m * count, n_scores)
    flat = (offset - offset.mean(axis=1, keepdims=True)).ravel()
    along = np.zeros(n_scores) if pull is None else -(pull.ravel() @ centred)
    found = linprog(
        np.concatenate([along, worth.ravel()]),
        A_ub=np.hstack([centred, -np.eye(m * count)]),
        b_ub=-1.0 - flat,
        bounds=[(None, None)] * n_scores + [(0.0, None)] * (m * count),
        method="highs",
    )
    if found.status != 0:
        raise RuntimeError(f"the linear program of a margin ended without a solution: {found}")
    return found.x[:n_scores], -found.ineqlin.marginals.reshape(m, count)


def has_vertices(risk: ConstrainedRisk, features: Array) -> bool:
    """Whether the points where the planes meet are few enough to list."""
    rank = int(np.linalg.matrix_rank(features - features.mean(axis=0)))
    return comb(len(risk.kinks) * len(features), rank) <= MOST_VERTICES


def vertices(risk: ConstrainedRisk, features: Array, offset: Array) -> tuple[Array, Array]:
    """Scores (v, d) where the planes of the kinks meet, and the cost Phi(-z) of each set there.

    features are (K, d). Scores are taken within the span of the centred features: what lies across
    moves no weight.
    """
    centred, flat = features - features.mean(axis=0), offset - offset.mean()
    _, size, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[size > 1e-9 * size.max(initial=1.0)]
    planes = np.concatenate([centred @ axes.T for _ in risk.kinks])
    sides = np.concatenate([kink - flat for kink in risk.kinks])
    chosen = np.array(list(combinations(range(len(planes)), len(axes))))
    matrices, right = planes[chosen], sides[chosen]
    meeting = np.abs(np.linalg.det(matrices)) > 1e-9
    points = np.linalg.solve(matrices[meeting], right[meeting][..., None])[..., 0]
    points = np.unique(points.round(12), axis=0) + 0.0
    z = points @ (centred @ axes.T).T + flat
    return points @ axes, risk.phi.value(-np.where(np.abs(z) < 1e-11, 0.0, z))
