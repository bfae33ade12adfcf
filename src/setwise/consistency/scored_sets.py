"""The label sets of a small space and how scores weigh them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from setwise.spaces.catalog import Catalog
from setwise.spaces.space import Array, Space, weighted_features
from setwise.targets.measure import find_rows

Kind = Literal["labelwise", "joint"]
KINDS = ("labelwise", "joint")
# Spaces with more sets than this are not taken apart.
MOST_SETS = 4096


@dataclass(frozen=True, eq=False)
class ScoredSets:
    """z = features · scores + offset for each label set y' of a space.

    Label-wise scores have features y' in ±1; joint scores have one score for each set. The offset
    is g(y'), what the space adds. Everything a conditional risk needs of a space.
    """

    space: Space
    kind: Kind
    sets: Array
    features: Array
    offset: Array

    @classmethod
    def of(cls, space: Space, kind: Kind = "labelwise") -> ScoredSets:
        """The sets of a space; a Catalog with joint scores has those whatever the kind."""
        if kind not in KINDS:
            raise ValueError(f"scores must be 'labelwise' or 'joint', but it is {kind!r}")
        if space.log_size > np.log(MOST_SETS) + 1e-9:
            raise ValueError(
                f"{space} has about e^{space.log_size:.1f} label sets, too many to examine one by "
                f"one; the limit is {MOST_SETS}. Examine a smaller space of the same kind"
            )
        sets = space.enumerate()
        offset = weighted_features(space.features(sets), space.parameters)
        features = np.eye(len(sets)) if kind == "joint" else 2.0 * sets - 1.0
        if isinstance(space, Catalog) and space.joint:
            # Excluded sets have a score too, which moves nothing.
            kind, features = "joint", np.eye(space.n_scores)[space.bias > -np.inf]
        return cls(space, kind, sets, features, offset)

    @property
    def count(self) -> int:
        """Number of label sets."""
        return len(self.sets)

    @property
    def n_scores(self) -> int:
        """Number of scores."""
        return self.features.shape[1]

    @property
    def directions(self) -> int:
        """In how many directions scores move the law s, of the count - 1 there are."""
        return int(np.linalg.matrix_rank(self.features - self.features.mean(axis=0)))

    @property
    def reaches_every_law(self) -> bool:
        """Whether every law over the sets is s_h for some scores, or a limit of such.

        So it is where the sets are affinely independent: the assumption in the paper's proofs that
        "s^mu can be realized by some h'".
        """
        return self.directions == self.count - 1

    @property
    def offset_is_free(self) -> bool:
        """Whether some scores do what the offset does, so that it might as well be 0."""
        return lies_in_span(self.offset[:, None], self.features)

    def weights(self, scores: Array) -> Array:
        """z of each set, (n, K)."""
        return scores @ self.features.T + self.offset

    def exposing(self, index: Array, size: float) -> Array:
        """Scores at which the given sets weigh most, the more so the larger the size, (n, d)."""
        return size * self.features[index]

    def most_likely(self, scores: Array) -> Array:
        """Index of the heaviest set of each row, ties as the space breaks them, (n,)."""
        if self.kind == "joint":
            return np.argmax(self.weights(scores), axis=1)
        return self.index(self.space.most_likely(scores))

    def index(self, sets: Array) -> Array:
        """The place of each set in the list; one that is not there is refused, (n,)."""
        found = find_rows(self.sets, sets)
        if (found < 0).any():
            raise ValueError(f"{sets[int(np.argmin(found))].tolist()} is not a set of {self.space}")
        return found


def lies_in_span(columns: Array, features: Array) -> bool:
    """Whether every column is a linear combination of the features and a constant."""
    basis = np.column_stack([features, np.ones(len(features))])
    left = columns - basis @ np.linalg.lstsq(basis, columns, rcond=None)[0]
    return bool(np.abs(left).max(initial=0.0) <= 1e-9 * (1.0 + np.abs(columns).max(initial=0.0)))
