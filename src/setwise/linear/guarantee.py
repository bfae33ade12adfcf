"""What is proved about a trained combination of surrogate, space, target and decoder, in words.

Which theorem covers a surrogate with the most likely set is asked of `setwise.consistency`; here
are the sentences, and the bound of a likelihood with what is known of it after training.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from setwise.consistency.naming import chosen_surrogate
from setwise.consistency.theorems import covering
from setwise.linear.training import Training
from setwise.spaces.catalog import Catalog
from setwise.spaces.cube import Cube
from setwise.spaces.sized import Sized
from setwise.spaces.space import Space
from setwise.surrogates.binary_relevance import BinaryRelevance
from setwise.targets.hamming import Hamming
from setwise.targets.linear_fractional import FBeta
from setwise.targets.target import Target

LIKELIHOOD = (
    "Likelihood and minimum risk: where the law learnt has the mean divergence r = KL(p || s) from "
    "the true p(y | x), in nats, the regret of {target} is at most sqrt(2 r) (Pinsker's "
    "inequality), whatever the target and whether or not the model holds the truth. r is the mean "
    "log-loss on new rows less the entropy of p, so it is at most that log-loss; on the training "
    "rows the log-loss reached is {log_loss:.4f} nats.{outside}"
)
OUTSIDE = (
    " Label sets outside {space} have probability 0: where their true mass is m, the bound is "
    "2 m + sqrt(2 r), with r taken within it{unseen}."
)
UNSEEN = "; Good and Turing's estimate of m from the training rows is {mass:.3f}"
COVERED = "Consistent for {target} on {space}: {reason} ({source}). {rate}{shortfall}"
BOUND = "The regret of {target} is at most {gamma} at surrogate regret t{scales}. Assumed: {needs}."
NO_BOUND = (
    "The minimisers of the surrogate predict rightly for all measurable functions; no bound at "
    "positive regret is claimed."
)
AMONG = " {target} is decoded among the sets of {space}: the regret is that over them."
OTHER = "No theorem is known to cover a surrogate trained for {trained_for} and judged by {target}."
NONE = (
    "No theorem is known to cover {surrogate} for {target} on {space}, decoded by the {decoder}. "
    "(Those of Mao, Mohri and Zhong, 2024, need scores that reach every law over the label sets, "
    "and the most likely set.) On a small space, `setwise certify` looks for a counterexample."
)
NOT_CONVEX = " The objective is not convex, and the solver may have stopped short of its minimiser."
DECODERS = {
    "minimum_risk": "label set of least expected loss",
    "most_likely": "most likely set",
    "marginals": "marginals as though labels were independent",
}


def guarantee(
    training: Training,
    target: Target,
    space: Space,
    decoder: str,
    log_loss: float | None,
    unseen: float | None = None,
) -> str:
    """The sentences for a combination.

    ``log_loss`` is the mean one reached where a likelihood was trained, ``unseen`` the estimated
    mass of label sets never seen.
    """
    words = {
        "target": target, "space": space, "surrogate": training, "decoder": DECODERS[decoder],
    }  # fmt: skip
    on_cube = isinstance(space, Cube)
    trained_for = getattr(training.surrogate, "target", target)
    q = training.q_of_family
    likelihood = training.is_likelihood or training.is_separate
    if q == 0.0 and trained_for.form == target.form == "subset":
        likelihood, decoder = True, "minimum_risk"
    elif decoder == "marginals" and (on_cube or target.form == "additive"):
        decoder = "minimum_risk"
    if isinstance(target, Hamming) and (training.is_by_label or (likelihood and on_cube)):
        # On all label sets the likelihood is binary relevance with scores of half the size.
        margin = getattr(training.surrogate, "margin", "logistic")
        return _covered(BinaryRelevance(margin), training, target, space) or NONE.format(**words)
    best = decoder == "minimum_risk" or (decoder == "most_likely" and target.form == "subset")
    if likelihood and best:
        outside = ""
        if space.log_size < space.n_labels * np.log(2.0) - 1e-9:
            listed = isinstance(space, Catalog) and unseen is not None
            estimate = UNSEEN.format(mass=unseen) if listed else ""
            outside = OUTSIDE.format(space=space, unseen=estimate)
            everywhere = target.form in ("additive", "subset") or isinstance(target, FBeta)
            if not everywhere and not isinstance(space, Sized):
                outside += AMONG.format(**words)
        return LIKELIHOOD.format(**words, log_loss=log_loss, outside=outside)
    if decoder != "most_likely" or likelihood or training.is_by_label:
        return NONE.format(**words)
    if str(trained_for) != str(target):
        return OTHER.format(**words, trained_for=trained_for)
    return _covered(training.surrogate, training, target, space) or NONE.format(**words)


def _covered(surrogate: Any, training: Training, target: Target, space: Space) -> str | None:
    """The sentences of the theorem that covers a surrogate for the target, or None."""
    choice = replace(chosen_surrogate(surrogate, training.q), target=None)
    found = covering(target, choice, space)
    if found is None:
        return None
    rate, gamma = NO_BOUND, found.gamma
    if gamma is not None:
        needs = "; ".join(gamma.assumptions)
        rate = BOUND.format(target=target, gamma=gamma, scales=gamma.scales, needs=needs)
    shortfall = "" if training.is_convex else NOT_CONVEX
    return COVERED.format(
        target=target, space=space, reason=found.reason, source=found.theorem.source, rate=rate,
        shortfall=shortfall,
    )  # fmt: skip
