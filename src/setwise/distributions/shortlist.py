"""Independent labels of which the likely ones are known one by one, and the others by a sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from setwise.distributions.distribution import Array, Distribution, Ranked
from setwise.sparse import places_among, rows_of, tidy_sets
from setwise.validation import probability_matrix, real_number, real_vector, same_rows


@dataclass(frozen=True, eq=False)
class Shortlist(Distribution):
    """Independent labels: those of a shortlist with their probabilities, the others with a sum.

    What a search through very many labels gives: every label of at least some probability, and how
    many true labels to expect beside them. Decisions take the number of these for a Poisson one of
    that mean; with R their mean and none above ``floor``, probabilities of anything are then wrong
    by at most ``floor`` R (Le Cam's inequality). `MinimumRisk.gap` says what that can cost.

    Parameters
    ----------
    probability : sparse matrix of shape (n, l)
        The probability of each label of a row's shortlist, in [0, 1].
    tail : array of shape (n,)
        The expected number of true labels outside it.
    floor : float in (0, 1], or array of shape (n,)
        No label outside is more probable; labels listed may be less.
    least_tail, most_tail : arrays of shape (n,), optional
        Between which the sum of the probabilities outside lies for certain; by default it is
        ``tail``.

    Examples
    --------
    >>> from setwise.decoders import MinimumRisk
    >>> listed = csr_array(([0.6, 0.25], ([0, 0], [0, 2])), shape=(1, 1000))
    >>> few = Shortlist(listed, tail=[0.0], floor=0.01)
    >>> many = Shortlist(listed, tail=[2.0], floor=0.01)
    >>> [MinimumRisk("f1").decode(one).indices.tolist() for one in (few, many)]
    [[0], [0, 2]]
    """

    probability: Any
    tail: Any
    floor: Any
    least_tail: Any = None
    most_tail: Any = None

    def __post_init__(self):
        given = self.probability
        listed = probability_matrix(given if issparse(given) else csr_array(np.atleast_2d(given)))
        tails = {}
        for name in ("tail", "least_tail", "most_tail"):
            value = getattr(self, name)
            value = self.tail if value is None else value
            tails[name] = real_vector(value, listed.shape[0], name).astype(np.float64)
        if (tails["least_tail"] < 0.0).any():
            raise ValueError("the sum of probabilities outside a shortlist cannot be negative")
        for low, high in (("least_tail", "tail"), ("tail", "most_tail")):
            wrong = tails[low] > tails[high]
            if wrong.any():
                row = int(np.argmax(wrong))
                raise ValueError(
                    f"{low} must not be above {high}, but in row {row} they are "
                    f"{tails[low][row]} and {tails[high][row]}"
                )
        floor = self.floor
        if np.ndim(floor) == 0:
            floor = np.full(listed.shape[0], real_number(floor, "floor", 0.0, 1.0))
        floor = real_vector(floor, listed.shape[0], "floor")
        for row in np.flatnonzero((floor < 0.0) | (floor > 1.0))[:1]:
            raise ValueError(f"floor must be in [0, 1], but in row {row} it is {floor[row]}")
        if ((floor == 0.0) & (tails["most_tail"] > 0.0)).any():
            raise ValueError("floor must be above 0 where there is something outside a shortlist")
        vars(self).update(probability=listed, floor=floor, **tails)

    @property
    def n_labels(self) -> int:
        return self.probability.shape[1]

    @property
    def is_sparse(self) -> bool:
        """Always: the shortlists are CSR."""
        return True

    def __len__(self) -> int:
        return self.probability.shape[0]

    def __getitem__(self, rows) -> Shortlist:
        tails = (part[rows] for part in (self.least_tail, self.most_tail))
        return Shortlist(self.probability[rows], self.tail[rows], self.floor[rows], *tails)

    def marginals(self) -> Any:
        """The probabilities of the shortlists; of any other label at most ``floor``, not stored."""
        return self.probability

    def log_probability(self, sets) -> Array:
        """log P of sets of labels of the shortlists, none outside being true, (n,).

        Of a label outside the probability is not known: a set with one is refused.
        """
        checked = tidy_sets(csr_array(sets), "sets")
        same_rows(probability=self.probability, sets=checked)
        place, found = places_among(self.probability, checked)
        if not found.all():
            row, label = (int(part[~found][0]) for part in (rows_of(checked), checked.indices))
            raise ValueError(
                f"label {label} of row {row} is outside its shortlist, so the probability of the "
                f"set is not known; a lower floor lists more labels"
            )
        p, row = self.probability.data.astype(np.float64), rows_of(self.probability)
        inside = np.zeros(len(p), bool)
        inside[place] = True
        with np.errstate(divide="ignore"):
            logs = np.where(inside, np.log(p), np.log1p(-p))
        return np.bincount(row, logs, len(self)) - self.tail

    def ranked(self) -> Ranked:
        """By their probabilities, with a Poisson number of true labels beside them."""
        outside = np.stack([self.tail, np.zeros(len(self))], axis=1)
        return Ranked(self.probability, None, outside)

    def __str__(self) -> str:
        return "shortlists of independent labels"
