"""Exact expectations of a target over a space of label sets, with their derivatives."""

from setwise.expectation.expectation import Expectation, Moment
from setwise.expectation.pairs import expectation

__all__ = ["Expectation", "Moment", "expectation"]
