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
# The modules of names that are not in comp_sum.
_HOMES = {
    "BinaryRelevance": "binary_relevance", "Constrained": "constrained", "Surrogate": "surrogate",
}  # fmt: skip


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"module 'setwise.surrogates' has no attribute {name!r}")
    home = _HOMES.get(name, "comp_sum")
    return getattr(importlib.import_module(f"setwise.surrogates.{home}"), name)
