"""What a method's probabilities are worth: calibration, and precision against recall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from setwise.evaluation import PrecisionRecall, Reliability, precision_recall, reliability


@dataclass(frozen=True)
class Belief:
    """The figures of one array of probabilities."""

    reliability: Reliability
    micro: PrecisionRecall
    by_label: PrecisionRecall


def belief_of(probability: Any, y_true: Any) -> Belief:
    """All figures of the probabilities."""
    return Belief(
        reliability(probability, y_true),
        precision_recall(probability, y_true),
        precision_recall(probability, y_true, average=None),
    )
