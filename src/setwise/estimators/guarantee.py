"""What is proved about a trained combination of surrogate, space, target and decoder.

Each rule here gives a `Claim`. Which theorem covers a surrogate with the most likely set is asked
of `setwise.consistency`. A theorem is claimed only where the surrogate was trained for the very
target it is judged by, exactly, and with scores that nothing confines.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from setwise.consistency.naming import chosen_surrogate, in_words, is_same_target, loss_matrix
from setwise.consistency.population import rounds_may_fail
from setwise.consistency.theorems import (
    BY_KEY,
    COMPLETE,
    MOST_INDEPENDENT,
    OF_CLASSES,
    REACHED,
    covering,
)
from setwise.decoders.for_target import HeldOut, Together
from setwise.estimators.choice import DECODERS, lists_seen
from setwise.estimators.claim import NOTHING, OUTSIDE, UNSEEN, Claim
from setwise.estimators.training import Training
from setwise.spaces.space import Space
from setwise.surrogates.binary_relevance import BinaryRelevance
from setwise.targets.arbitrary import ZeroOne
from setwise.targets.target import (
    Target,
    beta_of,
    follows_from_marginals,
    hierarchy_of,
    predicted_size,
    rates_mean,
)

CLASSES = "the share of wrong classes"
# Who showed that thresholds on the marginals are best for a measure of all rows.
QUOTIENTS = "Koyejo, Natarajan, Ravikumar and Dhillon, 2015, for quotients of the counts"
RATES = "Menon, Narasimhan, Agarwal and Chawla, 2013, for the mean of the two rates of a label"
G_MEANS = "Narasimhan, Vaish and Agarwal, 2014, for functions that rise in both rates of a label"
BY_RATES = {None: QUOTIENTS, "arithmetic": RATES, "geometric": G_MEANS}


def claim_of_sets(
    training: Training, target: Any, space: Space, decoder: str,
    features: Any = None, fit_intercept: bool = True, unseen: float | None = None,
) -> Claim:  # fmt: skip
    """What is proved of label sets predicted for a target.

    ``features`` are those of the labels, if scores are their combinations; ``unseen`` the estimated
    mass of label sets never seen, where the space lists those seen.
    """
    left_out = len(getattr(target, "left_out", ()))
    about = {
        "target": in_words(target), "space": space, "surrogate": training,
        "decoder": DECODERS[decoder], "likely": DECODERS["most_likely"], "sets": "label sets",
        "trained_for": in_words(training.trained_for),
        "left_out": left_out, "outside": OUTSIDE.format(space),
    }  # fmt: skip
    if lists_seen(space) and unseen is not None:
        about["outside"] += UNSEEN.format(unseen)
    found = _of_sets(training, target, space, decoder)
    found = _limited(found, training, space, features, fit_intercept)
    if found.kind == "nothing" and "undecoded" not in found.holds:
        found = _bounded(training, target, space, decoder) or found
    found = replace(found, about=about | found.about)
    return found.saying("several") if left_out else found


def claim_of_population(decoder: Together, rows: HeldOut | None) -> Claim:
    """What is proved of a rule for a measure of all rows, fitted to rows held out or to none."""
    rule: Any = decoder.rule
    target: Any = decoder.target
    about = {"target": in_words(target), "source": BY_RATES[rates_mean(target.of)]}
    if rule.budget is not None or rule.at_most is not None:
        return Claim("nothing", ("budget",), about)
    if rows is None or decoder.depends_on_batch:
        return Claim("thresholds", ("thresholds", "batch"), about)
    about |= {"n_rows": rows.sets.shape[0], "rule": rule.rule_}
    how = {"thresholds": "swept", "micro_macro": "smoothed"}.get(rule.rule_, "grows")
    return Claim("thresholds", ("thresholds", "fitted", how), about)


def claim_of_marginals(target: Any, n_labels: int, is_class: bool) -> Claim:
    """What is proved of decisions from the probabilities of labels, taken as independent."""
    enough = is_class or follows_from_marginals(target, n_labels)
    about = {"target": CLASSES if is_class else in_words(target)}
    return Claim("nothing", ("marginals" if enough else "independent",), about)


def claim_of_shortlists(target: Any, n_labels: int, floor: float) -> Claim:
    """What is proved of decisions from the labels above a floor and the sum of the others."""
    about = {"target": in_words(target), "floor": floor}
    enough = follows_from_marginals(target, n_labels) and floor <= 0.5
    return Claim("nothing", ("marginals" if enough else "shortlists",), about)


def claim_of_catalog(target: Any, is_class: bool, over_all: bool) -> Claim:
    """What is proved of decisions from the probabilities of listed label sets.

    ``over_all`` says that all label sets may be predicted, not only the listed ones.
    """
    listed = "the list of label sets that were seen"
    about = {
        "target": CLASSES if is_class else in_words(target), "bound": "m + (1 - m) sqrt(2 r)",
        "outside": OUTSIDE.format(listed), "space": listed,
    }  # fmt: skip
    return Claim("bounded", ("bounded",) if is_class or over_all else ("bounded", "among"), about)


def claim_of_costs(target: Any) -> Claim:
    """What is proved of decisions by scores trained for the costs of a measure of all rows."""
    why_not = rounds_may_fail(target)
    about: dict[str, Any] = {"target": in_words(target), "why_not": why_not}
    about |= {"complete": COMPLETE, "source": BY_KEY["V"].source}
    holds = "costs" if why_not is None else "rounds"
    return Claim("consistent" if why_not is None else "nothing", (holds,), about)


def claim_of_classes(
    training: Training, space: Space, n_classes: int,
    features: Any = None, fit_intercept: bool = True,
) -> Claim:  # fmt: skip
    """What is proved for a one-dimensional y: of exclusive classes the most likely is predicted.

    It is judged by the share of wrong classes, or by what the surrogate was trained for where that
    is a multiple of it.
    """
    about = {
        "target": CLASSES, "space": f"{n_classes} classes", "surrogate": training,
        "decoder": "most likely class", "likely": "most likely class", "sets": "classes",
    }  # fmt: skip
    found = _limited(_of_classes(training, space), training, space, features, fit_intercept)
    return replace(found, about=about | found.about)


def claim_of_mixture(
    target: Any, n_labels: int, is_class: bool, has_sizes: bool, is_list: bool
) -> Claim:
    """What is proved of predictions by a mixture of laws.

    ``has_sizes`` and ``is_list`` say that all laws have P(label, size), and that all are lists:
    what the set of least expected loss is found by where marginals are not enough.
    """
    about = {
        "target": CLASSES if is_class else in_words(target), "bound": "m + (1 - m) sqrt(2 r)",
        "outside": OUTSIDE.format("the label sets that a member gives a probability"),
        "space": "a list of a member", "surrogate": "a mixture", "sets": "label sets",
        "decoder": DECODERS["marginals"], "likely": DECODERS["most_likely"],
    }  # fmt: skip
    by_sizes = predicted_size(target) is not None or beta_of(target) is not None
    everywhere = (
        is_class
        or follows_from_marginals(target, n_labels)
        or (by_sizes and (has_sizes or is_list))
        or (target.form == "subset" and is_list)
    )
    if not (everywhere or is_list):
        return replace(NOTHING, about=about)
    return Claim("bounded", ("bounded",) if everywhere else ("bounded", "among"), about)


def _of_sets(training: Training, target: Any, space: Space, decoder: str) -> Claim:
    likelihood = trains_likelihood(training, space)
    # Whether the loss is a share of the labels that differ, weighted or not.
    plain = predicted_size(target) is None and hierarchy_of(target) is None
    is_share = target.form == "additive" and plain
    if training.costs is not None:
        found = _covered(training.surrogate, training, target, space, {})
        bounded = _bounded(training, target, space, decoder)
        return found if found.kind == "consistent" else bounded or NOTHING
    if is_share and (training.is_by_label or (likelihood and space.is_independent)):
        # On all label sets the likelihood is binary relevance with scores of half the size.
        margin = training.margin if training.is_by_label else "logistic"
        return _covered(BinaryRelevance(margin), training, target, space, {})
    if (bounded := _bounded(training, target, space, decoder)) is not None:
        return bounded
    if decoder != "most_likely" or training.is_likelihood or training.is_by_label:
        return NOTHING.saying("undecoded") if likelihood else NOTHING
    if not is_same_target(training.trained_for, target, space):
        return Claim("nothing", ("other",))
    found = _covered(training.surrogate, training, target, space, {})
    is_closed = hierarchy_of(target) and space.is_closed and not space.is_path
    return found.saying("closed") if found.kind == "nothing" and is_closed else found


def _of_classes(training: Training, space: Space) -> Claim:
    if training.is_by_label and not training.is_separate:
        return NOTHING
    if training.is_by_label or trains_likelihood(training, space, own_truths=True):
        return Claim("bounded", ("bounded",), {"bound": "sqrt(2 r)", "outside": ""})
    trained_for, sets = training.trained_for.on(space), space.enumerate()
    losses = loss_matrix(trained_for, sets, sets)
    share = float(losses[0, -1])
    if share == 0.0 or not np.array_equal(losses, share * (1.0 - np.eye(len(sets)))):
        return Claim("nothing", ("other",), {"trained_for": in_words(trained_for)})
    about = {}
    if share != 1.0:
        about["target"] = f"{in_words(trained_for)}, which is {share:.4g} times {CLASSES},"
    if training.q_of_family != 1.0 and len(sets) <= MOST_INDEPENDENT:
        # Of label sets this is said as their being affinely independent.
        about["reason"] = "each has a score of its own"
    found = _covered(training.surrogate, training, trained_for, space, OF_CLASSES)
    return found.saying(**about)


def trains_likelihood(training: Training, space: Space, own_truths: bool = False) -> bool:
    """Whether a likelihood was trained: by name, label by label, or as the logistic subset loss.

    ``own_truths`` says that true label sets are those of the space.
    """
    if training.is_likelihood or training.is_separate:
        return True
    is_logistic = training.q_of_family == 0.0
    return is_logistic and is_same_target(training.trained_for, ZeroOne(), space, own_truths)


def _bounded(training: Training, target: Any, space: Space, decoder: str) -> Claim | None:
    """The bound by the divergence, where what is decoded is the set of least expected loss."""
    independent = space.is_independent
    if decoder == "marginals":
        is_best = independent or follows_from_marginals(target, space.n_labels)
    else:
        is_best = decoder == "minimum_risk" or target.form == "subset"
    if not (is_best and trains_likelihood(training, space)):
        return None
    if space.has_every_set:
        return Claim("bounded", ("bounded",), {"bound": "sqrt(2 r)", "outside": ""})
    everywhere = target.form in ("additive", "subset") or beta_of(target) is not None
    everywhere = everywhere or space.size_bias is not None
    holds = ("bounded",) if everywhere else ("bounded", "among")
    return Claim("bounded", holds, {"bound": "m + (1 - m) sqrt(2 r)"})


def _covered(
    surrogate: Any, training: Training, target: Target, space: Space, words: dict[str, str]
) -> Claim:
    """The theorem that covers a surrogate for the target, if there is one.

    ``words`` has what to say in place of its own words.
    """
    choice = replace(chosen_surrogate(surrogate, training.q), target=None)
    found = covering(target.on(space), choice, space)
    if found is None:
        return NOTHING
    about: dict[str, Any] = {"source": found.theorem.source}
    about["reason"] = words.get(found.reason, found.reason)
    if found.gamma is not None:
        # That every law is reached has been established.
        needs = [words.get(need, need) for need in found.gamma.assumptions if need != REACHED]
        if hierarchy_of(target) and space.is_path:
            needs.append("every true label set is one of the paths")
        about |= {"gamma": found.gamma, "scales": found.gamma.scales, "needs": "; ".join(needs)}
    holds = ("covered", "no bound" if found.gamma is None else "bound")
    claim = Claim("consistent", holds, about, found.gamma)
    return claim if training.is_convex else claim.saying("not convex")


def _limited(
    found: Claim, training: Training, space: Space, features: Any, fit_intercept: bool
) -> Claim:
    """What remains of a theorem's claim where training is not what the theorem speaks of."""
    # Where there is one label set, there is nothing that scores could do wrong.
    if found.kind != "consistent" or space.has_at_most(1):
        return found
    loss, n_scores = training.loss(space), space.n_scores
    if not getattr(loss, "is_exact", True):
        return Claim("nothing", ("sampled",), {"n_samples": loss.n_samples})
    rank = n_scores if features is None else int(np.linalg.matrix_rank(features))
    if rank < n_scores:
        return Claim("nothing", ("confined",), {"rank": rank, "n_scores": n_scores})
    return found if fit_intercept else found.saying("origin")
