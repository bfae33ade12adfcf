"""Some rows as they are: the worst and typical ones of the method that is best for a target."""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise.report.material import Material
from setwise.sparse import dense_rows
from setwise.study import Outcome
from setwise.study.leaderboard import losses_of

# So many rows of a kind are shown, and so many labels of a set.
N_ROWS, MOST_LABELS = 4, 12
EXTRA, MISSED = "✗\u202f", "○\u202f"


def examples(material: Material) -> dict[str, Any] | None:
    """Of each panel the rows of the best method; None where nothing has finished."""
    if not material.by_target:
        return None
    panels = [_panel(material, panel.title, panel.target) for panel in material.panels]
    return {"panels": panels, "probable": all(panel["probable"] for panel in panels)}


def _panel(material: Material, title: str, target: str) -> dict[str, Any]:
    best = material.board.of(target)[0].method
    outcome = next(own for own in material.by_target[target] if own.method == best)
    losses = losses_of(outcome, material.results.y_true)
    kinds = {"The worst": _worst(material, outcome, losses), "Typical": _typical(losses)}
    return {
        "title": title,
        "target": target,
        "method": best,
        "probable": outcome.probability is not None,
        "kinds": [
            (kind, [_row(material, outcome, int(row), float(losses[row])) for row in rows])
            for kind, rows in kinds.items()
        ],
    }


def _worst(material: Material, outcome: Outcome, losses: Any) -> Any:
    """The rows of largest loss; of equal ones those with more wrong labels."""
    wrong = abs(outcome.y_pred.astype(int) - material.results.y_true.astype(int)).sum(axis=1)
    return np.lexsort((-np.asarray(wrong).ravel(), -losses))[:N_ROWS]


def _typical(losses: Any) -> Any:
    """Rows whose loss is nearest to the median, spread over those that are equally near."""
    apart = abs(losses - np.median(losses))
    order = np.argsort(apart, kind="stable")
    n_equal = int((apart <= apart[order[0]]).sum())
    spread = np.linspace(0, max(n_equal - 1, N_ROWS - 1), N_ROWS).astype(int)
    return order[np.unique(np.minimum(spread, len(order) - 1))]


def _row(material: Material, outcome: Outcome, row: int, loss: float) -> dict[str, Any]:
    results = material.results
    true, predicted = (
        set(sets[[row]].nonzero()[1].tolist()) for sets in (results.y_true, outcome.y_pred)
    )
    probability: Any = outcome.probability
    if probability is not None:
        probability = dense_rows(probability, [row])[0].tolist()

    def shown(labels: set[int], others: set[int], sign: str) -> tuple[list[Any], int]:
        """The labels of a set, those that the other has not first, and how many are left out."""
        ordered = sorted(labels, key=lambda label: (label in others, label))
        told = [
            {
                "name": results.label_names[label],
                "wrong": "" if label in others else sign,
                "probability": None if probability is None else probability[label],
            }
            for label in ordered[:MOST_LABELS]
        ]
        return told, len(ordered) - len(told)

    return {
        "name": results.row_names[row] if results.row_names else str(row),
        "true": shown(true, predicted, MISSED),
        "predicted": shown(predicted, true, EXTRA),
        "loss": loss,
    }
