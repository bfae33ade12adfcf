"""What a study found, in its hierarchy: by level and in all, with the labels above each label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.evaluation import ByLevel, PerLabel, per_label
from setwise.evaluation.hierarchy import closed, row_distances
from setwise.study.results import Outcome, Results
from setwise.study.scale import unit_of


@dataclass(frozen=True)
class InHierarchy:
    """One outcome, where both label sets of a row are taken with all above their labels.

    Attributes
    ----------
    method, target : str
        Their names.
    labels : PerLabel
        The figures of each label.
    levels : ByLevel
        The figures of each level.
    closed : float
        The share of predictions that had all above their labels.
    distance : float
        The mean length of the edges on which prediction and truth differ: those of the target if
        it is a tree distance, else of the hierarchy; where labels have several parents, of the
        edges of the spanning tree.
    unit : str
        What the distance is counted in.
    """

    method: str
    target: str
    labels: PerLabel
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
    true = closed(results.y_true, results.taxonomy)
    return tuple(_figures(outcome, results, true) for outcome in results.outcomes)


def _figures(outcome: Outcome, results: Results, true: Any) -> InHierarchy:
    taxonomy: Any = results.taxonomy
    predicted = closed(outcome.y_pred, taxonomy)
    labels, lengths = per_label(predicted, true), _lengths(outcome.target, results)
    return InHierarchy(
        method=outcome.method,
        target=outcome.target,
        labels=labels,
        levels=ByLevel.of(labels, taxonomy),
        closed=float(taxonomy.is_closed(outcome.y_pred).mean()),
        distance=float(row_distances(predicted, true, lengths).mean()),
        unit=unit_of(lengths),
    )


def _lengths(target: str, results: Results) -> NDArray[np.float64]:
    """Of each label's edge: those of the target if it has some, else of the hierarchy, (l,)."""
    taxonomy: Any = results.taxonomy
    scale = results.scales.get(target)
    own = None if scale is None else scale.lengths
    return taxonomy.spanning_tree().lengths if own is None else np.array(own)


def _ratio(above: Any, below: Any) -> float | None:
    return float(above / below) if below else None
