"""Why one row has its labels, for programs and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why one row has its labels: what each feature adds to the log-odds of each label.

    Attributes
    ----------
    labels : array of shape (s,)
        The labels that are explained, by name.
    predicted : bool array of shape (s,)
        Which of them are predicted.
    log_odds : array of shape (s,)
        Of each label, as `predict_proba` has it; infinite where it cannot be otherwise.
    base : array of shape (s,)
        The log-odds of the base: of the mean row, or of features of 0.
    contributions : array of shape (s, n_features)
        What each feature adds; ``log_odds - base`` is their sum.
    feature_names : array of shape (n_features,)
    values : array of shape (n_features,)
        The features of the row, as the model was given them; NaN where missing.
    members : dict of str to array of shape (s, n_features)
        Of a mixture, the parts of the contributions that come by each member.
    apart : tuple of str
        Members that cannot be taken apart into features: what they say is part of the base.
    """

    labels: Array
    predicted: Array
    log_odds: Array
    base: Array
    contributions: Array
    members: dict[str, Array]
    apart: tuple[str, ...]
    feature_names: Array
    values: Array

    @property
    def probability(self) -> Array:
        """The probability of each label, (s,)."""
        return expit(self.log_odds)

    def strongest(self, label: int, most: int = 8) -> list[tuple[int, float]]:
        """The features that say most of a label, by its place, with what they add."""
        own = self.contributions[label]
        order = np.argsort(-np.abs(own), kind="stable")[:most]
        return [(int(place), float(own[place])) for place in order if own[place] != 0.0]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON: features with a contribution, strongest first."""
        labels = []
        for place, name in enumerate(self.labels):
            features = [
                {"feature": str(self.feature_names[k]), "value": _plain(self.values[k]), "added": v}
                for k, v in self.strongest(place, len(self.feature_names))
            ]
            odds = (float(own[place]) for own in (self.log_odds, self.base))
            log_odds, base = (value if np.isfinite(value) else None for value in odds)
            labels.append({
                "label": str(name), "predicted": bool(self.predicted[place]),
                "probability": float(self.probability[place]), "log_odds": log_odds,
                "base": base, "features": features,
            })  # fmt: skip
        return {"labels": labels, "apart": list(self.apart)}

    def __str__(self) -> str:
        lines = []
        for place, name in enumerate(self.labels):
            sign = "predicted" if self.predicted[place] else "not predicted"
            lines.append(
                f"{name} ({sign}): probability {self.probability[place]:.3f}, log-odds "
                f"{self.log_odds[place]:+.3f}, of the base {self.base[place]:+.3f}"
            )
            chosen = self.strongest(place)
            for feature, added in chosen:
                value = _plain(self.values[feature])
                value = "missing" if value is None else value
                lines.append(f"  {added:+8.3f}  {self.feature_names[feature]} = {value}")
            rest = self.contributions[place].sum() - sum(added for _, added in chosen)
            n_rest = np.count_nonzero(self.contributions[place]) - len(chosen)
            if n_rest > 0:
                lines.append(f"  {rest:+8.3f}  {n_rest} other features")
        return "\n".join(lines)


def feature_names_of(holder: Any, attribute: str, given: Any, n_features: int) -> Array:
    """The names given, those that the holder has, or numbers; one for each feature."""
    own = getattr(holder, attribute, range(n_features)) if given is None else given
    names = np.array([str(name) for name in own], object)
    if len(names) != n_features:
        raise ValueError(f"feature_names must be {n_features} names, but there are {len(names)}")
    return names


def _plain(value: Any) -> Any:
    """A value of a feature as a number or text; None where it is missing."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if not isinstance(value, float | np.floating):
        return str(value)
    return float(f"{value:.6g}") if np.isfinite(value) else None
