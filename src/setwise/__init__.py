"""Multi-label learning for the measure you are judged by.

Submodules load when they are first used, so that ``import setwise`` stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setwise.estimators import CatalogClassifier as CatalogClassifier
    from setwise.estimators import LabelTreeClassifier as LabelTreeClassifier
    from setwise.estimators import SetBooster as SetBooster
    from setwise.estimators import SetClassifier as SetClassifier
    from setwise.estimators import SetClassifierCV as SetClassifierCV
    from setwise.estimators import SetEnsemble as SetEnsemble
    from setwise.estimators import TargetDecoder as TargetDecoder
    from setwise.estimators import explain as explain
    from setwise.estimators import feature_importance as feature_importance
    from setwise.persistence import load as load
    from setwise.persistence import save as save
    from setwise.persistence import trusted_types as trusted_types
    from setwise.targets import get_target as get_target
    from setwise.taxonomy import Taxonomy as Taxonomy

__version__ = "0.1.0"

_NAMES = {
    "CatalogClassifier": "setwise.estimators",
    "LabelTreeClassifier": "setwise.estimators",
    "SetBooster": "setwise.estimators",
    "SetClassifier": "setwise.estimators",
    "SetClassifierCV": "setwise.estimators",
    "SetEnsemble": "setwise.estimators",
    "TargetDecoder": "setwise.estimators",
    "Taxonomy": "setwise.taxonomy",
    "explain": "setwise.estimators",
    "feature_importance": "setwise.estimators",
    "get_target": "setwise.targets",
    "load": "setwise.persistence",
    "save": "setwise.persistence",
    "trusted_types": "setwise.persistence",
}
_SUBMODULES = (
    "blocks", "consistency", "datasets", "decoders", "distributions", "estimators", "evaluation",
    "spaces", "study", "surrogates", "targets",
)  # fmt: skip
# Not `nn` and `dask`: they need PyTorch and Dask, which `from setwise import *` does not.
__all__ = [*_NAMES, *_SUBMODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    if name in (*_SUBMODULES, "dask", "nn"):
        return importlib.import_module(f"setwise.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'setwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
