"""A target given as a table, from independent marginals: every label set against every other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise.decoders.catalog import best_among
from setwise.decoders.decisions import Decisions
from setwise.spaces.catalog import Catalog
from setwise.spaces.space import all_sets
from setwise.targets.measure import Array, Measure
from setwise.targets.target import Target

MOST_LABELS = 12


@dataclass(frozen=True)
class EverySet:
    """All 2^l label sets, smaller sets first, then those of lower labels."""

    measure: Measure
    sets: Array

    leaves_out_impossible = False

    @classmethod
    def of(cls, target: Target, n_labels: int) -> EverySet:
        """For a target that is defined on every label set."""
        if n_labels > MOST_LABELS:
            raise ValueError(
                f"{target} can be decoded from marginals for at most {MOST_LABELS} labels, as all "
                f"label sets are compared; use decode_catalog with listed label sets"
            )
        sets = small_first(all_sets(n_labels))
        measure = target.measure(n_labels, "loss")
        try:
            measure.matrix(Catalog(sets[:1]), sets)
        except ValueError as error:
            raise ValueError(
                f"{target} does not list all {2**n_labels} label sets, which independent marginals "
                f"make possible ({error}); use decode_catalog with its label sets"
            ) from None
        return cls(measure, sets)

    def decide(self, values: Array, second: bool) -> Decisions:
        """The best of all label sets."""
        return best_among(self.measure, self._law(values), self.sets, self.sets)

    def of_sets(self, values: Array, sets: Array) -> Array:
        """The expected loss of given sets, (n,)."""
        every, law = self.sets, self._law(values)
        losses = [self.measure.rows(np.broadcast_to(row, every.shape), every) for row in sets]
        return np.einsum("ij,ij->i", law, np.array(losses))

    def _law(self, values: Array) -> Array:
        """The probability of every label set, (n, 2^l)."""
        law = np.ones((len(values), len(self.sets)))
        for label, p in enumerate(values.T.astype(np.float64)):
            law *= np.where(self.sets[:, label] == 1, p[:, None], 1.0 - p[:, None])
        return law


def small_first(sets: Array) -> Array:
    """Label sets ordered by size, and then those of lower labels first."""
    return sets[np.lexsort((*(1 - sets.T[::-1]), sets.sum(axis=1)))]
