"""How long training and predicting took."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from setwise.report import numbers
from setwise.report.drawing import logarithmic
from setwise.report.material import Material
from setwise.report.strip import INSET, Strip


def timing(material: Material) -> dict[str, Any] | None:
    """A row for each outcome: the mean over folds, and predicting a thousand rows."""
    timed = [outcome for outcome in material.results.outcomes if outcome.fit_seconds]
    if not timed:
        return None
    fits = [float(np.mean(outcome.fit_seconds)) for outcome in timed]
    strip = Strip(logarithmic(fits, INSET, 100.0 - INSET, most=4))
    spans = Counter(outcome.method for outcome in timed)
    rows = []
    for outcome, fit in zip(timed, fits, strict=True):
        predict = sum(outcome.predict_seconds) / material.board.n_rows * 1000
        rows.append(
            {
                "method": outcome.method,
                "style": material.styles[outcome.method],
                "span": spans.pop(outcome.method, 0),
                "target": material.measures[outcome.target].title,
                "fit": numbers.seconds(fit),
                "longest": numbers.seconds(max(outcome.fit_seconds)),
                "predict": numbers.seconds(predict) if outcome.predict_seconds else "–",
                "strip": strip.row(material.styles[outcome.method], fit),
            }
        )
    return {"head": strip.head(), "rows": rows, "several": len(material.results.n_train) > 1}
