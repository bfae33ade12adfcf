"""Targets for which labels are decided from their own probabilities.

`Labels`: sums over labels (Hamming, weighted or not), each label by itself. `Mode`: subset 0/1, for
which the most likely set is best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise.decoders.decisions import Decisions
from setwise.distributions import Independent
from setwise.targets.measure import Additive, Array


@dataclass(frozen=True)
class Labels:
    """A loss that is a sum over labels: a label is predicted where that lowers its own loss.

    Exact for any distribution with these marginals: the expectation of a sum needs no more.
    """

    measure: Additive

    is_by_marginals = True

    @property
    def leaves_out_impossible(self) -> bool:
        """Whether a label of probability 0 is left out at no cost, whichever it is."""
        weights, (absent, present) = self.measure.weights, self.measure.agreement[0]
        return bool(absent == 0.0 <= present and (weights == weights[0]).all())

    def decide(self, values: Array, second: bool) -> Decisions:
        """The labels whose loss is less when predicted; on a tie left out."""
        if_false, if_true = self.measure.agreement[:, 1] - self.measure.agreement[:, 0]
        if not second and if_true < if_false:
            # Above the probability at which both states cost the same.
            chosen = (values > if_false / (if_false - if_true)).view(np.uint8)
            if not self.measure.weights.all():
                chosen *= (self.measure.weights > 0.0).view(np.uint8)
            return Decisions(chosen, np.zeros(len(values)), np.zeros(len(values)))
        absent, present = self.losses(values)
        chosen = present < absent
        gap = np.abs(present - absent).min(axis=1)
        risk = np.where(chosen, present, absent).sum(axis=1) + self.constant
        return Decisions(chosen.astype(np.uint8), risk, risk + gap)

    def of_sets(self, values: Array, sets: Array) -> Array:
        """The expected loss of given sets, (n,)."""
        absent, present = self.losses(values)
        return np.where(sets == 1, present, absent).sum(axis=1) + self.constant

    @property
    def constant(self) -> float:
        """What is lost whichever labels are predicted."""
        return float(self.measure.constant(np.zeros(1))[0])

    @property
    def weights(self) -> Array:
        """What each label weighs in the loss, (l,)."""
        return self.measure.weights * float(self.measure.scale(np.zeros(1))[0])

    def losses(self, probability: Array) -> tuple[Array, Array]:
        """The expected loss of each label when left out and when predicted, (n, l) each."""
        p = probability.astype(np.float64)
        # Of some of the labels only where all have one weight.
        weights = self.weights if len(self.weights) == p.shape[1] else self.weights[:1]
        (false_absent, false_present), (true_absent, true_present) = self.measure.agreement
        absent = weights * (p * true_absent + (1.0 - p) * false_absent)
        return absent, weights * (p * true_present + (1.0 - p) * false_present)


@dataclass(frozen=True)
class Mode:
    """Subset 0/1 loss from independent marginals: every label by its more likely state."""

    is_by_marginals = False
    leaves_out_impossible = True

    def decide(self, values: Array, second: bool) -> Decisions:
        """The labels with a probability above 1/2."""
        return of_mode(*Independent(values).most_likely(second))

    def of_sets(self, values: Array, sets: Array) -> Array:
        """1 less the probability of given sets, (n,)."""
        return -np.expm1(Independent(values).log_probability(sets))


def of_mode(sets: Array, log_probability: Array, second: Array) -> Decisions:
    """Decisions for subset 0/1 from the most likely set and the log probability of the next."""
    return Decisions(sets, -np.expm1(log_probability), 1.0 - np.exp(second))
