"""Rankings of the labels that a measure of rankings is expected to value most."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise.distributions import Distribution, Independent
from setwise.sparse import row_ranges
from setwise.targets.measure import Array

MEASURES = ("ndcg", "precision", "recall")


@dataclass(frozen=True)
class Ranking:
    """Rank the labels so that the expected value of the ranking is largest.

    A true label at place r of the first k adds discount(r) / norm(|y|) to the value of a row:
    1 / log2(r + 1) over sum_{s <= min(k, |y|)} 1 / log2(s + 1) for nDCG@k, 1 / k for precision@k,
    1 / |y| for recall@k. So the expected value is sum_r discount(r) g(label at place r) with the
    gains

        g_j = E[y_j / norm(|y|)] = sum_s P(y_j = 1, |y| = s) / norm(s),

    and the labels in the order of falling gain are best. They follow from P(label, size), not from
    the marginals alone: a label that is often true in the company of many is worth less.

    Parameters
    ----------
    measure : str, default "ndcg@5"
        "ndcg@k", "precision@k" or "recall@k" with a whole number k.

    Notes
    -----
    Ties: the lower label first. A row without true labels has the value 0 whatever the ranking.
    Cost: that of P(label, size): O(K l) a row from a list of K sets, O(l³) from independent labels.

    Examples
    --------
    Label 0 is the likelier one, but only where all labels are true together:

    >>> from setwise.distributions import Listed
    >>> distribution = Listed([[1, 1, 1], [0, 1, 0]], [[0.55, 0.45]])
    >>> Ranking("ndcg@1").gains(distribution)
    array([[0.55, 1.  , 0.55]])
    >>> Ranking("ndcg@2").rank(distribution)
    array([[1, 0]])
    """

    measure: str = "ndcg@5"

    def __post_init__(self):
        found = re.fullmatch(r"(\w+)@([1-9]\d*)", str(self.measure).strip().lower())
        if found is None or found[1] not in MEASURES:
            known = ", ".join(f"'{name}@k'" for name in MEASURES)
            raise ValueError(
                f"measure must be {known} with a whole number k of at least 1, not {self.measure!r}"
            )
        vars(self).update(measure=found[0])

    @property
    def k(self) -> int:
        """How many places count."""
        return int(self.measure.split("@")[1])

    def gains(self, distribution: Any) -> Array:
        """What each label adds to the expected value, up to its place's discount, (n, l).

        Parameters
        ----------
        distribution : Distribution, or array of shape (n, n_labels)
            As `predict_distribution` of an estimator gives it, or the probabilities of independent
            labels. Gains serve as the scores of a ranking in `evaluate(..., probability=gains)`.
        """
        given = (
            distribution if isinstance(distribution, Distribution) else Independent(distribution)
        )
        if self.measure.startswith("precision"):
            marginals = given.marginals()
            return np.asarray(marginals.toarray() if hasattr(marginals, "toarray") else marginals)
        parts, n_labels = [], given.n_labels
        for rows in row_ranges(len(given), n_labels * (n_labels + 1)):
            found = given[rows].label_sizes()
            if found is None:
                raise ValueError(
                    f"{self.measure} needs P(label, size of the set), which {given} does not have; "
                    f"use a Catalog, a Sized space or independent labels"
                )
            worth = self._worth(found[0].shape[1])
            parts.append(np.einsum("s,nsi->ni", worth, found[0]))
        return np.concatenate(parts)

    def rank(self, distribution: Any) -> Array:
        """The labels at the first k places, best first, (n, min(k, l))."""
        return np.argsort(-self.gains(distribution), axis=1, kind="stable")[:, : self.k]

    def expected(self, distribution: Any, ranking: Any) -> Array:
        """The expected value of given rankings of labels, (n, k) as of `rank`, (n,)."""
        gains = np.take_along_axis(self.gains(distribution), np.asarray(ranking), axis=1)
        return gains @ self._discounts(gains.shape[1])

    def _discounts(self, n_places: int) -> Array:
        places = np.arange(n_places)
        if self.measure.startswith("ndcg"):
            return 1.0 / np.log2(places + 2.0)
        return np.full(n_places, 1.0 / self.k if self.measure.startswith("precision") else 1.0)

    def _worth(self, n_sizes: int) -> Array:
        """1 / norm of each size, 0 for none true, (K + 1,)."""
        sizes = np.arange(1, n_sizes)
        norm = sizes * 1.0
        if self.measure.startswith("ndcg"):
            norm = np.cumsum(self._discounts(self.k))[np.minimum(sizes, self.k) - 1]
        return np.append(0.0, 1.0 / norm)
