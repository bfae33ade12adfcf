"""The distribution that scores give to the label sets of a space."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setwise.distributions.distribution import Array, Distribution, Ranked, one_set_a_row
from setwise.distributions.independent import label_sizes
from setwise.distributions.listed import Listed
from setwise.spaces.listing import listing_of, posterior_of
from setwise.spaces.space import Space
from setwise.validation import score_matrix


@dataclass(frozen=True, eq=False)
class OfSpace(Distribution):
    """Label sets of a space drawn with probability P(y) = exp(z(y) - A), z(y) = y · scores + g(y).

    (y as ±1; A is the log-partition function, g what the space adds.)

    Parameters
    ----------
    space : Space
        The label sets, such as ``Cube(10)``.
    scores : array of shape (n, space.n_scores)

    Examples
    --------
    >>> from setwise.spaces import Slice
    >>> OfSpace(Slice(3, 1), [[0.0, 0.0, 0.0]]).marginals().round(3)
    array([[0.333, 0.333, 0.333]])
    """

    space: Any
    scores: Any

    def __post_init__(self):
        if not isinstance(self.space, Space):
            raise ValueError(f"a space is an object such as Cube(10), but this is {self.space!r}")
        scores = score_matrix(self.scores, self.space.n_scores)
        if 0 in scores.shape:
            raise ValueError(f"scores must have at least one row, but its shape is {scores.shape}")
        object.__setattr__(self, "scores", scores.astype(np.float64))

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.space.n_labels

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, rows) -> OfSpace:
        """The same of some rows."""
        return replace(self, scores=self.scores[rows])

    def marginals(self) -> Array:
        """The space's marginals, without what rounding puts beyond 0 or 1, (n, l)."""
        return np.clip(self.space.marginals(self.scores), 0.0, 1.0)

    def log_probability(self, sets) -> Array:
        """z(y) - A, -inf outside the space, (n,)."""
        return self.space.log_probability(self.scores, one_set_a_row(sets, self))

    def ranked(self) -> Ranked | None:
        """By probability on independent labels, by score where only a bias for sizes is added."""
        if self.space.is_independent:
            return Ranked(self.marginals(), None)
        bias = self.space.size_bias
        return None if bias is None else Ranked(self.scores, bias)

    def listed(self) -> tuple[Array, Array] | None:
        """The sets of the space, if they are a list or few enough."""
        return self._list().listed() if self.space.is_listable else None

    def label_sizes(self) -> tuple[Array, Array] | None:
        """From the ranking of the labels or from the list, where there is one."""
        ranked = self.ranked()
        if ranked is not None:
            return label_sizes(*ranked)
        return self._list().label_sizes() if self.space.is_listable else None

    def most_likely(self, second: bool) -> tuple[Array, Array, Array]:
        """The space's most likely set, and the best of those with some label the other way."""
        if self.space.is_list:
            return self._list().most_likely(second)
        space, scores = self.space, self.scores
        sets = space.most_likely(scores)
        other = np.full(len(scores), -np.inf)
        parameters = space.parameters[np.isfinite(space.parameters)]
        # More than any set can weigh: a label with such a score is decided by it.
        beyond = 4.0 * (1.0 + np.abs(scores).sum(axis=1) + np.abs(parameters).sum())
        for label in range(space.n_labels if second else 0):
            forced = scores.copy()
            forced[:, label] = np.where(sets[:, label] == 1, -beyond, beyond)
            changed = space.most_likely(forced)
            is_other = changed[:, label] != sets[:, label]
            found = np.where(is_other, space.log_probability(scores, changed), -np.inf)
            other = np.maximum(other, found)
        return sets, space.log_probability(scores, sets), other

    def _list(self) -> Listed:
        """The sets that are not excluded, and the probability of each."""
        listing = listing_of(self.space)
        allowed = self.space.contains(listing.sets)
        return Listed.trusted(
            listing.sets[allowed], posterior_of(listing, self.scores)[1][:, allowed]
        )

    def __str__(self) -> str:
        return str(self.space)
