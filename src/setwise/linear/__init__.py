"""Linear classifiers for the target they are judged by."""

from setwise.linear.set_classifier import SetClassifier
from setwise.linear.set_classifier_cv import SetClassifierCV

__all__ = ["SetClassifier", "SetClassifierCV"]
