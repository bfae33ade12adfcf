"""What is proved, in words, of the methods whose models do not say it themselves."""

from __future__ import annotations

from setwise.targets import Hamming, PrecisionAtK, RecallAtK, Target, ZeroOne

TOP = (
    "The k labels of highest probability are the best k for {target} if the probabilities are the "
    "true ones. No theorem is claimed for how this classifier estimates them."
)
HAMMING = (
    "A cut at 0.5 is the best decision for Hamming loss if each label's probability is the true "
    "one, whether or not labels depend on each other. No theorem is claimed for how this "
    "classifier estimates them."
)


def by_cut(target: Target) -> str:
    """Of probabilities of the labels, cut at 1/2."""
    if isinstance(target, Hamming):
        return HAMMING
    if isinstance(target, PrecisionAtK | RecallAtK):
        return TOP.format(target=target)
    if isinstance(target, ZeroOne):
        return (
            "None in general: the labels above 0.5 are the most likely set if labels are "
            "independent given the features, and need not be otherwise."
        )
    return (
        f"None: a cut at 0.5 is not the best decision for {target}, even if the probabilities are "
        f"the true ones and labels are independent."
    )


def by_decoding(target: Target) -> str:
    """Of probabilities of the labels, decoded for the target."""
    if isinstance(target, Hamming):
        return HAMMING
    if isinstance(target, PrecisionAtK | RecallAtK):
        return TOP.format(target=target)
    return (
        f"The label set of least expected {target} loss if labels are independent given the "
        f"features and the probabilities are the true ones. No theorem is claimed for how this "
        f"classifier estimates them."
    )


def by_posterior(target: Target) -> str:
    """Of a posterior over the label sets seen, decoded for the target."""
    return (
        f"The label set of least expected {target} loss if the posterior over label sets is the "
        f"true one; sets never seen in training have probability 0 in it. No theorem is claimed "
        f"for how this classifier estimates it."
    )


def by_chain(target: Target) -> str:
    """Of a chain of labels, each decided once and for all."""
    if isinstance(target, PrecisionAtK | RecallAtK):
        return f"None for {target}: probabilities in a chain depend on the labels decided before."
    return (
        f"None for {target}: the chain decides one label after the other, which need not reach the "
        f"most likely set, and the most likely set is the best decision for subset 0/1 only."
    )


def by_thresholds(target: Target) -> str:
    """Of thresholds tuned label by label."""
    if isinstance(target, PrecisionAtK | RecallAtK):
        return TOP.format(target=target)
    if isinstance(target, Hamming):
        return "None claimed: thresholds are tuned for the accuracy of each label on few rows."
    return (
        f"None for {target}: thresholds are tuned for a measure of each label over rows, and "
        f"{target} is a mean over rows of what it says of a label set."
    )


def none_known(target: Target) -> str:
    """Of an estimator that is not known here."""
    return f"None known for {target}: the estimator does not say."
