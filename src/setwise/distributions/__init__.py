"""What a model says of its rows: distributions over label sets."""

from setwise.distributions.distribution import Distribution, Mixture
from setwise.distributions.independent import Independent
from setwise.distributions.listed import Listed
from setwise.distributions.of_space import OfSpace

__all__ = ["Distribution", "Independent", "Listed", "Mixture", "OfSpace"]
