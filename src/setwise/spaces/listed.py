"""Expectations over a list: the value of every set times its probability."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from setwise.spaces.expectation import Mean
from setwise.spaces.listing import Listing, listing_of, posterior_of
from setwise.spaces.space import Array, Space
from setwise.targets.measure import Of
from setwise.targets.target import Target

# Values held at once.
CHUNK = 2**22


@dataclass(frozen=True)
class ListedMean:
    """Any target on a Catalog, on Paths, or on a space small enough to list. O(n K l)."""

    target: Target
    space: Space
    _listing: Listing = field(init=False, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "_listing", listing_of(self.space))

    def mean(self, scores: Array, y_true: Array, of: Of, parameters: bool = True) -> Mean:
        """Sums over the list, some rows at a time so that memory stays bounded."""
        measure = self.target.measure(self.space.n_labels, of)
        rows = max(1, CHUNK // self._listing.count)
        parts = []
        for start in range(0, max(len(scores), 1), rows):
            chunk = slice(start, start + rows)
            log_partition, posterior = posterior_of(self._listing, scores[chunk])
            weighted = posterior * measure.matrix(self._listing, y_true[chunk])
            sums = self._listing.aggregate(weighted)
            parts.append((log_partition, weighted.sum(axis=1), *sums))
        return Mean(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def on(self, space: Space) -> ListedMean:
        """The same target on another space."""
        return ListedMean(self.target, space)
