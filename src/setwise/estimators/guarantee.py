"""What is proved about a trained combination of surrogate, space, target and decoder.

`claim` finds the facts: which theorem holds, with which bound, and under which conditions. `Claim`
puts them into words. Which theorem covers a surrogate with the most likely set is asked of
`setwise.consistency`. A theorem is claimed only where the surrogate was trained for the very target
it is judged by.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setwise.consistency.naming import chosen_surrogate, in_words, is_same_target, loss_matrix
from setwise.consistency.theorems import MOST_INDEPENDENT, REACHED, Coverage, covering
from setwise.estimators.choice import lists_seen
from setwise.estimators.training import Training
from setwise.spaces.space import Space
from setwise.surrogates.binary_relevance import BinaryRelevance
from setwise.targets.counts import ZeroOne
from setwise.targets.target import Target, beta_of, hierarchy_of, predicted_size

DECODERS = {
    "minimum_risk": "label set of least expected loss",
    "most_likely": "most likely set",
    "marginals": "marginals as though labels were independent",
}
CLASSES = "the share of wrong classes"
LIKELIHOOD = (
    "Likelihood and minimum risk: where the law learnt has the mean divergence r = KL(p || s) from "
    "the true p(y | x), in nats, the regret of {target} is at most sqrt(2 r) (Pinsker's "
    "inequality), whatever the target and whether or not the model holds the truth. r is the mean "
    "log-loss on new rows less the entropy of p, so it is at most that log-loss; on the training "
    "rows the log-loss reached is {log_loss:.4f} nats."
)
COVERED = "Consistent for {target} on {space}: {reason} ({source})."
BOUND = "The regret of {target} is at most {gamma} at surrogate regret t{scales}. Assumed: {needs}."
NO_BOUND = (
    "The minimisers of the surrogate predict rightly for all measurable functions; no bound at "
    "positive regret is claimed."
)
OTHER = "No theorem is known to cover a surrogate trained for {trained_for} and judged by {target}."
NONE = (
    "No theorem is known to cover {surrogate} for {target} on {space}, decoded by the {decoder}. "
    "(Those of Mao, Mohri and Zhong, 2024, need scores that reach every law over the label sets, "
    "and the most likely set.) On a small space, `setwise certify` looks for a counterexample."
)
# Conditions and remarks, in the order in which they are said.
REMARKS = {
    "outside": "Label sets outside {space} have probability 0: where their true mass is m, the "
    "bound is 2 m + sqrt(2 r), with r taken within it{unseen}.",
    "among": "{target} is decoded among the sets of {space}: the regret is that over them.",
    "closed": "On closed sets one score a label does not reach every law: the logistic loss has a "
    "counterexample over three labels, parents [-1, 0, 0]. Covered there are "
    "'mean_absolute_error', and 'likelihood' with the set of least expected loss.",
    "not_convex": "The objective is not convex, and the solver may have stopped short of its "
    "minimiser.",
    "several": "Labels have several parents: the distance is that of a spanning tree, which leaves "
    "out {left_out} edges; predicted, and the regret is over, are the sets closed under all.",
}
# A theorem about label sets is told of exclusive classes, sets of one label, in these words.
OF_CLASSES = {"label sets": "classes", "label set": "class", "likely set": "likely class"}
UNSEEN = "; Good and Turing's estimate of m from the training rows is {:.3f}"


@dataclass(frozen=True)
class Claim:
    """What is known of a combination: what holds (a key of `sentences`), of what, and remarks.

    ``about`` are the names that the sentences mention; ``coverage`` the theorem, where one of
    `setwise.consistency` holds.
    """

    holds: str
    about: dict[str, Any]
    coverage: Coverage | None = None
    remarks: tuple[str, ...] = ()
    needs: str = ""
    of_classes: bool = False

    def describe(self) -> str:
        """The facts in words."""
        said = [{"likelihood": LIKELIHOOD, "other": OTHER, "none": NONE}.get(self.holds, COVERED)]
        about = dict(self.about)
        if self.coverage is not None:
            gamma = self.coverage.gamma
            about |= {"reason": self.coverage.reason, "source": self.coverage.theorem.source}
            said.append(NO_BOUND if gamma is None else BOUND)
            if gamma is not None:
                about |= {"gamma": gamma, "scales": gamma.scales, "needs": self.needs}
        said += [REMARKS[remark] for remark in REMARKS if remark in self.remarks]
        words = " ".join(sentence.format(**about) for sentence in said)
        for of_sets, of_classes in OF_CLASSES.items() if self.of_classes else ():
            words = words.replace(of_sets, of_classes)
        return words


def claim(
    training: Training,
    target: Any,
    space: Space,
    decoder: str,
    log_loss: float | None = None,
    unseen: float | None = None,
) -> Claim:
    """What is proved of label sets predicted for a target.

    ``log_loss`` is the mean one reached on the training rows, known where a likelihood was trained;
    ``unseen`` the estimated mass of label sets never seen, where the space lists those seen.
    """
    unseen = unseen if lists_seen(space) else None
    about = {
        "target": in_words(target), "space": space, "surrogate": training,
        "decoder": DECODERS[decoder], "log_loss": log_loss,
        "unseen": "" if unseen is None else UNSEEN.format(unseen),
        "trained_for": in_words(_trained_for(training)),
        "left_out": len(getattr(target, "left_out", ())),
    }  # fmt: skip
    several = ("several",) if about["left_out"] else ()
    found = _claim(training, target, space, decoder, about)
    return replace(found, remarks=(*found.remarks, *several))


def _claim(
    training: Training, target: Any, space: Space, decoder: str, about: dict[str, Any]
) -> Claim:
    likelihood = trains_likelihood(training, space)
    if decoder == "marginals" and (space.is_independent or target.form == "additive"):
        decoder = "minimum_risk"
    if _is_share(target) and (training.is_by_label or (likelihood and space.is_independent)):
        # On all label sets the likelihood is binary relevance with scores of half the size.
        margin = getattr(training.surrogate, "margin", "logistic")
        return _covered(BinaryRelevance(margin), training, target, space, about)
    best = decoder == "minimum_risk" or (decoder == "most_likely" and target.form == "subset")
    if likelihood and best:
        return Claim("likelihood", about, remarks=_of_missing_sets(target, space))
    if decoder != "most_likely" or training.is_likelihood or training.is_by_label:
        return Claim("none", about)
    if not is_same_target(_trained_for(training), target, space):
        return Claim("other", about)
    found = _covered(training.surrogate, training, target, space, about)
    if found.coverage is None and hierarchy_of(target) and space.is_closed and not space.is_path:
        return replace(found, remarks=("closed",))
    return found


def claim_of_classes(
    training: Training, space: Space, n_classes: int, log_loss: float | None
) -> Claim:
    """What is proved for a one-dimensional y: of exclusive classes the most likely is predicted.

    It is judged by the share of wrong classes, or by what the surrogate was trained for where that
    is a multiple of it.
    """
    about = {
        "target": CLASSES, "space": f"{n_classes} classes", "surrogate": training,
        "decoder": "most likely class", "log_loss": log_loss,
    }  # fmt: skip
    return replace(_claim_of_classes(training, space, about), of_classes=True)


def _claim_of_classes(training: Training, space: Space, about: dict[str, Any]) -> Claim:
    if training.is_by_label and not training.is_separate:
        return Claim("none", about)
    if training.is_by_label or trains_likelihood(training, space, own_truths=True):
        return Claim("likelihood", about)
    trained_for, sets = _trained_for(training).on(space), space.enumerate()
    losses = loss_matrix(trained_for, sets, sets)
    share = float(losses[0, -1])
    if not np.array_equal(losses, share * (1.0 - np.eye(len(sets)))) or share == 0.0:
        return Claim("other", about | {"trained_for": in_words(trained_for)})
    if share != 1.0:
        about["target"] = f"{in_words(trained_for)}, which is {share:.4g} times {CLASSES},"
    found = _covered(training.surrogate, training, trained_for, space, about)
    if found.coverage is None or training.q_of_family == 1.0 or len(sets) > MOST_INDEPENDENT:
        return found
    # Of label sets this is said as their being affinely independent.
    return replace(found, coverage=replace(found.coverage, reason="each has a score of its own"))


def trains_likelihood(training: Training, space: Space, own_truths: bool = False) -> bool:
    """Whether a likelihood was trained: by name, label by label, or as the logistic subset loss.

    ``own_truths`` says that true label sets are those of the space.
    """
    if training.is_likelihood or training.is_separate:
        return True
    if training.q_of_family != 0.0:
        return False
    return is_same_target(_trained_for(training), ZeroOne(), space, own_truths)


def _trained_for(training: Training) -> Target:
    return getattr(training.surrogate, "target", training.target)


def _is_share(target: Any) -> bool:
    """Whether the loss is a share of the labels that differ, weighted or not."""
    plain = predicted_size(target) is None and hierarchy_of(target) is None
    return target.form == "additive" and plain


def _of_missing_sets(target: Any, space: Space) -> tuple[str, ...]:
    """What to say of label sets that are not in the space."""
    if space.log_size >= space.n_labels * np.log(2.0) - 1e-9:
        return ()
    everywhere = target.form in ("additive", "subset") or beta_of(target) is not None
    return ("outside",) if everywhere or space.size_bias is not None else ("outside", "among")


def _covered(
    surrogate: Any, training: Training, target: Target, space: Space, about: dict[str, Any]
) -> Claim:
    """The theorem that covers a surrogate for the target, if there is one."""
    choice = replace(chosen_surrogate(surrogate, training.q), target=None)
    found = covering(target.on(space), choice, space)
    if found is None:
        return Claim("none", about)
    needs = ""
    if found.gamma is not None:
        # That every law is reached has been established.
        needs = "; ".join(need for need in found.gamma.assumptions if need != REACHED)
        if hierarchy_of(target) and space.is_path:
            needs += "; every true label set is one of the paths"
    remarks = () if training.is_convex else ("not_convex",)
    return Claim("covered", about, found, remarks, needs)
