"""Which theorem covers a combination of target, surrogate, space and scores, and why it is true.

Some are the paper's, where the assumption of its proofs holds; the others are proved here in a few
lines, each with its own bound. What no theorem covers is not covered: `covering` returns None.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb, log

import numpy as np

from setwise.consistency.best_scores import Risk
from setwise.consistency.bounds import BINARY, COMPLETE, LIKELIHOOD, PREDICTED, Gamma, bound
from setwise.consistency.conditional import CompSumRisk, ConstrainedRisk, RelevanceRisk
from setwise.consistency.loss_matrix import loss_matrix
from setwise.consistency.naming import Choice
from setwise.consistency.proofs import (
    ABSOLUTE,
    AT_K,
    HAMMING,
    MAJORITY,
    MATCHING,
    ONLY,
    REACHED_COMP_SUM,
    REACHED_CONSTRAINED,
    RELEVANCE,
    RELEVANCE_AT_K,
    Theorem,
)
from setwise.consistency.scored_sets import MOST_SETS, Kind, ScoredSets, lies_in_span
from setwise.spaces.catalog import Catalog
from setwise.spaces.cube import Cube
from setwise.spaces.forest import Forest
from setwise.spaces.paths import Paths
from setwise.spaces.sized import Sized
from setwise.spaces.space import Space
from setwise.surrogates.binary_relevance import BinaryRelevance
from setwise.surrogates.names import DEFAULT_Q
from setwise.targets.at_k import PrecisionAtK, RecallAtK
from setwise.targets.hamming import Hamming
from setwise.targets.linear_fractional import FBeta
from setwise.targets.target import Target
from setwise.targets.tree_distance import TreeDistance

# Whether label sets are affinely independent is looked at for no more than this many.
MOST_INDEPENDENT = 1024
# Targets whose expected utility, on sets of one size, is a constant and a gain for each label.
GAINS_ON_SLICES = (Hamming, TreeDistance, PrecisionAtK, RecallAtK, FBeta)


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
    joint = scores == "joint" or (isinstance(space, Catalog) and space.joint)
    reason = _reached(space, joint)
    if choice.is_likelihood:
        return _likelihood(target, space, joint, reason)
    if choice.target is not None:
        return None
    found = None
    if isinstance(choice.risk, RelevanceRisk):
        found = _relevance(target, choice.risk.margin, space)
    elif isinstance(choice.risk, CompSumRisk) and choice.risk.q == 1.0:
        why = "every label set is exposed by some scores"
        gamma = replace(bound("mean_absolute_error", space), assumptions=(COMPLETE, PREDICTED))
        found = Coverage(ABSOLUTE, gamma, why)
    elif reason is not None:
        found = _reaching(choice.name, choice.risk, space, reason)
    elif _is_share_of_labels(target, space) and _is_whole_cube(space):
        found = _hamming(choice.risk, space)
    elif isinstance(target, GAINS_ON_SLICES) and _is_slice(space):
        found = _at_k(choice.risk, space)
    return found


def _reached(space: Space, joint: bool) -> str | None:
    """Why scores reach every law over the label sets, or None."""
    if joint:
        return "every label set has a score of its own"
    if isinstance(space, Paths):
        return "one score a node reaches every law over paths"
    most = min(space.n_labels + 1, MOST_INDEPENDENT)
    if space.log_size <= log(most) + 1e-9 and ScoredSets.of(space).reaches_every_law:
        count = round(np.exp(space.log_size))
        return f"the {count} label sets are affinely independent"
    return None


def _reaching(name: str, risk: Risk, space: Space, reason: str) -> Coverage | None:
    if isinstance(risk, ConstrainedRisk):
        gamma = bound(name, space)
        if risk.margin == "squared_hinge":
            own = REACHED_CONSTRAINED.source
            gamma = replace(gamma, log_coefficient=log(2.0) / 2.0, formula="sqrt(2 t)", theorem=own)
        return Coverage(REACHED_CONSTRAINED, gamma, reason)
    q = risk.q
    if -1.0 < q < 0.0:
        return Coverage(REACHED_COMP_SUM, None, reason)
    names = {0.0: "logistic", -1.0: "sum_exponential"}
    gamma = bound(names.get(q, "generalized_cross_entropy"), space, q=q if q > 0.0 else DEFAULT_Q)
    return Coverage(REACHED_COMP_SUM, gamma, reason)


def _hamming(risk: Risk, space: Space) -> Coverage | None:
    """One label after the other: see `proofs.HAMMING`."""
    labels, log_count = space.n_labels, space.log_size
    if isinstance(risk, ConstrainedRisk):
        if not risk.is_smooth:
            return None
        factor = 8.0 if risk.margin == "exponential" else 2.0
        power, words = -log_count, f"{factor:g} l t / n"
    elif risk.q == 0.0:
        factor, power, words = 4.0, -log_count, "4 l t / n"
    elif risk.q < 0.0:
        rate = 1.0 - risk.q
        factor, power, words = 8.0 * rate, -rate * log_count, f"{8.0 * rate:g} l t / n^{rate:g}"
    else:
        rate = 1.0 - risk.q
        factor, power, words = 8.0, -rate * log(2.0), f"8 l t / 2^{rate:g}"
    gamma = Gamma(
        (log(factor * labels) + power) / 2.0, 0.5, f"sqrt({words})", HAMMING.source,
        (COMPLETE, PREDICTED), log_unit=risk.log_unit(log_count),
    )  # fmt: skip
    return Coverage(HAMMING, gamma, "the share of wrong labels is decided label by label")


def _at_k(risk: Risk, space: Space) -> Coverage | None:
    """Pairs of labels in the wrong order, at most kappa = min(k, l - k): see `proofs.AT_K`."""
    labels, k = space.n_labels, int(space.sizes[0])
    pairs, log_others = log(min(k, labels - k)), log(comb(labels - 2, k - 1))
    reason = "sets of one size are ordered rightly by one score a label"
    size, words = None, ""
    if isinstance(risk, ConstrainedRisk):
        if not risk.is_smooth:
            return None
        if risk.margin == "exponential":
            size, words = pairs + log(2.0), "2 kappa sqrt(t)"
        else:
            size = pairs + (log(2.0) + log_others) / 2.0
            words = "kappa sqrt(2 C(l-2, k-1) t)"
    elif risk.q == 0.0:
        size = pairs + (log(2.0) + log(comb(labels, k))) / 2.0 - log_others
        words = "kappa sqrt(2 C(l, k) t) / C(l-2, k-1)"
    gamma = None
    if size is not None:
        needs = (COMPLETE, PREDICTED)
        gamma = Gamma(size, 0.5, words, AT_K.source, needs, log_unit=risk.log_unit(space.log_size))
    return Coverage(AT_K, gamma, reason)


def _relevance(target: Target, margin: str, space: Space) -> Coverage | None:
    labels = space.n_labels
    if _is_share_of_labels(target, space) and _is_whole_cube(space, constant=True):
        factor, exponent = BINARY[margin]
        weights = target.measure(labels, "loss").weights  # type: ignore
        if isinstance(target, Hamming) and target.weights is None:
            gamma = bound(BinaryRelevance(margin), space)
        else:
            largest = float(np.max(weights))
            inside = "2 w t" if factor > 1.0 else "w t"
            formula = f"sqrt({inside})" if exponent == 0.5 else inside
            gamma = Gamma(
                exponent * log(factor * largest), exponent, formula, RELEVANCE.source,
                (COMPLETE, "t is summed over the labels, and w the largest weight of one"),
            )  # fmt: skip
        return Coverage(RELEVANCE, gamma, "each label is a binary problem of its own")
    if margin == "hinge":
        return None
    even = isinstance(target, Hamming) and target.weights is None
    if (isinstance(target, PrecisionAtK | FBeta) or even) and _is_slice(space):
        k = int(space.sizes[0])
        pairs, gain = min(k, labels - k), 2.0 / labels if even else 1.0 / k
        root = "kappa t / 2" if margin == "squared_hinge" else "kappa t"
        words = f"{'2 ' if even else ''}sqrt({root}) / {'l' if even else 'k'}"
        half = 0.5 if margin == "squared_hinge" else 1.0
        gamma = Gamma(
            log(gain) + log(half * pairs) / 2.0, 0.5, words,
            RELEVANCE_AT_K.source,
            (COMPLETE, "t is summed over the labels", "the prediction is the k highest scores",
             *(("true label sets have k labels",) if isinstance(target, FBeta) else ())),
        )  # fmt: skip
        return Coverage(RELEVANCE_AT_K, gamma, "the scores are increasing in the marginals")
    if isinstance(target, Hamming | TreeDistance) and _holds_majorities(space):
        reason = "of true label sets in the space, the labels more likely than not are one of them"
        return Coverage(MAJORITY, None, reason)
    return None


def _likelihood(target: Target, space: Space, joint: bool, reason: str | None) -> Coverage | None:
    if reason is None and space.log_size <= log(MOST_SETS) + 1e-9:
        scored = ScoredSets.of(space, "joint" if joint else "labelwise")
        if lies_in_span(loss_matrix(target, scored.sets, scored.sets), scored.features):
            reason = "the expected loss of a prediction follows from the marginals"
    elif reason is None and isinstance(target, Hamming | TreeDistance | PrecisionAtK):
        reason = "the expected loss of a prediction follows from the marginals"
    if reason is None:
        return None
    needs = (COMPLETE, "true label sets lie in the space", LIKELIHOOD.assumptions[1])
    gamma = replace(LIKELIHOOD, assumptions=needs, theorem=MATCHING.source)
    return Coverage(MATCHING, gamma, reason)


def _is_share_of_labels(target: Target, space: Space) -> bool:
    """Whether the loss is a weighted share of the labels that differ, all of them being 1."""
    if not isinstance(target, Hamming | TreeDistance):
        return False
    return bool(abs(target.measure(space.n_labels, "loss").weights.sum() - 1.0) < 1e-9)


def _is_whole_cube(space: Space, constant: bool = False) -> bool:
    """Whether all label sets are there, weighed by the scores alone (or by them but a constant)."""
    if isinstance(space, Cube):
        return True
    if abs(space.log_size - space.n_labels * log(2.0)) > 1e-9 or space.log_size > log(MOST_SETS):
        return False
    scored = ScoredSets.of(space)
    return bool(np.ptp(scored.offset) < 1e-12) if constant else scored.offset_is_free


def _holds_majorities(space: Space) -> bool:
    """Whether the labels that more than half of the sets have, by any law, are always a set."""
    if isinstance(space, Paths):
        return int((space.parents < 0).sum()) == 1 and not space.leaves_only
    if not isinstance(space, Forest) or not space.closed:
        return False
    finite = space.potentials[space.parents >= 0]
    return bool((np.where(np.isfinite(finite), finite, 0.0) == 0.0).all())


def _is_slice(space: Space) -> bool:
    """Whether the space is all sets of one size, with a choice between labels."""
    return (
        isinstance(space, Sized) and len(space.sizes) == 1 and 0 < space.sizes[0] < space.n_labels
    )
