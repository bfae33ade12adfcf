"""From scores to label sets, by what the scores were trained as."""

from __future__ import annotations

import numpy as np

from setwise.decoders.minimum_risk import MinimumRisk
from setwise.decoders.simple import MostLikely
from setwise.estimators.hierarchy import refuse_open_predictions
from setwise.estimators.objective import Array
from setwise.estimators.training import Training
from setwise.spaces.space import Space
from setwise.targets.target import Target

DECODERS = ("auto", "minimum_risk", "most_likely", "marginals")


def decoder_for(name: str, training: Training, target: Target, space: Space) -> str:
    """The decoder of that name; "auto": the least expected loss, where scores are a likelihood."""
    if name == "auto" and not (training.is_likelihood or training.is_separate):
        name = "most_likely"
    if name == "most_likely":
        refuse_open_predictions(target, space)
    if name != "auto":
        return name
    exact = training.is_by_label or MinimumRisk(target).decodes(space)
    return "minimum_risk" if exact else "marginals"


def decoded(training: Training, target: Target, space: Space, decoder: str, scores: Array) -> Array:
    """The label sets of scores."""
    if decoder == "most_likely":
        return MostLikely(space).decode(scores)
    if decoder == "marginals" or training.is_by_label:
        return MinimumRisk(target).decode(np.clip(marginals(training, space, scores), 0.0, 1.0))
    return MinimumRisk(target).decode_scores(scores, space)


def marginals(training: Training, space: Space, scores: Array) -> Array:
    """The probability of each label."""
    if training.is_by_label:
        return training.stages()[0](space).probability(scores)
    return space.marginals(scores)
