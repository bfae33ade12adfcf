"""Least constrained risks of the hinge and the rho margin, which are made of pieces of planes.

The hinge is a linear program. A function that is linear between planes and bounded below is least
at a point where the planes meet: on a small space all such points are listed, which serves the rho
margin, whose risk is not convex, and shows all minimisers of either.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
from scipy.optimize import linprog

from setwise.consistency.conditional import ConstrainedRisk
from setwise.spaces.space import Array

MOST_VERTICES = 50_000


def hinge_program(features: Array, offset: Array, worth: Array) -> tuple[Array, Array]:
    """Scores of least hinge risk, and the dual variable of each set, for (m, K) inputs by sets.

    min worth · excess subject to excess >= 1 + z, excess >= 0, with z centred.
    """
    m, count, n_scores = features.shape
    centred = (features - features.mean(axis=1, keepdims=True)).reshape(m * count, n_scores)
    flat = (offset - offset.mean(axis=1, keepdims=True)).ravel()
    found = linprog(
        np.concatenate([np.zeros(n_scores), worth.ravel()]),
        A_ub=np.hstack([centred, -np.eye(m * count)]),
        b_ub=-1.0 - flat,
        bounds=[(None, None)] * n_scores + [(0.0, None)] * (m * count),
        method="highs",
    )
    if found.status != 0:
        raise RuntimeError(f"the linear program of the hinge ended without a solution: {found}")
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
