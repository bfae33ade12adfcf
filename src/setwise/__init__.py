"""Multi-label learning for the measure you are judged by.

Submodules load when they are first used, so that ``import setwise`` stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setwise import (
        consistency,
        datasets,
        decoders,
        distributions,
        estimators,
        evaluation,
        spaces,
        study,
        surrogates,
        targets,
    )
    from setwise import nn as nn
    from setwise.estimators import (
        CatalogClassifier,
        SetClassifier,
        SetClassifierCV,
        TargetDecoder,
    )
    from setwise.persistence import load, save
    from setwise.targets import get_target
    from setwise.taxonomy import Taxonomy

__version__ = "0.1.0"
__all__ = [
    "CatalogClassifier",
    "SetClassifier",
    "SetClassifierCV",
    "TargetDecoder",
    "Taxonomy",
    "consistency",
    "datasets",
    "decoders",
    "distributions",
    "estimators",
    "evaluation",
    "get_target",
    "load",
    "save",
    "spaces",
    "study",
    "surrogates",
    "targets",
]

_SUBMODULES = {
    "consistency",
    "datasets",
    "decoders",
    "distributions",
    "estimators",
    "evaluation",
    "nn",  # not in __all__: it needs PyTorch, which `from setwise import *` does not
    "spaces",
    "study",
    "surrogates",
    "targets",
}
_NAMES = {
    "CatalogClassifier": "setwise.estimators",
    "SetClassifier": "setwise.estimators",
    "SetClassifierCV": "setwise.estimators",
    "TargetDecoder": "setwise.estimators",
    "Taxonomy": "setwise.taxonomy",
    "get_target": "setwise.targets",
    "load": "setwise.persistence",
    "save": "setwise.persistence",
}


def __getattr__(name: str):
    if name in _SUBMODULES:
        return importlib.import_module(f"setwise.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'setwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
