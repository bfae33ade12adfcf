"""What a model is trained on in place of its target.

Modules load when they are first used: the names in `setwise.surrogates.names` cost nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

_MODULES = {
    "binary_relevance": ("BinaryRelevance",),
    "comp_sum": (
        "CompSum", "GeneralizedCrossEntropy", "Logistic", "MeanAbsoluteError", "SumExponential",
    ),
    "constrained": ("Constrained",),
    "surrogate": ("Surrogate",),
}  # fmt: skip
_HOME = {name: module for module, names in _MODULES.items() for name in names}

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


def __getattr__(name: str):
    if name in _HOME:
        return getattr(importlib.import_module(f"setwise.surrogates.{_HOME[name]}"), name)
    raise AttributeError(f"module 'setwise.surrogates' has no attribute {name!r}")
