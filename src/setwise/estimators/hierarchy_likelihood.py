"""The likelihood of closed sets and paths, by the passes those spaces have for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise.estimators.choice import frequency
from setwise.estimators.objective import Array
from setwise.spaces.closed import ClosedLaw
from setwise.spaces.paths import Paths


@dataclass(frozen=True)
class HierarchyLikelihood:
    """-log s(y) on closed sets or paths; all true sets are among them.

    Only scores are learnt. On closed sets potentials say nothing that intercepts do not.
    """

    law: ClosedLaw | Paths
    y_true: Array
    weights: Array
    space: None = None

    @property
    def n_scores(self) -> int:
        """One score for each label."""
        return len(self.law.parents)

    def start(self) -> Array:
        """Where labels given their parents, or the ends of paths, are as frequent as in y_true.

        P(label | parent) = r on closed sets asks for 2 h = logit r + sum over children log(1 - r');
        P(end) on paths for 2 h = log P(end) - log P(path ends at the parent). Half a row is added
        to every count.
        """
        parents = self.law.parents
        count, child = self.weights @ self.y_true, np.flatnonzero(parents >= 0)
        if isinstance(self.law, Paths):
            ending = count.copy()
            np.subtract.at(ending, parents[child], count[child])
            ends = self.law.nodes.labels[self.law.is_end]
            weight = np.zeros(len(parents))
            weight[ends] = np.log(ending[ends] + 0.5)
            scores = weight.copy()
            scores[child] -= weight[parents[child]]
            return scores / 2.0
        above = np.full(len(parents), self.weights.sum())
        above[child] = count[parents[child]]
        share = (count + 0.5) / (above + 1.0)
        scores = np.log(share) - np.log1p(-share)
        np.add.at(scores, parents[child], np.log1p(-share[child]))
        return scores / 2.0

    def spread(self) -> tuple[Array, Array]:
        """Of labels in the true sets."""
        share = frequency(self.y_true, self.weights)
        return 4.0 * share * (1.0 - share), np.empty(0)

    def sums(self, rows: slice, scores: Array, parameters: Array) -> tuple[float, Array, Array]:
        """By one pass up and one down for each row."""
        weights = self.weights[rows]
        value, by_score, *_ = self.law.negative_log_likelihood(scores, self.y_true[rows])
        return float(weights @ value), by_score * weights[:, None], np.empty(0)
