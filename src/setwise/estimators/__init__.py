"""Classifiers in the manner of scikit-learn: linear ones, and any model decoded for the target.

Each loads when it is first used: a linear model does not wait for forests.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setwise.estimators.catalog_classifier import CatalogClassifier as CatalogClassifier
    from setwise.estimators.explaining import explain as explain
    from setwise.estimators.label_tree_classifier import LabelTreeClassifier as LabelTreeClassifier
    from setwise.estimators.permuting import feature_importance as feature_importance
    from setwise.estimators.set_booster import SetBooster as SetBooster
    from setwise.estimators.set_classifier import SetClassifier as SetClassifier
    from setwise.estimators.set_classifier_cv import SetClassifierCV as SetClassifierCV
    from setwise.estimators.set_ensemble import SetEnsemble as SetEnsemble
    from setwise.estimators.target_decoder import TargetDecoder as TargetDecoder

_MODULES = {
    "CatalogClassifier": "catalog_classifier",
    "LabelTreeClassifier": "label_tree_classifier",
    "SetBooster": "set_booster",
    "SetClassifier": "set_classifier",
    "SetClassifierCV": "set_classifier_cv",
    "SetEnsemble": "set_ensemble",
    "TargetDecoder": "target_decoder",
    "explain": "explaining",
    "feature_importance": "permuting",
}
__all__ = [*_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
