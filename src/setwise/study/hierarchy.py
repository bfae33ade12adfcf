"""What a study found, in its hierarchy: by level and in all, with the labels above each label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise.evaluation import ByLevel, by_level
from setwise.study.results import Outcome, Results
from setwise.study.scale import unit_of


@dataclass(frozen=True)
class InHierarchy:
    """One outcome, where both label sets of a row are taken with all above their labels.

    Attributes
    ----------
    method, target : str
        Their names.
    levels : ByLevel
        The figures of each level.
    closed : float
        The share of predictions that had all above their labels.
    distance : float
        The mean length of the edges on which prediction and truth differ; where labels have several
        parents, of the edges of the spanning tree.
    unit : str
        What the distance is counted in.
    """

    method: str
    target: str
    levels: ByLevel
    closed: float
    distance: float
    unit: str

    @property
    def precision(self) -> float | None:
        """Of all levels together: hierarchical precision; None where nothing is predicted."""
        return _ratio(self.levels.both.sum(), self.levels.predicted.sum())

    @property
    def recall(self) -> float | None:
        """Hierarchical recall; None where nothing is true."""
        return _ratio(self.levels.both.sum(), self.levels.support.sum())

    @property
    def f1(self) -> float | None:
        """Hierarchical F1; None where nothing is true and nothing predicted."""
        levels = self.levels
        return _ratio(2 * levels.both.sum(), (levels.predicted + levels.support).sum())

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON."""
        return {
            "method": self.method,
            "target": self.target,
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "f1_by_level": self.levels.f1.tolist(),
            "closed": self.closed,
            "distance": self.distance,
            "unit": self.unit,
        }


def in_hierarchy(results: Results) -> tuple[InHierarchy, ...]:
    """Every outcome in the hierarchy of the study, in their order; none without a hierarchy."""
    if results.taxonomy is None:
        return ()
    return tuple(_figures(outcome, results) for outcome in results.outcomes)


def _figures(outcome: Outcome, results: Results) -> InHierarchy:
    taxonomy: Any = results.taxonomy
    lengths = taxonomy.spanning_tree().lengths
    predicted, true = (
        taxonomy.close(sets).astype(np.int64) for sets in (outcome.y_pred, results.y_true)
    )
    return InHierarchy(
        method=outcome.method,
        target=outcome.target,
        levels=by_level(outcome.y_pred, results.y_true, taxonomy),
        closed=float(taxonomy.is_closed(outcome.y_pred).mean()),
        distance=float((abs(predicted - true) @ lengths).mean()),
        unit=unit_of(lengths),
    )


def _ratio(above: Any, below: Any) -> float | None:
    return float(above / below) if below else None
