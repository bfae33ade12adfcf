"""Lower bounds on the least conditional risk of convex surrogates, by duality.

For a convex risk every feasible point of the dual problem is a lower bound over *all* scores, also
where the infimum is not attained. A point is made from scores near the minimiser: the law (or the
slopes) there, corrected by the smallest change that meets the dual's linear constraint, and mixed
with an interior feasible point if that leaves the orthant. The gap to the value at those scores is
the certificate of optimality. Shapes as in `conditional`, for one problem: (m, K).
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, xlogy

from setwise.consistency.conditional import CompSumRisk, ConstrainedRisk
from setwise.spaces.space import Array

# A share of a probability below 0 by no more than this is rounding.
ROUNDING = 1e-15


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
    # The features are centred, so that equal slopes are feasible.
    slopes = slopes + max(0.0, -float(slopes.min()))
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
    centred = total[..., None] * (features - features.mean(axis=1, keepdims=True))
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
    """The nearest point whose features sum up to what is wanted."""
    flat = features.reshape(-1, features.shape[-1])
    missing = wanted - flat.T @ point.ravel()
    change = flat @ np.linalg.lstsq(flat.T @ flat, missing, rcond=None)[0]
    return point + change.reshape(point.shape)


def _mixed(point: Array, inner: Array) -> Array:
    """As much of the inner point as it takes to leave no negative entry."""
    below = point < 0.0
    if not below.any():
        return point
    with np.errstate(divide="ignore"):
        share = (-point / np.maximum(inner - point, 1e-300))[below].max()
    return point + min(1.0, float(share)) * (inner - point)


def _conjugate(margin: str, slopes: Array, worth: Array) -> Array:
    """The largest b with worth Phi(-z) >= slope z + b for all z."""
    if margin == "exponential":
        return slopes - xlogy(slopes, slopes / np.maximum(worth, 1e-300))
    if margin == "squared_hinge":
        return slopes - slopes**2 / (4.0 * np.maximum(worth, 1e-300))
    return np.where(slopes <= worth * (1.0 + 1e-12) + 1e-15, slopes, -np.inf)
