"""Which theorem covers a combination, and the bounds: the paper's, and those proved here.

"The paper" is Mao, Mohri, Zhong: Multi-Label Learning with Stronger Consistency Guarantees. Its
theorems are numbered as their source counts them, definitions, corollaries and lemmas included.
Some theorems of ``theorems.toml`` are the paper's, where the assumption of its proofs holds; the
others are proved there in a few lines. What none covers is not covered: `covering` returns None.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from importlib.resources import files
from math import comb, log
from typing import Any

import numpy as np

from setwise.consistency.conditional import MOST_SETS, Kind, Weights
from setwise.consistency.naming import Choice, chosen_surrogate, is_same_target, loss_matrix
from setwise.consistency.verdicts import Gamma
from setwise.spaces.space import Space
from setwise.surrogates.names import DEFAULT_Q
from setwise.targets.target import (
    Target,
    follows_from_marginals,
    is_hamming,
    is_linear_at_size,
    label_weights,
)

COMPLETE = (
    "scores are all measurable functions, or complete at each input, with the minimizability gaps "
    "then added to both regrets"
)
REACHED = (
    "every distribution over the label sets is reached by some scores: a score for each set, or "
    "label sets that are affinely independent"
)
PREDICTED = "the prediction is the most likely set"
EXPOSED = "every label set is exposed by some scores"
# What is said of exclusive classes, sets of one label, in place of that.
OF_CLASSES = {
    PREDICTED: "the prediction is the most likely class",
    EXPOSED: "every class is exposed by some scores",
}
SUMMED = "t is summed over the labels"
OWN = "proved here"
# Binary margins: the bound on the 0/1 regret by the margin's is (factor t)^exponent.
BINARY = {
    "logistic": (2.0, 0.5), "exponential": (2.0, 0.5), "squared_hinge": (1.0, 0.5),
    "hinge": (1.0, 1.0),
}  # fmt: skip
LIKELIHOOD = Gamma(
    log(2.0) / 2.0, 0.5, "sqrt(2 t)", "Pinsker's inequality",
    (
        "t is the divergence KL(p || s) in nats: log-loss above the entropy of p, misspecification "
        "included",
        "the prediction has the least expected loss under s",
    ),
)  # fmt: skip
# Whether label sets are affinely independent is looked at for no more than this many.
MOST_INDEPENDENT = 1024


@dataclass(frozen=True)
class Theorem:
    """A statement, its source and the idea of its proof; ``key`` is how tables refer to it.

    Examples
    --------
    >>> [theorem.key for theorem in THEOREMS][:3]
    ['R', 'C', 'A']
    >>> THEOREMS[0].source
    'Theorem 9 (section 6) of Mao, Mohri and Zhong (2024); q = 0 is their Theorem 7'
    """

    key: str
    statement: str
    source: str
    proof: str


_TEXT = files("setwise.consistency").joinpath("theorems.toml").read_text("utf-8")
BY_KEY = {key: Theorem(key, **words) for key, words in tomllib.loads(_TEXT).items()}
THEOREMS = tuple(BY_KEY.values())


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

    def covered(key: str, gamma: Gamma | None, reason: str) -> Coverage:
        return Coverage(BY_KEY[key], gamma, reason)

    if space.has_at_most(1):
        return covered("O", None, "there is no other label set")
    if choice.target is not None:
        return None
    if choice.is_likelihood:
        reason = _matched(target, space, scores)
        needs = (COMPLETE, "true label sets lie in the space", LIKELIHOOD.assumptions[1])
        gamma = replace(LIKELIHOOD, theorem=BY_KEY["L"].source, assumptions=needs)
        return None if reason is None else covered("L", gamma, reason)
    # Arguments by slopes hold for all but hinges and the rho margin.
    is_smooth, labels = choice.margin not in ("hinge", "rho"), space.n_labels
    weights = label_weights(target, labels)
    is_share = weights is not None and abs(float(weights.sum()) - 1.0) < 1e-9
    if choice.costs is not None:
        same = _is_cube(space, even=True) and is_same_target(choice.costs, target, space)
        why = "each label is a binary problem of its own, weighed as it is judged"
        return covered("B", None, why) if same else None
    if choice.by_label:
        if weights is not None and is_share and _is_cube(space, even=True):
            gamma = _relevance_bound(choice, labels, None if is_hamming(target) else weights.max())
            return covered("B", gamma, "each label is a binary problem of its own")
        k = _common_size(space)
        if is_smooth and k and (is_hamming(target) or _is_precision(target, labels, k)):
            gamma = _relevance_at_k_bound(target, choice, labels, k)
            return covered("P", gamma, "the scores are increasing in the marginals")
        if is_smooth and weights is not None and _holds_majorities(space):
            why = "of true label sets in the space, the labels more likely than not are one of them"
            return covered("M", None, why)
        return None
    if choice.q == 1.0:
        gamma = replace(bound_of(choice, space), assumptions=(COMPLETE, PREDICTED))
        return covered("A", gamma, EXPOSED)
    if (reason := _reached(space, scores)) is not None:
        has_rate = choice.q is None or not -1.0 < choice.q < 0.0
        gamma = bound_of(choice, space) if has_rate else None
        if gamma is not None and choice.margin == "squared_hinge":
            own = {"formula": "sqrt(2 t)", "theorem": BY_KEY["C"].source}
            gamma = replace(gamma, log_coefficient=log(2.0) / 2.0, **own)
        return covered("C" if choice.q is None else "R", gamma, reason)
    if is_smooth and is_share and _is_cube(space, even=False):
        why = "the share of wrong labels is decided label by label"
        return covered("H", _hamming_bound(choice, space), why)
    if is_smooth and follows_from_marginals(target, labels) and _is_cube(space, even=False):
        return covered("H", None, "what labels cost is decided label by label")
    k = _common_size(space)
    if is_smooth and k and is_linear_at_size(target, labels):
        why = "sets of one size are ordered rightly by one score a label"
        return covered("K", _at_k_bound(choice, space, k), why)
    return None


# --------------------------------------------------------------------------------------- facts


def _matched(target: Target, space: Space, scores: Kind) -> str | None:
    """Why the best law of a likelihood serves the target as well as the true one, or None."""
    if (reached := _reached(space, scores)) is not None:
        return reached
    follows = follows_from_marginals(target, space.n_labels)
    if space.has_at_most(MOST_SETS):
        sets = space.enumerate()
        follows = Weights.of(space).span(loss_matrix(target, sets, sets))
    return "the expected loss of a prediction follows from the marginals" if follows else None


def _reached(space: Space, scores: Kind) -> str | None:
    """Why scores reach every law over the label sets, or None."""
    if scores == "joint" or space.is_joint:
        return "every label set has a score of its own"
    if space.is_path:
        return "one score per node reaches every distribution over paths"
    most = min(space.n_labels + 1, MOST_INDEPENDENT)
    if not space.has_at_most(most) or not Weights.of(space).reaches_every_law:
        return None
    return f"the {round(np.exp(space.log_size))} label sets are affinely independent"


def _is_cube(space: Space, even: bool) -> bool:
    """Whether all label sets are there, ``even`` without a bias, or with one scores absorb."""
    if space.is_independent:
        return True
    if not (space.has_every_set and space.has_at_most(MOST_SETS)):
        return False
    weights = Weights.of(space)
    return bool(np.ptp(weights.offset) < 1e-12) if even else weights.span(weights.offset.T)


def _common_size(space: Space) -> int | None:
    """k where the space is all sets of k labels, none raised, 0 < k < l."""
    labels, sizes = space.n_labels, space.sizes
    if len(sizes) != 1 or not 0 < sizes[0] < labels:
        return None
    is_full = abs(space.log_size - log(comb(labels, int(sizes[0])))) < 1e-9
    return int(sizes[0]) if space.is_even and is_full else None


def _is_precision(target: Target, labels: int, k: int) -> bool:
    """Whether the loss falls by 1/k with each right label among k, for true sets of k labels.

    A sum over labels has to do so for true sets of every size: recall@k does not.
    """
    measure: Any = target.measure(labels, "loss")
    if target.form == "linear_fractional":
        below = measure.denominator @ [1, 0, k, k, labels - 2 * k]
        fall = -(measure.numerator @ [0, 1, -1, -1, 1])
        falls = below > 0.0 and abs(k * fall - below) <= 1e-12 * below
        return bool(falls) and is_linear_at_size(target, labels)
    if not follows_from_marginals(target, labels):
        return False
    (rejected, wrong), (missed, found) = measure.values
    fall = measure.scale(np.ones(1)) * (missed + wrong - rejected - found)
    return bool((np.abs(k * fall - 1.0) <= 1e-12).all())


def _holds_majorities(space: Space) -> bool:
    """Whether the labels that more than half of the sets have, by any law, are always a set."""
    raised = space.parameters
    if raised[np.isfinite(raised)].any():
        return False
    if space.is_path:
        parents, leaves_only = space.parents, space.leaves_only  # type: ignore
        return int((parents < 0).sum()) == 1 and not leaves_only
    return space.is_closed


# -------------------------------------------------------------------------------------- bounds


def bound(
    surrogate: Any, space: Space | None = None, *, q: float = DEFAULT_Q, as_printed: bool = False
) -> Gamma:
    """The paper's bound for a surrogate by name or as an object, on the paper's scale.

    Binary relevance bounds Hamming loss, a share of the l labels: Gamma(t / l) for the binary
    Gamma. Generalised cross-entropy and mean absolute error depend on the number n of label sets,
    so need the space. A likelihood with minimum-risk decoding: sqrt(2 t), t the divergence
    KL(p || s) in nats.

    Parameters
    ----------
    surrogate : str or Surrogate
    space : Space, optional
        The label sets, where the bound or its other scale depends on them.
    q : float, default 0.7
        Member of the generalised cross-entropy by name.
    as_printed : bool, default False
        The constant as printed where that is a slip: sqrt(l t) in place of sqrt(2 l t) for the
        raw Hamming count with the logistic margin (Corollary 4).

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> print(bound("mean_absolute_error", Cube(3)))
    n t = 8 t
    >>> print(bound("binary_relevance", Cube(4)))
    sqrt(2 t / l) = 0.7071 sqrt(t)
    """
    choice = chosen_surrogate(surrogate, q)
    gamma = bound_of(choice, space if space is not None else choice.space)
    if not as_printed:
        return gamma
    if choice.margin != "logistic":
        raise ValueError(f"the paper prints no constant of its own for {choice}")
    return replace(
        gamma, log_coefficient=gamma.log_coefficient - log(2.0) / 2.0, formula="sqrt(t / l)",
        theorem="Corollary 4 (section 3) as printed, which is false",
    )  # fmt: skip


def bound_of(choice: Choice, space: Space | None) -> Gamma:
    """The paper's bound for a chosen surrogate: see `bound`."""
    q, margin = choice.q, choice.margin
    if choice.is_likelihood:
        return LIKELIHOOD
    if choice.costs is not None:
        raise ValueError(f"the paper has no bound for {choice}, whose errors have costs")
    if q is not None and -1.0 < q < 0.0:
        raise ValueError(f"the paper has no bound for q = {q:g}; it has for q = -1 and 0 <= q <= 1")
    if space is None and (choice.by_label or (q is not None and q > 0.0)):
        number = "labels" if choice.by_label else "label sets"
        raise ValueError(f"the bound of {choice} depends on the number of {number}: pass a space")
    log_size, labels = (0.0, 1) if space is None else (space.log_size, space.n_labels)
    if choice.by_label:
        return _relevance_bound(choice, labels)
    size, exponent, formula, theorem = log(2.0), 0.5, "2 sqrt(t)", "Theorem 9 (section 6)"
    if q is None:
        theorem = "Theorem 12 (appendix A)"
        formula = "2 sqrt(L_max t)" if margin == "exponential" else formula
        if margin in ("hinge", "rho"):
            size, exponent, formula = 0.0, 1.0, "t"
    elif q == 0.0:
        theorem = "Theorem 7 (section 5)"
    elif q == 1.0:
        size, exponent, formula = log_size, 1.0, "n t"
    elif q > 0.0:
        size, formula = size + q * log_size / 2.0, f"2 sqrt(n^{q:g} t)"
    needs = (COMPLETE, REACHED, PREDICTED)
    return Gamma(size, exponent, formula, theorem, needs, log_unit=choice.log_unit(log_size))


