"""The surrogates by name, as estimators, guarantees, torch losses and the command line take them.

Imports nothing, so that the command line can list the names before anything is loaded.
"""

from __future__ import annotations

# The member of the generalised cross-entropy where none is asked for.
DEFAULT_Q = 0.7
# Members of the comp-sum family with a name of their own, by their q.
COMP_SUM = {"sum_exponential": -1.0, "logistic": 0.0, "mean_absolute_error": 1.0}
# Constrained losses, by their margin.
CONSTRAINED = {
    "constrained_exponential": "exponential",
    "constrained_squared_hinge": "squared_hinge",
    "constrained_hinge": "hinge",
    "constrained_rho": "rho",
}
# Binary relevance for costs that stand for a measure of all rows: a way to train, not one loss.
METRO = "metro"
SURROGATES = (
    "likelihood", "binary_relevance", *COMP_SUM, "generalized_cross_entropy", *CONSTRAINED,
)  # fmt: skip
# What others call them, in lower case and without "loss" at the end. ("ExpectedLoss" of
# `setwise.nn` is the mean absolute error less a term that no score changes.)
ELSEWHERE = {
    "bce": "binary_relevance",
    "bcewithlogits": "binary_relevance",
    "binary_cross_entropy": "binary_relevance",
    "one_vs_rest": "binary_relevance",
    "expected": "mean_absolute_error",
}
# Losses of networks that docs/findings.md measures, and about which no theorem is known here.
MEASURED = (
    "focal", "asymmetric", "asl", "zlpr", "two_way", "sigmoidf1", "distribution_balanced",
)  # fmt: skip


def known_surrogate(name: str) -> str:
    """The name that a loss has here; one that has none stays as it is.

    Examples
    --------
    >>> known_surrogate("BCEWithLogitsLoss"), known_surrogate("expected_loss")
    ('binary_relevance', 'mean_absolute_error')
    """
    word = name.lower().replace("-", "_").removesuffix("loss").rstrip("_")
    if word in MEASURED:
        raise ValueError(
            f"nothing is proved here about {name!r}, neither that it is consistent nor that it is "
            f"not; docs/findings.md measures how good networks are that are trained with it"
        )
    return ELSEWHERE.get(word, name)
