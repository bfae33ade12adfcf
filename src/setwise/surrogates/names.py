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
