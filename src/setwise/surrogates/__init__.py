"""What a model is trained on in place of its target."""

from setwise.surrogates.binary_relevance import BinaryRelevance
from setwise.surrogates.comp_sum import (
    CompSum,
    GeneralizedCrossEntropy,
    Logistic,
    MeanAbsoluteError,
    SumExponential,
)
from setwise.surrogates.constrained import Constrained
from setwise.surrogates.surrogate import Surrogate

__all__ = [
    "BinaryRelevance",
    "CompSum",
    "Constrained",
    "GeneralizedCrossEntropy",
    "Logistic",
    "MeanAbsoluteError",
    "SumExponential",
    "Surrogate",
]
