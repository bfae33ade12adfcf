"""Meta estimators: any classifier with probabilities, decoded for the target."""

from setwise.meta.catalog_classifier import CatalogClassifier
from setwise.meta.target_decoder import TargetDecoder

__all__ = ["CatalogClassifier", "TargetDecoder"]
