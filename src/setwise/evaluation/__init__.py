"""How good are predictions, how sure is that, and are others better?

`evaluate` gives every figure with an interval, `compare` two predictions for the same rows;
`per_label`, `by_level`, `reliability` and `precision_recall` are what is drawn.
"""

from setwise.evaluation.evaluation import compare, evaluate
from setwise.evaluation.figure import Comparison, Difference, Evaluation, Figure
from setwise.evaluation.label_sets import ByLevel, PerLabel, by_level, per_label
from setwise.evaluation.probability import (
    PrecisionRecall,
    Reliability,
    precision_recall,
    reliability,
)
from setwise.evaluation.ranking import propensities

__all__ = [
    "ByLevel",
    "Comparison",
    "Difference",
    "Evaluation",
    "Figure",
    "PerLabel",
    "PrecisionRecall",
    "Reliability",
    "by_level",
    "compare",
    "evaluate",
    "per_label",
    "precision_recall",
    "propensities",
    "reliability",
]
