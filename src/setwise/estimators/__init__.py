"""Classifiers in the manner of scikit-learn: linear ones, and any model decoded for the target."""

from setwise.estimators.catalog_classifier import CatalogClassifier
from setwise.estimators.explaining import explain
from setwise.estimators.label_tree_classifier import LabelTreeClassifier
from setwise.estimators.permuting import feature_importance
from setwise.estimators.set_booster import SetBooster
from setwise.estimators.set_classifier import SetClassifier
from setwise.estimators.set_classifier_cv import SetClassifierCV
from setwise.estimators.set_ensemble import SetEnsemble
from setwise.estimators.target_decoder import TargetDecoder

__all__ = [
    "CatalogClassifier", "LabelTreeClassifier", "SetBooster", "SetClassifier",
    "SetClassifierCV", "SetEnsemble", "TargetDecoder", "explain", "feature_importance",
]  # fmt: skip
