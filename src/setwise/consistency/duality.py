"""Lower bounds on the least conditional risk of convex surrogates, by duality.

For a convex risk every feasible point of the dual problem is a lower bound over *all* scores, also
where the infimum is not attained. A point is made from scores near the minimiser: the law (or the
slopes) there, corrected by a small change that meets the dual's linear constraint, and mixed with
an interior feasible point if that leaves the orthant. Entries change in proportion to their size:
those that are 0 stay so. The gap to the value at those scores is the certificate of optimality.
Shapes as in `conditional`, for one problem: (m, K).
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, xlogy

from setwise.consistency.conditional import CompSumRisk, ConstrainedRisk
from setwise.spaces.space import Array

# What is below 0, or above its largest value, by no more than this is rounding.
ROUNDING = 1e-12


def lower_bound(
    risk: CompSumRisk | ConstrainedRisk,
    features: Array,
    offset: Array,
    worth: Array,
    scores: Array,
    slopes: Array | None = None,
) -> float:
    """A lower bound on the infimum of a convex risk, tight if the scores are near the minimiser.

    ``slopes`` are the dual variables of the hinge, from its linear program.
    """
    z = features @ scores + offset
    if isinstance(risk, CompSumRisk):
        return _comp_sum(risk.q, features, offset, worth, z)
    features = features - features.mean(axis=1, keepdims=True)
    offset = offset - offset.mean(axis=1, keepdims=True)
    z = z - z.mean(axis=1, keepdims=True)
    if slopes is None:
        slopes = -worth * risk.phi.derivative(-z)
    slopes = _meeting(slopes, features, np.zeros(features.shape[-1]))
    if (slopes < -ROUNDING).any():
        # The features are centred, so that equal slopes are feasible.
        slopes = slopes - float(slopes.min())
    slopes = np.maximum(slopes, 0.0)
    return float((_conjugate(risk.margin, slopes, worth) + slopes * offset).sum())


def _comp_sum(q: float, features: Array, offset: Array, worth: Array, z: Array) -> float:
    """With weights w and s of equal means, sum_k w_k t_k >= W H(s) + (W s - w) · g for all scores.

    t_k = A - z_k. For q = 0 the risk is the left side with w = worth; for q = -a < 0 it is
    sum worth (e^(a t) - 1) / a >= sum w t + w (1 - log(w / worth)) / a - worth / a for every w.
    """
    log_law = z - logsumexp(z, axis=1, keepdims=True)
    law, pull = np.exp(log_law), worth * np.exp(q * log_law)
    total = pull.sum(axis=1, keepdims=True)
    own = pull / total
    # Centred, so that the correction leaves the sum of the law as it is.
    centred = total[..., None] * (features - law[:, None] @ features)
    law = _mixed(_meeting(law, centred, np.einsum("bk,bkd->d", own, centred)), own)
    if (law < -ROUNDING).any():
        return -np.inf
    law = np.maximum(law, 0.0)
    bound = (-total * xlogy(law, law) + (total * law - pull) * offset).sum()
    if q < 0.0:
        ratio = np.where(worth > 0.0, pull / np.where(worth > 0.0, worth, 1.0), 1.0)
        bound += ((pull * (1.0 - np.log(ratio)) - worth) / -q).sum()
    return float(bound)


def _meeting(point: Array, features: Array, wanted: Array) -> Array:
    """A point near by whose features sum up to what is wanted: p + p (features · c), for some c."""
    flat, size = features.reshape(-1, features.shape[-1]), np.abs(point.ravel())
    missing = wanted - flat.T @ point.ravel()
    along = np.linalg.lstsq(flat.T @ (size[:, None] * flat), missing, rcond=None)[0]
    return point + (size * (flat @ along)).reshape(point.shape)


def _mixed(point: Array, inner: Array) -> Array:
    """As much of the inner point as it takes to leave no negative entry."""
    below = point < -ROUNDING
    if not below.any():
        return point
    with np.errstate(divide="ignore"):
        share = (-point / np.maximum(inner - point, 1e-300))[below].max()
    return point + min(1.0, float(share)) * (inner - point)


def _conjugate(margin: str, slopes: Array, worth: Array) -> Array:
    """The largest b with worth Phi(-z) >= slope z + b for all z."""
    # A slope where there is no worth is rounding too.
    slopes = np.where((worth <= ROUNDING) & (slopes <= ROUNDING), 0.0, slopes)
    if margin == "exponential":
        return slopes - xlogy(slopes, slopes / np.maximum(worth, 1e-300))
    if margin == "squared_hinge":
        return slopes - slopes**2 / (4.0 * np.maximum(worth, 1e-300))
    return np.where(slopes <= worth + ROUNDING, np.minimum(slopes, worth), -np.inf)
