"""A distribution of label sets, and a combination of target, surrogate, space and scores.

`certify`, the search and the table ask a `Setting`: it turns rows of probabilities p (n, M) of the
M true label sets considered into expected losses, least surrogate risks and predictions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from scipy.special import softmax

from setwise.consistency.conditional import Kind, Risk, ScoredSets, Weights
from setwise.consistency.naming import (
    Choice,
    chosen_space,
    chosen_surrogate,
    loss_matrix,
    plain,
    word,
)
from setwise.consistency.optimum import Optimum, best_scores, least_risks
from setwise.spaces.space import Array, Space, all_sets
from setwise.surrogates.names import DEFAULT_Q
from setwise.targets.measure import ROUNDING, find_rows
from setwise.targets.registry import get_target
from setwise.targets.target import Target, predicted_size
from setwise.validation import label_matrix, real_vector

# Weights, or expected losses, that differ by no more are tied.
TIE = 1e-10
# With at most this many labels, true label sets outside the space are considered too.
FEW_LABELS = 6
# Losses of a target that is code are written down up to this many.
MOST_LISTED = 4096
# How far the probabilities of a distribution may be from a sum of 1.
SUM_ERROR = 1e-9


@dataclass(frozen=True, eq=False)
class Distribution:
    """The probability of each listed label set; every other set has probability 0.

    Parameters
    ----------
    sets : array of shape (m, n_labels)
        The label sets, no two alike.
    probability : array of shape (m,)
        Not negative, with the sum 1.

    Examples
    --------
    >>> print(Distribution([[0, 0], [0, 1], [1, 1]], [0.3, 0.3, 0.4]))
    P(00) = 0.3, P(01) = 0.3, P(11) = 0.4
    """

    sets: Any
    probability: Any

    def __post_init__(self):
        sets = label_matrix(self.sets, None, "sets")
        probability = real_vector(self.probability, len(sets), "probability")
        if len(sets) == 0 or len(np.unique(sets, axis=0)) < len(sets):
            raise ValueError("sets must list at least one label set and none twice")
        if (probability < 0.0).any():
            row = int(np.argmax(probability < 0.0))
            raise ValueError(
                f"probability must not be negative, but probability[{row}] is {probability[row]}"
            )
        if abs(probability.sum() - 1.0) > SUM_ERROR:
            raise ValueError(f"probability must add up to 1, but its sum is {probability.sum()!r}")
        object.__setattr__(self, "sets", sets)
        object.__setattr__(self, "probability", probability)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.sets.shape[1]

    def mean(self, values: Array) -> Array:
        """The expectation of values given for each listed set, along their first axis."""
        return self.probability @ values

    def marginals(self) -> Array:
        """P(label in the set), (l,)."""
        return self.mean(self.sets)

    def __str__(self) -> str:
        shown = np.flatnonzero(self.probability > 0.0)
        return ", ".join(f"P({word(self.sets[k])}) = {self.probability[k]:.4g}" for k in shown)

    def to_dict(self) -> dict[str, Any]:
        """The label sets and their probabilities as plain lists."""
        return {"sets": self.sets.tolist(), "probability": self.probability.tolist()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Distribution:
        """The inverse of `to_dict`."""
        return cls(values["sets"], values["probability"])


def as_distribution(value: Any, space: Space) -> Distribution:
    """A distribution as it is, or from probabilities of the space's own sets in their order."""
    if isinstance(value, Distribution):
        if value.n_labels != space.n_labels:
            raise ValueError(
                f"the distribution must have as many labels as {space}, {space.n_labels}, "
                f"but it has {value.n_labels}"
            )
        return value
    return Distribution(space.enumerate(), value)


