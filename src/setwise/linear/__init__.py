"""Linear classifiers for the target they are judged by."""

from setwise.linear.set_classifier import SetClassifier

__all__ = ["SetClassifier"]
