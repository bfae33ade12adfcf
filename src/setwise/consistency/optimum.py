"""The least conditional risk of a surrogate, the scores that reach it, and how certain that is.

Where scores reach every law the answer is a closed form. Smooth risks are descended by Newton
steps, many problems at once; a convex one has a lower bound by duality, generalised cross-entropy
on a small cube one by branch and bound. The hinge and the rho margin are linear between planes and
bounded below, so they are least where planes meet. The hinge is a linear program; of the rho margin
all such points are compared where they are few, else some, and from the best of these others by
exchanging planes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Literal

import numpy as np
from scipy.optimize import linprog

from setwise.consistency.conditional import FAR, CompSumRisk, ConstrainedRisk, Risk, Weights
from setwise.spaces.space import Array, all_sets

Method = Literal[
    "closed form", "duality", "linear program", "vertices", "branch and bound", "multistart"
]
# A bound further below the value than this does not make it certain.
CERTAIN = 1e-8
# Random points where descents of a risk that is not convex begin, beside those towards the sets.
RANDOM_STARTS = 60
# Newton steps: scores stay within the box, so that a minimiser at infinity is met at its side.
BOX, LONGEST_STEP, MOST_STEPS, MOST_HALVINGS = 60.0, 4.0, 100, 30
# A descent ends where the risk no longer falls, or at a gradient of this share of the worth.
GRADIENT = 1e-13
# Points where planes meet are listed if they are no more, else so many of them are drawn.
MOST_VERTICES, DRAWN_VERTICES = 50_000, 20_000
# Values of vertices, at once.
MOST_COMPARED = 2**24
# Vertices whose values differ by no more are all minimisers.
SAME_VALUE = 1e-11
# Where vertices are drawn, from so many of the best planes are exchanged, at most so many times.
EXCHANGED, MOST_EXCHANGES = 100, 50
# Branch and bound: cubes of so many labels, boxes and rounds.
MOST_LABELS, MOST_BOXES, MOST_ROUNDS = 3, 20_000, 200


@dataclass(frozen=True, eq=False)
class Optimum:
    """Scores of least risk, the value there, and a lower bound on every value.

    ``method`` says where the bound comes from. "closed form", "duality" (a feasible point of the
    dual), "linear program", "vertices" (all of them compared) and "branch and bound" are bounds
    over all scores. "multistart" is the best of many descents of a risk that is not convex: its
    ``lower`` is only the least risk over all laws, reachable or not. ``others`` are further
    minimisers, where the method shows them. Values are on the paper's scale.

    Examples
    --------
    >>> from setwise.consistency import best_in_class
    >>> from setwise.spaces import Cube
    >>> from setwise.surrogates import MeanAbsoluteError
    >>> best = best_in_class(MeanAbsoluteError("hamming", Cube(1)), [0.3, 0.7])
    >>> best.method, round(best.value, 4)
    ('closed form', 0.3)
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


def best_scores(risk: Risk, weights: Weights, worth: Array, seed: int = 0) -> Optimum:
    """The least risk for the worth (m, K) of the sets at each input, with its certificate."""
    least = float(risk.least(worth[None])[1][0])
    if weights.reaches_every_law or _exposes(risk, weights):
        return Optimum(least_risks(risk, weights, worth[None])[0][0], least, least, "closed form")
    if isinstance(risk, ConstrainedRisk) and risk.kinks:
        return _best_of_pieces(risk, weights, worth, least)
    scores, values = least_risks(risk, weights, worth[None], np.random.default_rng(seed))
    scores, value = scores[0], float(values[0])
    if risk.is_convex:
        return Optimum(scores, value, risk.lower_bound(weights, worth, scores), "duality")
    if isinstance(risk, CompSumRisk) and _is_small_cube(weights):
        total = float(worth.sum())
        lower = (total - largest_sum(worth[0], risk.q, total - risk.q * value)) / risk.q
        if value - lower <= CERTAIN:
            return Optimum(scores, value, lower, "branch and bound")
    return Optimum(scores, value, least, "multistart")


