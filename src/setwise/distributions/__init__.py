"""What a model says of its rows: distributions over label sets."""

from setwise.distributions.distribution import Distribution, Mixture
from setwise.distributions.families import Independent, Listed, OfSpace
from setwise.distributions.shortlist import Shortlist

__all__ = ["Distribution", "Independent", "Listed", "Mixture", "OfSpace", "Shortlist"]
