"""Least conditional risks for many distributions at once, by Newton steps.

The Hessian's eigenvalues are taken by their size, so that a step goes down also where the risk is
not convex; steps are halved until the risk falls. Scores stay within a box: a minimiser at infinity
is met at its side.
"""

from __future__ import annotations

import numpy as np

from setwise.consistency.conditional import ConditionalRisk
from setwise.spaces.space import Array

BOX = 60.0
LONGEST_STEP = 4.0
MOST_STEPS, MOST_HALVINGS = 100, 30
GRADIENT = 1e-13
POLISHING = 3


def descend(
    risk: ConditionalRisk, features: Array, offset: Array, worth: Array, start: Array
) -> tuple[Array, Array]:
    """Scores (n, d) where the risk is least, and its value (n,), each from its own start.

    features are (m, K, d), the offset (m, K), the worth (n, m, K).
    """
    scores = np.array(start, dtype=np.float64)
    value = risk.value(_weights(features, offset, scores), worth)
    active = np.arange(len(scores))
    for _ in range(MOST_STEPS):
        here, held = scores[active], worth[active]
        gradient, hessian = risk.derivatives(_weights(features, offset, here), held, features)
        step = _newton_step(gradient, hessian)
        moved, new = here.copy(), value[active].copy()
        open_rows, length = np.arange(len(active)), 1.0
        slope = (gradient * step).sum(axis=1)
        for _ in range(MOST_HALVINGS):
            trial = np.clip(here[open_rows] + length * step[open_rows], -BOX, BOX)
            tried = risk.value(_weights(features, offset, trial), held[open_rows])
            better = tried <= value[active[open_rows]] + 1e-4 * length * slope[open_rows]
            moved[open_rows[better]], new[open_rows[better]] = trial[better], tried[better]
            open_rows = open_rows[~better]
            length *= 0.5
            if len(open_rows) == 0:
                break
        scale = held.sum(axis=(1, 2))
        going = (new < value[active]) & (np.abs(gradient).max(axis=1) > GRADIENT * scale)
        scores[active], value[active] = moved, new
        active = active[going]
        if len(active) == 0:
            break
    return _polished(risk, features, offset, worth, scores, value)


def _polished(
    risk: ConditionalRisk,
    features: Array,
    offset: Array,
    worth: Array,
    scores: Array,
    value: Array,
) -> tuple[Array, Array]:
    """A few more steps where they lower the gradient: values no longer tell points apart."""
    gradient, hessian = risk.derivatives(_weights(features, offset, scores), worth, features)
    for _ in range(POLISHING):
        trial = np.clip(scores + _newton_step(gradient, hessian), -BOX, BOX)
        weights = _weights(features, offset, trial)
        tried, (new, bent) = risk.value(weights, worth), risk.derivatives(weights, worth, features)
        same = tried <= value + 1e-14 * worth.sum(axis=(1, 2))
        better = same & (np.abs(new).max(axis=1) < np.abs(gradient).max(axis=1))
        scores = np.where(better[:, None], trial, scores)
        value = np.where(better, tried, value)
        gradient = np.where(better[:, None], new, gradient)
        hessian = np.where(better[:, None, None], bent, hessian)
        if not better.any():
            break
    return scores, value


def _weights(features: Array, offset: Array, scores: Array) -> Array:
    flat = scores @ features.reshape(-1, features.shape[-1]).T
    return flat.reshape(len(scores), *features.shape[:2]) + offset


def _newton_step(gradient: Array, hessian: Array) -> Array:
    size, axes = np.linalg.eigh(hessian)
    size = np.abs(size)
    least = 1e-10 * size.max(axis=1, keepdims=True) + 1e-290
    along = np.einsum("nde,nd->ne", axes, gradient) / np.maximum(size, least)
    step = -np.einsum("nde,ne->nd", axes, along)
    length = np.linalg.norm(step, axis=1, keepdims=True)
    return step * np.minimum(1.0, LONGEST_STEP / np.maximum(length, 1e-300))
