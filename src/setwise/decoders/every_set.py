"""A target given as a table, from independent marginals: every label set against every other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise.decoders.catalog import best_listed
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
    listed: Catalog

    leaves_out_impossible = False

    @classmethod
    def of(cls, target: Target, n_labels: int) -> EverySet:
        """For a target that is defined on every label set."""
        if n_labels > MOST_LABELS:
            raise ValueError(
                f"{target} can be decoded from marginals for at most {MOST_LABELS} labels, as all "
                f"label sets are compared; use decode_catalog with listed label sets"
            )
        sets = all_sets(n_labels)
        sets = sets[np.lexsort((np.arange(len(sets))[::-1], sets.sum(axis=1)))]
        measure = target.measure(n_labels, "loss")
        try:
            measure.matrix(Catalog(sets[:1]), sets)
        except ValueError as error:
            raise ValueError(
                f"{target} does not list all {2**n_labels} label sets, which independent marginals "
                f"make possible ({error}); use decode_catalog with its label sets"
            ) from None
        return cls(measure, Catalog(sets))

    def decide(self, values: Array, second: bool) -> Decisions:
        """The best of all label sets."""
        return best_listed(self.measure, self._law(values), self.listed)

    def of_sets(self, values: Array, sets: Array) -> Array:
        """The expected loss of given sets, (n,)."""
        sets_of_row = (
            self.measure.rows(np.tile(s, (len(self.listed.sets), 1)), self.listed.sets)
            for s in sets
        )
        return np.array(
            [law @ loss for law, loss in zip(self._law(values), sets_of_row, strict=True)]
        )

    def _law(self, values: Array) -> Array:
        """The probability of every label set, (n, 2^l)."""
        law = np.ones((len(values), len(self.listed.sets)))
        for label, p in enumerate(values.T.astype(np.float64)):
            law *= np.where(self.listed.sets[:, label] == 1, p[:, None], 1.0 - p[:, None])
        return law
