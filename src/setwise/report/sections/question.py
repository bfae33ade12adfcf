"""What was asked: the study in a sentence, its settings, and what each target means."""

from __future__ import annotations

from typing import Any

from setwise.report import numbers
from setwise.report.material import Material


def question(material: Material) -> dict[str, Any]:
    """Entries of the question, and the targets."""
    results = material.results
    trained = sorted(set(results.n_train))
    rows = " to ".join(numbers.count(n) for n in dict.fromkeys((trained[0], trained[-1]))) if (
        trained
    ) else ""  # fmt: skip
    return {
        "entries": [(key, value) for key, value in results.question.items() if key != "command"],
        "measures": list(material.measures.values()),
        "rows": rows,
        "n_folds": len(results.n_train),
        "n_rows": numbers.count(material.board.n_rows),
    }
