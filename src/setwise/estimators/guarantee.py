"""What is proved about a trained combination of surrogate, space, target and decoder, in words.

Which theorem covers a surrogate with the most likely set is asked of `setwise.consistency`; here
are the sentences, and the bound of a likelihood with what is known of it after training. A theorem
is claimed only where the surrogate was trained for the very target it is judged by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from setwise.consistency.bounds import REACHED
from setwise.consistency.naming import chosen_surrogate, in_words, is_same_target, loss_matrix
from setwise.consistency.theorems import covering
from setwise.estimators.training import Training
from setwise.spaces.catalog import Catalog
from setwise.spaces.cube import Cube
from setwise.spaces.forest import Forest
from setwise.spaces.paths import Paths
from setwise.spaces.sized import Sized
from setwise.spaces.space import Space
from setwise.surrogates.binary_relevance import BinaryRelevance
from setwise.targets.hamming import Hamming
from setwise.targets.linear_fractional import FBeta
from setwise.targets.target import Target
from setwise.targets.tree_distance import TreeDistance
from setwise.targets.zero_one import ZeroOne

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
CLOSED = (
    " On closed sets one score a label does not reach every law: the logistic loss has a "
    "counterexample over three labels, parents [-1, 0, 0]. Covered there are "
    "'mean_absolute_error', and 'likelihood' with the set of least expected loss."
)
SEVERAL = (
    " Labels have several parents: the distance is that of a spanning tree, which leaves out "
    "{left_out} edges; predicted, and the regret is over, are the sets closed under all."
)
NOT_CONVEX = " The objective is not convex, and the solver may have stopped short of its minimiser."
CLASSES = "the share of wrong classes"
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
    log_loss: Callable[[], float] | None,
    unseen: float | None = None,
) -> str:
    """The sentences for a combination.

    ``log_loss`` computes the mean one reached on the training rows, asked for only where a
    likelihood was trained; ``unseen`` is the estimated mass of label sets never seen.
    """
    said = _guarantee(training, target, space, decoder, log_loss, unseen)
    if isinstance(target, TreeDistance) and len(target.left_out):
        said += SEVERAL.format(left_out=len(target.left_out))
    return said


def _guarantee(
    training: Training,
    target: Target,
    space: Space,
    decoder: str,
    log_loss: Callable[[], float] | None,
    unseen: float | None,
) -> str:
    words = {
        "target": in_words(target), "space": space, "surrogate": training,
        "decoder": DECODERS[decoder],
    }  # fmt: skip
    on_cube = isinstance(space, Cube)
    trained_for = getattr(training.surrogate, "target", training.target)
    likelihood = _is_likelihood(training, trained_for, space)
    if decoder == "marginals" and (on_cube or target.form == "additive"):
        decoder = "minimum_risk"
    if isinstance(target, Hamming) and (training.is_by_label or (likelihood and on_cube)):
        # On all label sets the likelihood is binary relevance with scores of half the size.
        margin = getattr(training.surrogate, "margin", "logistic")
        said = _covered(BinaryRelevance(margin), training, target, space, words)
        return said or NONE.format(**words)
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
        return LIKELIHOOD.format(**words, log_loss=log_loss and log_loss(), outside=outside)
    if decoder != "most_likely" or training.is_likelihood or training.is_by_label:
        return NONE.format(**words)
    if not is_same_target(trained_for, target, space):
        return OTHER.format(**words, trained_for=in_words(trained_for))
    none = NONE.format(**words)
    if isinstance(target, TreeDistance) and isinstance(space, Forest) and space.closed:
        none += CLOSED
    return _covered(training.surrogate, training, target, space, words) or none


def guarantee_of_classes(
    training: Training, space: Space, n_classes: int, log_loss: Callable[[], float]
) -> str:
    """The sentences for a one-dimensional y: of exclusive classes the most likely is predicted.

    It is judged by the share of wrong classes, or by what the surrogate was trained for where that
    is a multiple of it.
    """
    words = {
        "target": CLASSES, "space": f"{n_classes} classes", "surrogate": training,
        "decoder": "most likely class",
    }  # fmt: skip
    trained_for = getattr(training.surrogate, "target", training.target)
    if training.is_by_label or _is_likelihood(training, trained_for, space, own_truths=True):
        if training.is_by_label and not training.is_separate:
            return NONE.format(**words).replace("label sets", "classes")
        return LIKELIHOOD.format(**words, log_loss=log_loss(), outside="")
    trained_for, sets = trained_for.on(space), space.enumerate()
    losses = loss_matrix(trained_for, sets, sets)
    share = float(losses[0, -1])
    if not np.array_equal(losses, share * (1.0 - np.eye(len(sets)))) or share == 0.0:
        return OTHER.format(**words, trained_for=in_words(trained_for))
    if share != 1.0:
        words["target"] = f"{in_words(trained_for)}, which is {share:.4g} times {CLASSES},"
    said = _covered(training.surrogate, training, trained_for, space, words) or NONE.format(**words)
    said = said.replace(f"the {n_classes} label sets are affinely independent", "each has a score")
    return said.replace("label sets", "classes").replace("most likely set", "most likely class")


def _is_likelihood(
    training: Training, trained_for: Target, space: Space, own_truths: bool = False
) -> bool:
    """Whether a likelihood was trained: by name, label by label, or as the logistic subset loss."""
    if training.is_likelihood or training.is_separate:
        return True
    return training.q_of_family == 0.0 and is_same_target(trained_for, ZeroOne(), space, own_truths)


def _covered(
    surrogate: Any, training: Training, target: Target, space: Space, words: dict[str, Any]
) -> str | None:
    """The sentences of the theorem that covers a surrogate for the target, or None."""
    choice = replace(chosen_surrogate(surrogate, training.q), target=None)
    found = covering(target.on(space), choice, space)
    if found is None:
        return None
    rate, gamma = NO_BOUND, found.gamma
    if gamma is not None:
        # That every law is reached has been established.
        needs = "; ".join(need for need in gamma.assumptions if need != REACHED)
        if isinstance(target, TreeDistance) and isinstance(space, Paths):
            needs += "; every true label set is one of the paths"
        rate = BOUND.format(**words, gamma=gamma, scales=gamma.scales, needs=needs)
    shortfall = "" if training.is_convex else NOT_CONVEX
    return COVERED.format(
        **words, reason=found.reason, source=found.theorem.source, rate=rate, shortfall=shortfall
    )
