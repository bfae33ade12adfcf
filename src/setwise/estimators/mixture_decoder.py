"""From a mixture of laws to label sets: for the target, row by row or for all rows together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.decoders.for_target import Decoder, HeldOut
from setwise.decoders.minimum_risk import UndecodableError
from setwise.distributions import Independent, Listed, Mixture
from setwise.distributions.distribution import is_listed
from setwise.estimators.mixing import mixed
from setwise.targets.target import method_of

Array = NDArray[Any]

# Lists of more label sets are not looked through for the best one.
MOST_LISTED = 2**14
# Losses that differ by no more are equal.
TIE = 1e-12


@dataclass(frozen=True, eq=False)
class MixtureDecoder:
    """Decides by the decoder of a target, or for the most probable class (``is_class``)."""

    risk: Decoder
    is_class: bool

    def law(self, laws: Any, weights: Array, loose: Array) -> Mixture:
        """What is decided by: where that takes a list, members as they are, else loosened too."""
        is_by_list = self.is_by_list(laws[0].n_labels)
        return Mixture(laws, weights) if is_by_list else mixed(laws, weights, loose)

    def is_by_list(self, n_labels: int) -> bool:
        """Whether the best set is looked for among those that members list."""
        risk: Any = self.risk
        if self.is_class or risk.is_of_whole:
            return False
        return not risk.covers_all(n_labels) or risk.target.form == "subset"

    def decide(self, law: Mixture) -> Array:
        """The best label set of each row.

        Where that would take a list, of the sets that members list and, for functions of the counts
        such as Jaccard, the k most probable labels, for any k. Where not all members have a list,
        given that it is a set that some member lists; where none does, as though labels were
        independent.
        """
        risk: Any = self.risk
        several = len(law.weights) > 1 and self.is_by_list(law.n_labels)
        found = law.among_listed(MOST_LISTED) if several else None
        try:
            if found is None:
                return risk.decode(law)
            given = Listed.trusted(*found)
            is_of_counts = risk.target.form in ("linear_fractional", "counts")
            if is_of_counts and not risk.covers_all(law.n_labels):
                return risk.decode_listed(given, over="ranked")
            return risk.decode(given)
        except UndecodableError:
            return risk.decode(Independent(law.marginals()))

    def prefers(self, other: list[Mixture], to: list[Mixture], truth: HeldOut) -> bool:
        """Whether one mixture loses less on rows held out, by more than a standard error."""
        gain, mass = self.losses(to, truth) - self.losses(other, truth), truth.weights
        mean = np.average(gain, weights=mass)
        spread = np.average((gain - mean) ** 2, weights=mass)
        return bool(mean > TIE + np.sqrt(spread * (mass**2).sum()) / mass.sum())

    def losses(self, mixtures: list[Mixture], truth: HeldOut) -> Array:
        """The loss of the target for each row held out, (n,), of mixtures for parts of them."""
        sets, risk = truth.sets, self.risk
        if not self.is_class and not risk.is_of_whole:
            decided = np.concatenate([self.decide(one) for one in mixtures])
            return np.asarray(risk.target.loss(decided, sets), np.float64)
        marginals = np.concatenate([one.marginals() for one in mixtures])
        if self.is_class:
            return (marginals.argmax(axis=1) != sets.argmax(axis=1)).astype(np.float64)
        decided = risk.fitted(lambda: truth._replace(probability=marginals)).decode(marginals)
        return method_of(risk.target, "row_losses")(decided, sets, truth.weights)


def answers_of(laws: list[Any]) -> tuple[bool, bool]:
    """Whether all laws have P(label, size), and whether all are lists; see `claim_of_mixture`."""
    has_sizes = all(law[:1].label_sizes() is not None for law in laws)
    return has_sizes, all(is_listed(law, MOST_LISTED) for law in laws)
