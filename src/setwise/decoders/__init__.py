"""How probabilities or scores become label sets."""

from setwise.decoders.decisions import Decisions, MostLikely, TopK
from setwise.decoders.minimum_risk import MinimumRisk
from setwise.decoders.population_rule import PopulationRule
from setwise.decoders.ranking import Ranking
from setwise.decoders.thresholds import Thresholds

__all__ = [
    "Decisions",
    "MinimumRisk",
    "MostLikely",
    "PopulationRule",
    "Ranking",
    "Thresholds",
    "TopK",
]
