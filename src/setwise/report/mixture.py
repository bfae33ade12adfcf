"""Members of mixtures: weights, log-losses, and how reliable the probabilities of each are."""

from __future__ import annotations

from typing import Any

from setwise.report.drawing import Style
from setwise.report.material import Material
from setwise.report.probability import reliability_picture
from setwise.study.members import WHOLE


def mixture(material: Material) -> list[dict[str, Any]] | None:
    """The members of each mixture, once where all targets share them; None where there is none."""
    groups = []
    for method, by_target in material.mixtures.items():
        for target, members in by_target.items():
            title = material.measures[target].title if target in material.measures else ""
            rows = [
                {
                    "figures": own,
                    "is_whole": own.name == WHOLE,
                    "picture": reliability_picture(own.reliability, Style.of(place)),
                }
                for place, own in enumerate(members)
            ]
            shown = title if len(by_target) > 1 else ""
            groups.append({"method": method, "target": shown, "members": rows})
    return groups or None
