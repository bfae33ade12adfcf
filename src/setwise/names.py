"""The surrogates by name, as estimators, guarantees and the command line take them."""

from __future__ import annotations

# Members of the comp-sum family with a name of their own, by their q.
COMP_SUM = {"sum_exponential": -1.0, "logistic": 0.0, "mean_absolute_error": 1.0}
# Constrained losses, by their margin.
CONSTRAINED = {
    "constrained_exponential": "exponential",
    "constrained_squared_hinge": "squared_hinge",
    "constrained_hinge": "hinge",
    "constrained_rho": "rho",
}
SURROGATES = (
    "likelihood", "binary_relevance", *COMP_SUM, "generalized_cross_entropy", *CONSTRAINED,
)  # fmt: skip
