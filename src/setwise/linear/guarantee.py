"""What is proved about a trained combination of surrogate, space, target and decoder, in words.

"The paper" is Mao, Mohri, Zhong: Multi-Label Learning with Stronger Consistency Guarantees.
"""

from __future__ import annotations

import numpy as np

from setwise.linear.training import Training
from setwise.spaces.catalog import Catalog
from setwise.spaces.cube import Cube
from setwise.spaces.paths import Paths
from setwise.spaces.sized import Sized
from setwise.spaces.space import Space
from setwise.targets.at_k import PrecisionAtK, RecallAtK
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
HAMMING = (
    "Consistent for Hamming loss, label by label: with surrogate regret t, summed over the labels, "
    "the regret of Hamming loss is at most {bound}, for all measurable functions (section 3 of the "
    "paper{constant})."
)
# Of the margins of binary relevance, for {share} = t times the largest weight of a label.
BY_LABEL = {
    "logistic": "sqrt(2 {share})",
    "exponential": "sqrt(2 {share})",
    "squared_hinge": "sqrt({share})",
    "hinge": "{share}",
}
ABSOLUTE = (
    "Mean absolute error and the most likely set: consistent for every target, {target} on {space} "
    "included; its regret is at most |Y| times that of the surrogate (section 6 of the paper; it "
    "holds with one score a label). The objective is not convex, and the solver may have stopped "
    "short of its minimiser."
)
REACHED = (
    "Covered by section {section} of the paper: {reason}, so that its bound holds, with a regret "
    "of {target} at most {bound} at surrogate regret t, on the scale of the paper's sum over the "
    "label sets.{shortfall}"
)
CONSISTENT = (
    "Consistent for {target} on {space}: {reason}, so that the minimisers of the surrogate predict "
    "rightly for all measurable functions; no bound at positive regret is claimed.{shortfall}"
)
AMONG = " {target} is decoded among the sets of {space}: the regret is that over them."
OTHER = "No theorem is known to cover a surrogate trained for {trained_for} and judged by {target}."
NONE = (
    "No theorem is known to cover {surrogate} for {target} on {space}, decoded by the {decoder}. "
    "(The paper's needs scores that reach every law over the label sets, and the most likely set.)"
)
NOT_CONVEX = " The objective is not convex, and the solver may have stopped short of its minimiser."
CONSTRAINED = {"exponential": "2 sqrt(t)", "squared_hinge": "2 sqrt(t)", "hinge": "t", "rho": "t"}
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
        return _hamming(training, target, space.n_labels)
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
    if q == 1.0:
        return ABSOLUTE.format(**words)
    reason = _every_law(space)
    shortfall = "" if training.is_convex else NOT_CONVEX
    if reason is None:
        ordered = _ordered(target, space) if q is not None else None
        if ordered is None:
            return NONE.format(**words)
        return CONSISTENT.format(**words, reason=ordered, shortfall=shortfall)
    if q is None:
        section, bound = "A", CONSTRAINED[training.margin]
    elif -1.0 < q < 0.0:
        return CONSISTENT.format(**words, reason=reason, shortfall=shortfall)
    else:
        section, bound = 6, "2 sqrt(t)" if q <= 0.0 else f"2 sqrt(|Y|^{q:g} t)"
    return REACHED.format(**words, section=section, bound=bound, reason=reason, shortfall=shortfall)


def _hamming(training: Training, target: Hamming, n_labels: int) -> str:
    margin = getattr(training.surrogate, "margin", "logistic")
    largest = float(np.max(target.measure(n_labels, "loss").weights))
    share = f"t / {n_labels}" if target.weights is None else f"{largest:.4g} t"
    corrected = ", its constant for the logistic margin corrected by sqrt 2"
    return HAMMING.format(
        bound=BY_LABEL[margin].format(share=share),
        constant=corrected if margin == "logistic" else "",
    )


def _every_law(space: Space) -> str | None:
    """Why scores reach every law over the space, as the paper's theorems need, or None."""
    if isinstance(space, Catalog) and space.joint:
        return "every listed set has a score of its own"
    if isinstance(space, Paths):
        return "one score a node reaches every law over paths"
    if isinstance(space, Sized) and np.array_equal(space.sizes, [1]):
        return "one score a class reaches every law over classes"
    return None


def _ordered(target: Target, space: Space) -> str | None:
    """Why one score a label is enough for the target, or None."""
    if isinstance(target, Hamming) and isinstance(space, Cube):
        return "Hamming loss on all label sets is decided label by label"
    fixed = isinstance(space, Sized) and len(space.sizes) == 1
    if isinstance(target, PrecisionAtK | RecallAtK) and fixed:
        return "sets of one size are ordered rightly by one score a label"
    return None
