"""Expectations over a list: the value of every set times its probability."""

from __future__ import annotations

from dataclasses import dataclass, field

from setwise.expectation.expectation import Mean
from setwise.spaces.listing import Listing, listing_of, posterior_of
from setwise.spaces.space import Array, Space
from setwise.targets.measure import Of
from setwise.targets.target import Target


@dataclass(frozen=True)
class ListedMean:
    """Any target on a Catalog, on Paths, or on a space small enough to list. O(n K l)."""

    target: Target
    space: Space
    _listing: Listing = field(init=False, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "_listing", listing_of(self.space))

    def mean(self, scores: Array, y_true: Array, of: Of) -> Mean:
        """Sums over the list."""
        log_partition, posterior = posterior_of(self._listing, scores)
        measure = self.target.measure(self.space.n_labels, of)
        weighted = posterior * measure.matrix(self._listing.sets, y_true)
        return Mean(log_partition, weighted.sum(axis=1), *self._listing.aggregate(weighted))

    def on(self, space: Space) -> ListedMean:
        """The same target on another space."""
        return ListedMean(self.target, space)
