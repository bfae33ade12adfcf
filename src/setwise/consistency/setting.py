"""One combination of target, surrogate, space and scores, on all distributions at once.

`certify`, the search and the table ask a `Setting`; it turns probabilities p (n, m) of the m true
label sets considered into expected losses, least surrogate risks and predictions, row by row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from scipy.special import softmax

from setwise.consistency.best_scores import Optimum, best_scores, least_risks
from setwise.consistency.conditional import CompSumRisk, ConstrainedRisk, RelevanceRisk
from setwise.consistency.distribution import Distribution
from setwise.consistency.identity import is_plain, plain
from setwise.consistency.loss_matrix import unit_losses
from setwise.consistency.naming import Choice, chosen_space, chosen_surrogate
from setwise.consistency.scored_sets import Kind, ScoredSets
from setwise.spaces.space import Array, Space, all_sets
from setwise.surrogates.names import DEFAULT_Q
from setwise.targets.at_k import PrecisionAtK, RecallAtK
from setwise.targets.measure import find_rows
from setwise.targets.registry import get_target
from setwise.targets.target import Target

# Weights, or expected losses, that differ by no more are tied.
TIE = 1e-10
# With at most this many labels, true label sets outside the space are considered too.
FEW_LABELS = 6
# Losses of a target that is code are written down up to this many.
MOST_LISTED = 4096


@dataclass(frozen=True, eq=False)
class Setting:
    """A target, a surrogate, a space and its scores.

    ``truths`` (m, l) are the true label sets considered: those of the space, and for precision@k
    and recall@k, which judge size-k predictions of any truth, all label sets. ``losses`` (m, K) are
    the target's, ``stakes`` (m, K) what the surrogate's conditional risk sums up. The prediction is
    the most likely set; after a likelihood, the set of the space with the least expected loss.
    """

    target: Target
    choice: Choice
    scored: ScoredSets
    truths: Array
    losses: Array
    stakes: Array

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
        target = get_target(target)
        choice = chosen_surrogate(surrogate, q)
        space = chosen_space(target, choice, space)
        target = target.on(space)
        scored = ScoredSets.of(space, scores)
        if isinstance(choice.risk, RelevanceRisk) and scored.kind == "joint":
            raise ValueError(
                "binary relevance has one score for each label; use scores='labelwise'"
            )
        if truths is None or choice.is_likelihood:
            at_k = isinstance(target, PrecisionAtK | RecallAtK) and not choice.is_likelihood
            every = at_k and space.n_labels <= FEW_LABELS
            truths = all_sets(space.n_labels) if every else scored.sets
        losses = stakes = unit_losses(target, truths, scored.sets)
        if choice.target is not None:
            stakes = unit_losses(choice.target.on(space), truths, scored.sets)
            if np.array_equal(stakes, losses):
                choice = replace(choice, target=None)
        if choice.is_likelihood:
            stakes = np.eye(len(truths))
        elif isinstance(choice.risk, CompSumRisk):
            stakes = 1.0 - stakes
        return cls(target, choice, scored, truths, losses, stakes)

    @property
    def risk(self) -> CompSumRisk | ConstrainedRisk | RelevanceRisk:
        """The surrogate's conditional risk."""
        return self.choice.risk

    @property
    def space(self) -> Space:
        """The label sets that may be predicted."""
        return self.scored.space

    @property
    def log_unit(self) -> float:
        """Log of a surrogate regret on the paper's scale over that on the unit scale."""
        if isinstance(self.risk, RelevanceRisk):
            return 0.0
        return self.risk.log_unit(float(np.log(self.scored.count)))

    @property
    def decoder(self) -> str:
        """How scores become a prediction."""
        return "set of least expected loss" if self.choice.is_likelihood else "most likely set"

    def regrets(self, p: Array) -> Array:
        """Expected loss of each set above the least, (n, K)."""
        risks = p @ self.losses
        return risks - risks.min(axis=1, keepdims=True)

    def worth(self, p: Array) -> Array:
        """What the conditional risk needs: a number a set, or the marginals."""
        return p @ (self.truths if isinstance(self.risk, RelevanceRisk) else self.stakes)

    def value(self, p: Array, scores: Array) -> Array:
        """The conditional surrogate risk, (n,)."""
        if isinstance(self.risk, RelevanceRisk):
            return self.risk.value(scores, self.worth(p))
        return self.risk.value(self.scored.weights(scores)[:, None], self.worth(p)[:, None])

    def minimisers(self, p: Array) -> tuple[Array, Array]:
        """Scores of least surrogate risk and its value, (n, d) and (n,)."""
        if isinstance(self.risk, RelevanceRisk):
            return self.risk.least(self.worth(p))
        return least_risks(self.risk, self.scored, self.worth(p))

    def optimum(self, p: Array, seed: int = 0) -> Optimum:
        """The least surrogate risk of one distribution, with its certificate."""
        if isinstance(self.risk, RelevanceRisk):
            scores, value = self.risk.least(self.worth(p[None]))
            return Optimum(scores[0], float(value[0]), float(value[0]), "closed form")
        return best_scores(self.risk, self.scored, self.worth(p[None])[0], seed)

    def shortfalls(self, scores: Array) -> Array:
        """How far each set is from being predicted, 0 if it is, (n, K)."""
        z = self.scored.weights(scores)
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

    def distribution(self, p: Array) -> Distribution:
        """A row of probabilities as a distribution."""
        return Distribution(self.truths, p)

    def probabilities(self, distribution: Distribution) -> Array:
        """A distribution as a row of probabilities of the truths considered, (m,)."""
        place = find_rows(self.truths, distribution.sets)
        lost = (place < 0) & (distribution.probability > 0.0)
        if lost.any():
            raise ValueError(
                f"the distribution gives {distribution.sets[int(np.argmax(lost))].tolist()} a "
                f"probability, which is not among the {len(self.truths)} true label sets of {self}"
            )
        p = np.zeros(len(self.truths))
        p[place[place >= 0]] = distribution.probability[place >= 0]
        return p

    @property
    def question(self) -> dict[str, Any]:
        """What is asked, as plain values: all that the names of its parts leave out."""
        target = plain(self.target)
        if not isinstance(target, dict):
            target = {"type": type(self.target).__name__}
        if not is_plain(self.target):
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
