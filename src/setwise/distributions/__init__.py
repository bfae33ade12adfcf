"""What a model says of its rows: distributions over label sets."""

from setwise.distributions.distribution import Distribution, Mixture
from setwise.distributions.families import Independent, Listed, OfSpace

__all__ = ["Distribution", "Independent", "Listed", "Mixture", "OfSpace"]
