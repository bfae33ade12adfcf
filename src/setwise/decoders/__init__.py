"""How probabilities or scores become label sets."""

from setwise.decoders.decisions import Decisions
from setwise.decoders.minimum_risk import MinimumRisk
from setwise.decoders.most_likely import MostLikely
from setwise.decoders.thresholds import Thresholds
from setwise.decoders.top_k import TopK

__all__ = ["Decisions", "MinimumRisk", "MostLikely", "Thresholds", "TopK"]