def _relevance_bound(choice: Choice, labels: int, heaviest: float | None = None) -> Gamma:
    """l Gamma(t / l) for the count of wrong labels, so Gamma(t / l) for their share.

    For a weighted share Gamma(w t), w the weight of the ``heaviest`` label.
    """
    factor, exponent = BINARY[str(choice.margin)]
    share, source = "t / l", "Theorem 3 (section 3)"
    needs = (COMPLETE, SUMMED, "the prediction is the sign of the scores")
    if heaviest is not None:
        share, source = "w t", BY_KEY["B"].source
        needs = (COMPLETE, f"{SUMMED}, and w the largest weight of one")
    size = exponent * log(factor / labels if heaviest is None else factor * heaviest)
    inside = f"2 {share}" if factor == 2.0 else share
    formula = f"sqrt({inside})" if exponent == 0.5 else inside
    return Gamma(size, exponent, formula, source, needs)


def _relevance_at_k_bound(target: Target, choice: Choice, labels: int, k: int) -> Gamma:
    """Of binary relevance on sets of k labels, for Hamming loss and precision@k."""
    even, half = is_hamming(target), 0.5 if choice.margin == "squared_hinge" else 1.0
    root = "sqrt(kappa t / 2)" if half < 1.0 else "sqrt(kappa t)"
    size = log(2.0 / labels if even else 1.0 / k) + log(half * min(k, labels - k)) / 2.0
    own = () if target.form == "additive" else ("true label sets have k labels",)
    needs = (COMPLETE, SUMMED, "the prediction is the k highest scores", *own)
    return Gamma(size, 0.5, f"2 {root} / l" if even else f"{root} / k", OWN, needs)


