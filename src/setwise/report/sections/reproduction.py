"""How to get the same figures again."""

from __future__ import annotations

from typing import Any

from setwise.report.material import Material


def reproduction(material: Material) -> dict[str, Any]:
    """The command, seeds, versions, and what was chosen in each fold."""
    results = material.results
    chosen = [
        (outcome.method, material.measures[outcome.target].title, fold, list(settings.items()))
        for outcome in results.outcomes
        for fold, settings in enumerate(outcome.settings, 1)
        if settings
    ]
    return {
        "command": results.question.get("command"),
        "seeds": [(k, v) for k, v in results.question.items() if "seed" in str(k).lower()],
        "versions": list(results.versions.items()),
        "chosen": chosen,
        "n_bootstrap": material.board.n_bootstrap,
    }