def least_risks(
    risk: Risk, weights: Weights, worth: Array, rng: np.random.Generator | None = None
) -> tuple[Array, Array]:
    """Scores (n, d) and values (n,) of least risk for many worths (n, m, K), without certificates.

    Descents of a risk that is not convex start at zero and towards each of the label sets; with a
    generator at random too. Vertices of the rho margin, where too many, are compared as drawn.
    """
    z, value = risk.least(worth)
    if _exposes(risk, weights):
        span = FAR + np.ptp(weights.offset)
        return span * weights.flat[np.argmax(worth[:, 0], axis=1)], value
    if weights.reaches_every_law:
        wanted = z - weights.offset
        wanted = (wanted - wanted.mean(axis=-1, keepdims=True)).reshape(len(z), -1)
        return np.linalg.lstsq(weights.centred.flat, wanted.T, rcond=None)[0].T, value
    if isinstance(risk, ConstrainedRisk) and risk.kinks:
        if risk.margin == "hinge" and not _has_few_vertices(risk, weights):
            found = [best_scores(risk, weights, row) for row in worth]
            return np.array([one.scores for one in found]), np.array([one.value for one in found])
        flat, (_, points, costs) = worth.reshape(len(worth), -1), vertices(risk, weights)
        parts = np.array_split(flat, 1 + len(flat) * len(costs) // MOST_COMPARED)
        best = np.concatenate([(part @ costs.T).argmin(axis=1) for part in parts])
        return points[best], (flat * costs[best]).sum(axis=1)
    starts = np.zeros((1, weights.n_scores))
    if not risk.is_convex and rng is None:
        starts = np.concatenate([starts, 1.5 * weights.flat])
    elif not risk.is_convex and rng is not None:
        towards = [size * weights.flat for size in (0.1, 0.3, 1.0, 3.0)]
        scales = np.repeat([0.3, 1.0, 3.0], RANDOM_STARTS // 3)[:, None]
        random = scales * rng.normal(size=(RANDOM_STARTS, weights.n_scores))
        starts = np.concatenate([starts, *towards, random])
    every = np.repeat(worth, len(starts), axis=0)
    scores, value = descend(risk, weights, every, np.tile(starts, (len(worth), 1)))
    value = value.reshape(len(worth), -1)
    best = (np.arange(len(worth)), value.argmin(axis=1))
    return scores.reshape(*value.shape, -1)[best], value[best]


def _exposes(risk: Risk, weights: Weights) -> bool:
    """Whether scores need only reach the laws of one set each: q = 1 at a single input."""
    return isinstance(risk, CompSumRisk) and risk.q == 1.0 and len(weights.offset) == 1


# ---------------------------------------------------------------------------------- Newton steps


def descend(risk: Risk, weights: Weights, worth: Array, start: Array) -> tuple[Array, Array]:
    """Scores (n, d) where the risk is least, and its value (n,), each from its own start.

    The worth is (n, m, K). Steps are halved until the risk falls enough (Armijo).
    """
    scores = np.array(start, dtype=np.float64)
    value = risk.value(weights.at(scores), worth)
    active = np.arange(len(scores))
    for _ in range(MOST_STEPS):
        here, held, before = scores[active], worth[active], value[active]
        gradient, hessian = risk.derivatives(weights.at(here), held, weights.features)
        step = _newton_step(gradient, hessian)
        slope = (gradient * step).sum(axis=1)
        left, length = np.arange(len(active)), 1.0
        for _ in range(MOST_HALVINGS):
            trial = np.clip(here[left] + length * step[left], -BOX, BOX)
            tried = risk.value(weights.at(trial), held[left])
            better = tried <= before[left] + 1e-4 * length * slope[left]
            place = active[left[better]]
            scores[place], value[place] = trial[better], tried[better]
            left, length = left[~better], 0.5 * length
            if len(left) == 0:
                break
        large = np.abs(gradient).max(axis=1) > GRADIENT * held.sum(axis=(1, 2))
        active = active[(value[active] < before) & large]
        if len(active) == 0:
            break
    return scores, value


def _newton_step(gradient: Array, hessian: Array) -> Array:
    """Eigenvalues are taken by their size, so that steps go down also where it is not convex."""
    size, axes = np.linalg.eigh(hessian)
    size = np.abs(size)
    least = 1e-10 * size.max(axis=1, keepdims=True) + 1e-290
    along = np.einsum("nde,nd->ne", axes, gradient) / np.maximum(size, least)
    step = -np.einsum("nde,ne->nd", axes, along)
    length = np.linalg.norm(step, axis=1, keepdims=True)
    return step * np.minimum(1.0, LONGEST_STEP / np.maximum(length, 1e-300))


# ------------------------------------------------------------------------ risks made of planes


def _best_of_pieces(
    risk: ConstrainedRisk, weights: Weights, worth: Array, over_all_laws: float
) -> Optimum:
    """The hinge by its linear program, the rho margin by its vertices."""

    def value_at(scores: Array) -> float:
        return float(risk.value(weights.at(scores[None]), worth[None])[0])

    few = _has_few_vertices(risk, weights)
    lowest = _lowest(risk, weights, worth) if few or risk.margin == "rho" else np.empty((0, 0))
    if risk.margin == "hinge":
        scores, slopes = hinge_program(weights, worth)
        lower = risk.lower_bound(weights, worth, scores, slopes)
        others = [o for o in lowest if np.abs(weights.centred.flat @ (o - scores)).max() > 1e-9]
        return Optimum(scores, value_at(scores), lower, "linear program", tuple(others))
    value = value_at(lowest[0])
    if few:
        return Optimum(lowest[0], value, value, "vertices", tuple(lowest[1:]))
    return Optimum(lowest[0], value, over_all_laws, "multistart")


def hinge_program(weights: Weights, worth: Array) -> tuple[Array, Array]:
    """Scores of least hinge risk, and the dual variable of each set, (m, K).

    min worth · excess subject to excess >= 1 + z, excess >= 0, with z centred.
    """
    features, flat = weights.centred.flat, weights.centred.offset.ravel()
    count, n_scores = features.shape
    found = linprog(
        np.concatenate([np.zeros(n_scores), worth.ravel()]),
        A_ub=np.hstack([features, -np.eye(count)]),
        b_ub=-1.0 - flat,
        bounds=[(None, None)] * n_scores + [(0.0, None)] * count,
        method="highs",
    )
    if found.status != 0:
        raise RuntimeError(f"the linear program of the hinge ended without a solution: {found}")
    return found.x[:n_scores], -found.ineqlin.marginals.reshape(worth.shape)


def _has_few_vertices(risk: ConstrainedRisk, weights: Weights) -> bool:
    return comb(len(risk.kinks) * weights.offset.size, weights.directions) <= MOST_VERTICES


def _lowest(risk: ConstrainedRisk, weights: Weights, worth: Array) -> Array:
    """The vertices of least risk, (v, d).

    If too many to compare, the one met from the best of those drawn by exchanging planes, one at a
    time, for as long as that goes lower.
    """
    chosen, points, costs = vertices(risk, weights)
    values = costs @ worth.ravel()
    if _has_few_vertices(risk, weights):
        return points[values <= values.min() + SAME_VALUE * max(1.0, abs(values.min()))]
    n_planes, rank = len(risk.kinks) * worth.size, chosen.shape[1]
    places, ends = np.indices((rank, n_planes)).reshape(2, -1), []
    for start in np.unique(values.round(9), return_index=True)[1][:EXCHANGED]:
        planes, end, value = chosen[start], points[start], values[start]
        for _ in range(MOST_EXCHANGES):
            near = np.tile(planes, (rank * n_planes, 1))
            near[np.arange(len(near)), places[0]] = places[1]
            near, found, costs = _meeting_points(risk, weights, near)
            risks = costs @ worth.ravel()
            if not risks.min(initial=np.inf) < value - 1e-13 * max(1.0, abs(value)):
                break
            best = risks.argmin()
            planes, end, value = near[best], found[best], risks[best]
        ends.append((value, tuple(end)))
    return np.array([min(ends)[1]])


@lru_cache(maxsize=4)
def vertices(risk: ConstrainedRisk, weights: Weights) -> tuple[Array, Array, Array]:
    """Where the planes of the kinks meet: see `_meeting_points`. All, or of planes drawn."""
    count, rank = len(risk.kinks) * weights.offset.size, weights.directions
    if _has_few_vertices(risk, weights):
        return _meeting_points(risk, weights, np.array(list(combinations(range(count), rank))))
    drawn = np.random.default_rng(0).integers(count, size=(DRAWN_VERTICES, rank))
    return _meeting_points(risk, weights, drawn)


def _meeting_points(
    risk: ConstrainedRisk, weights: Weights, chosen: Array
) -> tuple[Array, Array, Array]:
    """Planes (v, rank) that meet in a point, the scores there (v, d), and the cost of each set.

    The cost Phi(-z) is (v, m K). Scores are taken within the span of the centred features: what
    lies across moves no weight.
    """
    features, flat = weights.centred.flat, weights.centred.offset.ravel()
    axes = np.linalg.svd(features, full_matrices=False)[2][: weights.directions]
    along = features @ axes.T
    matrices = np.tile(along, (len(risk.kinks), 1))[chosen]
    right = np.concatenate([kink - flat for kink in risk.kinks])[chosen]
    meeting = np.abs(np.linalg.det(matrices)) > 1e-9
    points = np.linalg.solve(matrices[meeting], right[meeting][..., None])[..., 0]
    points, first = np.unique(points.round(12), axis=0, return_index=True)
    z = points @ along.T + flat
    costs = risk.phi.value(-np.where(np.abs(z) < 1e-11, 0.0, z))
    return chosen[meeting][first], (points + 0.0) @ axes, costs


# ---------------------------------------------------------------------------- branch and bound


def _is_small_cube(weights: Weights) -> bool:
    """Whether the sets are all those of a few labels, weighed by the scores alone."""
    inputs, _, n_labels = weights.features.shape
    if inputs > 1 or n_labels > MOST_LABELS or np.ptp(weights.offset) > 0.0:
        return False
    return np.array_equal(weights.flat, 2.0 * all_sets(n_labels) - 1.0)


def largest_sum(worth: Array, q: float, known: float, accuracy: float = 1e-10) -> float:
    """An upper bound on G over all p, within the accuracy of ``known``, a value G takes.

    Generalised cross-entropy on the cube is (T - G(p)) / q with p_i = sigmoid(2 h_i) and

        G(p) = sum over y' of worth(y') prod_i (p_i if label i is in y' else 1 - p_i)^q.

    The worth is (2^l,), label sets in the order of binary numbers. Boxes of p that cannot hold the
    maximum are dropped, others halved; if they become too many, what has been shown is returned.
    """
    table = worth.reshape((2,) * int(np.log2(len(worth))))
    boxes = np.tile([0.0, 1.0], (1, table.ndim, 1))
    for _ in range(MOST_ROUNDS):
        bounds = upper_bounds(table, q, boxes)
        if not (bounds > known + accuracy).any():
            return known + accuracy
        boxes = boxes[bounds > known + accuracy]
        # Each box is split in two across its longest side.
        rows, side = np.arange(len(boxes)), np.ptp(boxes, axis=2).argmax(axis=1)
        low, high = boxes.copy(), boxes.copy()
        low[rows, side, 1] = high[rows, side, 0] = boxes[rows, side].mean(axis=1)
        boxes = np.concatenate([low, high])
        if len(boxes) > MOST_BOXES:
            break
    return max(known + accuracy, float(bounds.max()))


def upper_bounds(table: Array, q: float, boxes: Array) -> Array:
    """A bound on G over each box of p (n, l, 2), (n,): the error falls with its square.

    G is linear in each pair (x, y) = ((1 - p_i)^q, p_i^q). That pair runs along the arc
    x^r + y^r = 1, r = 1/q, which bends inwards, so over an interval it stays within the triangle
    of its chord and the tangents at its ends, a^(r-1) x + b^(r-1) y = 1 at (a, b), and G is at most
    its largest value at the corners of the triangles.
    """
    ends = np.stack([(1.0 - boxes) ** q, boxes**q], axis=-1)
    normal = ends ** (1.0 / q - 1.0)
    (a, b), (c, d) = np.moveaxis(normal[:, :, 0], -1, 0), np.moveaxis(normal[:, :, 1], -1, 0)
    determinant = a * d - b * c
    apart = np.abs(determinant) > 1e-14
    safe = np.where(apart, determinant, 1.0)
    meeting = np.stack([(d - b) / safe, (a - c) / safe], axis=-1)
    # On a tiny interval the corner of the square around it serves as well.
    square = ends.max(axis=2)
    meeting = np.minimum(np.where(apart[..., None], meeting, square), square)
    corners = np.concatenate([ends, meeting[:, :, None]], axis=2)
    values = np.broadcast_to(table, (len(boxes), *table.shape))
    for label in range(table.ndim):
        # The axis of the label's state gives way to one of its corners, put last.
        values = np.einsum("ns...,ncs->n...c", values, corners[:, label])
    return values.reshape(len(boxes), -1).max(axis=1)
