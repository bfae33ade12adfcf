"""Targets for which labels are decided from their own probabilities.

`Labels`: sums over labels (Hamming, weighted or not), each label by itself. `Mode`: subset 0/1, for
which the most likely set is best. `ClosedSets`: sums over the edges of a hierarchy, where a label
may be predicted only with its parent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from setwise.decoders.closed_set_kernels import closed_set_rows
from setwise.decoders.decisions import Decisions
from setwise.spaces.nodes import Nodes
from setwise.targets.measure import Additive, Array
from setwise.threads import for_rows


@dataclass(frozen=True)
class Labels:
    """A loss that is a sum over labels: a label is predicted where that lowers its own loss.

    Exact for any law with these marginals: the expectation of a sum needs no more.
    """

    measure: Additive

    @property
    def leaves_out_impossible(self) -> bool:
        """Whether a label of probability 0 is left out at no cost, whichever it is."""
        weights, (absent, present) = self.measure.weights, self.measure.agreement[0]
        return bool(absent == 0.0 <= present and (weights == weights[0]).all())

    def decide(self, values: Array, second: bool) -> Decisions:
        """The labels whose loss is less when predicted; on a tie left out."""
        if not second:
            nothing = np.zeros(len(values))
            return Decisions(self._chosen(values), nothing, nothing)
        absent, present = self._losses(values)
        chosen = present < absent
        gap = np.abs(present - absent).min(axis=1)
        risk = np.where(chosen, present, absent).sum(axis=1) + self.constant
        return Decisions(chosen.astype(np.uint8), risk, risk + gap)

    def of_sets(self, values: Array, sets: Array) -> Array:
        """The expected loss of given sets, (n,)."""
        absent, present = self._losses(values)
        return np.where(sets == 1, present, absent).sum(axis=1) + self.constant

    def gains(self, probability: Array) -> Array:
        """How much predicting each label lowers the loss, (n, l)."""
        absent, present = self._losses(probability)
        return absent - present

    def _chosen(self, values: Array) -> Array:
        """The labels on the right side of the probability at which both states cost the same."""
        if_false, if_true = self.measure.agreement[:, 1] - self.measure.agreement[:, 0]
        if if_true >= if_false:
            # Not a loss of errors: compared as it stands.
            absent, present = self._losses(values)
            return (present < absent).astype(np.uint8)
        chosen = (values > if_false / (if_false - if_true)).view(np.uint8)
        if self.measure.weights.all():
            return chosen
        return chosen * (self.measure.weights > 0.0).astype(np.uint8)

    @property
    def constant(self) -> float:
        """What is lost whichever labels are predicted."""
        return float(self.measure.constant(np.zeros(1))[0])

    @property
    def weights(self) -> Array:
        """What each label weighs in the loss, (l,)."""
        return self.measure.weights * float(self.measure.scale(np.zeros(1))[0])

    def _losses(self, probability: Array) -> tuple[Array, Array]:
        """The expected loss of each label when left out and when predicted."""
        p = probability.astype(np.float64)
        weights = self.weights
        if len(weights) != p.shape[1]:
            # Some of the labels, all of one weight.
            weights = weights[:1]
        (false_absent, false_present), (true_absent, true_present) = self.measure.agreement
        absent = weights * (p * true_absent + (1.0 - p) * false_absent)
        return absent, weights * (p * true_present + (1.0 - p) * false_present)


@dataclass(frozen=True)
class Mode:
    """Subset 0/1 loss from independent marginals: every label by its more likely state."""

    leaves_out_impossible = True

    def decide(self, values: Array, second: bool) -> Decisions:
        """The labels with a probability above 1/2."""
        p = values.astype(np.float64)
        likely = np.maximum(p, 1.0 - p)
        log_chance = np.log(likely).sum(axis=1)
        # The second best set has the least certain label in its other state.
        ratio = ((1.0 - likely) / likely).max(axis=1)
        risk = -np.expm1(log_chance)
        return Decisions((p > 0.5).astype(np.uint8), risk, 1.0 - np.exp(log_chance) * ratio)

    def of_sets(self, values: Array, sets: Array) -> Array:
        """1 less the probability of given sets, (n,)."""
        p = values.astype(np.float64)
        return 1.0 - np.where(sets == 1, p, 1.0 - p).prod(axis=1)


@dataclass(frozen=True)
class ClosedSets:
    """Tree distance: the best set that contains the parents of its labels.

    From the leaves to the roots, a label with its best descendants gains what it gains itself and
    what its children gain where that is positive; from the roots down, a label is predicted if its
    parent is and it gains. O(l) a row.
    """

    measure: Additive
    parents: Array
    _nodes: Nodes = field(init=False, repr=False)

    leaves_out_impossible = False

    def __post_init__(self):
        object.__setattr__(self, "_nodes", Nodes.of(self.parents))

    def decide(self, values: Array, second: bool) -> Decisions:
        """The closed set of least expected distance; on a tie a label is left out."""
        labels = Labels(self.measure)
        sets = np.empty(values.shape, dtype=np.uint8)
        risk, second_risk = np.empty(len(values)), np.empty(len(values))
        for_rows(
            closed_set_rows, len(values), np.ascontiguousarray(values), self._nodes.labels,
            self._nodes.above, labels.weights, self.measure.agreement, labels.constant, sets, risk,
            second_risk,
        )  # fmt: skip
        return Decisions(sets, risk, second_risk)

    def of_sets(self, values: Array, sets: Array) -> Array:
        """The expected distance of given sets, (n,)."""
        return Labels(self.measure).of_sets(values, sets)
