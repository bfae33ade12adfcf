"""What is proved about a trained combination of surrogate, space, target and decoder, in words.

`guarantee` finds which of `SENTENCES` hold and fills them in. Which theorem covers a surrogate with
the most likely set is asked of `setwise.consistency`. A theorem is claimed only where the surrogate
was trained for the very target it is judged by.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from setwise.consistency.naming import chosen_surrogate, in_words, is_same_target, loss_matrix
from setwise.consistency.theorems import MOST_INDEPENDENT, OF_CLASSES, REACHED, covering
from setwise.estimators.choice import DECODERS, lists_seen
from setwise.estimators.training import Training
from setwise.spaces.space import Space
from setwise.surrogates.binary_relevance import BinaryRelevance
from setwise.targets.arbitrary import ZeroOne
from setwise.targets.target import Target, beta_of, hierarchy_of, predicted_size

SENTENCES = {
    "likelihood": "Likelihood and minimum risk: where the law learnt has the mean divergence r = "
    "KL(p || s) from the true p(y | x), in nats, the regret of {target} is at most sqrt(2 r) "
    "(Pinsker's inequality), whatever the target and whether or not the model holds the truth. r "
    "is the mean log-loss on new rows less the entropy of p, so it is at most that log-loss; on "
    "the training rows the log-loss reached is {log_loss:.4f} nats.",
    "covered": "Consistent for {target} on {space}: {reason} ({source}).",
    "bound": "The regret of {target} is at most {gamma} at surrogate regret t{scales}. "
    "Assumed: {needs}.",
    "no bound": "The minimisers of the surrogate predict rightly for all measurable functions; no "
    "bound at positive regret is claimed.",
    "other": "No theorem is known to cover a surrogate trained for {trained_for} and judged by "
    "{target}.",
    "none": "No theorem is known to cover {surrogate} for {target} on {space}, decoded by the "
    "{decoder}. (Those of Mao, Mohri and Zhong, 2024, need scores that reach every law over the "
    "{sets}, and the {likely}.) On a small space, `setwise certify` looks for a "
    "counterexample.",
    "outside": "Label sets outside {space} have probability 0: where their true mass is m, the "
    "bound is 2 m + sqrt(2 r), with r taken within it{unseen}.",
    "among": "{target} is decoded among the sets of {space}: the regret is that over them.",
    "closed": "On closed sets one score a label does not reach every law: the logistic loss has a "
    "counterexample over three labels, parents [-1, 0, 0]. Covered there are "
    "'mean_absolute_error', and 'likelihood' with the set of least expected loss.",
    "not convex": "The objective is not convex, and the solver may have stopped short of its "
    "minimiser.",
    "several": "Labels have several parents: the distance is that of a spanning tree, which leaves "
    "out {left_out} edges; predicted, and the regret is over, are the sets closed under all.",
}
UNSEEN = "; Good and Turing's estimate of m from the training rows is {:.3f}"
CLASSES = "the share of wrong classes"
# Which sentences hold, and what they mention.
Found = tuple[list[str], dict[str, Any]]


def guarantee(
    training: Training,
    target: Any,
    space: Space,
    decoder: str,
    log_loss: float | None = None,
    unseen: float | None = None,
) -> str:
    """What is proved of label sets predicted for a target.

    ``log_loss`` is the mean one reached on the training rows, known where a likelihood was trained;
    ``unseen`` the estimated mass of label sets never seen, where the space lists those seen.
    """
    about = {
        "target": in_words(target), "space": space, "surrogate": training,
        "decoder": DECODERS[decoder], "likely": DECODERS["most_likely"], "sets": "label sets",
        "log_loss": log_loss,
        "unseen": UNSEEN.format(unseen) if lists_seen(space) and unseen is not None else "",
        "trained_for": in_words(training.trained_for),
        "left_out": len(getattr(target, "left_out", ())),
    }  # fmt: skip
    holds, more = _of_sets(training, target, space, decoder)
    return _said([*holds, "several"] if about["left_out"] else holds, about | more)


def guarantee_of_classes(
    training: Training, space: Space, n_classes: int, log_loss: float | None
) -> str:
    """What is proved for a one-dimensional y: of exclusive classes the most likely is predicted.

    It is judged by the share of wrong classes, or by what the surrogate was trained for where that
    is a multiple of it.
    """
    about = {
        "target": CLASSES, "space": f"{n_classes} classes", "surrogate": training,
        "decoder": "most likely class", "likely": "most likely class", "sets": "classes",
        "log_loss": log_loss,
    }  # fmt: skip
    holds, more = _of_classes(training, space)
    return _said(holds, about | more)


def _said(holds: list[str], about: dict[str, Any]) -> str:
    return " ".join(SENTENCES[key].format(**about) for key in holds)


def _of_sets(training: Training, target: Any, space: Space, decoder: str) -> Found:
    likelihood = trains_likelihood(training, space)
    if decoder == "marginals" and (space.is_independent or target.form == "additive"):
        decoder = "minimum_risk"
    # Whether the loss is a share of the labels that differ, weighted or not.
    plain = predicted_size(target) is None and hierarchy_of(target) is None
    is_share = target.form == "additive" and plain
    if is_share and (training.is_by_label or (likelihood and space.is_independent)):
        # On all label sets the likelihood is binary relevance with scores of half the size.
        margin = training.margin if training.is_by_label else "logistic"
        return _covered(BinaryRelevance(margin), training, target, space, {})
    best = decoder == "minimum_risk" or (decoder == "most_likely" and target.form == "subset")
    if likelihood and best:
        return ["likelihood", *_of_missing_sets(target, space)], {}
    if decoder != "most_likely" or training.is_likelihood or training.is_by_label:
        return ["none"], {}
    if not is_same_target(training.trained_for, target, space):
        return ["other"], {}
    holds, about = _covered(training.surrogate, training, target, space, {})
    if holds == ["none"] and hierarchy_of(target) and space.is_closed and not space.is_path:
        holds.append("closed")
    return holds, about


def _of_classes(training: Training, space: Space) -> Found:
    if training.is_by_label and not training.is_separate:
        return ["none"], {}
    if training.is_by_label or trains_likelihood(training, space, own_truths=True):
        return ["likelihood"], {}
    trained_for, sets = training.trained_for.on(space), space.enumerate()
    losses = loss_matrix(trained_for, sets, sets)
    share = float(losses[0, -1])
    if share == 0.0 or not np.array_equal(losses, share * (1.0 - np.eye(len(sets)))):
        return ["other"], {"trained_for": in_words(trained_for)}
    holds, about = _covered(training.surrogate, training, trained_for, space, OF_CLASSES)
    if share != 1.0:
        about["target"] = f"{in_words(trained_for)}, which is {share:.4g} times {CLASSES},"
    if training.q_of_family != 1.0 and len(sets) <= MOST_INDEPENDENT:
        # Of label sets this is said as their being affinely independent.
        about["reason"] = "each has a score of its own"
    return holds, about


def trains_likelihood(training: Training, space: Space, own_truths: bool = False) -> bool:
    """Whether a likelihood was trained: by name, label by label, or as the logistic subset loss.

    ``own_truths`` says that true label sets are those of the space.
    """
    if training.is_likelihood or training.is_separate:
        return True
    is_logistic = training.q_of_family == 0.0
    return is_logistic and is_same_target(training.trained_for, ZeroOne(), space, own_truths)


def _of_missing_sets(target: Any, space: Space) -> list[str]:
    """What to say of label sets that are not in the space."""
    if space.has_every_set:
        return []
    everywhere = target.form in ("additive", "subset") or beta_of(target) is not None
    return ["outside"] if everywhere or space.size_bias is not None else ["outside", "among"]


def _covered(
    surrogate: Any, training: Training, target: Target, space: Space, words: dict[str, str]
) -> Found:
    """The theorem that covers a surrogate for the target, if there is one.

    ``words`` has what to say in place of its own words.
    """
    choice = replace(chosen_surrogate(surrogate, training.q), target=None)
    found = covering(target.on(space), choice, space)
    if found is None:
        return ["none"], {}
    about: dict[str, Any] = {"source": found.theorem.source}
    about["reason"] = words.get(found.reason, found.reason)
    if found.gamma is not None:
        # That every law is reached has been established.
        needs = [words.get(need, need) for need in found.gamma.assumptions if need != REACHED]
        if hierarchy_of(target) and space.is_path:
            needs.append("every true label set is one of the paths")
        about |= {"gamma": found.gamma, "scales": found.gamma.scales, "needs": "; ".join(needs)}
    holds = ["covered", "no bound" if found.gamma is None else "bound"]
    return [*holds, *([] if training.is_convex else ["not convex"])], about
