"""Members of mixtures: weights, log-losses, and how reliable the probabilities of each are."""

from __future__ import annotations

from typing import Any

from setwise.report.drawing import Style
from setwise.report.material import Material
from setwise.report.probability import reliability_picture
from setwise.report.words import listed
from setwise.study.members import WHOLE


def mixture(material: Material) -> list[dict[str, Any]] | None:
    """The members of each mixture, once where all targets share them; None where there is none."""
    groups = []
    for method, by_target in material.mixtures.items():
        shared: dict[int, list[str]] = {}
        for target, members in by_target.items():
            shared.setdefault(id(members), []).append(target)
        for targets in shared.values():
            titles = [material.measures[target].title for target in targets if target]
            rows = [
                {
                    "figures": own,
                    "is_whole": own.name == WHOLE,
                    "picture": reliability_picture(own.reliability, Style.of(place)),
                }
                for place, own in enumerate(by_target[targets[0]])
            ]
            shown = listed(titles) if len(shared) > 1 else ""
            groups.append({"method": method, "target": shown, "members": rows})
    return groups or None