def _hamming_bound(choice: Choice, space: Space) -> Gamma:
    """For Hamming loss on the cube, one label after the other: sqrt(factor l t e^power)."""
    q, log_count = choice.q, space.log_size
    if q is not None and q > 0.0:
        factor, power, over = 8.0, -(1.0 - q) * log(2.0), f"2^{1.0 - q:g}"
    elif q is not None and q < 0.0:
        factor, power, over = 8.0 * (1.0 - q), -(1.0 - q) * log_count, f"n^{1.0 - q:g}"
    else:
        factor = 4.0 if q == 0.0 else 8.0 if choice.margin == "exponential" else 2.0
        power, over = -log_count, "n"
    size = (log(factor * space.n_labels) + power) / 2.0
    return _root(choice, space, size, f"sqrt({factor:g} l t / {over})")


def _at_k_bound(choice: Choice, space: Space, k: int) -> Gamma | None:
    """On sets of k labels: pairs in the wrong order are at most kappa = min(k, l - k)."""
    labels = space.n_labels
    pairs, log_others = log(min(k, labels - k)), log(comb(labels - 2, k - 1))
    if choice.margin == "exponential":
        return _root(choice, space, pairs + log(2.0), "2 kappa sqrt(t)")
    if choice.margin == "squared_hinge":
        size = pairs + (log(2.0) + log_others) / 2.0
        return _root(choice, space, size, "kappa sqrt(2 C(l-2, k-1) t)")
    if choice.q != 0.0:
        return None
    size = pairs + (log(2.0) + log(comb(labels, k))) / 2.0 - log_others
    return _root(choice, space, size, "kappa sqrt(2 C(l, k) t) / C(l-2, k-1)")


def _root(choice: Choice, space: Space, log_coefficient: float, formula: str) -> Gamma:
    unit = choice.log_unit(space.log_size)
    return Gamma(log_coefficient, 0.5, formula, OWN, (COMPLETE, PREDICTED), log_unit=unit)
