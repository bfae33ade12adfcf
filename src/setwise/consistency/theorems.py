"""The theorems that guarantees rest on, and which of them covers a combination.

Some are the paper's, where the assumption of its proofs holds; the others are proved here in a few
lines, each with its own bound. What no theorem covers is not covered: `covering` returns None.

Letters: l labels, n label sets, U(y') the expected utility of predicting y', c = 1 - U, s the law
of the scores, t the surrogate's conditional regret, eta_i the marginals, m_i = 2 eta_i - 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb, log
from typing import Any

import numpy as np

from setwise.consistency.bounds import (
    BINARY,
    COMPLETE,
    LIKELIHOOD,
    OWN,
    PREDICTED,
    SUMMED,
    Gamma,
    at_k_bound,
    bound_of,
    hamming_bound,
    relevance_at_k_bound,
)
from setwise.consistency.conditional import MOST_SETS, Kind, Weights
from setwise.consistency.naming import Choice, loss_matrix
from setwise.spaces.space import Space
from setwise.targets.target import (
    Target,
    follows_from_marginals,
    is_hamming,
    is_linear_at_size,
    label_weights,
)

# Whether label sets are affinely independent is looked at for no more than this many.
MOST_INDEPENDENT = 1024


@dataclass(frozen=True)
class Theorem:
    """A statement, its source and the idea of its proof; ``key`` is how tables refer to it."""

    key: str
    statement: str
    source: str
    proof: str


REACHED_COMP_SUM = Theorem(
    "R",
    "Where scores reach every law over the label sets, every comp-sum loss is consistent for every "
    "target: the regret is at most 2 sqrt(t) (q = 0, q = -1), 2 sqrt(n^q t) (0 < q < 1).",
    "Theorem 9 (section 6) of Mao, Mohri and Zhong (2024); q = 0 is their Theorem 7",
    "Exchange mass between the prediction and the best set, all else kept: the law that results "
    "must be reachable, and that is the whole assumption. The proof for 0 < q < 1 uses an "
    "inequality stated for a + b <= 1, while two expected utilities may add up to 2; it holds for "
    "all a, b in [0, 1]: with d = |a - b| / (a + b) and p = 1 / (1 - q) it says "
    "N_p(d) >= 1 + q d^2 / (2 (1 + d)) for the power mean N_p of 1 + d and 1 - d, which for p <= 2 "
    "follows from the first two terms of the binomial series, for p >= 2 from N_p >= N_2. For "
    "-1 < q < 0 the paper has no bound; s proportional to U^(1/(1-q)) is the minimiser.",
)
REACHED_CONSTRAINED = Theorem(
    "C",
    "Where scores reach every law over the label sets, the constrained losses are consistent for "
    "every target: the regret is at most 2 sqrt(L_max t) (exponential), sqrt(2 t) (squared hinge), "
    "t (hinge, rho margin).",
    "Theorem 12 (appendix A) of Mao, Mohri and Zhong (2024); the constant of the squared hinge is "
    "proved here",
    "Exchange weight between the prediction and the best set. Squared hinge: with a = 1 + z of the "
    "best set, b = 1 + z of the prediction, b >= 1 and b >= a, the exchange gains "
    "(c_h b - c_y a)^2 / (c_h + c_y) >= (c_h - c_y)^2 / 2. That is sqrt(2 t): better than the "
    "theorem's 2 sqrt(t), worse than the sqrt(t) its printed proof ends with, which is false.",
)
ABSOLUTE = Theorem(
    "A",
    "Mean absolute error (q = 1) with the most likely set is consistent for every target on every "
    "space, with one score a label too: the regret is at most n t.",
    "Theorem 9 (section 6) of Mao, Mohri and Zhong (2024), by a proof that needs no reachability",
    "The surrogate is the expected loss of a set drawn from s. It is a mean of the sets' own "
    "expected losses, so its infimum is the best set's, approached by h = c (2 y - 1), c large. "
    "The most likely set has s >= 1/n, so a regret r of it costs t >= r / n. Not convex.",
)
HAMMING = Theorem(
    "H",
    "On all label sets with one score a label, every comp-sum loss and the exponential and "
    "squared-hinge constrained losses are consistent for (weighted) Hamming loss.",
    OWN,
    "Flip a label with the wrong sign: pairs of sets that differ in it change places, and their "
    "utilities differ by w_i m_i, the same for all pairs, so the risk falls. From a score of 0, "
    "with all other scores kept, the label is a problem of two sets; moving it to its best score "
    "gains at least (w_i m_i)^2 / 4 (q = 0), (w_i m_i)^2 / (8 (1 - q)) (q < 0), "
    "(w_i m_i)^2 2^(-(1-q)(l-1)) / 8 (0 < q < 1), (w_i m_i)^2 / 8 (exponential), (w_i m_i)^2 / 2 "
    "(squared hinge) on the unit scale. Mending the wrong labels one after the other and "
    "Cauchy's inequality give sqrt(4 l t), sqrt(8 (1 - q) l t), sqrt(8 l 2^((1-q)(l-1)) t), "
    "sqrt(8 l t), sqrt(2 l t) there, and with t / n^(1-q) (t / n for constrained losses) in place "
    "of t on the paper's scale, n = 2^l. For q = 0 and q = -1 this implies the paper's 2 sqrt(t). "
    "The hinge has a kink where the argument needs a slope.",
)
AT_K = Theorem(
    "K",
    "On all sets of k labels with one score a label, every comp-sum loss and the exponential and "
    "squared-hinge constrained losses are consistent for precision@k, recall@k, F-beta and "
    "(weighted) Hamming loss.",
    OWN,
    "The utility is a constant and a gain v_i for each of the k labels. If v_i > v_j but "
    "h_i <= h_j, exchanging the two scores pairs the sets with i and without j with those the "
    "other way round, and lowers the risk; at h_i = h_j the slope along e_i - e_j is not 0. The "
    "laws reached and their limits "
    "are compact, and the prediction keeps s >= 1/n in the limit, so no sequence whose surrogate "
    "regret vanishes predicts j without i. With a rate: along e_i - e_j the log-partition grows no "
    "faster than log cosh (q = 0), and constrained weights change in pairs (exponential, squared "
    "hinge); a wrong prediction has at most kappa = min(k, l - k) such pairs.",
)
RELEVANCE = Theorem(
    "B",
    "Binary relevance is consistent for (weighted) Hamming loss on all label sets: the regret is "
    "at most Gamma(t / l), Gamma the binary bound of the margin.",
    "Theorem 3 (section 3) of Mao, Mohri and Zhong (2024), the constant of Corollary 4 corrected",
    "Label by label, and concavity. The binary bounds are sqrt(2 t) (logistic, exponential), "
    "sqrt(t) (squared hinge), t (hinge). The paper prints sqrt(t) for the logistic margin; at "
    "eta = 1 and a score just below 0 the regret is 1 while t = ln 2 = .69.",
)
RELEVANCE_AT_K = Theorem(
    "P",
    "On all sets of k labels, binary relevance with a margin other than the hinge is consistent "
    "for precision@k, with a regret of at most sqrt(kappa t) / k, kappa = min(k, l - k), and for "
    "Hamming loss, with 2 / l in place of 1 / k.",
    OWN,
    "Two labels in the wrong order share a score at best; the divergence of their marginals from "
    "that of any common score is at least (eta_i - eta_j)^2, as the margins' Bregman divergences "
    "exceed 2 (eta - eta')^2 (4 (eta - eta')^2 for the squared hinge).",
)
MAJORITY = Theorem(
    "M",
    "Binary relevance with a margin other than the hinge is consistent for Hamming loss and tree "
    "distance on closed sets, and on the paths of a taxonomy with one root.",
    OWN,
    "A label is at most as likely as its parent, so the labels with eta > 1/2 are closed, and on "
    "paths a path. They are the best of all label sets, and the heaviest: scores of vanishing "
    "regret have the sign of eta - 1/2. Labels with eta = 1/2 change neither.",
)
MATCHING = Theorem(
    "L",
    "Likelihood and the set of least expected loss: the regret is at most sqrt(2 KL(p || s)) for "
    "every target and space. Where the expected loss of a prediction is linear in what the scores "
    "multiply (every target with scores that reach every law; sums over labels with one score a "
    "label), the regret is at most sqrt(2 t), t the log-loss above the best of the same scores.",
    "proved here, from Pinsker's inequality",
    "The prediction is best under s, so its regret under p is at most the change of an expectation "
    "with values in [-1, 1] from s to p: 2 TV(p, s) <= sqrt(2 KL(p || s)). The best law s* of an "
    "exponential family has the moments of p, so the target cannot tell p from s*, and "
    "KL(p || s) - KL(p || s*) = KL(s* || s).",
)
ONLY = Theorem(
    "O",
    "Where there is one label set only, it is predicted, and it is the best.",
    "evident",
    "There is nothing to choose between, whatever the scores.",
)
THEOREMS = (
    REACHED_COMP_SUM, REACHED_CONSTRAINED, ABSOLUTE, HAMMING, AT_K, RELEVANCE, RELEVANCE_AT_K,
    MAJORITY, MATCHING, ONLY,
)  # fmt: skip


@dataclass(frozen=True)
class Coverage:
    """A theorem that covers a combination, its bound (None: consistent, without a rate), and why.

    The bound is on the paper's scale.
    """

    theorem: Theorem
    gamma: Gamma | None
    reason: str


def covering(
    target: Target, choice: Choice, space: Space, scores: Kind = "labelwise"
) -> Coverage | None:
    """The theorem that covers a combination, or None. The target is the one on the space."""
    if space.log_size < 1e-9:
        return Coverage(ONLY, None, "there is no other label set")
    if choice.target is not None:
        return None
    if choice.is_likelihood:
        return _of_likelihood(target, space, scores)
    # Arguments by slopes hold for all but hinges and the rho margin.
    is_smooth = choice.margin not in ("hinge", "rho")
    weights = label_weights(target, space.n_labels)
    is_share = weights is not None and abs(float(weights.sum()) - 1.0) < 1e-9
    if choice.by_label:
        if is_share and _is_cube(space, even=True):
            why = "each label is a binary problem of its own"
            return Coverage(RELEVANCE, _relevance_bound(target, choice, space, weights), why)
        k = _common_size(space)
        if is_smooth and k and (is_hamming(target) or _is_precision(target, space, k)):
            gamma = relevance_at_k_bound(target, choice, space, k)
            return Coverage(RELEVANCE_AT_K, gamma, "the scores are increasing in the marginals")
        if is_smooth and weights is not None and _holds_majorities(space):
            why = "of true label sets in the space, the labels more likely than not are one of them"
            return Coverage(MAJORITY, None, why)
        return None
    if choice.q == 1.0:
        gamma = replace(bound_of(choice, space), assumptions=(COMPLETE, PREDICTED))
        return Coverage(ABSOLUTE, gamma, "every label set is exposed by some scores")
    reached = _reached(space, scores)
    if reached is not None:
        theorem = REACHED_CONSTRAINED if choice.q is None else REACHED_COMP_SUM
        return Coverage(theorem, _reached_bound(choice, space), reached)
    if is_smooth and is_share and _is_cube(space, even=False):
        why = "the share of wrong labels is decided label by label"
        return Coverage(HAMMING, hamming_bound(choice, space), why)
    k = _common_size(space)
    if is_smooth and k and is_linear_at_size(target, space.n_labels):
        why = "sets of one size are ordered rightly by one score a label"
        return Coverage(AT_K, at_k_bound(choice, space, k), why)
    return None


def _of_likelihood(target: Target, space: Space, scores: Kind) -> Coverage | None:
    """Theorem L where the best law of the scores serves the target as well as the true one."""
    reason, follows = _reached(space, scores), follows_from_marginals(target, space.n_labels)
    if reason is None and space.log_size <= log(MOST_SETS) + 1e-9:
        sets = space.enumerate()
        follows = Weights.of(space).span(loss_matrix(target, sets, sets))
    if reason is None and follows:
        reason = "the expected loss of a prediction follows from the marginals"
    needs = (COMPLETE, "true label sets lie in the space", LIKELIHOOD.assumptions[1])
    gamma = replace(LIKELIHOOD, theorem=MATCHING.source, assumptions=needs)
    return None if reason is None else Coverage(MATCHING, gamma, reason)


def _reached(space: Space, scores: Kind) -> str | None:
    """Why scores reach every law over the label sets, or None."""
    if scores == "joint" or space.is_joint:
        return "every label set has a score of its own"
    if space.is_path:
        return "one score a node reaches every law over paths"
    most = min(space.n_labels + 1, MOST_INDEPENDENT)
    if space.log_size > log(most) + 1e-9 or not Weights.of(space).reaches_every_law:
        return None
    return f"the {round(np.exp(space.log_size))} label sets are affinely independent"


def _is_cube(space: Space, even: bool) -> bool:
    """Whether all label sets are there, ``even`` without a bias, or with one scores absorb."""
    if space.is_independent:
        return True
    log_size = space.log_size
    if abs(log_size - space.n_labels * log(2.0)) > 1e-9 or log_size > log(MOST_SETS):
        return False
    weights = Weights.of(space)
    return bool(np.ptp(weights.offset) < 1e-12) if even else weights.span(weights.offset.T)


def _common_size(space: Space) -> int | None:
    """k where the space is all sets of k labels, none raised, 0 < k < l."""
    labels, sizes, raised = space.n_labels, space.sizes, space.parameters
    if len(sizes) != 1 or not 0 < sizes[0] < labels:
        return None
    is_even = len(np.unique(raised[np.isfinite(raised)])) <= 1
    is_full = abs(space.log_size - log(comb(labels, int(sizes[0])))) < 1e-9
    return int(sizes[0]) if is_even and is_full else None


def _is_precision(target: Target, space: Space, k: int) -> bool:
    """Whether the loss falls by 1/k with each right label among k, for true sets of k labels.

    A sum over labels has to do so for true sets of every size: recall@k does not.
    """
    labels = space.n_labels
    measure: Any = target.measure(labels, "loss")
    if target.form == "linear_fractional":
        below = measure.denominator @ [1, 0, k, k, labels - 2 * k]
        fall = -(measure.numerator @ [0, 1, -1, -1, 1]) / below if below > 0.0 else 0.0
        return is_linear_at_size(target, labels) and abs(k * fall - 1.0) <= 1e-12
    if not follows_from_marginals(target, labels):
        return False
    (rejected, wrong), (missed, found) = measure.agreement
    fall = measure.scale(np.ones(1)) * measure.weights * (missed + wrong - rejected - found)
    return bool((np.abs(k * fall - 1.0) <= 1e-12).all())


def _holds_majorities(space: Space) -> bool:
    """Whether the labels that more than half of the sets have, by any law, are always a set."""
    if space.is_path:
        parents, leaves_only = space.parents, space.leaves_only  # type: ignore
        return int((parents < 0).sum()) == 1 and not leaves_only
    raised = space.parameters
    return space.is_closed and not raised[np.isfinite(raised)].any()


def _reached_bound(choice: Choice, space: Space) -> Gamma | None:
    if choice.q is not None and -1.0 < choice.q < 0.0:
        return None
    gamma = bound_of(choice, space)
    if choice.margin == "squared_hinge":
        own = REACHED_CONSTRAINED.source
        gamma = replace(gamma, log_coefficient=log(2.0) / 2.0, formula="sqrt(2 t)", theorem=own)
    return gamma


def _relevance_bound(target: Target, choice: Choice, space: Space, weights: Any) -> Gamma:
    if is_hamming(target):
        return bound_of(choice, space)
    factor, exponent = BINARY[str(choice.margin)]
    inside = "2 w t" if factor > 1.0 else "w t"
    formula = f"sqrt({inside})" if exponent == 0.5 else inside
    needs = (COMPLETE, f"{SUMMED}, and w the largest weight of one")
    size = exponent * log(factor * weights.max())
    return Gamma(size, exponent, formula, RELEVANCE.source, needs)
