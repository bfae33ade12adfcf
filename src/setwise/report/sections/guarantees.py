"""What is proved of each method, in words; targets that share the words share the entry."""

from __future__ import annotations

from typing import Any

from setwise.report.material import Material
from setwise.report.names import prose


def guarantees(material: Material) -> dict[str, Any] | None:
    """For each method, the texts with the targets they are for."""
    methods = []
    for method in material.results.methods:
        texts: dict[str, list[str]] = {}
        for outcome in material.results.outcomes:
            if outcome.method == method:
                title = material.measures[outcome.target].title
                texts.setdefault(prose(outcome.guarantee), []).append(title)
        if texts:
            methods.append({"method": method, "style": material.styles[method], "texts": texts})
    return {"methods": methods} if methods else None
