"""How good are predictions, how sure is that, and are others better?

`evaluate` gives every figure with an interval, `compare` two predictions for the same rows.
"""

from setwise.evaluation.comparison import Comparison, Difference, compare
from setwise.evaluation.evaluation import evaluate
from setwise.evaluation.figure import Evaluation, Figure
from setwise.evaluation.propensity import propensities

__all__ = [
    "Comparison",
    "Difference",
    "Evaluation",
    "Figure",
    "compare",
    "evaluate",
    "propensities",
]