@dataclass(frozen=True, eq=False)
class Setting:
    """A target, a surrogate, a space and its scores.

    ``truths`` (M, l) are the true label sets considered: those of the space, and for precision@k
    and recall@k, which judge size-k predictions of any truth, all label sets. ``losses`` (M, K) are
    the target's, ``stakes`` (M, m, K') what the surrogate's conditional risk sums up, over sets
    that scores weigh by ``weights``: those of the space, or present and absent for each label. The
    prediction is the most likely set; after a likelihood, the set of least expected loss.
    """

    target: Target
    choice: Choice
    scored: ScoredSets
    truths: Array
    losses: Array
    stakes: Array
    weights: Weights

    @classmethod
    def of(
        cls,
        target: Any,
        surrogate: Any,
        space: Space | None = None,
        scores: Kind = "labelwise",
        q: float = DEFAULT_Q,
        truths: Array | None = None,
    ) -> Setting:
        """From names or objects; without a space, a small one the target is at home on.

        ``truths`` are the true label sets to consider, in place of the usual ones; those of a
        likelihood are always the sets of the space.
        """
        target, choice = get_target(target), chosen_surrogate(surrogate, q)
        space = chosen_space(target, choice, space)
        target, scored = target.on(space), ScoredSets.of(space, scores)
        if choice.by_label and scored.kind == "joint":
            raise ValueError(
                "binary relevance has one score for each label; use scores='labelwise'"
            )
        if truths is None or choice.is_likelihood:
            every = predicted_size(target) is not None and space.n_labels <= FEW_LABELS
            listed = choice.is_likelihood or not every
            truths = scored.sets if listed else all_sets(space.n_labels)
        losses = stakes = _unit_losses(target, truths, scored.sets)
        if choice.target is not None:
            stakes = _unit_losses(choice.target.on(space), truths, scored.sets)
            if np.array_equal(stakes, losses):
                choice = replace(choice, target=None)
        stakes, weights = stakes[:, None], scored.weights
        if choice.by_label:
            stakes = np.stack([1.0 - truths, truths], axis=-1)
            apart = 0.5 if choice.margin == "logistic" else 1.0
            features = np.eye(space.n_labels)[:, None] * [[apart], [-apart]]
            weights = Weights(features, np.zeros((space.n_labels, 2)))
        if choice.is_likelihood:
            stakes = np.eye(len(truths))[:, None]
        elif choice.margin in (None, "logistic"):
            # Comp-sum losses sum up utilities.
            stakes = 1.0 - stakes
        return cls(target, choice, scored, truths, losses, stakes, weights)

    @property
    def risk(self) -> Risk:
        """The surrogate's conditional risk."""
        return self.choice.risk

    @property
    def space(self) -> Space:
        """The label sets that may be predicted."""
        return self.scored.space

    @property
    def log_unit(self) -> float:
        """Log of a surrogate regret on the paper's scale over that on the unit scale."""
        return self.choice.log_unit(float(np.log(len(self.scored.sets))))

    def regrets(self, p: Array) -> Array:
        """Expected loss of each set above the least, (n, K)."""
        risks = p @ self.losses
        return risks - risks.min(axis=1, keepdims=True)

    def worth(self, p: Array) -> Array:
        """What the conditional risk needs to know of each set it sums over, (n, m, K')."""
        flat = p @ self.stakes.reshape(len(self.stakes), -1)
        # A sum of probabilities may end a rounding outside [0, 1].
        return np.clip(flat, 0.0, 1.0).reshape(len(p), *self.stakes.shape[1:])

    def value(self, p: Array, scores: Array) -> Array:
        """The conditional surrogate risk, (n,)."""
        return self.risk.value(self.weights.at(scores), self.worth(p))

    def minimisers(self, p: Array) -> tuple[Array, Array]:
        """Scores of least surrogate risk and its value, (n, d) and (n,)."""
        return least_risks(self.risk, self.weights, self.worth(p))

    def optimum(self, p: Array, seed: int = 0) -> Optimum:
        """The least surrogate risk of one distribution, with its certificate."""
        return best_scores(self.risk, self.weights, self.worth(p[None])[0], seed)

    def shortfalls(self, scores: Array) -> Array:
        """How far each set is from being predicted, 0 if it is, (n, K)."""
        z = self.scored.weights.at(scores)[:, 0]
        if self.choice.is_likelihood:
            expected = softmax(z, axis=1) @ self.losses
            return expected - expected.min(axis=1, keepdims=True)
        return z.max(axis=1, keepdims=True) - z

    def worst_predictions(self, p: Array, scores: Array) -> tuple[Array, Array]:
        """Of the sets tied for the prediction the worst, and its regret, (n,) and (n,)."""
        tied = self.shortfalls(scores) <= TIE * (1.0 + np.abs(scores).max(axis=1, keepdims=True))
        regrets = np.where(tied, self.regrets(p), -1.0)
        worst = regrets.argmax(axis=1)
        return worst, regrets[np.arange(len(p)), worst]

    def margins(self, p: Array, scores: Array, regret: Array) -> Array:
        """How far the sets with less than half the regret are from being predicted, (n,)."""
        right = self.regrets(p) <= 0.5 * regret[:, None]
        return np.where(right, self.shortfalls(scores), np.inf).min(axis=1)

    def probabilities(self, sets: Array, probability: Array) -> Array:
        """A distribution over listed sets as one over the truths considered, (M,)."""
        place = find_rows(self.truths, sets)
        lost = (place < 0) & (probability > 0.0)
        if lost.any():
            raise ValueError(
                f"the distribution gives {sets[int(np.argmax(lost))].tolist()} a "
                f"probability, which is not among the {len(self.truths)} true label sets of {self}"
            )
        p = np.zeros(len(self.truths))
        p[place[place >= 0]] = probability[place >= 0]
        return p

    @property
    def question(self) -> dict[str, Any]:
        """What is asked, as plain values: all that the names of its parts leave out."""
        target = plain(self.target)
        is_code = not isinstance(target, dict)
        if is_code:
            target = {"type": type(self.target).__name__}
        if is_code or any(callable(getattr(self.target, name, None)) for name in target):
            # Code has no parameters; what it says of these label sets has.
            few = self.losses.size <= MOST_LISTED
            digest = {"losses_sha256": sha256(self.losses.tobytes()).hexdigest()}
            target |= {"losses": self.losses.tolist()} if few else digest
        return {
            "target": target,
            "surrogate": self.choice.parameters,
            "space": plain(self.space),
            "scores": self.scored.kind,
        }

    def __str__(self) -> str:
        return f"{self.choice} for {self.target} on {self.space}, {self.scored.kind} scores"


def _unit_losses(target: Target, truths: Array, sets: Array) -> Array:
    """`loss_matrix`, refused unless its entries lie in [0, 1], as every theorem needs."""
    losses = loss_matrix(target, truths, sets)
    inside = (losses >= -ROUNDING) & (losses <= 1.0 + ROUNDING)
    if not inside.all():
        row, column = (int(i) for i in np.argwhere(~inside)[0])
        raise ValueError(
            f"the losses of a target must lie in [0, 1], but {target} has the loss "
            f"{losses[row, column]:g} for predicting {sets[column].tolist()} where "
            f"{truths[row].tolist()} is true"
        )
    return losses
