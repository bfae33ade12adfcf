"""Each label by itself: what the page's table is filled from."""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise.report import numbers
from setwise.report.material import Material
from setwise.report.names import plain
from setwise.report.sections.precision_recall import FRAME

# The table holds all labels up to this many numbers in the page, else the most frequent ones.
MOST_ROWS, LEAST_LABELS = 100_000, 500
# Curves of labels take this many characters of the page at most: each point two, on a grid.
CURVE_CHARACTERS = 300_000
RECALLS = np.linspace(0.0, 1.0, 26)
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def labels(material: Material) -> dict[str, Any] | None:
    """The choices of the table; its numbers are in `label_data`."""
    if not material.results.outcomes:
        return None
    shown = len(shown_labels(material))
    n_labels = len(material.results.label_names)
    return {
        "n_shown": numbers.count(shown),
        "n_labels": numbers.count(n_labels),
        "all_shown": shown == n_labels,
    }


def shown_labels(material: Material) -> Any:
    """The labels of the table, most frequent first."""
    most = max(MOST_ROWS // max(1, len(material.results.outcomes)), LEAST_LABELS)
    return np.argsort(-material.support, kind="stable")[:most]


def label_data(material: Material) -> dict[str, Any]:
    """Numbers for the page's script: counts of each label and outcome, and curves.

    Precision, recall and F1 follow from the counts; average precision is in ten-thousandths, and -1
    for a label that is never true.
    """
    results = material.results
    shown = shown_labels(material)
    support = material.support[shown]
    budget = max(1, CURVE_CHARACTERS // (2 * len(RECALLS) * max(1, len(material.beliefs))))
    return {
        "methods": [
            [plain(method), style.colour, style.shape, style.dash]
            for method, style in material.styles.items()
        ],
        "targets": [measure.title for measure in material.measures.values()],
        "labels": [plain(results.label_names[label]) for label in shown],
        "support": support.tolist(),
        "outcomes": [
            {
                "method": results.methods.index(outcome.method),
                "target": results.targets.index(outcome.target),
                "predicted": figures.predicted[shown].tolist(),
                "both": figures.both[shown].tolist(),
                "belief": belief,
            }
            for outcome, figures, belief in zip(
                results.outcomes, material.figures, material.believed, strict=True
            )
        ],
        "beliefs": [
            {
                "average": _ten_thousandths(belief.by_label.average_precision[shown], support),
                "curves": _packed(belief.by_label.interpolated(RECALLS)[shown[:budget]]),
            }
            for belief in material.beliefs
        ],
        "frame": [FRAME.across.start, FRAME.across.end, FRAME.up.start, FRAME.up.end],
        "first": _first(material),
    }


def _ten_thousandths(average: Any, support: Any) -> list[int]:
    return np.where(support > 0, np.rint(1e4 * average), -1).astype(int).tolist()


def _packed(precision: Any) -> list[str]:
    """Each row of precisions as text: 4095ths in two digits of base 64."""
    levels = np.rint(4095 * precision).astype(int)
    digits = np.array(list(DIGITS))
    pairs = np.stack([digits[levels // 64], digits[levels % 64]], axis=-1)
    return ["".join(row) for row in pairs.reshape(len(levels), -1).tolist()]


def _first(material: Material) -> int:
    """The outcome shown first: the best method of the first target."""
    best = material.board.of(material.board.targets[0])[0]
    pairs = [(outcome.method, outcome.target) for outcome in material.results.outcomes]
    return pairs.index((best.method, best.target))
