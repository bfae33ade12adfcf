"""What a prediction is judged by: losses in [0, 1] between a predicted and a true label set.

`TARGETS` has all names, a ``*`` for a number; `register` adds one.

>>> list(TARGETS)[:4]
['hamming', 'subset', 'jaccard', 'f*']
"""

from setwise.targets.additive import CostSensitive, Hamming, PrecisionAtK, RecallAtK
from setwise.targets.arbitrary import CountTarget, TableTarget, ZeroOne
from setwise.targets.linear_fractional import FBeta, Jaccard, LinearFractional
from setwise.targets.population import Macro, Micro, Weighted
from setwise.targets.rates import BalancedAccuracy, GMean, Precision, Recall
from setwise.targets.registry import TARGETS, get_target, register
from setwise.targets.target import Target
from setwise.targets.tree_distance import TreeDistance

__all__ = [
    "TARGETS",
    "BalancedAccuracy",
    "CostSensitive",
    "CountTarget",
    "FBeta",
    "GMean",
    "Hamming",
    "Jaccard",
    "LinearFractional",
    "Macro",
    "Micro",
    "Precision",
    "PrecisionAtK",
    "Recall",
    "RecallAtK",
    "TableTarget",
    "Target",
    "TreeDistance",
    "Weighted",
    "ZeroOne",
    "get_target",
    "register",
]
